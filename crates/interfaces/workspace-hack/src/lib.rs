//! Features of crates that the whole workspace asks for: see `Cargo.toml`. There is no code.
