//! Rebuilds the program if a file is added to a built-in study, because the compiler watches only files that it already
//! knows.

fn main() {
    println!("cargo::rerun-if-changed=../../../experiments/starfish-3.0");
    println!("cargo::rerun-if-changed=../../../experiments/starfish-3.0/published");
}
