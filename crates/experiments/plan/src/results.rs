//! Results of the cells of plans.

use std::collections::BTreeMap;

use description::MachineDescription;
use experiment::{Case, FieldOf, FieldSet, FieldValuesOf, Shown};
use statistics::Sample;

use crate::journal::Journal;
use crate::kind::PlanKind;
use crate::measure::{Measure, MeasureOf, PARTS, Quantity};
use crate::measurement::Measurement;
use crate::plan::{Plan, PlannedCell};
use crate::planned_trial::PlannedTrial;
use crate::table::{Column, ResultTable, Type, Value};

/// Result of a cell.
#[derive(Clone, Debug)]
pub struct CellResult<'a, K = Case> {
    /// Plan of the cell.
    pub plan: &'a Plan<K>,
    /// Cell within the plan.
    pub cell: &'a PlannedCell<K>,
    /// Number and measurement of each completed trial, in order.
    pub trials: Vec<(u64, &'a Measurement)>,
}

/// Returns the results in `journal` of all cells of `plans`, in order. A cell without completed trials has an empty
/// result.
pub fn results<'a, K: PlanKind>(plans: &'a [Plan<K>], journal: &'a Journal) -> Vec<CellResult<'a, K>> {
    let cells = plans.iter().flat_map(|plan| plan.cells.iter().map(move |cell| (plan, cell)));
    let result = |(plan, cell): (&'a Plan<K>, &'a PlannedCell<K>)| {
        let planned = PlannedTrial::of(&cell.case, plan.trials);
        let trials = planned.filter_map(|one| Some((one.number, journal.get(one.key)?))).collect();
        CellResult { plan, cell, trials }
    };
    cells.map(result).collect()
}

impl<K> CellResult<'_, K> {
    /// Returns the throughputs in MiB/s; `None` if no trial is complete.
    pub fn throughput(&self) -> Option<Sample> {
        self.sample(Quantity::Throughput)
    }

    /// Returns the numbers of movements of all disks; `None` if no trial is complete.
    pub fn movements(&self) -> Option<Sample> {
        self.sample(Quantity::Movements)
    }

    /// Returns the values of this quantity in the trials; `None` if no trial is complete.
    pub fn sample(&self, quantity: Quantity) -> Option<Sample> {
        let values = self.trials.iter().map(|(_, measurement)| quantity.of(measurement));
        Sample::of(&values.collect::<Vec<_>>())
    }

    /// True if all trials are complete.
    pub fn is_complete(&self) -> bool {
        self.trials.len() as u64 == self.plan.trials
    }

    /// Returns the mean of a value over the trials; `None` if no trial is complete, or if a trial lacks the value.
    pub fn mean(&self, value: impl Fn(&Measurement) -> Option<f64>) -> Option<f64> {
        let values: Option<Vec<f64>> =
            self.trials.iter().map(|(_, measurement)| value(measurement)).collect();
        Sample::of(&values?).map(|sample| sample.mean())
    }
}

/// Returns the quantity by which cells of this kind are compared.
fn quantity<K: PlanKind>() -> Quantity {
    K::QUANTITIES[0]
}

/// Builds a table with a row for each cell that has completed trials.
///
/// Measures are means over the trials. Utilisations are shares of the measured time: `_utilisation` is the mean over
/// all parts of a kind, `_utilisation_max` is the utilisation of the busiest part.
pub fn cell_table<K: PlanKind>(results: &[CellResult<'_, K>]) -> ResultTable {
    let numbers = varied_numbers(results);
    let measures = Measures::of(results);
    let (name, unit) = quantity::<K>().column();
    let mut columns = setting_columns::<K>(&numbers);
    columns.extend(["trials", "seed"].map(|name| Column::new(name, Type::Integer)));
    columns.extend([name, "cv", &format!("ci95_{unit}")].map(|name| Column::new(name, Type::Number)));
    columns.extend(measures.columns(|_| Type::Number));
    let rows = results.iter().filter_map(|result| cell_row(result, &numbers, &measures)).collect();
    ResultTable { columns, rows }
}

fn cell_row<K: PlanKind>(
    result: &CellResult<'_, K>,
    numbers: &[VariedNumber],
    measures: &Measures,
) -> Option<Vec<Value>> {
    let sample = result.sample(quantity::<K>())?;
    let mut row = settings(result, numbers);
    row.extend([
        Value::Integer(result.trials.len() as u64),
        Value::Integer(result.plan.seed),
        Value::Number(sample.mean()),
        Value::Number(sample.cv()),
        sample.half_width().into(),
    ]);
    let trials = result.trials.iter().map(|(_, measurement)| measurement);
    row.extend(measures.values(
        |measure| result.mean(|measurement| measure.number(measurement)).into(),
        |of| result.mean(of).into(),
        trials.clone().map(|measurement| measurement.events).sum(),
        trials.fold(0, |digest, measurement| digest.rotate_left(7) ^ measurement.digest),
    ));
    Some(row)
}

/// Builds a table with a row for each completed trial.
pub fn trial_table<K: PlanKind>(results: &[CellResult<'_, K>]) -> ResultTable {
    let numbers = varied_numbers(results);
    let measures = Measures::of(results);
    let mut columns = setting_columns::<K>(&numbers);
    columns.extend(["seed", "trial"].map(|name| Column::new(name, Type::Integer)));
    columns.push(Column::new(quantity::<K>().column().0, Type::Number));
    columns.extend(measures.columns(Measure::kind));
    let trials = results.iter().flat_map(|result| result.trials.iter().map(move |trial| (result, trial)));
    let rows = trials.map(|(result, (trial, measurement))| {
        let mut row = settings(result, &numbers);
        row.extend([
            Value::Integer(result.plan.seed),
            Value::Integer(*trial),
            Value::Number(quantity::<K>().of(measurement)),
        ]);
        row.extend(measures.values(
            |measure| measure.value(measurement),
            |of| of(measurement).into(),
            measurement.events,
            measurement.digest,
        ));
        row
    });
    let rows = rows.collect();
    ResultTable { columns, rows }
}

/// Columns of both tables in addition to the quantity by which cells are compared.
struct Measures {
    /// Measures whose columns are before those of the utilisations.
    before: Vec<Measure>,
    /// True if the table needs a column for the simulated time, because cells are compared by another quantity.
    with_time: bool,
}

/// Function that returns a utilisation of the parts of one kind; `None` if there are no parts.
type Utilisation<'a> = &'a dyn Fn(&Measurement) -> Option<f64>;

impl Measures {
    /// Returns the measures of a kind of plan, including those of write caches if any result has them.
    fn of<K: PlanKind>(results: &[CellResult<'_, K>]) -> Self {
        let mut trials = results.iter().flat_map(|result| &result.trials);
        let has_caches = trials.any(|(_, measurement)| measurement.flushes.is_some());
        let of_caches = Measure::OF_WRITE_CACHES.into_iter().filter(|_| has_caches);
        let before = K::MEASURES.iter().copied().chain(of_caches).collect();
        Measures { before, with_time: quantity::<K>() != Quantity::Time }
    }

    fn time(&self) -> impl Iterator<Item = Measure> {
        Some(Measure::VIRTUAL_TIME).filter(|_| self.with_time).into_iter()
    }

    fn columns(&self, kind: fn(&Measure) -> Type) -> Vec<Column> {
        let column = |measure: &Measure| Column::new(measure.column, kind(measure));
        let mut columns: Vec<Column> = self.before.iter().map(column).collect();
        let utilisations = PARTS.into_iter().flat_map(|(part, _)| {
            ["", "_max"].map(|suffix| Column::new(format!("{part}_utilisation{suffix}"), Type::Number))
        });
        columns.extend(utilisations);
        columns.push(column(&Measure::MESSAGES));
        columns.push(Column::new("events", Type::Integer));
        columns.extend(self.time().map(|measure| column(&measure)));
        columns.push(Column::new("digest", Type::Text));
        columns
    }

    /// Returns the values of these columns for a row.
    fn values(
        &self,
        measured: impl Fn(&Measure) -> Value,
        utilisation: impl Fn(Utilisation<'_>) -> Value,
        events: u64,
        digest: u64,
    ) -> Vec<Value> {
        let mut values: Vec<Value> = self.before.iter().map(&measured).collect();
        for (_, busy) in PARTS {
            values.push(utilisation(&|measurement| measurement.mean_utilisation(busy(measurement))));
            values.push(utilisation(&|measurement| measurement.most_utilisation(busy(measurement))));
        }
        values.push(measured(&Measure::MESSAGES));
        values.push(Value::Integer(events));
        values.extend(self.time().map(|measure| measured(&measure)));
        values.push(Value::Text(format!("{digest:016x}")));
        values
    }
}

impl Measure {
    /// Returns the kind of the measure's values in a table of trials.
    fn kind(&self) -> Type {
        match self.of {
            MeasureOf::Whole(_) => Type::Integer,
            MeasureOf::Number(_) => Type::Number,
        }
    }

    /// Returns the value of the measure in a table of trials.
    fn value(&self, measurement: &Measurement) -> Value {
        match self.of {
            MeasureOf::Whole(of) => of(measurement).map_or(Value::Missing, Value::Integer),
            MeasureOf::Number(of) => of(measurement).into(),
        }
    }
}

/// A varied value of the machines, which has a separate column.
struct VariedNumber {
    key: String,
    /// Integer if all values are integers. Otherwise text, because some values have a unit.
    kind: Type,
}

impl VariedNumber {
    fn column(&self) -> Column {
        Column::new(self.key.replace('.', "_"), self.kind)
    }

    fn value<K>(&self, cell: &PlannedCell<K>) -> Value {
        let Some((_, value)) = cell.varied.iter().find(|(key, _)| *key == self.key) else {
            return Value::Missing;
        };
        match self.kind {
            Type::Integer => whole(value).map_or(Value::Missing, Value::Integer),
            _ => Value::Text(value.clone()),
        }
    }
}

fn varied_numbers<K: PlanKind>(results: &[CellResult<'_, K>]) -> Vec<VariedNumber> {
    let mut kinds: BTreeMap<&str, Type> = BTreeMap::new();
    for (key, value) in results.iter().flat_map(|result| &result.cell.varied) {
        if FieldOf::<K::Choices>::named(key).is_none() {
            let kind = kinds.entry(key).or_insert(Type::Integer);
            *kind = if whole(value).is_some() { *kind } else { Type::Text };
        }
    }
    kinds.into_iter().map(|(key, kind)| VariedNumber { key: key.to_owned(), kind }).collect()
}

/// Parses a whole number that fits into a column of integers.
fn whole(text: &str) -> Option<u64> {
    text.parse::<i64>().ok()?.try_into().ok()
}

/// Returns the fields that have a column.
fn fields<C: FieldSet>() -> impl Iterator<Item = &'static FieldOf<C>> {
    C::fields().iter().filter(|field| !field.column.is_empty())
}

/// Function that counts parts of a machine.
type Count = fn(&MachineDescription) -> u32;

/// Returns the parts of a machine that are counted: the column, and the function that counts. Omits counts that are
/// settings, because settings already have columns.
fn counts<K: PlanKind>() -> impl Iterator<Item = (&'static str, Count)> {
    let counts: [(&str, Count); 3] = [
        ("compute_nodes", |machine| machine.nodes.compute.value),
        ("io_nodes", |machine| machine.nodes.io.value),
        ("disks", |machine| machine.nodes.io.value * machine.disks.per_io_node.value),
    ];
    counts.into_iter().filter(|(name, _)| fields::<K::Choices>().all(|field| field.column != *name))
}

fn setting_columns<K: PlanKind>(numbers: &[VariedNumber]) -> Vec<Column> {
    let text = |name: &&str| Column::new(*name, Type::Text);
    let mut columns: Vec<Column> = ["plan", "variant", "varied", "machine", "set"].iter().map(text).collect();
    columns.extend(fields::<K::Choices>().map(|field| Column::new(field.column, kind(field))));
    columns.extend(counts::<K>().map(|(name, _)| Column::new(name, Type::Integer)));
    columns.extend(numbers.iter().map(VariedNumber::column));
    columns.extend(K::PLACE.iter().map(|key| Column::new(key.column, key.kind)));
    columns
}

fn kind<C: FieldSet>(field: &FieldOf<C>) -> Type {
    match field.takes {
        FieldValuesOf::Flag(_) => Type::Flag,
        FieldValuesOf::Size(..) | FieldValuesOf::Whole(..) | FieldValuesOf::WholeOrUnlimited(..) => {
            Type::Integer
        }
        FieldValuesOf::Name(..) | FieldValuesOf::Text(..) | FieldValuesOf::WholeOrName(..) => Type::Text,
    }
}

fn settings<K: PlanKind>(result: &CellResult<'_, K>, numbers: &[VariedNumber]) -> Vec<Value> {
    let PlannedCell { variant, varied, machine, set, case } = result.cell;
    let pairs = |pairs: &[(String, String)]| {
        let pairs: Vec<String> = pairs.iter().map(|(key, value)| format!("{key}={value}")).collect();
        Value::Text(pairs.join(" "))
    };
    let text = |value: &dyn ToString| Value::Text(value.to_string());
    let mut row = vec![text(&result.plan.name), text(variant), pairs(varied), text(machine), pairs(set)];
    row.extend(fields::<K::Choices>().map(|field| Value::from(field.shown(case))));
    row.extend(counts::<K>().map(|(_, count)| Value::Integer(count(case.machine()).into())));
    row.extend(numbers.iter().map(|number| number.value(result.cell)));
    row.extend(case.place());
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
