//! `starfish completions`: scripts with which shells complete command lines.

use clap::Args;
use clap::builder::PossibleValuesParser;
use command_line::failure::{Failure, Result};
use transfer::local;

/// Print the script with which a shell completes command lines on Tab.
///
/// The shell then requests completions from the program: commands and options, and values such as machines, patterns
/// and names of files on the agents. `make install` installs the scripts for all shells.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The shell.
    #[arg(value_name = "SHELL", value_parser = PossibleValuesParser::new(command_line::SHELLS))]
    shell: String,

    /// The program: starfish, or a program installed with it.
    #[arg(value_name = "PROGRAM", default_value = "starfish")]
    program: String,
}

const EXAMPLES: &str = "\
Examples:
  starfish completions bash > ~/.local/share/bash-completion/completions/starfish
  starfish completions fish > ~/.config/fish/completions/starfish.fish
  starfish completions zsh > ~/.zfunc/_starfish
  starfish completions bash pfsgrep > ~/.local/share/bash-completion/completions/pfsgrep";

/// Runs the command.
pub(crate) fn run(arguments: Arguments) -> Result<()> {
    let program = &arguments.program;
    let known: Vec<String> = applications::commands().iter().map(|known| known.get_name().into()).collect();
    if program != "starfish" && !known.contains(program) {
        let remedy = format!("Name starfish, {}.", known.join(", "));
        return Err(
            Failure::usage(program, "no program of this name is installed with starfish").remedy(remedy)
        );
    }
    let text = command_line::registration(&arguments.shell, program);
    let text = text.ok_or_else(|| Failure::usage(&arguments.shell, "this shell is not supported"))?;
    local::print(text.lines().map(str::to_owned))
}
