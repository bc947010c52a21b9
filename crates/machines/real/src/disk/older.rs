//! Objects of older versions, for a conversion. Such an object was found by its name and its stage, and had a note that
//! its file system attached at the last commit.

use std::ffi::OsString;
use std::path::Path;

use machine::{Object, Result};

use super::name::{self, ObjectFileKind, Stage};
use super::{Disk, blocking};

/// Object of an older version.
pub struct OldObject {
    /// Object itself.
    pub object: Object,
    /// Note of its last commit; empty if there was no commit.
    pub note: Vec<u8>,
}

impl Disk {
    /// Returns the number of published objects that were on the disk when the node started.
    pub fn published_at_start(&self) -> u64 {
        self.inner.directory.published()
    }

    /// Returns the names of the files in a disk's directory that hold published objects.
    ///
    /// # Errors
    /// Fails if the directory cannot be read.
    pub fn published_files(directory: &Path) -> std::io::Result<Vec<OsString>> {
        let mut names = Vec::new();
        for entry in directory.read_dir()? {
            names.push(entry?.file_name());
        }
        names.retain(|file_name| name::is_published(file_name));
        names.sort_unstable();
        Ok(names)
    }

    /// Returns the name of the file that holds the published object `name`, in the disk's directory.
    pub fn published_file_name(name: &str) -> String {
        name::encode(name, ObjectFileKind::Published)
    }

    /// Returns the names of all objects of this stage, sorted.
    ///
    /// # Errors
    /// Fails if the directory cannot be read.
    pub async fn list_staged(&self, stage: Stage) -> Result<Vec<String>> {
        let directory = self.inner.directory.clone();
        self.complete("listing objects", blocking(move || directory.list(stage))).await
    }

    /// Opens the object named `name` of this stage.
    ///
    /// # Errors
    /// Fails like [`machine::Disk::open`].
    pub async fn open_staged(&self, name: &str, stage: Stage) -> Result<OldObject> {
        let (inner, name) = (self.inner.clone(), name.to_owned());
        let open = async move {
            let _turn = inner.catalogue.take().await;
            let object = inner.open(name, stage).await?;
            Ok((object.id, object))
        };
        let (id, object) = self.complete("opening an object", open).await?;
        let note = self.inner.stored(id).await?.note();
        Ok(OldObject { object, note })
    }

    /// Removes the object named `name` of this stage. The removal is persistent when this completes.
    ///
    /// # Errors
    /// Fails like [`machine::Disk::remove`].
    pub async fn remove_staged(&self, name: &str, stage: Stage) -> Result<()> {
        self.remove_named(vec![name.to_owned()], stage)
            .await?
            .into_iter()
            .next()
            .expect("as many as names")?;
        let inner = self.inner.clone();
        self.complete_flush("removing an object", async move { inner.flush_directory().await }).await
    }
}
