//! Writes through the write cache, on the program's thread.

use std::sync::Arc;

use machine::{Duration, Machine};

use crate::error::{Error, ErrorKind, Result};
use crate::thread::NodeThread;
use crate::write_queue::WriteQueue;

/// Limit of the time that a write stays in the queue, unless the node thread is busy.
const WAIT: Duration = Duration::from_millis(5);

/// Writes bytes to the file of this number at an offset. Errors contain the name of the file.
pub(crate) fn write(
    node: &NodeThread,
    queue: &WriteQueue,
    what: &Arc<str>,
    file: u64,
    offset: u64,
    bytes: &[u8],
) -> Result<()> {
    if offset.checked_add(bytes.len() as u64).is_none_or(|end| end > layout::FILE_BYTES_MAX) {
        let why = format!("the limit of a file is {} bytes", layout::FILE_BYTES_MAX);
        return Err(Error::new(ErrorKind::TooLarge, &**what, why));
    }
    if bytes.is_empty() {
        return Ok(());
    }
    if queue.has_failed() {
        node.begin(what, |node| async move { node.report_failed_flush().await }).wait()?;
    }
    let is_first = loop {
        match queue.put(file, offset, bytes) {
            Some(is_first) => break is_first,
            None => queue.send(|| node.begin(what, |node| async move { node.take_in_writes().await }))?,
        }
    };
    if is_first {
        // If taking in the queued writes fails, the next write reports the error, and the remaining writes are tried
        // again.
        drop(node.begin(what, |node| async move {
            let machine = &node.client.connection.machine;
            machine.sleep_until(machine.now() + WAIT).await;
            node.take_in_writes().await
        }));
    }
    Ok(())
}
