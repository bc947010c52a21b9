//! Sets the soname: the name by which programs find the shared library.

fn main() {
    // The number must change if programs must be recompiled.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libpdiol.so.0");
    println!("cargo::rerun-if-changed=build.rs");
}
