//! Drawings of placements: disks are columns, and runs are boxes in the colour of their job. Output runs are filled.

use page::{BoxDrawing, DrawnBox, NumbersPart};
use placement::{JobPlacement, Policy};

use crate::report::number::count;

/// Draws figure 1 (two jobs with 20 runs each on five disks, by each policy) and figure 5 (three interleaves on three
/// disks).
pub(super) fn drawings() -> Vec<NumbersPart> {
    let merges = Policy::ALL.into_iter().filter_map(|policy| {
        let placed = policy.place(2, 5, 20).ok()?;
        let title = format!("Figure 1: two merges on five disks, {policy}");
        Some(drawing(
            title,
            "Number of input runs of each job on each disk. Output runs are filled.",
            &placed,
            5,
        ))
    });
    let interleaves = Policy::SeparateWithinJob.place(3, 3, 2).ok().map(|placed| {
        let title = "Figure 5: three interleaves on three disks".to_owned();
        drawing(title, "Each job reads one run from every disk except its output disk.", &placed, 3)
    });
    merges.chain(interleaves).map(NumbersPart::Boxes).collect()
}

fn drawing(title: String, note: &str, placed: &[JobPlacement], disks: usize) -> BoxDrawing {
    let column = |disk: usize| {
        let boxes = placed.iter().enumerate().flat_map(|(job, placed)| {
            let runs = placed.runs_on(disk).count();
            let label = format!("job {job}: {}", count(runs, "run"));
            let input = DrawnBox { label, group: job, is_filled: false };
            let output = DrawnBox { label: format!("job {job}: output"), group: job, is_filled: true };
            (runs > 0).then_some(input).into_iter().chain((placed.output == disk).then_some(output))
        });
        (format!("disk {disk}"), boxes.collect())
    };
    BoxDrawing { title, note: note.to_owned(), columns: (0..disks).map(column).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drawing_has_every_run_once() {
        for part in drawings() {
            let NumbersPart::Boxes(drawing) = part else { panic!("boxes") };
            let labels = drawing.columns.iter().flat_map(|(_, boxes)| boxes);
            let outputs = labels.clone().filter(|one| one.is_filled).count();
            let runs: usize = labels
                .filter_map(|one| one.label.split(": ").nth(1)?.split_once(" run")?.0.parse::<usize>().ok())
                .sum();
            let expected = if drawing.columns.len() == 5 { (2, 40) } else { (3, 6) };
            assert_eq!((outputs, runs), expected, "{}", drawing.title);
        }
    }
}
