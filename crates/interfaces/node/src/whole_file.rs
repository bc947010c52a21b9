//! Copies whole files between the agents and this computer. Copies bypass the page cache, since their data are used
//! only once.
//!
//! The file is cut into *pieces*: some blocks on every disk. A few *lanes* move one piece after the other. So requests
//! for the next pieces are in flight at every disk while a separate thread reads or writes a piece of the local file.
//!
//! ```text
//!  agents --> lane 0: piece 0 | piece 3 ...  \                        in file order
//!         --> lane 1: piece 1 | piece 4 ...   }--> thread: sorts, writes --> local file
//!         --> lane 2: piece 2 | ...          /       |
//!                        ^---- empty buffers --------'   (their fixed number limits the memory)
//! ```
//!
//! A lane takes its buffer before it takes the number of a piece. So the piece in flight with the lowest number always
//! has a buffer, and waiting for this piece cannot deadlock.
//!
//! Holes are skipped on both sides: pieces are parts of ranges with data ([`sparse`](crate::sparse)).
//!
//! The traditional method moves a piece by requests for its blocks. The disk-directed method moves a piece by one
//! request to each agent, which moves the blocks in the order of its disks. Its pieces are longer, and only one of them
//! is in flight.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::Future;
use std::io::{self, Read};
use std::rc::Rc;

use flume::{Receiver, Sender};
use fs::{CollectiveMethod, DamagedFileReader, File, Participants, SalvagedExtent, SelectedSettings};
use layout::{Extent, Selection, Striping};
use machine::{Memory, Permits, RangeSet, TaskGroup};
use real::RealMachine;

use crate::blocking_work::BlockingWork;
use crate::connected::ConnectedNode;
use crate::error::{Error, ErrorKind, Result};
use crate::sparse::{SparseRead, SparseWrite};

/// Transfer method between the disks and this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Requests for one block after the other.
    Traditional,
    /// One request for many blocks to each agent, which moves them in the order of its disks.
    DiskDirected,
}

impl Method {
    /// Returns the name of the method in options.
    pub fn name(self) -> &'static str {
        match self {
            Method::Traditional => "traditional",
            Method::DiskDirected => "disk-directed",
        }
    }
}

/// Bytes in flight between the agents and this node by the traditional method.
const WINDOW_BYTES: u64 = 8 << 20;

/// Minimum size of a piece in bytes by the traditional method: for shorter pieces, switching between pieces costs more
/// than it saves. If possible a piece is one block on every disk, so that requests reach each disk in the order of its
/// blocks.
const PIECE_BYTES_MIN: u64 = 256 << 10;

/// Minimum size of a piece in bytes by the disk-directed method: an agent can only sort the blocks of one request.
const SORTED_BYTES_MIN: u64 = 8 << 20;

/// Minimum number of lanes: with three, one piece can wait for a buffer, one can be sent and one received.
const LANES_MIN: u64 = 3;

/// Maximum number of lanes: more lanes do not increase the throughput.
const LANES_MAX: u64 = 32;

/// Number of lanes for a damaged file; each lane reads one block at a time.
const LANES_OF_REMAINS: usize = 16;

/// Granularity in bytes at which holes of a local file are detected; shorter ones are written as zeros.
const HOLE_BYTES_MIN: u64 = 64 << 10;

/// Maximum number of data ranges. The rest of the file is read as if it had no more holes. Each range takes two
/// requests.
const STRETCHES_MAX: usize = 4096;

/// Error of copying a whole file.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// Error on the side of the agents.
    #[error(transparent)]
    Striped(#[from] Error),
    /// Error on the side of this computer.
    #[error(transparent)]
    Local(#[from] io::Error),
}

/// Converts the error for a task of this program that has panicked, which is a defect.
impl From<Box<machine::Error>> for CopyError {
    fn from(defect: Box<machine::Error>) -> Self {
        CopyError::Striped(Error::new(ErrorKind::Io, "cannot copy a file", *defect))
    }
}

/// Outcome of copying.
type Copied<T> = std::result::Result<T, CopyError>;

/// Size of the pieces of a file, and the number of pieces in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Window {
    piece_bytes: u64,
    lanes: usize,
    /// Block size of the file on the agents in bytes: a hole has whole blocks.
    block_bytes: u64,
}

impl Window {
    /// Returns a window whose pieces each have the same number of blocks on every disk.
    fn of(striping: Striping, method: Method) -> Self {
        let row = striping.block_bytes() * u64::from(striping.stripe_count());
        let rows = |bytes: u64| row * bytes.div_ceil(row);
        let (piece_bytes, lanes) = match method {
            Method::Traditional => {
                let piece_bytes = rows(PIECE_BYTES_MIN);
                (piece_bytes, (WINDOW_BYTES / piece_bytes).clamp(LANES_MIN, LANES_MAX))
            }
            // One request is in flight, and the other lane prepares its buffer.
            Method::DiskDirected => (rows(SORTED_BYTES_MIN), 2),
        };
        Window { piece_bytes, lanes: lanes as usize, block_bytes: striping.block_bytes() }
    }

    /// Returns the pieces of a data range.
    fn pieces(self, stretch: Extent) -> impl Iterator<Item = Extent> {
        let pieces = stretch.offset / self.piece_bytes..stretch.end().div_ceil(self.piece_bytes);
        pieces.map(move |piece| {
            let begin = stretch.offset.max(piece * self.piece_bytes);
            let end = stretch.end().min((piece + 1) * self.piece_bytes);
            Extent::new(begin, end - begin)
        })
    }

    /// Returns the distance in bytes from `offset` to the start of the next piece.
    fn rest_of_piece(self, offset: u64) -> u64 {
        self.piece_bytes - offset % self.piece_bytes
    }

    /// Returns the distance in bytes at which holes are detected: whole blocks.
    fn stride(self) -> u64 {
        self.block_bytes * HOLE_BYTES_MIN.div_ceil(self.block_bytes)
    }

    /// Returns the number of bytes to skip in the hole at the current position: whole blocks, or all of the last hole.
    fn left_out(self, input: &mut impl SparseRead) -> io::Result<u64> {
        let hole = input.hole()?;
        let whole = hole.bytes - hole.bytes % self.block_bytes;
        Ok(match hole.is_last {
            true => hole.bytes,
            false if whole >= self.stride() => whole,
            false => 0,
        })
    }
}

/// Returns the number of buffers for `lanes` lanes: one for each lane, and some that wait for the local side.
fn buffers(lanes: usize) -> usize {
    lanes + 2
}

/// Piece for the local side.
struct ArrivingPiece {
    /// Number of the piece, from 0.
    number: u64,
    offset: u64,
    bytes: Vec<u8>,
}

/// Part from the local side, in the order of the file.
#[derive(Debug, PartialEq, Eq)]
enum OutgoingPart {
    /// A piece.
    Data { offset: u64, bytes: Vec<u8> },
    /// A hole of this many bytes.
    Hole(u64),
}

/// Reads `file` and writes all of it to `output`, which it returns; holes stay holes. Calls `moved` with the number of
/// further bytes that have arrived.
///
/// # Errors
/// The first error of either side. After an error no further transfers begin, and the function does not wait for
/// transfers in flight; the same holds if the future is dropped. After the return, nothing more is written to `output`.
pub async fn download<W: SparseWrite + Send + 'static>(
    connection: &ConnectedNode,
    file: &File<RealMachine>,
    method: Method,
    output: W,
    moved: impl Fn(u64) + Clone + 'static,
) -> Copied<W> {
    let (machine, window) = (connection.machine.clone(), Window::of(file.striping(), method));
    let bytes = file.bytes();
    let stretches = connection.explained(file.name(), stretches_of_data(file, bytes).await)?;
    moved(bytes - stretches.iter().map(|stretch| stretch.bytes).sum::<u64>());
    let pieces = stretches.into_iter().flat_map(move |stretch| window.pieces(stretch));
    let source = Striped::new(connection, file, method);
    let read = move |piece: Extent, buffer: Vec<u8>| {
        let source = source.clone();
        async move { Ok(source.read(piece, buffer).await?) }
    };
    in_order(&machine, window.lanes, (bytes, pieces), read, output, moved).await
}

/// Returns the ranges with data in the first `bytes` bytes of a file. For a file of one block, a request for its holes
/// is not worth its cost.
async fn stretches_of_data(file: &File<RealMachine>, bytes: u64) -> fs::Result<Vec<Extent>> {
    let mut stretches = Vec::new();
    let mut at = 0;
    while at < bytes && bytes > file.striping().block_bytes() && stretches.len() < STRETCHES_MAX {
        let Some(begin) = file.next_data(at).await?.filter(|&begin| begin < bytes) else {
            return Ok(stretches);
        };
        at = file.next_hole(begin).await?.map_or(bytes, |end| end.min(bytes));
        stretches.push(Extent::new(begin, at - begin));
    }
    if at < bytes {
        stretches.push(Extent::new(at, bytes - at));
    }
    Ok(stretches)
}

/// Writes the readable part of a damaged file to `output`, with zeros in place of the rest. Returns `output`, and the
/// unreadable ranges. Blocks of only zeros become holes. Calls `moved` with the number of further bytes that have
/// arrived.
///
/// # Errors
/// As those of [`download`], except for damaged ranges.
pub async fn salvage<W: SparseWrite + Send + 'static>(
    connection: &ConnectedNode,
    name: &str,
    remains: DamagedFileReader<RealMachine>,
    output: W,
    moved: impl Fn(u64) + Clone + 'static,
) -> Copied<(W, Vec<Extent>)> {
    let (machine, lost) = (connection.machine.clone(), Rc::new(RefCell::new(RangeSet::default())));
    let (blocks, noted) = ((remains.bytes(), remains.blocks()), lost.clone());
    let source = (connection.clone(), Rc::<str>::from(name), Rc::new(remains));
    let read = move |block: Extent, mut buffer: Vec<u8>| {
        let ((connection, name, remains), lost) = (source.clone(), noted.clone());
        async move {
            buffer.clear();
            for remnant in connection.explained(&name, remains.read(block).await)? {
                match remnant {
                    SalvagedExtent::Data(data) => buffer.extend(data.to_vec().expect("real bytes")),
                    SalvagedExtent::Lost(bytes) => {
                        let offset = block.offset + buffer.len() as u64;
                        lost.borrow_mut().insert(offset..offset + bytes);
                        buffer.resize(buffer.len() + bytes as usize, 0);
                    }
                }
            }
            if buffer.iter().all(|&byte| byte == 0) {
                buffer.clear();
            }
            Ok(buffer)
        }
    };
    let output = in_order(&machine, LANES_OF_REMAINS, blocks, read, output, moved).await?;
    let lost = lost.take();
    Ok((output, lost.ranges().map(Extent::from).collect()))
}

/// Reads pieces of at most `bytes` bytes in `lanes` lanes, and writes them to `output` in their order.
async fn in_order<W, F>(
    machine: &RealMachine,
    lanes: usize,
    (bytes, pieces): (u64, impl Iterator<Item = Extent> + 'static),
    read: impl Fn(Extent, Vec<u8>) -> F + Clone + 'static,
    output: W,
    moved: impl Fn(u64) + Clone + 'static,
) -> Copied<W>
where
    W: SparseWrite + Send + 'static,
    F: Future<Output = Copied<Vec<u8>>>,
{
    let (full, arriving) = flume::unbounded();
    let (emptied, spare) = empty_buffers(lanes);
    let writer = BlockingWork::begin(move || write_in_order(output, &arriving, &emptied));
    let (pieces, begun) = (Rc::new(RefCell::new((0..).zip(pieces))), Rc::new(Cell::new(0)));
    let lane = || {
        let (read, moved) = (read.clone(), moved.clone());
        let (pieces, begun, full, spare) = (pieces.clone(), begun.clone(), full.clone(), spare.clone());
        async move {
            // Without spare buffers the writer has failed; its outcome has the reason.
            while let Ok(buffer) = spare.recv_async().await {
                let next = pieces.borrow_mut().next();
                let Some((number, piece)) = next else { break };
                begun.set(number + 1);
                let bytes = read(piece, buffer).await?;
                moved(piece.bytes);
                if full.send(ArrivingPiece { number, offset: piece.offset, bytes }).is_err() {
                    break;
                }
            }
            Ok(())
        }
    };
    let moved_all = in_lanes(machine, lanes, lane).await;
    if moved_all.is_ok() {
        // All pieces have been read, so the rest is a hole. If the writer has failed, it reports the reason.
        let _ = full.send(ArrivingPiece { number: begun.get(), offset: bytes, bytes: Vec::new() });
    }
    drop(full);
    // Also after a failure: nothing is written to the output after this returns.
    let output = writer.outcome().await;
    moved_all?;
    Ok(output?)
}

/// Returns a channel with the empty buffers that `lanes` lanes need.
fn empty_buffers(lanes: usize) -> (Sender<Vec<u8>>, Receiver<Vec<u8>>) {
    let (emptied, spare) = flume::unbounded();
    for _ in 0..buffers(lanes) {
        emptied.send(Vec::new()).expect("the receiver is here");
    }
    (emptied, spare)
}

/// Settings with which the agents move a piece in the order of their disks: each block in a separate message, without
/// intermediate copies.
const ORDER_OF_DISKS: SelectedSettings = SelectedSettings {
    method: CollectiveMethod::DiskDirected { presort: true },
    queued: false,
    to_media: false,
};

/// The file on the agents, whose pieces are moved by a method.
#[derive(Clone)]
struct Striped {
    connection: ConnectedNode,
    file: File<RealMachine>,
    method: Method,
    /// For disk-directed requests: one at a time, since the blocks of one request follow each other on each disk. With
    /// a second request in flight, each disk would seek between the two.
    turns: Permits,
}

impl Striped {
    fn new(connection: &ConnectedNode, file: &File<RealMachine>, method: Method) -> Self {
        Striped { connection: connection.clone(), file: file.clone(), method, turns: Permits::new(1) }
    }

    /// Reads a piece into `buffer`, and returns it.
    async fn read(&self, piece: Extent, mut buffer: Vec<u8>) -> Result<Vec<u8>> {
        if self.method == Method::DiskDirected {
            // Zero the buffer, because the agents send no data for holes.
            buffer.clear();
        }
        buffer.resize(piece.bytes as usize, 0);
        let (file, memory) = (&self.file, Memory::real(buffer));
        let found = match self.method {
            Method::Traditional => file.read(piece.offset, piece.bytes, &memory, 0).await,
            Method::DiskDirected => self.read_selected(piece, &memory).await,
        };
        if self.connection.explained(file.name(), found)? != piece.bytes {
            let why = "the file was truncated during the read";
            return Err(Error::new(ErrorKind::Io, file.name(), why));
        }
        Ok(memory.into_vec().expect("real memory"))
    }

    /// Writes `bytes` at an offset, and returns them.
    async fn write(&self, offset: u64, bytes: Vec<u8>) -> Result<Vec<u8>> {
        let piece = Extent::new(offset, bytes.len() as u64);
        let (file, memory) = (&self.file, Memory::real(bytes));
        let written = match self.method {
            Method::Traditional => file.write(piece.offset, piece.bytes, &memory, 0).await,
            Method::DiskDirected => self.write_selected(piece, &memory).await,
        };
        self.connection.explained(file.name(), written)?;
        Ok(memory.into_vec().expect("real memory"))
    }

    async fn read_selected(&self, piece: Extent, memory: &Memory) -> fs::Result<u64> {
        let _turn = self.turns.take().await;
        self.file.read_selected(Participants::Alone, &selected(piece)?, memory, ORDER_OF_DISKS).await?;
        Ok(piece.bytes)
    }

    async fn write_selected(&self, piece: Extent, memory: &Memory) -> fs::Result<()> {
        let _turn = self.turns.take().await;
        self.file
            .write_selected(Participants::Alone, &selected(piece)?, memory, ORDER_OF_DISKS)
            .await
            .map(drop)
    }
}

/// Returns a selection of the whole piece.
fn selected(piece: Extent) -> fs::Result<Selection> {
    Selection::contiguous(piece).map_err(|error| Box::new(fs::Error::Invalid(error.to_string())))
}

/// Writes pieces in the order of their numbers, with holes between them, and returns their buffers to the lanes. Pieces
/// after a missing one are not written.
fn write_in_order<W: SparseWrite>(
    mut output: W,
    arriving: &Receiver<ArrivingPiece>,
    emptied: &Sender<Vec<u8>>,
) -> io::Result<W> {
    let (mut next, mut at, mut early) = (0, 0, BTreeMap::new());
    for ArrivingPiece { number, offset, bytes } in arriving {
        early.insert(number, (offset, bytes));
        while let Some((offset, bytes)) = early.remove(&next) {
            leave_hole(&mut output, offset - at)?;
            output.write_all(&bytes)?;
            next += 1;
            at = offset + bytes.len() as u64;
            // When all lanes have ended, the receiver has been dropped.
            let _ = emptied.send(bytes);
        }
    }
    output.flush()?;
    Ok(output)
}

fn leave_hole(output: &mut impl SparseWrite, bytes: u64) -> io::Result<()> {
    if bytes == 0 { Ok(()) } else { output.leave_hole(bytes) }
}

/// Size of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uploaded {
    /// Bytes of the input.
    pub bytes: u64,
    /// Bytes of the input that were written, without skipped holes.
    pub written: u64,
}

/// Writes all of `input` to `file`, from its beginning on, and flushes it. Skips blocks that are in holes of the input.
/// Returns `input`, with its size. Calls `moved` with the number of bytes of each piece that has been written.
///
/// # Errors
/// As those of [`download`]; the file then has the bytes that were copied.
pub async fn upload<R: SparseRead + Send + 'static>(
    connection: &ConnectedNode,
    file: &File<RealMachine>,
    method: Method,
    input: R,
    moved: impl Fn(u64) + Clone + 'static,
) -> Copied<(R, Uploaded)> {
    let window = Window::of(file.striping(), method);
    let (parts, leaving) = flume::unbounded::<OutgoingPart>();
    let (emptied, spare) = empty_buffers(window.lanes);
    let reader = BlockingWork::begin(move || read_parts(input, window, &parts, &spare));
    let target = Striped::new(connection, file, method);
    let lane = || {
        let (target, moved) = (target.clone(), moved.clone());
        let (leaving, emptied) = (leaving.clone(), emptied.clone());
        async move {
            while let Ok(part) = leaving.recv_async().await {
                let (offset, bytes) = match part {
                    OutgoingPart::Hole(bytes) => {
                        moved(bytes);
                        continue;
                    }
                    OutgoingPart::Data { offset, bytes } => (offset, bytes),
                };
                let bytes = target.write(offset, bytes).await?;
                moved(bytes.len() as u64);
                // After the end of the input no more buffers are needed.
                let _ = emptied.send(bytes);
            }
            Ok(())
        }
    };
    in_lanes(&connection.machine, window.lanes, lane).await?;
    drop((leaving, emptied));
    let (input, uploaded) = reader.outcome().await?;
    if file.bytes() < uploaded.bytes {
        // The input ends with a hole.
        connection.explained(file.name(), file.truncate(uploaded.bytes).await)?;
    }
    connection.explained(file.name(), file.flush().await)?;
    Ok((input, uploaded))
}

/// Reads `input` in pieces, without its holes, until it ends or the receiver is dropped. Returns `input`, and its size.
fn read_parts<R: SparseRead>(
    mut input: R,
    window: Window,
    parts: &Sender<OutgoingPart>,
    spare: &Receiver<Vec<u8>>,
) -> io::Result<(R, Uploaded)> {
    let (mut at, mut written) = (0, 0);
    for mut bytes in spare {
        let hole = window.left_out(&mut input)?;
        if hole > 0 {
            input.skip_hole(hole)?;
            at += hole;
            // If the receiver has been dropped, the loop ends soon, because no more buffers arrive.
            let _ = parts.send(OutgoingPart::Hole(hole));
        }
        let has_ended = read_to_hole(&mut input, &mut bytes, window.rest_of_piece(at) as usize, window)?;
        let (offset, length) = (at, bytes.len());
        at += length as u64;
        written += length as u64;
        if length > 0 && parts.send(OutgoingPart::Data { offset, bytes }).is_err() || has_ended {
            break;
        }
    }
    Ok((input, Uploaded { bytes: at, written }))
}

/// Reads into `bytes` until it has `most` bytes, a hole begins or the input ends. Returns true if the input has ended.
///
/// The buffer grows with the input: a small file takes little memory, and a reused buffer is not cleared again.
fn read_to_hole(
    input: &mut impl SparseRead,
    bytes: &mut Vec<u8>,
    most: usize,
    window: Window,
) -> io::Result<bool> {
    let (mut filled, mut has_ended) = (0, false);
    while filled < most && !has_ended {
        if filled > 0 && window.left_out(input)? > 0 {
            break;
        }
        let end = most.min(filled + window.stride() as usize);
        if bytes.len() < end {
            bytes.resize(end, 0);
        }
        let length = read_full(input, &mut bytes[filled..end])?;
        has_ended = length < end - filled;
        filled += length;
    }
    bytes.truncate(filled);
    Ok(has_ended)
}

/// Reads until `bytes` is full or the input ends. Returns the number of bytes.
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

/// Runs `count` lanes until all have ended, or one has failed. After a failure all lanes end, without waiting for their
/// requests in flight. The same holds if this future is dropped.
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
    use crate::sparse::{Dense, Hole};

    #[test]
    fn pieces_are_whole_rows_and_memory_is_bounded() {
        for (block, disks) in [(512, 1), (65_536, 4), (262_144, 4), (1 << 20, 16), (3000, 7)] {
            let striping = Striping::new(block, disks).expect("a striping");
            let [window, sorted] =
                [Method::Traditional, Method::DiskDirected].map(|method| Window::of(striping, method));
            for window in [window, sorted] {
                assert!(window.piece_bytes.is_multiple_of(block * u64::from(disks)));
            }
            assert!(window.piece_bytes >= PIECE_BYTES_MIN && window.lanes >= 3);
            let under_way = window.piece_bytes * window.lanes as u64;
            assert!(under_way <= WINDOW_BYTES.max(3 * window.piece_bytes), "{window:?}");
            assert!(sorted.piece_bytes >= SORTED_BYTES_MIN && sorted.lanes == 2, "{sorted:?}");
        }
    }

    #[test]
    fn pieces_cover_a_range_without_gaps() {
        let window = window(4);
        assert_eq!(window.pieces(Extent::new(0, 0)).count(), 0);
        for (begin, bytes) in [(0, 1), (0, 4), (0, 5), (0, 8), (3, 1), (3, 2), (5, 7)] {
            let stretch = Extent::new(begin, bytes);
            let ends: Vec<u64> = window.pieces(stretch).map(Extent::end).collect();
            let starts: Vec<u64> = window.pieces(stretch).map(|piece| piece.offset).collect();
            let last = Some(stretch.end());
            assert_eq!(
                (starts[0], &starts[1..], ends.last().copied()),
                (begin, &ends[..ends.len() - 1], last)
            );
            assert!(starts[1..].iter().all(|start| start.is_multiple_of(4)));
        }
    }

    /// Returns a window of pieces of `piece_bytes` bytes, each a block.
    fn window(piece_bytes: u64) -> Window {
        Window { piece_bytes, lanes: 3, block_bytes: piece_bytes }
    }

    /// Returns the parts of an input: begin and length of each piece, and the lengths of the holes.
    fn parts(input: impl SparseRead, window: Window) -> (u64, Vec<(Option<u64>, u64)>) {
        let (parts, taken) = flume::unbounded();
        let (emptied, spare) = flume::unbounded();
        for _ in 0..100 {
            emptied.send(Vec::new()).unwrap();
        }
        let (_, Uploaded { bytes: total, written }) = read_parts(input, window, &parts, &spare).unwrap();
        drop(parts);
        let taken = taken.iter().map(|part| match part {
            OutgoingPart::Data { offset, bytes } => (Some(offset), bytes.len() as u64),
            OutgoingPart::Hole(bytes) => (None, bytes),
        });
        let taken: Vec<(Option<u64>, u64)> = taken.collect();
        let data = taken.iter().filter(|(offset, _)| offset.is_some());
        assert_eq!(written, data.map(|(_, bytes)| bytes).sum::<u64>());
        (total, taken)
    }

    #[test]
    fn an_input_is_cut_into_pieces_with_a_short_last_one() {
        let (total, parts) = parts(Dense(&[7_u8; 10][..]), window(4));
        assert_eq!((total, parts), (10, vec![(Some(0), 4), (Some(4), 4), (Some(8), 2)]));
    }

    /// Input with ranges of these lengths in bytes: data, a hole, data, and so on.
    struct Stretches(Vec<u64>);

    impl Read for Stretches {
        fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
            let from = self.0.iter().position(|&stretch| stretch > 0);
            let Some(from) = from else { return Ok(0) };
            let length = self.0[from].min(bytes.len() as u64);
            self.0[from] -= length;
            Ok(length as usize)
        }
    }

    impl SparseRead for Stretches {
        fn hole(&mut self) -> io::Result<Hole> {
            let from = self.0.iter().position(|&stretch| stretch > 0);
            Ok(match from {
                Some(from) if from % 2 == 1 => Hole {
                    bytes: self.0[from],
                    is_last: self.0[from + 1..].iter().all(|&stretch| stretch == 0),
                },
                _ => Hole::default(),
            })
        }

        fn skip_hole(&mut self, bytes: u64) -> io::Result<()> {
            let from = self.0.iter().position(|&stretch| stretch > 0).expect("there is a hole");
            self.0[from] -= bytes;
            Ok(())
        }
    }

    #[test]
    fn whole_blocks_in_holes_are_sent_as_holes() {
        const BLOCK: u64 = HOLE_BYTES_MIN;
        let window = Window { piece_bytes: 4 * BLOCK, lanes: 3, block_bytes: BLOCK };
        let of = |stretches: &[u64]| parts(Stretches(stretches.to_vec()), window);
        let data = |offset: u64, bytes: u64| (Some(offset), bytes);
        let hole = |bytes: u64| (None, bytes);
        assert_eq!(of(&[0, 10 * BLOCK]), (10 * BLOCK, vec![hole(10 * BLOCK)]));
        assert_eq!(of(&[0, 10]), (10, vec![hole(10)]), "the last one wherever it begins");
        let expected = vec![data(0, BLOCK), hole(2 * BLOCK), data(3 * BLOCK, BLOCK), data(4 * BLOCK, 6)];
        assert_eq!(of(&[BLOCK, 2 * BLOCK, BLOCK + 6]), (4 * BLOCK + 6, expected));
        let expected = vec![data(0, BLOCK), hole(BLOCK), data(2 * BLOCK, 2 * BLOCK), hole(5)];
        assert_eq!(
            of(&[1, 2 * BLOCK, 2 * BLOCK - 1, 5]),
            (4 * BLOCK + 5, expected),
            "not in the middle of a block"
        );
        let expected = vec![data(0, 3 * BLOCK)];
        assert_eq!(of(&[1, 2 * BLOCK - 2, BLOCK + 1]), (3 * BLOCK, expected), "no whole block is a hole");
    }

    fn arriving(number: u64, offset: u64, text: &str) -> ArrivingPiece {
        ArrivingPiece { number, offset, bytes: text.into() }
    }

    fn written(arriving: Vec<ArrivingPiece>) -> Vec<u8> {
        let (pieces, taken) = flume::unbounded();
        let (emptied, _spare) = flume::unbounded();
        arriving.into_iter().for_each(|piece| pieces.send(piece).unwrap());
        drop(pieces);
        write_in_order(Dense(Vec::new()), &taken, &emptied).unwrap().0
    }

    #[test]
    fn pieces_are_written_in_order_up_to_the_first_missing_one() {
        let pieces =
            || vec![arriving(1, 1, "b"), arriving(2, 4, "c"), arriving(3, 7, ""), arriving(0, 0, "a")];
        assert_eq!(written(pieces()), b"ab\0\0c\0\0");
        for (lost, expected) in [(0, &b""[..]), (1, b"a"), (2, b"ab"), (3, b"ab\0\0c")] {
            let arrived = pieces().into_iter().filter(|piece| piece.number != lost).collect();
            assert_eq!(written(arrived), expected, "without number {lost}");
        }
    }
}
