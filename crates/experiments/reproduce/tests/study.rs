//! Tests of valid and invalid studies, and of the tables and figures of their results.

use std::collections::BTreeSet;

use plan::{Journal, Kind};
use reproduce::{Study, TextFile};

const TABLE: &str = r#"
name = "t"
title = "two schedules"
patterns = ["wb", "rb"]
records = ["8 KiB", "4 KiB"]
file_size = "256 KiB"
method = "traditional"
trials = 2
[[variant]]
name = "fcfs"
scheduling = "fcfs"
[[variant]]
name = "cscan"
scheduling = "cyclic-scan"
[table]
number = 2
system = "tpfs"
value = "throughput"
"#;

const FIGURE: &str = r#"
name = "f"
patterns = ["ra", "rb"]
file_size = "256 KiB"
method = "traditional"
trials = 2
[vary]
outstanding = [4, 1]
[figure]
number = 2
value = "throughput"
"#;

const PUBLISHED: &str = "table,system,layout,variant,pattern,record_bytes,value,differs_significantly\n\
                         2,tpfs,contiguous,fcfs,rb,8192,7.1,\n2,tpfs,contiguous,cscan,rb,8192,31.1,yes\n";

fn study(plans: &[&str], published: &[&str]) -> Result<Study, String> {
    const NAMES: [&str; 2] = ["0.x", "1.x"];
    fn files<'a>(texts: &[&'a str]) -> Vec<TextFile<'a>> {
        NAMES.iter().zip(texts).map(|(name, text)| TextFile { name, text }).collect()
    }
    Study::parse("made-up", &files(plans), &files(published)).map_err(|error| error.to_string())
}

#[test]
fn results_become_tables_and_figures_in_the_order_of_the_reports() {
    let study = study(&[FIGURE, TABLE], &[PUBLISHED]).expect("a study");
    assert_eq!((study.numbers(Kind::Table), study.numbers(Kind::Figure)), (vec![2], vec![2]));
    let mut journal = Journal::in_memory();
    let planned = plan::trials(&study.plans);
    let failures = plan::execute(&planned, &mut journal, 2, &|| false, &|_| {}).expect("no file");
    assert!(failures.is_empty(), "{failures:?}");
    let results = plan::results(&study.plans, &journal);

    let tables = Study::tables(&results);
    let table = &tables[0];
    assert_eq!((&*table.title, &*table.system, &*table.layout), ("two schedules", "tpfs", "contiguous"));
    let places = table.in_order().iter().map(|cell| cell.place().to_string()).collect::<Vec<_>>();
    let expected = [
        "fcfs rb with 4096-byte records",
        "cscan rb with 4096-byte records",
        "fcfs rb with 8192-byte records",
        "cscan rb with 8192-byte records",
        "fcfs wb with 4096-byte records",
    ];
    assert_eq!(places[..5], expected);
    assert!(table.cells.iter().all(|cell| cell.sample.count() == 2 && cell.sample.mean() > 0.0));

    let figures = Study::figures(&results);
    let figure = &figures[0];
    let lines: Vec<(&str, Option<u64>)> =
        figure.lines.iter().map(|line| (&*line.name, line.per_node)).collect();
    assert_eq!(lines, [("ra / 16", Some(16)), ("rb", None)]);
    for line in &figure.lines {
        let varied: Vec<f64> = line.points.iter().map(|(value, _)| *value).collect();
        assert_eq!(varied, [1.0, 4.0]);
        // Sixteen disks of 2.3 MiB/s limit the throughput, independently of the number of nodes that receive the data.
        assert!(line.points.iter().all(|(_, sample)| sample.mean() < 40.0));
    }
    let provenance = study.provenance("command".into(), "version".into());
    assert_eq!((provenance.trials, &provenance.machines[..]), ((2, 2), &["starfish-1996".to_owned()][..]));
}

#[test]
fn plans_that_are_neither_table_nor_figure_are_ignored() {
    let other = TABLE.split("[table]").next().expect("a plan");
    assert_eq!(study(&[TABLE, other], &[]).expect("a study").plans.len(), 1);
    assert!(study(&[other], &[]).unwrap_err().contains("nothing to reproduce"));
}

#[test]
fn tables_can_be_left_out() {
    let mut study = study(&[TABLE, FIGURE], &[]).expect("a study");
    study.keep(Kind::Table, &BTreeSet::new());
    assert_eq!((study.numbers(Kind::Table), study.numbers(Kind::Figure)), (vec![], vec![2]));
}

#[test]
fn contradictory_plans_are_rejected_with_their_file() {
    let vary = format!("{TABLE}[vary]\noutstanding = [1, 2]\n");
    let layouts = TABLE.replace("scheduling = \"fcfs\"", "layout = \"random\"");
    let movements = FIGURE.replace("throughput", "movements");
    let two_varied = FIGURE.replace("[vary]", "[vary]\nprefetch = [0, 1]");
    let no_number = FIGURE.replace("outstanding = [4, 1]", "scheduling = [\"fcfs\", \"cyclic-scan\"]");
    let elsewhere = PUBLISHED.replace("contiguous", "random");
    let other_system = PUBLISHED.replace("tpfs", "ddio");
    let no_cell = PUBLISHED.replace("cscan", "elevator");
    let cases: [(&[&str], &[&str], &str); 10] = [
        (&[TABLE, TABLE], &[], "1.x: 0.x is the same table or figure"),
        (&[&vary], &[], "0.x: two cells are fcfs wb with 8192-byte records"),
        (&[&layouts], &[], "0.x: a table must have one layout"),
        (&[&movements], &[], "0.x: a figure must show throughput"),
        (&[&two_varied], &[], "0.x: a figure must vary one numeric setting"),
        (&[&no_number], &[], "0.x: a figure must vary one numeric setting"),
        (&[TABLE], &[&elsewhere], "0.x: this is tpfs, contiguous; published is tpfs, random"),
        (&[TABLE], &[&other_system], "published is ddio"),
        (&[TABLE], &[&no_cell], "0.x: no cell is elevator rb with 8192-byte records"),
        (&["name = 1"], &[], "0.x:1: the patterns are missing"),
    ];
    for (plans, published, expected) in cases {
        let error = study(plans, published).unwrap_err();
        assert!(error.contains(expected), "{expected}: {error}");
    }
}
