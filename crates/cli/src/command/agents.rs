//! `starfish agents`: a set of agents, started, looked at and stopped together.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use serde::Serialize;

use crate::agent_set::at_once;
use crate::agent_set::host::{Host, SshArgs};
use crate::agent_set::hosts::{self, Wanted};
use crate::agent_set::process::Stopped;
use crate::agent_set::record::{self, Record, Started, State};
use crate::agent_set::start::{Start, Starting};
use crate::command::agent::load_model;
use crate::failure::{Failure, Result};
use crate::local;
use crate::store::agents::AgentsArgs;
use crate::store::session;
use crate::table::Table;

/// Start, look at and stop a set of agents, on this computer or over ssh on others.
///
/// What is started is written down in a state directory, ~/.local/state/starfish, so that other commands find it:
/// after `starfish agents up`, `starfish put` needs no --agents. The agents' files stay when they stop, and are there
/// again when they are started again.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

const EXAMPLES: &str = "\
Examples:
  starfish agents up --local 4                                four agents on this computer
  starfish agents up --local 4 --disk-model streaming-20      with disks slowed down
  starfish agents up --hosts hosts.txt                        one on each host, over ssh
  starfish agents up --hosts hosts.txt -- --cache 1GiB        with more options of `starfish agent`
  eval \"$(starfish agents up --local 4)\"                      and STARFISH_AGENTS set in this shell
  starfish agents status
  starfish agents down

A hosts file has one agent a line, HOST[:PORT] [ROOT...], and comments after #:
  node1                        port 7117, its disk in ~/.local/state/starfish there
  mary@node2:7118 /disk1 /disk2";

/// What to do with the set.
#[derive(Subcommand)]
enum Action {
    /// Start agents in the background. Those that run already are left as they are.
    Up(UpArguments),
    /// Stop all agents of the set. Their files stay.
    Down(CommonArguments),
    /// Show which agents of the set run. Exits with 1 if one does not.
    Status(StatusArguments),
}

/// What all of these share.
#[derive(Args)]
struct CommonArguments {
    /// State directory, if not ~/.local/state/starfish. One directory holds one set.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,

    #[command(flatten)]
    ssh: SshArgs,
}

#[derive(Args)]
struct UpArguments {
    /// Start so many agents on this computer, at free ports of the loopback network.
    #[arg(long, value_name = "N", required_unless_present = "hosts", conflicts_with = "hosts",
        value_parser = clap::value_parser!(u32).range(1..=1024))]
    local: Option<u32>,

    /// Start the agents that this file names, over ssh.
    #[arg(long, value_name = "FILE")]
    hosts: Option<PathBuf>,

    /// Make the disks as slow as this model: a name that `starfish machines` lists, or a TOML file.
    #[arg(long, value_name = "NAME")]
    disk_model: Option<String>,

    /// The program on other hosts.
    #[arg(long, value_name = "PATH", default_value = "starfish")]
    program: String,

    #[command(flatten)]
    common: CommonArguments,

    /// More options of `starfish agent`, for all of them.
    #[arg(last = true, value_name = "OPTION")]
    options: Vec<String>,
}

#[derive(Args)]
struct StatusArguments {
    #[command(flatten)]
    common: CommonArguments,

    /// How to print it.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

/// How a status is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A table for people.
    Table,
    /// One JSON array.
    Json,
}

/// Runs the command.
pub(crate) fn run(arguments: Arguments) -> Result<()> {
    match arguments.action {
        Action::Up(arguments) => up(&arguments),
        Action::Down(arguments) => down(&arguments),
        Action::Status(arguments) => status(&arguments),
    }
}

fn up(arguments: &UpArguments) -> Result<()> {
    let wanted = match (&arguments.hosts, arguments.local) {
        (Some(file), _) => hosts::read(file)?,
        (None, count) => hosts::local(count.unwrap_or(1)),
    };
    let mut options = arguments.options.clone();
    if let Some(model) = &arguments.disk_model {
        // A mistake is told once, and before anything is started.
        load_model(model)?;
        options.extend(["--disk-model".to_owned(), model.clone()]);
    }
    let state = State::take(record::directory(arguments.common.dir.as_deref())?)?;
    let before = state.read()?;
    refuse_other_kind(&before, &wanted, state.directory())?;
    let (running, gone) = running(&before, &arguments.common.ssh)?;
    let runs = |wanted: &&Wanted| running.iter().any(|agent| agent.name == wanted.name);
    let missing: Vec<Wanted> = wanted.iter().filter(|wanted| !runs(wanted)).cloned().collect();
    let started = start(&missing, &gone, &options, arguments, state.directory())?;
    let record = ordered(&wanted, running, &started);
    let addresses: Vec<String> = record.agents.iter().map(|agent| agent.address.clone()).collect();
    check(&addresses)?;
    state.write(&record)?;
    let count = started.len();
    started.into_iter().try_for_each(Starting::stay)?;
    tell(&record, count);
    tell_if_not_found(&addresses);
    local::print([format!("export STARFISH_AGENTS={}", addresses.join(","))])
}

/// The agents of a record that run, and those that do not. Fails if a host cannot be asked.
fn running(record: &Record, ssh: &SshArgs) -> Result<(Vec<Started>, Vec<Started>)> {
    let runs = at_once(&record.agents, |agent| agent.process.runs(Host::new(agent.host.as_deref(), ssh)));
    let (mut running, mut gone) = (Vec::new(), Vec::new());
    for (agent, runs) in record.agents.iter().zip(runs) {
        if runs? { running.push(agent.clone()) } else { gone.push(agent.clone()) }
    }
    Ok((running, gone))
}

/// A set is of this computer or of hosts: mixed, files would lie where nobody expects them.
fn refuse_other_kind(before: &Record, wanted: &[Wanted], directory: &Path) -> Result<()> {
    let is_local = wanted.iter().all(|wanted| wanted.host.is_none());
    match before.agents.iter().find(|agent| agent.host.is_none() != is_local) {
        None => Ok(()),
        Some(agent) => {
            let why = format!("another set was started from there, with {} at {}", agent.name, agent.address);
            let failure = Failure::new(directory.display().to_string(), why);
            Err(failure.remedy("Stop it with `starfish agents down`, or keep this one apart with --dir DIR."))
        }
    }
}

/// Starts what is missing, all at once. They end again unless they are told to stay.
fn start(
    missing: &[Wanted],
    before: &[Started],
    options: &[String],
    arguments: &UpArguments,
    directory: &Path,
) -> Result<Vec<Starting>> {
    let program = std::env::current_exe().map_err(|error| Failure::new("finding this program", error))?;
    let start = Start { program: &program, remote_program: &arguments.program, directory, options };
    let outcomes = at_once(missing, |wanted| {
        // Whoever has exported the address of an agent that died finds the next one there.
        let port = before.iter().find(|agent| agent.name == wanted.name).and_then(port);
        start.start(wanted, Host::new(wanted.host.as_deref(), &arguments.common.ssh), port)
    });
    all_or_failures(outcomes)
}

fn port(agent: &Started) -> Option<u16> {
    agent.address.rsplit_once(':')?.1.parse().ok()
}

/// All of them, or the last failure; the others are told before.
fn all_or_failures<T>(outcomes: Vec<Result<T>>) -> Result<Vec<T>> {
    let (mut all, mut failures) = (Vec::new(), Vec::new());
    for outcome in outcomes {
        match outcome {
            Ok(outcome) => all.push(outcome),
            Err(failure) => failures.push(failure),
        }
    }
    let Some(last) = failures.pop() else { return Ok(all) };
    failures.iter().for_each(|failure| eprintln!("{failure}"));
    Err(last)
}

/// What is to be recorded: what is wanted, in that order, and after it what runs besides.
fn ordered(wanted: &[Wanted], running: Vec<Started>, started: &[Starting]) -> Record {
    let mut agents = running;
    agents.extend(started.iter().map(|starting| starting.started.clone()));
    let place = |agent: &Started| wanted.iter().position(|wanted| wanted.name == agent.name);
    agents.sort_by_key(|agent| place(agent).unwrap_or(wanted.len()));
    Record { agents }
}

/// Connects to all of them as any client would. That tells whether they can be reached and are of this version.
fn check(addresses: &[String]) -> Result<()> {
    let agents = AgentsArgs::of(addresses.to_vec()).find()?;
    session::run(agents, |_| async { Ok(()) })
}

fn tell(record: &Record, started: usize) {
    for agent in &record.agents {
        eprintln!("{}: {}, {}", agent.name, agent.address, agent.disks);
    }
    match (started, record.agents.len() - started) {
        (0, before) => eprintln!("All {before} run already, as they were started."),
        (started, 0) => eprintln!("Started {started}. `starfish agents down` stops them."),
        (started, before) => eprintln!("Started {started}; {before} ran already."),
    }
}

/// Says so if programs that are told nothing more use other agents, or none.
fn tell_if_not_found(addresses: &[String]) {
    let found = pdiol::agents::find().unwrap_or_default();
    if found.iter().map(|agent| &agent.name).ne(addresses) {
        let names: Vec<&str> = found.iter().map(|agent| &*agent.name).collect();
        let others = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        eprintln!("Programs started here find {others} instead, unless STARFISH_AGENTS names these.");
    }
}

fn down(arguments: &CommonArguments) -> Result<()> {
    let directory = record::directory(arguments.dir.as_deref())?;
    if record::read(&directory)?.agents.is_empty() {
        eprintln!("No agents have been started from {}.", directory.display());
        return Ok(());
    }
    let state = State::take(directory)?;
    let mut record = state.read()?;
    let outcomes = at_once(&record.agents, |agent| stop(agent, &arguments.ssh));
    let left = record.agents.iter().zip(&outcomes).filter(|(_, outcome)| outcome.is_err());
    record.agents = left.map(|(agent, _)| agent.clone()).collect();
    state.write(&record)?;
    let stopped = all_or_failures(outcomes)?;
    eprintln!("Stopped {}. Their files stay.", stopped.iter().filter(|&&now| now).count());
    Ok(())
}

/// Stops an agent; whether it ran until now.
fn stop(agent: &Started, ssh: &SshArgs) -> Result<bool> {
    match agent.process.stop(Host::new(agent.host.as_deref(), ssh))? {
        Stopped::Now => Ok(true),
        Stopped::Before => {
            eprintln!("{}: {} had ended before", agent.name, agent.address);
            Ok(false)
        }
        Stopped::NotYet => {
            let number = agent.process.number;
            let failure = Failure::new(&agent.name, format!("process {number} does not end"));
            Err(failure
                .remedy("Its disk may be slow or hang: wait and try again, or end it with kill -9 there."))
        }
    }
}

/// An agent as a status shows it.
#[derive(Serialize)]
struct Row<'a> {
    agent: &'a str,
    address: &'a str,
    process: u32,
    state: &'static str,
    disks: &'a str,
    /// Why nobody knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

fn status(arguments: &StatusArguments) -> Result<()> {
    let directory = record::directory(arguments.common.dir.as_deref())?;
    let record = record::read(&directory)?;
    let rows = at_once(&record.agents, |agent| row(agent, &arguments.common.ssh));
    match arguments.format {
        Format::Json => {
            let text =
                serde_json::to_string_pretty(&rows).map_err(|error| Failure::new("writing JSON", error))?;
            local::print([text])?;
        }
        Format::Table if rows.is_empty() => {
            local::print([format!("No agents have been started from {}.", directory.display())])?;
        }
        Format::Table => print_table(&rows)?,
    }
    match rows.iter().filter(|row| row.state != "running").count() {
        0 => Ok(()),
        count => {
            let failure = Failure::new("agents", format!("{count} of {} do not run", rows.len()));
            Err(failure
                .remedy("`starfish agents up`, with the options of the first time, starts them again."))
        }
    }
}

fn row<'a>(agent: &'a Started, ssh: &SshArgs) -> Row<'a> {
    let runs = agent.process.runs(Host::new(agent.host.as_deref(), ssh));
    let (state, why) = match runs {
        Ok(true) => ("running", None),
        Ok(false) => ("gone", None),
        Err(failure) => ("unknown", Some(failure.to_string())),
    };
    let Started { name, address, disks, process, .. } = agent;
    Row { agent: name, address, process: process.number, state, disks, why }
}

fn print_table(rows: &[Row<'_>]) -> Result<()> {
    let mut table = Table::new(5);
    table.row(["agent", "address", "process", "state", "disks"]);
    for row in rows {
        table.row([row.agent, row.address, &row.process.to_string(), row.state, row.disks]);
    }
    let whys = rows.iter().filter_map(|row| row.why.clone());
    local::print(table.lines().chain(whys))
}
