//! Who takes part in a job.

use fs::{Client, Group};
use machine::Machine;

use crate::{Contents, Error};

/// A node that takes part in a job, and what it has for that.
pub struct Member<M: Machine> {
    /// The node.
    pub machine: M,
    /// Its access to the file system; none for a job that has no [clients](crate::Job::has_clients).
    pub client: Option<Client<M>>,
    /// All members of the job, and which of them this is.
    pub group: Group,
    /// What files contain.
    pub contents: Contents,
}

impl<M: Machine> Member<M> {
    /// Its rank.
    pub fn rank(&self) -> u32 {
        self.group.rank as u32
    }

    pub(crate) fn client(&self) -> Result<&Client<M>, Error> {
        self.client.as_ref().ok_or_else(|| Error::Invalid("this job needs clients of a file system".into()))
    }
}
