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

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Range, RangeInclusive};
use std::path::Path;
use std::rc::Rc;

use description::{Error, MachineDescription, Misfit, SIZE_LIMIT};
use experiment::{ArrayPattern, Case, Choices, Field, JobError, field_names};
use layout::{LayoutError, Operation};
use toml::de::{DeTable, DeValue};

use crate::misfits::Misfits;
use crate::reference::{TABLES, TOP, names};
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
        let refused = |misfit: Misfit| misfit.refused(text, file);
        if text.len() > SIZE_LIMIT {
            let message = format!("expected at most {SIZE_LIMIT} bytes of plan");
            return Err(refused(Misfit { span: 0..0, message }));
        }
        let table = DeTable::parse(text).map_err(|error| {
            refused(Misfit { span: error.span().unwrap_or(0..0), message: error.message().to_owned() })
        })?;
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
    folder: &'a Path,
    name: String,
    title: String,
    trials: u64,
    seed: u64,
    published: Option<Publication>,
    patterns: Vec<Chosen<ArrayPattern>>,
    /// Whether the patterns were named as a group.
    by_group: bool,
    records: Vec<Chosen<u64>>,
    variants: Vec<Variant>,
    axes: Vec<Axis<'a>>,
}

/// A value, and where it was chosen.
#[derive(Clone)]
struct Chosen<T> {
    value: T,
    span: Range<usize>,
}

struct Variant {
    name: Chosen<String>,
    choices: Choices,
    /// Where a number of its machine or the machine itself was chosen.
    machine_span: Range<usize>,
    /// The keys that the plan chooses for it, `set.` before those of the machine.
    keys: BTreeSet<String>,
}

/// Something varied: a key, `set.` before it if it is one of the machine, and its values.
struct Axis<'a> {
    key: String,
    span: Range<usize>,
    values: Vec<TomlValue<'a>>,
}

/// A variant with a value of every axis.
struct Series {
    variant: Chosen<String>,
    varied: Vec<(String, String)>,
    choices: Choices,
    machine: Rc<MachineDescription>,
}

/// What stands before the keys of a machine's numbers.
const SET: &str = "set.";

const OWN_KEYS: [&str; TOP.len()] = names(&TOP);
const TABLE_KEYS: [&str; TABLES.len()] = names(&TABLES);

impl<'a> Draft<'a> {
    /// What stands there, as far as nothing is wrong with it.
    fn read(table: &'a DeTable<'a>, folder: &'a Path, misfits: &Misfits) -> Self {
        let get = |key: &str| table.get(key).map(TomlValue);
        let name = misfits.note(get("name").ok_or_else(|| Misfit {
            span: 0..0,
            message: "the name is missing: expected a line such as name = \"table-02\"".to_owned(),
        }));
        let (patterns, by_group) = patterns(get("patterns"), misfits);
        let span = name.map_or(0..0, |name| name.span());
        let defaults = Variant {
            name: Chosen { value: String::new(), span: span.clone() },
            choices: Choices::default(),
            machine_span: span,
            keys: BTreeSet::new(),
        };
        let text =
            |written: Option<TomlValue<'a>>| misfits.note_or(written.map_or(Ok(""), |text| text.text()), "");
        let number = |written: Option<TomlValue<'_>>, allowed: RangeInclusive<u64>, usual| {
            misfits.note_or(written.map_or(Ok(usual), |number| number.integer(allowed)), usual)
        };
        let draft = Draft {
            folder,
            name: text(name).to_owned(),
            title: text(get("title")).to_owned(),
            trials: number(get("trials"), 1..=TRIALS_MAX, TRIALS),
            seed: number(get("seed"), 0..=i64::MAX as u64, SEED),
            published: published(get("table"), get("figure"), misfits),
            patterns,
            by_group,
            records: records(get("records"), misfits),
            variants: variants(table, defaults, folder, misfits),
            axes: get("vary").map_or(Vec::new(), |vary| axes(vary, folder, misfits)),
        };
        draft.check_axes(misfits);
        draft
    }

    /// What varies must not be chosen as well.
    fn check_axes(&self, misfits: &Misfits) {
        for axis in &self.axes {
            let chosen = self.variants.iter().find(|variant| variant.keys.contains(&axis.key));
            if let Some(variant) = chosen {
                let (key, name) = (&axis.key, &variant.name.value);
                let message = format!(
                    "{key} varies but is chosen too, for variant {name}: expected it in one place only"
                );
                misfits.add(Misfit { span: axis.span.clone(), message });
            }
        }
    }

    /// The plan, as far as nothing is wrong with it.
    fn plan(self, file: &str, misfits: &Misfits) -> Plan {
        let is_small = misfits.note(self.check_size()).is_some();
        let series = if is_small { self.series(misfits) } else { Vec::new() };
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
        let Draft { name, title, trials, seed, published, .. } = self;
        Plan { name, title, file: file.to_owned(), trials, seed, published, cells }
    }

    fn check_size(&self) -> Result<(), Misfit> {
        let lists = [self.variants.len(), self.patterns.len(), self.records.len()].into_iter();
        let axes = self.axes.iter().map(|axis| axis.values.len());
        let cells = lists.chain(axes).try_fold(1usize, |cells, count| cells.checked_mul(count));
        if cells.is_none_or(|cells| cells > CELLS_MAX) {
            let cells =
                cells.map_or_else(|| "more than can be counted".to_owned(), |cells| cells.to_string());
            let message = format!(
                "expected at most {CELLS_MAX} combinations, not {cells}: make several plans of this one"
            );
            let span = self.axes.last().map_or(0..0, |axis| axis.span.clone());
            return Err(Misfit { span, message });
        }
        Ok(())
    }

    fn leaves_out(&self, pattern: ArrayPattern, record_bytes: u64, block_bytes: u64) -> bool {
        let larger = self.records.iter().any(|record| record.value >= block_bytes);
        let whole = ["ra", "rn", "wn"].contains(&pattern.to_string().as_str());
        self.by_group && whole && larger && record_bytes < block_bytes
    }

    /// Every variant with every combination of what varies; the last axis varies fastest.
    fn series(&self, misfits: &Misfits) -> Vec<Series> {
        let mut machines: BTreeMap<_, Option<Rc<MachineDescription>>> = BTreeMap::new();
        let mut all = Vec::new();
        for variant in &self.variants {
            let count = self.axes.iter().map(|axis| axis.values.len()).product();
            for combination in 0..count {
                let combined = misfits.note_once(self.combine(variant, combination));
                let Some((varied, choices)) = combined else { continue };
                let machine = machines.entry((choices.machine.clone(), choices.set.clone()));
                let load = || misfits.note_once(self.machine(variant, &choices)).map(Rc::new);
                let Some(machine) = machine.or_insert_with(load).clone() else { continue };
                all.push(Series { variant: variant.name.clone(), varied, choices, machine });
            }
        }
        all
    }

    /// What varies, and the choices, in the combination of this number.
    fn combine(
        &self,
        variant: &Variant,
        mut number: usize,
    ) -> Result<(Vec<(String, String)>, Choices), Misfit> {
        let mut choices = variant.choices.clone();
        let mut varied = Vec::new();
        for axis in self.axes.iter().rev() {
            let value = axis.values[number % axis.values.len()];
            number /= axis.values.len();
            choose(&mut choices, &axis.key, value, self.folder)?;
            let key = axis.key.strip_prefix(SET).unwrap_or(&axis.key);
            varied.push((key.to_owned(), value.literal()?));
        }
        varied.reverse();
        Ok((varied, choices))
    }

    fn machine(&self, variant: &Variant, choices: &Choices) -> Result<MachineDescription, Misfit> {
        let machine = choices.load_machine();
        machine.map_err(|error| {
            let axis = self.axes.iter().find(|axis| axis.key.starts_with(SET) || axis.key == "machine");
            let span = axis.map_or(variant.machine_span.clone(), |axis| axis.span.clone());
            let message = format!("{error}; `starfish machines` lists the machines and prints their keys");
            Misfit { span, message }
        })
    }

    fn cell(
        &self,
        series: &Series,
        pattern: &Chosen<ArrayPattern>,
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
            case: choices.case(machine, method, pattern.value, record.value, self.seed),
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

/// Chooses a value for a field or, after `set.`, for a number of the machine's description.
fn choose(choices: &mut Choices, key: &str, value: TomlValue<'_>, folder: &Path) -> Result<(), Misfit> {
    if let Some(number) = key.strip_prefix(SET) {
        choices.set.insert(number.to_owned(), value.literal()?);
        return Ok(());
    }
    let field = Field::expect(key);
    field.and_then(|field| field.choose(choices, value.given())).map_err(|why| value.misfit(why))?;
    if key == "machine" && choices.machine.ends_with(".toml") {
        choices.machine = folder.join(&choices.machine).to_string_lossy().into_owned();
    }
    Ok(())
}

impl Variant {
    /// Chooses what stands at `key`, which may be `set`.
    fn choose(&mut self, key: &str, value: TomlValue<'_>, folder: &Path) -> Result<(), Misfit> {
        if key == "set" || key == "machine" {
            self.machine_span = value.span();
        }
        for (key, value) in if key == "set" { numbers(value)? } else { vec![(key.to_owned(), value)] } {
            choose(&mut self.choices, &key, value, folder)?;
            self.keys.insert(key);
        }
        Ok(())
    }
}

/// The entries of a table with settings, whose keys are spelled as fields are, and none of which stands there twice.
fn settings<'a>(
    table: &'a DeTable<'a>,
    misfits: &Misfits,
) -> impl Iterator<Item = (&'a str, Range<usize>, TomlValue<'a>)> {
    let entries = entries(table).into_iter();
    let entries: Vec<_> = entries
        .map(|(key, at, value)| (Field::named(key).map_or(key, |field| field.name), at, value))
        .collect();
    // The one says what the other does.
    let meant = |key| if key == "phantom" { "contents" } else { key };
    refuse_repetition(entries.iter().map(|(key, span, _)| (meant(*key).to_owned(), span.clone())), misfits);
    entries.into_iter()
}

/// The dotted keys below a table `set`, with `set.` before them: `{ "nodes.io" = 8 }` and `nodes.io = 8` are equal.
fn numbers(value: TomlValue<'_>) -> Result<Vec<(String, TomlValue<'_>)>, Misfit> {
    let mut found = Vec::new();
    let mut below = vec![(SET.to_owned(), value)];
    while let Some((prefix, value)) = below.pop() {
        for (key, _, value) in entries(value.table()?) {
            let key = format!("{prefix}{key}");
            match value.0.get_ref() {
                DeValue::Table(_) => below.push((format!("{key}."), value)),
                _ => found.push((key, value)),
            }
        }
    }
    Ok(found)
}

/// The variants of a plan, with the defaults that stand at its top.
fn variants<'a>(
    table: &'a DeTable<'a>,
    mut defaults: Variant,
    folder: &Path,
    misfits: &Misfits,
) -> Vec<Variant> {
    let mut written = None;
    for (key, span, value) in settings(table, misfits) {
        match key {
            "variant" => written = misfits.note(value.list("[[variant]]")),
            _ if key == "set" || Field::named(key).is_some() => {
                misfits.note(defaults.choose(key, value, folder));
            }
            _ if OWN_KEYS.contains(&key) => {}
            _ => misfits.add(unknown_key(key, span, &[&OWN_KEYS[..], &TABLE_KEYS, &field_names()].concat())),
        }
    }
    let Some(written) = written else {
        defaults.name.value = defaults.choices.method.map_or_else(String::new, |method| method.to_string());
        if defaults.name.value.is_empty() {
            defaults.name.value = "all".to_owned();
        }
        return vec![defaults];
    };
    let mut variants: Vec<Variant> = Vec::new();
    for value in written {
        let Some(variant) = variant(value, &defaults, folder, misfits) else { continue };
        if variants.iter().any(|other| other.name.value == variant.name.value) {
            let message =
                format!("there is a variant {:?} already: expected another name", variant.name.value);
            misfits.add(Misfit { span: variant.name.span.clone(), message });
        }
        variants.push(variant);
    }
    variants
}

/// A variant, if it has a name.
fn variant(value: TomlValue<'_>, defaults: &Variant, folder: &Path, misfits: &Misfits) -> Option<Variant> {
    let table = misfits.note(value.table())?;
    let named = table.get("name").map(TomlValue).ok_or_else(|| {
        value.misfit("the variant's name is missing: expected a line such as name = \"fcfs\"")
    });
    let name = named.and_then(|name| match name.text()? {
        text if text.contains(['/', ',']) => Err(name.misfit("expected a name without / and commas")),
        text => Ok(Chosen { value: text.to_owned(), span: name.span() }),
    });
    let name = misfits.note(name);
    let mut variant = Variant {
        name: name.clone().unwrap_or(Chosen { value: String::new(), span: value.span() }),
        choices: defaults.choices.clone(),
        machine_span: defaults.machine_span.clone(),
        keys: defaults.keys.clone(),
    };
    for (key, span, value) in settings(table, misfits).filter(|(key, ..)| *key != "name") {
        if key == "set" || Field::named(key).is_some() {
            misfits.note(variant.choose(key, value, folder));
        } else {
            misfits.add(unknown_key(key, span, &[&["name", "set"][..], &field_names()].concat()));
        }
    }
    name.map(|_| variant)
}

fn axes<'a>(vary: TomlValue<'a>, folder: &Path, misfits: &Misfits) -> Vec<Axis<'a>> {
    let mut axes = Vec::new();
    for (key, span, value) in
        misfits.note(vary.table()).into_iter().flat_map(|table| settings(table, misfits))
    {
        if key != "set" && Field::named(key).is_none() {
            misfits.add(unknown_key(key, span, &[&["set"][..], &field_names()].concat()));
            continue;
        }
        let lists = if key == "set" { numbers(value) } else { Ok(vec![(key.to_owned(), value)]) };
        for (key, list) in misfits.note(lists).unwrap_or_default() {
            let Some(values) = misfits.note(list.list("values")) else { continue };
            // Each is possible by itself, whatever it is combined with.
            let possible = |value: &TomlValue<'_>| {
                let chosen = choose(&mut Choices::default(), &key, *value, folder);
                let literal = chosen.and_then(|()| value.literal());
                misfits.note(literal).map(|literal| (literal, value.span()))
            };
            refuse_repetition(values.iter().filter_map(possible), misfits);
            axes.push(Axis { key, span: span.clone(), values });
        }
    }
    axes
}

/// The patterns, and whether they were named as a group.
fn patterns(written: Option<TomlValue<'_>>, misfits: &Misfits) -> (Vec<Chosen<ArrayPattern>>, bool) {
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
        let chosen: Vec<Chosen<ArrayPattern>> = chosen.collect();
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
    let group = ArrayPattern::all().filter(|pattern| wanted.contains(&pattern.operation()));
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

fn refuse_repetition(values: impl IntoIterator<Item = (String, Range<usize>)>, misfits: &Misfits) {
    let mut seen = BTreeSet::new();
    for (value, span) in values {
        let message = format!("{value} is there already: expected every value once");
        if !seen.insert(value) {
            misfits.add(Misfit { span, message });
        }
    }
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
