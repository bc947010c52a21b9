//! Tests of the file system on both machines: that it keeps its promises (`fs::conformance`), and what holds on one of
//! the machines alone.
//!
//! They stand above the crates that run the file system on a machine for others, `node` and `experiment`, and not
//! beside the machines: what these two have compiled for a machine is linked and not compiled once more, and after a
//! change of `fs` the tests of the machines stay as they are.
