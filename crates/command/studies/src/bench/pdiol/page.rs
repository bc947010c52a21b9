//! The results as a page: plots of throughput, a table of all numbers, and the goals.

use command_line::{counted, mib};
use page::{Curve, Figure, Measurand, NumbersPage, NumbersPart, NumbersTable};
use statistics::Sample;

use super::report::{HEAD, LIMITS_HEAD, cells, limit_cells};
use super::results::{ProgramRow, Results};
use super::targets::targets;
use node::Size;

const LEAD: &str = "A program reads a file sequentially: from one disk of its own computer, or from agents with one disk \
    each, over which the file is striped in pages of 64 KiB. PDIOL's page cache prefetches pages for the program: as \
    many as its window states, or with an adaptive window as many as reduce the time. cat reads, grep searches, sort \
    writes sorted parts as temporary files and merges them, bzip2 compresses.";

const MODELLED: &str = "The disks are modelled: bytes and processes are real, and each disk takes the time of a disk \
    of the thesis of 2003 (unless another model was chosen). All files that sort and bzip2 write and read, including \
    temporary files, are on the disks, both locally and on the agents. The predictions are for the same runs of cat \
    and grep on a simulated machine.";

const HOST: &str = "The disks are this computer's own: all agents have directories in the same file system, so that more \
    agents are not more disks. Before each run the kernel was asked to drop cached pages. The file system may have \
    kept some, and the disk or a virtual machine's host may have cached data. So throughputs are not compared with \
    the rates of disks.";

const PREDICTED: &str = "Nothing was measured: all times are predictions of a simulated machine.";

/// Returns the page as the text of an HTML file. `command` is the command that reproduces it.
pub fn page(results: &Results, command: &str) -> String {
    let how = match (&results.limits, results.host_disks) {
        (None, _) => PREDICTED,
        (Some(_), true) => HOST,
        (Some(_), false) => MODELLED,
    };
    let lead = [LEAD, how, &format!("Made by: {command}")].map(str::to_owned).into();
    let mut parts = Vec::new();
    parts.extend(figures(&results.rows).into_iter().map(NumbersPart::Figure));
    if let Some(limits) = &results.limits {
        let rows = limit_cells(limits).map(Vec::from).into();
        parts.push(table("This computer", &[], LIMITS_HEAD, 1, rows));
    }
    let notes = [
        "Waiting is the elapsed time minus the program's user and system time. Speed-up is the elapsed time on the \
         local disk divided by the elapsed time of the run; if nothing was measured, predicted times are used.",
    ];
    parts.push(table(
        "All runs",
        &notes,
        HEAD,
        4,
        results.rows.iter().map(|row| cells(row).into()).collect(),
    ));
    parts.extend(target_table(results));
    NumbersPage { title: "PDIOL: one program, many disks".into(), lead, parts }.html()
}

fn target_table(results: &Results) -> Option<NumbersPart> {
    let rows: Vec<Vec<String>> = targets(results).iter().map(|target| target.cells().into()).collect();
    let notes = [
        "The goals are for the largest file, with the adaptive window unless stated otherwise. A speed-up of 4 means a \
         quarter of the time that the program takes on one disk used locally, with read-ahead and write-behind as in \
         an operating system. The bare stripe is four senders and one receiver, without protocol and file system.",
    ];
    let head = ["", "goal", "found", "met"];
    (!rows.is_empty()).then(|| table("Goals of the authors of Starfish", &notes, head, 1, rows))
}

fn table<const N: usize>(
    title: &str,
    notes: &[&str],
    head: [&str; N],
    text_columns: usize,
    rows: Vec<Vec<String>>,
) -> NumbersPart {
    let notes = notes.iter().map(|&note| note.to_owned()).collect();
    let head = head.map(str::to_owned).into();
    NumbersPart::Table(NumbersTable { title: title.into(), notes, head, text_columns, rows })
}

/// Returns a figure for each program and file size.
fn figures(rows: &[ProgramRow]) -> Vec<Figure> {
    let files =
        rows.chunk_by(|one, next| (one.application, one.file_bytes) == (next.application, next.file_bytes));
    files.zip(1..).map(|(rows, number)| figure(number, rows)).collect()
}

/// Plots throughput over the window, with a curve for each number of disks. With fewer than two windows, plots
/// throughput over the number of disks.
fn figure(number: u32, rows: &[ProgramRow]) -> Figure {
    let windows = distinct(rows.iter().filter_map(|row| row.window.parse::<f64>().ok()));
    let (varied, what, mut lines) = match windows.len() {
        0 | 1 => ("disks", "different windows", by_disks(rows)),
        _ => (
            "window (pages)",
            "different numbers of disks, and predicted (pred.)",
            by_windows(rows, &windows),
        ),
    };
    lines.retain(|line| !line.points.is_empty());
    let (application, bytes) = (rows[0].application, rows[0].file_bytes);
    let title = format!("{application}, {}: {what}; and on one disk used locally", Size(bytes));
    Figure { number, title, measurand: Measurand::THROUGHPUT, varied: varied.into(), lines }
}

fn by_windows(rows: &[ProgramRow], windows: &[f64]) -> Vec<Curve> {
    let mut lines = Vec::new();
    for disks in disks(rows) {
        let rows: Vec<&ProgramRow> = rows.iter().filter(|row| row.disks == disks).collect();
        let points = |seconds: fn(&ProgramRow) -> Option<f64>| -> Vec<(f64, Sample)> {
            let point = |row: &&ProgramRow| Some((row.window.parse().ok()?, throughput(row, seconds(row)?)?));
            rows.iter().filter_map(point).collect()
        };
        lines.push(line(counted(disks, "disk"), points(|row| row.elapsed_s)));
        lines.push(line(format!("{disks} pred."), points(|row| row.predicted_s)));
    }
    lines.push(local(rows, windows));
    lines
}

fn by_disks(rows: &[ProgramRow]) -> Vec<Curve> {
    let windows = distinct(rows.iter().filter(|row| !row.is_local()).map(|row| row.window.as_str()));
    let mut lines: Vec<Curve> = Vec::new();
    for window in windows {
        let rows = rows.iter().filter(|row| row.window == window);
        let points = rows.filter_map(|row| Some((row.disks as f64, throughput(row, row.seconds())?)));
        let name = if window == "adaptive" { window.to_owned() } else { format!("{window} pages") };
        lines.push(line(name, points.collect()));
    }
    let disks: Vec<f64> = disks(rows).into_iter().map(|disks| disks as f64).collect();
    lines.push(local(rows, &disks));
    lines
}

/// Returns a horizontal line for the disk used locally.
fn local(rows: &[ProgramRow], varied: &[f64]) -> Curve {
    let local = rows.iter().find(|row| row.is_local());
    let sample = local.and_then(|row| throughput(row, row.seconds()));
    let points = sample.map(|sample| varied.iter().map(|&value| (value, sample.clone())).collect());
    line("local".into(), points.unwrap_or_default())
}

fn line(name: String, points: Vec<(f64, Sample)>) -> Curve {
    Curve { name, per_node: None, points }
}

fn throughput(row: &ProgramRow, seconds: f64) -> Option<Sample> {
    Sample::of(&[mib(row.file_bytes) / seconds])
}

fn disks(rows: &[ProgramRow]) -> Vec<usize> {
    distinct(rows.iter().map(|row| row.disks).filter(|&disks| disks > 0))
}

/// Returns the distinct values in the order of their first appearance.
fn distinct<T: PartialEq>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut distinct = Vec::new();
    for value in values {
        if !distinct.contains(&value) {
            distinct.push(value);
        }
    }
    distinct
}
