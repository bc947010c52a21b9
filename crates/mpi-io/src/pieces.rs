//! A selection of a file, moved through the page cache piece by piece, many of them under way at a time.

use std::collections::VecDeque;

use layout::{Extent, Selection};
use node::{Handle, LentPage, Pending, Result};

/// Pieces under way at a time. Each is a message to the node thread, which does several hundred thousand a second.
const AT_ONCE: usize = 1024;

/// Reads what is selected, in the order of the file; how many bytes there were before the file ended.
pub(crate) fn read(file: &Handle, selection: &Selection, into: &mut [u8]) -> Result<u64> {
    let mut under_way: VecDeque<(u64, Pending<Vec<LentPage>>)> = VecDeque::new();
    let mut read = 0;
    let mut put = |(at, pages): (u64, Pending<Vec<LentPage>>)| -> Result<()> {
        let mut at = at as usize;
        for page in pages.wait()? {
            let bytes = page.as_slice();
            into[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        }
        read = read.max(at as u64);
        Ok(())
    };
    for piece in selection.pieces_in(Extent::new(0, file.known_bytes()?)) {
        if under_way.len() == AT_ONCE
            && let Some(first) = under_way.pop_front()
        {
            put(first)?;
        }
        under_way.push_back((piece.memory_offset, file.begin_read(piece.file_offset, piece.bytes)));
    }
    under_way.into_iter().try_for_each(put)?;
    Ok(read)
}

/// Writes what is selected, in the order of the file.
pub(crate) fn write(file: &Handle, selection: &Selection, bytes: &[u8]) -> Result<()> {
    let mut under_way: VecDeque<Pending<()>> = VecDeque::new();
    for piece in selection.chunks() {
        if under_way.len() == AT_ONCE
            && let Some(first) = under_way.pop_front()
        {
            first.wait()?;
        }
        let from = piece.memory_offset as usize;
        let of_piece = &bytes[from..from + piece.bytes as usize];
        under_way.push_back(file.begin_write(piece.file_offset, of_piece));
    }
    under_way.into_iter().try_for_each(Pending::wait)
}
