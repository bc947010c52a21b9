//! Options that would do nothing, beside others that are given with them.
//!
//! A user who gives one expects it to matter. Some have a value if they are not given, so only clap knows whether
//! they are.

use clap::ArgMatches;
use clap::parser::ValueSource;
use command_line::failure::{Failure, Result};

use crate::store::transfer::Method;

/// Options of `simulate` and `replay` that say how block requests are made and served, by their names in the program
/// and for users.
const OF_BLOCK_REQUESTS: [(&str, &str); 4] = [
    ("outstanding", "--outstanding"),
    ("scheduling", "--scheduling"),
    ("thread_per_request", "--thread-per-request"),
    ("prefetch", "--prefetch"),
];

/// Options of `merge` that only jobs heed which merge.
const OF_MERGES: [(&str, &str); 4] =
    [("policy", "--policy"), ("runs", "--runs"), ("on_demand", "--on-demand"), ("work", "--work")];

/// Refuses options that would do nothing.
pub(crate) fn refuse(matches: &ArgMatches) -> Result<()> {
    match matches.subcommand() {
        Some(("put" | "get", given)) => {
            let method = given.get_one::<Method>("method");
            if is_given(given, "compute_nodes") && method == Some(&Method::Traditional) {
                return Err(pointless("--compute-nodes", "the method traditional has one", "disk-directed"));
            }
        }
        Some(("simulate" | "replay", given)) => {
            let methods = given.get_many::<String>("method").into_iter().flatten();
            let is_disk_directed = methods.into_iter().all(|method| method == "disk-directed");
            let option = OF_BLOCK_REQUESTS.iter().find(|(id, _)| is_given(given, id));
            if let Some((_, option)) = option.filter(|_| is_disk_directed) {
                return Err(pointless(option, "disk-directed I/O makes no block requests", "traditional"));
            }
        }
        Some(("merge", given)) => {
            let kind = given.get_one::<String>("kind").map_or("merge", |kind| kind);
            let option = OF_MERGES.iter().find(|(id, _)| is_given(given, id)).filter(|_| kind != "merge");
            if let Some((_, option)) = option {
                let why = format!("it would do nothing: these jobs {kind}");
                let failure = Failure::usage(*option, why);
                return Err(failure.remedy(format!("Add --kind merge, or leave {option} out.")));
            }
        }
        _ => {}
    }
    Ok(())
}

fn is_given(matches: &ArgMatches, id: &str) -> bool {
    matches.value_source(id) == Some(ValueSource::CommandLine)
}

fn pointless(option: &str, why: &str, method: &str) -> Failure {
    let failure = Failure::usage(option, format!("it would do nothing: {why}"));
    failure.remedy(format!("Add --method {method}, or leave {option} out."))
}
