//! Sets the soname of the shared library by which the shims load it.

fn main() {
    // Raise this number if shims must be recompiled.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libstarfish_mpi_io.so.0");
    println!("cargo::rerun-if-changed=build.rs");
}
