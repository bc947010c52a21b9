//! `starfish agent`: an I/O node that serves disks of this computer.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use clap::builder::UnknownArgumentValueParser;
use command_line::counted;
use command_line::failure::{Failure, Result};
use fs::{IoNodeSettings, Scheduling};
use machine::{Machine, Message, Net, NodePart};
use metrics::METRICS_VARIABLE;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use real::{Disk, DiskSettings, Keys, Metadata, MetadataCopies, MetadataPlace, RealMachine, Settings};

use crate::options::agents::{KeyArgs, TraceArgs};
use crate::options::values;
use crate::serving::agent_log;
use crate::serving::agent_metrics;
use crate::serving::detached;
use crate::serving::removed_files;
use agent_set::AGENT_CACHE;
use agent_set::host::quoted_if_need_be;
use agent_set::start::{READY, agents_to_detach};
use command_line::durations;
use node::{AgentService, NodeTrace, Size};
use studies::described::load_model;
use transfer::{cluster, interrupt, local, memory};

/// Serve disks of this computer to the file system, as an I/O node.
///
/// An agent stores its part of every file in the given directories, one for each disk. Start an agent on every computer
/// that contributes disks, then name all of them to `starfish put` and `starfish get`. An agent runs until Ctrl-C,
/// SIGTERM or (unless started by nohup) the end of its terminal. It accepts only programs with the same cluster key,
/// over encrypted connections.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Directory of a disk. It was used before, or is new and --create is given. Repeat the option for each disk.
    #[arg(long, value_name = "DIR", required = true, num_args = 1..)]
    root: Vec<PathBuf>,

    /// Accept new disks: directories that are empty, or missing and then created. Use this option only for the first
    /// start. Without it, an agent refuses to start if its disk is not mounted, so it cannot fill the disk underneath.
    #[arg(long)]
    create: bool,

    /// Keep the namespace in a PostgreSQL database, postgresql://USER:PASSWORD@HOST/DATABASE, instead of the first
    /// disk.
    ///
    /// For sites with a replicated PostgreSQL server. Only one agent at a time can use the database. If that agent's
    /// computer is lost, start another one elsewhere with this option. The connection to the server is not encrypted.
    #[arg(long, value_name = "URL", env = NAMESPACE_VARIABLE, hide_env_values = true, conflicts_with = "copy_namespace",
        value_parser = postgres_address)]
    namespace: Option<String>,

    /// Directory, on another disk or computer, for copies of the namespace of this agent, as namespace.db. A copy can
    /// replace a lost namespace, but changes of names after the copy are lost.
    #[arg(long, value_name = "DIR")]
    copy_namespace: Option<PathBuf>,

    /// Interval between copies. No copy is made if nothing has changed.
    #[arg(long, value_name = "TIME", default_value = "60s", requires = "copy_namespace", value_parser = between_copies)]
    copy_namespace_every: Duration,

    /// Address to listen on: HOST:PORT, or :PORT for all networks of this computer. Port 0 selects any free port.
    #[arg(long, value_name = "ADDR")]
    listen: String,

    // Suggests --listen to users who try --port.
    #[arg(long = "port", hide = true, value_parser = UnknownArgumentValueParser::suggest_arg("--listen"))]
    _port: Option<String>,

    /// Make the disks as slow as this model: a name that `starfish machines` lists, or a TOML file.
    #[arg(long, value_name = "NAME")]
    disk_model: Option<String>,

    /// Maximum size of a block (stripe unit) of a file.
    #[arg(long, value_name = "SIZE", default_value = BLOCK_MAX)]
    block_max: Size,

    /// Size of the cache for blocks of files, clean and dirty.
    #[arg(long, value_name = "SIZE", default_value = AGENT_CACHE)]
    cache: Size,

    /// Number of blocks to prefetch ahead of each read.
    #[arg(long, value_name = "N", default_value_t = PREFETCH)]
    prefetch: u64,

    /// Order in which a disk serves waiting requests.
    #[arg(long, default_value_t = IoNodeSettings::agent().scheduling, value_parser = values::scheduling())]
    scheduling: Scheduling,

    #[command(flatten)]
    key: KeyArgs,

    #[command(flatten)]
    trace: TraceArgs,

    /// Serve metrics for Prometheus over HTTP: at PORT of loopback, at HOST:PORT, or at :PORT of all networks.
    ///
    /// PORT can be +N, which means the port of --listen plus N, so that each agent on a computer has a separate port.
    /// Any client that can connect can read the metrics: the load of the agent and the directories of its disks.
    #[arg(long, value_name = "[HOST:]PORT", env = METRICS_VARIABLE)]
    metrics: Option<String>,

    /// Stop when standard input ends. This is for programs that start agents and may be killed.
    #[arg(long, hide = true)]
    until_input_ends: bool,

    /// Continue in the background, with the log in this file, when a line on standard input requests it; see
    /// `agent-set/src/start.rs`.
    #[arg(long, hide = true, value_name = "LOG")]
    detach: Option<PathBuf>,
}

/// Parses an interval of one second to one day.
fn between_copies(text: &str) -> std::result::Result<Duration, String> {
    let time = durations::parse_or_seconds(text)?;
    let fits = (1..=86_400).contains(&time.as_secs());
    if fits { Ok(time) } else { Err("expected from one second to a day".to_owned()) }
}

/// Environment variable with the database of the namespace, which keeps the password out of the command line.
pub(super) const NAMESPACE_VARIABLE: &str = "STARFISH_NAMESPACE";

/// Directory of the metadata store, within the directory of a disk.
const NAMESPACE: &str = "namespace";

/// Default maximum size of a block.
const BLOCK_MAX: &str = "1MiB";

/// Default number of blocks to prefetch.
const PREFETCH: u64 = 1;

const EXAMPLES: &str = "\
Examples:
  starfish agent --root /disk1 --create --listen :7117    the first time
  starfish agent --root /disk1 --listen :7117             and from then on
  starfish agent --root /disk1 /disk2 --listen 192.168.1.5:7117 --cache 1GiB
  starfish agent --root /disk1 --listen :7117 --metrics 9117
  starfish agent --root /tmp/slow --create --listen 127.0.0.1:0 --disk-model streaming-20

The log goes to standard error. The environment variable STARFISH_LOG sets its level: off, error, warn, info or debug.";

/// Minimum number of cached blocks. With fewer blocks, requests would wait for each other.
const CACHE_BLOCKS_MIN: u64 = 8;

/// Runs the command.
pub(crate) fn run(arguments: Arguments) -> Result<()> {
    if let Some(log) = &arguments.detach {
        return detached::start(log);
    }
    check_roots(&arguments)?;
    let settings = settings(&arguments)?;
    let (keys, listen) = (settings.keys.clone(), settings.listen);
    let kept = kept_in(settings.metadata.as_ref()).map(Path::to_owned);
    let copied = store_and_copies(&settings);
    let wait_timeout = settings.limits.silence;
    let io_node = IoNodeSettings { wait_timeout: Some(wait_timeout.into()), ..io_node_settings(&arguments)? };
    check_used(&arguments)?;
    let stop = interrupt::channel()?;
    allow_many_descriptors();
    let until_input_ends = arguments.until_input_ends;
    agent_log::begin()?;
    let served = real::run(settings, move |machine| async move {
        refuse_old_files(machine.disks(), &arguments.root)?;
        let trace = NodeTrace::begin(&machine, arguments.trace.file())?;
        // Open the metrics after listening: with port 0, the port is unknown before.
        let metrics = agent_metrics::open(arguments.metrics.as_deref(), machine.address())?;
        print_ready(&machine, &arguments.root, &keys)?;
        kept.iter().for_each(|kept| {
            log::info!("this agent is the metadata server; its namespace is in {}", kept.display())
        });
        if let Some((store, copies)) = copied.filter(|(store, copies)| are_on_one_disk(store, copies)) {
            log::warn!("{}", on_one_disk(&store, &copies));
        }
        let network = machine.clone();
        machine.spawn("waiting for the signal to stop", async move {
            // An error means that no signal can be received any more. Then the agent stops, too.
            let _ = stop.recv_async().await;
            log::info!("stopping on a signal");
            network.net().close();
            Ok(())
        });
        let (set_sender, set) = flume::bounded(1);
        if until_input_ends {
            close_when_input_ends(machine.clone(), set_sender);
        }
        let io_node = IoNodeSettings { continues: continued(machine.disks()), ..io_node };
        let run = io_node.lossless_since();
        let service = AgentService::new(machine.clone(), io_node);
        if let Some(server) = metrics {
            let directories = arguments.root.iter().map(|root| root.display().to_string()).collect();
            agent_metrics::serve(server, &machine, service.clone(), directories)?;
        }
        let key_file = arguments.key.file().map(Path::to_owned);
        removed_files::begin(&machine, service.clone(), set, key_file, wait_timeout);
        let served = service.serve().await;
        trace.map_or(Ok(()), NodeTrace::end)?;
        match &served {
            Ok(()) => {
                note_end(machine.disks(), run);
                log::info!("stopped: all accepted data are on its disks");
            }
            Err(error) => log::error!("ended: {error}"),
        }
        served.map_err(|error| Failure::new("cannot serve", error).logged())
    });
    served.map_err(|error| not_started(*error, listen))?
}

/// Fails if a disk has files of an older version. They are recognised by the names of their stripes.
fn refuse_old_files(disks: &[Disk], roots: &[PathBuf]) -> Result<()> {
    let with_old = disks.iter().zip(roots).find(|(disk, _)| disk.published_at_start() > 0);
    let Some((disk, root)) = with_old else { return Ok(()) };
    let stripes = counted(disk.published_at_start(), "file");
    let is = if disk.published_at_start() == 1 { "is" } else { "are" };
    let directories: Vec<String> =
        roots.iter().map(|root| quoted_if_need_be(&root.to_string_lossy())).collect();
    let failure = Failure::new(
        "cannot start the agent",
        format!("{stripes} of an older version {is} on {}", root.display()),
    );
    Err(failure.remedy(format!(
        "Convert them, with the directories of all agents of the set: `starfish convert {}`.",
        directories.join(" ")
    )))
}

/// Returns the incarnation that this agent continues: the last one of all disks, if it ended with a clean shutdown.
fn continued(disks: &[Disk]) -> Option<u64> {
    let mut last = disks.iter().map(Disk::last_run);
    let first = last.next().flatten();
    first.filter(|_| last.all(|other| other == first))
}

/// Records a clean shutdown on the disks: all data that this incarnation has accepted are on them.
fn note_end(disks: &[Disk], run: u64) {
    for disk in disks {
        // After an error, the next agent cannot continue this incarnation, which is harmless.
        if let Err(error) = disk.note_end(run) {
            log::warn!("{error}");
        }
    }
}

/// Returns the failure to start. It has a remedy if another process uses a disk or the address.
fn not_started(error: machine::Error, listen: Option<SocketAddr>) -> Failure {
    let failure = Failure::new("cannot start the agent", &error);
    let machine::Error::InUse { part, .. } = error else { return failure };
    match part {
        NodePart::Disk | NodePart::Metadata => {
            failure.remedy("Stop that agent, or give this agent another directory.")
        }
        NodePart::Address => {
            let (port, address) = listen.map_or((0, String::new()), |at| (at.port(), at.to_string()));
            failure.remedy(format!(
                "Another program listens on port {port}: stop it, or choose another port. If it is an agent \
                 that you started, reach it with --agents {address}."
            ))
        }
    }
}

/// Raises the limit of open files and connections to the maximum of the system, because shells set a low limit for old
/// programs. Ignores errors, which leave the limit unchanged.
fn allow_many_descriptors() {
    if let Ok((_, most)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, most, most);
    }
}

/// Rejects directories that are missing or given twice.
fn check_roots(arguments: &Arguments) -> Result<()> {
    let mut known: Vec<(PathBuf, &PathBuf)> = Vec::new();
    for root in &arguments.root {
        let failed = |why: String| Failure::usage(format!("--root {}", root.display()), why);
        if !root.exists() && !arguments.create {
            // This is not wrong usage, because the disk may be mounted in a moment.
            let failure = Failure::new(format!("--root {}", root.display()), "no such directory");
            return Err(
                failure.remedy("Is the disk mounted? If the disk is new, add --create, this time only.")
            );
        }
        // A missing directory has no canonical path; use the absolute one.
        let canonical =
            root.canonicalize().or_else(|_| std::path::absolute(root)).unwrap_or_else(|_| root.clone());
        if let Some((_, same)) = known.iter().find(|(other, _)| *other == canonical) {
            let failure = failed(format!("it is the same directory as {}", same.display()));
            return Err(failure.remedy("Give each disk a separate directory."));
        }
        known.push((canonical, root));
    }
    Ok(())
}

/// Rejects directories that have not been disks before, unless `--create` is given. If a disk is not mounted, its mount
/// point is such a directory.
fn check_used(arguments: &Arguments) -> Result<()> {
    // An unreadable directory is reported later, when the disk is opened.
    let is_new = |root: &&PathBuf| matches!(Disk::has_been(root), Ok(false));
    match arguments.root.iter().find(is_new) {
        Some(root) if !arguments.create => {
            let why = "it is not a Starfish disk";
            let failure = Failure::new(format!("--root {}", root.display()), why);
            Err(failure.remedy("Is the disk mounted? If the disk is new, add --create, this time only."))
        }
        _ => Ok(()),
    }
}

fn settings(arguments: &Arguments) -> Result<Settings> {
    let model = arguments.disk_model.as_deref().map(load_model).transpose()?;
    let disk = |directory: &PathBuf| DiskSettings { directory: directory.clone(), model: model.clone() };
    let listen = listen_address(&arguments.listen)?;
    let key_file = arguments.key.file();
    let settings = cluster::agent_settings(key_file)?;
    Ok(Settings {
        listen: Some(listen),
        disks: arguments.root.iter().map(disk).collect(),
        metadata_copies: metadata_copies(arguments)?,
        metadata: metadata_place(arguments.namespace.as_deref(), &arguments.root)?,
        reporter: agent_log::reporter(key_file.map(Path::to_owned)),
        ..settings
    })
}

/// Returns the settings for copies of the namespace, if requested. The directory must exist: if its disk is not
/// mounted, a newly created directory would be on the wrong disk.
fn metadata_copies(arguments: &Arguments) -> Result<Option<MetadataCopies>> {
    let Some(directory) = arguments.copy_namespace.clone() else { return Ok(None) };
    if !directory.is_dir() {
        let shown = directory.display();
        let failure = Failure::new(format!("--copy-namespace {shown}"), "no such directory");
        return Err(failure.remedy(format!("Mount its disk, or create it: `mkdir -p {shown}`.")));
    }
    Ok(Some(MetadataCopies { directory, every: arguments.copy_namespace_every }))
}

/// Returns the directory of the namespace and that of its copies; `None` if no copies are made.
fn store_and_copies(settings: &Settings) -> Option<(PathBuf, PathBuf)> {
    let copies = settings.metadata_copies.as_ref()?;
    match settings.metadata.as_ref()? {
        MetadataPlace::Directory(directory) => {
            Some((directory.parent()?.to_owned(), copies.directory.clone()))
        }
        MetadataPlace::Postgres(_) => None,
    }
}

/// Returns true if both paths are on the same device, and false if a path does not exist.
fn are_on_one_disk(one: &Path, other: &Path) -> bool {
    let device = |path: &Path| path.metadata().ok().map(|found| found.dev());
    device(one).is_some_and(|found| device(other) == Some(found))
}

fn on_one_disk(store: &Path, copies: &Path) -> String {
    format!(
        "--copy-namespace {}: the copies are on the same disk as the namespace ({}), so both can be lost \
         together. Is the disk for copies mounted?",
        copies.display(),
        store.display()
    )
}

const WITH_POSTGRES: &str = "Install Starfish by \"make install\" or its Debian package, or build the program with \
                             \"cargo build --release -p starfish --features postgres\".";

/// Returns the place for the namespace, if this agent stores it: the disk that already has the namespace, or else the
/// first disk.
pub(super) fn metadata_place(namespace: Option<&str>, roots: &[PathBuf]) -> Result<Option<MetadataPlace>> {
    if let Some(address) = namespace {
        if !real::HAS_POSTGRES {
            let failure = Failure::usage("--namespace", "this program was built without PostgreSQL");
            return Err(failure.remedy(WITH_POSTGRES));
        }
        return Ok(Some(MetadataPlace::Postgres(address.to_owned())));
    }
    let all: Vec<PathBuf> = roots.iter().map(|root| root.join(NAMESPACE)).collect();
    let begun: Vec<&PathBuf> = all.iter().filter(|directory| Metadata::is_in(directory)).collect();
    if let [one, other, ..] = &*begun {
        let why = format!("it is the namespace of a set, and {} is another", other.display());
        let failure = Failure::new(one.display().to_string(), why);
        return Err(failure.remedy(
            "An agent can have only one namespace. Rename the directory that was created by mistake.",
        ));
    }
    let place = begun.first().copied().or(all.first());
    Ok(place.cloned().map(MetadataPlace::Directory))
}

/// Returns the directory of the namespace, if this agent stores it in a directory.
fn kept_in(place: Option<&MetadataPlace>) -> Option<&Path> {
    match place {
        Some(MetadataPlace::Directory(directory)) if Metadata::is_in(directory) => Some(directory),
        _ => None,
    }
}

pub(super) fn postgres_address(text: &str) -> std::result::Result<String, String> {
    if text.starts_with("postgresql://") || text.starts_with("postgres://") {
        return Ok(text.to_owned());
    }
    Err("expected postgresql://USER:PASSWORD@HOST/DATABASE".to_owned())
}

fn io_node_settings(arguments: &Arguments) -> Result<IoNodeSettings> {
    let (block, cache) = (arguments.block_max, arguments.cache);
    if !(1..=Message::PAYLOAD_BYTES_MAX).contains(&block.0) {
        let why = format!("expected a block size from 1 B to {}", Size(Message::PAYLOAD_BYTES_MAX));
        return Err(Failure::usage(format!("--block-max {block}"), why));
    }
    let cache_blocks = cache.0 / block.0;
    if cache_blocks < CACHE_BLOCKS_MIN {
        let failure = Failure::usage(
            format!("--cache {cache}"),
            format!("the cache would have room for only {}", counted(cache_blocks, "block")),
        );
        return Err(failure.remedy(format!("Give at least {}.", Size(CACHE_BLOCKS_MIN * block.0))));
    }
    if let Some(memory) = memory::all().filter(|&memory| cache.0 > memory) {
        let why = format!("this computer has {} of memory", Size(memory).rounded());
        let failure = Failure::usage(format!("--cache {}", cache.rounded()), why);
        return Err(failure.remedy(
            "Programs and the page cache of the system need memory, too. Choose at most half of it.",
        ));
    }
    if arguments.prefetch >= cache_blocks {
        let why = format!(
            "the cache holds only {}, so prefetched blocks would evict each other",
            counted(cache_blocks, "block")
        );
        let failure = Failure::usage(format!("--prefetch {}", arguments.prefetch), why);
        return Err(failure.remedy("Choose a smaller --prefetch, or a larger --cache."));
    }
    Ok(IoNodeSettings {
        scheduling: arguments.scheduling,
        cache_blocks: cache_blocks as usize,
        block_bytes_max: block.0,
        prefetch_blocks: arguments.prefetch,
        incarnation: node::random()?,
        ..IoNodeSettings::agent()
    })
}

fn listen_address(text: &str) -> Result<SocketAddr> {
    let full = if text.starts_with(':') { format!("0.0.0.0{text}") } else { text.to_owned() };
    let failed = |why: String| {
        Failure::usage(format!("--listen {text}"), why)
            .remedy("Write HOST:PORT or :PORT, as in 127.0.0.1:7117.")
    };
    let mut found = full.to_socket_addrs().map_err(|error| failed(error.to_string()))?;
    found.next().ok_or_else(|| failed("the host has no address".into()))
}

/// Prints that the agent is ready, as one line that programs can parse.
fn print_ready(machine: &RealMachine, roots: &[PathBuf], keys: &Keys) -> Result<()> {
    let address = machine.address().expect("an agent listens");
    let roots: Vec<String> = roots.iter().map(|root| root.display().to_string()).collect();
    let disks = format!("{}: {}", counted(roots.len(), "disk"), roots.join(", "));
    let (key, connections) = (keys.current.name(), if keys.encrypts { "encrypted" } else { "clear" });
    let version = env!("CARGO_PKG_VERSION");
    log::info!("started: starfish {version} at {address}, key {key}, {connections}, {disks}");
    local::print([format!("{READY}{address}, {disks}")])
}

/// Closes the network when standard input ends, unless a line detaches the agent before. Sends the addresses in this
/// line, those of the set, through `set`.
fn close_when_input_ends(machine: RealMachine, set: flume::Sender<Vec<String>>) {
    let (stays, end) = flume::bounded::<()>(1);
    std::thread::spawn(move || {
        let mut line = String::new();
        // Ignore other lines. A read error counts as the end of the input.
        while io::stdin().read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
            if let Some(agents) = agents_to_detach(&line) {
                // Ignore errors, because the agent may be ending.
                let _ = set.send(agents);
                let _ = stays.send(());
                return;
            }
            line.clear();
        }
    });
    let network = machine.clone();
    machine.spawn("waiting for the end of input", async move {
        if end.recv_async().await.is_err() {
            log::info!("stopping: standard input was closed");
            network.net().close();
        }
        Ok(())
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        arguments: Arguments,
    }

    #[test]
    fn copies_on_the_disk_of_the_store_are_detected() {
        let disk = tempfile::tempdir().expect("a temporary directory");
        let copies = disk.path().join("copies");
        assert!(!are_on_one_disk(disk.path(), &copies), "it is not there");
        std::fs::create_dir(&copies).expect("room");
        assert!(are_on_one_disk(disk.path(), &copies) && !are_on_one_disk(disk.path(), Path::new("/proc")));
    }

    /// Predictions use this configuration, so it must equal the default of agents.
    #[test]
    fn an_agent_without_options_has_the_predicted_configuration() {
        let line = Line::try_parse_from(["agent", "--root", "/disk1", "--listen", ":7117"]);
        let settings = io_node_settings(&line.expect("it parses").arguments).expect("sound");
        assert_eq!(IoNodeSettings { incarnation: 0, ..settings }, IoNodeSettings::agent());
    }
}
