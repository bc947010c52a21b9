//! The page of any plan: charts of the compared quantity, all numbers, and an explanation of the names.
//!
//! A [`PageKind`] describes the cells of one kind of plans: `patterns.rs` for access methods, `placements.rs` for jobs
//! that share disks.

mod patterns;
mod placements;

use std::collections::BTreeSet;

use page::{Curve, Figure, Measurand, NumbersBars, NumbersPage, NumbersPart, NumbersTable};
use plan::{CellResult, Plan, PlanKind, Value};
use statistics::Sample;

use crate::report::number;
use crate::results::distinct;

/// Placeholder in tables for missing values.
const ABSENT: &str = "\u{2013}";

/// Maximum number of distinguishable lines in one chart.
const LINES_MAX: usize = 8;

/// Texts and tables of a page for plans of one kind.
pub trait PageKind: PlanKind {
    /// Measured quantity of the charts: the first quantity of the kind.
    const MEASURAND: Measurand;

    /// Introduction of the page.
    const LEAD: &'static str;

    /// Returns the name of the axis for this varied key or column.
    fn axis_name(key: &str) -> String;

    /// Returns tables of all numbers of a plan, and of the settings of its variants.
    fn tables(plan: &Plan<Self>, results: &[PageResult<'_, '_, Self>]) -> Vec<NumbersTable>;

    /// Returns the names on a page of these results, with their meanings.
    fn names(results: &[CellResult<'_, Self>]) -> Vec<(String, String)>;
}

/// A result, and the sample of the quantity by which cells are compared.
pub type PageResult<'a, 'r, K> = (&'a CellResult<'r, K>, Sample);

/// Returns the page of these results. `command` is the command that reproduces it with this version of the program.
///
/// The horizontal axis of a plan's charts is the varied number. Without a varied number it is the record size, if there
/// are several. Otherwise the page shows a bar for each cell. Cells without trials are omitted.
pub fn plan_page<K: PageKind>(
    plans: &[Plan<K>],
    results: &[CellResult<'_, K>],
    command: &str,
    version: &str,
) -> NumbersPage {
    let names: Vec<&str> = plans.iter().map(|plan| &*plan.name).collect();
    let mut parts = Vec::new();
    let mut figures = 0;
    for plan in plans {
        let of_plan = results.iter().filter(|result| std::ptr::eq(result.plan, plan));
        let sample = |result: &CellResult<'_, K>| result.sample(K::QUANTITIES[0]);
        let of_plan: Vec<_> = of_plan.filter_map(|result| Some((result, sample(result)?))).collect();
        match axis(&of_plan) {
            Some(axis) => parts.extend(charts(plan, &of_plan, axis, &mut figures)),
            None => parts.push(NumbersPart::Bars(bars(plan, &of_plan))),
        }
        parts.extend(K::tables(plan, &of_plan).into_iter().map(NumbersPart::Table));
    }
    parts.push(NumbersPart::Table(names_explained(results)));
    let lead = vec![
        format!("{} \u{b1} and bars are 95 % confidence intervals of the mean over trials.", K::LEAD),
        format!("Made by: {command}, with starfish {version}."),
    ];
    NumbersPage { title: names.join(", "), lead, parts }
}

fn heading<K>(plan: &Plan<K>) -> String {
    if plan.title.is_empty() { plan.name.clone() } else { format!("{}: {}", plan.name, plan.title) }
}

/// Horizontal axis of a chart.
#[derive(Clone, Copy)]
enum Axis {
    /// Varied setting with this index among the keys of `[vary]`.
    Varied(usize),
    /// Number with this index among the parts of a cell's name that follow the series.
    Place(usize),
}

impl Axis {
    fn value<K: PlanKind>(self, result: &CellResult<'_, K>) -> Option<f64> {
        match self {
            Axis::Place(place) => match result.cell.case.place().get(place)? {
                Value::Integer(number) => Some(*number as f64),
                _ => None,
            },
            Axis::Varied(place) => {
                result.cell.varied.get(place)?.1.parse().ok().filter(|value: &f64| value.is_finite())
            }
        }
    }

    fn name<K: PageKind>(self, result: &CellResult<'_, K>) -> String {
        match self {
            Axis::Place(place) => K::axis_name(K::PLACE[place].column),
            Axis::Varied(place) => K::axis_name(&result.cell.varied[place].0),
        }
    }

    /// True if the results have several values along this axis, all of them numbers.
    fn is_one<K: PlanKind>(self, results: &[PageResult<'_, '_, K>]) -> bool {
        let values: Option<BTreeSet<u64>> =
            results.iter().map(|(result, _)| self.value(result).map(f64::to_bits)).collect();
        values.is_some_and(|values| values.len() > 1)
    }
}

fn axis<K: PlanKind>(results: &[PageResult<'_, '_, K>]) -> Option<Axis> {
    let (first, _) = results.first()?;
    let varied = (0..first.cell.varied.len()).map(Axis::Varied);
    varied.chain((0..K::PLACE.len()).map(Axis::Place)).find(|axis| axis.is_one(results))
}

/// Returns one chart, or several charts if one chart would have too many lines.
fn charts<K: PageKind>(
    plan: &Plan<K>,
    results: &[PageResult<'_, '_, K>],
    axis: Axis,
    figures: &mut u32,
) -> Vec<NumbersPart> {
    let lines = lines(results, axis);
    let groups: Vec<(String, Vec<DrawnLine>)> = if lines.len() <= LINES_MAX {
        vec![(heading(plan), lines)]
    } else {
        let of = |group: &String| lines.iter().filter(|line| line.group == *group).cloned().collect();
        let title = |group: &String| match &**group {
            "" => heading(plan),
            group => format!("{}: {group}", heading(plan)),
        };
        let groups = distinct(lines.iter().map(|line| &line.group));
        groups.into_iter().map(|group| (title(group), of(group))).collect()
    };
    let varied = results.first().map_or_else(String::new, |(result, _)| axis.name(result));
    let mut parts = Vec::new();
    for (title, lines) in groups {
        let charts = distributed(&lines);
        let count = charts.len();
        for (place, lines) in (1..).zip(charts) {
            *figures += 1;
            let of = if count > 1 { format!(" ({place} of {count})") } else { String::new() };
            parts.push(NumbersPart::Figure(Figure {
                number: *figures,
                title: format!("{title}{of}"),
                measurand: K::MEASURAND,
                varied: varied.clone(),
                lines,
            }));
        }
    }
    parts
}

/// A line of a chart.
#[derive(Clone)]
struct DrawnLine {
    group: String,
    /// Parts of the name that the line has in common with the lines of other variants with which it is compared.
    setting: Vec<String>,
    curve: Curve,
}

/// Distributes lines over charts with at most [`LINES_MAX`] lines each. Lines with the same setting are in the same
/// chart if they fit.
fn distributed(lines: &[DrawnLine]) -> Vec<Vec<Curve>> {
    let all = |lines: &[DrawnLine]| lines.iter().map(|line| line.curve.clone()).collect();
    if lines.len() <= LINES_MAX {
        return vec![all(lines)];
    }
    let mut charts: Vec<Vec<Curve>> = Vec::new();
    for setting in distinct(lines.iter().map(|line| &line.setting)) {
        let of_setting: Vec<DrawnLine> =
            lines.iter().filter(|line| line.setting == *setting).cloned().collect();
        for some in of_setting.chunks(LINES_MAX) {
            match charts.last_mut().filter(|chart| chart.len() + some.len() <= LINES_MAX) {
                Some(chart) => chart.extend::<Vec<Curve>>(all(some)),
                None => charts.push(all(some)),
            }
        }
    }
    charts
}

/// Returns the lines along an axis.
fn lines<K: PlanKind>(results: &[PageResult<'_, '_, K>], axis: Axis) -> Vec<DrawnLine> {
    let mut lines: Vec<DrawnLine> = Vec::new();
    for ((result, sample), name) in results.iter().zip(names(results, Some(axis))) {
        let Some(value) = axis.value(result) else { continue };
        let place = lines.iter().position(|line| line.curve.name == name).unwrap_or_else(|| {
            let mut setting = name_parts(result, Some(axis));
            setting.retain(|part| *part != result.cell.variant);
            let curve = Curve { name, per_node: None, points: Vec::new() };
            lines.push(DrawnLine { group: group(result), setting, curve });
            lines.len() - 1
        });
        lines[place].curve.points.push((value, sample.clone()));
    }
    for line in &mut lines {
        line.curve.points.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    }
    lines
}

/// Returns the group of a cell: the words of its name without the series, such as its pattern.
fn group<K: PlanKind>(result: &CellResult<'_, K>) -> String {
    words(result).collect::<Vec<_>>().join(" ")
}

fn words<K: PlanKind>(result: &CellResult<'_, K>) -> impl Iterator<Item = String> {
    result.cell.case.place().into_iter().filter_map(|value| match value {
        Value::Text(text) => Some(text),
        _ => None,
    })
}

/// Returns names that distinguish each cell from the other cells of its plan. The value along the axis is left out.
fn names<K: PlanKind>(results: &[PageResult<'_, '_, K>], axis: Option<Axis>) -> Vec<String> {
    differing(&results.iter().map(|(result, _)| name_parts(result, axis)).collect::<Vec<_>>())
}

/// Returns all parts of a cell's name except the value along the axis.
fn name_parts<K: PlanKind>(result: &CellResult<'_, K>, axis: Option<Axis>) -> Vec<String> {
    let cell = result.cell;
    let mut parts: Vec<String> = words(result).chain([cell.variant.clone()]).collect();
    for (place, (key, value)) in cell.varied.iter().enumerate() {
        if !matches!(axis, Some(Axis::Varied(along)) if along == place) {
            parts.push(format!("{key}={value}"));
        }
    }
    for (place, value) in cell.case.place().iter().enumerate() {
        let is_along = matches!(axis, Some(Axis::Place(along)) if along == place);
        if let Value::Integer(bytes) = value
            && !is_along
        {
            parts.push(format!("{bytes} B"));
        }
    }
    parts
}

/// Builds names from the parts in which cells differ, or from the first two parts if no part differs.
fn differing(named: &[Vec<String>]) -> Vec<String> {
    let differs = |place: usize| named.iter().any(|parts| parts[place] != named[0][place]);
    let count = named.first().map_or(0, Vec::len);
    let places: Vec<usize> = (0..count).filter(|&place| differs(place)).collect();
    let places = if places.is_empty() { (0..count.min(2)).collect() } else { places };
    let name = |parts: &Vec<String>| places.iter().map(|&place| &*parts[place]).collect::<Vec<_>>().join(" ");
    named.iter().map(name).collect()
}

/// Returns bars by group. In each group, the bars of all variants are next to each other.
fn bars<K: PageKind>(plan: &Plan<K>, results: &[PageResult<'_, '_, K>]) -> NumbersBars {
    let names = names(results, None);
    let cells: Vec<_> =
        results.iter().zip(names).map(|((result, sample), name)| (result, name, sample)).collect();
    let groups = distinct(cells.iter().map(|(result, ..)| group(result)));
    let together = distinct(cells.iter().map(|(result, ..)| &*result.cell.variant)).len();
    let of = |wanted| cells.iter().filter(move |(result, ..)| group(result) == wanted);
    let bars = groups.into_iter().flat_map(of).map(|(_, name, sample)| (name.clone(), (*sample).clone()));
    NumbersBars { title: heading(plan), measurand: K::MEASURAND, bars: bars.collect(), together }
}

fn names_explained<K: PageKind>(results: &[CellResult<'_, K>]) -> NumbersTable {
    NumbersTable {
        title: "What the names mean".to_owned(),
        notes: Vec::new(),
        head: ["name", "meaning"].map(str::to_owned).into(),
        text_columns: 2,
        rows: K::names(results).into_iter().map(|(name, meaning)| vec![name, meaning]).collect(),
    }
}

/// Returns a note about the numbers of a plan.
fn means_note<K: PlanKind>(plan: &Plan<K>) -> String {
    let trials = number::count(plan.trials as usize, "trial");
    format!("Means of up to {trials}; seed {}.", plan.seed)
}

/// Formats a mean, or a dash if it is missing.
fn shown(mean: Option<f64>, digits: usize) -> String {
    mean.map_or_else(|| ABSENT.to_owned(), |mean| format!("{mean:.digits$}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_one_setting_are_in_one_chart() {
        let line = |variant: &str, bytes: u32| DrawnLine {
            group: String::new(),
            setting: vec![format!("{bytes} B")],
            curve: Curve { name: format!("{variant} {bytes} B"), per_node: None, points: Vec::new() },
        };
        let lines: Vec<DrawnLine> = ["tc", "dd", "wc"]
            .into_iter()
            .flat_map(|variant| [8, 512, 8192].map(|bytes| line(variant, bytes)))
            .collect();
        let names = |lines: &[DrawnLine]| -> Vec<Vec<String>> {
            let charts = distributed(lines).into_iter();
            charts.map(|chart| chart.into_iter().map(|curve| curve.name).collect()).collect()
        };
        assert_eq!(
            names(&lines),
            [
                &["tc 8 B", "dd 8 B", "wc 8 B", "tc 512 B", "dd 512 B", "wc 512 B"][..],
                &["tc 8192 B", "dd 8192 B", "wc 8192 B"]
            ]
        );
        assert_eq!(names(&lines[..8]).len(), 1, "one chart has room for them");
    }
}
