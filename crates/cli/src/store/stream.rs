//! A whole file through a window of memory: the traditional method, for files of any size.
//!
//! The file is cut into pieces of some blocks on every disk. A few *lanes* move one piece after the other, so
//! requests for the next pieces are under way at every disk while one piece is on its way to or from the local
//! file, which a thread of its own reads or writes.
//!
//! ```text
//!  agents --> lane 0: piece 0 | piece 3 ...  \                        in file order
//!         --> lane 1: piece 1 | piece 4 ...   }--> thread: puts in order, writes --> local file
//!         --> lane 2: piece 2 | ...          /       |
//!                        ^---- empty buffers --------'   (as many as there are: the bound on memory)
//! ```
//!
//! A lane takes its buffer before it takes the number of a piece. So the lowest piece under way always has
//! one, and waiting for it never ends in a deadlock.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::future::Future;
use std::io::{self, ErrorKind, Read, Write};
use std::rc::Rc;
use std::thread::JoinHandle;

use flume::{Receiver, Sender};
use fs::File;
use machine::{Memory, TaskGroup};
use real::RealMachine;

use super::session::Session;
use crate::failure::{Failure, Result};
use crate::progress::Progress;

/// Bytes under way between the agents and this node.
const WINDOW_BYTES: u64 = 8 << 20;

/// A piece is at least so long: shorter ones cost more in turning from one to the next than they save. If it
/// can be, it is one block on every disk: then requests come to each disk in the order of its blocks.
const PIECE_BYTES_MIN: u64 = 256 << 10;

/// With three lanes a piece can be empty, one can leave and one can come.
const LANES_MIN: u64 = 3;

/// More lanes than this do not help.
const LANES_MAX: u64 = 32;

/// How a file is cut and how much of it is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Window {
    piece_bytes: u64,
    lanes: usize,
}

impl Window {
    /// Every piece has the same number of blocks on every disk.
    fn of(striping: layout::Striping) -> Self {
        let row = striping.block_bytes() * u64::from(striping.stripe_count());
        let piece_bytes = row * PIECE_BYTES_MIN.div_ceil(row);
        let lanes = (WINDOW_BYTES / piece_bytes).clamp(LANES_MIN, LANES_MAX) as usize;
        Window { piece_bytes, lanes }
    }

    /// Buffers in all: some wait for the local file while the lanes have theirs.
    fn buffers(self) -> usize {
        self.lanes + 2
    }
}

/// A piece of the file: its number, and its bytes.
type Piece = (u64, Vec<u8>);

/// Reads `file` and writes all of it to `output`, which comes back.
pub(crate) async fn download<W>(
    session: &Session,
    file: &File<RealMachine>,
    output: W,
    progress: &Progress,
) -> Result<W>
where
    W: Write + Send + 'static,
{
    let (window, bytes) = (Window::of(file.striping()), file.bytes());
    let (pieces, arriving) = flume::unbounded();
    let (emptied, spare) = flume::unbounded();
    for _ in 0..window.buffers() {
        emptied.send(Vec::new()).expect("the receiver is here");
    }
    let writer = std::thread::spawn(move || write_in_order(output, &arriving, &emptied));
    let next = Rc::new(Cell::new(0));
    let lane = || {
        let (session, file, progress) = (session.clone(), file.clone(), progress.clone());
        let (next, pieces, spare) = (next.clone(), pieces.clone(), spare.clone());
        async move {
            // Without spare buffers the writer has failed, and will say why.
            while let Ok(buffer) = spare.recv_async().await {
                let piece: u64 = next.replace(next.get() + 1);
                let offset = piece.saturating_mul(window.piece_bytes);
                if offset >= bytes {
                    break;
                }
                let length = window.piece_bytes.min(bytes - offset);
                let buffer = read_piece(&session, &file, offset, length, buffer).await?;
                progress.add(length);
                if pieces.send((piece, buffer)).is_err() {
                    break;
                }
            }
            Ok(())
        }
    };
    in_lanes(&session.machine, window.lanes, lane).await?;
    drop(pieces);
    joined(writer).map_err(|error| Failure::writing(format!("what {} holds", file.name()), &error))
}

async fn read_piece(
    session: &Session,
    file: &File<RealMachine>,
    offset: u64,
    length: u64,
    mut buffer: Vec<u8>,
) -> Result<Vec<u8>> {
    buffer.resize(length as usize, 0);
    let memory = Memory::real(buffer);
    let found = session.told(file.name(), file.read(offset, length, &memory, 0).await)?;
    if found != length {
        return Err(Failure::new(file.name(), "it became shorter while it was read"));
    }
    Ok(memory.into_vec().expect("real memory"))
}

/// Writes pieces in the order of their numbers, and sends their buffers back.
fn write_in_order<W: Write>(
    mut output: W,
    arriving: &Receiver<Piece>,
    emptied: &Sender<Vec<u8>>,
) -> io::Result<W> {
    let (mut next, mut early) = (0, BTreeMap::new());
    for (piece, bytes) in arriving {
        early.insert(piece, bytes);
        while let Some(bytes) = early.remove(&next) {
            output.write_all(&bytes)?;
            next += 1;
            // When the lanes are done they want no more.
            let _ = emptied.send(bytes);
        }
    }
    output.flush()?;
    Ok(output)
}

/// Writes all of `input` to `file`, from its beginning on, and waits until it is on the disks.
///
/// `input` comes back, with the number of bytes it had.
pub(crate) async fn upload<R>(
    session: &Session,
    file: &File<RealMachine>,
    input: R,
    progress: &Progress,
) -> Result<(R, u64)>
where
    R: Read + Send + 'static,
{
    let window = Window::of(file.striping());
    let (pieces, leaving) = flume::unbounded::<Piece>();
    let (emptied, spare) = flume::unbounded();
    for _ in 0..window.buffers() {
        emptied.send(Vec::new()).expect("the receiver is here");
    }
    let reader = std::thread::spawn(move || read_pieces(input, window.piece_bytes, &pieces, &spare));
    let lane = || {
        let (session, file, progress) = (session.clone(), file.clone(), progress.clone());
        let (leaving, emptied) = (leaving.clone(), emptied.clone());
        async move {
            while let Ok((piece, bytes)) = leaving.recv_async().await {
                let length = bytes.len() as u64;
                let memory = Memory::real(bytes);
                let written = file.write(piece * window.piece_bytes, length, &memory, 0).await;
                session.told(file.name(), written)?;
                progress.add(length);
                // When the input has ended nobody reads any more.
                let _ = emptied.send(memory.into_vec().expect("real memory"));
            }
            Ok(())
        }
    };
    in_lanes(&session.machine, window.lanes, lane).await?;
    drop((leaving, emptied));
    let read = joined(reader).map_err(|error| Failure::new("reading the input", error))?;
    session.told(file.name(), file.commit().await)?;
    Ok(read)
}

/// Reads `input` in pieces until it ends or nobody wants more.
fn read_pieces<R: Read>(
    mut input: R,
    piece_bytes: u64,
    pieces: &Sender<Piece>,
    spare: &Receiver<Vec<u8>>,
) -> io::Result<(R, u64)> {
    let mut total = 0;
    for (number, mut bytes) in (0..).zip(spare) {
        bytes.resize(piece_bytes as usize, 0);
        let length = read_full(&mut input, &mut bytes)?;
        bytes.truncate(length);
        total += length as u64;
        let last = (length as u64) < piece_bytes;
        if length > 0 && pieces.send((number, bytes)).is_err() || last {
            break;
        }
    }
    Ok((input, total))
}

/// Reads until `bytes` is full or the input ends, and returns how many there were.
fn read_full(input: &mut impl Read, bytes: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < bytes.len() {
        match input.read(&mut bytes[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

fn joined<T>(thread: JoinHandle<T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Runs `count` lanes until all have ended, or the first has failed. The others end with it: what is begun
/// on the agents is not waited for, and nothing more is begun. The same holds if this itself is dropped.
async fn in_lanes<F>(machine: &RealMachine, count: usize, lane: impl Fn() -> F) -> Result<()>
where
    F: Future<Output = Result<()>> + 'static,
{
    let lanes = TaskGroup::new();
    for _ in 0..count {
        lanes.spawn(machine, "lane", lane());
    }
    lanes.join_or_fail().await
}

#[cfg(test)]
mod tests {
    use super::*;
    use layout::Striping;

    #[test]
    fn pieces_are_whole_rows_and_memory_is_bounded() {
        for (block, disks) in [(512, 1), (65_536, 4), (262_144, 4), (1 << 20, 16), (3000, 7)] {
            let window = Window::of(Striping::new(block, disks).expect("a striping"));
            assert!(window.piece_bytes.is_multiple_of(block * u64::from(disks)));
            assert!(window.piece_bytes >= PIECE_BYTES_MIN && window.lanes >= 3);
            let under_way = window.piece_bytes * window.lanes as u64;
            assert!(under_way <= WINDOW_BYTES.max(3 * window.piece_bytes), "{window:?}");
        }
    }

    #[test]
    fn an_input_is_cut_into_pieces_with_a_short_last_one() {
        let (pieces, taken) = flume::unbounded();
        let (emptied, spare) = flume::unbounded();
        for _ in 0..4 {
            emptied.send(Vec::new()).unwrap();
        }
        let (_, total) = read_pieces(&[7_u8; 10][..], 4, &pieces, &spare).unwrap();
        drop(pieces);
        let lengths: Vec<usize> = taken.iter().map(|(_, bytes): Piece| bytes.len()).collect();
        assert_eq!((total, lengths), (10, vec![4, 4, 2]));
    }

    #[test]
    fn pieces_are_written_in_order() {
        let (pieces, arriving) = flume::unbounded();
        let (emptied, _spare) = flume::unbounded();
        for (number, text) in [(1, "b"), (2, "c"), (0, "a")] {
            pieces.send((number, text.into())).unwrap();
        }
        drop(pieces);
        assert_eq!(write_in_order(Vec::new(), &arriving, &emptied).unwrap(), b"abc");
    }
}
