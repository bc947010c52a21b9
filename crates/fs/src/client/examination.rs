//! Asking I/O nodes for their state.

use machine::{Computer, Duration, Machine, NodeId, Payload, Space};

use super::{Client, unexpected};
use crate::error::Result;
use crate::protocol::{ExaminedDisk, Reply, Request};

/// The state of an I/O node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Examination {
    /// The release of its program, see [`RELEASE`](crate::RELEASE).
    pub release: String,
    /// The time since 1970 began, by its clock on the wall, if it has one.
    pub date: Option<Duration>,
    /// The computer it runs on, if it knows that.
    pub computer: Option<Computer>,
    /// Its disks.
    pub disks: Vec<DiskExamination>,
}

/// The state of a disk of an I/O node, as far as it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskExamination {
    /// How much it holds.
    pub space: Option<Space>,
    /// Identifies its device among those of the computer.
    pub device: Option<u64>,
    /// Whether its speed is independent of other disks on the same device.
    pub has_own_pace: bool,
    /// Why it cannot be used, if that is so.
    pub failure: Option<String>,
    /// Reads that another client's writes have held up there, if any have been.
    pub held_up: Option<HeldUpExamination>,
}

/// Reads that had to wait while many writes of another client went on, with about as many waiting in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldUpExamination {
    /// How many there have been since the I/O node began.
    pub reads: u64,
    /// The most writes of one client that waited then.
    pub writes_most: u64,
    /// How long ago the last of them was.
    pub ago: Duration,
}

impl<M: Machine> Client<M> {
    /// Asks an I/O node for its state.
    pub async fn examine(&self, node: NodeId) -> Result<Examination> {
        let answer = self.inner.endpoint.call(node, Request::Examine, Payload::empty()).await?;
        let (Reply::Examined { release, date, computer, disks }, _) = answer else {
            return Err(unexpected(node));
        };
        let computer = computer.map(|computer| Computer {
            id: computer.id,
            processors: computer.processors,
            worked: Duration::from_nanos(computer.worked),
            worked_for_node: Duration::from_nanos(computer.worked_for_node),
        });
        let disk = |disk: ExaminedDisk| DiskExamination {
            space: disk.space.map(|(bytes, free)| Space { bytes, free }),
            device: disk.device,
            has_own_pace: disk.has_own_pace,
            failure: disk.failure,
            held_up: disk.held_up.map(|held_up| HeldUpExamination {
                reads: held_up.reads,
                writes_most: held_up.writes_most,
                ago: Duration::from_nanos(held_up.ago),
            }),
        };
        let disks = disks.into_iter().map(disk).collect();
        Ok(Examination { release, date: date.map(Duration::from_nanos), computer, disks })
    }
}
