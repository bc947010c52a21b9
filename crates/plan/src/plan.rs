//! A plan: what is to be simulated, as a TOML file.
//!
//! ```toml
//! name = "table-02"                        # required; also what its results are called
//! title = "FCFS against C-SCAN"            # a line for people
//! trials = 5                               # of each cell; 5 if left out
//! seed = 1                                 # where all randomness comes from; 1 if left out
//! patterns = "all"                         # or "reads", "writes", or a list of patterns
//! records = ["8 B", "8192 B"]              # sizes of records; "8192 B" if left out
//! layout = "contiguous"                    # this and everything below: as `starfish simulate` has it
//!
//! [[variant]]                              # what is compared; without any, there is one
//! name = "fcfs"
//! method = "traditional"
//! scheduling = "fcfs"
//!
//! [vary]                                   # every combination of these, for every variant
//! outstanding = [1, 2, 4]
//! set = { "nodes.io" = [8, 16] }           # numbers of the machine
//!
//! [table]                                  # which published table this is, if it is one; likewise [figure]
//! number = 2
//! system = "tpfs"
//! value = "throughput"                     # or "movements"
//! ```
//!
//! The keys of a setting are the fields of a case (`crates/experiment/src/fields.rs`), and `set`. They may stand at the
//! top, as defaults, in a variant, and in `[vary]`. They may be written as the options are, with hyphens. Sizes are
//! texts, or numbers of bytes.
//!
//! Patterns named as a group leave out what the reports leave out: where there are records of a block or more
//! too, `ra`, `rn` and `wn` with smaller ones, since these nodes access all of the file in one request anyway. A
//! pattern that is listed is kept.

use std::ops::{Range, RangeInclusive};
use std::path::Path;

use description::{Error, MachineDescription, Misfit, SIZE_LIMIT};
use experiment::{AccessPattern, Case, Choices, JobError};
use layout::{LayoutError, Operation};
use toml::Spanned;
use toml::de::DeTable;

use crate::misfits::Misfits;
use crate::reference::{TOP, names};
use crate::settings::{Chosen, PlanForm, Series, Settings, refuse_repetition};
use crate::value::{TomlValue, entries, unknown_key};

/// The most cells a plan may have.
pub const CELLS_MAX: usize = 10_000;

/// The most trials of a cell.
pub const TRIALS_MAX: u64 = 1000;

/// The reports' number of trials.
const TRIALS: u64 = 5;

const SEED: u64 = 1;
const RECORD_BYTES: u64 = 8192;

/// What is to be simulated.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What it is called.
    pub name: String,
    /// What it is about, in a line; may be empty.
    pub title: String,
    /// The file it was read from, as the caller named it.
    pub file: String,
    /// How many trials of each cell, at least one.
    pub trials: u64,
    /// Where all randomness comes from.
    pub seed: u64,
    /// Which published table or figure it is to be compared with.
    pub published: Option<Publication>,
    /// All combinations: for each record size and each pattern, the variants in their order.
    pub cells: Vec<PlannedCell>,
}

/// One combination of a plan.
#[derive(Clone, Debug)]
pub struct PlannedCell {
    /// The name of the variant.
    pub variant: String,
    /// Keys and values of what is varied, in the order of the plan.
    pub varied: Vec<(String, String)>,
    /// Name or path of the machine.
    pub machine: String,
    /// Numbers of the machine that are replaced, by dotted key.
    pub set: Vec<(String, String)>,
    /// What is run.
    pub case: Case,
}

/// A published table or figure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Publication {
    /// Which of the two.
    pub kind: Kind,
    /// Its number.
    pub number: u32,
    /// What it measures: `tpfs`, `ddio`, ...; empty for a figure.
    pub system: String,
    /// What its values are.
    pub quantity: Quantity,
}

/// Whether results are a table or a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A table.
    Table,
    /// A figure.
    Figure,
}

/// What a table or figure tells of each cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Throughput in MiB/s.
    Throughput,
    /// Disk movements of all disks together.
    Movements,
}

impl Plan {
    /// Reads and checks the plan at `path`. Paths in it are relative to its folder. Fails with all that is wrong in it.
    pub fn load(path: &str) -> Result<Plan, Error> {
        Self::parse(&description::read_text(path)?, path)
    }

    /// Reads and checks `text`; complaints name `file`, and paths in it are relative to the folder of that.
    pub fn parse(text: &str, file: &str) -> Result<Plan, Error> {
        let table = parse_table(text).map_err(|misfit| misfit.refused(text, file))?;
        let folder = Path::new(file).parent().unwrap_or(Path::new(""));
        let misfits = Misfits::default();
        let draft = Draft::read(table.get_ref(), folder, &misfits);
        let plan = misfits.judge(()).and_then(|()| {
            let plan = draft.plan(file, &misfits);
            misfits.judge(plan)
        });
        plan.map_err(|all| Misfit::all_refused(all, text, file))
    }
}

/// The table that a plan of any kind is.
pub(crate) fn parse_table(text: &str) -> Result<Spanned<DeTable<'_>>, Misfit> {
    if text.len() > SIZE_LIMIT {
        let message = format!("expected at most {SIZE_LIMIT} bytes of plan");
        return Err(Misfit { span: 0..0, message });
    }
    DeTable::parse(text)
        .map_err(|error| Misfit { span: error.span().unwrap_or(0..0), message: error.message().to_owned() })
}

impl PlannedCell {
    /// What names the cell within its plan: `variant/pattern/record`, as in `fcfs/rb/8192` or, where something is
    /// varied, `fcfs,outstanding=4/rb/8192`.
    pub fn label(&self) -> String {
        let Case { pattern, problem, .. } = &self.case;
        format!("{}/{pattern}/{}", self.series(), problem.record_bytes)
    }

    /// The variant with what is varied of it, as in `fcfs,outstanding=4`.
    pub fn series(&self) -> String {
        let varied = self.varied.iter().map(|(key, value)| format!(",{key}={value}"));
        std::iter::once(self.variant.clone()).chain(varied).collect()
    }
}

/// What stands in a plan's file, before it is combined.
struct Draft<'a> {
    head: Head,
    published: Option<Publication>,
    patterns: Vec<Chosen<AccessPattern>>,
    /// Whether the patterns were named as a group.
    by_group: bool,
    records: Vec<Chosen<u64>>,
    settings: Settings<'a, Choices>,
}

/// What stands at the top of every plan.
pub(crate) struct Head {
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) trials: u64,
    pub(crate) seed: u64,
    /// Where the name stands.
    pub(crate) span: Range<usize>,
}

impl Head {
    pub(crate) fn read<'a>(table: &'a DeTable<'a>, misfits: &Misfits) -> Self {
        let get = |key: &str| table.get(key).map(TomlValue);
        let name = misfits.note(get("name").ok_or_else(|| Misfit {
            span: 0..0,
            message: "the name is missing: expected a line such as name = \"table-02\"".to_owned(),
        }));
        let text =
            |written: Option<TomlValue<'a>>| misfits.note_or(written.map_or(Ok(""), |text| text.text()), "");
        let number = |written: Option<TomlValue<'_>>, allowed: RangeInclusive<u64>, usual| {
            misfits.note_or(written.map_or(Ok(usual), |number| number.integer(allowed)), usual)
        };
        Head {
            name: text(name).to_owned(),
            title: text(get("title")).to_owned(),
            trials: number(get("trials"), 1..=TRIALS_MAX, TRIALS),
            seed: number(get("seed"), 0..=i64::MAX as u64, SEED),
            span: name.map_or(0..0, |name| name.span()),
        }
    }
}

const OWN_KEYS: [&str; TOP.len()] = names(&TOP);

/// Patterns by a method, which the only variant is called by.
const FORM: PlanForm<Choices> = PlanForm {
    own_keys: &OWN_KEYS,
    usual_name: |choices| choices.method.map_or_else(String::new, |method| method.to_string()),
};

impl<'a> Draft<'a> {
    /// What stands there, as far as nothing is wrong with it.
    fn read(table: &'a DeTable<'a>, folder: &'a Path, misfits: &Misfits) -> Self {
        let get = |key: &str| table.get(key).map(TomlValue);
        let head = Head::read(table, misfits);
        let (patterns, by_group) = patterns(get("patterns"), misfits);
        Draft {
            published: published(get("table"), get("figure"), misfits),
            patterns,
            by_group,
            records: records(get("records"), misfits),
            settings: Settings::read(table, &FORM, folder, head.span.clone(), misfits),
            head,
        }
    }

    /// The plan, as far as nothing is wrong with it.
    fn plan(self, file: &str, misfits: &Misfits) -> Plan {
        let is_small = misfits.note(self.check_size()).is_some();
        let series = if is_small { self.settings.series(misfits) } else { Vec::new() };
        let mut cells = Vec::new();
        for record in &self.records {
            for pattern in &self.patterns {
                for series in &series {
                    if !self.leaves_out(pattern.value, record.value, series.choices.options.block_bytes) {
                        cells.extend(misfits.note_once(self.cell(series, pattern, record)));
                    }
                }
            }
        }
        let Draft { head: Head { name, title, trials, seed, .. }, published, .. } = self;
        Plan { name, title, file: file.to_owned(), trials, seed, published, cells }
    }

    fn check_size(&self) -> Result<(), Misfit> {
        let (counts, span) = self.settings.counts();
        check_size(counts.into_iter().chain([self.patterns.len(), self.records.len()]), span)
    }

    fn leaves_out(&self, pattern: AccessPattern, record_bytes: u64, block_bytes: u64) -> bool {
        let larger = self.records.iter().any(|record| record.value >= block_bytes);
        let whole = ["ra", "rn", "wn"].contains(&pattern.to_string().as_str());
        self.by_group && whole && larger && record_bytes < block_bytes
    }

    fn cell(
        &self,
        series: &Series<Choices>,
        pattern: &Chosen<AccessPattern>,
        record: &Chosen<u64>,
    ) -> Result<PlannedCell, Misfit> {
        let Series { variant, varied, choices, machine } = series;
        let method = choices.method.ok_or_else(|| {
            let message = "the method is missing: expected one of traditional, two-phase, disk-directed";
            Misfit { span: variant.span.clone(), message: message.to_owned() }
        })?;
        let machine = MachineDescription::clone(machine);
        let cell = PlannedCell {
            variant: variant.value.clone(),
            varied: varied.clone(),
            machine: choices.machine.clone(),
            set: choices.set.clone().into_iter().collect(),
            case: choices.case(machine, method, pattern.value, record.value, self.head.seed),
        };
        cell.case.check().map_err(|error| {
            let span = match &error {
                experiment::Error::Job(JobError::Layout(LayoutError::PartialRecord { .. })) => {
                    record.span.clone()
                }
                experiment::Error::Job(JobError::Layout(_)) => pattern.span.clone(),
                _ => variant.span.clone(),
            };
            Misfit { span, message: format!("{}: {error}", cell.label()) }
        })?;
        Ok(cell)
    }
}

/// Refuses a plan of so many combinations that nobody can have meant them.
pub(crate) fn check_size(counts: impl Iterator<Item = usize>, span: Range<usize>) -> Result<(), Misfit> {
    let cells = counts.into_iter().try_fold(1usize, |cells, count| cells.checked_mul(count));
    if cells.is_none_or(|cells| cells > CELLS_MAX) {
        let cells = cells.map_or_else(|| "more than can be counted".to_owned(), |cells| cells.to_string());
        let message =
            format!("expected at most {CELLS_MAX} combinations, not {cells}: make several plans of this one");
        return Err(Misfit { span, message });
    }
    Ok(())
}

/// The patterns, and whether they were named as a group.
fn patterns(written: Option<TomlValue<'_>>, misfits: &Misfits) -> (Vec<Chosen<AccessPattern>>, bool) {
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

fn records(written: Option<TomlValue<'_>>, misfits: &Misfits) -> Vec<Chosen<u64>> {
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

/// Which published table or figure it is, if it says so.
fn published(
    table: Option<TomlValue<'_>>,
    figure: Option<TomlValue<'_>>,
    misfits: &Misfits,
) -> Option<Publication> {
    let (kind, written, keys): (_, _, &[&str]) = match (table, figure) {
        (None, None) => return None,
        (Some(table), None) => (Kind::Table, table, &["number", "system", "value"]),
        (None, Some(figure)) => (Kind::Figure, figure, &["number", "value"]),
        (Some(_), Some(figure)) => {
            misfits.add(figure.misfit("expected a table or a figure, not both"));
            return None;
        }
    };
    let table = misfits.note(written.table())?;
    for (key, span, _) in entries(table).into_iter().filter(|(key, ..)| !keys.contains(key)) {
        misfits.add(unknown_key(key, span, keys));
    }
    let get = |key: &str| {
        let value = table.get(key).map(TomlValue);
        value.ok_or_else(|| written.misfit(format!("{key} is missing: expected {}", keys.join(", "))))
    };
    let number = misfits.note(get("number").and_then(|number| number.integer(1..=u64::from(u32::MAX))));
    let system = match kind {
        Kind::Table => misfits.note(get("system").and_then(|system| system.text())),
        Kind::Figure => Some(""),
    };
    let quantity = get("value").and_then(|value| match value.text()? {
        "throughput" => Ok(Quantity::Throughput),
        "movements" => Ok(Quantity::Movements),
        _ => Err(value.misfit("expected throughput or movements")),
    });
    let quantity = misfits.note(quantity);
    Some(Publication { kind, number: number? as u32, system: system?.to_owned(), quantity: quantity? })
}
