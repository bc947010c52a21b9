//! `starfish mount`: mounts the namespace of the agents in a directory; also serves as a helper of mount(8).

use std::env;
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use command_line::failure::{Failure, Result};
use command_line::say;
use mount::{LockScope, MountSettings, MountedDirectory, unmount};
use node::{ErrorKind, Session, Settings, Size, agents};

use crate::options::agents::AgentsArgs;
use crate::serving::agent_log;
use crate::serving::mount_metrics;
use command_line::durations;
use transfer::cluster::Cluster;
use transfer::namespace::Namespace;
use transfer::{interrupt, local};

/// Mount the files of the agents in a directory.
///
/// The directory shows the same files as every other mount and program of the same agents: directories, links, and
/// files in stripes over all disks. A program that opens a file reads the data of all programs that have closed it
/// before, on any computer. You need not be root: the package fuse3 lets users mount in their own directories.
///
/// The command runs until the directory is unmounted, by `starfish umount DIR`, Ctrl-C or SIGTERM.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Mount point, an existing directory.
    #[arg(value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    directory: PathBuf,

    #[command(flatten)]
    agents: AgentsArgs,

    /// Return when the directory is mounted, and continue in the background.
    #[arg(long)]
    background: bool,

    /// File for messages about failures in the background [default: below ~/.local/state/starfish].
    #[arg(long, value_name = "FILE", requires = "background")]
    log: Option<PathBuf>,

    /// Allow no changes through this mount.
    #[arg(long)]
    read_only: bool,

    /// Allow access by other users, within the permissions of files. Unless you are root, /etc/fuse.conf must permit
    /// this.
    #[arg(long)]
    allow_other: bool,

    /// Time to wait for agents that do not answer. All agents must answer when the mount begins. If an agent
    /// disconnects later, the mount waits for it this long, and then returns errors for its files until the agent
    /// answers again.
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = timeout)]
    wait: Duration,

    /// Continue without agents that do not answer within this time. Accesses to their stripes fail until the next
    /// mount, and new files are striped only over the disks of the other agents. The metadata server must answer.
    #[arg(long)]
    without_missing: bool,

    /// Bypass the kernel's page cache. Then files cannot be mapped with MAP_SHARED.
    #[arg(long)]
    direct: bool,

    /// Scope of the locks of programs (flock, fcntl).
    #[arg(long, value_name = "WHERE", default_value = "everywhere")]
    locks: LockReach,

    /// Time for which the kernel may cache names and attributes.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = timeout)]
    attr_timeout: Duration,

    /// Size of a block of new files: number of bytes on one disk before the file continues on the next disk.
    #[arg(long, value_name = "SIZE", default_value = node::BLOCK)]
    block: Size,

    /// Number of disks to stripe new files over [default: all].
    #[arg(long, value_name = "N", value_parser = crate::options::numbers::disk_count)]
    disks: Option<NonZeroU32>,

    /// Size of the page cache for files.
    #[arg(long, value_name = "SIZE", default_value = CACHE)]
    cache: Size,

    /// Honour set-user-ID bits. Only root can use this option.
    #[arg(long, hide = true)]
    suid: bool,

    /// Let programs open devices. Only root can use this option.
    #[arg(long, hide = true)]
    dev: bool,

    /// Do not let programs in the mount be run.
    #[arg(long, hide = true)]
    noexec: bool,

    /// Serve metrics for Prometheus over HTTP: at PORT of loopback, at HOST:PORT, or at :PORT of all networks.
    #[arg(long, value_name = "[HOST:]PORT")]
    metrics: Option<String>,

    /// Marks the process in the background.
    #[arg(long, hide = true, conflicts_with = "background")]
    in_background: bool,
}

/// Scope of locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LockReach {
    /// Between all mounts of the same files.
    Everywhere,
    /// Only within this mount, which is faster. For files that are not locked through other mounts.
    Here,
    /// Reject locks.
    Nowhere,
}

impl From<LockReach> for LockScope {
    fn from(locks: LockReach) -> LockScope {
        match locks {
            LockReach::Everywhere => LockScope::Everywhere,
            LockReach::Here => LockScope::Here,
            LockReach::Nowhere => LockScope::Nowhere,
        }
    }
}

const EXAMPLES: &str = "\
Examples:
  starfish mount ~/files --agents node1:7117,node2:7117
  starfish mount ~/files --background && ls ~/files && starfish umount ~/files
  node1:7117,node2:7117 /mnt/files fuse.starfish _netdev,allow_other 0 0       a line of /etc/fstab
  starfish mount ~/files --wait 5m                                             if some agents start later";

/// Default page cache of a mount.
const CACHE: &str = "256MiB";

fn timeout(text: &str) -> std::result::Result<Duration, String> {
    let time = durations::parse_or_seconds(text)?;
    if time.as_secs() <= 86400 { Ok(time) } else { Err("expected at most a day".to_owned()) }
}

/// Runs the command.
pub(crate) fn run(arguments: Arguments) -> Result<()> {
    if !arguments.in_background {
        warn_if_not_empty(&arguments.directory);
    }
    if arguments.background {
        return go_to_background(&arguments);
    }
    if arguments.in_background {
        // A new session protects the process from Ctrl-C in the terminal.
        nix::unistd::setsid().map_err(|error| Failure::new(IN_BACKGROUND, error))?;
    }
    agent_log::begin()?;
    let metrics = mount_metrics::open(arguments.metrics.as_deref())?;
    let session = start(&arguments)?;
    let tree = session.tree();
    // Catch signals before mounting. Otherwise a signal directly after the mount would leave a mount without a process.
    let interrupted = interrupt::channel()?;
    let mounted = MountedDirectory::begin(
        &tree,
        &arguments.directory,
        mount_settings(&arguments)?,
        agent_log::error_logger(),
    )?;
    if let Some(server) = metrics {
        mount_metrics::serve(server, mounted.counter())?;
    }
    unmount_when_interrupted(interrupted, mounted.directory());
    local::print([format!("{MOUNTED}{}", mounted.directory().display())])?;
    let ended = mounted.wait();
    drop(tree);
    let finished = session.finish();
    Ok(ended.and(finished)?)
}

/// Prints a warning if the mount hides contents of the directory.
fn warn_if_not_empty(directory: &Path) {
    let is_filled = std::fs::read_dir(directory).is_ok_and(|mut entries| entries.next().is_some());
    if is_filled {
        say!("{}: the directory is not empty; the mount hides its files until it ends", directory.display());
    }
}

/// Interval between attempts to connect to agents that do not answer yet.
const CALL_EVERY: Duration = Duration::from_millis(500);

/// Starts the session when all agents answer. At the time limit, continues without missing agents if requested, or else
/// fails.
fn start(arguments: &Arguments) -> Result<Session> {
    let (begin, mut is_logged) = (Instant::now(), false);
    loop {
        let cluster = arguments.agents.cluster();
        let started =
            cluster.and_then(|cluster| settings(arguments, cluster)).and_then(|it| Ok(Session::start(it)?));
        let failure = match started {
            Err(failure) if is_of_absence(&failure) => failure,
            started => return started,
        };
        if begin.elapsed() >= arguments.wait {
            return match arguments.without_missing {
                true => start_without_missing(arguments),
                false => Err(failure.also(WAITING)),
            };
        }
        if !is_logged {
            log::warn!("waiting up to {} s for agents: {failure}", arguments.wait.as_secs_f64());
            is_logged = true;
        }
        thread::sleep(CALL_EVERY);
    }
}

/// Starts the session with the agents that answer. Fails if the metadata server does not answer.
fn start_without_missing(arguments: &Arguments) -> Result<Session> {
    let cluster = arguments.agents.cluster()?;
    let all = cluster.clone();
    let present = cluster.run_with_present(|connection| async move {
        Namespace::of(&connection).await?;
        connection.absence().unwrap_or_else(|absence| log::warn!("mounting without agents: {absence}"));
        Ok(all.with_present(&connection))
    })?;
    Ok(Session::start(settings(arguments, present)?)?)
}

/// Returns true if an agent does not answer, or if its host name cannot be resolved, as during a network failure.
fn is_of_absence(failure: &Failure) -> bool {
    let kinds = [ErrorKind::Unreachable, ErrorKind::UnknownHost, ErrorKind::Gone];
    failure.kind().is_some_and(|kind| kinds.contains(&kind))
}

const WAITING: &str = "All agents must answer when a mount begins. --wait TIME waits for them; \
                       --without-missing mounts without them.";

/// Beginning of the line that reports the mount to the parent process.
const MOUNTED: &str = "mounted in ";

const IN_BACKGROUND: &str = "cannot mount in the background";

fn settings(arguments: &Arguments, cluster: Cluster) -> Result<Settings> {
    let Cluster { agents, key_file, trace } = cluster;
    let mut settings = Settings::of_environment(agents).map_err(|error| Failure::from(error).of_usage())?;
    // Without a write cache, other computers see the data after a close.
    settings.write_cache = None;
    settings.reporter = agent_log::reporter(key_file.clone());
    settings.key = key_file;
    settings.block_bytes = arguments.block.0;
    settings.disks = arguments.disks;
    settings.cache_bytes = arguments.cache.0;
    settings.trace = trace.or(settings.trace);
    Ok(settings)
}

fn mount_settings(arguments: &Arguments) -> Result<MountSettings> {
    let names = arguments.agents.names()?;
    let source = match &names[..] {
        [one] => one.clone(),
        [first, others @ ..] => format!("{first}+{}", others.len()),
        [] => MountSettings::default().source,
    };
    Ok(MountSettings {
        source,
        read_only: arguments.read_only,
        allow_other: arguments.allow_other,
        direct: arguments.direct,
        attribute_timeout: arguments.attr_timeout,
        locks: arguments.locks.into(),
        set_user: arguments.suid,
        devices: arguments.dev,
        no_execution: arguments.noexec,
    })
}

/// Unmounts at the first interruption. If the directory is in use, it is unmounted when the last process leaves it;
/// until then, another interruption ends the program immediately.
fn unmount_when_interrupted(interrupted: flume::Receiver<()>, directory: &Path) {
    let directory = directory.to_owned();
    thread::spawn(move || {
        let mut is_detached = false;
        while interrupted.recv().is_ok() {
            if is_detached {
                log::warn!("interrupted again: ends although programs use the directory");
                std::process::exit(interruption::INTERRUPTED);
            }
            if unmount(&directory, false).is_ok() {
                return;
            }
            is_detached = true;
            log::warn!(
                "{} is in use: it will be unmounted when the last process leaves it",
                directory.display()
            );
            if let Err(error) = unmount(&directory, true) {
                log::error!("{error}");
            }
        }
    });
}

/// Starts this program again without a terminal. Returns when that process has mounted the directory.
fn go_to_background(arguments: &Arguments) -> Result<()> {
    let failed = |error: io::Error| Failure::new(IN_BACKGROUND, error);
    // Check the agents here, so that errors are printed on the terminal.
    arguments.agents.names()?;
    let log = match arguments.log.clone().or_else(|| usual_log(&arguments.directory)) {
        Some(path) => path,
        None => PathBuf::from("/dev/null"),
    };
    let file = local::open_log(&log)?;
    let begin = file.metadata().map_err(failed)?.len();
    let mut child = Command::new(env::current_exe().map_err(failed)?)
        .args(arguments_in_background(env::args_os().skip(1)))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(file.try_clone().map_err(failed)?)
        .spawn()
        .map_err(failed)?;
    for line in BufReader::new(child.stdout.take().expect("it was piped")).lines() {
        let line = line.map_err(failed)?;
        if line.starts_with(MOUNTED) {
            return Ok(());
        }
        local::print([line])?;
    }
    let code = child.wait().map_err(failed)?;
    let log_text = local::read_from(&log, begin).map_err(failed)?;
    let log_text = log_text.trim().trim_start_matches("starfish: ");
    let failure =
        Failure::new(IN_BACKGROUND, if log_text.is_empty() { code.to_string() } else { log_text.to_owned() });
    Err(if code.code() == Some(2) { failure.of_usage() } else { failure })
}

/// Returns the arguments for the process in the background.
fn arguments_in_background(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut arguments = given(arguments.collect());
    arguments.retain(|argument| argument != "--background");
    // Insert it before any arguments after `--`.
    arguments.insert(1.min(arguments.len()), "--in-background".into());
    arguments
}

/// Returns the default log of a mount, or `None` if the user has no state directory.
fn usual_log(directory: &Path) -> Option<PathBuf> {
    let path = std::path::absolute(directory).ok()?;
    let name: String = path.to_string_lossy().chars().map(|c| if c == '/' { '-' } else { c }).collect();
    agents::state_directory().map(|state| state.join(format!("mount{name}.log")))
}

/// Name of this program when mount(8) calls it for a line of /etc/fstab.
const OF_FSTAB: &str = "mount.fuse.starfish";

/// Default time in seconds to wait for agents when mount(8) mounts from /etc/fstab: at boot, computers start in any
/// order. It is below 90 seconds, after which systemd cancels a mount.
const WAIT_OF_FSTAB: u32 = 60;

/// Returns the arguments after the program's name. If mount(8) has called the program, translates `mount.fuse.starfish
/// AGENTS DIR -o OPTIONS` to the arguments of this command.
pub(crate) fn given(arguments: Vec<OsString>) -> Vec<OsString> {
    let program = env::args_os().next().map(PathBuf::from);
    let is_of_fstab = program.as_deref().and_then(Path::file_name).is_some_and(|name| name == OF_FSTAB);
    if is_of_fstab { of_fstab(arguments) } else { arguments }
}

fn of_fstab(arguments: Vec<OsString>) -> Vec<OsString> {
    let mut meant: Vec<OsString> = vec!["mount".into()];
    let mut arguments = arguments.into_iter();
    let (mut places, mut is_foreground, mut says_wait) = (Vec::new(), false, false);
    while let Some(argument) = arguments.next() {
        match argument.to_str() {
            Some("-o") => {
                let options = arguments.next().unwrap_or_default();
                for option in options.to_string_lossy().split(',') {
                    is_foreground |= option == "foreground";
                    says_wait |= option.starts_with("wait=");
                    meant.extend(meant_by(option).map(OsString::from));
                }
            }
            // mount(8) passes these options: sloppy, fake, verbose, no mtab.
            Some("-s" | "-f" | "-v" | "-n") => {}
            _ => places.push(argument),
        }
    }
    let mut places = places.into_iter();
    match places.next() {
        Some(source) if !source.is_empty() && source != "none" && source != "starfish" => {
            meant.extend(["--agents".into(), source]);
        }
        _ => {}
    }
    meant.extend(places);
    if !says_wait {
        meant.push(format!("--wait={WAIT_OF_FSTAB}").into());
    }
    if !is_foreground {
        meant.push("--background".into());
    }
    meant
}

/// Translates an option of /etc/fstab. Returns `None` if the option does not concern this program.
fn meant_by(option: &str) -> Option<String> {
    let of_others =
        ["rw", "nosuid", "nodev", "exec", "auto", "noauto", "user", "users", "nouser", "owner", "group"];
    let of_time =
        ["atime", "noatime", "diratime", "nodiratime", "relatime", "norelatime", "strictatime", "lazytime"];
    let (name, value) = option.split_once('=').map_or((option, None), |(name, value)| (name, Some(value)));
    match name {
        "" | "defaults" | "_netdev" | "nofail" | "async" | "foreground" => None,
        name if of_others.contains(&name) || of_time.contains(&name) || name.starts_with("x-") => None,
        "ro" => Some("--read-only".into()),
        // All other options have the same names in this command. The parser rejects unknown ones.
        name => {
            let name = name.replace('_', "-");
            Some(value.map_or_else(|| format!("--{name}"), |value| format!("--{name}={value}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translated(words: &[&str]) -> Vec<String> {
        let words = words.iter().map(OsString::from).collect();
        of_fstab(words).into_iter().map(|word| word.into_string().expect("text")).collect()
    }

    #[test]
    fn an_fstab_line_becomes_a_mount_command() {
        let line =
            ["a:1,b:2", "/mnt/x", "-s", "-o", "rw,_netdev,allow_other,attr_timeout=3,x-systemd.automount"];
        let command = [
            "mount",
            "--allow-other",
            "--attr-timeout=3",
            "--agents",
            "a:1,b:2",
            "/mnt/x",
            "--wait=60",
            "--background",
        ];
        assert_eq!(translated(&line), command);
        assert_eq!(
            translated(&["none", "/mnt/x", "-o", "ro"]),
            ["mount", "--read-only", "/mnt/x", "--wait=60", "--background"]
        );
        assert_eq!(
            translated(&["none", "/mnt/x", "-o", "foreground,wait=0"]),
            ["mount", "--wait=0", "/mnt/x"]
        );
    }

    #[test]
    fn a_timeout_is_at_most_a_day() {
        assert_eq!(timeout("0.5"), Ok(Duration::from_millis(500)));
        assert_eq!(timeout("5m"), timeout("300"));
        assert!(timeout("24h").is_ok() && timeout("25h").is_err() && timeout("-1").is_err());
    }
}
