//! Whole files between the agents and this computer: copied in and out past the page cache, since a whole file is used
//! once.
//!
//! The file is cut into *pieces*: some blocks on every disk. A few *lanes* move one piece after the other, so that
//! requests for the next pieces are under way at every disk while one piece is on its way to or from the local side,
//! which a thread of its own reads or writes.
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

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::Future;
use std::io::{self, Read, Write};
use std::panic::resume_unwind;
use std::rc::Rc;
use std::thread::{self, JoinHandle};

use flume::{Receiver, Sender};
use fs::{File, Remains, Remnant};
use layout::{Extent, Striping};
use machine::{Memory, TaskGroup};
use real::RealMachine;

use crate::connected::ConnectedNode;
use crate::error::{Error, ErrorKind, Result};

/// Bytes under way between the agents and this node.
const WINDOW_BYTES: u64 = 8 << 20;

/// A piece is at least so long: shorter ones cost more in turning from one to the next than they save. If it
/// can be, it is one block on every disk: then requests come to each disk in the order of its blocks.
const PIECE_BYTES_MIN: u64 = 256 << 10;

/// With three lanes a piece can be empty, one can leave and one can come.
const LANES_MIN: u64 = 3;

/// More lanes than this do not help.
const LANES_MAX: u64 = 32;

/// Lanes that each read a block of a damaged file.
const LANES_OF_REMAINS: usize = 16;

/// Why a whole file was not copied.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// The side of the agents.
    #[error(transparent)]
    Striped(#[from] Error),
    /// The side of this computer.
    #[error(transparent)]
    Local(#[from] io::Error),
}

/// A defect of this program: a task of it has panicked.
impl From<Box<machine::Error>> for CopyError {
    fn from(defect: Box<machine::Error>) -> Self {
        CopyError::Striped(Error::new(ErrorKind::Io, "copying a file", *defect))
    }
}

/// What copying comes to.
type Copied<T> = std::result::Result<T, CopyError>;

/// How a file is cut and how much of it is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Window {
    piece_bytes: u64,
    lanes: usize,
}

impl Window {
    /// Every piece has the same number of blocks on every disk.
    fn of(striping: Striping) -> Self {
        let row = striping.block_bytes() * u64::from(striping.stripe_count());
        let piece_bytes = row * PIECE_BYTES_MIN.div_ceil(row);
        let lanes = (WINDOW_BYTES / piece_bytes).clamp(LANES_MIN, LANES_MAX) as usize;
        Window { piece_bytes, lanes }
    }

    /// The pieces of a file of that size.
    fn pieces(self, bytes: u64) -> impl Iterator<Item = Extent> {
        let offsets = (0..bytes.div_ceil(self.piece_bytes)).map(move |piece| piece * self.piece_bytes);
        offsets.map(move |offset| Extent::new(offset, self.piece_bytes.min(bytes - offset)))
    }
}

/// Buffers for so many lanes: some wait for the local side while the lanes have theirs.
fn buffers(lanes: usize) -> usize {
    lanes + 2
}

/// A piece of the file: its number, and its bytes.
type Piece = (u64, Vec<u8>);

/// Reads `file` and writes all of it to `output`, which comes back. `moved` hears how many more bytes have come.
///
/// # Errors
/// The first of either side. Nothing more is begun then, and what is begun is not waited for; the same holds if this
/// is dropped.
pub async fn download<W: Write + Send + 'static>(
    connection: &ConnectedNode,
    file: &File<RealMachine>,
    output: W,
    moved: impl Fn(u64) + Clone + 'static,
) -> Copied<W> {
    let (machine, window) = (connection.machine.clone(), Window::of(file.striping()));
    let (pieces, source) = (window.pieces(file.bytes()), (connection.clone(), file.clone()));
    let read = move |piece: Extent, buffer: Vec<u8>| {
        let (connection, file) = source.clone();
        async move { Ok(read_piece(&connection, &file, piece, buffer).await?) }
    };
    in_order(&machine, window.lanes, pieces, read, output, moved).await
}

/// Reads what can be read of a damaged file and writes it to `output`, with zeros in place of the rest; `output` comes
/// back, with what the rest was. `moved` hears how many more bytes have come.
///
/// # Errors
/// As those of [`download`], but for what is damaged.
pub async fn salvage<W: Write + Send + 'static>(
    connection: &ConnectedNode,
    name: &str,
    remains: Remains<RealMachine>,
    output: W,
    moved: impl Fn(u64) + Clone + 'static,
) -> Copied<(W, Vec<Extent>)> {
    let (machine, lost) = (connection.machine.clone(), Rc::new(RefCell::new(BTreeMap::new())));
    let (blocks, noted) = (remains.blocks(), lost.clone());
    let source = (connection.clone(), Rc::<str>::from(name), Rc::new(remains));
    let read = move |block: Extent, mut buffer: Vec<u8>| {
        let ((connection, name, remains), lost) = (source.clone(), noted.clone());
        async move {
            buffer.clear();
            for remnant in connection.told(&name, remains.read(block).await)? {
                match remnant {
                    Remnant::Data(data) => buffer.extend(data.to_vec().expect("real bytes")),
                    Remnant::Lost(bytes) => {
                        lost.borrow_mut().insert(block.offset + buffer.len() as u64, bytes);
                        buffer.resize(buffer.len() + bytes as usize, 0);
                    }
                }
            }
            Ok(buffer)
        }
    };
    let output = in_order(&machine, LANES_OF_REMAINS, blocks, read, output, moved).await?;
    Ok((output, joined_extents(lost.take())))
}

/// Extents, each as long as it can be, of their parts by offset.
fn joined_extents(parts: BTreeMap<u64, u64>) -> Vec<Extent> {
    let mut extents: Vec<Extent> = Vec::new();
    for (offset, bytes) in parts {
        match extents.last_mut() {
            Some(last) if last.end() == offset => last.bytes += bytes,
            _ => extents.push(Extent::new(offset, bytes)),
        }
    }
    extents
}

/// Has pieces read in lanes, and writes them to `output` in their order.
async fn in_order<W, F>(
    machine: &RealMachine,
    lanes: usize,
    pieces: impl Iterator<Item = Extent> + 'static,
    read: impl Fn(Extent, Vec<u8>) -> F + Clone + 'static,
    output: W,
    moved: impl Fn(u64) + Clone + 'static,
) -> Copied<W>
where
    W: Write + Send + 'static,
    F: Future<Output = Copied<Vec<u8>>>,
{
    let (full, arriving) = flume::unbounded();
    let (emptied, spare) = empty_buffers(lanes);
    let writer = BlockingWork::begin(move || write_in_order(output, &arriving, &emptied));
    let pieces = Rc::new(RefCell::new((0..).zip(pieces)));
    let lane = || {
        let (read, moved) = (read.clone(), moved.clone());
        let (pieces, full, spare) = (pieces.clone(), full.clone(), spare.clone());
        async move {
            // Without spare buffers the writer has failed, and will say why.
            while let Ok(buffer) = spare.recv_async().await {
                let next = pieces.borrow_mut().next();
                let Some((number, piece)) = next else { break };
                let buffer = read(piece, buffer).await?;
                moved(piece.bytes);
                if full.send((number, buffer)).is_err() {
                    break;
                }
            }
            Ok(())
        }
    };
    in_lanes(machine, lanes, lane).await?;
    drop(full);
    Ok(writer.outcome().await?)
}

/// A channel of as many empty buffers as so many lanes need.
fn empty_buffers(lanes: usize) -> (Sender<Vec<u8>>, Receiver<Vec<u8>>) {
    let (emptied, spare) = flume::unbounded();
    for _ in 0..buffers(lanes) {
        emptied.send(Vec::new()).expect("the receiver is here");
    }
    (emptied, spare)
}

async fn read_piece(
    connection: &ConnectedNode,
    file: &File<RealMachine>,
    piece: Extent,
    mut buffer: Vec<u8>,
) -> Result<Vec<u8>> {
    buffer.resize(piece.bytes as usize, 0);
    let memory = Memory::real(buffer);
    let found = connection.told(file.name(), file.read(piece.offset, piece.bytes, &memory, 0).await)?;
    if found != piece.bytes {
        let why = "it became shorter while it was read";
        return Err(Error::new(ErrorKind::Io, file.name(), why));
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

/// Writes all of `input` to `file`, from its beginning on, and commits it: it is on the disks then, under its name.
/// `input` comes back, with the number of bytes it had. `moved` hears how many more bytes have gone.
///
/// # Errors
/// As those of [`download`]; the file is unfinished then.
pub async fn upload<R: Read + Send + 'static>(
    connection: &ConnectedNode,
    file: &File<RealMachine>,
    input: R,
    moved: impl Fn(u64) + Clone + 'static,
) -> Copied<(R, u64)> {
    let window = Window::of(file.striping());
    let (pieces, leaving) = flume::unbounded::<Piece>();
    let (emptied, spare) = empty_buffers(window.lanes);
    let reader = BlockingWork::begin(move || read_pieces(input, window.piece_bytes, &pieces, &spare));
    let lane = || {
        let (connection, file, moved) = (connection.clone(), file.clone(), moved.clone());
        let (leaving, emptied) = (leaving.clone(), emptied.clone());
        async move {
            while let Ok((piece, bytes)) = leaving.recv_async().await {
                let length = bytes.len() as u64;
                let memory = Memory::real(bytes);
                let written = file.write(piece * window.piece_bytes, length, &memory, 0).await;
                connection.told(file.name(), written)?;
                moved(length);
                // When the input has ended nobody reads any more.
                let _ = emptied.send(memory.into_vec().expect("real memory"));
            }
            Ok(())
        }
    };
    in_lanes(&connection.machine, window.lanes, lane).await?;
    drop((leaving, emptied));
    let read = reader.outcome().await?;
    connection.told(file.name(), file.commit().await)?;
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
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// Work on a thread of its own, which may block.
struct BlockingWork<T> {
    thread: JoinHandle<()>,
    outcome: Receiver<T>,
}

impl<T: Send + 'static> BlockingWork<T> {
    fn begin(work: impl FnOnce() -> T + Send + 'static) -> Self {
        let (done, outcome) = flume::bounded(1);
        let thread = thread::spawn(move || {
            // Nobody may want to know any more.
            let _ = done.send(work());
        });
        BlockingWork { thread, outcome }
    }

    /// What the work comes to. The node goes on meanwhile: whoever wakes its tasks from another thread may have to wait
    /// until it takes that in, so it must not wait for such a thread.
    async fn outcome(self) -> T {
        match self.outcome.recv_async().await {
            Ok(outcome) => outcome,
            Err(_) => resume_unwind(self.thread.join().expect_err("it ended without an outcome")),
        }
    }
}

/// Runs `count` lanes until all have ended, or the first has failed. The others end with it: what is begun
/// on the agents is not waited for, and nothing more is begun. The same holds if this itself is dropped.
async fn in_lanes<F>(machine: &RealMachine, count: usize, lane: impl Fn() -> F) -> Copied<()>
where
    F: Future<Output = Copied<()>> + 'static,
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
    fn the_pieces_are_the_whole_file() {
        let window = Window { piece_bytes: 4, lanes: 3 };
        assert_eq!(window.pieces(0).count(), 0);
        for bytes in [1, 4, 5, 8] {
            let ends: Vec<u64> = window.pieces(bytes).map(Extent::end).collect();
            let starts: Vec<u64> = window.pieces(bytes).map(|piece| piece.offset).collect();
            assert_eq!((starts[0], &starts[1..], ends.last()), (0, &ends[..ends.len() - 1], Some(&bytes)));
        }
    }

    #[test]
    fn an_input_is_cut_into_pieces_with_a_short_last_one() {
        let (pieces, taken) = flume::unbounded();
        let (_emptied, spare) = empty_buffers(3);
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

    #[test]
    fn what_is_lost_is_told_in_as_few_extents_as_can_be() {
        let parts = BTreeMap::from([(0, 5), (9, 1), (5, 3), (10, 2)]);
        assert_eq!(joined_extents(parts), [Extent::new(0, 8), Extent::new(9, 3)]);
    }
}
