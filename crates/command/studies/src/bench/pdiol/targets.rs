//! Goals, and the results that are compared with them.

use super::results::{ProgramRow, Results, percent};
use command_line::counted;
use node::Size;

/// Goal of the benchmark, with the result.
#[derive(Debug, PartialEq)]
pub struct Goal {
    what: String,
    wanted: Wanted,
    found: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Wanted {
    AtLeast(f64),
    AtMost(f64),
    Below(f64),
    /// At most this share above the reference value.
    PartMore(f64),
    /// Within this share of the reference value, above or below.
    PartAway(f64),
    /// No goal; the value is only reported.
    Nothing,
}

impl Goal {
    fn new(what: String, wanted: Wanted, found: f64) -> Goal {
        Goal { what, wanted, found }
    }

    /// Returns the cells of a table: name, goal, result, and verdict.
    pub fn cells(&self) -> [String; 4] {
        let (found, plain, part) = (self.found, format!("{:.3}", self.found), percent(self.found));
        let whole = |part: f64| format!("{:.0} %", 100.0 * part);
        let (wanted, found, reached) = match self.wanted {
            Wanted::AtLeast(least) => (format!("at least {least:.2}"), plain, Some(found >= least)),
            Wanted::AtMost(most) => (format!("at most {most:.2}"), plain, Some(found <= most)),
            Wanted::Below(limit) => (format!("below {limit:.2}"), plain, Some(found < limit)),
            Wanted::PartMore(most) => (format!("at most +{}", whole(most)), part, Some(found <= most)),
            Wanted::PartAway(most) => (format!("within {}", whole(most)), part, Some(found.abs() <= most)),
            Wanted::Nothing => ("-".into(), plain, None),
        };
        let reached = reached.map_or("-", |reached| if reached { "yes" } else { "no" });
        [self.what.clone(), wanted, found, reached.to_owned()]
    }
}

/// Returns the goals for which there are results.
pub fn targets(results: &Results) -> Vec<Goal> {
    let mut targets = Vec::new();
    let rows = if results.host_disks { &[][..] } else { &results.rows };
    for rows in rows.chunk_by(|one, next| one.application == next.application) {
        let largest = rows.iter().map(|row| row.file_bytes).max().unwrap_or(0);
        let rows: Vec<&ProgramRow> = rows.iter().filter(|row| row.file_bytes == largest).collect();
        targets.extend(speed_up_targets(&rows));
    }
    targets.extend(prediction_target(rows));
    if let Some(share) = results.write_share {
        let what = format!("writing {}, 4 disks: part of their rate", Size(results.write_bytes));
        targets.push(Goal::new(what, Wanted::AtLeast(0.97), share));
    }
    if let Some(limits) = &results.limits {
        for (place, throughput, processor) in [
            ("the system's page cache", limits.striped, limits.striped_processor),
            ("the agents' caches", limits.cached, limits.cached_processor),
        ] {
            let what = format!("reading from {place}: throughput against the bare stripe");
            targets.push(Goal::new(what, Wanted::AtLeast(0.8), throughput / limits.bare_stripe));
            let what = format!("reading from {place}: processor time against the bare stripe");
            let time = processor / limits.bare_stripe_processor;
            targets.push(Goal::new(what, Wanted::AtMost(1.5), time));
        }
    }
    targets
}

/// Returns the goals for one program on one file size.
fn speed_up_targets(rows: &[&ProgramRow]) -> Vec<Goal> {
    let Some(application) = rows.first().map(|row| row.application) else { return Vec::new() };
    let least = |four| [Wanted::AtLeast(0.99), Wanted::AtLeast(1.95), Wanted::AtLeast(four)];
    let wanted = match application {
        "cat" => least(3.85),
        "grep" => least(3.80),
        // The other programs also write, or compute most of the time. Their speed-ups with several disks are reported
        // without a goal.
        _ => [Wanted::AtLeast(0.97), Wanted::Nothing, Wanted::Nothing],
    };
    let mut targets = Vec::new();
    for (disks, wanted) in [1, 2, 4].into_iter().zip(wanted) {
        let of_these: Vec<&&ProgramRow> = rows.iter().filter(|row| row.disks == disks).collect();
        let Some(adaptive) = of_these.iter().find(|row| row.is_adaptive()) else { continue };
        let on = counted(disks, "disk");
        let what = format!("{application}, {on}: speed-up over the local disk");
        targets.push(Goal::new(what, wanted, adaptive.speed_up));
        let fixed = of_these.iter().filter(|row| !row.is_adaptive()).map(|row| row.seconds());
        let best = fixed.fold(f64::INFINITY, f64::min);
        if best.is_finite() && wanted != Wanted::Nothing {
            let what = format!("{application}, {on}: time against the best fixed window");
            targets.push(Goal::new(what, Wanted::PartMore(0.03), adaptive.seconds() / best - 1.0));
        }
    }
    let without_window = rows.iter().find(|row| row.disks == 4 && row.window == "1");
    if let Some(row) = without_window.filter(|_| matches!(wanted[2], Wanted::AtLeast(_))) {
        let what = format!("{application}, 4 disks, window 1: speed-up over the local disk");
        targets.push(Goal::new(what, Wanted::Below(1.0), row.speed_up));
    }
    targets
}

fn prediction_target(rows: &[ProgramRow]) -> Option<Goal> {
    let differences = rows.iter().filter_map(|row| Some((row, row.difference()?)));
    let (worst, difference) = differences.max_by(|(_, one), (_, other)| one.abs().total_cmp(&other.abs()))?;
    let place = match worst.is_local() {
        true => "the local disk".to_owned(),
        false => format!("disks {}, window {}", worst.disks, worst.window),
    };
    let what = format!(
        "predicted against measured, at worst: {} {}, {place}",
        worst.application,
        Size(worst.file_bytes)
    );
    Some(Goal::new(what, Wanted::PartAway(0.1), difference))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::times::Times;
    use fs::Prefetch;
    use std::time::Duration;

    fn row(application: &'static str, place: Option<(usize, &str)>, seconds: u64) -> ProgramRow {
        let place = place.map(|(disks, window)| (disks, window.parse::<Prefetch>().expect("a window")));
        let times = Times { elapsed: Duration::from_secs(seconds), ..Times::default() };
        ProgramRow::new(application, 8 << 20, place, Some(times), None)
    }

    fn results(rows: Vec<ProgramRow>, host_disks: bool) -> Results {
        let mut results = Results { limits: None, host_disks, write_share: None, write_bytes: 0, rows };
        results.compare();
        results
    }

    #[test]
    fn speed_ups_of_writing_programs_are_reported_without_a_target() {
        let rows = vec![
            row("sort", None, 100),
            row("sort", Some((1, "adaptive")), 104),
            row("sort", Some((4, "1")), 99),
            row("sort", Some((4, "adaptive")), 50),
        ];
        let cells: Vec<_> = targets(&results(rows.clone(), false)).iter().map(Goal::cells).collect();
        let expected = [
            ["sort, 1 disk: speed-up over the local disk", "at least 0.97", "0.962", "no"],
            ["sort, 4 disks: speed-up over the local disk", "-", "2.000", "-"],
        ];
        assert_eq!(cells, expected.map(|cells| cells.map(str::to_owned)));
        assert_eq!(targets(&results(rows, true)), [], "this computer's disks have no known rate");
    }

    #[test]
    fn the_goal_of_predictions_is_judged_by_the_worst_one() {
        let mut rows = vec![row("cat", None, 100), row("cat", Some((4, "1")), 50)];
        (rows[0].predicted_s, rows[1].predicted_s) = (Some(101.0), Some(44.0));
        let cells: Vec<_> = targets(&results(rows, false)).iter().map(Goal::cells).collect();
        let last = cells.last().expect("a target");
        assert!(last[0].ends_with("cat 8 MiB, disks 4, window 1"), "{last:?}");
        assert_eq!(last[1..], ["within 10 %", "-12.0 %", "no"].map(str::to_owned));
    }
}
