//! `starfish completions`: what shells need to complete commands and options.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::failure::Result;

/// Print completions for a shell.
///
/// Put the output where your shell looks for completions; commands and options can then be completed by Tab.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The shell.
    shell: Shell,
}

const EXAMPLES: &str = "\
Examples:
  starfish completions bash > ~/.local/share/bash-completion/completions/starfish
  starfish completions fish > ~/.config/fish/completions/starfish.fish
  starfish completions zsh > ~/.zfunc/_starfish";

/// Runs the command, for the program that `C` describes.
pub(crate) fn run<C: CommandFactory>(arguments: Arguments) -> Result<()> {
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut C::command(), "starfish", &mut text);
    crate::local::print(String::from_utf8_lossy(&text).lines().map(str::to_owned))
}
