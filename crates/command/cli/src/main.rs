//! The program `starfish`: a parallel file system, on real machines and simulated.
//!
//! This file lists all commands. Each command has a separate file. All other files are shared code:
//!
//! - `command/`: the commands and their arguments
//! - `simulation.rs`: simulates the experiments of a command on all processors
//! - `serving/`: long-running agents and mounts: background processes, logs and metrics
//! - `options/`: shared options, and their values for completion
//! - `output/`: results as tables, CSV or JSON; dates
//! - `option_checks.rs`, `overwritten.rs`: reject options without effect, and outputs that would overwrite an input
//! - `mpi_library.rs`: the libraries preloaded for an MPI program
//!
//! If the program is started under the name of one of the `applications`, for example `pfsgrep`, it runs this
//! application.
//!
//! Other crates do most of the work. `transfer` copies files to and from agents, and `studies` runs benchmarks, replays
//! and advice. `account` explains the duration of a run, and `doctor` finds problems of agents and mounts.

mod command;
mod mpi_library;
mod option_checks;
mod options;
mod output;
mod overwritten;
mod serving;
mod simulation;

use std::error::Error;
use std::ffi::OsString;
use std::iter;
use std::process::ExitCode;

use clap::builder::Resettable;
use clap::error::{ContextKind, ContextValue};
use clap::{Arg, ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand};

use command::{
    advise, agent, agents, cat, completions, convert, demo, doctor, fsck, generate, get, key, ls, machines,
    merge, mkdir, mpi_preload, mpi_run, mv, patterns, put, reproduce, request_log, rm, run, simulate, stat,
    umount, view,
};
use command_line::failure::Result;
use command_line::say;

/// A simulated message allocates and frees several small vectors. This allocator takes half the time of the C library's
/// allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Stripe files over the disks of several computers, and run the same file system on simulated machines.
#[derive(Parser)]
#[command(name = "starfish", version, propagate_version = true, after_help = EXAMPLES)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  starfish demo                                    demonstration, in less than a minute
  starfish agents up --local 4                     four agents on this computer, in the background
  starfish agent --root /disk1 --create --listen :7117
                                                   serve a disk of this computer
  starfish put big.dat --agents a:7117,b:7117      stripe a file over the disks of two agents
  starfish simulate --pattern rb                   read a file on a simulated machine of 1996
  starfish run plan.toml                           simulate all trials of a plan

Exit codes: 0 done; 1 failed; 2 wrong usage; 130 interrupted.
The environment variable STARFISH_DRIVER (io_uring, polling) selects the interface of nodes to the kernel.
STARFISH_SILENCE is the time in seconds to wait for an agent that does not answer or is restarting (10).";

#[derive(Subcommand)]
enum Command {
    Agent(agent::Arguments),
    Agents(agents::Arguments),
    Put(put::Arguments),
    Get(get::Arguments),
    Cat(cat::Arguments),
    Ls(ls::Arguments),
    Stat(stat::Arguments),
    Rm(rm::Arguments),
    Mkdir(mkdir::Arguments),
    Mv(mv::Arguments),
    Mount(Box<command::mount::Arguments>),
    Umount(umount::Arguments),
    MpiRun(mpi_run::Arguments),
    MpiPreload(mpi_preload::Arguments),
    Key(key::Arguments),
    Doctor(doctor::Arguments),
    Fsck(fsck::Arguments),
    Convert(convert::Arguments),
    Demo(demo::Arguments),
    Simulate(simulate::Arguments),
    Merge(merge::Arguments),
    Run(run::Arguments),
    Reproduce(reproduce::Arguments),
    Replay(Box<command::replay::Arguments>),
    RequestLog(request_log::Arguments),
    View(view::Arguments),
    Trace(command::trace::Arguments),
    Machines(machines::Arguments),
    Patterns(patterns::Arguments),
    Advise(advise::Arguments),
    Bench(Box<command::bench::Arguments>),
    Completions(completions::Arguments),
    #[command(hide = true)]
    Generate(generate::Arguments),
}

/// Parses the command line. Ends the program with a message if the command line is invalid.
fn arguments() -> (ArgMatches, Arguments) {
    // Parse a dash followed by a digit as an (invalid) number, not as an option. The usual rule remains for file names.
    let numbers = |argument: Arg| {
        let takes_number = argument.get_action().takes_values() && !argument.is_positional();
        if takes_number { argument.allow_negative_numbers(true) } else { argument }
    };
    let mut command =
        command_line::fitted(Arguments::command()).mut_subcommands(|command| command.mut_args(numbers));
    let mut words = std::env::args_os();
    let program = words.next().unwrap_or_else(|| "starfish".into());
    let given = iter::once(program).chain(command::mount::given(words.collect()));
    let given: Vec<OsString> = given.collect();
    let parsed = command.try_get_matches_from_mut(&given).and_then(|matches| {
        let arguments = Arguments::from_arg_matches(&matches).map_err(|error| error.format(&mut command))?;
        Ok((matches, arguments))
    });
    parsed.unwrap_or_else(|error| in_words(with_plain_usage(error, command.clone(), &given), &command).exit())
}

/// Rewords an error: describes a range of numbers in words, and suggests `put` and `get` for `cp`.
fn in_words(mut error: clap::Error, command: &clap::Command) -> clap::Error {
    if error.get(ContextKind::InvalidSubcommand) == Some(&ContextValue::String("cp".into())) {
        let copying = ["put", "get"].map(str::to_owned).to_vec();
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(copying));
    }
    let cause = error.source().map(ToString::to_string).unwrap_or_default();
    let Some((value, range)) = cause.split_once(" is not in ") else { return error };
    let expected = match range.split_once("..=") {
        Some((first, last)) => format!("expected a number from {first} to {last}"),
        None => format!("expected at least {}", range.trim_end_matches("..")),
    };
    let option = error.get(ContextKind::InvalidArg).map(ToString::to_string).unwrap_or_default();
    let message = format!("invalid value '{value}' for '{option}': {expected}\n");
    clap::Error::raw(error.kind(), message).with_cmd(command)
}

/// Returns the error with the usage text that clap prints without environment variables. If a variable sets an option,
/// clap treats the option as written on the command line, and includes it in the usage.
fn with_plain_usage(error: clap::Error, command: clap::Command, given: &[OsString]) -> clap::Error {
    let plain = without_variables(command).try_get_matches_from(given);
    plain.err().filter(|plain| error.use_stderr() && plain.kind() == error.kind()).unwrap_or(error)
}

fn without_variables(command: clap::Command) -> clap::Command {
    let command = command.mut_args(|argument| argument.env(Resettable::Reset));
    command.mut_subcommands(without_variables)
}

fn main() -> ExitCode {
    if let Some(main) = applications::called() {
        return main();
    }
    command_line::complete(|| options::values::known(Arguments::command()));
    let (matches, arguments) = arguments();
    let checked = option_checks::refuse(&matches).and_then(|()| overwritten::refuse(&matches));
    match checked.and_then(|()| run(arguments.command)) {
        Ok(()) => transfer::interrupt::code_of_success(),
        Err(failure) if failure.is_broken_pipe() => ExitCode::SUCCESS,
        Err(failure) if failure.is_logged() => failure.code(),
        Err(failure) => {
            interruption::wait_if_ending();
            say!("starfish: {failure}");
            failure.code()
        }
    }
}

fn run(command: Command) -> Result<()> {
    match command {
        Command::Agent(arguments) => agent::run(arguments),
        Command::Agents(arguments) => agents::run(arguments),
        Command::Put(arguments) => put::run(arguments),
        Command::Get(arguments) => get::run(arguments),
        Command::Cat(arguments) => cat::run(arguments),
        Command::Ls(arguments) => ls::run(arguments),
        Command::Stat(arguments) => stat::run(arguments),
        Command::Rm(arguments) => rm::run(arguments),
        Command::Mkdir(arguments) => mkdir::run(arguments),
        Command::Mv(arguments) => mv::run(arguments),
        Command::Mount(arguments) => command::mount::run(*arguments),
        Command::Umount(arguments) => umount::run(arguments),
        Command::MpiRun(arguments) => mpi_run::run(arguments),
        Command::MpiPreload(arguments) => mpi_preload::run(arguments),
        Command::Key(arguments) => key::run(arguments),
        Command::Doctor(arguments) => doctor::run(arguments),
        Command::Fsck(arguments) => fsck::run(arguments),
        Command::Convert(arguments) => convert::run(arguments),
        Command::Demo(arguments) => demo::run(arguments),
        Command::Simulate(arguments) => simulate::run(arguments),
        Command::Merge(arguments) => merge::run(arguments),
        Command::Run(arguments) => run::run(arguments),
        Command::Reproduce(arguments) => reproduce::run(arguments),
        Command::Replay(arguments) => command::replay::run(*arguments),
        Command::RequestLog(arguments) => request_log::run(arguments),
        Command::View(arguments) => view::run(arguments),
        Command::Trace(arguments) => command::trace::run(arguments),
        Command::Machines(arguments) => machines::run(arguments),
        Command::Patterns(arguments) => patterns::run(arguments),
        Command::Advise(arguments) => advise::run(arguments),
        Command::Bench(arguments) => command::bench::run(*arguments),
        Command::Completions(arguments) => completions::run(arguments),
        Command::Generate(arguments) => generate::run(Arguments::command(), arguments),
    }
}
