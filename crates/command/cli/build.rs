//! Builds the program anew when a file is added to a study that is built in: the compiler only watches those it
//! knows.

fn main() {
    println!("cargo::rerun-if-changed=../../../experiments/starfish-3.0");
    println!("cargo::rerun-if-changed=../../../experiments/starfish-3.0/published");
}
