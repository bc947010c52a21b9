//! What small records in a write cache take of this computer's processors: one node writes some and flushes them.

use std::time::Duration;

use command_line::failure::Result;
use description::MachineDescription;
use fs::{WriteCache, WriteCacheSettings};
use jobs::Latencies;
use machine::{Machine, Memory, Work};
use node::ConnectedNode;

use super::measure::create;
use crate::bench::processes::Agents;
use crate::bench::times::thread_worked;
use crate::this_node;

/// Records that are written, of so many bytes: nearly as many as a log has entries.
const RECORDS: u64 = 250_000;
const RECORD_BYTES: u64 = 8;

/// The node goes over the file so often, and writes each of so many records, as if it were as many members.
const PASSES: u64 = 4;

/// Of this many bytes are large records, of which a log takes as good as nothing for each.
const LARGE_BYTES: u64 = RECORD_BYTES * RECORDS / 32;

/// What each small record takes of a processor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CacheCosts {
    /// Writing it into the log, its copy, memory for it and the member's look at the clock included.
    write: Duration,
    /// Finding out which I/O node is told of it, and how.
    deal: Duration,
    /// At the I/O node: hearing of it, and finding its place in the block.
    sort: Duration,
}

/// What a node and all agents have worked.
#[derive(Clone, Copy, Default)]
struct Worked {
    node: Duration,
    agents: Duration,
}

impl CacheCosts {
    /// Measures them by a node of this process and these agents.
    pub(crate) fn measure(agents: &Agents) -> Result<CacheCosts> {
        let of_agents = agents.processor_clock();
        let measured = this_node::run(agents.agents.clone(), move |connection| async move {
            let worked = || Worked { node: thread_worked(), agents: of_agents() };
            // What is no entry's comes with large records, too.
            let [_, large] = written_and_flushed(&connection, LARGE_BYTES, 1, &worked).await?;
            let [write, small] = written_and_flushed(&connection, RECORD_BYTES, PASSES, &worked).await?;
            let each = |all: Duration, but: Duration| all.saturating_sub(but) / RECORDS as u32;
            let [deal, sort] = [each(small.node, large.node), each(small.agents, large.agents)];
            Ok(CacheCosts { write: each(write.node, Duration::ZERO), deal, sort })
        });
        agents.explain(measured)
    }

    /// What a record takes in all.
    pub(crate) fn all(&self) -> Duration {
        self.write + self.deal + self.sort
    }

    /// What is to be set of a machine for its nodes to take as long.
    pub(crate) fn set(&self, machine: &MachineDescription) -> Vec<String> {
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

/// What is worked for writing a file in records of this size, in so many passes, into a write cache that has room for
/// it, and for the flush.
async fn written_and_flushed(
    connection: &ConnectedNode,
    record_bytes: u64,
    passes: u64,
    worked: &impl Fn() -> Worked,
) -> Result<[Worked; 2]> {
    let ConnectedNode { machine, client, .. } = connection;
    let job = format!("costs-{:016x}", node::random()?);
    let file = create(connection, &job).await?;
    let settings = WriteCacheSettings { background: None, flush_after: None, ..WriteCacheSettings::agent() };
    let real = Memory::real(Vec::new());
    let cache = WriteCache::join(client.clone(), &job, "the only one", settings, &real);
    let cache = connection.explained(&job, cache.await)?;
    // Taken out of memory, and timed, as a member of a job does.
    let (bytes, mut latencies) = (RECORDS * RECORD_BYTES, Latencies::default());
    let (records, data) = (bytes / record_bytes, Memory::real(vec![1; bytes as usize]));
    let before = worked();
    for number in (0..passes).flat_map(|first| (first..records).step_by(passes as usize)) {
        let (at, asked) = (number * record_bytes, machine.now());
        connection.explained(&job, cache.write(&file, at, &data.get(at, record_bytes)).await)?;
        latencies.record(machine.now().since(asked));
    }
    let written = worked();
    connection.explained(&job, cache.flush().await)?;
    let flushed = worked();
    drop(file);
    connection.explained(&job, cache.leave().await)?;
    connection.discard(&job).await?;
    Ok([written.since(before), flushed.since(written)])
}

impl Worked {
    fn since(self, before: Worked) -> Worked {
        Worked {
            node: self.node.saturating_sub(before.node),
            agents: self.agents.saturating_sub(before.agents),
        }
    }
}
