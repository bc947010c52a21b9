//! Randomness: one stream for each component, all from one seed.
//!
//! A component names its stream (`"disk 3 phase"`). So an additional random number in one stream, or an additional
//! component, leaves all other streams unchanged.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// Stream of random numbers.
pub(crate) struct RandomStream(Box<ChaCha8Rng>);

impl RandomStream {
    /// Returns the stream called `name` of the run with this `seed`.
    pub(crate) fn new(seed: u64, name: &str) -> Self {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        key[8..16].copy_from_slice(&hash(name).to_le_bytes());
        RandomStream(Box::new(ChaCha8Rng::from_seed(key)))
    }

    /// Returns a number below `end`, uniform up to one part in 2^64 / `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.0.next_u64()) * u128::from(end)) >> 64) as u64
    }

    /// Returns a number from 0 to below 1.
    pub(crate) fn fraction(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Computes the FNV-1a hash. This simple hash suffices because the names are short, few and fixed, and the cipher of
/// the stream mixes the bits.
fn hash(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_streams_depend_on_name_and_seed_only() {
        let draw = |seed, name| RandomStream::new(seed, name).below(u64::MAX);
        assert_eq!(draw(1, "disk 1 phase"), draw(1, "disk 1 phase"));
        assert_ne!(draw(1, "disk 1 phase"), draw(1, "disk 2 phase"));
        assert_ne!(draw(1, "disk 1 phase"), draw(2, "disk 1 phase"));
    }
}
