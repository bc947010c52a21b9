//! A study: plans that reproduce the tables and figures of one report, and the values that the report printed.
//!
//! A plan names its table or figure with `[table]` or `[figure]`; a plan without either does not belong to the study.
//! All checks are made before any simulation runs. Each table must have one layout, and one value in each place. Each
//! figure must vary one number. Every published value must belong to a cell.

use std::collections::BTreeSet;

use page::{Curve, Figure, Measurand};
use plan::{AccessPattern, CellResult, Kind, Method, Plan, Quantity};
use statistics::Sample;

use crate::published::{PublishedError, PublishedTable, PublishedTables};
use crate::report::Provenance;
use crate::results::{CellPlace, ReportTable, TableCell};
use crate::statements::Statement;

/// Plans, and the published values for comparison.
#[derive(Clone, Debug)]
pub struct Study {
    /// Name of the study.
    pub name: String,
    /// Plans of the tables, then those of the figures, each by number.
    pub plans: Vec<Plan>,
    /// Values that the report printed, as far as this project knows them.
    pub published: PublishedTables,
    /// Statements of the report in words.
    pub statements: Vec<Statement>,
    /// Presentation of the results.
    pub form: Form,
}

/// Presentation of a study's results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Tables, and figures. Each figure has one plan, and varies one number.
    Report,
    /// Only figures, cell by cell. Each figure has one or several plans.
    Cells,
}

/// A file that was read: its contents, and its name for errors.
#[derive(Clone, Copy, Debug)]
pub struct TextFile<'a> {
    /// Name of the file, as the user knows it.
    pub name: &'a str,
    /// Contents of the file.
    pub text: &'a str,
}

/// Reason why a study is invalid.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StudyError {
    /// A plan is invalid.
    #[error(transparent)]
    Plan(#[from] description::Error),
    /// The published values are invalid.
    #[error(transparent)]
    Published(#[from] PublishedError),
    /// The plans and the published values do not match.
    #[error("{file}: {what}")]
    Invalid {
        /// File of the plan.
        file: String,
        /// Reason.
        what: String,
    },
    /// No plan reproduces a table or figure.
    #[error("no plan has a [table] or a [figure]: nothing to reproduce")]
    Empty,
}

impl Study {
    /// Reads and checks the study of these plans and published tables.
    pub fn parse(
        name: &str,
        plans: &[TextFile<'_>],
        published: &[TextFile<'_>],
    ) -> Result<Study, StudyError> {
        let plans = plans.iter().map(|file| Plan::parse(file.text, file.name));
        let plans = plans.collect::<Result<Vec<_>, _>>()?;
        let plans: Vec<Plan> = plans.into_iter().filter(|plan| plan.published.is_some()).collect();
        let (form, name) = (form_of(&plans), name.to_owned());
        let mut study = Study {
            name,
            plans: Vec::new(),
            published: PublishedTables::default(),
            statements: Vec::new(),
            form,
        };
        for file in published {
            study.published.read(file.name, file.text)?;
        }
        for plan in plans {
            study.add(plan)?;
        }
        if study.plans.is_empty() {
            return Err(StudyError::Empty);
        }
        study.plans.sort_by_key(order);
        Ok(study)
    }

    fn add(&mut self, plan: Plan) -> Result<(), StudyError> {
        let invalid = |what| StudyError::Invalid { file: plan.file.clone(), what };
        if self.form == Form::Cells {
            self.plans.push(plan);
            return Ok(());
        }
        if let Some(other) = self.plans.iter().find(|other| order(other) == order(&plan)) {
            return Err(invalid(format!("{} is the same table or figure", other.file)));
        }
        match identity(&plan) {
            (Kind::Table, number) => check_table(&plan, self.published.table(number)),
            (Kind::Figure, _) => check_figure(&plan),
        }
        .map_err(invalid)?;
        self.plans.push(plan);
        Ok(())
    }

    /// Returns the numbers of the tables, or of the figures.
    pub fn numbers(&self, kind: Kind) -> Vec<u32> {
        let plans = self.plans.iter().map(identity);
        let mut numbers: Vec<u32> = plans.filter(|(of, _)| *of == kind).map(|(_, number)| number).collect();
        numbers.dedup();
        numbers
    }

    /// Keeps only the tables, or figures, whose numbers are in `numbers`; does not change the other kind.
    pub fn keep(&mut self, kind: Kind, numbers: &BTreeSet<u32>) {
        self.plans.retain(|plan| {
            let (of, number) = identity(plan);
            of != kind || numbers.contains(&number)
        });
    }

    /// Returns the tables of these results, in order. Cells without trials are omitted.
    pub fn tables(results: &[CellResult<'_>]) -> Vec<ReportTable> {
        let of = of_kind(results, Kind::Table);
        of.iter().map(|(plan, results)| table(plan, results)).collect()
    }

    /// Returns the figures of these results, in order.
    pub fn figures(results: &[CellResult<'_>]) -> Vec<Figure> {
        let of = of_kind(results, Kind::Figure);
        of.iter().map(|(plan, results)| figure(plan, results)).collect()
    }

    /// Returns the origin of the study's results, for this command and this version of the program.
    pub fn provenance(&self, command: String, version: String) -> Provenance {
        let trials = self.plans.iter().map(|plan| plan.trials as usize);
        let cells = self.plans.iter().flat_map(|plan| &plan.cells);
        let machines: BTreeSet<&str> = cells.map(|cell| &*cell.machine).collect();
        let seeds: BTreeSet<u64> = self.plans.iter().map(|plan| plan.seed).collect();
        Provenance {
            command,
            version,
            seeds: seeds.into_iter().collect(),
            machines: machines.into_iter().map(str::to_owned).collect(),
            trials: (trials.clone().min().unwrap_or(0), trials.max().unwrap_or(0)),
        }
    }
}

/// Returns the presentation for these plans: cell by cell if they use a write cache and have no tables, otherwise a
/// report.
fn form_of(plans: &[Plan]) -> Form {
    let has_tables = plans.iter().any(|plan| identity(plan).0 == Kind::Table);
    let mut cells = plans.iter().flat_map(|plan| &plan.cells);
    let has_write_cache = cells.any(|cell| cell.case.method == Method::WriteCached);
    if has_write_cache && !has_tables { Form::Cells } else { Form::Report }
}

/// Returns the table or figure of a plan. All plans of a study have one.
fn identity(plan: &Plan) -> (Kind, u32) {
    plan.published.as_ref().map_or((Kind::Figure, u32::MAX), |published| (published.kind, published.number))
}

/// Returns a sort key that puts tables before figures, both by number.
fn order(plan: &Plan) -> (bool, u32) {
    let (kind, number) = identity(plan);
    (kind == Kind::Figure, number)
}

fn place(cell: &plan::PlannedCell) -> CellPlace {
    let experiment = &cell.case;
    CellPlace {
        variant: cell.variant.clone(),
        pattern: experiment.pattern.to_string(),
        record_bytes: experiment.problem.record_bytes,
    }
}

fn check_table(plan: &Plan, published: Option<&PublishedTable>) -> Result<(), String> {
    let mut places = BTreeSet::new();
    for cell in &plan.cells {
        if !places.insert(place(cell)) {
            return Err(format!("two cells are {}: a table can only vary its variants", place(cell)));
        }
    }
    let layouts: BTreeSet<String> = plan.cells.iter().map(|cell| cell.case.layout.to_string()).collect();
    if layouts.len() != 1 {
        return Err("a table must have one layout".to_owned());
    }
    let Some(published) = published else { return Ok(()) };
    let system = plan.published.as_ref().map_or("", |published| &published.system);
    if published.system != system || !layouts.contains(&published.layout) {
        let (there, here) = (&published.system, layouts.into_iter().collect::<String>());
        return Err(format!("this is {system}, {here}; published is {there}, {}", published.layout));
    }
    match published.places().find(|place| !places.contains(place)) {
        Some(place) => Err(format!("no cell is {place}, which has a published value")),
        None => Ok(()),
    }
}

fn check_figure(plan: &Plan) -> Result<(), String> {
    if plan.published.as_ref().is_some_and(|published| published.quantity != Quantity::Throughput) {
        return Err("a figure must show throughput".to_owned());
    }
    match plan.cells.iter().find(|cell| varied(cell).is_none()) {
        Some(cell) => Err(format!("a figure must vary one numeric setting, unlike {}", cell.label())),
        None => Ok(()),
    }
}

/// Returns the single varied number.
fn varied(cell: &plan::PlannedCell) -> Option<f64> {
    match &cell.varied[..] {
        [(_, value)] => value.parse().ok().filter(|value: &f64| value.is_finite()),
        _ => None,
    }
}

/// Returns the results of this kind, plan by plan, in the order of their numbers.
fn of_kind<'a, 'r>(results: &'a [CellResult<'r>], kind: Kind) -> Vec<(&'r Plan, Vec<&'a CellResult<'r>>)> {
    let mut plans: Vec<(&Plan, Vec<&CellResult<'_>>)> = Vec::new();
    for result in
        results.iter().filter(|result| result.plan.published.is_some() && identity(result.plan).0 == kind)
    {
        match plans.iter_mut().find(|(plan, _)| order(plan) == order(result.plan)) {
            Some((_, results)) => results.push(result),
            None => plans.push((result.plan, vec![result])),
        }
    }
    plans.sort_by_key(|(plan, _)| order(plan));
    for (_, results) in &mut plans {
        // A stable sort keeps variants and sizes in the order of the plan.
        results.sort_by_key(|result| pattern_number(result.cell.case.pattern));
    }
    plans
}

/// Returns the position of the pattern in the reports' lists.
fn pattern_number(pattern: AccessPattern) -> usize {
    AccessPattern::all().position(|other| other == pattern).unwrap_or(usize::MAX)
}

fn table(plan: &Plan, results: &[&CellResult<'_>]) -> ReportTable {
    let (system, quantity) =
        plan.published.as_ref().map_or((String::new(), Quantity::Throughput), |published| {
            (published.system.clone(), published.quantity)
        });
    let cell = |result: &&CellResult<'_>| {
        let CellPlace { variant, pattern, record_bytes } = place(result.cell);
        Some(TableCell { variant, pattern, record_bytes, sample: result.sample(quantity)? })
    };
    ReportTable {
        number: identity(plan).1,
        title: plan.title.clone(),
        system,
        layout: plan.cells.first().map_or(String::new(), |cell| cell.case.layout.to_string()),
        quantity,
        cells: results.iter().filter_map(cell).collect(),
    }
}

fn figure(plan: &Plan, results: &[&CellResult<'_>]) -> Figure {
    let key = plan.cells.first().and_then(|cell| cell.varied.first()).map_or("", |(key, _)| key);
    let mut lines: Vec<Curve> = Vec::new();
    for result in results {
        let (Some(value), Some(sample)) = (varied(result.cell), file_throughput(result)) else { continue };
        let per_node = nodes_with_the_same(result);
        let name = line_name(plan, result.cell, per_node);
        let found = lines.iter().position(|line| line.name == name);
        let place = found.unwrap_or_else(|| {
            lines.push(Curve { name, per_node, points: Vec::new() });
            lines.len() - 1
        });
        lines[place].points.push((value, sample));
    }
    for line in &mut lines {
        line.points.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    }
    Figure {
        number: identity(plan).1,
        title: plan.title.clone(),
        measurand: Measurand::THROUGHPUT,
        varied: axis_name(key).to_owned(),
        lines,
    }
}

/// Returns the throughputs in MiB/s. Each byte of the file counts once, even if several nodes receive it.
fn file_throughput(result: &CellResult<'_>) -> Option<Sample> {
    let nodes = nodes_with_the_same(result).unwrap_or(1) as f64;
    let throughputs = result.trials.iter().map(|(_, measurement)| measurement.throughput_mib_s() / nodes);
    Sample::of(&throughputs.collect::<Vec<f64>>())
}

/// Returns the number of nodes that access each byte of the file; `None` if it is one.
fn nodes_with_the_same(result: &CellResult<'_>) -> Option<u64> {
    let (_, measurement) = result.trials.first()?;
    Some(measurement.bytes_moved / result.cell.case.problem.file_bytes).filter(|&nodes| nodes > 1)
}

/// Returns the name of a line: the pattern, and other properties in which the lines of this figure differ.
fn line_name(plan: &Plan, cell: &plan::PlannedCell, per_node: Option<u64>) -> String {
    let CellPlace { variant, pattern, record_bytes } = place(cell);
    let mut name = pattern;
    if let Some(nodes) = per_node {
        name += &format!(" / {nodes}");
    }
    if plan.cells.iter().any(|other| other.variant != variant) {
        name += &format!(" {variant}");
    }
    if plan.cells.iter().any(|other| other.case.problem.record_bytes != record_bytes) {
        name += &format!(" {record_bytes} B");
    }
    name
}

/// Returns the name of the varied key, in the words of the reports if the reports have a name.
pub(crate) fn axis_name(key: &str) -> &str {
    if key == "outstanding" { "K, outstanding requests for each compute node and disk" } else { key }
}
