//! Pseudorandom numbers from a seed, the same everywhere.

/// Small stream of pseudorandom numbers.
#[derive(Clone)]
pub(crate) struct Draw(u64);

impl Draw {
    /// Returns the stream of a seed. Streams of adjacent seeds are unrelated.
    pub(crate) fn of(seed: u64) -> Self {
        Draw(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// Returns a number below `limit`, which must be less than 2^31.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    pub(crate) fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }
}
