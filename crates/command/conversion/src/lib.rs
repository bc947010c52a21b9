//! Conversion of the files of an older version to files of the namespace.
//!
//! In older versions, agents identified a file by its name, which was also the name of its stripes on the disks. This
//! crate needs exclusive use of the disks. It copies each such file into the namespace and then removes the old
//! stripes:
//!
//! 1. Write the file under a temporary name made of its identity, so that the next run finds the remains of a killed
//!    run.
//! 2. Set an extended attribute that names the old file.
//! 3. Rename the file to its path, and flush everything.
//! 4. Remove the old stripes, then the attribute.
//!
//! If a run finds a file with this attribute at the path, it continues with step 4. It keeps the attribute if stripes
//! are missing. So a run can be killed at any time, and an old file is never removed while another file has its path.

mod old_disks;
mod old_files;
mod reading;

use std::collections::BTreeSet;
use std::path::PathBuf;

use command_line::failure::{Failure, Result};
use command_line::progress::{Progress, Show};
use command_line::say;
use namespace::{
    FILE_NAME_BYTES_MAX, PATH_BYTES_MAX, RemovalTarget, SetValue, TreeAnswer, TreeOperation, TreeRefusal,
    check_name,
};
use node::ErrorKind;
use node::whole_file::{self, CopyError, Method};
use real::{Disk, DiskSettings, Keys, MetadataPlace, Reporter, Settings};
use transfer::cluster::{Cluster, settings_with};
use transfer::interrupt::Interruption;
use transfer::local;
use transfer::namespace::{FoundPath, Namespace, joined, shown, split};
use transfer::one_file::adding_to;
use transfer::remote_file::{HiddenFile, WantedFile, is_unfinished};

use old_disks::{OldDisks, OldDisksHandle};
use old_files::{OldEntry, OldFile, OldState};

/// Extended attribute of a converted file whose old stripes may not all have been removed. Its value is the identity
/// and the name of the old file.
const CONVERTED: &[u8] = b"user.starfish.converted";

/// Permissions of converted files, because old files have no permissions.
const FILE_MODE: u16 = 0o644;

/// Remedy for files whose path cannot be used.
const RENAME: &str = "Convert it to another path with `--rename NAME PATH`.";

/// Remedy for files that cannot be read.
const PUT_ASIDE: &str = "Move its stripes out of the directories of the disks, or remove them.";

/// Set of an older version, and the options of its conversion.
pub struct OldSet {
    directories: Vec<PathBuf>,
    renamed: Renamed,
    /// Directory of the namespace's records.
    pub metadata: Option<MetadataPlace>,
    /// True if unfinished files are removed.
    pub remove_unfinished: bool,
    /// True if the conversions are only listed, and nothing is changed.
    pub is_dry: bool,
}

impl OldSet {
    /// Returns the set with disks in these directories. `renamed` is a list in which the name of each file to rename is
    /// followed by its new path.
    ///
    /// Fails if a directory is no disk, or if a directory or a name appears twice.
    pub fn new(directories: Vec<PathBuf>, renamed: &[String]) -> Result<OldSet> {
        check_directories(&directories)?;
        let renamed = Renamed::of(renamed)?;
        Ok(OldSet { directories, renamed, metadata: None, remove_unfinished: false, is_dry: false })
    }

    /// Returns the directories of the disks.
    pub fn directories(&self) -> &[PathBuf] {
        &self.directories
    }
}

/// Converts the files of a set. Reports each file that cannot be converted, with the reason. Only lists the conversions
/// if the set is `is_dry`.
///
/// Fails if an error would also prevent the conversion of all further files.
pub fn convert(set: OldSet, show: Show) -> Result<ConversionCounts> {
    let OldSet { directories, renamed, metadata, remove_unfinished, is_dry } = set;
    let keys = Keys::draw().map_err(|error| Failure::new("cannot create a key", error))?;
    let settings = Settings {
        listen: Some(([127, 0, 0, 1], 0).into()),
        disks: directories.iter().cloned().map(DiskSettings::plain).collect(),
        metadata,
        // Errors of the disks are reported for each file.
        reporter: Reporter::new(|_| {}),
        ..settings_with(keys.clone())?
    };
    let (mut disks, entries) = OldDisks::start(settings, directories)?;
    let progress = Progress::bytes(show, "converting");
    let bytes = |entry: &Conversion| match &entry.old.state {
        OldState::Finished(file) => file.bytes,
        _ => 0,
    };
    let conversions: Vec<Conversion> = entries.into_iter().map(|old| renamed.conversion(old)).collect();
    progress.expect(conversions.iter().map(bytes).sum());
    let converter = Converter {
        disks: disks.handle(),
        remove_unfinished,
        progress: progress.clone(),
        interruption: Interruption::prepare()?,
    };
    let tally = if conversions.is_empty() {
        Ok(ConversionCounts::default())
    } else {
        let client = settings_with(keys)?;
        Cluster::new(vec![disks.agent()]).run_as(client, move |connection| async move {
            connection.absence()?;
            if is_dry {
                let namespace = Namespace::find(&connection).await?;
                converter.list(namespace.as_ref(), conversions).await
            } else {
                let namespace = Namespace::of(&connection).await?;
                converter.convert_all(&namespace, conversions).await
            }
        })
    };
    progress.finish();
    // If the node with the disks has failed, its error is the cause of the client's error.
    disks.end()?;
    tally
}

/// Fails for directories that are not disks, or that appear twice.
fn check_directories(directories: &[PathBuf]) -> Result<()> {
    let mut known = BTreeSet::new();
    for directory in directories {
        let shown = directory.display().to_string();
        let failed = |error| Failure::new(shown.clone(), error).remedy("Is the disk mounted?");
        if !Disk::has_been(directory).map_err(failed)? {
            let failure = Failure::new(shown, "it is not a Starfish disk");
            return Err(
                failure.remedy("Is the disk mounted? Name the directories that are the --root of agents.")
            );
        }
        if !known.insert(directory.canonicalize().map_err(failed)?) {
            return Err(Failure::usage(shown, "it is named twice"));
        }
    }
    Ok(())
}

/// Names of old files to rename, and their new paths.
struct Renamed(Vec<(String, String)>);

/// Old file, and its new path.
struct Conversion {
    old: OldEntry,
    path: Vec<u8>,
}

impl Renamed {
    fn of(words: &[String]) -> Result<Renamed> {
        let pairs: Vec<_> = words.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect();
        let mut names = BTreeSet::new();
        match pairs.iter().find(|(name, _)| !names.insert(name.clone())) {
            Some((name, _)) => Err(Failure::usage(format!("--rename {name}"), "it is renamed twice")),
            None => Ok(Renamed(pairs)),
        }
    }

    fn conversion(&self, old: OldEntry) -> Conversion {
        let renamed = self.0.iter().find(|(name, _)| *name == old.name);
        let path = renamed.map_or(&old.name, |(_, path)| path).trim_start_matches('/').as_bytes().to_vec();
        Conversion { old, path }
    }
}

/// Result of the conversion of one old file.
enum Step {
    Converted { bytes: u64 },
    Removed,
    Left(Failure),
}

/// State of an old file before its conversion.
enum Convertibility {
    Convertible,
    /// An earlier run has converted the file, but has not removed all old stripes.
    Converted,
    Left(Failure),
}

/// Error that prevents the conversion of one file, or of all.
enum ConversionError {
    OfFile(Failure),
    /// Ends the run, because the command was interrupted or all further files would fail, too.
    OfAll(Failure),
}

impl From<Failure> for ConversionError {
    fn from(failure: Failure) -> Self {
        let kinds = [ErrorKind::Gone, ErrorKind::Unreachable, ErrorKind::Closed];
        match failure.kind().is_some_and(|kind| kinds.contains(&kind)) {
            true => ConversionError::OfAll(failure),
            false => ConversionError::OfFile(failure),
        }
    }
}

impl From<node::Error> for ConversionError {
    fn from(error: node::Error) -> Self {
        Failure::from(error).into()
    }
}

/// Counts of old files.
#[derive(Clone, Copy, Debug, Default)]
pub struct ConversionCounts {
    /// Number of files that were converted (in a dry run: can be converted).
    pub converted: usize,
    /// Total size of these files in bytes.
    pub bytes: u64,
    /// Number of unfinished files that were removed (in a dry run: can be removed).
    pub removed: usize,
    /// Number of files that were not converted.
    pub left: usize,
}

impl ConversionCounts {
    fn note(&mut self, step: Step) {
        match step {
            Step::Converted { bytes } => {
                self.converted += 1;
                self.bytes += bytes;
            }
            Step::Removed => self.removed += 1,
            Step::Left(failure) => {
                self.left += 1;
                say!("starfish: {failure}");
            }
        }
    }
}

/// Converts old files, one after the other.
struct Converter {
    disks: OldDisksHandle,
    remove_unfinished: bool,
    progress: Progress,
    interruption: Interruption,
}

impl Converter {
    /// Lists the planned conversions.
    async fn list(
        &self,
        namespace: Option<&Namespace>,
        conversions: Vec<Conversion>,
    ) -> Result<ConversionCounts> {
        let (mut tally, mut planned) = (ConversionCounts::default(), BTreeSet::new());
        for Conversion { old: OldEntry { name, state }, path } in conversions {
            let step = match state {
                OldState::Broken(failure) => Step::Left(failure.remedy(PUT_ASIDE)),
                OldState::Unfinished(_) if self.remove_unfinished => Step::Removed,
                OldState::Unfinished(_) => Step::Left(unfinished(&name)),
                OldState::Finished(file) => match standing(namespace, &name, &path, &file).await? {
                    Convertibility::Convertible if planned.contains(&path) => {
                        Step::Left(taken(&name, &path, "another file"))
                    }
                    Convertibility::Convertible => {
                        match above(&path).find(|above| planned.contains(*above)) {
                            Some(above) => Step::Left(no_directory(&name, above)),
                            None => Step::Converted { bytes: file.bytes },
                        }
                    }
                    Convertibility::Converted => Step::Converted { bytes: file.bytes },
                    Convertibility::Left(failure) => Step::Left(failure),
                },
            };
            if let Step::Converted { .. } = &step {
                local::print([shown(&path)])?;
                planned.insert(path);
            }
            tally.note(step);
        }
        Ok(tally)
    }

    /// Converts all files that can be converted. Fails if all further files would fail, too.
    async fn convert_all(
        &self,
        namespace: &Namespace,
        conversions: Vec<Conversion>,
    ) -> Result<ConversionCounts> {
        let mut tally = ConversionCounts::default();
        for Conversion { old: OldEntry { name, state }, path } in conversions {
            tally.note(match state {
                OldState::Broken(failure) => Step::Left(failure.remedy(PUT_ASIDE)),
                OldState::Unfinished(places) if self.remove_unfinished => {
                    let removed = self.disks.remove(&name, &places).await;
                    removed.map_or_else(Step::Left, |()| Step::Removed)
                }
                OldState::Unfinished(_) => Step::Left(unfinished(&name)),
                OldState::Finished(file) => self.convert(namespace, &name, &path, &file).await?,
            });
        }
        Ok(tally)
    }

    /// Converts a file, or completes its earlier conversion.
    async fn convert(&self, namespace: &Namespace, name: &str, path: &[u8], file: &OldFile) -> Result<Step> {
        let converted = match standing(Some(namespace), name, path, file).await? {
            Convertibility::Convertible => self.copy(namespace, name, path, file).await,
            Convertibility::Converted => {
                self.progress.add(file.bytes);
                Ok(())
            }
            Convertibility::Left(failure) => return Ok(Step::Left(failure)),
        };
        let removed = match converted {
            Ok(()) => self.remove_old(namespace, name, path, file).await,
            failed => failed,
        };
        match removed {
            Ok(()) => Ok(Step::Converted { bytes: file.bytes }),
            Err(ConversionError::OfFile(failure)) => Ok(Step::Left(failure)),
            Err(ConversionError::OfAll(failure)) => Err(failure),
        }
    }

    /// Copies a file into the namespace. The file appears under its path after it has been flushed.
    async fn copy(
        &self,
        namespace: &Namespace,
        name: &str,
        path: &[u8],
        file: &OldFile,
    ) -> std::result::Result<(), ConversionError> {
        let (directory, _) = split(path);
        namespace.make_directories(directory).await?;
        let hidden = joined(directory, format!(".starfish-{:016x}", file.id.0).as_bytes());
        remove_left(namespace, &hidden).await?;
        let left = Failure::new(name, "interrupted. A part of the new file may be left")
            .remedy("The next `starfish convert` removes it.");
        let undo_guard = self.interruption.begin(left);
        let wanted =
            WantedFile { striping: file.striping, mode: FILE_MODE, modified: file.modified, replace: false };
        let new = HiddenFile::begin_as(namespace, hidden.clone(), path, wanted).await?;
        let write = async {
            let number = new.inode().expect("it is open").number;
            let mark = TreeOperation::SetExtended {
                number,
                name: CONVERTED.to_vec(),
                value: mark_of(name, file),
                mode: SetValue::Any,
            };
            namespace.perform(&hidden, mark).await?;
            let input = self.disks.read(file);
            let uploaded = whole_file::upload(
                &namespace.connection,
                new.file(),
                Method::Traditional,
                input,
                adding_to(&self.progress),
            );
            match new.while_open(uploaded).await {
                Ok((_, uploaded)) => Ok(uploaded),
                Err(CopyError::Striped(error)) => Err(Failure::from(error.about(name))),
                Err(CopyError::Local(error)) => Err(Failure::new(name, error).remedy(PUT_ASIDE)),
            }
        };
        let copied = match self.interruption.unless(write).await {
            Some(Ok(uploaded)) => new.complete(uploaded).await.map_err(Failure::from),
            Some(Err(failure)) => {
                // Report the first failure. The next run removes the unfinished file.
                let _ = new.discard().await;
                Err(failure)
            }
            None => {
                self.progress.finish();
                let interrupted = Failure::new(name, "interrupted: it was not converted");
                let interrupted = interrupted.remedy("The next `starfish convert` continues with it.");
                return Err(ConversionError::OfAll(undo_guard.undone(interrupted, new.discard().await)));
            }
        };
        copied.map_err(|failure| match failure.kind() {
            Some(ErrorKind::NoSpace) => {
                failure.remedy("The file was not converted. Free space on that disk, and convert again.")
            }
            _ => failure,
        })?;
        Ok(())
    }

    /// Removes the old stripes of a converted file.
    async fn remove_old(
        &self,
        namespace: &Namespace,
        name: &str,
        path: &[u8],
        file: &OldFile,
    ) -> std::result::Result<(), ConversionError> {
        // Flush before removing stripes: after a power cut the new file must exist, with its attribute.
        namespace.flush().await?;
        self.disks.remove(name, &file.places).await?;
        // Missing stripes may be on an absent disk. A later run with that disk must recognise the new file by its
        // attribute.
        if file.missing.is_none() {
            let number = namespace.look_at_link(path).await?.inode.number;
            let unmark = TreeOperation::RemoveExtended { number, name: CONVERTED.to_vec() };
            namespace.perform(path, unmark).await?;
        }
        Ok(())
    }
}

/// Checks if an old file can be converted to this path.
async fn standing(
    namespace: Option<&Namespace>,
    name: &str,
    path: &[u8],
    file: &OldFile,
) -> Result<Convertibility> {
    if let Err(why) = check_path(path) {
        let why = format!("it cannot have the path {}: {why}", shown(path));
        return Ok(Convertibility::Left(Failure::new(name, why).remedy(RENAME)));
    }
    if let Some(namespace) = namespace {
        for above in above(path) {
            if let Some(found) = namespace.find_at(above, true).await?
                && !found.inode.is_directory()
            {
                return Ok(Convertibility::Left(no_directory(name, above)));
            }
        }
        if let Some(found) = namespace.find_at(path, false).await? {
            let what = if found.inode.is_directory() { "a directory" } else { "another file" };
            return Ok(match is_copy_of(namespace, &found, name, file).await? {
                true => Convertibility::Converted,
                false => Convertibility::Left(taken(name, path, what)),
            });
        }
    }
    Ok(match file.missing {
        None => Convertibility::Convertible,
        Some(index) => {
            let why = format!("stripe {index} of {} is missing", file.striping.stripe_count());
            let remedy = "Name the directories of all disks of the set. If that disk is lost, this part of \
                          the file is lost.";
            Convertibility::Left(Failure::new(name, why).remedy(remedy))
        }
    })
}

/// Checks that a file can have this path. The path must have no component that refers to another directory, such as
/// `..`.
fn check_path(path: &[u8]) -> std::result::Result<(), String> {
    if path.len() > PATH_BYTES_MAX {
        return Err(format!("it is longer than {PATH_BYTES_MAX} bytes"));
    }
    let checked = path.split(|&byte| byte == b'/').try_for_each(check_name);
    checked.map_err(|refusal| match refusal {
        TreeRefusal::NotFound => "it has an empty component".to_owned(),
        TreeRefusal::NameTooLong => format!("a component is longer than {FILE_NAME_BYTES_MAX} bytes"),
        _ => "it has . or .. as a component, or a NUL byte".to_owned(),
    })
}

/// Returns the paths of all parents of a path, the outermost first.
fn above(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| &path[..at])
}

/// True if this file of the namespace is a copy of this old file.
async fn is_copy_of(namespace: &Namespace, found: &FoundPath, name: &str, file: &OldFile) -> Result<bool> {
    let get = TreeOperation::GetExtended { number: found.inode.number, name: CONVERTED.to_vec() };
    match namespace.perform(&found.path, get).await {
        Ok(TreeAnswer::Value(value)) => Ok(value == mark_of(name, file)),
        Err(error) if error.kind() != ErrorKind::Refused(TreeRefusal::NoAttribute) => Err(error.into()),
        _ => Ok(false),
    }
}

/// Returns the value of the attribute [`CONVERTED`] for this old file.
fn mark_of(name: &str, file: &OldFile) -> Vec<u8> {
    format!("{:016x} {name}", file.id.0).into_bytes()
}

/// Removes an unfinished new file that a killed run has left.
async fn remove_left(namespace: &Namespace, hidden: &[u8]) -> Result<()> {
    let Some(inode) = namespace.look_if_there(hidden).await? else { return Ok(()) };
    let found = FoundPath { path: hidden.to_vec(), inode };
    if is_unfinished(namespace, &found).await? {
        namespace.remove(hidden, RemovalTarget::File).await?;
    }
    Ok(())
}

fn unfinished(name: &str) -> Failure {
    Failure::new(name, "it was never finished").remedy("`--remove-unfinished` removes it.")
}

fn taken(name: &str, path: &[u8], what: &str) -> Failure {
    let why = format!("{what} has the path {}", shown(path));
    Failure::new(name, why).remedy(RENAME)
}

fn no_directory(name: &str, above: &[u8]) -> Failure {
    let why = format!("{} is a file, not a directory", shown(above));
    Failure::new(name, why).remedy(RENAME)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_with_invalid_components_are_rejected() {
        for path in ["a", "a/b", "...", &"x".repeat(255)] {
            assert_eq!(check_path(path.as_bytes()), Ok(()), "{path}");
        }
        for path in
            ["", "a//b", "a/", "./a", "a/../b", "a\0b", &"x".repeat(256), &"x/".repeat(PATH_BYTES_MAX)]
        {
            assert!(check_path(path.as_bytes()).is_err(), "{path}");
        }
        let above: Vec<&[u8]> = above(b"a/bc/d").collect();
        assert_eq!(above, [&b"a"[..], b"a/bc"]);
    }
}
