//! Names of striped files for completion, requested from the agents with a short time limit.
//!
//! The user waits after pressing Tab, so agents that do not answer at once are skipped silently.

use std::env;
use std::ffi::OsStr;
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use clap_complete::engine::{CompletionCandidate, PathCompleter, ValueCompleter};
use node::{Agent, Session, Settings, agents};

use crate::completion::{Values, matching};

/// Prefix of the names of striped files, for programs that also accept ordinary files.
pub const STRIPED: &str = "pfs:";

/// Time limit for the answers of agents.
const PATIENCE: Duration = Duration::from_millis(400);

/// Page cache size in bytes. It is small, since a listing needs no cache.
const CACHE_BYTES: u64 = 4 << 20;

/// Completes names of striped files.
pub fn stored() -> Values {
    Values::new(|typed: &OsStr| matching(&names(), typed))
}

/// Completes names of ordinary files, and names of striped files with the prefix `pfs:`.
pub fn file_or_stored() -> Values {
    Values::new(|typed: &OsStr| {
        if typed.to_string_lossy().starts_with(STRIPED) {
            let names: Vec<String> = names().iter().map(|name| format!("{STRIPED}{name}")).collect();
            return matching(&names, typed);
        }
        let mut all: Vec<CompletionCandidate> = PathCompleter::any().complete(typed);
        all.extend(matching(&[STRIPED.to_owned()], typed));
        all
    })
}

/// Completes the agents that this user's programs find without options.
pub fn agents(typed: &OsStr) -> Vec<CompletionCandidate> {
    matching(&agents::usual().unwrap_or_default(), typed)
}

/// Returns the names of all striped files, or no names if the agents do not answer in time.
fn names() -> Vec<String> {
    let (sender, names) = mpsc::channel();
    // The thread is not joined: it ends with the program.
    thread::spawn(move || sender.send(ask().unwrap_or_default()));
    names.recv_timeout(PATIENCE).unwrap_or_default()
}

fn ask() -> node::Result<Vec<String>> {
    let mut settings = Settings::of_environment(named()?)?;
    settings.silence = PATIENCE;
    settings.cache_bytes = CACHE_BYTES;
    settings.key = typed("--key").map(Into::into).or(settings.key);
    Session::start(settings)?.list()
}

/// Returns the agents that the command line names, or else the usual agents.
fn named() -> node::Result<Vec<Agent>> {
    let listed: Vec<String> =
        typed("--agents").iter().flat_map(|list| list.split(',')).map(str::to_owned).collect();
    agents::find_among(&listed, typed("--config").as_deref().map(Path::new))
}

/// Returns the value of this option if the command line contains it.
fn typed(option: &str) -> Option<String> {
    value(option, env::args())
}

fn value(option: &str, words: impl Iterator<Item = String>) -> Option<String> {
    let mut words = words.skip_while(|word| !word.strip_prefix(option).is_some_and(is_end));
    let first = words.next()?;
    first.strip_prefix(&format!("{option}=")).map(str::to_owned).or_else(|| words.next())
}

/// Returns true if `rest` does not continue the name of the option.
fn is_end(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with('=')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agents_are_read_from_the_command_line() {
        let of = |line: &str| value("--agents", line.split(' ').map(str::to_owned));
        assert_eq!(of("starfish -- starfish get --agents a:1,b:2 x"), Some("a:1,b:2".into()));
        assert_eq!(of("starfish -- starfish get --agents=a:1 x"), Some("a:1".into()));
        assert_eq!(of("starfish -- starfish get --agents-of-others x"), None);
        assert_eq!(of("starfish -- starfish get --agents"), None);
    }
}
