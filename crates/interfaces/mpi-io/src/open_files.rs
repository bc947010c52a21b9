//! The open files of this process. At its end, files still open are closed and their data flushed to stable storage.

use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError, Weak};
use std::{mem, ptr};

use crate::collective_file::CollectiveFile;
use crate::failure::say;
use crate::process;

static OPEN: Mutex<Vec<Weak<CollectiveFile>>> = Mutex::new(Vec::new());

fn open_files() -> MutexGuard<'static, Vec<Weak<CollectiveFile>>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Adds an open file.
pub(crate) fn enter(file: &Arc<CollectiveFile>) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| process::at_exit(end_all));
    open_files().push(Arc::downgrade(file));
}

/// Removes a file that is being closed.
pub(crate) fn remove(file: &CollectiveFile) {
    open_files().retain(|other| !ptr::eq(other.as_ptr(), file));
}

extern "C" fn end_all() {
    if !process::is_its_own() {
        return;
    }
    let files = mem::take(&mut *open_files());
    for file in files.iter().filter_map(Weak::upgrade) {
        if let Err(error) = file.end_with_process() {
            say(format!("starfish: {}: closing it at the end of the process failed: {error}", file.path()));
        }
    }
}
