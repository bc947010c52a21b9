//! Asking I/O nodes for their state.

use std::collections::BTreeMap;

use machine::{Computer, Duration, Machine, NodeId, Payload, Space};

use super::{Client, unexpected};
use crate::error::{Error, Failure, FailureKind, Result};
use crate::protocol::{ExaminedDisk, Reply, Request};

/// The state of an I/O node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Examination {
    /// The release of its program, see [`RELEASE`](fs_protocol::RELEASE).
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
    /// Asks all I/O nodes which of their disks cannot be used, and why. No disk of an I/O node that fails can be used.
    pub async fn failing_disks(&self) -> BTreeMap<(NodeId, u32), Error> {
        let mut failing = BTreeMap::new();
        for (node, answer) in self.ask_all(|_| Some(Request::Examine)).await {
            let remote = |text| Error::Remote { node, failure: Failure::new(FailureKind::Io, text) };
            match answer {
                Ok((Reply::Examined { disks, .. }, _)) => {
                    let disks =
                        (0..).zip(disks).filter_map(|(disk, examined)| Some((disk, examined.failure?)));
                    failing.extend(disks.map(|(disk, failure)| ((node, disk), remote(failure))));
                }
                other => {
                    let error = other.map_or_else(|error| *error, |_| *unexpected(node));
                    let disks = self.disk_places().into_iter().filter(|(home, _)| *home == node);
                    failing.extend(disks.map(|place| (place, error.clone())));
                }
            }
        }
        failing
    }

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
