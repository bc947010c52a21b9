//! What small records in a write cache take of this computer's processors: some nodes write them and flush them.

use std::time::Duration;

use agent_set::at_once;
use command_line::failure::Result;
use description::MachineDescription;
use fs::{WriteCache, WriteCacheSettings};
use jobs::Latencies;
use machine::{Machine, Memory, Work};
use node::ConnectedNode;
use transfer::scratch;

use super::BLOCK_BYTES;
use crate::bench::processes::Agents;
use crate::bench::times::thread_worked;

/// Records that are written, of so many bytes: nearly as many as a log has entries.
const RECORDS: u64 = 250_000;
const RECORD_BYTES: u64 = 8;

/// The node goes over the file so often, and writes each of so many records, as if it were as many members.
const PASSES: u64 = 4;

/// Of this many bytes are large records, of which a log takes as good as nothing for each.
const LARGE_BYTES: u64 = RECORD_BYTES * RECORDS / 32;

/// What each small record takes of a processor.
#[derive(Clone, Copy, Debug)]
pub struct CacheCosts {
    /// Writing it into the log, its copy, memory for it and the member's look at the clock included.
    write: Duration,
    /// Finding out which I/O node is told of it, and how.
    deal: Duration,
    /// At the I/O node: hearing of it, and finding its place in the block.
    sort: Duration,
}

/// What each of some nodes has worked to write and to flush, and what agents have worked for each of them.
struct Worked {
    writing: Duration,
    flushing: Duration,
    agents: Duration,
}

impl CacheCosts {
    /// Measures them by as many nodes of this process as there will be processes, all at once, since these share the
    /// processors and their caches, and by these agents.
    pub fn measure(agents: &Agents, processes: u32) -> Result<CacheCosts> {
        // What is no entry's comes with large records, too.
        let large = Worked::measure(agents, processes, LARGE_BYTES, 1)?;
        let small = Worked::measure(agents, processes, RECORD_BYTES, PASSES)?;
        let each = |all: Duration, but: Duration| all.saturating_sub(but) / RECORDS as u32;
        Ok(CacheCosts {
            write: each(small.writing, Duration::ZERO),
            deal: each(small.flushing, large.flushing),
            sort: each(small.agents, large.agents),
        })
    }

    /// What a record takes in all.
    pub fn all(&self) -> Duration {
        self.write + self.deal + self.sort
    }

    /// What is to be set of a machine for its nodes to take as long.
    pub fn set(&self, machine: &MachineDescription) -> Vec<String> {
        let processor = &machine.processor;
        let cost = |work: Work| processor.cost.at(work.index());
        let (copy, take) = (cost(Work::Copy { bytes: RECORD_BYTES }), cost(Work::TakeEntries { entries: 1 }));
        let per_unit = |cycles: &Option<description::Sourced<description::Cycles>>| {
            cycles.as_ref().map_or(0, |cycles| cycles.value.0)
        };
        // A record is a word or less.
        let copy = copy.cycles.value.0 + per_unit(&copy.cycles_per_word);
        let cycles = |time: Duration, but: u64| {
            ((time.as_secs_f64() * processor.clock.value.0 as f64).round() as u64).saturating_sub(but)
        };
        vec![
            format!("processor.cost.append_entry.cycles={}", cycles(self.write, copy)),
            format!("processor.cost.deal_entries.cycles_per_item={}", cycles(self.deal, 0)),
            format!(
                "processor.cost.sort_entries.cycles_per_item={}",
                cycles(self.sort, per_unit(&take.cycles_per_item))
            ),
        ]
    }
}

impl Worked {
    /// Has so many nodes write and flush at once, each a file of its own in records of this size.
    fn measure(agents: &Agents, nodes: u32, record_bytes: u64, passes: u64) -> Result<Worked> {
        let of_agents = agents.processor_clock();
        let before = of_agents();
        let all: Vec<u32> = (0..nodes).collect();
        let outcomes = at_once(&all, |_| {
            agents.cluster.run(move |connection| async move {
                written_and_flushed(&connection, record_bytes, passes).await
            })
        });
        let outcomes: Vec<[Duration; 2]> = agents.explain(outcomes.into_iter().collect::<Result<_>>())?;
        let mean = |phase: usize| outcomes.iter().map(|worked| worked[phase]).sum::<Duration>() / nodes;
        let agents = of_agents().saturating_sub(before) / nodes;
        Ok(Worked { writing: mean(0), flushing: mean(1), agents })
    }
}

/// What this thread works for writing a file in records of this size, in so many passes, into a write cache that has
/// room for it, and for the flush.
async fn written_and_flushed(
    connection: &ConnectedNode,
    record_bytes: u64,
    passes: u64,
) -> Result<[Duration; 2]> {
    let ConnectedNode { machine, client, .. } = connection;
    let job = format!("costs-{:016x}", node::random()?);
    let described = scratch::describe(connection, &job, BLOCK_BYTES).await?;
    let file = connection.explained(&job, client.numbered(described.clone()).await)?;
    connection.explained(&job, file.make_stripes().await)?;
    let settings = WriteCacheSettings { background: None, flush_after: None, ..WriteCacheSettings::agent() };
    let real = Memory::real(Vec::new());
    let cache = WriteCache::join(client.clone(), &job, "the only one", settings, &real);
    let cache = connection.explained(&job, cache.await)?;
    // Taken out of memory, and timed, as a member of a job does.
    let (bytes, mut latencies) = (RECORDS * RECORD_BYTES, Latencies::default());
    let (records, data) = (bytes / record_bytes, Memory::real(vec![1; bytes as usize]));
    let before = thread_worked();
    for number in (0..passes).flat_map(|first| (first..records).step_by(passes as usize)) {
        let (at, asked) = (number * record_bytes, machine.now());
        connection.explained(&job, cache.write(&file, at, &data.get(at, record_bytes)).await)?;
        latencies.record(machine.now().since(asked));
    }
    let written = thread_worked();
    connection.explained(&job, cache.flush().await)?;
    let flushed = thread_worked();
    drop(file);
    connection.explained(&job, cache.leave().await)?;
    scratch::remove(connection, [&described]).await?;
    Ok([written.saturating_sub(before), flushed.saturating_sub(written)])
}
