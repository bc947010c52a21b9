//! Tables and figures of a report on the command line, for a tiny study in a folder.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{fail, starfish, succeed};
use tempfile::TempDir;

const TABLE: &str = r#"
name = "a table"
title = "first come, first served, against C-SCAN"
patterns = ["rb", "wb"]
records = ["4 KiB", "8 KiB"]
file_size = "256 KiB"
method = "traditional"
trials = 3
[[variant]]
name = "fcfs"
scheduling = "fcfs"
[[variant]]
name = "cscan"
scheduling = "cyclic-scan"
[table]
number = NUMBER
system = "tpfs"
value = "throughput"
"#;

const FIGURE: &str = r#"
name = "a figure"
patterns = ["rb"]
file_size = "256 KiB"
method = "traditional"
[vary]
outstanding = [1, 4]
[figure]
number = 2
value = "throughput"
"#;

const PUBLISHED: &str = "table,system,layout,variant,pattern,record_bytes,value,differs_significantly\n\
                         2,tpfs,contiguous,fcfs,rb,8192,7.1,\n2,tpfs,contiguous,cscan,rb,8192,31.1,yes\n";

const COLUMNS: &str =
    "table,system,layout,variant,pattern,record_bytes,value,differs_significantly,cv,trials";

/// Folder with a study of tables 2 and 16 and of figure 2. Published values exist only for table 2.
struct Made {
    folder: TempDir,
}

impl Made {
    fn new() -> Made {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let write = |name: &str, text: &str| {
            let path = folder.path().join("study").join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, text).expect("a file");
        };
        write("two.toml", &TABLE.replace("NUMBER", "2"));
        write("sixteen.toml", &TABLE.replace("NUMBER", "16").replace("a table", "another"));
        write("figure.toml", FIGURE);
        write("published/two.csv", PUBLISHED);
        write("README.md", "not read");
        Made { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, arguments: &[&str]) -> std::process::Command {
        let mut command = starfish([&["reproduce"], arguments].concat());
        command.current_dir(self.folder.path());
        command
    }

    fn run(&self, arguments: &[&str]) -> String {
        String::from_utf8(succeed(self.command(arguments))).expect("text")
    }
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn a_study_becomes_a_table_and_a_page() {
    let made = Made::new();
    let stdout = made.run(&["study"]);
    // Both tables have the same 8 cells of 3 trials. The figure has 2 cells of 5 trials, and 3 of these trials are in
    // the tables, too.
    assert!(stdout.contains("31 of 31 trials simulated now"), "{stdout}");
    assert!(stdout.lines().any(|line| line.starts_with("2 ") && line.contains('%')), "{stdout}");
    assert!(
        stdout.lines().any(|line| line.starts_with("16 ") && line.contains("none published")),
        "{stdout}"
    );

    let csv = read(&made.path("results/study/tables.csv"));
    let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(rows[0].join(","), COLUMNS);
    assert_eq!(rows.len(), 1 + 2 * 8);
    assert_eq!(rows[1][..6], ["2", "tpfs", "contiguous", "fcfs", "rb", "4096"]);
    assert_eq!(rows[4][..6], ["2", "tpfs", "contiguous", "cscan", "rb", "8192"]);
    for row in &rows[1..] {
        let marked = row[3] == "cscan" && ["yes", "no"].contains(&row[7]);
        assert!(marked || row[3] == "fcfs" && row[7].is_empty(), "{row:?}");
        assert!(row[6].parse::<f64>().is_ok_and(|value| value > 0.0) && row[9] == "3", "{row:?}");
    }
    // Cells with equal settings are simulated once, so their values are equal.
    assert_eq!(rows[1][6..], rows[9][6..]);

    let page = read(&made.path("results/study/report.html"));
    for part in ["id=\"table-2\"", "id=\"table-16\"", "id=\"figure-2\"", "<svg", "starfish reproduce study"] {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn finished_trials_are_reused_and_threads_do_not_change_results() {
    let made = Made::new();
    let read_both = |out: &str| {
        let out = made.path(out);
        (read(&out.join("tables.csv")), read(&out.join("report.html")))
    };
    let first = made.run(&["study", "--tables", "2", "--trials", "2", "--out", "one"]);
    assert!(first.contains("16 of 16 trials simulated now"), "{first}");
    let again = made.run(&["study", "--tables", "2", "--trials", "2", "--out", "one"]);
    assert!(again.contains("0 of 16 trials simulated now"), "{again}");
    made.run(&["study", "--tables", "2", "--trials", "2", "--out", "two", "--threads", "1"]);
    assert_eq!(read_both("one"), read_both("two"));
    assert!(!read_both("one").1.contains("id=\"figure-2\""));
    let more = made.run(&["study", "--tables", "2", "--trials", "3", "--out", "one"]);
    assert!(more.contains("8 of 24 trials simulated now"), "{more}");
    assert!(read_both("one").0.lines().skip(1).all(|row| row.ends_with(",3")));
}

#[test]
fn results_of_one_selection_stay_after_the_next() {
    let made = Made::new();
    made.run(&["study", "--tables", "2", "--trials", "2", "--out", "both"]);
    let table = read(&made.path("both/tables.csv"));
    assert_eq!(table.lines().count(), 1 + 2 * 8, "both tables have the same cells");
    made.run(&["study", "--tables", "none", "--figures", "2", "--trials", "1", "--out", "both"]);
    assert_eq!(read(&made.path("both/tables.csv")), table);
    let page = read(&made.path("both/report.html"));
    for part in ["id=\"table-2\"", "id=\"figure-2\"", "starfish reproduce study --trials 1"] {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn a_figure_alone_has_no_tables_and_no_errors() {
    let made = Made::new();
    let stdout = made.run(&["study", "--tables", "none", "--figures", "2", "--trials", "1"]);
    assert!(!stdout.contains("median error") && !stdout.contains("tables.csv"), "{stdout}");
    assert!(stdout.lines().any(|line| line.starts_with("figure  what")), "{stdout}");
    assert!(!made.path("results/study/tables.csv").exists());
    let page = read(&made.path("results/study/report.html"));
    assert!(page.contains("Figure 2"), "{page}");
    for of_tables in [
        "tables.csv",
        "these tables",
        "Predicted tables",
        "href=\"#summary\"",
        "next to the published values",
    ] {
        assert!(!page.contains(of_tables), "{of_tables}: {page}");
    }
    assert!(read(&made.path("results/study/report.html")).contains("id=\"figure-2\""));
}

#[test]
fn a_single_trial_has_no_significance() {
    let made = Made::new();
    made.run(&["study", "--tables", "16", "--trials", "1"]);
    let csv = read(&made.path("results/study/tables.csv"));
    assert!(csv.lines().skip(1).all(|row| row.ends_with(",,0.00000,1")), "{csv}");
}

#[test]
fn invalid_options_and_studies_are_rejected_before_any_trial() {
    let made = Made::new();
    fs::write(made.path("file"), "in the way").expect("a file");
    fs::create_dir_all(made.path("taken/report.html")).expect("a folder");
    fs::create_dir_all(made.path("empty")).expect("a folder");
    fs::create_dir_all(made.path("broken")).expect("a folder");
    let broken = FIGURE.replace("[vary]", "[vary]\noutstandin = [1]");
    fs::write(made.path("broken/plan.toml"), broken).expect("a file");
    let cases: [(&[&str], i32, &str); 13] = [
        (&["study", "--tables", "2,99"], 2, "--tables: study has no table 99\n  It has 2,16."),
        (&["study", "--figures", "7"], 2, "study has no figure 7\n  It has 2."),
        (&["study", "--tables", "two"], 2, "expected all, none, or numbers"),
        (&["study", "--tables", "none"], 2, "they select no table or figure"),
        (&["study", "--trials", "0"], 2, "--trials"),
        (&["study", "--trials", "100000"], 2, "--trials"),
        (&["study", "--threads", "0"], 2, "--threads"),
        (
            &["nowhere"],
            2,
            "Name one of the built-in studies (starfish-3.0, enwrich, placement), or a directory",
        ),
        (&["empty"], 2, "nothing to reproduce"),
        (&["broken"], 2, "plan.toml:7: unknown key \"outstandin\""),
        (&["study", "--out", "file"], 1, "starfish: file: "),
        (
            &["study", "--out", "taken"],
            2,
            "taken/report.html: it would be overwritten, but it is not the result of a run\n  Choose another \
             directory with --out",
        ),
        (
            &["starfish-3.0", "--tables", "1,99"],
            2,
            "starfish-3.0 has no table 1\n  It has 2,3,4,5,6,7,8,9,10,",
        ),
    ];
    for (arguments, code, expected) in cases {
        let error = fail(made.command(arguments), code);
        assert!(error.contains(expected), "{arguments:?}: {error}");
    }
    assert!(!made.path("results").exists());
    fs::write(made.path("study/published/two.csv"), "table,value\n2,1\n").expect("a file");
    assert!(fail(made.command(&["study"]), 2).contains("two.csv:1: the columns must be table,"));
}

/// Figures with write caches are shown as a table of cells, and the cells of one figure may come from several plans.
#[test]
fn figures_of_write_caches_have_a_row_for_each_cell() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let study = folder.path().join("study");
    fs::create_dir_all(&study).expect("a folder");
    for record in ["512 B", "8 KiB"] {
        let plan = format!(
            "name = \"records of {record}\"\nmachine = \"enwrich-1995\"\npatterns = [\"wcc\", \"wrnncc\"]\n\
             records = [\"{record}\"]\nfile_size = \"512 KiB\"\ntrials = 1\n[figure]\nnumber = 5\nvalue = \"throughput\"\n\
             [[variant]]\nname = \"enwrich\"\nmethod = \"write-cached\"\n[[variant]]\nname = \"tc\"\nmethod = \"traditional\"\n"
        );
        fs::write(study.join(format!("{record}.toml")), plan).expect("a file");
    }
    let (study, out) = (study.display().to_string(), folder.path().join("out"));
    succeed(starfish(["reproduce", &study, "--out", &out.display().to_string(), "--progress", "never"]));
    let csv = fs::read_to_string(out.join("tables.csv")).expect("it is written");
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(
        lines[0],
        "figure,layout,variant,pattern,record_bytes,varied,varied_value,throughput_mib_s,cv,flushes,directory_flushes,\
         blocks_of_a_disk_most,blocks_of_a_disk_fewest,trials"
    );
    assert_eq!(lines.len(), 9, "{csv}");
    let cached = lines.iter().filter(|line| line.starts_with("5,contiguous,enwrich,"));
    assert!(cached.clone().count() == 4 && cached.clone().all(|line| line.contains(",1,0,")), "{csv}");
    assert!(lines.iter().filter(|line| line.contains(",tc,")).all(|line| line.ends_with(",,,,,1")), "{csv}");
    let page = fs::read_to_string(out.join("report.html")).expect("it is written");
    assert!(page.contains("wrnncc") && page.contains("write-cached"));
}
