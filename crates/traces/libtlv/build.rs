//! Names the shared library as programs that are linked with it will look for it.

fn main() {
    // The number changes when programs have to be compiled anew.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libtlv.so.0");
    println!("cargo::rerun-if-changed=build.rs");
}
