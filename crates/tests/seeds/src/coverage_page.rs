//! Page about the coverage of a sweep: first everything that no run reached, then the numbers of runs.

use std::collections::BTreeMap;

use page::{NumbersPage, NumbersPart, NumbersTable};

use crate::coverage::{CoverageCounts, Hit};
use crate::kind_names::{FAULTS, OPERATIONS, Role};

/// Returns the page as a self-contained HTML file, for all marks and their files.
pub fn coverage_page(counts: &CoverageCounts, marks: &BTreeMap<String, String>) -> String {
    let reached = counts.of_marks(marks.keys().map(String::as_str));
    let row = |mark: &str| vec![mark.to_owned(), marks[mark].clone()];
    let missing: Vec<_> =
        reached.iter().filter(|(_, count)| **count == 0).map(|(mark, _)| row(mark)).collect();
    let overlaps = counts.missing_overlaps().into_iter();
    let overlaps =
        overlaps.map(|(fault, role, operation)| vec![fault.into(), role.name().into(), operation.into()]);
    let mut rarest: Vec<(u64, &str)> = reached.iter().map(|(mark, count)| (*count, *mark)).collect();
    rarest.sort_unstable();
    let with_count = |(count, mark): (u64, &str)| [row(mark), vec![count.to_string()]].concat();
    let injected = FAULTS
        .iter()
        .map(|&fault| vec![fault.into(), counts.faults.get(fault).copied().unwrap_or_default().to_string()]);
    let tables = [
        table("Marks that no run reached", &["mark", "file"], 2, missing),
        table(
            "Faults that lasted during no operation of a kind",
            &["fault", "node", "operation"],
            3,
            overlaps.collect(),
        ),
        table("Runs by mark", &["mark", "file", "runs"], 2, rarest.into_iter().map(with_count).collect()),
        overlap_table(counts),
        table("Injected faults", &["fault", "number"], 1, injected.collect()),
    ];
    let page = NumbersPage {
        title: "Coverage of schedules".into(),
        lead: vec![format!("{} runs, {} failed.", counts.runs, counts.failed)],
        parts: tables.map(NumbersPart::Table).into(),
    };
    page.html()
}

fn table(title: &str, head: &[&str], text_columns: usize, rows: Vec<Vec<String>>) -> NumbersTable {
    let head = head.iter().map(|&title| title.to_owned()).collect();
    let notes = if rows.is_empty() { vec!["None.".to_owned()] } else { Vec::new() };
    NumbersTable { title: title.into(), notes, head, text_columns, rows }
}

/// Returns the table of runs by fault and operation.
fn overlap_table(counts: &CoverageCounts) -> NumbersTable {
    let row = |fault: &'static str, role: Role| {
        let runs = |&operation: &&'static str| counts.of(Hit::Overlap { fault, role, operation }).to_string();
        [fault.to_owned(), role.name().to_owned()].into_iter().chain(OPERATIONS.iter().map(runs)).collect()
    };
    let rows = FAULTS.iter().flat_map(|&fault| Role::of(fault).iter().map(move |&role| row(fault, role)));
    let head: Vec<&str> = ["fault", "node"].into_iter().chain(OPERATIONS).collect();
    table("Runs with a fault that lasted during an operation", &head, 2, rows.collect())
}
