//! What an experiment is made of besides its pattern and its records, key by key.
//!
//! The same keys stand at the top of a plan, as the default of all variants; in a variant; and, as lists, in
//! `[vary]`. So there is one function that takes a key and a value.

use std::collections::BTreeMap;
use std::path::Path;

use description::{MachineDescription, Misfit};
use experiment::{Contents, DiskLayout, Method, Options};
use layout::{Grid, Shape};

use crate::reference::{SETTINGS, names};
use crate::value::{Written, unknown_key};

/// The machine if a plan names none, and the file size: those of the reports.
const MACHINE: &str = "starfish-1996";
const FILE_BYTES: u64 = 10 << 20;

/// Larger numbers are mistakes, and would only make a simulation die of memory.
const COUNT_MAX: u64 = 1 << 16;
const BLOCK_BYTES_MAX: u64 = 1 << 30;
const FILE_BYTES_MAX: u64 = 1 << 50;

/// The keys of a setting, but for `set`, which is a table of the machine's numbers.
pub(crate) const KEYS: [&str; SETTINGS.len()] = names(&SETTINGS);

/// The one of [`KEYS`] that is written as `key`, which may have hyphens as an option has: `file-size` is `file_size`.
pub(crate) fn spelled(key: &str) -> Option<&'static str> {
    let key = key.replace('-', "_");
    KEYS.into_iter().find(|known| *known == key)
}

/// A choice for every key.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// Name or path, as [`MachineDescription::load_with`] takes it.
    pub(crate) machine: String,
    /// Numbers of the machine that are replaced, by dotted key.
    pub(crate) set: BTreeMap<String, String>,
    /// There is no default.
    pub(crate) method: Option<Method>,
    pub(crate) layout: DiskLayout,
    pub(crate) file_bytes: u64,
    pub(crate) shape: Option<Shape>,
    pub(crate) grid: Option<Grid>,
    pub(crate) contents: Contents,
    pub(crate) options: Options,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            machine: MACHINE.to_owned(),
            set: BTreeMap::new(),
            method: None,
            layout: DiskLayout::Contiguous,
            file_bytes: FILE_BYTES,
            shape: None,
            grid: None,
            contents: Contents::Real,
            options: Options::default(),
        }
    }
}

impl Settings {
    /// Chooses `value` for one of [`KEYS`]. A path of a machine is relative to `folder`.
    pub(crate) fn choose(&mut self, key: &str, value: Written<'_>, folder: &Path) -> Result<(), Misfit> {
        let options = &mut self.options;
        match key {
            "machine" => self.machine = path(value.text()?, folder),
            "method" => self.method = Some(value.parsed()?),
            "layout" => self.layout = value.parsed()?,
            "file_size" => self.file_bytes = value.bytes(1..=FILE_BYTES_MAX)?,
            "block" => options.block_bytes = value.bytes(1..=BLOCK_BYTES_MAX)?,
            "shape" => self.shape = Some(value.parsed()?),
            "grid" => self.grid = Some(value.parsed()?),
            "contents" => self.contents = contents(value)?,
            "phantom" => self.contents = if value.flag()? { Contents::Phantom } else { Contents::Real },
            "outstanding" => options.outstanding = value.integer(1..=COUNT_MAX)? as usize,
            "scheduling" => options.scheduling = value.parsed()?,
            "thread_per_request" => options.thread_per_request = value.flag()?,
            "prefetch" => options.prefetch_blocks = value.integer(0..=COUNT_MAX)?,
            "memget_writes" => options.memget_writes = value.flag()?,
            "queued" => options.queued = value.parsed()?,
            "presort" => options.presort = value.flag()?,
            _ => return Err(unknown_key(key, value.span(), &KEYS)),
        }
        Ok(())
    }

    /// The machine, with its numbers replaced.
    pub(crate) fn load_machine(&self) -> Result<MachineDescription, description::Error> {
        let set: Vec<(&str, &str)> = self.set.iter().map(|(key, value)| (&**key, &**value)).collect();
        MachineDescription::load_with(&self.machine, &set)
    }
}

/// The name of a built-in machine as it is, a path relative to `folder`.
fn path(name: &str, folder: &Path) -> String {
    if name.ends_with(".toml") { folder.join(name).to_string_lossy().into_owned() } else { name.to_owned() }
}

fn contents(value: Written<'_>) -> Result<Contents, Misfit> {
    match value.text()? {
        "real" => Ok(Contents::Real),
        "phantom" => Ok(Contents::Phantom),
        other => Err(value.misfit(format!("no contents {other:?}: expected real or phantom"))),
    }
}
