//! Measures the processor time for small records in a write cache on this computer: some nodes write records and flush
//! them.

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

/// Number of written records, nearly the capacity of a log, and size of each in bytes.
const RECORDS: u64 = 250_000;
const RECORD_BYTES: u64 = 8;

/// Number of passes over the file. Each pass writes every `PASSES`-th record, like one of `PASSES` members.
const PASSES: u64 = 4;

/// Size of a large record in bytes, so large that the log's cost for each byte is negligible.
const LARGE_BYTES: u64 = RECORD_BYTES * RECORDS / 32;

/// Processor time for each small record.
#[derive(Clone, Copy, Debug)]
pub struct CacheCosts {
    /// Time to write the record into the log, including its copy, its memory, and the member's reading of the clock.
    write: Duration,
    /// Time to determine the I/O node of the record, and to prepare the message.
    deal: Duration,
    /// Time of the I/O node to receive the record and to find its place in the block.
    sort: Duration,
}

/// Processor time of one node for writing, of one node for flushing, and of all agents, divided by the number of nodes.
struct NodeTimes {
    writing: Duration,
    flushing: Duration,
    agents: Duration,
}

impl CacheCosts {
    /// Measures the costs with these agents and `processes` concurrent nodes of this process. The number of nodes
    /// matters, because the nodes share the processors and the processor caches.
    pub fn measure(agents: &Agents, processes: u32) -> Result<CacheCosts> {
        // Large records measure the costs that do not depend on the number of entries; these costs are subtracted.
        let large = NodeTimes::measure(agents, processes, LARGE_BYTES, 1)?;
        let small = NodeTimes::measure(agents, processes, RECORD_BYTES, PASSES)?;
        let each = |all: Duration, but: Duration| all.saturating_sub(but) / RECORDS as u32;
        Ok(CacheCosts {
            write: each(small.writing, Duration::ZERO),
            deal: each(small.flushing, large.flushing),
            sort: each(small.agents, large.agents),
        })
    }

    /// Returns the total time for a record.
    pub fn all(&self) -> Duration {
        self.write + self.deal + self.sort
    }

    /// Returns the settings with which the nodes of the machine take these times.
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

impl NodeTimes {
    /// Runs `nodes` nodes at the same time. Each writes and flushes a separate file in records of this size.
    fn measure(agents: &Agents, nodes: u32, record_bytes: u64, passes: u64) -> Result<NodeTimes> {
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
        Ok(NodeTimes { writing: mean(0), flushing: mean(1), agents })
    }
}

/// Returns the processor time of this thread for writing a file, in records of this size and in `passes` passes, into a
/// write cache that is as large as the file, and for the flush.
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
    // Copy the data from memory and time each write, like a member of a job.
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
