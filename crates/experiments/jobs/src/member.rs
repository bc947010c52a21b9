//! The nodes that take part in a job.

use fs::{Client, Group};
use machine::{Machine, mix};

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
    /// Where what it draws comes from: another number for each trial.
    pub seed: u64,
}

impl<M: Machine> Member<M> {
    /// Its rank.
    pub fn rank(&self) -> u32 {
        self.group.rank as u32
    }

    /// What tells its draws from those of other members, jobs and trials.
    pub(crate) fn draws(&self) -> u64 {
        mix(mix(mix(self.seed) ^ self.group.id) ^ u64::from(self.rank()))
    }

    pub(crate) fn client(&self) -> Result<&Client<M>, Error> {
        self.client.as_ref().ok_or_else(|| Error::Invalid("this job needs clients of a file system".into()))
    }
}
