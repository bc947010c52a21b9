//! The lock of atomic mode: one for a whole file, kept as an extended attribute, which the keeper of the namespace
//! gives to one process at a time.
//!
//! A process that is killed leaves it locked. Who waits takes it away when the same one has had it for too long.

use std::thread;
use std::time::{Duration, Instant};

use namespace::{FileNumber, SetValue, TreeAnswer, TreeOperation};
use node::Tree;

use crate::failure::{ErrorClass, MpiError, Outcome};

/// The attribute whose presence is the lock.
const NAME: &[u8] = b"user.starfish.mpi-lock";

/// How long one may have it before it counts as gone.
const PATIENCE: Duration = Duration::from_secs(10);

/// The longest pause before it is tried again.
const PAUSE_MAX: Duration = Duration::from_millis(16);

/// The lock of a file.
pub(crate) struct FileLock {
    tree: Tree,
    path: String,
    number: FileNumber,
    /// Who has it when this process does.
    owner: Vec<u8>,
}

/// The lock, held until this is dropped.
pub(crate) struct HeldFileLock<'a>(&'a FileLock);

impl FileLock {
    /// That of the file of this number, which had this path. Nobody is asked.
    pub(crate) fn new(tree: &Tree, path: &str, number: FileNumber, owner: String) -> FileLock {
        FileLock { tree: tree.clone(), path: path.to_owned(), number, owner: owner.into_bytes() }
    }

    /// Waits until nobody else has it.
    pub(crate) fn hold(&self) -> Outcome<HeldFileLock<'_>> {
        let (mut pause, mut other, mut since) = (Duration::from_micros(250), None, Instant::now());
        loop {
            match self.take() {
                Err(error) if error.class == ErrorClass::Exists => {}
                taken => return taken.map(|()| HeldFileLock(self)),
            }
            thread::sleep(pause);
            pause = (pause * 2).min(PAUSE_MAX);
            let holder = self.holder();
            if holder != other {
                (other, since) = (holder, Instant::now());
            } else if since.elapsed() > PATIENCE {
                let _ = self.give_back();
                since = Instant::now();
            }
        }
    }

    fn take(&self) -> Outcome<()> {
        let mut value = self.owner.clone();
        // One who has it again is not one who still has it.
        value.extend(node::random()?.to_le_bytes());
        let (number, name, mode) = (self.number, NAME.to_vec(), SetValue::New);
        self.perform(TreeOperation::SetExtended { number, name, value, mode }).map(drop)
    }

    fn holder(&self) -> Option<Vec<u8>> {
        match self.perform(TreeOperation::GetExtended { number: self.number, name: NAME.to_vec() }) {
            Ok(TreeAnswer::Value(owner)) => Some(owner),
            _ => None,
        }
    }

    fn give_back(&self) -> Outcome<()> {
        self.perform(TreeOperation::RemoveExtended { number: self.number, name: NAME.to_vec() }).map(drop)
    }

    fn perform(&self, operation: TreeOperation) -> Outcome<TreeAnswer> {
        self.tree.perform(&self.path, operation).wait().map_err(MpiError::from)
    }
}

impl Drop for HeldFileLock<'_> {
    fn drop(&mut self) {
        // If the keeper does not answer, whoever waits gives it up.
        let _ = self.0.give_back();
    }
}
