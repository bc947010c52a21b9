//! Hash of a number, the same on every computer. Used for the contents of test files, and for random numbers from a
//! seed.

/// Hashes a number by the finishing steps of SplitMix64 (Steele, Lea and Flood 2014): every bit of the result depends
/// on every bit of the number.
pub fn mix(value: u64) -> u64 {
    let mut mixed = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}
