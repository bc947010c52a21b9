//! Common parts of fuzz targets: conversion of inputs to nearly valid texts and messages.
//!
//! A decoder rejects random bytes after the first few. So each target uses an input twice: as it is (for the inputs in
//! `corpus`), and as a list of changes to valid examples. A coverage-guided engine (`cargo bolero test`) profits from
//! both; without an engine, changed examples reach deeper into the decoder.
//!
//! A target is a test: it runs the inputs of its corpus, and then random inputs for the time [`BOUND`].

use std::time::Duration;

pub use bolero;

/// Time limit of each target without an engine. An engine runs as long as requested, and so does a test with
/// `BOLERO_RANDOM_TEST_TIME_MS` and `BOLERO_RANDOM_ITERATIONS`.
pub const BOUND: Duration = Duration::from_millis(400);

/// Maximum number of inputs in the time [`BOUND`].
pub const INPUTS: usize = 1_000_000;

/// Runs a fuzz target: `target!("name", |bytes| ...)`, in a test of that name. Its corpus is in `__fuzz__/name/corpus`
/// next to the file.
#[macro_export]
macro_rules! target {
    ($name:literal, $look:expr) => {{
        let look: fn(&[u8]) = $look;
        $crate::bolero::check!(name = $name)
            .with_test_time($crate::BOUND)
            .with_iterations($crate::INPUTS)
            .with_max_len(512)
            .for_each(|input: &[u8]| look(input))
    }};
}

/// Returns a changed example. The first byte of `how` selects the example, and each further four bytes one change.
pub fn changed(examples: &[Vec<u8>], how: &[u8]) -> Vec<u8> {
    let Some((&which, how)) = how.split_first() else { return Vec::new() };
    let mut bytes = examples[usize::from(which) % examples.len()].clone();
    for change in how.chunks_exact(4).take(8) {
        let &[kind, high, low, value] = change else { unreachable!("four bytes each") };
        let at = usize::from(u16::from_be_bytes([high, low])) % (bytes.len() + 1);
        let to = (at + usize::from(value) % 40).min(bytes.len());
        match kind % 8 {
            0 => bytes.insert(at, value),
            1 => _ = bytes.drain(at..to),
            2 => bytes.truncate(at),
            3 => {
                let again = bytes[at..to].to_vec();
                bytes.splice(at..at, again);
            }
            4 => bytes[at..to].fill(value),
            // Replace a byte by a digit, for examples that are texts.
            5 => bytes[at..].iter_mut().take(1).for_each(|byte| *byte = b'0' + value % 10),
            6 => bytes[at..].iter_mut().take(1).for_each(|byte| *byte ^= 1 << (value % 8)),
            _ => bytes[at..].iter_mut().take(1).for_each(|byte| *byte = value),
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_applies_to_the_selected_example() {
        let examples = [b"first".to_vec(), b"second".to_vec()];
        assert_eq!(changed(&examples, b""), b"");
        assert_eq!(changed(&examples, &[3]), b"second");
        assert_eq!(changed(&examples, &[0, 0, 0, 2, b'x']), b"fixrst");
        assert_eq!(changed(&examples, &[0, 1, 0, 1, 2, 5, 0, 0, 13]), b"3st");
        assert_eq!(changed(&examples, &[1, 2, 0, 6, 0, 3, 0, 3, 2]), b"seconond");
    }

    #[test]
    fn changed_examples_have_a_limited_length() {
        target!("changes", |input| {
            for example in [&b""[..], b"x", b"an example"] {
                assert!(changed(&[example.to_vec()], input).len() < 1 << 12);
            }
        });
    }
}
