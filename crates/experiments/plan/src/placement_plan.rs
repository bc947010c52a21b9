//! Plans of jobs that share disks. Their settings are the fields of
//! `crates/experiments/experiment/src/placement_fields.rs`. Their cells have no subjects.
//!
//! ```toml
//! name = "figure-02"
//! trials = 10
//! figure = { number = 2 }
//!
//! [[variant]]
//! name = "policy 2"
//! policy = 2
//!
//! [vary]
//! jobs = [1, 2, 3, 4, 5]
//! ```

use std::ops::Range;

use description::{MachineDescription, Misfit};
use experiment::{Contents, PlacementCase, PlacementChoices, Trial};
use toml::de::DeTable;

use crate::kind::{PlaceKey, PlanKind};
use crate::measure::{Measure, Quantity};
use crate::measurement::{Measurement, PlacedMeasurement};
use crate::plan_errors::PlanErrors;
use crate::planned_trial::PlannedCase;
use crate::reference::{PLACEMENT_TOP, PlanKey};
use crate::settings::Chosen;
use crate::table::Value;

impl PlanKind for PlacementCase {
    type Choices = PlacementChoices;
    /// No subject: the settings alone determine a case.
    type Subject = ();

    const TOP: &'static [PlanKey] = &PLACEMENT_TOP;
    const QUANTITIES: &'static [Quantity] = &[Quantity::Time];
    const PLACE: &'static [PlaceKey] = &[];
    const MEASURES: &'static [Measure] = &{
        let [first, read, write, ratio, writes, blocks] = Measure::OF_PLACEMENTS;
        [first, read, write, ratio, writes, blocks, Measure::MOVEMENTS]
    };

    fn place(&self) -> Vec<Value> {
        Vec::new()
    }

    fn usual_name(_: &PlacementChoices) -> String {
        String::new()
    }

    fn subjects(_: &DeTable<'_>, _: &PlanErrors) -> impl ExactSizeIterator<Item = ()> {
        std::iter::once(())
    }

    fn case(
        (): &(),
        _: &Chosen<String>,
        choices: &PlacementChoices,
        machine: MachineDescription,
        seed: u64,
    ) -> Result<Option<Self>, Misfit> {
        Ok(Some(choices.case(machine, seed)))
    }

    fn place_of(_: &experiment::Error, (): &()) -> Option<Range<usize>> {
        None
    }
}

impl PlannedCase for PlacementCase {
    fn machine(&self) -> &MachineDescription {
        &self.machine
    }

    fn printed(&self) -> String {
        format!("{:?}", self.experiment())
    }

    /// Returns the approximate number of requests: each batch is read once, and each write is written once and read
    /// back once.
    fn cost(&self) -> u64 {
        let blocks = u64::from(self.options.jobs) * self.job_blocks();
        blocks / self.options.read_blocks.max(1) + 2 * blocks / self.options.write_blocks.max(1)
    }

    /// Returns the size in bytes of all runs: those that are read, and those of the same size that are written.
    fn stored_bytes(&self) -> u64 {
        let blocks = 2 * u64::from(self.options.jobs) * self.job_blocks();
        let is_stored = self.options.contents == Contents::Real;
        if is_stored { blocks.saturating_mul(self.options.block_bytes) } else { 0 }
    }

    fn check(&self) -> Result<(), experiment::Error> {
        PlacementCase::check(self)
    }

    fn trial(&self, number: u64) -> Result<Trial, experiment::Error> {
        PlacementCase::trial(self, number)
    }

    fn measurement(&self, trial: &Trial) -> Measurement {
        let placed = Some(PlacedMeasurement::of(self, trial));
        Measurement { placed, ..Measurement::new(&self.machine, trial) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Plan;

    fn parse(text: &str) -> Result<Plan<PlacementCase>, String> {
        Plan::parse(text, "p.toml").map_err(|error| error.to_string())
    }

    #[test]
    fn a_plan_has_a_cell_for_each_combination() {
        let text = "name = \"x\"\ntrials = 3\nfigure = { number = 2 }\nrun_blocks = 100\n\
                    [[variant]]\nname = \"a\"\npolicy = 3\n[[variant]]\nname = \"b\"\nbuffer-blocks = 4000\n\
                    [vary]\njobs = [2, 3]\n";
        let plan = parse(text).expect("it makes sense");
        assert_eq!((plan.trials, plan.number(), plan.cells.len()), (3, Some(2), 4));
        let (first, last) = (&plan.cells[0].case, &plan.cells[3].case);
        assert_eq!(
            (first.options.policy.number(), first.options.jobs, first.options.buffer_blocks),
            (3, 2, None)
        );
        assert_eq!(
            (last.options.policy.number(), last.options.jobs, last.options.buffer_blocks),
            (2, 3, Some(4000))
        );
        assert_eq!(last.machine.nodes.compute.value, 3, "the machine has a node for each job");
    }

    #[test]
    fn mistakes_are_reported_with_file_and_line() {
        for (text, why) in [
            ("name = \"x\"\npolicy = 1", "p.toml:2: all: policy 1 (dedicated write disks) leaves"),
            ("name = \"x\"\nblock = \"8 KiB\"\njobs = 6", "p.toml:3: all: 6 jobs need 6 disks"),
            ("name = \"x\"\nread_blocks = 0", "from 1 to"),
            (
                "name = \"x\"\nkind = \"copy\"\njobs = 2\ndisks = 2\nwork = \"1 ms\"",
                "p.toml:5: work: it has no effect: these jobs copy",
            ),
            ("name = \"x\"\nbuffer_blocks = 100", "may wait forever"),
            ("name = \"x\"\npatterns = [\"rb\"]", "patterns"),
            ("name = \"x\"\nfigure = { numbre = 2 }", "number"),
        ] {
            let error = parse(text).expect_err("refused");
            assert!(error.contains(why) && error.contains("p.toml"), "{error}");
        }
    }
}
