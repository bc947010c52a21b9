//! Rejects options that would have no effect in combination with other given options.
//!
//! A user who gives an option expects an effect. Because some options have defaults, only clap knows which options were
//! given.

use std::ffi::OsStr;

use clap::ArgMatches;
use clap::parser::ValueSource;
use command_line::failure::{Failure, Result};
use experiment::{Method, PlacedJob, unheeded_by, unheeded_by_kind};

use crate::command::bench::agents;
use crate::options::agents::ASKED_AGENTS;
use crate::options::fields;

/// Options whose values are names: clap's identifier and the spelling for users. The corresponding variables may be
/// empty.
const NAMING: [(&str, &str); 3] = [("agents", "--agents"), ("key", "--key"), ("trace", "--trace")];

/// Arguments whose values are names of files: clap's identifier and the spelling for users. An empty path would mean
/// the root.
const OF_FILES: [(&str, &str); 3] = [("name", "NAME"), ("names", "NAME"), ("paths", "PATH")];

/// Rejects options without effect, and empty names.
pub(crate) fn refuse(matches: &ArgMatches) -> Result<()> {
    refuse_empty(matches)?;
    match matches.subcommand() {
        Some(("bench", given)) => refuse_of_agents(given, &agents::OF_AGENTS)?,
        Some((command @ ("simulate" | "replay"), given)) => {
            if command == "replay" {
                refuse_of_agents(given, &[])?;
            }
            let methods = given.get_many::<String>("method").into_iter().flatten();
            let is_disk_directed = methods.into_iter().all(|method| method == "disk-directed");
            let is_for_traditional = |id: &str| unheeded_by(id, Method::Traditional).is_none();
            let unheeded =
                |id: &str| unheeded_by(id, Method::DiskDirected).filter(|_| is_for_traditional(id));
            if let Some((option, why)) = first_given(given, unheeded).filter(|_| is_disk_directed) {
                return Err(pointless(&option, why, "traditional"));
            }
        }
        Some(("merge", given)) => {
            let kind = given
                .get_one::<String>("kind")
                .and_then(|kind| kind.parse().ok())
                .unwrap_or(PlacedJob::Merge);
            let unheeded = |id: &str| unheeded_by_kind(id, kind);
            if let Some((option, why)) = first_given(given, unheeded) {
                let failure = Failure::usage(&option, format!("it has no effect: {why}"));
                return Err(failure.remedy(format!("Add --kind merge, or leave {option} out.")));
            }
        }
        _ => {}
    }
    Ok(())
}

/// Rejects the options in `further`, and those in `ASKED_AGENTS`, unless `--agents` is given.
fn refuse_of_agents(given: &ArgMatches, further: &[&str]) -> Result<()> {
    let is_of_agents = |id: &str| (ASKED_AGENTS.contains(&id) || further.contains(&id)).then_some(());
    match first_given(given, is_of_agents).filter(|_| !is_given(given, "agents")) {
        Some((option, ())) => {
            let failure = Failure::usage(&option, "it has no effect: it is only for your own agents");
            Err(failure.remedy(format!("Add --agents, or leave {option} out.")))
        }
        None => Ok(()),
    }
}

/// Rejects empty values of options and arguments whose values are names.
fn refuse_empty(matches: &ArgMatches) -> Result<()> {
    let is_empty = |id: &str| {
        let is_empty = |value: &OsStr| value.as_encoded_bytes().iter().all(u8::is_ascii_whitespace);
        let mut values = matches.get_raw(id).filter(|values| values.len() > 0);
        is_given(matches, id) && values.as_mut().is_some_and(|values| values.all(is_empty))
    };
    let has_empty = |id: &str| matches.get_raw(id).is_some_and(|mut values| values.any(OsStr::is_empty));
    let is_known = |id: &str| matches.ids().any(|known| known.as_str() == id);
    let empty = NAMING.iter().find(|(id, _)| is_known(id) && is_empty(id));
    let nameless = OF_FILES.iter().find(|(id, _)| is_known(id) && has_empty(id));
    match (empty.or(nameless), matches.subcommand()) {
        (Some((_, option)), _) => {
            Err(Failure::usage(*option, "it is empty")
                .remedy(format!("Give a value, or leave {option} out.")))
        }
        (None, Some((_, given))) => refuse_empty(given),
        (None, None) => Ok(()),
    }
}

/// Returns the first given option that has no effect, in the spelling of users, and the reason.
fn first_given<T>(matches: &ArgMatches, unheeded: impl Fn(&str) -> Option<T>) -> Option<(String, T)> {
    let given = matches.ids().map(|id| id.as_str()).filter(|id| is_given(matches, id));
    given.filter_map(|id| Some((fields::option(id), unheeded(id)?))).next()
}

fn is_given(matches: &ArgMatches, id: &str) -> bool {
    matches.value_source(id) == Some(ValueSource::CommandLine)
}

fn pointless(option: &str, why: &str, method: &str) -> Failure {
    let failure = Failure::usage(option, format!("it has no effect: {why}"));
    failure.remedy(format!("Add --method {method}, or leave {option} out."))
}
