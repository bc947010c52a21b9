//! The page of a study of placements: a dot for each trial, and the predictions of the analysis.

use page::{NumbersPage, NumbersPart, NumbersTable, Plot, PlotSeries, ShadedCell, ShadedTable};
use plan::{BACKLOG_STEPS, PlacedJob, PlacedMeasurement};

use super::{Placed, PlacedCell, analysis, drawings, findings, mean};

/// Returns the page of these results. `command` is the command that reproduces it with this version of the program.
pub(super) fn page(name: &str, cells: &[PlacedCell<'_>], command: &str, version: &str) -> NumbersPage {
    let findings = findings::table(cells);
    // The report's statements and drawings do not apply to a study with other settings.
    let is_of_report = cells.is_empty() || !findings.rows.is_empty();
    let mut parts = Vec::new();
    if is_of_report {
        parts.push(NumbersPart::Table(findings));
        parts.extend(drawings::drawings());
    }
    let plots = [
        by_jobs(cells, 2, "Figure 2: completion of all merges, by policy"),
        copies(cells),
        backlogs(cells),
        finishes(cells, PlacedJob::Interleave, "Figure 6: finish times of five interleaves"),
        finishes(cells, PlacedJob::Merge, "Figure 6, for merges of policy 2"),
        by_jobs(cells, 7, "Figure 7: completion of all merges, by schedule"),
        by_buffers(cells),
        recurrences(cells),
    ];
    parts.extend(plots.into_iter().flatten().map(NumbersPart::Plot));
    parts.extend(maps(cells).into_iter().map(NumbersPart::Shaded));
    parts.push(NumbersPart::Table(numbers(cells)));
    let lead = vec![
        "Simulated jobs that read and write the same disks. Each dot is a trial, and solid lines connect the means. \
         Dashed lines are predictions of the analysis from the measured times r and w to read and to write a block."
            .to_owned(),
        format!("Made by: {command}, with starfish {version}."),
    ];
    NumbersPage { title: format!("The figures of {name}"), lead, parts }
}

/// Returns a series over `x`, with a dot for each trial and a line through the means.
fn series(name: String, cells: &[&PlacedCell<'_>], x: impl Fn(&PlacedCell<'_>) -> f64) -> PlotSeries {
    let mut sorted: Vec<(f64, &PlacedCell<'_>)> = cells.iter().map(|cell| (x(cell), *cell)).collect();
    sorted.sort_by(|one, other| one.0.total_cmp(&other.0));
    let dots =
        sorted.iter().flat_map(|(x, cell)| cell.seconds().into_iter().map(move |seconds| (*x, seconds)));
    PlotSeries {
        name,
        dots: dots.collect(),
        line: sorted.iter().map(|(x, cell)| (*x, cell.mean_seconds())).collect(),
        is_predicted: false,
    }
}

/// Returns a dashed line through a predicted value `y` of each cell, over `x`.
fn line(
    name: String,
    cells: &[&PlacedCell<'_>],
    x: impl Fn(&PlacedCell<'_>) -> f64,
    y: impl Fn(&PlacedCell<'_>) -> f64,
) -> PlotSeries {
    let mut line: Vec<(f64, f64)> = cells.iter().map(|cell| (x(cell), y(cell))).collect();
    line.sort_by(|one, other| one.0.total_cmp(&other.0));
    PlotSeries { name, dots: Vec::new(), line, is_predicted: true }
}

fn of<'c, 'a>(cells: &'c [PlacedCell<'a>], figure: u32) -> Vec<&'c PlacedCell<'a>> {
    cells.iter().filter(|cell| cell.is_of(figure)).collect()
}

/// Plots figures 2 and 7: seconds over the number of jobs, with a line for each variant. Figure 2 also shows the load
/// of each variant: the least time that the busiest disk needs.
fn by_jobs(cells: &[PlacedCell<'_>], figure: u32, title: &str) -> Option<Plot> {
    let of_figure = of(cells, figure);
    let name = |cell: &PlacedCell<'_>| {
        let case = &cell.cell.case;
        format!("policy {}, {}", case.options.policy.number(), case.options.scheduling)
    };
    let names = crate::results::distinct(of_figure.iter().map(|cell| name(cell)));
    let jobs = |cell: &PlacedCell<'_>| f64::from(cell.options().jobs);
    let mut all = Vec::new();
    for of_name in &names {
        let cells: Vec<_> = of_figure.iter().copied().filter(|cell| name(cell) == *of_name).collect();
        all.push(series(of_name.clone(), &cells, jobs));
        if figure == 2 {
            all.push(line(format!("load of {of_name}"), &cells, jobs, analysis::load));
        }
    }
    plot(
        title,
        "The load is the least time that the busiest disk needs for its reads and writes.",
        "jobs",
        "seconds",
        all,
    )
}

/// Plots figure 3: the time of the copy over b_w, and its bound N (r + w).
fn copies(cells: &[PlacedCell<'_>]) -> Option<Plot> {
    let of_figure = of(cells, 3);
    let x = |cell: &PlacedCell<'_>| cell.options().write_blocks as f64;
    let bound =
        |cell: &PlacedCell<'_>| analysis::times(cell).bound(cell.options().run_blocks as f64) / 1000.0;
    let all = vec![
        series("simulated".to_owned(), &of_figure, x),
        line("bound N (r + w)".to_owned(), &of_figure, x, bound),
    ];
    let note = "Where b_w exceeds b_r, f = w / r is below 1: no race is possible, and the copy takes little more than its bound.";
    let figure =
        plot("Figure 3: the copy between two disks", note, "blocks written at once (b_w)", "seconds", all)?;
    Some(Plot { is_logarithmic: true, marks: mark_critical(&of_figure), ..figure })
}

/// Marks b_w = b_r, at which f is 1.
fn mark_critical(cells: &[&PlacedCell<'_>]) -> Vec<(f64, String)> {
    cells.first().map(|cell| (cell.options().read_blocks as f64, "f = 1".to_owned())).into_iter().collect()
}

/// Plots figure 4: pending blocks of both disks over time in the first trial, and the predicted growth of the first
/// queue that grows.
fn backlogs(cells: &[PlacedCell<'_>]) -> Option<Plot> {
    let mut all = Vec::new();
    for cell in of(cells, 4) {
        let Some((_, measurement)) = cell.trials.first() else { continue };
        let Some(placed) = &measurement.placed else { continue };
        let step = measurement.elapsed_s() / BACKLOG_STEPS as f64;
        let read_blocks = cell.options().read_blocks;
        for (disk, backlog) in placed.backlogs.iter().enumerate() {
            let at = |(number, &blocks): (usize, &u64)| (number as f64 * step, blocks as f64);
            let name = format!("b_r = {read_blocks}, disk {disk}");
            let line = backlog.iter().enumerate().map(at).collect();
            all.push(PlotSeries { name, dots: Vec::new(), line, is_predicted: false });
        }
        all.extend(predicted_backlog(cell, placed, step));
    }
    let note = "The queue reaches the threshold at once. From then on one disk only reads and the other only writes, and the \
                queue of the writing disk grows by the difference of their rates. This ends when the leading job has \
                read all its blocks.";
    plot("Figure 4: pending writes of the copy", note, "seconds", "pending blocks", all)
}

/// Returns the predicted line. It starts when the first growing queue passes the threshold.
fn predicted_backlog(cell: &PlacedCell<'_>, placed: &PlacedMeasurement, step: f64) -> Option<PlotSeries> {
    let times = analysis::two_disks(cell);
    let threshold = (times.threshold() / times.times.write) as u64;
    let begins =
        placed.backlogs.iter().filter_map(|backlog| backlog.iter().position(|blocks| *blocks > threshold));
    let begin = begins.min()?;
    let first = placed.backlogs.iter().map(|backlog| backlog[begin]).max()? as f64;
    let growth = analysis::growth(cell);
    let end = cell.options().run_blocks as f64 * times.times.read / 1000.0;
    let from = begin as f64 * step;
    Some(PlotSeries {
        name: format!("b_r = {}: 1/r - 1/w = {growth:.0} blocks/s", cell.options().read_blocks),
        dots: Vec::new(),
        line: vec![(from, first), (end, first + growth * (end - from))],
        is_predicted: true,
    })
}

/// Plots figure 6: the finish time of the first, second, ... job, divided by N (r + w), over the measured f.
fn finishes(cells: &[PlacedCell<'_>], kind: PlacedJob, title: &str) -> Option<Plot> {
    let of_kind: Vec<_> = of(cells, 6).into_iter().filter(|cell| cell.options().kind == kind).collect();
    let jobs = of_kind.first()?.cell.case.options.jobs as usize;
    let blocks = |cell: &PlacedCell<'_>| cell.cell.case.job_blocks() as f64;
    let dots = |place: usize| {
        let trials = of_kind.iter().flat_map(|cell| cell.placed().map(move |placed| (cell, placed)));
        let point = trials.filter_map(move |(cell, placed)| {
            let sum = (placed.read_ns + placed.write_ns) as f64 / 1e9;
            Some((placed.ratio(), placed.finish_times().get(place)? / (sum * blocks(cell))))
        });
        PlotSeries {
            name: format!("job {} in order of finishing", place + 1),
            dots: point.collect(),
            ..PlotSeries::default()
        }
    };
    let all = (0..jobs).map(dots).collect();
    let critical = analysis::many_disks(of_kind[0])?.critical_ratio();
    let note = "Finish times, divided by the time to read and write all blocks of one job one by one. 1 means perfect balance; \
                a value equal to the number of disks means that the jobs ran one after another. Left of the mark no \
                race is possible.";
    let figure = plot(title, note, "f = w / r, measured", "finish time / N (r + w)", all)?;
    let marks = vec![(critical, "1 / (d - 1)".to_owned())];
    Some(Plot { is_logarithmic: true, marks, ..figure })
}

/// Plots figure 8: seconds over the size of the buffers. Unlimited buffers are at twice the largest size.
fn by_buffers(cells: &[PlacedCell<'_>]) -> Option<Plot> {
    let of_figure = of(cells, 8);
    let most = of_figure.iter().filter_map(|cell| cell.options().buffer_blocks).max()?;
    let x = |cell: &PlacedCell<'_>| cell.options().buffer_blocks.unwrap_or(2 * most) as f64;
    let jobs = crate::results::distinct(of_figure.iter().map(|cell| cell.options().jobs));
    let of_jobs = |&count: &u32| {
        let cells: Vec<_> = of_figure.iter().copied().filter(|cell| cell.options().jobs == count).collect();
        series(format!("{count} jobs"), &cells, x)
    };
    let note = "Each job has an equal portion of the buffers. With more buffers, a job that is ahead can get further ahead.";
    let all = jobs.iter().map(of_jobs).collect();
    let figure =
        plot("Figure 8: completion of all merges, by buffers", note, "blocks of buffers", "seconds", all)?;
    Some(Plot { is_logarithmic: true, marks: vec![(2.0 * most as f64, "unlimited".to_owned())], ..figure })
}

/// Plots the recurrences: the write demand after each depletion cycle, starting at one and a half times the threshold.
/// Uses three cells of figure 6: one in which no race is possible, and two in which a race is possible.
fn recurrences(cells: &[PlacedCell<'_>]) -> Option<Plot> {
    const CYCLES: usize = 5;
    let wanted = [(1, 10), (1, 4), (4, 4)];
    let of_wanted = |&(read, write): &(u64, u64)| {
        let cell = of(cells, 6).into_iter().find(|cell| {
            let case = &cell.cell.case;
            case.options.kind == PlacedJob::Interleave
                && (case.options.read_blocks, case.options.write_blocks) == (read, write)
        })?;
        let many = analysis::many_disks(cell)?;
        let demands = many.demands(1.5 * many.threshold()).take(CYCLES);
        let line =
            demands.enumerate().map(|(cycle, demand)| (cycle as f64, demand / many.threshold())).collect();
        let name = format!("b_r = {read}, b_w = {write}: f^ = {:.2}", many.ratio());
        Some(PlotSeries { name, dots: Vec::new(), line, is_predicted: true })
    };
    let all = wanted.iter().filter_map(of_wanted).collect();
    let note = "The write demand N_i, with N_(i+1) = f^ [ N_i + (d-1) b_r r (1 - f^) ], divided by the fixed point N*. If f^ > 1, \
                a demand above N* grows.";
    plot("The recurrence of section 4", note, "depletion cycles", "write demand / N*", all)
}

/// Returns the maps: slowdown by f and number of jobs, for merges that belong to no figure of the report.
fn maps(cells: &[PlacedCell<'_>]) -> Vec<ShadedTable> {
    let without_figure = || cells.iter().filter(|cell| cell.plan.number().is_none());
    let names = crate::results::distinct(without_figure().map(|cell| &*cell.plan.name));
    let of_plan = |name| without_figure().filter(|cell| cell.plan.name == name).collect::<Vec<_>>();
    names.into_iter().filter_map(|name| map(&of_plan(name))).collect()
}

/// Returns the map of one plan.
fn map(cells: &[&PlacedCell<'_>]) -> Option<ShadedTable> {
    let mut jobs: Vec<u32> = cells.iter().map(|cell| cell.options().jobs).collect();
    jobs.sort_unstable();
    jobs.dedup();
    let disks = cells.first()?.cell.case.options.disks;
    let of_name =
        |name: &str| -> Vec<_> { cells.iter().copied().filter(|cell| cell.cell.variant == name).collect() };
    let ratio = |name: &str| mean(of_name(name).iter().map(|cell| analysis::times(cell).ratio()));
    let mut names = crate::results::distinct(cells.iter().map(|cell| &*cell.cell.variant));
    names.sort_by(|one, other| ratio(one).total_cmp(&ratio(other)));
    let row = |name: &&str| {
        let of_name = of_name(name);
        let slowdown = |count: &u32| {
            let cell = of_name.iter().find(|cell| cell.options().jobs == *count)?;
            let value = cell.mean_seconds() / analysis::load(cell);
            Some(ShadedCell { value, is_marked: analysis::can_race(cell) })
        };
        (format!("{:.2} ({name})", ratio(name)), jobs.iter().map(slowdown).collect())
    };
    Some(ShadedTable {
        title: cells[0].plan.title.clone(),
        note: format!(
            "Time until all jobs are done, divided by the load of the busiest disk. Rows: f. Columns: jobs per disk, for \
             {disks} disks. A star marks cells in which the analysis permits a race: at least two jobs, and f above \
             1 / (d - 1) = {:.2}.",
            1.0 / f64::from(disks.saturating_sub(1).max(1))
        ),
        corner: "f".to_owned(),
        columns: jobs.iter().map(|count| format!("j/d = {count}/{disks}")).collect(),
        rows: names.iter().map(row).collect(),
    })
}

fn plot(title: &str, note: &str, x: &str, y: &str, series: Vec<PlotSeries>) -> Option<Plot> {
    let series: Vec<PlotSeries> =
        series.into_iter().filter(|one| !one.dots.is_empty() || !one.line.is_empty()).collect();
    (!series.is_empty()).then(|| Plot {
        title: title.to_owned(),
        note: note.to_owned(),
        x: x.to_owned(),
        y: y.to_owned(),
        is_logarithmic: false,
        series,
        marks: Vec::new(),
    })
}

/// Returns all cells as a table of numbers.
fn numbers(cells: &[PlacedCell<'_>]) -> NumbersTable {
    let head = [
        "plan",
        "variant",
        "trials",
        "s",
        "first, s",
        "r, ms",
        "w, ms",
        "f",
        "can race",
        "load, s",
        "queue, writes",
        "N*, blocks",
    ];
    let row = |cell: &PlacedCell<'_>| {
        let (times, case) = (analysis::times(cell), &cell.cell.case);
        let first = mean(cell.placed().map(PlacedMeasurement::first_s));
        let queue = cell.placed().map(|placed| placed.pending_writes_most).max().unwrap_or(0);
        let threshold = match case.options.kind {
            PlacedJob::Copy => Some(u64::from(analysis::two_disks(cell).read_blocks)),
            _ => analysis::many_disks(cell).map(|many| many.threshold_blocks()),
        };
        let varied: String = cell.cell.varied.iter().map(|(key, value)| format!(" {key}={value}")).collect();
        vec![
            cell.plan.name.clone(),
            format!("{}{varied}", cell.cell.variant),
            cell.trials.len().to_string(),
            format!("{:.2}", cell.mean_seconds()),
            format!("{first:.2}"),
            format!("{:.3}", times.read),
            format!("{:.3}", times.write),
            format!("{:.3}", times.ratio()),
            if analysis::can_race(cell) { "yes" } else { "no" }.to_owned(),
            format!("{:.2}", analysis::load(cell)),
            queue.to_string(),
            threshold.map_or_else(|| "\u{2013}".to_owned(), |blocks| blocks.to_string()),
        ]
    };
    NumbersTable {
        title: "All numbers".to_owned(),
        notes: vec![
            "All values are means over the trials, except the queue: the longest of any trial and disk.".to_owned(),
            "`s`: time until all jobs were done. `first, s`: time until the first job was done. r and w: mean time of a disk \
             to read and to write a block, when one access covers several blocks; f is w / r. The load is the least time \
             that the busiest disk needs for its reads and writes. N*: if a race is possible, it begins when more than \
             N* blocks wait to be written at a disk."
                .to_owned(),
        ],
        head: head.map(str::to_owned).into(),
        text_columns: 2,
        rows: cells.iter().map(row).collect(),
    }
}
