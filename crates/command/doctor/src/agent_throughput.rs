//! Measures the write and read throughput of agents, as `put` and `get` would see it.
//!
//! Agents are measured one after the other, so that they do not disturb each other. Several rounds distinguish a short
//! disturbance from a permanent one. An agent reports the processor time of all programs on its computer, and its own.
//! The difference is the work of other programs.

use std::io::{self, Read};
use std::time::{Duration, Instant};

use command_line::failure::{Failure, Result};
use command_line::mib;
use command_line::progress::{Progress, Show};
use fs::NumberedFile;
use machine::Computer;
use node::sparse::Dense;
use node::whole_file::{self, Method};
use node::{ConnectedNode, Size, agents};

use crate::agent::{AgentFinding, Examined, examine};
use agent_set::at_once;
use transfer::cluster::Cluster;
use transfer::interrupt::Interruption;
use transfer::{one_file, scratch};

/// Number of measurements of each agent. If other programs keep a computer busy, all agents are measured this many
/// times more, so that at least the best measurements were hardly disturbed.
const ROUNDS: usize = 5;

/// Intended duration of each write. In a shorter write, the first arm movement of a disk and the last flush would take
/// too large a share. The page cache of the agent's computer does not affect the result, because the data are flushed.
const WRITING: Duration = Duration::from_millis(400);

/// Size in bytes of the first write. Its duration determines the size of the others, and is not part of the result.
const TRIAL_BYTES: u64 = 1 << 20;

/// Measures all agents that answer, with files of at most `bytes_max` bytes. `before` has the results of their earlier
/// examinations, in the same order. Connects with the settings of `connecting`.
pub(crate) fn all(
    connecting: &Cluster,
    findings: &mut [AgentFinding],
    before: &[Option<Examined>],
    bytes_max: u64,
    problems: &mut Vec<Failure>,
) -> Result<()> {
    let can_be = |finding: &AgentFinding| finding.reachable && finding.failures.is_empty();
    let first = |finding: &AgentFinding| can_be(finding).then_some(TRIAL_BYTES.min(bytes_max));
    let mut measuring = Measuring {
        connecting,
        interruption: Interruption::prepare()?,
        progress: Progress::count(Show::Auto, "measuring", (findings.len() * (ROUNDS + 1)) as u64),
        sizes: findings.iter().map(first).collect(),
        bytes_max,
        failures: problems,
    };
    measuring.round(findings);
    findings.iter_mut().for_each(AgentFinding::forget_measurements);
    measuring.rounds(findings, before);
    if findings.iter().any(AgentFinding::is_busy) {
        measuring.progress.expect_more((findings.len() * ROUNDS) as u64);
        measuring.rounds(findings, before);
    }
    measuring.progress.finish();
    Ok(())
}

/// Measurement of agents, in rounds.
struct Measuring<'a> {
    connecting: &'a Cluster,
    interruption: Interruption,
    progress: Progress,
    /// Number of bytes to write next to each agent; `None` if the agent has failed.
    sizes: Vec<Option<u64>>,
    bytes_max: u64,
    failures: &'a mut Vec<Failure>,
}

impl Measuring<'_> {
    fn rounds(&mut self, findings: &mut [AgentFinding], before: &[Option<Examined>]) {
        (0..ROUNDS).for_each(|_| self.round(findings));
        let names: Vec<&str> = findings.iter().map(|finding| &*finding.agent).collect();
        let after = at_once(&names, |name| examine(self.connecting, name).ok());
        for (index, finding) in findings.iter_mut().enumerate() {
            finding.write_mib_s = statistics::median(&finding.writes_mib_s);
            finding.read_mib_s = statistics::median(&finding.reads_mib_s);
            finding.other_work = other_work(index, before, &after);
        }
    }

    /// Measures each agent once.
    fn round(&mut self, findings: &mut [AgentFinding]) {
        for (finding, size) in findings.iter_mut().zip(&mut self.sizes) {
            self.progress.add(1);
            let Some(bytes) = *size else { continue };
            match measure(self.connecting, &finding.agent, bytes, self.interruption.clone()) {
                Ok((write, read)) => {
                    finding.writes_mib_s.push(write);
                    finding.reads_mib_s.push(read);
                    let in_time = (write * f64::from(1 << 20) * WRITING.as_secs_f64()) as u64;
                    *size = Some(bytes.max(in_time).min(self.bytes_max));
                }
                Err(failure) => {
                    self.failures.push(failure);
                    *size = None;
                }
            }
        }
    }
}

/// Writes a temporary file to the agent's disks, reads it and removes it. Returns the write and the read throughput in
/// MiB/s.
fn measure(connecting: &Cluster, name: &str, bytes: u64, interruption: Interruption) -> Result<(f64, f64)> {
    let cluster = connecting.with_agents(agents::named([name])?);
    let name = name.to_owned();
    cluster.run(move |connection| async move {
        let left = Failure::new(&name, "interrupted, and there was no time to remove the written data");
        let undo_guard = interruption.begin(left.remedy(scratch::LEFT));
        let usual: Size = node::BLOCK.parse().expect("it is a size");
        let block = usual.0.min(connection.client.block_bytes_max());
        let file = scratch::describe(&connection, &name, block).await?;
        let measured = interruption.unless(write_and_read(&connection, &name, file.clone(), bytes)).await;
        let removed = scratch::remove(&connection, [&file]).await;
        match measured {
            None => Err(undo_guard.undone(Failure::new("doctor", "interrupted"), removed)),
            Some(measured) => {
                let measured = measured?;
                removed?;
                Ok(measured)
            }
        }
    })
}

async fn write_and_read(
    connection: &ConnectedNode,
    name: &str,
    file: NumberedFile,
    bytes: u64,
) -> Result<(f64, f64)> {
    let open = async |bytes| {
        let opened = connection.client.numbered(NumberedFile { bytes, ..file.clone() }).await;
        connection.explained(name, opened)
    };
    let (written, start) = (open(0).await?, Instant::now());
    let input = Dense(io::repeat(0).take(bytes));
    whole_file::upload(connection, &written, Method::Traditional, input, |_| {})
        .await
        .map_err(|error| one_file::failed_to_put(name, error))?;
    let write = mib(bytes) / start.elapsed().as_secs_f64();
    let (read, start) = (open(bytes).await?, Instant::now());
    let read = whole_file::download(connection, &read, Method::Traditional, Dense(io::sink()), |_| {}).await;
    read.map_err(|error| one_file::failed_to_get(name, error))?;
    Ok((write, mib(bytes) / start.elapsed().as_secs_f64()))
}

/// Returns the share of the processors of an agent's computer that programs other than agents and this one have used.
fn other_work(index: usize, before: &[Option<Examined>], after: &[Option<Examined>]) -> Option<f64> {
    let (first, last) = (before[index].as_ref()?, after[index].as_ref()?);
    let (began, ended) = (first.examination.computer?, last.examination.computer?);
    let all = ended.worked.as_secs_f64() - began.worked.as_secs_f64();
    let mut ours = 0.0;
    let mut counted = Vec::new();
    for (first, last) in
        before.iter().zip(after).filter_map(|(first, last)| first.as_ref().zip(last.as_ref()))
    {
        let computers = first.examination.computer.zip(last.examination.computer);
        let Some((then, now)) = computers.filter(|(then, _)| then.id == began.id) else { continue };
        // Count an agent with two names only once, and a restarted agent not at all.
        if first.node == last.node && !counted.contains(&first.node) {
            counted.push(first.node);
            ours += worked_for_node(then, now);
        }
    }
    if let Some((then, now)) = first.own.zip(last.own).filter(|(then, _)| then.id == began.id) {
        ours += worked_for_node(then, now);
    }
    let time = last.at.duration_since(first.at).as_secs_f64() * f64::from(ended.processors.max(1));
    (time > 0.0).then(|| ((all - ours) / time).clamp(0.0, 1.0))
}

fn worked_for_node(then: Computer, now: Computer) -> f64 {
    now.worked_for_node.as_secs_f64() - then.worked_for_node.as_secs_f64()
}

#[cfg(test)]
mod tests {
    use fs::Examination;
    use machine::NodeId;

    use super::*;

    #[test]
    fn other_work_excludes_agents_and_this_program() {
        let start = Instant::now();
        let computer = |id, worked, worked_for_node| {
            let seconds = |seconds: u64| machine::Duration::from_nanos(seconds * 1_000_000_000);
            Computer { id, processors: 2, worked: seconds(worked), worked_for_node: seconds(worked_for_node) }
        };
        let examined = |node, at, its, own| Examined {
            examination: Examination {
                release: String::new(),
                date: None,
                computer: Some(its),
                disks: Vec::new(),
            },
            node: NodeId(node),
            round_trip: Duration::ZERO,
            ahead: None,
            own: Some(own),
            at: start + Duration::from_secs(at),
        };
        let before = [
            Some(examined(1, 0, computer(7, 100, 10), computer(7, 100, 1))),
            Some(examined(2, 0, computer(7, 100, 20), computer(7, 100, 1))),
            Some(examined(2, 0, computer(7, 100, 20), computer(7, 100, 1))),
            Some(examined(3, 0, computer(8, 500, 0), computer(7, 100, 1))),
            None,
        ];
        let after = [
            Some(examined(1, 10, computer(7, 115, 12), computer(7, 115, 2))),
            Some(examined(2, 10, computer(7, 115, 23), computer(7, 115, 2))),
            Some(examined(2, 10, computer(7, 115, 23), computer(7, 115, 2))),
            Some(examined(3, 10, computer(8, 504, 4), computer(7, 115, 2))),
            None,
        ];
        let share = |index| other_work(index, &before, &after);
        // Of 15 s of processor time, agents used 2 + 3 s and this program 1 s; 9 s remain of the 2 x 10 s that two
        // processors have in 10 s.
        assert!((share(0).expect("known") - 0.45).abs() < 1e-9, "{:?}", share(0));
        assert_eq!(share(1), share(0));
        assert_eq!(share(3), Some(0.0));
        assert_eq!(share(4), None);
    }
}
