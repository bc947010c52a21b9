//! Writes the cells of figures as CSV: one row for each cell, with statistics of its write cache.

use plan::{CellResult, FlushCount, Measurement};

/// Columns of the file.
const COLUMNS: [&str; 14] = [
    "figure",
    "layout",
    "variant",
    "pattern",
    "record_bytes",
    "varied",
    "varied_value",
    "throughput_mib_s",
    "cv",
    "flushes",
    "directory_flushes",
    "blocks_of_a_disk_most",
    "blocks_of_a_disk_fewest",
    "trials",
];

/// Returns the cells of figures as the text of a CSV file. Cells without trials are omitted.
///
/// Throughput is the mean over the trials in MiB/s; `cv` is the standard deviation divided by the mean. Counts of
/// flushes are means over the trials, and empty without a write cache. Numbers of blocks are those of the busiest and
/// of the least busy disk in the largest flush.
pub fn cells_csv(results: &[CellResult<'_>]) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let written = "writing to memory";
    writer.write_record(COLUMNS).expect(written);
    for result in results {
        let Some(throughput) = result.throughput() else { continue };
        let (cell, published) = (result.cell, result.plan.published.as_ref());
        let (varied, value) = cell.varied.first().cloned().unwrap_or_default();
        let count = |count: fn(FlushCount) -> u64| {
            let mean = result.mean(|measurement: &Measurement| Some(count(measurement.flushes?) as f64));
            mean.map_or(String::new(), |mean| mean.to_string())
        };
        let fields = [
            published.map_or(String::new(), |published| published.number.to_string()),
            cell.case.layout.to_string(),
            cell.variant.clone(),
            cell.case.pattern.to_string(),
            cell.case.problem.record_bytes.to_string(),
            varied,
            value,
            format!("{:.4}", throughput.mean()),
            format!("{:.5}", throughput.cv()),
            count(|count| count.flushes),
            count(|count| count.directory_flushes),
            count(|count| count.blocks_of_a_disk_most),
            count(|count| count.blocks_of_a_disk_fewest),
            throughput.count().to_string(),
        ];
        writer.write_record(fields).expect(written);
    }
    String::from_utf8(writer.into_inner().expect(written)).expect("text in, text out")
}
