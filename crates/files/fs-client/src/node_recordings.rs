//! On-demand event recordings of I/O nodes, fetched together with the times of their clocks.
//!
//! Clocks are compared by messages. The client requests the time of a node's clock several times, and assumes that the
//! node reads its clock in the middle of each exchange. The shortest exchange is the most exact: its error is at most
//! half of its duration.

use machine::{Instant, Machine, NodeId, Payload};
use recording::KEPT_EVENTS;
use trace::ClockOffset;

use super::{Client, unexpected};
use crate::endpoint::Answer;
use crate::error::{Error, Result};
use crate::protocol::{RecordingStep, Reply, Request};
use crate::span_names;

/// Number of exchanges with each clock: even in a busy network, other messages delay only some of these exchanges.
const CLOCK_EXCHANGES: u32 = 16;

/// Maximum length of a recording in bytes. An event with four arguments needs a quarter of the 256 bytes per event.
const SECTION_BYTES_MAX: u64 = KEPT_EVENTS as u64 * 256;

/// Event recording of an I/O node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeRecording {
    /// A section of a trace, whose process 0 is the node.
    pub section: Vec<u8>,
    /// Time of the node's clock at time 0 of the recording, in nanoseconds since 1970.
    pub zero_unix_ns: u64,
    /// Offset of the node's clock from this node's clock.
    pub clock: ClockOffset,
}

impl<M: Machine> Client<M> {
    /// Starts a recording at all I/O nodes, which continues until a client stops it. Each node keeps its last
    /// [`KEPT_EVENTS`] events. Nodes that are already recording on demand restart their recording.
    ///
    /// # Errors
    /// Fails if a node already records its whole run into a file. In this case all on-demand recordings are stopped.
    pub async fn start_recording(&self) -> Result<()> {
        let answers = self.ask_all(|_| Some(Request::Record(RecordingStep::Start))).await;
        let started = answers.into_iter().try_for_each(|(node, answer)| match answer? {
            (Reply::Done, _) => Ok(()),
            _ => Err(unexpected(node)),
        });
        if started.is_err() {
            // Stop the recordings of the other nodes, since no client would fetch them.
            let _ = self.ask_all(|_| Some(Request::Record(RecordingStep::Stop))).await;
        }
        started
    }

    /// Returns true if an I/O node is recording because a client requested it.
    pub async fn is_recording(&self) -> bool {
        let answers = self.ask_all(|_| Some(Request::Record(RecordingStep::ReadClock))).await;
        answers.into_iter().any(|(_, clock)| clock.is_ok())
    }

    /// Stops the recording of all I/O nodes, whichever client started it, and fetches the recordings.
    pub async fn stop_recording(&self) -> Vec<(NodeId, Result<NodeRecording>)> {
        let mut clocks = Vec::new();
        for &node in self.io_nodes() {
            clocks.push(self.compare_clock(node).await);
        }
        let stopped = self.ask_all(|_| Some(Request::Record(RecordingStep::Stop))).await;
        let mut recordings = Vec::new();
        for ((node, answer), clock) in stopped.into_iter().zip(clocks) {
            recordings.push((node, self.fetch_recording(node, answer, clock).await));
        }
        recordings
    }

    /// Compares the clock of an I/O node's recording with this node's wall clock.
    async fn compare_clock(&self, node: NodeId) -> Result<ClockOffset> {
        let machine = self.inner.endpoint.machine();
        let zero = span_names::zero_unix_ns(machine);
        let mut best = ClockOffset { offset_ns: 0, uncertainty_ns: u64::MAX };
        for _ in 0..CLOCK_EXCHANGES {
            let asked = machine.now();
            let answer = self
                .inner
                .endpoint
                .call(node, Request::Record(RecordingStep::ReadClock), Payload::empty())
                .await?;
            let (Reply::RecordingClock { unix_ns }, _) = answer else { return Err(unexpected(node)) };
            let took = machine.now().since(asked).as_nanos();
            let uncertainty_ns = took.div_ceil(2);
            if uncertainty_ns < best.uncertainty_ns {
                let here = zero + asked.since(Instant::START).as_nanos() + took / 2;
                best = ClockOffset { offset_ns: here.wrapping_sub(unix_ns).cast_signed(), uncertainty_ns };
            }
        }
        Ok(best)
    }

    async fn fetch_recording(
        &self,
        node: NodeId,
        stopped: Answer,
        clock: Result<ClockOffset>,
    ) -> Result<NodeRecording> {
        let (Reply::Recorded { zero_unix_ns, bytes }, _) = stopped? else { return Err(unexpected(node)) };
        let clock = clock?;
        let wrong = |why: String| Box::new(Error::Protocol { node, why });
        if bytes > SECTION_BYTES_MAX {
            return Err(wrong(format!("has a recording of {bytes} bytes, more than {SECTION_BYTES_MAX}")));
        }
        let mut section = Vec::new();
        while (section.len() as u64) < bytes {
            let answer = self
                .inner
                .endpoint
                .call(node, Request::Record(RecordingStep::Fetch), Payload::empty())
                .await?;
            let (Reply::RecordedPart { bytes: part }, _) = answer else { return Err(unexpected(node)) };
            if part.is_empty() {
                return Err(wrong(format!("sent {} bytes of a recording of {bytes}", section.len())));
            }
            section.extend(part);
        }
        if !trace::is_trace(&section) {
            return Err(wrong("sent a recording that is not a trace".to_owned()));
        }
        Ok(NodeRecording { section, zero_unix_ns, clock })
    }
}
