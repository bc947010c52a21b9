//! Results: what came of the cells of plans.

use std::collections::BTreeMap;

use experiment::{FIELDS, Field, Shown, Takes};
use statistics::Sample;

use crate::journal::Journal;
use crate::measurement::{Busy, FlushCount, Measurement};
use crate::plan::{Plan, PlannedCell};
use crate::planned_trial::PlannedTrial;
use crate::table::{Column, ResultTable, Type, Value};

/// What came of a cell.
#[derive(Clone, Debug)]
pub struct CellResult<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// The cell of it.
    pub cell: &'a PlannedCell,
    /// Number and measurement of each trial that is there, in order.
    pub trials: Vec<(u64, &'a Measurement)>,
}

/// What `journal` has of the cells of `plans`, in their order; a cell of which no trial is there has none.
pub fn results<'a>(plans: &'a [Plan], journal: &'a Journal) -> Vec<CellResult<'a>> {
    let cells = plans.iter().flat_map(|plan| plan.cells.iter().map(move |cell| (plan, cell)));
    let result = |(plan, cell): (&'a Plan, &'a PlannedCell)| {
        let planned = PlannedTrial::of(&cell.case, plan.trials);
        let trials = planned.filter_map(|one| Some((one.number, journal.get(one.key)?))).collect();
        CellResult { plan, cell, trials }
    };
    cells.map(result).collect()
}

impl CellResult<'_> {
    /// The throughputs in MiB/s; `None` if no trial is there.
    pub fn throughput(&self) -> Option<Sample> {
        self.sample(Measurement::throughput_mib_s)
    }

    /// The disk movements of all disks together; `None` if no trial is there.
    pub fn movements(&self) -> Option<Sample> {
        self.sample(|measurement| measurement.disk_movements as f64)
    }

    /// Whether all trials are there.
    pub fn is_complete(&self) -> bool {
        self.trials.len() as u64 == self.plan.trials
    }

    fn sample(&self, value: impl Fn(&Measurement) -> f64) -> Option<Sample> {
        Sample::of(&self.trials.iter().map(|(_, measurement)| value(measurement)).collect::<Vec<_>>())
    }

    /// The mean of a value of the trials; `None` if no trial is there or one does not have it.
    pub fn mean(&self, value: impl Fn(&Measurement) -> Option<f64>) -> Option<f64> {
        let values: Option<Vec<f64>> =
            self.trials.iter().map(|(_, measurement)| value(measurement)).collect();
        Sample::of(&values?).map(|sample| sample.mean())
    }
}

/// The parts of one kind in a measurement.
type Parts = fn(&Measurement) -> Busy;

/// The kinds of parts whose utilisation is told.
const PARTS: [(&str, Parts); 6] = [
    ("disk", |measurement| measurement.disks),
    ("bus", |measurement| measurement.buses),
    ("link", |measurement| measurement.links),
    ("router_link", |measurement| measurement.router_links),
    ("compute_processor", |measurement| measurement.compute_processors),
    ("io_processor", |measurement| measurement.io_processors),
];

/// A row for each cell of which trials are there.
///
/// Means of several trials are told as such; utilisations are parts of the measured time, `_utilisation` of all parts
/// of a kind on average and `_utilisation_max` of the busiest, each the mean of the trials.
pub fn cell_table(results: &[CellResult<'_>]) -> ResultTable {
    let numbers = varied_numbers(results);
    let mut columns = setting_columns(&numbers);
    let measured = [
        ("trials", Type::Integer),
        ("seed", Type::Integer),
        ("throughput_mib_s", Type::Number),
        ("cv", Type::Number),
        ("ci95_mib_s", Type::Number),
        ("disk_movements", Type::Number),
    ];
    columns.extend(measured.map(|(name, kind)| Column::new(name, kind)));
    columns.extend(flush_columns(results, Type::Number));
    columns.extend(utilisation_columns());
    let rest = [
        ("messages", Type::Number),
        ("events", Type::Integer),
        ("virtual_s", Type::Number),
        ("digest", Type::Text),
    ];
    columns.extend(rest.map(|(name, kind)| Column::new(name, kind)));
    let with_flushes = has_flushes(results);
    let rows = results.iter().filter_map(|result| cell_row(result, &numbers, with_flushes)).collect();
    ResultTable { columns, rows }
}

/// Something that is told of a write cache.
type OfWriteCache = fn(FlushCount) -> u64;

/// What is told of write caches, if there is one among the results.
const FLUSHES: [(&str, OfWriteCache); 7] = [
    ("flushes", |count| count.flushes),
    ("directory_flushes", |count| count.directory_flushes),
    ("blocks_of_a_disk_most", |count| count.blocks_of_a_disk_most),
    ("blocks_of_a_disk_fewest", |count| count.blocks_of_a_disk_fewest),
    ("write_mean_ns", |count| count.write_mean_ns),
    ("write_99_ns", |count| count.write_99_ns),
    ("write_longest_ns", |count| count.write_longest_ns),
];

fn has_flushes(results: &[CellResult<'_>]) -> bool {
    results.iter().flat_map(|result| &result.trials).any(|(_, measurement)| measurement.flushes.is_some())
}

fn flush_columns(results: &[CellResult<'_>], kind: Type) -> Vec<Column> {
    if !has_flushes(results) {
        return Vec::new();
    }
    FLUSHES.iter().map(|&(name, _)| Column::new(name, kind)).collect()
}

fn cell_row(result: &CellResult<'_>, numbers: &[VariedNumber], with_flushes: bool) -> Option<Vec<Value>> {
    let (throughput, movements) = (result.throughput()?, result.movements()?);
    let mut row = settings(result, numbers);
    row.extend([
        Value::Integer(result.trials.len() as u64),
        Value::Integer(result.plan.seed),
        Value::Number(throughput.mean()),
        Value::Number(throughput.cv()),
        throughput.half_width().into(),
        Value::Number(movements.mean()),
    ]);
    for (_, count) in FLUSHES.iter().filter(|_| with_flushes) {
        row.push(result.mean(|measurement| Some(count(measurement.flushes?) as f64)).into());
    }
    for (_, busy) in PARTS {
        row.push(result.mean(|measurement| measurement.mean_utilisation(busy(measurement))).into());
        row.push(result.mean(|measurement| measurement.most_utilisation(busy(measurement))).into());
    }
    let digest = result.trials.iter().fold(0u64, |digest, (_, trial)| digest.rotate_left(7) ^ trial.digest);
    row.extend([
        result.mean(|measurement| Some(measurement.messages as f64)).into(),
        Value::Integer(result.trials.iter().map(|(_, measurement)| measurement.events).sum()),
        result.mean(|measurement| Some(measurement.elapsed_s())).into(),
        Value::Text(format!("{digest:016x}")),
    ]);
    Some(row)
}

/// A row for each trial that is there.
pub fn trial_table(results: &[CellResult<'_>]) -> ResultTable {
    let numbers = varied_numbers(results);
    let mut columns = setting_columns(&numbers);
    let measured = [
        ("seed", Type::Integer),
        ("trial", Type::Integer),
        ("throughput_mib_s", Type::Number),
        ("disk_movements", Type::Integer),
    ];
    columns.extend(measured.map(|(name, kind)| Column::new(name, kind)));
    let with_flushes = has_flushes(results);
    columns.extend(flush_columns(results, Type::Integer));
    columns.extend(utilisation_columns());
    let rest = [
        ("messages", Type::Integer),
        ("events", Type::Integer),
        ("virtual_s", Type::Number),
        ("digest", Type::Text),
    ];
    columns.extend(rest.map(|(name, kind)| Column::new(name, kind)));
    let trials = results.iter().flat_map(|result| result.trials.iter().map(move |trial| (result, trial)));
    let rows = trials.map(|(result, (trial, measurement))| {
        let mut row = settings(result, &numbers);
        row.extend([
            Value::Integer(result.plan.seed),
            Value::Integer(*trial),
            Value::Number(measurement.throughput_mib_s()),
            Value::Integer(measurement.disk_movements),
        ]);
        for (_, count) in FLUSHES.iter().filter(|_| with_flushes) {
            row.push(measurement.flushes.map_or(Value::Missing, |of_trial| Value::Integer(count(of_trial))));
        }
        for (_, busy) in PARTS {
            row.push(measurement.mean_utilisation(busy(measurement)).into());
            row.push(measurement.most_utilisation(busy(measurement)).into());
        }
        row.extend([
            Value::Integer(measurement.messages),
            Value::Integer(measurement.events),
            Value::Number(measurement.elapsed_s()),
            Value::Text(format!("{:016x}", measurement.digest)),
        ]);
        row
    });
    let rows = rows.collect();
    ResultTable { columns, rows }
}

fn utilisation_columns() -> impl Iterator<Item = Column> {
    PARTS.into_iter().flat_map(|(part, _)| {
        ["", "_max"].map(|suffix| Column::new(format!("{part}_utilisation{suffix}"), Type::Number))
    })
}

/// A number of machines that varies, and so gets a column of its own.
struct VariedNumber {
    key: String,
    /// Integer if all its values are, else text, since it has a unit.
    kind: Type,
}

impl VariedNumber {
    fn column(&self) -> Column {
        Column::new(self.key.replace('.', "_"), self.kind)
    }

    fn value(&self, cell: &PlannedCell) -> Value {
        let Some((_, value)) = cell.varied.iter().find(|(key, _)| *key == self.key) else {
            return Value::Missing;
        };
        match self.kind {
            Type::Integer => whole(value).map_or(Value::Missing, Value::Integer),
            _ => Value::Text(value.clone()),
        }
    }
}

fn varied_numbers(results: &[CellResult<'_>]) -> Vec<VariedNumber> {
    let mut kinds: BTreeMap<&str, Type> = BTreeMap::new();
    for (key, value) in results.iter().flat_map(|result| &result.cell.varied) {
        if Field::named(key).is_none() {
            let kind = kinds.entry(key).or_insert(Type::Integer);
            *kind = if whole(value).is_some() { *kind } else { Type::Text };
        }
    }
    kinds.into_iter().map(|(key, kind)| VariedNumber { key: key.to_owned(), kind }).collect()
}

/// A whole number that a column of them can hold.
fn whole(text: &str) -> Option<u64> {
    text.parse::<i64>().ok()?.try_into().ok()
}

/// The fields that have a column.
fn fields() -> impl Iterator<Item = &'static Field> {
    FIELDS.iter().filter(|field| !field.column.is_empty())
}

fn setting_columns(numbers: &[VariedNumber]) -> Vec<Column> {
    let text = |name: &&str| Column::new(*name, Type::Text);
    let whole = |name: &&str| Column::new(*name, Type::Integer);
    let mut columns: Vec<Column> = ["plan", "variant", "varied", "machine", "set"].iter().map(text).collect();
    columns.extend(fields().map(|field| Column::new(field.column, kind(field))));
    columns.extend(["compute_nodes", "io_nodes", "disks"].iter().map(whole));
    columns.extend(numbers.iter().map(VariedNumber::column));
    columns.extend([Column::new("pattern", Type::Text), Column::new("record_bytes", Type::Integer)]);
    columns
}

fn kind(field: &Field) -> Type {
    match field.takes {
        Takes::Flag(_) => Type::Flag,
        Takes::Size(..) | Takes::Whole(..) => Type::Integer,
        Takes::Name(..) | Takes::Text(..) | Takes::WholeOrName(..) => Type::Text,
    }
}

fn settings(result: &CellResult<'_>, numbers: &[VariedNumber]) -> Vec<Value> {
    let PlannedCell { variant, varied, machine, set, case } = result.cell;
    let nodes = &case.machine.nodes;
    let io_nodes = u64::from(nodes.io.value);
    let pairs = |pairs: &[(String, String)]| {
        let pairs: Vec<String> = pairs.iter().map(|(key, value)| format!("{key}={value}")).collect();
        Value::Text(pairs.join(" "))
    };
    let text = |value: &dyn ToString| Value::Text(value.to_string());
    let mut row = vec![text(&result.plan.name), text(variant), pairs(varied), text(machine), pairs(set)];
    row.extend(fields().map(|field| Value::from(field.shown(case))));
    row.extend([
        Value::Integer(nodes.compute.value.into()),
        Value::Integer(io_nodes),
        Value::Integer(io_nodes * u64::from(case.machine.disks.per_io_node.value)),
    ]);
    row.extend(numbers.iter().map(|number| number.value(result.cell)));
    row.extend([text(&case.pattern), Value::Integer(case.problem.record_bytes)]);
    row
}

impl From<Shown> for Value {
    fn from(shown: Shown) -> Value {
        match shown {
            Shown::Text(text) => Value::Text(text),
            Shown::Whole(number) => Value::Integer(number),
            Shown::Flag(flag) => Value::Flag(flag),
            Shown::Missing => Value::Missing,
        }
    }
}
