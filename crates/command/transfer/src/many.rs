//! Many files at once.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use command_line::failure::{Failure, Result};
use command_line::say;
use machine::TaskGroup;
use node::ErrorKind;
use real::RealMachine;

use crate::namespace::shown;

/// How many files are under way at the same time: enough that every disk has something to do while names are asked for,
/// and few enough for their windows of memory.
const AT_ONCE: usize = 16;

/// How many files failed, and how many of them because there are such files already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FailedFiles {
    /// All that failed.
    pub all: usize,
    /// Those of them that there are already.
    pub existing: usize,
}

/// Existing files reported by name; further ones are only counted.
const EXISTING_TOLD: usize = 3;

impl FailedFiles {
    /// Counts a failure, and tells it.
    pub fn note(&mut self, failure: &Failure) {
        self.all += 1;
        self.existing += usize::from(failure.kind() == Some(ErrorKind::Exists));
        if failure.kind() != Some(ErrorKind::Exists) || self.existing <= EXISTING_TOLD {
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

/// Has `work` done with each of these, some at a time. What fails with one of them is told on standard error, and the
/// others go on; the failure that is returned says how many those were.
///
/// # Errors
/// At once if agents are gone or full: then the others would fail, too.
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

/// Refuses to give two things the same name, as the second would replace the first: each of them is what it is called,
/// and what it is to be called.
pub fn check_distinct<'a>(named: impl IntoIterator<Item = (&'a [u8], &'a [u8])>) -> Result<()> {
    let mut sources = BTreeMap::new();
    for (from, to) in named {
        if let Some(other) = sources.insert(to, from) {
            let why = format!("both {} and {} would be called so", shown(other), shown(from));
            return Err(Failure::new(shown(to), why).remedy("Give each a place of its own."));
        }
    }
    Ok(())
}

/// Whether a failure is one that the next file would meet, too.
fn is_of_all(failure: &Failure) -> bool {
    let kinds = [ErrorKind::Gone, ErrorKind::Unreachable, ErrorKind::NoSpace, ErrorKind::Closed];
    failure.is_broken_pipe() || failure.kind().is_some_and(|kind| kinds.contains(&kind))
}

/// The failure of a command some of whose files failed, each of which was reported. `is_resumable` if the command takes
/// `--resume`.
pub fn outcome(what: &str, FailedFiles { all, existing }: FailedFiles, is_resumable: bool) -> Result<()> {
    let failure = match (all, existing) {
        (0, _) => return Ok(()),
        (1, _) => Failure::new(what, "one of them failed, see above"),
        (all, 0 | 1) => Failure::new(what, format!("{all} of them failed, see above")),
        (all, existing) if all == existing => {
            Failure::new(what, format!("all {all} that failed exist already and were left as they are"))
        }
        (all, existing) => {
            Failure::new(what, format!("{all} of them failed, {existing} because they exist already"))
        }
    };
    Err(match (existing, is_resumable) {
        (0, _) => failure,
        (_, true) => failure.remedy("After an interruption, --resume copies the rest."),
        (_, false) => failure.remedy("--force replaces existing files."),
    })
}
