//! The report's statements about its figures, compared with the results: met, near or missed. If the published value of
//! a statement is unknown, the statement is a prediction, and only the simulated value is shown.

use page::NumbersTable;
use plan::{PlacedJob, PlacementCase};

use super::{Placed, PlacedCell, analysis, mean};
use crate::Standing;

/// A statement of the report.
struct PlacementFindings {
    section: &'static str,
    statement: &'static str,
    /// Published value, if the statement has one.
    published: Option<f64>,
    /// Bounds within which the statement is met; `None` for a prediction, or for a value to which a number of the
    /// machine was fitted.
    bounds: Option<(f64, f64)>,
    /// Function that returns the simulated value; `None` if the cells have not run.
    measured: fn(&[PlacedCell<'_>]) -> Option<f64>,
}

const ANYTHING_LESS: f64 = f64::NEG_INFINITY;
const ANYTHING_MORE: f64 = f64::INFINITY;

/// All statements, by section. The bounds are tolerances of published values, or our interpretation of the report's
/// words.
const FINDINGS: [PlacementFindings; 22] = [
    PlacementFindings {
        section: "2.2",
        statement: "Policy 3 takes 70 seconds (5 jobs), s",
        published: Some(70.0),
        bounds: None,
        measured: |cells| of_policy(cells, 3, 5),
    },
    PlacementFindings {
        section: "2.2",
        statement: "Policy 4 is at most 10 % worse than policy 3 (3 to 5 jobs), %",
        published: Some(10.0),
        bounds: Some((0.0, 12.0)),
        measured: |cells| most((3..=5).map(|jobs| Some(100.0 * (against(cells, 4, 3, jobs)? - 1.0)))),
    },
    PlacementFindings {
        section: "2.2",
        statement: "Policy 4 never performs as well as policy 3: its time / that of policy 3, at least",
        published: None,
        bounds: Some((1.0, ANYTHING_MORE)),
        measured: |cells| least((1..=5).map(|jobs| against(cells, 4, 3, jobs))),
    },
    PlacementFindings {
        section: "2.2",
        statement: "Policy 3 beats policy 2 (2 to 5 jobs): time of policy 2 / that of policy 3, at least",
        published: None,
        bounds: Some((1.0, ANYTHING_MORE)),
        measured: |cells| least((2..=5).map(|jobs| against(cells, 2, 3, jobs))),
    },
    PlacementFindings {
        section: "2.2",
        statement: "Policy 2's time grows by more than its load (5 jobs): its time / load of the busiest disk",
        published: None,
        bounds: Some((1.1, ANYTHING_MORE)),
        measured: |cells| {
            let cell = find(cells, 2, |case| case.options.policy.number() == 2 && case.options.jobs == 5)?;
            Some(cell.mean_seconds() / analysis::load(cell))
        },
    },
    PlacementFindings {
        section: "2.2",
        statement: "Policy 1 is bad once reads are the bottleneck: its time with 4 jobs / that of policy 3",
        published: None,
        bounds: Some((1.5, ANYTHING_MORE)),
        measured: |cells| against(cells, 1, 3, 4),
    },
    predicted("2.2", "Policy 2 with 5 jobs, s", |cells| of_policy(cells, 2, 5)),
    PlacementFindings {
        section: "2.2",
        statement: "The jobs finish one after the other (policy 2, 5 jobs): first finish time / last",
        published: None,
        bounds: Some((ANYTHING_LESS, 0.7)),
        measured: |cells| {
            first_of(find(cells, 2, |case| case.options.policy.number() == 2 && case.options.jobs == 5)?)
        },
    },
    PlacementFindings {
        section: "3.1",
        statement: "The bound N (r + w) of the copy, b_r = 8 and b_w = 1, s",
        published: Some(115.0),
        bounds: Some((111.5, 118.5)),
        measured: |cells| {
            let cell = find(cells, 3, |case| case.options.write_blocks == 1)?;
            Some(analysis::times(cell).bound(cell.options().run_blocks as f64) / 1000.0)
        },
    },
    predicted("3.1", "The copy with b_w = 1, s", |cells| copy(cells, 1)),
    predicted("3.1", "The time of the copy with b_w = 1 / its bound", |cells| {
        let cell = find(cells, 3, |case| case.options.write_blocks == 1)?;
        let bound = analysis::times(cell).bound(cell.options().run_blocks as f64) / 1000.0;
        Some(cell.mean_seconds() / bound)
    }),
    PlacementFindings {
        section: "3.2",
        statement: "Pending writes grow as predicted, b_r = 8: growth / (1/r - 1/w)",
        published: Some(1.0),
        bounds: Some((0.9, 1.1)),
        measured: |cells| growth(cells, 8),
    },
    PlacementFindings {
        section: "3.2",
        statement: "Pending writes grow as predicted, b_r = 4: growth / (1/r - 1/w)",
        published: Some(1.0),
        bounds: Some((0.9, 1.1)),
        measured: |cells| growth(cells, 4),
    },
    PlacementFindings {
        section: "3.2",
        statement: "Pending writes grow much faster for b_r = 8 than for 4: ratio of the growths",
        published: None,
        bounds: Some((1.3, ANYTHING_MORE)),
        measured: |cells| Some(slope(of_reads(cells, 8)?)? / slope(of_reads(cells, 4)?)?),
    },
    PlacementFindings {
        section: "4",
        statement: "If f is below 1/(d-1), all finish at about the same time: first finish time / last, at least",
        published: None,
        bounds: Some((0.95, 1.0)),
        measured: |cells| {
            let stable = interleaves(cells).filter(|cell| !analysis::can_race(cell));
            least(stable.map(|cell| first_of(cell)))
        },
    },
    PlacementFindings {
        section: "4",
        statement: "As f increases the finish times diverge (f above 3): first finish time / last, at most",
        published: None,
        bounds: Some((ANYTHING_LESS, 0.5)),
        measured: |cells| {
            let large = interleaves(cells).filter(|cell| analysis::times(cell).ratio() > 3.0);
            most(large.map(|cell| first_of(cell)))
        },
    },
    predicted("4", "Least f for which the first job finishes before nine tenths of the time", |cells| {
        let diverged = interleaves(cells).filter(|cell| first_of(cell).is_some_and(|first| first < 0.9));
        least(diverged.map(|cell| Some(analysis::times(cell).ratio())))
    }),
    PlacementFindings {
        section: "5",
        statement: "RR and RP improve on FCFS (policy 2, 5 jobs): the longer of their times / that of FCFS",
        published: None,
        bounds: Some((ANYTHING_LESS, 0.9)),
        measured: |cells| {
            most(CURES.iter().map(|&name| Some(cured(cells, name, 5)? / cured(cells, "fcfs", 5)?)))
        },
    },
    predicted("5", "Time of RR or RP / that of policy 3 (2 to 5 jobs), at most", |cells| {
        let against = |name: &'static str| {
            (2..=5).map(move |jobs| Some(cured(cells, name, jobs)? / third(cells, jobs)?))
        };
        most(CURES.iter().flat_map(|&name| against(name)))
    }),
    PlacementFindings {
        section: "5",
        statement: "3 jobs with 2000 blocks in portions, s",
        published: Some(46.0),
        bounds: Some((40.5, 51.5)),
        measured: |cells| portions(cells, 2000),
    },
    predicted("5", "3 jobs with 4000 blocks, s", |cells| portions(cells, 4000)),
    predicted("5", "3 jobs with 12,000 blocks, s", |cells| portions(cells, 12_000)),
];

const fn predicted(
    section: &'static str,
    statement: &'static str,
    measured: fn(&[PlacedCell<'_>]) -> Option<f64>,
) -> PlacementFindings {
    PlacementFindings { section, statement, published: None, bounds: None, measured }
}

/// Scheduling orders that prevent the race.
const CURES: [&str; 2] = ["round-robin", "read-priority"];

fn find<'c, 'a>(
    cells: &'c [PlacedCell<'a>],
    figure: u32,
    is_meant: impl Fn(&PlacementCase) -> bool,
) -> Option<&'c PlacedCell<'a>> {
    cells.iter().find(|cell| cell.is_of(figure) && is_meant(&cell.cell.case))
}

fn of_policy(cells: &[PlacedCell<'_>], policy: u8, jobs: u32) -> Option<f64> {
    let cell = find(cells, 2, |case| case.options.policy.number() == policy && case.options.jobs == jobs)?;
    Some(cell.mean_seconds())
}

fn against(cells: &[PlacedCell<'_>], one: u8, other: u8, jobs: u32) -> Option<f64> {
    Some(of_policy(cells, one, jobs)? / of_policy(cells, other, jobs)?)
}

fn copy(cells: &[PlacedCell<'_>], write_blocks: u64) -> Option<f64> {
    Some(find(cells, 3, |case| case.options.write_blocks == write_blocks)?.mean_seconds())
}

/// Returns the mean time until the first job was done, as a share of the time until all were done.
fn first_of(cell: &PlacedCell<'_>) -> Option<f64> {
    let shares = cell.placed().map(|placed| {
        let times = placed.finish_times();
        times.first().copied().unwrap_or(0.0) / times.last().copied().unwrap_or(1.0)
    });
    Some(mean(shares))
}

fn of_reads<'c, 'a>(cells: &'c [PlacedCell<'a>], read_blocks: u64) -> Option<&'c PlacedCell<'a>> {
    find(cells, 4, |case| case.options.read_blocks == read_blocks)
}

/// Returns the mean growth rate of a copy's queue, in blocks per second.
fn slope(cell: &PlacedCell<'_>) -> Option<f64> {
    let growths: Option<Vec<f64>> =
        cell.placed().map(|placed| placed.growth.map(|growth| growth as f64 / 1e3)).collect();
    Some(mean(growths?.into_iter()))
}

fn growth(cells: &[PlacedCell<'_>], read_blocks: u64) -> Option<f64> {
    let cell = of_reads(cells, read_blocks)?;
    Some(slope(cell)? / analysis::growth(cell))
}

fn interleaves<'c, 'a>(cells: &'c [PlacedCell<'a>]) -> impl Iterator<Item = &'c PlacedCell<'a>> {
    cells.iter().filter(|cell| cell.is_of(6) && cell.options().kind == PlacedJob::Interleave)
}

/// Returns the time of policy 2 with this scheduling order.
fn cured(cells: &[PlacedCell<'_>], scheduling: &str, jobs: u32) -> Option<f64> {
    let is_meant = |case: &PlacementCase| {
        case.options.policy.number() == 2
            && case.options.jobs == jobs
            && case.options.scheduling.name() == scheduling
    };
    Some(find(cells, 7, is_meant)?.mean_seconds())
}

/// Returns the time of policy 3, with which other times are compared.
fn third(cells: &[PlacedCell<'_>], jobs: u32) -> Option<f64> {
    Some(
        find(cells, 7, |case| case.options.policy.number() == 3 && case.options.jobs == jobs)?.mean_seconds(),
    )
}

fn portions(cells: &[PlacedCell<'_>], buffer_blocks: u64) -> Option<f64> {
    let is_meant =
        |case: &PlacementCase| case.options.jobs == 3 && case.options.buffer_blocks == Some(buffer_blocks);
    Some(find(cells, 8, is_meant)?.mean_seconds())
}

/// Returns the smallest of these values, or `None` if a value is missing.
fn least(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    values.collect::<Option<Vec<f64>>>()?.into_iter().reduce(f64::min)
}

/// Returns the largest of these values, or `None` if a value is missing.
fn most(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    values.collect::<Option<Vec<f64>>>()?.into_iter().reduce(f64::max)
}

/// True if the settings of a cell are those of the report. The statements hold only for these settings.
fn is_as_reported(cell: &PlacedCell<'_>) -> bool {
    let options = cell.options();
    let (disks, run_blocks) = match options.kind {
        PlacedJob::Copy => (2, 10_000),
        PlacedJob::Interleave => (5, 2500),
        PlacedJob::Merge if cell.is_of(6) => (5, 500),
        PlacedJob::Merge => (5, 1000),
    };
    let has_its_machine = cell.cell.machine == "shared-disks-1996" && cell.cell.set.is_empty();
    has_its_machine && (options.disks, options.run_blocks) == (disks, run_blocks)
}

impl PlacementFindings {
    fn standing(&self, found: f64) -> &'static str {
        let Some((least, most)) = self.bounds else {
            return if self.published.is_some() { "fitted" } else { "predicted" };
        };
        let bound = if least.is_finite() { least } else { most };
        Standing::of((found, found), (least, most), self.published.unwrap_or(bound)).name()
    }
}

/// Returns the statements whose cells have run, compared with the results.
pub(super) fn table(cells: &[PlacedCell<'_>]) -> NumbersTable {
    let shown = |value: f64| {
        let text = format!("{value:.2}");
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
    };
    let bounds = |finding: &PlacementFindings| match finding.bounds {
        None => String::new(),
        Some((least, most)) if most.is_infinite() => format!("from {}", shown(least)),
        Some((least, most)) if least.is_infinite() => format!("up to {}", shown(most)),
        Some((least, most)) => format!("{} to {}", shown(least), shown(most)),
    };
    let reported: Vec<PlacedCell<'_>> = cells.iter().filter(|cell| is_as_reported(cell)).cloned().collect();
    let row = |finding: &PlacementFindings| {
        let found = (finding.measured)(&reported)?;
        Some(vec![
            finding.section.to_owned(),
            finding.statement.to_owned(),
            finding.standing(found).to_owned(),
            finding.published.map_or(String::new(), shown),
            bounds(finding),
            shown(found),
        ])
    };
    NumbersTable {
        title: "Statements of the report, compared with the results".to_owned(),
        notes: vec![
            "Met: within the bounds. Near: outside by less than half the distance of the bounds, or by less than a tenth of \
             the published value (without one, of the bound). Fitted: the cylinder size of the disk was chosen to yield \
             this value, so it confirms nothing. Predicted: the report states no number, or the number is not known to \
             this project. Times are means over trials."
                .to_owned(),
        ],
        head: ["section", "statement", "", "published", "bounds", "found"].map(str::to_owned).into(),
        text_columns: 3,
        rows: FINDINGS.iter().filter_map(row).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_are_met_near_missed_predicted_or_fitted() {
        let of = |bounds, published| PlacementFindings { bounds, published, ..predicted("2", "x", |_| None) };
        let cases: [(PlacementFindings, &[(f64, &str)]); 5] = [
            (
                of(Some((111.5, 118.5)), Some(115.0)),
                &[(115.0, "met"), (120.0, "near"), (131.0, "missed"), (99.0, "missed")],
            ),
            (of(Some((1.0, ANYTHING_MORE)), None), &[(1.4, "met"), (0.95, "near"), (0.85, "missed")]),
            (of(Some((ANYTHING_LESS, 0.9)), None), &[(0.2, "met"), (0.95, "near"), (1.0, "missed")]),
            (of(None, None), &[(1.0, "predicted")]),
            (of(None, Some(70.0)), &[(70.0, "fitted"), (80.0, "fitted")]),
        ];
        for (finding, found) in cases {
            for &(found, standing) in found {
                assert_eq!(finding.standing(found), standing, "{found} of {:?}", finding.bounds);
            }
        }
    }

    #[test]
    fn a_table_without_results_is_empty() {
        assert!(table(&[]).rows.is_empty());
    }
}
