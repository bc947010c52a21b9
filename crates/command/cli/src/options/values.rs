//! Values of options for completion by Tab: methods, machines, patterns, names of files, agents.
//!
//! Options are identified by their names in the program. Options whose values clap already knows, and options whose
//! values are paths, are not listed here.

use clap::Command;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use command_line::{Values, fixed, or_path, stored};
use description::{Description, DiskDescription, MachineDescription};
use experiment::{Method, Replay};
use fs::Scheduling;
use layout::Pattern;

use crate::options::study;

/// Extension of plans and descriptions.
const TOML: &str = ".toml";

/// Adds the values of options to the program's command line.
pub(crate) fn known(program: Command) -> Command {
    program.mut_subcommands(|command| {
        let name = command.get_name().to_owned();
        known(command.mut_args(|argument| match values(&name, argument.get_id().as_str()) {
            Some(values) => argument.add(values),
            None => argument,
        }))
    })
}

/// Returns the values of an argument of a command, or `None` if this table does not list them.
fn values(command: &str, argument: &str) -> Option<Values> {
    let machines = || names(MachineDescription::BUILT_IN);
    let disks = || names(DiskDescription::BUILT_IN);
    let or_all = |mut names: Vec<String>| {
        names.push("all".into());
        names
    };
    Some(match (command, argument) {
        ("machines", "name") => fixed(machines().into_iter().chain(disks())),
        ("get" | "stat" | "put", "name")
        | ("cat" | "rm" | "fsck" | "ls" | "mkdir", "names")
        | ("mv", "paths") => stored(),
        (_, "machine" | "predict") => or_path(machines(), TOML),
        (_, "disk_model") => or_path(disks(), TOML),
        ("simulate", "method") => fixed(or_all(Method::ALL.iter().map(ToString::to_string).collect())),
        ("simulate", "pattern") | ("patterns", "patterns") => {
            fixed(or_all(Pattern::all().map(|pattern| pattern.to_string()).collect()))
        }
        ("replay", "method") => fixed(or_all(Replay::METHODS.iter().map(ToString::to_string).collect())),
        ("replay", "layout") => fixed(["contiguous", "random"]),
        ("simulate", "layout") => fixed(["contiguous", "random", "all"]),
        ("run", "plans") => or_path([""; 0], TOML),
        ("reproduce", "study") => or_path(study::names(), "/"),
        (_, "agents") => Values::new(command_line::agents),
        _ => return None,
    })
}

/// Returns a parser for the name of a disk scheduling order.
pub(crate) fn scheduling() -> impl TypedValueParser<Value = Scheduling> {
    let value = |scheduling: Scheduling| PossibleValue::new(scheduling.name()).help(scheduling.meaning());
    PossibleValuesParser::new(Scheduling::ALL.map(value)).map(|name| name.parse().expect("one of these"))
}

fn names(built_in: &[(&str, &str)]) -> Vec<String> {
    built_in.iter().map(|(name, _)| (*name).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use clap_complete::engine::complete;

    use super::*;

    fn completions(line: &str) -> Vec<String> {
        let words: Vec<_> = line.split(' ').map(Into::into).collect();
        let last = words.len() - 1;
        let all = complete(&mut known(crate::Arguments::command()), words, last, None).expect("values");
        all.iter().map(|candidate| candidate.get_value().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn methods_machines_patterns_and_studies_are_completed() {
        assert_eq!(completions("starfish simulate --method t"), ["traditional", "two-phase"]);
        assert_eq!(
            completions("starfish simulate --method=traditional,d"),
            ["--method=traditional,disk-directed"]
        );
        assert_eq!(completions("starfish put x --method d"), ["disk-directed"]);
        assert_eq!(completions("starfish simulate --pattern rb"), ["rb", "rbb", "rbc"]);
        assert_eq!(completions("starfish simulate --machine starfish"), ["starfish-1996"]);
        assert_eq!(completions("starfish demo --disk-model streaming-2"), ["streaming-20"]);
        assert_eq!(completions("starfish bench pdiol --disk-model st"), ["st318416w", "streaming-20"]);
        assert_eq!(completions("starfish reproduce star"), ["starfish-3.0"]);
        assert_eq!(completions("starfish machines starf"), ["starfish-1996"]);
        assert_eq!(completions("starfish agents u"), ["up"]);
    }

    #[test]
    fn completed_arguments_exist() {
        let mut program = crate::Arguments::command();
        for (command, argument) in [
            ("machines", "name"),
            ("get", "name"),
            ("stat", "name"),
            ("put", "name"),
            ("cat", "names"),
            ("rm", "names"),
            ("fsck", "names"),
            ("ls", "names"),
            ("mkdir", "names"),
            ("mv", "paths"),
            ("simulate", "layout"),
            ("replay", "layout"),
            ("replay", "method"),
            ("run", "plans"),
            ("ls", "agents"),
        ] {
            let found = program.find_subcommand_mut(command).expect(command);
            assert!(found.get_arguments().any(|known| known.get_id() == argument), "{command} {argument}");
        }
    }
}
