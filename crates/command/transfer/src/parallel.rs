//! Work on many files at once.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use command_line::failure::{Failure, Result};
use command_line::say;
use machine::TaskGroup;
use node::ErrorKind;
use real::RealMachine;

use crate::namespace::shown;

/// Number of files in flight at the same time: enough to keep every disk busy during metadata requests, and few enough
/// for the memory of their transfer windows.
const AT_ONCE: usize = 16;

/// Numbers of failed files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FailedFiles {
    /// All failed files.
    pub all: usize,
    /// Failed files whose names exist already.
    pub existing: usize,
}

/// Maximum number of existing files that are reported by name; the others are only counted.
const EXISTING_REPORTED: usize = 3;

impl FailedFiles {
    /// Counts a failure, and reports it.
    pub fn note(&mut self, failure: &Failure) {
        self.all += 1;
        self.existing += usize::from(failure.kind() == Some(ErrorKind::Exists));
        if failure.kind() != Some(ErrorKind::Exists) || self.existing <= EXISTING_REPORTED {
            say!("starfish: {failure}");
        }
    }
}

impl std::ops::AddAssign for FailedFiles {
    fn add_assign(&mut self, other: Self) {
        self.all += other.all;
        self.existing += other.existing;
    }
}

/// Runs `work` for each item, up to `AT_ONCE` items at a time. Reports each failure on standard error and continues
/// with the other items. Returns the number of failures.
///
/// # Errors
/// Fails at once if agents are disconnected or full, because all other items would fail, too.
pub async fn each<T, F>(
    machine: &RealMachine,
    items: Vec<T>,
    work: impl Fn(T) -> F + Clone + 'static,
) -> Result<FailedFiles>
where
    T: 'static,
    F: Future<Output = Result<()>> + 'static,
{
    let lanes = TaskGroup::new();
    let (waiting, failed) =
        (Rc::new(RefCell::new(items.into_iter())), Rc::new(RefCell::new(FailedFiles::default())));
    for _ in 0..AT_ONCE {
        let (waiting, failed, work) = (waiting.clone(), failed.clone(), work.clone());
        lanes.spawn(machine, "file", async move {
            loop {
                let next = waiting.borrow_mut().next();
                let Some(item) = next else { return Ok(()) };
                match work(item).await {
                    Err(failure) if is_of_all(&failure) => return Err(failure),
                    Err(failure) => failed.borrow_mut().note(&failure),
                    Ok(()) => {}
                }
            }
        });
    }
    lanes.join_or_fail().await?;
    Ok(failed.take())
}

/// Fails if two items get the same new name, because the second would replace the first. Each item is a pair of the old
/// name and the new name.
pub fn check_distinct<'a>(named: impl IntoIterator<Item = (&'a [u8], &'a [u8])>) -> Result<()> {
    let mut sources = BTreeMap::new();
    for (from, to) in named {
        if let Some(other) = sources.insert(to, from) {
            let why = format!("both {} and {} would get this name", shown(other), shown(from));
            return Err(Failure::new(shown(to), why).remedy("Choose separate destinations."));
        }
    }
    Ok(())
}

/// True if all further files would fail for the same reason.
fn is_of_all(failure: &Failure) -> bool {
    let kinds = [ErrorKind::Gone, ErrorKind::Unreachable, ErrorKind::NoSpace, ErrorKind::Closed];
    failure.is_broken_pipe() || failure.kind().is_some_and(|kind| kinds.contains(&kind))
}

/// Returns the failure of a command if some of its files failed. Each of these files has already been reported.
/// `is_resumable` is true if the command accepts `--resume`.
pub fn outcome(what: &str, FailedFiles { all, existing }: FailedFiles, is_resumable: bool) -> Result<()> {
    let failure = match (all, existing) {
        (0, _) => return Ok(()),
        (1, _) => Failure::new(what, "one file failed, see above"),
        (all, 0 | 1) => Failure::new(what, format!("{all} files failed, see above")),
        (all, existing) if all == existing => {
            Failure::new(what, format!("{all} files already exist and were not replaced"))
        }
        (all, existing) => {
            Failure::new(what, format!("{all} files failed, {existing} of them because they already exist"))
        }
    };
    Err(match (existing, is_resumable) {
        (0, _) => failure,
        (_, true) => failure.remedy("After an interruption, --resume copies the rest."),
        (_, false) => failure.remedy("--force replaces existing files."),
    })
}
