//! Report of a file's calls by kind, printed when the file is closed if the user asked for it.

use std::collections::BTreeMap;
use std::env;
use std::fmt::Write;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use node::counted;

use crate::access_path::Choice;
use crate::hints::Hints;

/// The environment variable that requests the report.
const VARIABLE: &str = "STARFISH_MPI_REPORT";

#[derive(Clone, Copy, Debug, Default)]
struct CallTotals {
    calls: u64,
    bytes: u64,
    pieces: u64,
    time: Duration,
}

/// A kind of call: its direction, its access path, and the reason for that path.
pub(crate) type CallKind = (&'static str, Choice);

/// Totals of the calls that this process made on a file, by kind.
#[derive(Debug, Default)]
pub(crate) struct CallAccount(Mutex<BTreeMap<CallKind, CallTotals>>);

impl CallAccount {
    /// Adds a call of a kind that moved `bytes` bytes in `pieces` pieces.
    pub(crate) fn note(&self, kind: CallKind, bytes: u64, pieces: u64, time: Duration) {
        let mut kinds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let totals = kinds.entry(kind).or_default();
        totals.calls += 1;
        totals.bytes += bytes;
        totals.pieces += pieces;
        totals.time += time;
    }

    /// Returns true if the user requested the report.
    pub(crate) fn is_asked_for() -> bool {
        env::var_os(VARIABLE).is_some_and(|value| !value.is_empty() && value != "0")
    }

    /// Returns the report: a line for each kind of call, then the hints without effect.
    pub(crate) fn lines(&self, path: &str, (rank, size): (u32, u32), hints: &Hints) -> String {
        let mut text = format!("starfish: {path}, process {rank} of {size}:");
        let kinds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kinds.is_empty() {
            text.push_str(" nothing was read or written");
        }
        for ((call, Choice { way, why }), CallTotals { calls, bytes, pieces, time }) in kinds.iter() {
            let (way, milliseconds) = (way.name(), time.as_secs_f64() * 1e3);
            let (calls, bytes, pieces) =
                (counted(*calls, "call"), counted(*bytes, "byte"), counted(*pieces, "piece"));
            let _ = write!(
                text,
                "\nstarfish:   {call}, {way}: {calls}, {bytes} in {pieces}, {milliseconds:.1} ms ({why})"
            );
        }
        for (key, value, why) in hints.without_effect() {
            let _ = write!(text, "\nstarfish:   the hint {key}={value} has no effect: {why}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use request_log::CallMethod;

    use super::*;
    use crate::access_path::{AccessPath, AccessPathReason};

    #[test]
    fn the_account_sums_calls_of_each_kind() {
        let account = CallAccount::default();
        let choice =
            Choice { way: AccessPath::Together(CallMethod::DiskDirected), why: AccessPathReason::Method };
        for bytes in [8, 16] {
            account.note(("collective writes", choice), bytes, 2, Duration::from_millis(1));
        }
        account.note(("writes", choice), 1, 1, Duration::from_millis(1));
        let mut hints = Hints::usual(4);
        hints.take("cb_nodes", "2");
        let lines = account.lines("x", (0, 4), &hints);
        assert!(
            lines.contains(
                "collective writes, disk-directed: 2 calls, 24 bytes in 4 pieces, 2.0 ms (starfish_method)"
            ),
            "{lines}"
        );
        assert!(lines.contains("writes, disk-directed: 1 call, 1 byte in 1 piece, 1.0 ms"), "{lines}");
        assert!(lines.ends_with("the hint cb_nodes=2 has no effect: Starfish has no aggregators"), "{lines}");
    }
}
