//! Runs: pieces of data as the operating system takes them, for sockets and files alike.

use compio::buf::IoBuf;
use machine::{Error, Payload, PayloadPiece, Result, SharedBytes, Source};

/// Zeros to send and to write. Payloads say how many there are without storing them; the system wants
/// memory, and this serves for all.
static ZEROS: [u8; 64 * 1024] = [0; 64 * 1024];

/// Bytes that lie in one place until the system has taken them.
pub(crate) enum ByteRun {
    Owned(Vec<u8>),
    Shared(SharedBytes),
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

/// The system takes at most 1024 runs at once (`IOV_MAX` of Linux); this many it takes gladly.
pub(crate) const RUNS_MAX: usize = 512;

/// Appends the runs of `payload`, none of which is copied.
///
/// Fails if some of its bytes exist only as a statement: those are for simulated machines.
pub(crate) fn push_runs(payload: &Payload, runs: &mut Vec<ByteRun>) -> Result<()> {
    for piece in payload.pieces() {
        match piece {
            PayloadPiece::Bytes(shared) => runs.push(ByteRun::Shared(shared.clone())),
            PayloadPiece::Phantom { source: Source::ZEROS, bytes, .. } => push_zeros(*bytes, runs),
            PayloadPiece::Phantom { source, .. } => {
                return Err(Error::Io {
                    what: "moving a payload".to_owned(),
                    why: format!(
                        "bytes of source {} are phantoms, which a real machine cannot move",
                        source.0
                    ),
                }
                .into());
            }
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

/// Cuts off the first runs, as many as the system takes at once; `None` when there are no more.
pub(crate) fn next_batch(runs: &mut Vec<ByteRun>) -> Option<Vec<ByteRun>> {
    let later = runs.split_off(runs.len().min(RUNS_MAX));
    let batch = std::mem::replace(runs, later);
    (!batch.is_empty()).then_some(batch)
}
