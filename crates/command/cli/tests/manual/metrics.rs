//! Generates the page with all metrics from the code.

use std::fmt::Write;

use ::metrics::{MetricFamily, agent, mount, process};

use crate::assert_page_is;

#[test]
fn the_page_of_metrics_is_up_to_date() {
    assert_page_is("docs/manual/metrics.md", &page());
}

fn page() -> String {
    let mut page = "# All metrics\n\n\
        This page is generated from the code. [Operation](operation.md#watching-agents) describes its \
        use.\n\n\
        A *counter* starts at 0 with the process and only grows; `rate()` turns it into a rate. A *gauge* \
        is a present value. A *histogram* has three series, with the suffixes `_bucket`, `_sum` and \
        `_count`. Its buckets double from a microsecond to 16.8 seconds; `histogram_quantile()` computes \
        percentiles. An *info* metric is always 1: its labels carry the information. The label `disk` is \
        the number of the disk, from 0 in the order of `--root`.\n"
        .to_owned();
    write_table(&mut page, "Agents", &agent::FAMILIES);
    write_table(&mut page, "Mounts", &mount::FAMILIES);
    write_table(&mut page, "Processes", &process::FAMILIES);
    page
}

fn write_table(page: &mut String, title: &str, families: &[MetricFamily]) {
    let _ = write!(page, "\n## {title}\n\n| metric | kind | labels | meaning |\n|---|---|---|---|\n");
    for family in families {
        let labels: Vec<String> = family.labels.iter().map(|label| format!("`{label}`")).collect();
        let (series, labels, help) = (family.series(), labels.join(", "), family.help);
        let kind = family.kind.word();
        let _ = writeln!(page, "| `{series}` | {kind} | {labels} | {help} |");
    }
}
