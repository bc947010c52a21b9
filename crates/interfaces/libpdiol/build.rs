//! Sets the name by which programs linked with the shared library look for it.

fn main() {
    // The number changes if programs must be recompiled.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libpdiol.so.0");
    println!("cargo::rerun-if-changed=build.rs");
}
