//! Many files at once.

use std::cell::RefCell;
use std::rc::Rc;

use command_line::failure::{Failure, Result};
use machine::TaskGroup;
use node::ErrorKind;
use real::RealMachine;

/// How many files are under way at the same time: enough that every disk has something to do while names are asked for,
/// and few enough for their windows of memory.
const AT_ONCE: usize = 16;

/// Has `work` done with each of these, some at a time. What fails with one of them is told on standard error, and the
/// others go on; the failure that is returned says how many those were.
///
/// # Errors
/// At once if agents are gone or full: then the others would fail, too.
pub(crate) async fn each<T, F>(
    machine: &RealMachine,
    items: Vec<T>,
    work: impl Fn(T) -> F + Clone + 'static,
) -> Result<usize>
where
    T: 'static,
    F: Future<Output = Result<()>> + 'static,
{
    let lanes = TaskGroup::new();
    let (waiting, failed) = (Rc::new(RefCell::new(items.into_iter())), Rc::new(RefCell::new(0)));
    for _ in 0..AT_ONCE {
        let (waiting, failed, work) = (waiting.clone(), failed.clone(), work.clone());
        lanes.spawn(machine, "file", async move {
            loop {
                let next = waiting.borrow_mut().next();
                let Some(item) = next else { return Ok(()) };
                match work(item).await {
                    Err(failure) if is_of_all(&failure) => return Err(failure),
                    Err(failure) => {
                        eprintln!("starfish: {failure}");
                        *failed.borrow_mut() += 1;
                    }
                    Ok(()) => {}
                }
            }
        });
    }
    lanes.join_or_fail().await?;
    Ok(failed.take())
}

/// Whether a failure is one that the next file would meet, too.
fn is_of_all(failure: &Failure) -> bool {
    let kinds = [ErrorKind::Gone, ErrorKind::Unreachable, ErrorKind::NoSpace, ErrorKind::Closed];
    failure.is_broken_pipe() || failure.kind().is_some_and(|kind| kinds.contains(&kind))
}

/// The failure of a command some of whose files failed, each of which has been told.
pub(crate) fn outcome(what: &str, failed: usize) -> Result<()> {
    match failed {
        0 => Ok(()),
        1 => Err(Failure::new(what, "one of them failed, see above")),
        failed => Err(Failure::new(what, format!("{failed} of them failed, see above"))),
    }
}
