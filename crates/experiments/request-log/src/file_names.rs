//! File names of a log that is being read.

use std::collections::BTreeMap;

use crate::error::{Error, Place};

/// File names of the part of a log that was read so far, with their indexes.
pub(crate) struct FileNames {
    names: Vec<String>,
    indices: BTreeMap<String, u32>,
    most: u32,
}

impl FileNames {
    /// Creates an empty table that accepts at most `most` names.
    pub(crate) fn new(most: u32) -> Self {
        FileNames { names: Vec::new(), indices: BTreeMap::new(), most }
    }

    /// Returns all names so far, by index.
    pub(crate) fn all(&self) -> &[String] {
        &self.names
    }

    /// Returns the index of the file of this name. Adds the name if it is new.
    pub(crate) fn index(&mut self, name: &str, place: impl FnOnce() -> Place) -> Result<u32, Error> {
        if let Some(&index) = self.indices.get(name) {
            return Ok(index);
        }
        // An empty name cannot be written as a word of a log.
        if name.is_empty() {
            return Err(Error::new(place(), "expected the name of a file, not an empty field"));
        }
        if self.names.len() >= self.most as usize {
            let error = Error::new(place(), format!("it has more than {} files", self.most));
            return Err(error.remedy("Split the log by files."));
        }
        let index = self.names.len() as u32;
        self.names.push(name.to_owned());
        self.indices.insert(name.to_owned(), index);
        Ok(index)
    }
}
