//! The results as a page: plots of throughput, then all numbers.

use reproduce::{Figure, Line, NumbersPage, NumbersTable};
use statistics::Sample;

use super::report::{HEAD, Results, Row, Target, cells};
use pdiol::Size;

/// The page, as the text of an HTML file; `command` makes it again.
pub(crate) fn page(results: &Results, command: &str) -> String {
    let mut figures = Vec::new();
    for (application, bytes) in files(&results.rows) {
        let rows: Vec<&Row> = results
            .rows
            .iter()
            .filter(|row| (row.application, row.file_bytes) == (application, bytes))
            .collect();
        figures.push(windows(figures.len() as u32 + 1, application, bytes, &rows));
    }
    let targets =
        results.targets().into_iter().map(|Target { what, wanted, found }| vec![what, wanted, found]);
    let rows = results.rows.iter().map(|row| cells(row).to_vec());
    let page = NumbersPage {
        title: "PDIOL: one program, many disks".into(),
        lead: vec![
            "A program reads a file from front to back, in calls of 64 KiB: from one modelled disk used locally, and \
             from agents with a disk each, prefetching in a window. Predicted are the same runs on the simulated \
             machine."
                .into(),
            format!("Made by: {command}"),
        ],
        figures,
        tables: vec![
            table("What was to be reached", ["", "to reach", "found"], targets.collect()),
            table("This computer", [""], results.limit_lines().into_iter().map(|line| vec![line]).collect()),
            table("All runs", HEAD, rows.collect()),
        ],
    };
    page.html()
}

fn table<const N: usize>(title: &str, head: [&str; N], rows: Vec<Vec<String>>) -> NumbersTable {
    NumbersTable { title: title.into(), head: head.map(str::to_owned).into(), rows }
}

/// Each program with each of its files, once.
fn files(rows: &[Row]) -> Vec<(&'static str, u64)> {
    let mut files: Vec<_> = rows.iter().map(|row| (row.application, row.file_bytes)).collect();
    files.dedup();
    files
}

/// Throughput against the window, measured and predicted, a line for each number of disks.
fn windows(number: u32, application: &str, bytes: u64, rows: &[&Row]) -> Figure {
    let mut disks: Vec<usize> = rows.iter().map(|row| row.disks).filter(|&disks| disks > 0).collect();
    disks.dedup();
    let throughput = |seconds: f64| Sample::of(&[bytes as f64 / f64::from(1 << 20) / seconds]);
    let line = |disks: usize, kind: &str, seconds: fn(&Row) -> Option<f64>| {
        let points = rows
            .iter()
            .filter(|row| row.disks == disks)
            .filter_map(|row| Some((row.window.parse().ok()?, throughput(seconds(row)?)?)));
        let points: Vec<(f64, Sample)> = points.collect();
        (!points.is_empty()).then(|| Line { name: format!("{disks} {kind}"), per_node: None, points })
    };
    let lines = disks.into_iter().flat_map(|disks| {
        [line(disks, "disks", |row| row.elapsed_s), line(disks, "pred.", |row| Some(row.predicted_s))]
    });
    Figure {
        number,
        title: format!("{application}, {}; disks measured and predicted", Size(bytes)),
        varied: "window (pages)".into(),
        lines: lines.flatten().collect(),
    }
}
