//! Sets the soname under which linked programs look for the shared library.

fn main() {
    // Change the number if programs must be recompiled.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libtlv.so.0");
    println!("cargo::rerun-if-changed=build.rs");
}
