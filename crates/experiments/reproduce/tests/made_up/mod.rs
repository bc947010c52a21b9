//! Made-up results: a small study, and a study with the published values plus some noise.

use page::{Curve, Figure, Measurand};
use plan::Quantity;
use reproduce::{Provenance, PublishedTables, ReportTable, TableCell};
use statistics::Sample;

pub(crate) fn sample(values: &[f64]) -> Sample {
    Sample::of(values).expect("values")
}

pub(crate) fn provenance() -> Provenance {
    Provenance {
        command: "starfish reproduce made-up --trials 5".into(),
        version: "0.0.0".into(),
        seeds: vec![1],
        machines: vec!["starfish-1996".into()],
        trials: (1, 5),
    }
}

/// Returns a cell with these values, for a variant, a pattern and a record size.
pub(crate) fn cell(variant: &str, pattern: &str, record_bytes: u64, values: &[f64]) -> TableCell {
    TableCell { variant: variant.into(), pattern: pattern.into(), record_bytes, sample: sample(values) }
}

/// Returns three tables: one with two variants, one that counts movements, and one with three variants.
pub(crate) fn tables() -> Vec<ReportTable> {
    // The cells are not in the order of records and variants, as in the results of runs.
    let two = vec![
        cell("fcfs", "ra", 8192, &[474.0, 475.0]),
        cell("cscan", "ra", 8192, &[500.0, 500.0]),
        cell("fcfs", "rb", 8192, &[7.1, 7.1]),
        cell("fcfs", "rb", 8, &[7.0, 7.2]),
        cell("cscan", "rb", 8192, &[31.1, 31.1]),
        cell("cscan", "rb", 8, &[7.1, 7.15]),
    ];
    let moves = vec![cell("fcfs", "rb", 8, &[1280.0, 1281.0]), cell("cscan", "rb", 8, &[144.0, 144.0])];
    let three = vec![
        cell("tpfs", "wb", 8, &[4.9]),
        cell("ddio", "wb", 8, &[4.91]),
        cell("ddio-sort", "wb", 8, &[7.3]),
    ];
    vec![
        table(2, "tpfs", "contiguous", Quantity::Throughput, two),
        table(3, "tpfs-moves", "contiguous", Quantity::Movements, moves),
        table(16, "compare", "random", Quantity::Throughput, three),
    ]
}

pub(crate) fn table(
    number: u32,
    system: &str,
    layout: &str,
    quantity: Quantity,
    cells: Vec<TableCell>,
) -> ReportTable {
    ReportTable {
        number,
        title: format!("made up <{system}>"),
        system: system.into(),
        layout: layout.into(),
        quantity,
        cells,
    }
}

/// Returns published values for the first two tables.
pub(crate) fn published() -> PublishedTables {
    let mut published = PublishedTables::default();
    let text = "table,system,layout,variant,pattern,record_bytes,value,differs_significantly\n\
                2,tpfs,contiguous,fcfs,ra,8192,474.9,\n2,tpfs,contiguous,cscan,ra,8192,500.7,yes\n\
                2,tpfs,contiguous,fcfs,rb,8192,7.1,\n2,tpfs,contiguous,cscan,rb,8192,31.1,yes\n\
                2,tpfs,contiguous,fcfs,rb,8,8.0,\n2,tpfs,contiguous,cscan,rb,8,4.0,yes\n\
                3,tpfs-moves,contiguous,fcfs,rb,8,1280,\n3,tpfs-moves,contiguous,cscan,rb,8,144,\n";
    published.read("made-up.csv", text).expect("a table");
    published
}

pub(crate) fn figures() -> Vec<Figure> {
    let point = |k: f64, of: f64| (k, sample(&[of, 1.02 * of, 0.99 * of]));
    let line = |(place, pattern): (usize, &str)| Curve {
        name: pattern.into(),
        per_node: (pattern == "ra").then_some(16),
        points: (1..=8)
            .map(|k| point(f64::from(k), 31.4 - (8.0 - place as f64) * 2.0 / f64::from(k)))
            .collect(),
    };
    let patterns = ["ra", "rn", "rb", "rnb", "rbb", "rcb", "rcn"];
    let lines = patterns.into_iter().enumerate().map(line).collect();
    vec![Figure {
        number: 2,
        title: "made up".into(),
        measurand: Measurand::THROUGHPUT,
        varied: "K".into(),
        lines,
    }]
}
