//! `starfish agents`: starts, inspects and stops a set of agents.

use std::collections::BTreeSet;
use std::net::ToSocketAddrs;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use command_line::TextTable;
use command_line::failure::{Failure, Result};
use command_line::say;
use command_line::visible;
use doctor::mounts::{self, MountFinding};
use node::key;
use serde::Serialize;

use crate::options::{self, agents::KeyArgs};
use crate::output::row_format::print_json;
use agent_set::at_once;
use agent_set::host::{Host, SshArgs, quoted, quoted_if_need_be};
use agent_set::hosts::{self, Wanted};
use agent_set::process::Stopped;
use agent_set::record::{self, Record, Started, State};
use agent_set::start::{KeyFile, Start, Starting};
use studies::described::load_model;
use transfer::namespace::Namespace;
use transfer::{cluster::Cluster, local};

/// Start, inspect and stop a set of agents, on this computer or, over ssh, on others.
///
/// The set is recorded in a state directory, ~/.local/state/starfish, where other commands find it: after `starfish
/// agents up`, `starfish put` needs no --agents. A stopped set keeps its files, ports and options; `starfish agents up`
/// without options starts it again.
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
  starfish agents up --local 4 -- --metrics +2000             each with metrics for Prometheus
  eval \"$(starfish agents up --local 4)\"                      and STARFISH_AGENTS set in this shell
  starfish agents status
  starfish agents down
  starfish agents up                                          the same set again

A hosts file has one agent in each line, HOST[:PORT] [ROOT...], and comments after #:
  node1                        port 7117, disk in its ~/.local/state/starfish
  mary@node2:7118 /disk1 /disk2";

/// Action on the set.
#[derive(Subcommand)]
enum Action {
    /// Start agents in the background: new ones, or the last set again. Running agents are not restarted.
    Up(UpArguments),
    /// Stop all agents of the set. Their files stay.
    Down(CommonArguments),
    /// Show which agents of the set run and answer, and the last lines of their logs. Exit code 1 if an agent does not
    /// run or answer.
    Status(StatusArguments),
}

/// Options common to all actions.
#[derive(Args)]
struct CommonArguments {
    /// State directory, which holds one set [default: ~/.local/state/starfish].
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,

    #[command(flatten)]
    ssh: SshArgs,
}

#[derive(Args)]
struct UpArguments {
    /// Number of agents to run on this computer, on loopback ports [default without --hosts: the last set].
    #[arg(long, value_name = "N", conflicts_with = "hosts", value_parser = clap::value_parser!(u32).range(1..=1024))]
    local: Option<u32>,

    /// Start the agents named in this file, over ssh.
    #[arg(long, value_name = "FILE")]
    hosts: Option<PathBuf>,

    /// Make the disks as slow as this model: a name that `starfish machines` lists, or a TOML file.
    #[arg(long, value_name = "NAME")]
    disk_model: Option<String>,

    /// Path of the program on other hosts [default: starfish].
    #[arg(long, value_name = "PATH")]
    program: Option<String>,

    /// Replace the last set by the given agents, even if the new set is smaller or has other options.
    ///
    /// Files with a stripe on an omitted agent cannot be read until that agent runs again. Its disk is not changed.
    #[arg(long)]
    anew: bool,

    /// Accept new disks: directories that are empty, or missing and then created. Agents that are new in the set always
    /// accept new disks.
    ///
    /// Files with a stripe on a lost disk cannot be read.
    #[arg(long)]
    create: bool,

    #[command(flatten)]
    key: KeyArgs,

    #[command(flatten)]
    common: CommonArguments,

    /// More options of `starfish agent`, for all agents of the set [default: the options of the last set].
    #[arg(last = true, value_name = "OPTION")]
    options: Vec<String>,
}

#[derive(Args)]
struct StatusArguments {
    #[command(flatten)]
    common: CommonArguments,

    /// Output format.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

/// Output format of `status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A table as text.
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

/// Returns the help of `starfish agent` if `options` request it, because an agent that prints help would not start.
fn help_of_agents(options: &[String]) -> Option<clap::Error> {
    let agent = super::agent::Arguments::augment_args(clap::Command::new("starfish agent"));
    let words = std::iter::once("starfish agent").chain(options.iter().map(String::as_str));
    let refused = agent.try_get_matches_from(words).err();
    refused.filter(|refused| refused.kind() == clap::error::ErrorKind::DisplayHelp)
}

fn up(arguments: &UpArguments) -> Result<()> {
    if let Some(help) = help_of_agents(&arguments.options) {
        return local::print([help.to_string()]);
    }
    let named = match (&arguments.hosts, arguments.local) {
        (Some(file), _) => Some(reachable(hosts::read(file)?, &arguments.common.ssh)),
        (None, count) => count.map(hosts::local),
    };
    if let Some(model) = &arguments.disk_model {
        // Check the model here, so that an error is reported only once, and before any agent starts.
        load_model(model)?;
    }
    let common = &arguments.common;
    let state = State::take(record::directory(common.dir.as_deref())?)?;
    let before = state.read()?;
    let key = key_of(arguments, &before)?;
    let wanted = named.unwrap_or_else(|| before.agents.iter().map(Started::wanted).collect());
    if wanted.is_empty() {
        let why = "no set of agents was started from this directory before";
        let failure = Failure::usage(state.directory().display().to_string(), why);
        return Err(failure.remedy("Give the agents to start: --local N, or --hosts FILE."));
    }
    let (running, gone) = running(&before, &common.ssh)?;
    let (left_out, running) = running.into_iter().partition(|agent| is_left_out(agent, &wanted));
    let mut plan = Plan { before, wanted, running, gone, left_out, key, options: Vec::new(), program: None };
    plan.program = arguments.program.clone().or_else(|| plan.before.program.clone());
    plan.refuse_other_kind(arguments, state.directory())?;
    plan.options = plan.options(arguments)?;
    plan.refuse_other_key(arguments)?;
    plan.refuse_to_lose_files(arguments, state.directory())?;
    let missing: Vec<Wanted> = plan.wanted.iter().filter(|wanted| !plan.runs(wanted)).cloned().collect();
    let outcomes = plan.start(&missing, common, state.directory(), arguments.create)?;
    let (started, not_started) = plan.those_started(&missing, outcomes)?;
    let stopped = at_once(&plan.left_out, |agent| stop(agent, &common.ssh));
    all_or_failures(stopped)?;
    let record = plan.record(&started);
    let running = record.agents.iter().filter(|agent| agent.process.is_some());
    check(&cluster_of(addresses(running), record.key.as_ref())?)?;
    state.write(&record)?;
    let count = started.len();
    let addresses = addresses(&record.agents);
    started.into_iter().try_for_each(|agent| agent.stay(&addresses))?;
    plan.print_report(&record, count, common);
    warn_if_not_found(&addresses);
    local::print([format!("export STARFISH_AGENTS={}", addresses.join(","))])?;
    match do_not(not_started.len(), record.agents.len(), "run") {
        None => Ok(()),
        Some(why) => Err(Failure::new("agents up", format!("{why}: {}", not_started.join(", ")))),
    }
}

/// Returns these agents. For a host name that the system cannot resolve, uses the address in ssh's configuration.
fn reachable(mut agents: Vec<Wanted>, ssh: &SshArgs) -> Vec<Wanted> {
    let configured = at_once(&agents, |agent| {
        let host = agent.address.trim_matches(['[', ']']);
        let is_known = (host, agent.port.unwrap_or(hosts::PORT)).to_socket_addrs().is_ok();
        if is_known { None } else { Host::new(agent.host.as_deref(), ssh).configured_address() }
    });
    for (agent, address) in agents.iter_mut().zip(configured) {
        agent.address = address.unwrap_or_else(|| agent.address.clone());
    }
    agents
}

/// Returns the agents at these addresses, with the given file of the cluster key, or else the default file.
fn cluster_of(addresses: Vec<String>, key: Option<&PathBuf>) -> Result<Cluster> {
    options::agents::named(addresses, Cluster { key_file: key.cloned(), ..Cluster::default() })
}

fn addresses<'a>(agents: impl IntoIterator<Item = &'a Started>) -> Vec<String> {
    agents.into_iter().map(|agent| agent.address.clone()).collect()
}

/// Returns the file of the cluster key that the command or the environment names, or else the file that the set uses.
fn key_of(arguments: &UpArguments, before: &Record) -> Result<Option<PathBuf>> {
    let named = arguments.key.file();
    match named {
        // Absolute, because the next command may run in another directory.
        Some(path) => {
            let absolute = std::path::absolute(path);
            absolute.map(Some).map_err(|error| Failure::new(path.display().to_string(), error))
        }
        None => Ok(before.key.clone().filter(|_| !arguments.anew)),
    }
}

/// Returns two lists: the agents of a record that run, and those that do not. Fails if a host does not answer.
fn running(record: &Record, ssh: &SshArgs) -> Result<(Vec<Started>, Vec<Started>)> {
    let runs = at_once(&record.agents, |agent| runs(agent, ssh));
    let (mut running, mut gone) = (Vec::new(), Vec::new());
    for (agent, runs) in record.agents.iter().zip(runs) {
        if runs? { running.push(agent.clone()) } else { gone.push(agent.clone()) }
    }
    Ok((running, gone))
}

/// Returns true if an agent runs. A stopped agent has no process.
fn runs(agent: &Started, ssh: &SshArgs) -> Result<bool> {
    agent.process.map_or(Ok(false), |process| process.runs(Host::new(agent.host.as_deref(), ssh)))
}

fn is_left_out(agent: &Started, wanted: &[Wanted]) -> bool {
    wanted.iter().all(|wanted| wanted.name != agent.name)
}

/// Previous and requested state of the set.
struct Plan {
    before: Record,
    /// Agents to run.
    wanted: Vec<Wanted>,
    /// Members of the set that run and are requested.
    running: Vec<Started>,
    /// Members of the set that do not run.
    gone: Vec<Started>,
    /// Members of the set that run but are no longer requested.
    left_out: Vec<Started>,
    /// File of the cluster key, unless it is the default file.
    key: Option<PathBuf>,
    options: Vec<String>,
    /// Program on other hosts.
    program: Option<String>,
}

impl Plan {
    fn runs(&self, wanted: &Wanted) -> bool {
        self.running.iter().any(|agent| agent.name == wanted.name)
    }

    /// Fails if the set would contain both agents on this computer and agents on other hosts, because users would not
    /// expect where files are.
    fn refuse_other_kind(&self, arguments: &UpArguments, directory: &Path) -> Result<()> {
        let is_local = self.wanted.iter().all(|wanted| wanted.host.is_none());
        let other = self.before.agents.iter().find(|agent| agent.host.is_none() != is_local);
        let Some(agent) = other.filter(|_| !arguments.anew || !self.left_out.is_empty()) else {
            return Ok(());
        };
        let why = format!("it already holds a different set, with {} at {}", agent.name, agent.address);
        let failure = Failure::new(directory.display().to_string(), why);
        let (down, up) = (arguments.common.command("down"), "`--anew` then replaces it");
        Err(failure.remedy(format!(
            "Give the new set another directory with --dir DIR. Or stop the other set with `{down}`; {up}."
        )))
    }

    /// Returns the options of the agents: those given now, or else those of the set. Fails if they differ from the
    /// options of running agents.
    fn options(&self, arguments: &UpArguments) -> Result<Vec<String>> {
        let mut given = arguments.options.clone();
        given
            .extend(arguments.disk_model.iter().flat_map(|model| ["--disk-model".to_owned(), model.clone()]));
        let before = &self.before.options;
        if given.is_empty() && !arguments.anew {
            return Ok(before.clone());
        }
        if !self.running.is_empty() && given != *before {
            let why =
                format!("the set runs with {}, and this command has {}", in_words(before), in_words(&given));
            let down = arguments.common.command("down");
            return Err(Failure::new("agents up", why)
                .remedy(format!("Stop the set with `{down}`, then start it with the new options.")));
        }
        Ok(given)
    }

    /// Fails if the requested key differs from the key of running agents, because all agents of a set need the same
    /// key.
    fn refuse_other_key(&self, arguments: &UpArguments) -> Result<()> {
        let (now, before) = (key::path(self.key.as_deref())?, key::path(self.before.key.as_deref())?);
        if self.running.is_empty() || now == before {
            return Ok(());
        }
        let [now, before] = [now.display(), before.display()];
        let why = format!("the running set uses the key {before}, and this command uses {now}");
        let down = arguments.common.command("down");
        Err(Failure::new("agents up", why)
            .remedy(format!("Stop the set with `{down}`, then start it with the new key.")))
    }

    /// Fails if files have stripes on agents that are left out of the set. To list their files, it starts stopped
    /// agents temporarily.
    fn refuse_to_lose_files(&self, arguments: &UpArguments, directory: &Path) -> Result<()> {
        let asleep: Vec<&Started> =
            self.gone.iter().filter(|agent| is_left_out(agent, &self.wanted)).collect();
        if arguments.anew || asleep.is_empty() && self.left_out.is_empty() {
            return Ok(());
        }
        let asleep: Vec<Wanted> = asleep.into_iter().map(Started::wanted).collect();
        let woken = all_or_failures(self.start(&asleep, &arguments.common, directory, false)?)?;
        let all = self.left_out.iter().chain(woken.iter().map(|starting| &starting.started));
        let (names, addresses): (Vec<&str>, Vec<String>) =
            all.map(|agent| (&*agent.name, agent.address.clone())).unzip();
        let left_out = names.join(", ");
        let why = match files_on(&cluster_of(addresses, self.key.as_ref())?)? {
            FilesOnAgents { keeps_names: true, .. } => {
                format!("{left_out} is the metadata server, with the names of all files")
            }
            FilesOnAgents { count: 0, .. } => return Ok(()),
            FilesOnAgents { count: 1, .. } => format!("1 file has a stripe on {left_out}"),
            FilesOnAgents { count, .. } => format!("{count} files have a stripe on {left_out}"),
        };
        let up = arguments.common.command("up");
        Err(Failure::new("fewer agents than before", why).remedy(format!(
            "`{up}` starts all {} agents. Or get these files and remove them first: with --anew they cannot be \
             read. The contents of removed files are freed within a minute, or by `starfish fsck --repair`.",
            self.before.agents.len()
        )))
    }

    /// Starts these agents in parallel, and returns the outcome for each. An agent ends again unless it is detached
    /// later. Previous members must still have their disks, unless `create` permits new ones.
    fn start(
        &self,
        missing: &[Wanted],
        common: &CommonArguments,
        directory: &Path,
        create: bool,
    ) -> Result<Vec<Result<Starting>>> {
        if missing.is_empty() {
            return Ok(Vec::new());
        }
        let program = std::env::current_exe()
            .map_err(|error| Failure::new("cannot find the path of this program", error))?;
        let remote_program = self.program.as_deref().unwrap_or("starfish");
        let key = KeyFile::take(key::path(self.key.as_deref())?)?;
        let start =
            Start { program: &program, remote_program, directory, key, options: &self.options, create };
        Ok(at_once(missing, |wanted| {
            // Start the agent at its previous address, which programs may have in their environment.
            let before = self.gone.iter().find(|agent| agent.name == wanted.name);
            start.start(wanted, Host::new(wanted.host.as_deref(), &common.ssh), before)
        }))
    }

    /// Returns the started agents, and the names of all others. If a previous member does not start, for example
    /// because its disk is not mounted, the failure is printed, and the other agents continue. If a new agent does not
    /// start, or if no agent runs, the whole start fails.
    fn those_started(
        &self,
        missing: &[Wanted],
        outcomes: Vec<Result<Starting>>,
    ) -> Result<(Vec<Starting>, Vec<String>)> {
        let was_of_set = |wanted: &Wanted| {
            self.gone.iter().any(|agent| agent.name == wanted.name && agent.roots == wanted.roots)
        };
        let mut may_be_missing =
            missing.iter().zip(&outcomes).all(|(wanted, outcome)| outcome.is_ok() || was_of_set(wanted));
        may_be_missing &= !self.running.is_empty() || outcomes.iter().any(Result::is_ok);
        if !may_be_missing {
            return all_or_failures(outcomes).map(|started| (started, Vec::new()));
        }
        let (mut started, mut not_started) = (Vec::new(), Vec::new());
        for (wanted, outcome) in missing.iter().zip(outcomes) {
            match outcome {
                Ok(starting) => started.push(starting),
                Err(failure) => {
                    say!("starfish: {}: not started: {failure}", wanted.name);
                    not_started.push(wanted.name.clone());
                }
            }
        }
        Ok((started, not_started))
    }

    /// Returns the agents to record: the requested agents, in order. An agent that did not start keeps its previous
    /// entry, without a process.
    fn record(&self, started: &[Starting]) -> Record {
        let mut agents = self.running.clone();
        agents.extend(started.iter().map(|starting| starting.started.clone()));
        for agent in self.gone.iter().filter(|agent| !is_left_out(agent, &self.wanted)) {
            if agents.iter().all(|other| other.name != agent.name) {
                agents.push(Started { process: None, ..agent.clone() });
            }
        }
        agents.sort_by_key(|agent| self.wanted.iter().position(|wanted| wanted.name == agent.name));
        let (options, program, key) = (self.options.clone(), self.program.clone(), self.key.clone());
        Record { options, program, key, agents }
    }

    fn print_report(&self, record: &Record, started: usize, common: &CommonArguments) {
        for agent in record.agents.iter().filter(|agent| agent.process.is_some()) {
            say!("{}: {}, {}", agent.name, agent.address, agent.disks);
        }
        for before in &self.gone {
            let now = record.agents.iter().find(|agent| agent.name == before.name);
            if now.is_some_and(|now| now.address != before.address) {
                say!(
                    "{}: the address {} is in use, so this agent has a new one. Update programs and files \
                     that have the old address.",
                    before.name,
                    before.address
                );
            }
        }
        if !self.before.agents.is_empty() && self.options != self.before.options {
            let (now, before) = (in_words(&self.options), in_words(&self.before.options));
            say!("Options: {now}; before: {before}.");
        }
        let down = common.command("down");
        match (started, self.running.len()) {
            (0, before) if before < record.agents.len() => say!("{before} ran already."),
            (0, before) => say!("All {before} run already."),
            (started, 0) => say!("Started {started}. `{down}` stops them."),
            (started, before) => say!("Started {started}; {before} ran already."),
        }
        if !self.left_out.is_empty() {
            say!("Stopped {} that are no longer in the set. Their files stay.", self.left_out.len());
        }
    }
}

fn in_words(options: &[String]) -> String {
    if options.is_empty() { "no options".into() } else { format!("`{}`", options.join(" ")) }
}

/// Files on a group of agents.
struct FilesOnAgents {
    /// Number of files with stripes on these agents.
    count: usize,
    /// True if one of these agents is the metadata server.
    keeps_names: bool,
}

/// Returns a summary of the files on these agents.
fn files_on(cluster: &Cluster) -> Result<FilesOnAgents> {
    cluster.run(|connection| async move {
        let stripes =
            connection.explained("cannot list the files", connection.client.list_numbered().await)?;
        let files: BTreeSet<_> = stripes.iter().map(|(_, stripe)| stripe.file).collect();
        let keeps_names = Namespace::find(&connection).await?.is_some();
        Ok(FilesOnAgents { count: files.len(), keeps_names })
    })
}

impl CommonArguments {
    /// Returns the command `starfish agents VERB` for the same set.
    fn command(&self, verb: &str) -> String {
        let directory =
            self.dir.as_ref().map(|dir| format!(" --dir {}", quoted_if_need_be(&dir.to_string_lossy())));
        let ssh = self.ssh.given().map(|ssh| format!(" --ssh {}", quoted_if_need_be(ssh)));
        format!("starfish agents {verb}{}{}", directory.unwrap_or_default(), ssh.unwrap_or_default())
    }
}

/// Returns all results. If any failed, returns the last failure, after printing the others.
fn all_or_failures<T>(outcomes: Vec<Result<T>>) -> Result<Vec<T>> {
    let (mut all, mut failures) = (Vec::new(), Vec::new());
    for outcome in outcomes {
        match outcome {
            Ok(outcome) => all.push(outcome),
            Err(failure) => failures.push(failure),
        }
    }
    let Some(last) = failures.pop() else { return Ok(all) };
    // Print a failure only once, even if all agents of a computer have it.
    let mut reported = BTreeSet::from([last.to_string()]);
    for failure in failures.iter().map(Failure::to_string) {
        if reported.insert(failure.clone()) {
            say!("starfish: {failure}");
        }
    }
    Err(last)
}

/// Connects to all agents like a client. This checks that all are reachable and of this version, and that no disk is a
/// copy of another disk.
fn check(cluster: &Cluster) -> Result<()> {
    cluster.run(|connection| async move {
        connection
            .explained("cannot check the disks of the set", connection.client.disks_by_identity().await)?;
        Ok(())
    })
}

/// Prints a warning if programs without options would use other agents than these, or none.
fn warn_if_not_found(addresses: &[String]) {
    let found = node::agents::find().unwrap_or_default();
    if found.iter().map(|agent| &agent.name).ne(addresses) {
        let names: Vec<&str> = found.iter().map(|agent| &*agent.name).collect();
        let others = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        say!("Programs on this computer use {others} instead, unless STARFISH_AGENTS names these agents.");
    }
}

fn down(arguments: &CommonArguments) -> Result<()> {
    let directory = record::directory(arguments.dir.as_deref())?;
    if record::read(&directory)?.agents.is_empty() {
        say!("{}", none_yet(&directory));
        return Ok(());
    }
    let state = State::take(directory)?;
    let mut record = state.read()?;
    let addresses: Vec<String> = record.agents.iter().map(|agent| agent.address.clone()).collect();
    for MountFinding { directory, .. } in mounts::find(&addresses) {
        let visible = visible(&directory);
        say!(
            "{visible} is a mount of these agents: programs there get errors until `{}`",
            arguments.command("up")
        );
    }
    let outcomes = at_once(&record.agents, |agent| stop(agent, &arguments.ssh));
    for (agent, outcome) in record.agents.iter_mut().zip(&outcomes) {
        agent.process = agent.process.filter(|_| outcome.is_err());
    }
    state.write(&record)?;
    let stopped = all_or_failures(outcomes)?.into_iter().filter(|&now| now).count();
    let up = arguments.command("up");
    match stopped {
        0 => say!("No agent was running; `{up}` starts them."),
        _ => say!("Stopped {stopped}. Their files stay; `{up}` starts them again."),
    }
    Ok(())
}

fn none_yet(directory: &Path) -> String {
    format!(
        "No agents were started from {}. `starfish agents up --local 4` starts four.",
        directory.display()
    )
}

/// Stops an agent. Returns true if the agent was running.
fn stop(agent: &Started, ssh: &SshArgs) -> Result<bool> {
    let Some(process) = agent.process else { return Ok(false) };
    match process.stop(Host::new(agent.host.as_deref(), ssh))? {
        Stopped::Now => Ok(true),
        Stopped::Before => {
            say!("{}: {} had already ended", agent.name, agent.address);
            Ok(false)
        }
        Stopped::NotYet => {
            let failure = Failure::new(&agent.name, format!("process {} does not stop", process.number));
            Err(failure
                .remedy("Its disk may be slow or hang. Wait and try again, or use kill -9 on its host."))
        }
    }
}

/// Row of a status.
#[derive(Serialize)]
struct Row<'a> {
    agent: &'a str,
    address: &'a str,
    process: Option<u32>,
    state: &'static str,
    disks: &'a str,
    /// Path of the log on the agent's host, and its last lines.
    log: &'a str,
    last_lines: Vec<String>,
    /// Reason for the state `unknown` or `silent`.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

fn status(arguments: &StatusArguments) -> Result<()> {
    let directory = record::directory(arguments.common.dir.as_deref())?;
    let record = record::read(&directory)?;
    let key = record.key.as_ref();
    let rows = at_once(&record.agents, |agent| row(agent, key, &arguments.common.ssh));
    match arguments.format {
        Format::Json => print_json(&rows)?,
        Format::Table if rows.is_empty() => local::print([none_yet(&directory)])?,
        Format::Table => print_table(&rows)?,
    }
    let silent = rows.iter().filter(|row| row.state == SILENT).count();
    let ended = rows.iter().filter(|row| ![RUNNING, SILENT].contains(&row.state)).count();
    let whys = [(ended, "run"), (silent, "answer")].map(|(count, verb)| do_not(count, rows.len(), verb));
    let why = whys.into_iter().flatten().collect::<Vec<_>>().join(", and ");
    if why.is_empty() {
        return Ok(());
    }
    let [down, up] = ["down", "up"].map(|verb| arguments.common.command(verb));
    Err(Failure::new("agents", why).remedy(match silent {
        0 => format!("`{up}` starts them again."),
        _ => format!("`{down}` stops all agents, even hanging ones; `{up}` then starts them again."),
    }))
}

/// Returns a text about the agents of a set that do not `verb`, or `None` if all do.
fn do_not(count: usize, all: usize, verb: &str) -> Option<String> {
    match count {
        0 => None,
        count if count == all => Some(format!("none of the {all} agents of this set {verb}s")),
        1 => Some(format!("1 of {all} does not {verb}")),
        count => Some(format!("{count} of {all} do not {verb}")),
    }
}

/// State of an agent that runs and answers.
const RUNNING: &str = "running";

/// State of an agent that runs but does not answer: it hangs, or this computer cannot reach it.
const SILENT: &str = "silent";

/// State of an agent whose host does not answer.
const UNKNOWN: &str = "unknown";

fn row<'a>(agent: &'a Started, key: Option<&PathBuf>, ssh: &SshArgs) -> Row<'a> {
    let (state, why) = match runs(agent, ssh) {
        Ok(true) => match answer(agent, key) {
            Ok(()) => (RUNNING, None),
            Err(why) => (SILENT, Some(format!("{}: {why}", agent.name))),
        },
        Ok(false) if agent.process.is_none() => ("stopped", None),
        Ok(false) => ("gone", None),
        Err(failure) => (UNKNOWN, Some(failure.to_string())),
    };
    let last_lines = if state == UNKNOWN { Vec::new() } else { last_lines(agent, ssh) };
    let Started { name, address, disks, process, log, .. } = agent;
    Row {
        agent: name,
        address,
        process: process.map(|process| process.number),
        state,
        disks,
        log,
        last_lines,
        why,
    }
}

/// Connects to an agent like a client. Returns the reason if this fails.
fn answer(agent: &Started, key: Option<&PathBuf>) -> std::result::Result<(), String> {
    let connected =
        cluster_of(vec![agent.address.clone()], key).and_then(|cluster| cluster.run(|_| async { Ok(()) }));
    connected.map_err(|failure| failure.why().to_owned())
}

/// Returns the last lines of an agent's log, or an empty list if the log cannot be read.
fn last_lines(agent: &Started, ssh: &SshArgs) -> Vec<String> {
    let script = format!("tail -n {LINES} -- {} 2> /dev/null || true\n", quoted(&agent.log));
    let text = Host::new(agent.host.as_deref(), ssh).run(&script).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Number of lines of each log that a status shows.
const LINES: usize = 3;

fn print_table(rows: &[Row<'_>]) -> Result<()> {
    let mut table = TextTable::new(5);
    table.row(["agent", "address", "process", "state", "disks"]);
    for row in rows {
        let process = row.process.map_or_else(|| "-".to_owned(), |process| process.to_string());
        table.row([row.agent, row.address, &process, row.state, row.disks]);
    }
    let logs = rows.iter().filter(|row| !row.last_lines.is_empty()).flat_map(|row| {
        let lines = row.last_lines.iter().map(|line| format!("  {line}"));
        std::iter::once(format!("{}, last lines of {}:", row.agent, row.log)).chain(lines)
    });
    let whys = rows.iter().filter_map(|row| row.why.clone());
    local::print(table.lines().chain(whys).chain(logs))
}
