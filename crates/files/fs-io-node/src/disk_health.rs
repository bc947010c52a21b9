//! Whether disks answer, for those who watch: each is asked how much it holds.
//!
//! A disk that is stuck does not answer, and must not block the callers that want to know just that. So a disk has at
//! most one question in flight, asked by a task of its own, however many callers there are, and each caller waits for
//! the answer for at most a second.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use machine::{Condition, Disk, Duration, Machine, Space, first_of};

/// How long a caller waits for an answer: longer than a disk that works needs, however busy it is with data, and a
/// small part of the ten seconds that Prometheus waits for numbers.
const PATIENCE: Duration = Duration::from_millis(1000);

/// The answer of a disk: its space, if known; or the reason why it cannot be used.
pub(super) type Health = Result<Option<Space>, String>;

/// The disks of a node, each as it has answered last.
pub(super) struct DiskHealth<M: Machine> {
    machine: M,
    disks: Rc<[AskedDisk]>,
}

#[derive(Default)]
struct AskedDisk {
    is_asked: Cell<bool>,
    /// None before the first answer.
    health: RefCell<Option<Health>>,
    answered: Condition,
}

impl<M: Machine> DiskHealth<M> {
    pub(super) fn new(machine: M) -> Self {
        let disks = machine.disks().iter().map(|_| AskedDisk::default()).collect();
        DiskHealth { machine, disks }
    }

    /// Asks all disks, and waits for their answers as long as patience lasts.
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

    /// Asks a disk, unless it has yet to answer.
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
