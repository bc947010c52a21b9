//! Kills programs at random times, in rounds, and recognises the data that they wrote. Tests of other crates use this
//! file, too.

#![allow(dead_code, reason = "each test crate uses a part of it")]

use std::hash::{DefaultHasher, Hash, Hasher};
use std::process::Child;
use std::thread;
use std::time::Duration;

/// Returns the number in an environment variable, or `default` if the variable is unset. Panics if the value is not a
/// number.
pub(crate) fn setting(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |value| {
        value.parse().unwrap_or_else(|_| panic!("{variable}={value}: expected a number"))
    })
}

/// Number of rounds: `STARFISH_ROUNDS`, for thorough tests, or 30.
pub(crate) fn rounds() -> u64 {
    setting("STARFISH_ROUNDS", 30)
}

/// Returns a number below `below`. It is a hash of `numbers`, for example of the round and of the purpose.
pub(crate) fn draw(numbers: &[u64], below: u64) -> u64 {
    let mut hash = DefaultHasher::new();
    numbers.hash(&mut hash);
    hash.finish() % below
}

/// Returns pseudo-random bytes made from a seed. None is zero, so that they differ from unwritten bytes. A shorter
/// result is a prefix of a longer one with the same seed.
pub(crate) fn contents(bytes: usize, seed: u64) -> Vec<u8> {
    let mut state = seed;
    let next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8 | 1
    };
    std::iter::repeat_with(next).take(bytes).collect()
}

/// Kills a program after this time. Returns true if the program had succeeded before.
pub(crate) fn kill_after(mut program: Child, after: Duration) -> bool {
    thread::sleep(after);
    program.kill().expect("a child process of the test");
    program.wait().expect("a child process of the test").success()
}
