//! The trials of a study of placements as CSV: a row for each.

use plan::PlacedJob;

use super::PlacedCell;

/// The columns.
const COLUMNS: [&str; 15] = [
    "figure",
    "kind",
    "policy",
    "scheduler",
    "jobs",
    "disks",
    "run_blocks",
    "read_blocks",
    "write_blocks",
    "buffer_blocks",
    "trial",
    "seconds",
    "first_seconds",
    "f",
    "pending_writes_most",
];

/// A row for each trial. Seconds are those until all jobs, and until the first, were done; `f` is w / r as it was
/// measured; `pending_writes_most` counts write requests at one disk. What a column says nothing of is empty.
pub(super) fn csv(cells: &[PlacedCell<'_>]) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let written = "writing to memory";
    writer.write_record(COLUMNS).expect(written);
    for PlacedCell { plan, cell, trials } in cells {
        let chosen = &cell.case.options;
        let is_merge = chosen.kind == PlacedJob::Merge;
        for (number, measurement) in trials {
            let Some(placed) = &measurement.placed else { continue };
            let fields = [
                plan.number().map_or(String::new(), |figure| figure.to_string()),
                chosen.kind.to_string(),
                if is_merge { chosen.policy.number().to_string() } else { String::new() },
                chosen.scheduling.to_string(),
                chosen.jobs.to_string(),
                chosen.disks.to_string(),
                chosen.run_blocks.to_string(),
                chosen.read_blocks.to_string(),
                chosen.write_blocks.to_string(),
                chosen.buffer_blocks.map_or(String::new(), |blocks| blocks.to_string()),
                number.to_string(),
                format!("{:.4}", measurement.elapsed_s()),
                format!("{:.4}", placed.first_s()),
                format!("{:.4}", placed.ratio()),
                placed.pending_writes_most.to_string(),
            ];
            writer.write_record(fields).expect(written);
        }
    }
    String::from_utf8(writer.into_inner().expect(written)).expect("text in, text out")
}
