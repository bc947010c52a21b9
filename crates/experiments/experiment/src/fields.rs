//! The fields of a case: their names, values and meanings, and the functions that set them.
//!
//! [`FIELDS`] is the source of the options of `starfish simulate`, the keys of plans, the arguments in Python, the
//! manual's pages, the types of the Python package and the columns of results. To add a field, add a row to this table
//! and a field to [`Choices`], and use it. Jobs that share disks have a separate table in `placement_fields.rs`.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use description::{Bytes, MachineDescription, Time, WrittenAsText, unknown};
use fs::{Division, Scheduling};
use jobs::Contents;
use machine::Duration;

use crate::choices::{Choices, OF_NO_MATRIX, unheeded_by};

/// Settings for the fields of a table, from which cases of one kind are created.
pub trait FieldSet: Clone + Default + 'static {
    /// Kind of the created cases.
    type Case;

    /// Returns all fields, in the order of the columns of results.
    fn fields() -> &'static [FieldOf<Self>];

    /// Returns the chosen machine.
    fn machine_choice(&self) -> MachineChoice;

    /// Returns the name or path of the machine.
    fn machine(&mut self) -> &mut String;

    /// Returns the replaced values of the machine, by dotted key.
    fn set(&mut self) -> &mut BTreeMap<String, String>;

    /// Returns the reason why a chosen field has no effect on this case; `None` if it has an effect.
    fn without_effect(field: &str, case: &Self::Case) -> Option<String>;

    /// Loads the machine, with the replaced values.
    fn load_machine(&self) -> Result<MachineDescription, description::Error> {
        self.machine_choice().load()
    }
}

/// A chosen machine.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MachineChoice {
    /// Name or path, in the form that [`MachineDescription::load_with`] accepts.
    pub name: String,
    /// Replaced values, by dotted key.
    pub set: BTreeMap<String, String>,
    /// Numbers of compute nodes and disks, unless `set` replaces them.
    pub nodes_and_disks: Option<(u32, u32)>,
}

impl MachineChoice {
    /// Loads the machine, with the replaced values.
    fn load(&self) -> Result<MachineDescription, description::Error> {
        self.made_by(&|set| MachineDescription::load_with(&self.name, set))
    }

    /// Parses `text` as the description of the machine, instead of loading the named machine. Replaces the values.
    pub fn parse(&self, text: &str) -> Result<MachineDescription, description::Error> {
        self.made_by(&|set| MachineDescription::parse_with(text, &self.name, set))
    }

    /// Creates the machine with `make`, with the replaced values.
    fn made_by(&self, make: &Make<'_>) -> Result<MachineDescription, description::Error> {
        let Some((nodes, disks)) = self.nodes_and_disks else { return self.made_with(&[], make) };
        let per_node = self.made_with(&[], make)?.disks.per_io_node.value.max(1);
        let io_nodes = disks.div_ceil(per_node).to_string();
        self.made_with(&[("nodes.compute", &nodes.to_string()), ("nodes.io", &io_nodes)], make)
    }

    fn made_with(
        &self,
        more: &[(&str, &str)],
        make: &Make<'_>,
    ) -> Result<MachineDescription, description::Error> {
        let set = self.set.iter().map(|(key, value)| (&**key, &**value));
        // The user's choice has precedence.
        let more = more.iter().copied().filter(|(key, _)| !self.set.contains_key(*key));
        make(&more.chain(set).collect::<Vec<_>>())
    }
}

/// Function that creates a machine with some values replaced, by dotted key.
type Make<'a> = dyn Fn(&[(&str, &str)]) -> Result<MachineDescription, description::Error> + 'a;

/// A field of a case of the reports on access methods.
pub type Field = FieldOf<Choices>;

/// Kind of the values of such a field.
pub type FieldValues = FieldValuesOf<Choices>;

/// A field: a setting of a case.
pub struct FieldOf<C: FieldSet> {
    /// Name in plans and in Python. In an option, hyphens replace the underscores.
    pub name: &'static str,
    /// Kind of its values.
    pub takes: FieldValuesOf<C>,
    /// Default value as TOML; empty without a default.
    pub default: &'static str,
    /// Meaning, in one or two sentences.
    pub meaning: &'static str,
    /// Name of its column in tables of results; empty without a column.
    pub column: &'static str,
    pub(crate) shown: fn(&C::Case) -> Shown,
}

/// Kind of a field's values, with the function that sets the field.
pub enum FieldValuesOf<C> {
    /// True or false.
    Flag(fn(&mut C, bool)),
    /// A number of bytes within this range.
    Size(RangeInclusive<u64>, fn(&mut C, u64)),
    /// A whole number within this range.
    Whole(RangeInclusive<u64>, fn(&mut C, u64)),
    /// One of these names.
    Name(&'static [&'static str], Choose<C>),
    /// A text of a special form. The first element is its placeholder in the help of a command, the second describes
    /// the possible values.
    Text(&'static str, &'static str, Choose<C>),
    /// A whole number, or one of these names.
    WholeOrName(&'static [&'static str], Choose<C>),
    /// A whole number within this range, or [`UNLIMITED`].
    WholeOrUnlimited(RangeInclusive<u64>, fn(&mut C, Option<u64>)),
}

/// Word that stands for no limit.
pub const UNLIMITED: &str = "unlimited";

/// Function that sets a field from a text. Fails with the expected values.
type Choose<C> = fn(&mut C, &str) -> Result<(), String>;

/// A value given for a field, from any source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Given<'a> {
    /// A text.
    Text(&'a str),
    /// A whole number.
    Whole(u64),
    /// True or false.
    Flag(bool),
    /// A word of a command line, which may be a text, a whole number, or true or false.
    Word(&'a str),
    /// A value of another type, described as text for error messages.
    Other(String),
}

/// Value of a field in a case, for display.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shown {
    /// Text.
    Text(String),
    /// A whole number.
    Whole(u64),
    /// True or false.
    Flag(bool),
    /// No value.
    Missing,
}

impl FieldSet for Choices {
    type Case = crate::case::Case;

    fn fields() -> &'static [Field] {
        &FIELDS
    }

    fn machine(&mut self) -> &mut String {
        &mut self.machine
    }

    fn set(&mut self) -> &mut BTreeMap<String, String> {
        &mut self.set
    }

    fn machine_choice(&self) -> MachineChoice {
        MachineChoice { name: self.machine.clone(), set: self.set.clone(), nodes_and_disks: None }
    }

    fn without_effect(field: &str, case: &crate::case::Case) -> Option<String> {
        let is_of_matrix = case.pattern.is_of_matrix();
        let why = match field {
            "shape" | "grid" => (!is_of_matrix).then_some(OF_NO_MATRIX),
            _ => unheeded_by(field, case.method).or_else(|| case.ignores(field)),
        };
        why.map(str::to_owned)
    }
}

/// Maximum of counts. A larger number is a mistake, and a simulation with it would run out of memory.
const COUNT_MAX: u64 = 1 << 16;
/// Maximum block size in bytes: an I/O node has no memory for a queue of larger blocks.
const BLOCK_BYTES_MAX: u64 = 64 << 20;
const FILE_BYTES_MAX: u64 = 1 << 50;

/// All fields, in the order of the columns of results.
pub static FIELDS: [Field; 24] = [
    Field {
        name: "machine",
        takes: FieldValues::Text("NAME", "name or path", |choices, name| {
            choices.machine = name.to_owned();
            Ok(())
        }),
        default: "\"starfish-1996\"",
        meaning: "The machine: a name that `starfish machines` lists, or a TOML file with a path relative to \
                  the plan.",
        column: "",
        shown: |case| Shown::Text(case.machine.name.clone()),
    },
    Field {
        name: "method",
        takes: FieldValues::Name(
            &["traditional", "two-phase", "disk-directed", "write-cached"],
            |choices, text| parsed(text).map(|method| choices.method = Some(method)),
        ),
        default: "",
        meaning: "The access method. Required, in each variant or for all.",
        column: "method",
        shown: |case| Shown::Text(case.method.to_string()),
    },
    Field {
        name: "layout",
        takes: FieldValues::Name(&["contiguous", "random"], |choices, text| {
            parsed(text).map(|layout| choices.layout = layout)
        }),
        default: "\"contiguous\"",
        meaning: "Layout of the file on each disk.",
        column: "layout",
        shown: |case| Shown::Text(case.layout.to_string()),
    },
    Field {
        name: "file_size",
        takes: FieldValues::Size(1..=FILE_BYTES_MAX, |choices, bytes| choices.file_bytes = bytes),
        default: "\"10 MiB\"",
        meaning: "Size of the file.",
        column: "file_bytes",
        shown: |case| Shown::Whole(case.problem.file_bytes),
    },
    Field {
        name: "block",
        takes: FieldValues::Size(1..=BLOCK_BYTES_MAX, |choices, bytes| choices.options.block_bytes = bytes),
        default: "\"8 KiB\"",
        meaning: "Size of a block, which is the unit of disk requests and of striping.",
        column: "block_bytes",
        shown: |case| Shown::Whole(case.options.block_bytes),
    },
    Field {
        name: "shape",
        takes: FieldValues::Text(SIDES.0, SIDES.1, |choices, text| {
            parsed(text).map(|shape| choices.shape = Some(shape))
        }),
        default: "",
        meaning: "Rows and columns of the matrix in the file, in records. Default: as square as possible.",
        column: "shape",
        shown: |case| case.problem.shape.map_or(Shown::Missing, |shape| Shown::Text(shape.to_string())),
    },
    Field {
        name: "grid",
        takes: FieldValues::Text(SIDES.0, SIDES.1, |choices, text| {
            parsed(text).map(|grid| choices.grid = Some(grid))
        }),
        default: "",
        meaning: "Rows and columns of the grid of compute nodes. Default: as square as possible.",
        column: "grid",
        shown: |case| case.problem.grid.map_or(Shown::Missing, |grid| Shown::Text(grid.to_string())),
    },
    Field {
        name: "contents",
        takes: FieldValues::Name(&["real", "phantom"], |choices, text| {
            parsed(text).map(|contents| choices.contents = contents)
        }),
        default: "\"real\"",
        meaning: "Contents of files: real bytes, or phantoms, which take no memory and are not checked.",
        column: "contents",
        shown: |case| Shown::Text(case.contents.to_string()),
    },
    Field {
        name: "phantom",
        takes: FieldValues::Flag(|choices, phantom| {
            choices.contents = if phantom { Contents::Phantom } else { Contents::Real };
        }),
        default: "false",
        meaning: "Use phantom data, which take no memory and are not checked: for files larger than memory.",
        column: "",
        shown: |case| Shown::Flag(case.contents == Contents::Phantom),
    },
    Field {
        name: "outstanding",
        takes: FieldValues::Whole(1..=COUNT_MAX, |choices, count| {
            choices.options.outstanding = count as usize
        }),
        default: "4",
        meaning: "Requests that each compute node has in flight to each disk (the reports' K); traditional only.",
        column: "outstanding",
        shown: |case| Shown::Whole(case.options.outstanding as u64),
    },
    Field {
        name: "scheduling",
        takes: FieldValues::Name(&Scheduling::NAMES, |choices, text| {
            parsed(text).map(|scheduling| choices.options.scheduling = scheduling)
        }),
        default: "\"cyclic-scan\"",
        meaning: "The order in which a disk serves queued requests; traditional only.",
        column: "scheduling",
        shown: |case| Shown::Text(case.options.scheduling.to_string()),
    },
    Field {
        name: "thread_per_request",
        takes: FieldValues::Flag(|choices, flag| choices.options.thread_per_request = flag),
        default: "false",
        meaning: "Start a thread for each request, instead of using a pool; traditional only.",
        column: "thread_per_request",
        shown: |case| Shown::Flag(case.options.thread_per_request),
    },
    Field {
        name: "prefetch",
        takes: FieldValues::Whole(0..=COUNT_MAX, |choices, blocks| choices.options.prefetch_blocks = blocks),
        default: "1",
        meaning: "Blocks that an I/O node prefetches after each read; traditional only.",
        column: "prefetch_blocks",
        shown: |case| Shown::Whole(case.options.prefetch_blocks),
    },
    Field {
        name: "memget_writes",
        takes: FieldValues::Flag(|choices, flag| choices.options.memget_writes = flag),
        default: "false",
        meaning: "Let I/O nodes fetch the data of a write (Memget), instead of receiving them with the \
                  request; not disk-directed.",
        column: "memget_writes",
        shown: |case| Shown::Flag(case.options.memget_writes),
    },
    Field {
        name: "queued",
        takes: FieldValues::Name(&["never", "always", "small-records"], |choices, text| {
            parsed(text).map(|queued| choices.options.queued = queued)
        }),
        default: "\"small-records\"",
        meaning: "Queueing of Memputs and Memgets, so that several for one node share a message.",
        column: "queued",
        shown: |case| Shown::Text(case.options.queued.to_string()),
    },
    Field {
        name: "presort",
        takes: FieldValues::Flag(|choices, flag| choices.options.presort = flag),
        default: "false",
        meaning: "Sort each disk's blocks by position first; disk-directed only.",
        column: "presort",
        shown: |case| Shown::Flag(case.options.presort),
    },
    Field {
        name: "page_cache",
        takes: FieldValues::Size(0..=FILE_BYTES_MAX, |choices, bytes| {
            choices.options.page_cache_bytes = bytes
        }),
        default: "\"0 B\"",
        meaning: "Size of the page cache of each compute node; 0: no page cache; traditional only.",
        column: "page_cache_bytes",
        shown: |case| Shown::Whole(case.options.page_cache_bytes),
    },
    Field {
        name: "window",
        takes: FieldValues::WholeOrName(&["adaptive", "none"], |choices, text| {
            parsed(text).map(|window| choices.options.window = Some(window))
        }),
        default: "",
        meaning: "Number of pages that a page cache prefetches, including the current one. Default: adaptive.",
        column: "window",
        shown: |case| case.options.window.map_or(Shown::Missing, |window| Shown::Text(window.to_string())),
    },
    Field {
        name: "write_cache",
        takes: FieldValues::Size(4096..=FILE_BYTES_MAX, |choices, bytes| {
            choices.options.write_cache_bytes = Some(bytes);
        }),
        default: "",
        meaning: "Size of each compute node's write cache, including its directory; write-cached only. \
                  Default: 1 MiB; in the configuration of agents, 16 MiB.",
        column: "write_cache_bytes",
        shown: |case| case.write_cache().map_or(Shown::Missing, |cache| Shown::Whole(cache.bytes)),
    },
    Field {
        name: "directory_fraction",
        takes: FieldValues::Text("FRACTION", "`\"0.01\"` to `\"0.99\"` or `\"shared\"`", |choices, text| {
            choices.options.division = Some(match text {
                SHARED => Division::Shared,
                _ => fraction(text, 0.01..=0.99)
                    .map(|directory| Division::Fixed { directory })
                    .map_err(|expected| format!("{expected}, or {SHARED}"))?,
            });
            Ok(())
        }),
        default: "",
        meaning: "Part of the write cache reserved for its directory, which needs 24 bytes for each write; \
                  shared: no reserved part; write-cached only. Default: 0.1; in the configuration of agents, \
                  shared.",
        column: "directory_fraction",
        shown: |case| match case.write_cache().map(|cache| cache.division) {
            Some(Division::Fixed { directory }) => Shown::Text(directory.to_string()),
            Some(Division::Shared) => Shown::Text(SHARED.to_owned()),
            None => Shown::Missing,
        },
    },
    Field {
        name: "flush_at",
        takes: FieldValues::Text("FRACTION", "`\"0.1\"` to `\"1\"`", |choices, text| {
            choices.options.flush_at = Some(fraction(text, 0.1..=1.0)?);
            Ok(())
        }),
        default: "",
        meaning: "Divide the write cache into halves, and flush a half in the background when this part of \
                  it is full; write-cached only. Default: one cache, which blocks writes while it is \
                  flushed; in the configuration of agents, 1.",
        column: "flush_at",
        shown: |case| match case.write_cache().and_then(|cache| cache.background) {
            Some(fullness) => Shown::Text(fullness.to_string()),
            None => Shown::Missing,
        },
    },
    Field {
        name: "flush_after",
        takes: FieldValues::Text("TIME", "a time such as `\"30 s\"`", |choices, text| {
            choices.options.flush_after = Some(time(text)?);
            Ok(())
        }),
        default: "",
        meaning: "Flush the write cache when its oldest write has this age; write-cached only. Default: no \
                  limit; in the configuration of agents, 30 s.",
        column: "flush_after",
        shown: |case| match case.write_cache().and_then(|cache| cache.flush_after) {
            Some(time) => Shown::Text(time.to_string()),
            None => Shown::Missing,
        },
    },
    Field {
        name: "buffers",
        takes: FieldValues::Whole(1..=COUNT_MAX, |choices, count| choices.options.buffers = count),
        default: "2",
        meaning: "Buffers of an I/O node for each disk in a collective operation; disk-directed and write-cached only.",
        column: "buffers",
        shown: |case| Shown::Whole(case.options.buffers),
    },
    Field {
        name: "calls",
        takes: FieldValues::Flag(|choices, flag| choices.options.calls = flag),
        default: "false",
        meaning: "All nodes access their parts of the file in one collective call, then sync, as an MPI \
                  program on agents does; nodes then have the configuration of agents and their clients.",
        column: "calls",
        shown: |case| Shown::Flag(case.options.calls),
    },
];

/// Name of the setting that reserves no part of the write cache for its directory.
const SHARED: &str = "shared";

/// Parses a number within a range. Fails with the expected range.
fn fraction(text: &str, allowed: RangeInclusive<f64>) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number| allowed.contains(number));
    number.ok_or_else(|| format!("expected a number from {} to {}", allowed.start(), allowed.end()))
}

/// Parses a time. Fails with the expected form.
pub(crate) fn time(text: &str) -> Result<Duration, String> {
    Time::parse(text).map(|time| time.0).ok_or_else(|| format!("expected {}, not {text:?}", Time::EXPECTED))
}

/// Form of rows and columns: first in a command line, then in plans.
const SIDES: (&str, &str) = ("RxC", "`\"RxC\"`");

/// Returns the names of all fields of these settings.
pub fn field_names<C: FieldSet>() -> Vec<&'static str> {
    C::fields().iter().map(|field| field.name).collect()
}

impl<C: FieldSet> FieldOf<C> {
    /// Returns the field of this name. Hyphens count as underscores, so the option name `file-size` finds `file_size`.
    pub fn named(name: &str) -> Option<&'static Self> {
        let name = name.replace('-', "_");
        C::fields().iter().find(|field| field.name == name)
    }

    /// Returns the field of this name, or an error message.
    pub fn expect(name: &str) -> Result<&'static Self, String> {
        Self::named(name).ok_or_else(|| unknown("key", name, &field_names::<C>()))
    }

    /// Sets the field to a value. Fails with the expected values.
    pub fn choose(&self, choices: &mut C, value: Given<'_>) -> Result<(), String> {
        self.takes.choose(choices, value)
    }

    /// Returns the value of the field in a case, for display.
    pub fn shown(&self, case: &C::Case) -> Shown {
        (self.shown)(case)
    }
}

impl<C> FieldValuesOf<C> {
    /// Sets the field to a value of its kind.
    fn choose(&self, choices: &mut C, given: Given<'_>) -> Result<(), String> {
        let expected = |what: &str| Err(format!("expected {what}, not {}", given.shown()));
        match self {
            FieldValuesOf::Flag(choose) => match given {
                Given::Flag(flag) => choose(choices, flag),
                Given::Word("true") => choose(choices, true),
                Given::Word("false") => choose(choices, false),
                _ => return expected("true or false"),
            },
            FieldValuesOf::Whole(allowed, choose) => {
                match given.whole().filter(|number| allowed.contains(number)) {
                    Some(number) => choose(choices, number),
                    None => return expected(&whole_numbers(allowed)),
                }
            }
            FieldValuesOf::WholeOrUnlimited(allowed, choose) => match given {
                Given::Text(UNLIMITED) | Given::Word(UNLIMITED) => choose(choices, None),
                _ => match given.whole().filter(|number| allowed.contains(number)) {
                    Some(number) => choose(choices, Some(number)),
                    None => return expected(&format!("{}, or {UNLIMITED}", whole_numbers(allowed))),
                },
            },
            FieldValuesOf::Size(allowed, choose) => match given.bytes() {
                None => return expected(Bytes::EXPECTED),
                Some(bytes) if allowed.contains(&bytes) => choose(choices, bytes),
                Some(_) => return expected(&format!("from {} to {} bytes", allowed.start(), allowed.end())),
            },
            FieldValuesOf::WholeOrName(_, choose) if matches!(given, Given::Whole(_)) => {
                return choose(choices, &given.shown());
            }
            FieldValuesOf::Name(_, choose)
            | FieldValuesOf::Text(_, _, choose)
            | FieldValuesOf::WholeOrName(_, choose) => match given {
                Given::Text(text) | Given::Word(text) if !text.trim().is_empty() => {
                    return choose(choices, text);
                }
                _ => return expected("a text in quotes"),
            },
        }
        Ok(())
    }

    /// Describes the possible values, in the words of the manual.
    pub fn in_words(&self) -> String {
        match self {
            FieldValuesOf::Flag(_) => "flag".to_owned(),
            FieldValuesOf::Size(..) => "size".to_owned(),
            FieldValuesOf::Whole(allowed, _) => format!("{} to {}", allowed.start(), allowed.end()),
            FieldValuesOf::Name(names, _) => alternatives(names.iter().map(|name| format!("`\"{name}\"`"))),
            FieldValuesOf::WholeOrName(names, _) => {
                let names = names.iter().map(|name| format!("`\"{name}\"`"));
                alternatives(std::iter::once("whole number".to_owned()).chain(names))
            }
            FieldValuesOf::WholeOrUnlimited(..) => format!("whole number or `\"{UNLIMITED}\"`"),
            FieldValuesOf::Text(_, words, _) => (*words).to_owned(),
        }
    }
}

fn whole_numbers(allowed: &RangeInclusive<u64>) -> String {
    format!("a whole number from {} to {}", allowed.start(), allowed.end())
}

impl Given<'_> {
    fn whole(&self) -> Option<u64> {
        match self {
            Given::Whole(number) => Some(*number),
            Given::Word(word) => word.parse().ok(),
            _ => None,
        }
    }

    fn bytes(&self) -> Option<u64> {
        match self {
            Given::Text(text) | Given::Word(text) => Bytes::parse(text).map(|bytes| bytes.0),
            _ => self.whole(),
        }
    }

    /// Returns the value in the form of an error message.
    fn shown(&self) -> String {
        match self {
            Given::Text(text) => format!("{text:?}"),
            Given::Whole(number) => number.to_string(),
            Given::Flag(flag) => flag.to_string(),
            Given::Word(words) => (*words).to_owned(),
            Given::Other(words) => words.clone(),
        }
    }
}

/// Joins these texts as alternatives.
fn alternatives(of: impl Iterator<Item = String>) -> String {
    let of: Vec<String> = of.collect();
    match &of[..] {
        [first @ .., last] if !first.is_empty() => format!("{} or {last}", first.join(", ")),
        _ => of.concat(),
    }
}

pub(crate) fn parsed<T: FromStr<Err: Display>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The documented default of each field must be the default of the choices.
    #[test]
    fn documented_defaults_equal_those_of_the_choices() {
        for field in FIELDS.iter().filter(|field| !field.default.is_empty()) {
            let mut choices = Choices::default();
            let default = field.default.trim_matches('"');
            field
                .choose(&mut choices, Given::Word(default))
                .unwrap_or_else(|why| panic!("{}: {why}", field.name));
            assert_eq!(format!("{choices:?}"), format!("{:?}", Choices::default()), "{}", field.name);
        }
    }

    #[test]
    fn documented_names_are_accepted_and_others_rejected() {
        for field in &FIELDS {
            let mut choices = Choices::default();
            let (FieldValues::Name(names, _) | FieldValues::WholeOrName(names, _)) = &field.takes else {
                continue;
            };
            for name in *names {
                assert_eq!(field.choose(&mut choices, Given::Text(name)), Ok(()), "{}", field.name);
            }
            let why = field.choose(&mut choices, Given::Text("nonsense")).expect_err("refused");
            assert!(names.iter().all(|name| why.contains(name)), "{}: {why}", field.name);
        }
    }

    #[test]
    fn a_wrong_value_is_rejected_with_the_valid_ones() {
        for (name, given, why) in [
            ("outstanding", Given::Text("4"), "expected a whole number from 1 to 65536, not \"4\""),
            ("outstanding", Given::Word("0"), "expected a whole number from 1 to 65536, not 0"),
            ("block", Given::Flag(true), "not true"),
            ("block", Given::Whole(0), "expected from 1 to 67108864 bytes, not 0"),
            ("presort", Given::Whole(1), "expected true or false, not 1"),
            ("queued", Given::Other("a list".to_owned()), "expected a text in quotes, not a list"),
            ("window", Given::Text("wide"), "expected a number of pages"),
        ] {
            let error = Field::expect(name).and_then(|field| field.choose(&mut Choices::default(), given));
            let error = error.expect_err("refused");
            assert!(error.contains(why), "{name}: {error}");
        }
        let unknown = Field::expect("page_cash").err().expect("unknown");
        assert!(unknown.contains("did you mean page_cache?"), "{unknown}");
    }
}
