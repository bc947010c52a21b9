//! Runs: data as pieces of memory, the form in which the operating system accepts them for sockets and files.

use compio::buf::IoBuf;
use machine::{Error, Payload, PayloadPiece, Result, SharedBytes, Source};

/// Zeros to send and to write. A payload stores only the number of its zeros, but the system needs memory with zeros;
/// all payloads share this memory.
static ZEROS: [u8; 64 * 1024] = [0; 64 * 1024];

/// Bytes that stay at the same address until the system has sent or written them.
pub enum ByteRun {
    /// Bytes of this run only.
    Owned(Vec<u8>),
    /// Bytes of a payload.
    Shared(SharedBytes),
    /// Zeros.
    Zeros(&'static [u8]),
}

impl IoBuf for ByteRun {
    fn as_init(&self) -> &[u8] {
        match self {
            ByteRun::Owned(bytes) => bytes,
            ByteRun::Shared(shared) => shared.as_slice(),
            ByteRun::Zeros(zeros) => zeros,
        }
    }
}

/// Maximum number of runs in one system call. Linux permits 1024 (`IOV_MAX`).
pub(crate) const RUNS_MAX: usize = 512;

/// Pieces up to this length in bytes are copied if their neighbours are as short: the system would need more time for a
/// separate run than for the copy.
const COPIED_BYTES_MAX: u64 = 256;

/// Appends the runs of `payload`. Copies only sequences of short pieces, each sequence into one run.
///
/// Fails if some bytes of the payload are phantoms other than zeros, which only simulated machines can transfer.
pub(crate) fn push_runs(payload: &Payload, runs: &mut Vec<ByteRun>) -> Result<()> {
    let both_short = |one: &PayloadPiece, next: &PayloadPiece| short(one).and(short(next)).is_some();
    for pieces in payload.pieces().chunk_by(both_short) {
        match pieces {
            [piece] => push_piece(piece, runs)?,
            short_ones => {
                let mut copied =
                    Vec::with_capacity(short_ones.iter().map(|piece| piece.len() as usize).sum());
                short_ones.iter().filter_map(short).for_each(|bytes| copied.extend_from_slice(bytes));
                runs.push(ByteRun::Owned(copied));
            }
        }
    }
    Ok(())
}

/// Returns the bytes of a piece if it is short enough to be copied.
fn short(piece: &PayloadPiece) -> Option<&[u8]> {
    match piece {
        PayloadPiece::Bytes(shared) if piece.len() <= COPIED_BYTES_MAX => Some(shared.as_slice()),
        _ => None,
    }
}

fn push_piece(piece: &PayloadPiece, runs: &mut Vec<ByteRun>) -> Result<()> {
    match piece {
        PayloadPiece::Bytes(shared) => runs.push(ByteRun::Shared(shared.clone())),
        PayloadPiece::Phantom { source: Source::ZEROS, bytes, .. } => push_zeros(*bytes, runs),
        PayloadPiece::Phantom { source, .. } => {
            return Err(Error::Io {
                what: "moving a payload".to_owned(),
                why: format!("bytes of source {} are phantoms, which a real machine cannot move", source.0),
            }
            .into());
        }
    }
    Ok(())
}

fn push_zeros(mut bytes: u64, runs: &mut Vec<ByteRun>) {
    while bytes > 0 {
        let here = bytes.min(ZEROS.len() as u64);
        runs.push(ByteRun::Zeros(&ZEROS[..here as usize]));
        bytes -= here;
    }
}

/// Removes and returns the first runs, up to the limit of one system call; `None` if no runs are left.
pub(crate) fn next_batch(runs: &mut Vec<ByteRun>) -> Option<Vec<ByteRun>> {
    let later = runs.split_off(runs.len().min(RUNS_MAX));
    let batch = std::mem::replace(runs, later);
    (!batch.is_empty()).then_some(batch)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_pieces_are_copied_together_and_long_ones_sent_in_place() {
        let memory: Vec<u8> = (0..=255).cycle().take(4096).collect();
        let all = Payload::from(memory.clone());
        let mut payload = Payload::empty();
        // Every second byte, a long piece, a short and a long one, zeros, and every second byte again.
        let ones: Vec<(u64, u64)> = (0..100).map(|number| (2 * number, 1)).collect();
        let parts = [&ones[..], &[(300, 300), (700, 8), (800, 1000)]].concat();
        parts.iter().for_each(|&(at, bytes)| payload.push(&all.slice(at..at + bytes)));
        payload.push(&Payload::zeros(5));
        ones.iter().for_each(|&(at, bytes)| payload.push(&all.slice(at..at + bytes)));
        let mut runs = Vec::new();
        push_runs(&payload, &mut runs).expect("real bytes");
        let is_copied: Vec<bool> = runs.iter().map(|run| matches!(run, ByteRun::Owned(_))).collect();
        assert_eq!(is_copied, [true, false, false, false, false, true]);
        let sent: Vec<u8> = runs.iter().flat_map(|run| run.as_init().to_vec()).collect();
        assert_eq!(Some(sent), payload.to_vec());
    }
}
