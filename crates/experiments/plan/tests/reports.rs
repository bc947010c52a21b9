//! Tests that the report's plans in `experiments/` match the report, table by table.

use std::collections::BTreeSet;
use std::fs;

use experiment::{DiskLayout, Method};
use plan::{Kind, Plan, Quantity};

fn load(name: &str) -> Plan {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../experiments/starfish-3.0");
    Plan::load(&format!("{folder}/{name}.toml")).unwrap_or_else(|error| panic!("{error}"))
}

/// Returns the properties of the tables: number, system, layout, quantity and variants.
fn tables() -> Vec<(u32, &'static str, DiskLayout, Quantity, Vec<&'static str>)> {
    use DiskLayout::{Contiguous, Random};
    let scheduling = ["fcfs", "cscan"];
    let queued = ["plain-mem", "queued-mem"];
    let memget = ["data-in-request", "memget-writes"];
    let threads = ["thread-requests", "queued-requests"];
    let rows: [(u32, &str, DiskLayout, &[&str]); 20] = [
        (2, "tpfs", Contiguous, &scheduling),
        (3, "tpfs-moves", Contiguous, &scheduling),
        (4, "tpfs", Random, &scheduling),
        (5, "tpfs-moves", Random, &scheduling),
        (6, "ddio", Contiguous, &queued),
        (7, "ddio", Random, &queued),
        (8, "ddio-sort", Random, &queued),
        (9, "2pio", Contiguous, &queued),
        (10, "2pio", Random, &queued),
        (11, "tpfs", Contiguous, &memget),
        (12, "tpfs", Random, &memget),
        (13, "tpfs", Contiguous, &threads),
        (14, "tpfs", Random, &threads),
        (15, "compare", Contiguous, &["tpfs", "ddio"]),
        (16, "compare", Random, &["tpfs", "ddio", "ddio-sort"]),
        (17, "compare", Contiguous, &["2pio", "ddio"]),
        (18, "compare", Random, &["2pio", "ddio"]),
        (19, "compare", Random, &["2pio", "ddio-sort"]),
        (20, "compare", Contiguous, &["tpfs", "2pio"]),
        (21, "compare", Random, &["tpfs", "2pio"]),
    ];
    let quantity =
        |system: &str| if system == "tpfs-moves" { Quantity::Movements } else { Quantity::Throughput };
    rows.map(|(number, system, layout, variants)| {
        (number, system, layout, quantity(system), variants.to_vec())
    })
    .to_vec()
}

/// Returns each value once, in order of first occurrence.
fn distinct<T: PartialEq>(values: impl Iterator<Item = T>) -> Vec<T> {
    values.fold(Vec::new(), |mut distinct, value| {
        if !distinct.contains(&value) {
            distinct.push(value);
        }
        distinct
    })
}

#[test]
fn the_plans_of_the_tables_match_the_report() {
    for (number, system, layout, quantity, variants) in tables() {
        let plan = load(&format!("table-{number:02}"));
        let published = plan.published.as_ref().expect("it is a table");
        assert_eq!((published.kind, published.number), (Kind::Table, number));
        assert_eq!((published.system.as_str(), published.quantity), (system, quantity), "table {number}");
        assert_eq!(distinct(plan.cells.iter().map(|cell| cell.variant.as_str())), variants, "table {number}");
        assert_eq!(distinct(plan.cells.iter().map(|cell| cell.case.layout)), [layout], "table {number}");
        // All 19 patterns with records of 8192 bytes, and all except ra, rn and wn with records of 8 bytes.
        assert_eq!(plan.cells.len(), (19 + 16) * variants.len(), "table {number}");
        assert_eq!(plan.trials, 5);
        for cell in &plan.cells {
            let experiment = &cell.case;
            let options = &experiment.options;
            assert_eq!((experiment.problem.file_bytes, options.block_bytes), (10 << 20, 8192));
            assert_eq!(options.outstanding, 4);
            assert_eq!(
                options.presort,
                cell.variant == "ddio-sort" || system == "ddio-sort",
                "table {number}"
            );
            let two_phase = cell.variant == "2pio" || system == "2pio";
            assert_eq!(experiment.method == Method::TwoPhase, two_phase, "table {number}");
        }
    }
}

#[test]
fn published_tables_and_their_plans_have_the_same_cells() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../experiments/starfish-3.0/published");
    let mut count = 0;
    for entry in fs::read_dir(folder).expect("the folder") {
        let path = entry.expect("an entry").path();
        let mut reader = csv::Reader::from_path(&path).expect("a table");
        let rows: Vec<csv::StringRecord> = reader.records().map(|row| row.expect("a row")).collect();
        let number: u32 = rows[0][0].parse().expect("a number");
        let plan = load(&format!("table-{number:02}"));
        let place = |cell: &plan::PlannedCell| cell.label();
        let simulated: BTreeSet<String> = plan.cells.iter().map(place).collect();
        let published: BTreeSet<String> =
            rows.iter().map(|row| format!("{}/{}/{}", &row[3], &row[4], &row[5])).collect();
        assert_eq!(simulated, published, "table {number}");
        count += 1;
    }
    assert!(count >= 8, "{count} tables");
}

#[test]
fn the_plans_of_the_figures_vary_the_outstanding_requests() {
    for (number, layout, patterns) in [
        (2, DiskLayout::Contiguous, 7),
        (3, DiskLayout::Contiguous, 6),
        (4, DiskLayout::Random, 7),
        (5, DiskLayout::Random, 6),
    ] {
        let plan = load(&format!("figure-{number}"));
        let published = plan.published.as_ref().expect("it is a figure");
        assert_eq!((published.kind, published.number), (Kind::Figure, number));
        assert_eq!(plan.cells.len(), 8 * patterns);
        let outstanding = distinct(plan.cells.iter().map(|cell| cell.case.options.outstanding));
        assert_eq!(outstanding, [1, 2, 3, 4, 5, 6, 7, 8]);
        for cell in &plan.cells {
            let experiment = &cell.case;
            assert_eq!((experiment.method, experiment.layout), (Method::Traditional, layout));
            let view = experiment
                .pattern
                .arrays()
                .expect("one of arrays")
                .of_array(0)
                .view(&experiment.problem)
                .expect("it fits");
            assert!(view.chunks(0).next().expect("node 0 has some").bytes > 8192, "{}", cell.label());
        }
    }
}
