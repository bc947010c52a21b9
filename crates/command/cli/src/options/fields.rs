//! Options for the fields of a case: the option of field `file_size` is `--file-size`.
//!
//! Names, values and meanings are defined in `crates/experiments/experiment/src/fields.rs`, also for plans and Python.

use clap::builder::{PossibleValuesParser, ValueParser};
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches};
use experiment::{
    Choices, FIELDS, Field, FieldOf, FieldSet, FieldValuesOf, Given, Options, PLACEMENT_FIELDS,
    PlacementChoices,
};
use request_log::RequestLog;

use command_line::durations;

/// Values chosen for the fields.
pub(crate) struct FieldOptions(pub(crate) Choices);

/// Fields without an option here. Commands have special options in place of them, which accept several values; for
/// `contents` this is `--phantom`.
const ELSEWHERE: [&str; 4] = ["machine", "method", "layout", "contents"];

/// Fields that describe the array in the file. With a request log they have no effect, because the log determines them.
const OF_ARRAYS: [&str; 3] = ["file_size", "shape", "grid"];

/// Fields that set how I/O nodes serve requests, and the transferred parts. Agents have their own settings for these.
const OF_SIMULATION: [&str; 7] =
    ["phantom", "outstanding", "scheduling", "thread_per_request", "prefetch", "memget_writes", "buffers"];

fn offered() -> impl Iterator<Item = &'static Field> {
    FIELDS.iter().filter(|field| !ELSEWHERE.contains(&field.name))
}

/// Returns the option for a field.
pub(crate) fn option(field: &str) -> String {
    format!("--{}", field.replace('_', "-"))
}

fn argument<C: FieldSet>(field: &'static FieldOf<C>) -> Arg {
    // Leak the name, because clap needs it during the whole run of the program.
    let long: &'static str = field.name.replace('_', "-").leak();
    let argument = Arg::new(field.name).long(long).help(field.meaning.trim_end_matches('.'));
    let argument = match &field.takes {
        FieldValuesOf::Flag(_) => return argument.action(ArgAction::SetTrue),
        FieldValuesOf::Size(..) => argument.value_name("SIZE").value_parser(words(field)),
        FieldValuesOf::Whole(..) => argument.value_name("N").value_parser(words(field)),
        FieldValuesOf::Text(TIME, ..) => argument.value_name(TIME).value_parser(time),
        FieldValuesOf::Text(name, ..) => argument.value_name(*name).value_parser(words(field)),
        FieldValuesOf::WholeOrName(..) | FieldValuesOf::WholeOrUnlimited(..) => {
            argument.value_name("N").value_parser(words(field))
        }
        FieldValuesOf::Name(names, _) => {
            argument.value_name("NAME").value_parser(PossibleValuesParser::new(*names))
        }
    };
    match field.default.trim_matches('"') {
        "" => argument,
        default => argument.default_value(default),
    }
}

/// Parses a word if it is a valid value of the field.
fn words<C: FieldSet>(field: &'static FieldOf<C>) -> ValueParser {
    ValueParser::from(move |word: &str| {
        field.choose(&mut C::default(), Given::Word(word)).map(|()| word.to_owned())
    })
}

/// Value name of fields whose values are times. (Plans accept fewer units for them.)
const TIME: &str = "TIME";

/// Parses a duration like all options do, and returns it in a form that plans accept.
fn time(word: &str) -> Result<String, String> {
    durations::parse(word).map(|time| format!("{} ns", time.as_nanos()))
}

impl Args for FieldOptions {
    fn augment_args(command: Command) -> Command {
        command.args(offered().map(argument))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

/// Returns the choices that the command line gives for these fields.
fn given<C: FieldSet>(
    fields: impl Iterator<Item = &'static FieldOf<C>>,
    matches: &ArgMatches,
) -> Result<C, Error> {
    let mut choices = C::default();
    for field in fields {
        let given = match field.takes {
            FieldValuesOf::Flag(_) => Some(Given::Flag(matches.get_flag(field.name))),
            _ => matches.get_one::<String>(field.name).map(|word| Given::Word(word)),
        };
        let Some(given) = given else { continue };
        field.choose(&mut choices, given).map_err(|why| Error::raw(ErrorKind::ValueValidation, why))?;
    }
    Ok(choices)
}

impl FromArgMatches for FieldOptions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        given(offered(), matches).map(FieldOptions)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Values chosen for the replay of a request log.
pub(crate) struct ReplayOptions {
    pub(crate) choices: Choices,
    /// True if the block size was given.
    pub(crate) is_block_given: bool,
    /// The same for the numbers of outstanding and queued requests.
    is_outstanding_given: bool,
    is_queued_given: bool,
}

impl ReplayOptions {
    /// Returns the options for the replay of a log. If the log has calls of programs on agents, options that were not
    /// given have the values of agents, and the block size is that of the log.
    pub(crate) fn options(&self, log: &RequestLog) -> Options {
        let chosen = self.choices.options;
        let Some(calls) = log.calls() else { return chosen };
        let usual = Options::of_agents();
        let recorded = calls.openings.iter().map(|opening| opening.block_bytes).max();
        Options {
            block_bytes: match self.is_block_given {
                true => chosen.block_bytes,
                false => recorded.unwrap_or(usual.block_bytes),
            },
            outstanding: if self.is_outstanding_given { chosen.outstanding } else { usual.outstanding },
            queued: if self.is_queued_given { chosen.queued } else { usual.queued },
            presort: true,
            ..chosen
        }
    }
}

fn offered_for_replays() -> impl Iterator<Item = &'static Field> {
    offered().filter(|field| !OF_ARRAYS.contains(&field.name))
}

impl Args for ReplayOptions {
    fn augment_args(command: Command) -> Command {
        command.args(offered_for_replays().map(|field| match OF_SIMULATION.contains(&field.name) {
            true => argument(field).conflicts_with("agents"),
            false => argument(field),
        }))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for ReplayOptions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let is_given = |field| matches.value_source(field) == Some(ValueSource::CommandLine);
        Ok(ReplayOptions {
            choices: given(offered_for_replays(), matches)?,
            is_block_given: is_given("block"),
            is_outstanding_given: is_given("outstanding"),
            is_queued_given: is_given("queued"),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Values chosen for jobs that share disks.
pub(crate) struct MergeOptions(pub(crate) PlacementChoices);

impl Args for MergeOptions {
    fn augment_args(command: Command) -> Command {
        command.args(PLACEMENT_FIELDS.iter().map(argument))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for MergeOptions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        given(PLACEMENT_FIELDS.iter(), matches).map(MergeOptions)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
