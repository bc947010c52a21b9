//! A study: plans whose results are the tables and figures of one report, and what that report printed.
//!
//! A plan says with `[table]` or `[figure]` which one it is; plans that say neither are no part of the study. All is
//! checked before anything runs: that each table has one layout and one value in each place, that each figure varies
//! one number, and that every published value belongs to a cell.

use std::collections::BTreeSet;

use page::{Curve, Figure, Measurand};
use plan::{AccessPattern, CellResult, Kind, Method, Plan, Quantity};
use statistics::Sample;

use crate::published::{PublishedError, PublishedTable, PublishedTables};
use crate::report::Provenance;
use crate::results::{CellPlace, ReportTable, TableCell};
use crate::statements::Statement;

/// Plans and published values that belong together.
#[derive(Clone, Debug)]
pub struct Study {
    /// What it is called.
    pub name: String,
    /// The plans of its tables, then those of its figures, each by number.
    pub plans: Vec<Plan>,
    /// What the report printed, as far as it is known.
    pub published: PublishedTables,
    /// What the report says of them in words.
    pub statements: Vec<Statement>,
    /// How its results are shown.
    pub form: Form,
}

/// How the results of a study are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Tables, and figures that each have one plan and vary one number.
    Report,
    /// Any figures, of one plan or several, and no tables: cell by cell.
    Cells,
}

/// A file that was read: its name, for complaints, and what is in it.
#[derive(Clone, Copy, Debug)]
pub struct TextFile<'a> {
    /// The file, as the user may know it.
    pub name: &'a str,
    /// Its contents.
    pub text: &'a str,
}

/// Why a study makes no sense.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StudyError {
    /// A plan makes no sense.
    #[error(transparent)]
    Plan(#[from] description::Error),
    /// Published values make no sense.
    #[error(transparent)]
    Published(#[from] PublishedError),
    /// They make no sense together.
    #[error("{file}: {what}")]
    Invalid {
        /// The plan's file.
        file: String,
        /// What is wrong with it.
        what: String,
    },
    /// There is nothing to reproduce.
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

    /// The numbers of its tables, or of its figures.
    pub fn numbers(&self, kind: Kind) -> Vec<u32> {
        let plans = self.plans.iter().map(identity);
        let mut numbers: Vec<u32> = plans.filter(|(of, _)| *of == kind).map(|(_, number)| number).collect();
        numbers.dedup();
        numbers
    }

    /// Leaves out the tables, or the figures, that are not among `numbers`.
    pub fn keep(&mut self, kind: Kind, numbers: &BTreeSet<u32>) {
        self.plans.retain(|plan| {
            let (of, number) = identity(plan);
            of != kind || numbers.contains(&number)
        });
    }

    /// The tables that these results make, in order. Cells without any trial are left out.
    pub fn tables(results: &[CellResult<'_>]) -> Vec<ReportTable> {
        let of = of_kind(results, Kind::Table);
        of.iter().map(|(plan, results)| table(plan, results)).collect()
    }

    /// The figures that these results make, in order.
    pub fn figures(results: &[CellResult<'_>]) -> Vec<Figure> {
        let of = of_kind(results, Kind::Figure);
        of.iter().map(|(plan, results)| figure(plan, results)).collect()
    }

    /// How the results of the study are made, by this command and version of the program.
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

/// How these plans are shown: as a report, unless one of them, with a write cache, has more to tell.
fn form_of(plans: &[Plan]) -> Form {
    let has_tables = plans.iter().any(|plan| identity(plan).0 == Kind::Table);
    let mut cells = plans.iter().flat_map(|plan| &plan.cells);
    let has_write_cache = cells.any(|cell| cell.case.method == Method::WriteCached);
    if has_write_cache && !has_tables { Form::Cells } else { Form::Report }
}

/// Which table or figure the plan is. A study has no plans that are neither.
fn identity(plan: &Plan) -> (Kind, u32) {
    plan.published.as_ref().map_or((Kind::Figure, u32::MAX), |published| (published.kind, published.number))
}

/// Tables before figures, each by number.
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
            return Err(format!(
                "two cells are {}: a table cannot vary anything but its variants",
                place(cell)
            ));
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
        Some(place) => Err(format!("no cell is {place}, for which there is a published value")),
        None => Ok(()),
    }
}

fn check_figure(plan: &Plan) -> Result<(), String> {
    if plan.published.as_ref().is_some_and(|published| published.quantity != Quantity::Throughput) {
        return Err("a figure must show throughput".to_owned());
    }
    match plan.cells.iter().find(|cell| varied(cell).is_none()) {
        Some(cell) => {
            Err(format!("a figure must vary one thing that is a number, not as in {}", cell.label()))
        }
        None => Ok(()),
    }
}

/// The one number that is varied.
fn varied(cell: &plan::PlannedCell) -> Option<f64> {
    match &cell.varied[..] {
        [(_, value)] => value.parse().ok().filter(|value: &f64| value.is_finite()),
        _ => None,
    }
}

/// The results of this kind, plan by plan, in the order of their numbers.
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
        // Stable, so variants and sizes stay in the order of the plan.
        results.sort_by_key(|result| pattern_number(result.cell.case.pattern));
    }
    plans
}

/// Where the reports list the pattern.
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

/// The throughputs in MiB/s, each byte of the file counted once however many nodes get it.
fn file_throughput(result: &CellResult<'_>) -> Option<Sample> {
    let nodes = nodes_with_the_same(result).unwrap_or(1) as f64;
    let throughputs = result.trials.iter().map(|(_, measurement)| measurement.throughput_mib_s() / nodes);
    Sample::of(&throughputs.collect::<Vec<f64>>())
}

/// How many nodes each byte of the file goes to or comes from, if it is not one.
fn nodes_with_the_same(result: &CellResult<'_>) -> Option<u64> {
    let (_, measurement) = result.trials.first()?;
    Some(measurement.bytes_moved / result.cell.case.problem.file_bytes).filter(|&nodes| nodes > 1)
}

/// The pattern, with whatever else tells lines of this figure apart.
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

/// What is varied, in the words of the reports where they have some.
pub(crate) fn axis_name(key: &str) -> &str {
    if key == "outstanding" { "K, outstanding requests for each compute node and disk" } else { key }
}
