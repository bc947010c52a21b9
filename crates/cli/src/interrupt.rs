//! What happens on Ctrl-C, SIGTERM and SIGHUP. Each command sets at most one reaction.

use crate::failure::{Failure, Result};

/// What shells expect of a process that was interrupted.
const INTERRUPTED: i32 = 130;

/// Ends the process when interrupted, after `tidy_up`.
pub(crate) fn tidy_up_and_exit(mut tidy_up: impl FnMut() + Send + 'static) -> Result<()> {
    set(move || {
        tidy_up();
        std::process::exit(INTERRUPTED);
    })
}

/// A channel on which every interruption arrives.
pub(crate) fn channel() -> Result<flume::Receiver<()>> {
    let (sender, receiver) = flume::unbounded();
    set(move || drop(sender.send(())))?;
    Ok(receiver)
}

fn set(react: impl FnMut() + Send + 'static) -> Result<()> {
    ctrlc::set_handler(react).map_err(|error| Failure::new("preparing for Ctrl-C", error))
}
