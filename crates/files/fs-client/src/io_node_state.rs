//! Queries I/O nodes for their state.

use std::collections::BTreeMap;

use machine::{Computer, Duration, Machine, NodeId, Payload, Space};

use super::{Client, unexpected};
use crate::error::{Error, Failure, FailureKind, Result};
use crate::protocol::{ExaminedDisk, Reply, Request};

/// The state of an I/O node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Examination {
    /// Release of the node's program, see [`RELEASE`](fs_protocol::RELEASE).
    pub release: String,
    /// Time since the beginning of 1970 by the node's wall clock, if it has a wall clock.
    pub date: Option<Duration>,
    /// The computer on which the node runs, if known.
    pub computer: Option<Computer>,
    /// The disks of the node.
    pub disks: Vec<DiskExamination>,
}

/// Known state of a disk of an I/O node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskExamination {
    /// Capacity and free space of the disk.
    pub space: Option<Space>,
    /// Identifies the disk's device among the devices of the computer.
    pub device: Option<u64>,
    /// True if the speed of the disk is independent of other disks on the same device.
    pub has_own_pace: bool,
    /// Reason why the disk is unusable, if it is unusable.
    pub failure: Option<String>,
    /// Reads at the disk that another client's writes delayed, if any.
    pub held_up: Option<HeldUpExamination>,
}

/// Reads that waited while many writes of another client were served, although about as many of these writes still
/// waited afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldUpExamination {
    /// Number of delayed reads since the I/O node started.
    pub reads: u64,
    /// Largest number of waiting writes of one client at the time of such a read.
    pub writes_most: u64,
    /// Time since the last delayed read.
    pub ago: Duration,
}

impl<M: Machine> Client<M> {
    /// Returns the unusable disks of all I/O nodes, with the reasons. All disks of a failed I/O node are unusable.
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

    /// Queries an I/O node for its state.
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
