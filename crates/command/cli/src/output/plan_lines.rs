//! Results of plans as lines of text, with the columns that each kind of plan has for cells and trials.

use command_line::TextTable;
use node::Size;
use plan::{Busy, Case, CellResult, Measurement, PlacedMeasurement, PlacementCase, PlanKind, Type};

/// Columns that are printed for the plans of one kind.
pub(crate) trait PlanLines: PlanKind {
    /// Headings of the columns that identify a cell, in addition to plan and variant.
    const PLACE_HEADS: &'static [&'static str];

    /// Headings of the columns with the results of a cell.
    const CELL_HEADS: &'static [&'static str];

    /// Headings of the columns with the results of a trial, in addition to events and digest.
    const TRIAL_HEADS: &'static [&'static str];

    /// Returns the values that identify this case, in addition to plan and variant.
    fn place_in_words(&self) -> Vec<String>;

    /// Returns the results of a cell, or `None` if it has no trials.
    fn of_cell(result: &CellResult<'_, Self>) -> Option<Vec<String>>;

    /// Returns the results of a trial.
    fn of_trial(trial: &Measurement) -> Vec<String>;
}

impl PlanLines for Case {
    const PLACE_HEADS: &'static [&'static str] = &["pattern", "record"];
    const CELL_HEADS: &'static [&'static str] =
        &["throughput", "+-95 %", "cv", "movements", "disks", "buses", "links", "compute", "I/O"];
    const TRIAL_HEADS: &'static [&'static str] = &["throughput", "movements", "time"];

    fn place_in_words(&self) -> Vec<String> {
        vec![self.pattern.to_string(), Size(self.problem.record_bytes).to_string()]
    }

    /// Includes the mean utilisations of the machine's components.
    fn of_cell(result: &CellResult<'_>) -> Option<Vec<String>> {
        let (throughput, movements) = (result.throughput()?, result.movements()?);
        let mut values = vec![
            mib_s(throughput.mean()),
            throughput.half_width().map_or_else(String::new, significant),
            format!("{:.1} %", 100.0 * throughput.cv()),
            format!("{:.0}", movements.mean()),
        ];
        let parts: [fn(&Measurement) -> Busy; 5] = [
            |trial| trial.disks,
            |trial| trial.buses,
            |trial| trial.links,
            |trial| trial.compute_processors,
            |trial| trial.io_processors,
        ];
        values.extend(parts.map(|part| busy(result, part)));
        Some(values)
    }

    fn of_trial(trial: &Measurement) -> Vec<String> {
        vec![
            mib_s(trial.throughput_mib_s()),
            trial.disk_movements.to_string(),
            format!("{:.6} s", trial.elapsed_s()),
        ]
    }
}

impl PlanLines for PlacementCase {
    const PLACE_HEADS: &'static [&'static str] = &[];
    const CELL_HEADS: &'static [&'static str] =
        &["all, s", "+-95 %", "cv", "first, s", "r, ms", "w, ms", "f", "queue, writes", "blocks", "disks"];
    const TRIAL_HEADS: &'static [&'static str] =
        &["all, s", "first, s", "r, ms", "w, ms", "f", "queue, writes", "blocks"];

    fn place_in_words(&self) -> Vec<String> {
        Vec::new()
    }

    fn of_cell(result: &CellResult<'_, Self>) -> Option<Vec<String>> {
        let time = result.sample(plan::Quantity::Time)?;
        let mean = |of: fn(&PlacedMeasurement) -> f64, digits: usize| {
            let mean = result.mean(|trial| trial.placed.as_ref().map(of));
            mean.map_or_else(String::new, |mean| format!("{mean:.digits$}"))
        };
        Some(vec![
            format!("{:.2}", time.mean()),
            time.half_width().map_or_else(String::new, |half| format!("{half:.2}")),
            format!("{:.1} %", 100.0 * time.cv()),
            mean(PlacedMeasurement::first_s, 2),
            mean(|placed| placed.read_ns as f64 / 1e6, 3),
            mean(|placed| placed.write_ns as f64 / 1e6, 3),
            mean(PlacedMeasurement::ratio, 3),
            mean(|placed| placed.pending_writes_most as f64, 0),
            mean(|placed| placed.pending_blocks_most as f64, 0),
            busy(result, |trial| trial.disks),
        ])
    }

    fn of_trial(trial: &Measurement) -> Vec<String> {
        let placed = |of: fn(&PlacedMeasurement) -> f64, digits: usize| {
            trial.placed.as_ref().map_or_else(String::new, |placed| format!("{:.digits$}", of(placed)))
        };
        vec![
            format!("{:.2}", trial.elapsed_s()),
            placed(PlacedMeasurement::first_s, 2),
            placed(|placed| placed.read_ns as f64 / 1e6, 3),
            placed(|placed| placed.write_ns as f64 / 1e6, 3),
            placed(PlacedMeasurement::ratio, 3),
            placed(|placed| placed.pending_writes_most as f64, 0),
            placed(|placed| placed.pending_blocks_most as f64, 0),
        ]
    }
}

/// Formats the mean utilisation of a component of the machine.
fn busy<K>(result: &CellResult<'_, K>, part: fn(&Measurement) -> Busy) -> String {
    let utilisation = result.mean(|trial| trial.mean_utilisation(part(trial)));
    utilisation.map_or_else(String::new, |part| format!("{:.0} %", 100.0 * part))
}

/// Returns a table without rows, whose first columns identify a cell.
fn table<K: PlanLines>(heads: &[&[&'static str]]) -> TextTable {
    let words = K::PLACE.iter().filter(|key| key.kind == Type::Text).count();
    let mut table = TextTable::new(2 + words);
    table.row(
        ["plan", "variant"].iter().chain(K::PLACE_HEADS).chain(heads.iter().copied().flatten()).copied(),
    );
    table
}

fn names<K: PlanLines>(result: &CellResult<'_, K>) -> Vec<String> {
    let mut names = vec![result.plan.name.clone(), result.cell.series()];
    names.extend(result.cell.case.place_in_words());
    names
}

/// Returns a line for each cell.
pub(crate) fn cell_lines<K: PlanLines>(results: &[CellResult<'_, K>]) -> Vec<String> {
    let mut lines = table::<K>(&[K::CELL_HEADS]);
    for result in results {
        let Some(values) = K::of_cell(result) else { continue };
        lines.row(names(result).into_iter().chain(values));
    }
    lines.lines().collect()
}

/// Returns a line for each trial, with the values that identify it.
pub(crate) fn trial_lines<K: PlanLines>(results: &[CellResult<'_, K>]) -> Vec<String> {
    let mut lines = table::<K>(&[&["trial", "seed"], K::TRIAL_HEADS, &["events", "digest"]]);
    for result in results {
        for (number, trial) in &result.trials {
            let mut row = names(result);
            row.extend([number.to_string(), result.plan.seed.to_string()]);
            row.extend(K::of_trial(trial));
            row.extend([trial.events.to_string(), format!("{:016x}", trial.digest)]);
            lines.row(row);
        }
    }
    lines.lines().collect()
}

/// Formats a throughput in MiB/s as text, with two decimals below 1,000 MiB/s and none from there on.
pub(crate) fn mib_s(throughput: f64) -> String {
    format!("{} MiB/s", significant(throughput))
}

/// Formats a number of MiB/s, with two decimals below 1,000 and none from there on.
fn significant(mib_s: f64) -> String {
    let digits = if mib_s < 1000.0 { 2 } else { 0 };
    format!("{mib_s:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn throughput_is_shown_with_its_significant_digits() {
        assert_eq!(["14.99 MiB/s", "999.99 MiB/s", "59437 MiB/s"], [14.99, 999.99, 59_436.85].map(mib_s));
    }
}
