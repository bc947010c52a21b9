//! A page for any plan: charts of its throughputs, all numbers, and what the names on it mean.

use std::collections::BTreeSet;

use page::{Curve, Figure, NumbersBars, NumbersPage, NumbersPart, NumbersTable};
use plan::{AccessPattern, ArrayPattern, CellResult, DrawnLog, FlushCount, Measurement, Plan, PlannedCell};
use statistics::Sample;

use crate::results::distinct;
use crate::study::axis_name;

/// So many lines can be told apart in one chart.
const LINES_MAX: usize = 8;

/// The page of these results, which `command` makes again with this version of the program.
///
/// A number that is varied is the horizontal axis of its plan's charts; without one, the size of the records if there
/// are several; without these, every cell is a bar. Cells without any trial are left out.
pub fn plan_page(plans: &[Plan], results: &[CellResult<'_>], command: &str, version: &str) -> NumbersPage {
    let names: Vec<&str> = plans.iter().map(|plan| &*plan.name).collect();
    let mut parts = Vec::new();
    let mut figures = 0;
    for plan in plans {
        let of_plan = results.iter().filter(|result| std::ptr::eq(result.plan, plan));
        let of_plan: Vec<_> = of_plan.filter_map(|result| Some((result, result.throughput()?))).collect();
        let labels = labels(&of_plan.iter().map(|(result, _)| *result).collect::<Vec<_>>());
        match axis(&of_plan) {
            Some(axis) => parts.extend(charts(plan, &of_plan, axis, &mut figures)),
            None => {
                let bars = labels
                    .into_iter()
                    .zip(&of_plan)
                    .map(|(name, (result, sample))| (result.cell, name, sample));
                parts.push(NumbersPart::Bars(bars_by_pattern(plan, bars.collect())));
            }
        }
        parts.push(NumbersPart::Table(numbers(plan, &of_plan)));
        parts.extend(write_caches(plan, &of_plan).map(NumbersPart::Table));
        parts.push(NumbersPart::Table(variants(plan)));
    }
    parts.push(NumbersPart::Table(names_explained(results)));
    let lead = vec![
        "Simulated: how fast a file is read or written, in MiB/s (2^20 bytes), from the first request until all data \
         are where they belong. \u{b1} and bars are 95 % confidence intervals of the mean over trials."
            .to_owned(),
        format!("Made by: {command}, with starfish {version}."),
    ];
    NumbersPage { title: names.join(", "), lead, parts }
}

fn heading(plan: &Plan) -> String {
    if plan.title.is_empty() { plan.name.clone() } else { format!("{}: {}", plan.name, plan.title) }
}

/// What a chart has along its horizontal axis.
#[derive(Clone, Copy)]
enum Axis {
    /// What varies at this place among the keys of `[vary]`.
    Varied(usize),
    /// The size of the records.
    Records,
}

type Measured<'a, 'r> = (&'a CellResult<'r>, Sample);

impl Axis {
    fn value(self, result: &CellResult<'_>) -> Option<f64> {
        match self {
            Axis::Records => Some(result.cell.case.problem.record_bytes as f64),
            Axis::Varied(place) => {
                result.cell.varied.get(place)?.1.parse().ok().filter(|value: &f64| value.is_finite())
            }
        }
    }

    fn name(self, result: &CellResult<'_>) -> String {
        match self {
            Axis::Records => "bytes in a record".to_owned(),
            Axis::Varied(place) => axis_name(&result.cell.varied[place].0).to_owned(),
        }
    }

    /// Whether there are several values, all of them numbers.
    fn is_one(self, results: &[Measured<'_, '_>]) -> bool {
        let values: Option<BTreeSet<u64>> =
            results.iter().map(|(result, _)| self.value(result).map(f64::to_bits)).collect();
        values.is_some_and(|values| values.len() > 1)
    }
}

fn axis(results: &[Measured<'_, '_>]) -> Option<Axis> {
    let (first, _) = results.first()?;
    let varied = (0..first.cell.varied.len()).map(Axis::Varied);
    varied.chain([Axis::Records]).find(|axis| axis.is_one(results))
}

/// A chart, or one for each pattern where one would have too many lines.
fn charts(plan: &Plan, results: &[Measured<'_, '_>], axis: Axis, figures: &mut u32) -> Vec<NumbersPart> {
    let lines = lines(results, axis);
    let groups: Vec<(String, Vec<Curve>)> = if lines.len() <= LINES_MAX {
        vec![(heading(plan), lines.into_iter().map(|(_, line)| line).collect())]
    } else {
        let of = |pattern| lines.iter().filter(move |(of, _)| *of == pattern).map(|(_, line)| line.clone());
        let group = |pattern| (format!("{}: {pattern}", heading(plan)), of(pattern).collect());
        distinct(lines.iter().map(|(pattern, _)| *pattern)).into_iter().map(group).collect()
    };
    let varied = results.first().map_or_else(String::new, |(result, _)| axis.name(result));
    let mut parts = Vec::new();
    for (title, lines) in groups {
        for lines in lines.chunks(LINES_MAX) {
            *figures += 1;
            let (title, varied) = (title.clone(), varied.clone());
            parts.push(NumbersPart::Figure(Figure {
                number: *figures,
                title,
                varied,
                lines: lines.to_vec(),
            }));
        }
    }
    parts
}

/// The lines along an axis, each with its pattern.
fn lines(results: &[Measured<'_, '_>], axis: Axis) -> Vec<(AccessPattern, Curve)> {
    let all: Vec<_> = results.iter().map(|(result, _)| *result).collect();
    let named = all.iter().map(|result| name_parts(result, Some(axis))).collect::<Vec<_>>();
    let mut lines: Vec<(AccessPattern, Curve)> = Vec::new();
    for ((result, sample), name) in results.iter().zip(differing(&named)) {
        let Some(value) = axis.value(result) else { continue };
        let place = lines.iter().position(|(_, line)| line.name == name).unwrap_or_else(|| {
            lines.push((result.cell.case.pattern, Curve { name, per_node: None, points: Vec::new() }));
            lines.len() - 1
        });
        lines[place].1.points.push((value, sample.clone()));
    }
    for (_, line) in &mut lines {
        line.points.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    }
    lines
}

/// What tells each cell from the others of its plan.
fn labels(results: &[&CellResult<'_>]) -> Vec<String> {
    differing(&results.iter().map(|result| name_parts(result, None)).collect::<Vec<_>>())
}

/// All that names a cell, but for what is along the axis.
fn name_parts(result: &CellResult<'_>, axis: Option<Axis>) -> Vec<String> {
    let cell = result.cell;
    let mut parts = vec![cell.case.pattern.to_string(), cell.variant.clone()];
    for (place, (key, value)) in cell.varied.iter().enumerate() {
        if !matches!(axis, Some(Axis::Varied(along)) if along == place) {
            parts.push(format!("{key}={value}"));
        }
    }
    if !matches!(axis, Some(Axis::Records)) {
        parts.push(format!("{} B", cell.case.problem.record_bytes));
    }
    parts
}

/// Names made of the parts in which they differ; of the first two if they do not differ at all.
fn differing(named: &[Vec<String>]) -> Vec<String> {
    let differs = |place: usize| named.iter().any(|parts| parts[place] != named[0][place]);
    let places: Vec<usize> = (0..named.first().map_or(0, Vec::len)).filter(|&place| differs(place)).collect();
    let places = if places.is_empty() { vec![0, 1] } else { places };
    let name = |parts: &Vec<String>| places.iter().map(|&place| &*parts[place]).collect::<Vec<_>>().join(" ");
    named.iter().map(name).collect()
}

fn numbers(plan: &Plan, results: &[Measured<'_, '_>]) -> NumbersTable {
    let head = [
        "variant",
        "pattern",
        "record, B",
        "MiB/s",
        "\u{b1} 95 %",
        "cv, %",
        "disk movements",
        "disks busy, %",
    ];
    let row = |(result, throughput): &Measured<'_, '_>| {
        let Some(movements) = result.movements() else { return Vec::new() };
        let busy = result.mean(|trial| trial.mean_utilisation(trial.disks));
        vec![
            result.cell.series(),
            result.cell.case.pattern.to_string(),
            result.cell.case.problem.record_bytes.to_string(),
            format!("{:.2}", throughput.mean()),
            throughput.half_width().map_or_else(|| "\u{2013}".to_owned(), |half| format!("{half:.2}")),
            format!("{:.1}", 100.0 * throughput.cv()),
            format!("{:.0}", movements.mean()),
            busy.map_or_else(|| "\u{2013}".to_owned(), |busy| format!("{:.0}", 100.0 * busy)),
        ]
    };
    NumbersTable {
        title: format!("{}: all numbers", plan.name),
        notes: vec![format!("Means of up to {} trials; seed {}.", plan.trials, plan.seed)],
        head: head.map(str::to_owned).into(),
        text_columns: 2,
        rows: results.iter().map(row).collect(),
    }
}

/// Bars by pattern, those of all variants next to each other.
fn bars_by_pattern(plan: &Plan, cells: Vec<(&PlannedCell, String, &Sample)>) -> NumbersBars {
    let patterns = distinct(cells.iter().map(|(cell, ..)| cell.case.pattern));
    let together = distinct(cells.iter().map(|(cell, ..)| &*cell.variant)).len();
    let of = |pattern| cells.iter().filter(move |(cell, ..)| cell.case.pattern == pattern);
    let bars = patterns.into_iter().flat_map(of).map(|(_, name, sample)| (name.clone(), (*sample).clone()));
    NumbersBars { title: heading(plan), bars: bars.collect(), together }
}

/// What the write caches of a plan did, if it has any: the latency of a write, and where the time of flushes went.
fn write_caches(plan: &Plan, results: &[Measured<'_, '_>]) -> Option<NumbersTable> {
    let head = [
        "variant",
        "pattern",
        "record, B",
        "flushes",
        "of them by directory",
        "a write, us",
        "99 %",
        "longest",
        "flushing, ms",
        "telling, %",
        "meeting, %",
        "moving, %",
    ];
    let row = |(result, _): &Measured<'_, '_>| {
        let mean = |count: fn(FlushCount) -> u64| {
            result.mean(|trial: &Measurement| Some(count(trial.flushes?) as f64))
        };
        let parts = [
            mean(|count| count.telling_ns)?,
            mean(|count| count.meeting_ns)?,
            mean(|count| count.moving_ns)?,
        ];
        let flushing: f64 = parts.iter().sum();
        let micro = |count| Some(format!("{:.1}", mean(count)? / 1e3));
        let mut row = vec![
            result.cell.series(),
            result.cell.case.pattern.to_string(),
            result.cell.case.problem.record_bytes.to_string(),
            format!("{:.1}", mean(|count| count.flushes)?),
            format!("{:.1}", mean(|count| count.directory_flushes)?),
            micro(|count| count.write_mean_ns)?,
            micro(|count| count.write_99_ns)?,
            micro(|count| count.write_longest_ns)?,
            format!("{:.1}", flushing / 1e6),
        ];
        row.extend(parts.map(|part| format!("{:.1}", 100.0 * part / flushing.max(1.0))));
        Some(row)
    };
    let rows: Vec<Vec<String>> = results.iter().filter_map(row).collect();
    let notes = vec![
        "A write is one record into memory; the longest waited for a flush. The time of all flushes, as the slowest \
         compute node saw it: telling the I/O nodes what there is, meeting the other nodes, and the I/O nodes at work, \
         sorting and moving data between memories and disks."
            .to_owned(),
    ];
    let title = format!("{}: write caches", plan.name);
    (!rows.is_empty()).then(|| NumbersTable {
        title,
        notes,
        head: head.map(str::to_owned).into(),
        text_columns: 2,
        rows,
    })
}

/// What each variant is. What varies has the value of the first cell.
fn variants(plan: &Plan) -> NumbersTable {
    let head = [
        "variant",
        "machine",
        "method",
        "layout",
        "scheduling",
        "nodes",
        "I/O nodes",
        "file, B",
        "block, B",
        "K",
    ];
    let mut rows: Vec<Vec<String>> = Vec::new();
    for cell in &plan.cells {
        if rows.iter().any(|row| row[0] == cell.series()) {
            continue;
        }
        let experiment = &cell.case;
        let nodes = &experiment.machine.nodes;
        rows.push(vec![
            cell.series(),
            cell.machine.clone(),
            experiment.method.to_string(),
            experiment.layout.to_string(),
            experiment.options.scheduling.to_string(),
            nodes.compute.value.to_string(),
            nodes.io.value.to_string(),
            experiment.problem.file_bytes.to_string(),
            experiment.options.block_bytes.to_string(),
            experiment.options.outstanding.to_string(),
        ]);
    }
    NumbersTable {
        title: format!("{}: its variants", plan.name),
        notes: vec![
            "K is the number of requests that each compute node has under way to each disk.".to_owned(),
        ],
        head: head.map(str::to_owned).into(),
        text_columns: 5,
        rows,
    }
}

fn names_explained(results: &[CellResult<'_>]) -> NumbersTable {
    let experiments = || results.iter().map(|result| &result.cell.case);
    let patterns = distinct(experiments().map(|experiment| experiment.pattern)).into_iter();
    let mut rows: Vec<Vec<String>> =
        patterns.map(|pattern| vec![pattern.to_string(), pattern_in_words(pattern)]).collect();
    let methods: BTreeSet<String> = experiments().map(|experiment| experiment.method.to_string()).collect();
    for (method, meaning) in METHODS.into_iter().filter(|(method, _)| methods.contains(*method)) {
        rows.push(vec![method.to_owned(), meaning.to_owned()]);
    }
    for (name, meaning) in [
        ("cv", "standard deviation of the trials, as a part of their mean"),
        ("disk movements", "how often the arm of a disk had to move, of all disks together"),
        ("disks busy", "the part of the time in which a disk was at work, on average"),
    ] {
        rows.push(vec![name.to_owned(), meaning.to_owned()]);
    }
    NumbersTable {
        title: "What the names mean".to_owned(),
        notes: Vec::new(),
        head: ["name", "meaning"].map(str::to_owned).into(),
        text_columns: 2,
        rows,
    }
}

/// The methods, and what they do.
const METHODS: [(&str, &str); 4] = [
    ("traditional", "every compute node asks I/O nodes, which have caches, for its own pieces"),
    (
        "two-phase",
        "compute nodes access blocks as suits the disks, and deal the data among each other before or after",
    ),
    (
        "disk-directed",
        "all compute nodes ask together, and each I/O node serves its disks in the order that suits them",
    ),
    (
        "write-cached",
        "compute nodes write into their memory, and flush it together, disk-directed, when one has no more room",
    ),
];

/// A pattern, letter by letter: `rcb` reads a matrix whose rows are cyclic and whose columns are in blocks.
fn pattern_in_words(pattern: AccessPattern) -> String {
    let name = pattern.to_string();
    let dealt = |letter: char| match letter {
        'b' => "in blocks",
        'c' => "cyclically",
        _ => "not at all",
    };
    match pattern {
        AccessPattern::Log(DrawnLog::Cmmd) => {
            return "write: a drawn log of message-passing programs, with large files".to_owned();
        }
        AccessPattern::Log(DrawnLog::Cmf(_)) => {
            return "write: a drawn log of data-parallel programs, with small files".to_owned();
        }
        AccessPattern::Arrays(ArrayPattern::InRounds) => {
            return "write: as wc, but each round of one record a compute node begins for all together"
                .to_owned();
        }
        AccessPattern::Arrays(ArrayPattern::InTurn(first, second)) => {
            return format!(
                "write two arrays to two files: every node a piece of {first} and one of {second} in turn"
            );
        }
        AccessPattern::Arrays(ArrayPattern::Apart(first, second)) => {
            return format!(
                "write two arrays to two files: half of the nodes as {first}, the others as {second}"
            );
        }
        AccessPattern::Arrays(ArrayPattern::One(_)) => {}
    }
    let (verb, rest) = name.split_at(1);
    let verb = if verb == "r" { "read" } else { "write" };
    match *rest.chars().collect::<Vec<_>>() {
        ['a'] => format!("{verb}: all of the file, by every compute node"),
        ['n'] => format!("{verb}: all of the file, by one compute node"),
        [letter] => format!("{verb}: records are dealt to compute nodes {}", dealt(letter)),
        [rows, columns] => format!(
            "{verb}: a matrix of records, its rows dealt to compute nodes {} and its columns {}",
            dealt(rows),
            dealt(columns)
        ),
        _ => verb.to_owned(),
    }
}
