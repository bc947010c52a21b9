//! Writes the trials of a study of placements as CSV: one row for each trial.

use plan::PlacedJob;

use super::PlacedCell;

/// Columns of the file.
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

/// Returns a row for each trial. The columns in seconds are the times until all jobs, and until the first job, ended.
/// `f` is the measured w / r. `pending_writes_most` is a number of write requests at one disk. Columns that do not
/// apply are empty.
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
