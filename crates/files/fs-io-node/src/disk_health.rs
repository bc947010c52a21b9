//! Checks, for monitoring, that the disks answer: each disk is asked for its space.
//!
//! A disk that is stuck does not answer, and must not block the callers that monitor it. So each disk has at most one
//! query in flight, made by a separate task, whatever the number of callers. Each caller waits for the answer for at
//! most a second.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use machine::{Condition, Disk, Duration, Machine, Space, first_of};

/// Limit of a caller's wait for an answer. A working disk answers faster, however busy it is with data. The limit is a
/// small part of the ten seconds for which Prometheus waits for metrics.
const PATIENCE: Duration = Duration::from_millis(1000);

/// Answer of a disk: its space, if known, or the reason why the disk cannot be used.
pub(super) type Health = Result<Option<Space>, String>;

/// The latest answers of a node's disks.
pub(super) struct DiskHealth<M: Machine> {
    machine: M,
    disks: Rc<[AskedDisk]>,
}

#[derive(Default)]
struct AskedDisk {
    is_asked: Cell<bool>,
    /// The latest answer; `None` before the first answer.
    health: RefCell<Option<Health>>,
    answered: Condition,
}

impl<M: Machine> DiskHealth<M> {
    pub(super) fn new(machine: M) -> Self {
        let disks = machine.disks().iter().map(|_| AskedDisk::default()).collect();
        DiskHealth { machine, disks }
    }

    /// Asks all disks for their space, and waits for their answers for at most [`PATIENCE`].
    pub(super) async fn ask(&self) -> Vec<Health> {
        for index in 0..self.disks.len() {
            self.begin(index);
        }
        let deadline = self.machine.now() + PATIENCE;
        let all = async {
            for disk in self.disks.iter() {
                while disk.is_asked.get() {
                    disk.answered.wait().await;
                }
            }
        };
        first_of(all, self.machine.sleep_until(deadline)).await;
        let answer = |(index, disk): (usize, &AskedDisk)| {
            let health = disk.health.borrow().clone().filter(|_| !disk.is_asked.get());
            health.unwrap_or_else(|| Err(format!("disk {index} has not answered for {PATIENCE}")))
        };
        self.disks.iter().enumerate().map(answer).collect()
    }

    /// Asks a disk for its space, unless a query to this disk is in flight.
    fn begin(&self, index: usize) {
        if self.disks[index].is_asked.replace(true) {
            return;
        }
        let (machine, disks) = (self.machine.clone(), self.disks.clone());
        self.machine.spawn("asking a disk for its space", async move {
            let space = machine.contain("asking a disk for its space", machine.disks()[index].space()).await;
            let health = space.flatten().map_err(|error| error.to_string());
            disks[index].health.replace(Some(health));
            disks[index].is_asked.set(false);
            disks[index].answered.wake_all();
            Ok(())
        });
    }
}
