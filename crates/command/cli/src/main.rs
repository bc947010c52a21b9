//! The program `starfish`: a parallel file system on real machines, and the same one simulated.
//!
//! This page shows every command. Each lives in a file of its own; the rest is what they share:
//!
//! - `command/`: the commands, and what they are told
//! - `simulation.rs`: experiments of a command, simulated on all processors
//! - `serving/`: agents and mounts that run for days: in the background, their logs and metrics
//! - `options/`: what options name, and what a shell offers for them
//! - `output/`: how results are told, as tables, CSV or JSON; dates and lengths of time
//! - `pointless.rs`, `overwritten.rs`: what is refused because it would do nothing, or would replace what it reads
//! - `mpi_library.rs`: what is put in front of a program's MPI
//!
//! Called by the name of one of `applications`, as `pfsgrep`, it is that program.
//!
//! Most of the work is done by other crates: `transfer` puts and gets files of agents, `studies` has benchmarks,
//! replays and advice, `account` says why a run took as long as it did, `doctor` what is wrong with agents and mounts.

mod command;
mod mpi_library;
mod options;
mod output;
mod overwritten;
mod pointless;
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

/// A simulated message makes and drops several small vectors; this allocator takes half the time of the C library's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Spread files over the disks of several machines, and try the same file system on a simulated one.
#[derive(Parser)]
#[command(name = "starfish", version, propagate_version = true, after_help = EXAMPLES)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  starfish demo                                    see it work, in less than a minute
  starfish agents up --local 4                     four agents on this computer, in the background
  starfish agent --root /disk1 --create --listen :7117
                                                   give a disk of this machine to the file system
  starfish put big.dat --agents a:7117,b:7117      spread a file over the disks of two agents
  starfish simulate --pattern rb                   read a file on a simulated machine of 1996
  starfish run plan.toml                           simulate all that a plan says

Exit codes: 0 done; 1 failed; 2 wrong usage; 130 interrupted.
The environment variable STARFISH_DRIVER (io_uring, polling) chooses how nodes talk to the kernel, and
STARFISH_SILENCE for how many seconds an agent that does not answer, or is being started again, is waited for (10).";

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

/// What the user says, or the end of the program with what is wrong about it.
fn arguments() -> (ArgMatches, Arguments) {
    // What begins with a dash and a digit is a number, and one that is wrong; a file may be called so.
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

/// The same error, with a range of numbers in words, and with the commands that copy files for the one of Unix.
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

/// The same error with the usage as it is if no environment variable is set: clap takes what one says for an option
/// that was written, and so for a part of the usage.
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
    let checked = pointless::refuse(&matches).and_then(|()| overwritten::refuse(&matches));
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
