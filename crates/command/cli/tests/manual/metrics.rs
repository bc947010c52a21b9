//! Generates the page with all metrics from the code.

use std::fmt::Write;

use ::metrics::{MetricFamily, agent, mount, process};

use crate::assert_page_is;

#[test]
fn the_page_of_metrics_is_made_from_the_code() {
    assert_page_is("docs/manual/metrics.md", &page());
}

fn page() -> String {
    let mut page = "# All metrics\n\n\
        This page is made from the code. [Operation](operation.md#watching-agents) tells how they are used.\n\n\
        What is a *counter* only grows, from 0 at the start of the process; `rate()` makes a speed of it. A *gauge* is what is there \
        now. A *histogram* is three series, with `_bucket`, `_sum` and `_count` behind the name, and its steps double from a \
        microsecond to 16.8 seconds; `histogram_quantile()` makes percentiles of it. Of an *info* the labels are what is told, and the \
        number is 1. A label `disk` has the number of the disk, from 0 in the order of `--root`.\n"
        .to_owned();
    write_table(&mut page, "Agents", &agent::FAMILIES);
    write_table(&mut page, "Mounts", &mount::FAMILIES);
    write_table(&mut page, "Processes", &process::FAMILIES);
    page
}

fn write_table(page: &mut String, title: &str, families: &[MetricFamily]) {
    let _ = write!(page, "\n## {title}\n\n| metric | kind | labels | what it tells |\n|---|---|---|---|\n");
    for family in families {
        let labels: Vec<String> = family.labels.iter().map(|label| format!("`{label}`")).collect();
        let (series, labels, help) = (family.series(), labels.join(", "), family.help);
        let kind = family.kind.word();
        let _ = writeln!(page, "| `{series}` | {kind} | {labels} | {help} |");
    }
}
