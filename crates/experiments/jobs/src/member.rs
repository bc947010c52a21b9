//! Nodes that take part in a job.

use std::collections::BTreeMap;
use std::rc::Rc;

use fs::{Client, File, Group, NumberedFile, PageCache, PagedFile};
use machine::{Machine, mix};

use crate::{Contents, Error};

/// A node that takes part in a job, and its resources.
pub struct Member<M: Machine> {
    /// Machine of the node.
    pub machine: M,
    /// Client of the file system; `None` for a job without [clients](crate::Job::has_clients).
    pub client: Option<Client<M>>,
    /// Files, by the names that jobs use for them.
    pub files: Rc<BTreeMap<String, NumberedFile>>,
    /// All members of the job, and the rank of this one.
    pub group: Group,
    /// Kind of contents of the files.
    pub contents: Contents,
    /// Seed of random numbers, different for each trial.
    pub seed: u64,
}

impl<M: Machine> Member<M> {
    /// Returns the rank of the member.
    pub fn rank(&self) -> u32 {
        self.group.rank as u32
    }

    /// Returns a seed that differs from the seeds of other members, jobs and trials.
    pub(crate) fn draws(&self) -> u64 {
        mix(mix(mix(self.seed) ^ self.group.id) ^ u64::from(self.rank()))
    }

    pub(crate) fn client(&self) -> Result<&Client<M>, Error> {
        self.client.as_ref().ok_or_else(|| Error::Invalid("this job needs clients of a file system".into()))
    }

    fn file(&self, name: &str) -> Result<&NumberedFile, Error> {
        self.files.get(name).ok_or_else(|| Error::Invalid(format!("the job has no file {name}")))
    }

    /// Opens a file with all its stripes, so that no request of the job has to open one.
    pub(crate) async fn open(&self, name: &str) -> Result<File<M>, Error> {
        let client = self.client()?;
        let file = client.numbered(self.file(name)?.clone()).await?;
        file.make_stripes().await?;
        Ok(file)
    }

    /// Opens a file with all its stripes through a page cache.
    pub(crate) async fn open_in(&self, pages: &PageCache<M>, name: &str) -> Result<PagedFile<M>, Error> {
        let file = pages.open_numbered(self.file(name)?.clone()).await?;
        file.file().make_stripes().await?;
        Ok(file)
    }

    /// Opens a file with its current stripes, including stripes that other members have written.
    pub(crate) async fn open_written(&self, name: &str) -> Result<File<M>, Error> {
        let client = self.client()?;
        let file = self.file(name)?;
        let bytes = client.stored_bytes(file).await?;
        Ok(client.numbered(NumberedFile { bytes, ..file.clone() }).await?)
    }
}
