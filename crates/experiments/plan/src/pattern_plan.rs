//! Plans of access methods, the cases of the reports: their keys in addition to those of every plan.
//!
//! ```toml
//! name = "table-02"
//! patterns = "all"                         # or "reads", "writes", or a list of patterns
//! records = ["8 B", "8192 B"]              # sizes of records; "8192 B" if left out
//!
//! [[variant]]
//! name = "fcfs"
//! method = "traditional"
//! scheduling = "fcfs"
//!
//! [table]                                  # the published table, if the plan reproduces one; likewise [figure]
//! number = 2
//! system = "tpfs"
//! value = "throughput"                     # or "movements"
//! ```
//!
//! The settings are the fields of `crates/experiments/experiment/src/fields.rs`.
//!
//! If a plan names a group of patterns, the cases that the reports exclude are left out. If the plan also has records
//! of a block or more, `ra`, `rn` and `wn` are run only with the largest records, because their nodes access the whole
//! file in one request anyway. Patterns that a plan lists explicitly are always run.

use std::ops::Range;

use description::{MachineDescription, Misfit};
use experiment::{AccessPattern, ArrayPattern, Case, Choices, Contents, JobError, Method, Trial};
use layout::{LayoutError, Operation, Problem};
use toml::de::DeTable;

use crate::kind::{PlaceKey, PlanKind};
use crate::measure::{Measure, Quantity};
use crate::measurement::Measurement;
use crate::plan_errors::PlanErrors;
use crate::planned_trial::PlannedCase;
use crate::reference::{PlanKey, TOP};
use crate::settings::{Chosen, refuse_repetition};
use crate::table::{Type, Value};
use crate::value::TomlValue;

const RECORD_BYTES: u64 = 8192;

/// The subject of a cell: an access pattern with records of one size.
pub struct PatternSubject {
    pattern: Chosen<AccessPattern>,
    record: Chosen<u64>,
    /// Size in bytes of the plan's largest records, if the pattern is excluded with smaller ones.
    largest: Option<u64>,
}

impl PlanKind for Case {
    type Choices = Choices;
    type Subject = PatternSubject;

    const TOP: &'static [PlanKey] = &TOP;
    const QUANTITIES: &'static [Quantity] = &[Quantity::Throughput, Quantity::Movements];
    const PLACE: &'static [PlaceKey] = &[
        PlaceKey { name: "PATTERN", column: "pattern", kind: Type::Text, expected: "a pattern such as rb" },
        PlaceKey {
            name: "RECORD",
            column: "record_bytes",
            kind: Type::Integer,
            expected: "the bytes of a record such as 8192 or 8KiB",
        },
    ];
    const MEASURES: &'static [Measure] = &[Measure::MOVEMENTS];

    fn place(&self) -> Vec<Value> {
        vec![Value::Text(self.pattern.to_string()), Value::Integer(self.problem.record_bytes)]
    }

    /// Returns the method, because variants mostly differ in their methods.
    fn usual_name(choices: &Choices) -> String {
        choices.method.map_or_else(String::new, |method| method.to_string())
    }

    /// Returns each pattern with each record size.
    fn subjects(table: &DeTable<'_>, misfits: &PlanErrors) -> impl ExactSizeIterator<Item = PatternSubject> {
        let (patterns, by_group) = patterns(table.get("patterns").map(TomlValue), misfits);
        let records = records(table.get("records").map(TomlValue), misfits);
        let largest = records.iter().map(|record| record.value).max().filter(|_| by_group);
        (0..records.len() * patterns.len()).map(move |number| {
            let (record, pattern) = (&records[number / patterns.len()], &patterns[number % patterns.len()]);
            let largest = largest.filter(|_| is_whole(pattern.value));
            PatternSubject { pattern: pattern.clone(), record: record.clone(), largest }
        })
    }

    fn case(
        subject: &PatternSubject,
        variant: &Chosen<String>,
        choices: &Choices,
        machine: MachineDescription,
        seed: u64,
    ) -> Result<Option<Case>, Misfit> {
        let PatternSubject { pattern, record, largest } = subject;
        let block = choices.options.block_bytes;
        if record.value < block && largest.is_some_and(|largest| block <= largest) {
            return Ok(None);
        }
        let method = choices.method.ok_or_else(|| {
            let message =
                "the method is missing: expected one of traditional, two-phase, disk-directed, write-cached";
            Misfit { span: variant.span.clone(), message: message.to_owned() }
        })?;
        Ok(Some(choices.case(machine, method, pattern.value, record.value, seed)))
    }

    fn place_of(error: &experiment::Error, subject: &PatternSubject) -> Option<Range<usize>> {
        match error {
            experiment::Error::Job(JobError::Layout(LayoutError::PartialRecord { .. })) => {
                Some(subject.record.span.clone())
            }
            experiment::Error::Job(JobError::Layout(_)) => Some(subject.pattern.span.clone()),
            _ => None,
        }
    }
}

/// Memory in bytes for each block of a simulated file, without the block's contents: requests, places and cache slots.
/// Measured as the growth of resident memory from 1 to 4 GiB of `rb` on the machine golden. With blocks of 8 KiB it is
/// 395 bytes with the traditional method, and 220 with the disk-directed one; with blocks of 1 MiB and 256 GiB, 415.
const BYTES_OF_A_BLOCK: u64 = 400;

/// True if nodes access the whole file in one request with this pattern.
fn is_whole(pattern: AccessPattern) -> bool {
    ["ra", "rn", "wn"].contains(&pattern.to_string().as_str())
}

impl PlannedCase for Case {
    fn machine(&self) -> &MachineDescription {
        &self.machine
    }

    fn printed(&self) -> String {
        match self.options.calls {
            false => format!("{:?}", self.experiment()),
            // The experiment contains a log only as its totals. Pattern and problem determine the calls of the log.
            true => format!("{:?} {:?} {:?}", self.experiment(), self.pattern, self.problem),
        }
    }

    /// Returns the approximate number of transferred pieces: the number of chunks of the view, but at least the number
    /// of blocks.
    fn cost(&self) -> u64 {
        let Case { problem, options, .. } = self;
        let blocks = problem.file_bytes / options.block_bytes.max(1);
        // Each piece of the traditional method is a request and a reply, which take about eight times as many events.
        let weight = if self.method == Method::Traditional { 8 } else { 1 };
        let pieces = match self.pattern {
            AccessPattern::Arrays(pattern) => pieces(pattern, problem, options.block_bytes),
            AccessPattern::Log(_) => Some(problem.file_bytes / problem.record_bytes.max(1)),
        };
        pieces.map_or(0, |pieces| 1 + blocks + weight * pieces)
    }

    fn stored_bytes(&self) -> u64 {
        let blocks = self.problem.file_bytes / self.options.block_bytes.max(1);
        let contents = if self.contents == Contents::Real { self.problem.file_bytes } else { 0 };
        blocks.saturating_mul(BYTES_OF_A_BLOCK).saturating_add(contents)
    }

    fn check(&self) -> Result<(), experiment::Error> {
        Case::check(self)
    }

    fn trial(&self, number: u64) -> Result<Trial, experiment::Error> {
        Case::trial(self, number)
    }

    fn measurement(&self, trial: &Trial) -> Measurement {
        Measurement::new(&self.machine, trial)
    }
}

/// Returns the number of chunks in the views of a pattern, when no chunk is larger than a block. `None` if the problem
/// does not fit the pattern.
fn pieces(pattern: ArrayPattern, problem: &Problem, block_bytes: u64) -> Option<u64> {
    let mut pieces = 0;
    for array in 0..pattern.arrays() {
        let view = pattern.of_array(array).view(problem).ok()?;
        let bytes: u64 = (0..view.nodes()).map(|node| view.node_bytes(node)).sum();
        let chunk =
            (0..view.nodes()).find_map(|node| view.chunks(node).next()).map_or(1, |chunk| chunk.bytes);
        pieces += bytes / pattern.arrays() as u64 / chunk.clamp(1, block_bytes.max(1));
    }
    Some(pieces)
}

/// Returns the patterns, and true if the plan names them as a group.
fn patterns(written: Option<TomlValue<'_>>, misfits: &PlanErrors) -> (Vec<Chosen<AccessPattern>>, bool) {
    const EXPECTED: &str =
        "expected \"all\", \"reads\", \"writes\" or a list of patterns such as [\"rb\", \"wcc\"]";
    let Some(written) = written else {
        misfits.add(Misfit { span: 0..0, message: format!("the patterns are missing: {EXPECTED}") });
        return (Vec::new(), false);
    };
    if written.0.get_ref().is_array() {
        let patterns = misfits.note(written.list("patterns")).unwrap_or_default().into_iter();
        let chosen = patterns.filter_map(|written| {
            misfits.note(written.parsed()).map(|value| Chosen { value, span: written.span() })
        });
        let chosen: Vec<Chosen<AccessPattern>> = chosen.collect();
        refuse_repetition(
            chosen.iter().map(|chosen| (chosen.value.to_string(), chosen.span.clone())),
            misfits,
        );
        return (chosen, false);
    }
    let wanted: &[Operation] = match written.0.get_ref().as_str() {
        Some("all") => &[Operation::Read, Operation::Write],
        Some("reads") => &[Operation::Read],
        Some("writes") => &[Operation::Write],
        _ => {
            misfits.add(written.misfit(EXPECTED));
            &[]
        }
    };
    let group = AccessPattern::all().filter(|pattern| wanted.contains(&pattern.operation()));
    (group.map(|value| Chosen { value, span: written.span() }).collect(), true)
}

fn records(written: Option<TomlValue<'_>>, misfits: &PlanErrors) -> Vec<Chosen<u64>> {
    let Some(written) = written else { return vec![Chosen { value: RECORD_BYTES, span: 0..0 }] };
    let sizes = misfits.note(written.list("sizes of records")).unwrap_or_default().into_iter();
    let records = sizes.filter_map(|written| {
        let value = misfits.note(written.bytes(1..=u64::MAX));
        value.map(|value| Chosen { value, span: written.span() })
    });
    let records: Vec<Chosen<u64>> = records.collect();
    let written = records.iter().map(|record| (format!("{} B", record.value), record.span.clone()));
    refuse_repetition(written, misfits);
    records
}
