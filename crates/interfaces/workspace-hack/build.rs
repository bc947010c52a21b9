//! Cargo looks at build dependencies where there is a build script, and nowhere else.

fn main() {}
