//! The fields of jobs that share disks, like the fields of access methods in `fields.rs`: options of `starfish merge`,
//! keys of plans of placements, and their pages in the manual.

use std::collections::BTreeMap;

use description::MachineDescription;
use fs::Scheduling;
use jobs::BatchReading;
use placement::Policy;

use crate::fields::{FieldOf, FieldSet, FieldValuesOf, MachineChoice, Shown, parsed, time};
use crate::placement_case::{PlacedJob, PlacementCase, PlacementOptions};

/// A field of jobs that share disks.
pub type PlacementField = FieldOf<PlacementChoices>;

/// A value for each of [`PLACEMENT_FIELDS`].
#[derive(Clone, Debug)]
pub struct PlacementChoices {
    /// Name or path of the machine.
    pub machine: String,
    /// Replaced values of the machine, by dotted key.
    pub set: BTreeMap<String, String>,
    /// Options of the jobs and their disks.
    pub options: PlacementOptions,
}

/// Maximum values of the fields. A larger number is a mistake, and a simulation with it would run out of memory.
const NODES_MAX: u64 = 1024;
const RUNS_MAX: u64 = 1 << 16;
const BLOCKS_MAX: u64 = u32::MAX as u64;
const BLOCK_BYTES_MAX: u64 = 1 << 30;

/// All fields, in the order of the columns of results.
pub static PLACEMENT_FIELDS: [PlacementField; 16] = [
    FieldOf {
        name: "machine",
        takes: FieldValuesOf::Text("NAME", "name or path", |choices, name| {
            choices.machine = name.to_owned();
            Ok(())
        }),
        default: "\"shared-disks-1996\"",
        meaning: "The machine: a name that `starfish machines` lists, or a TOML file. It gets a compute node \
                  for each job, and the shared disks.",
        column: "",
        shown: |case| Shown::Text(case.machine.name.clone()),
    },
    FieldOf {
        name: "kind",
        takes: FieldValuesOf::Name(&["merge", "copy", "interleave"], |choices, text| {
            parsed(text).map(|kind| choices.options.kind = kind)
        }),
        default: "\"merge\"",
        meaning: "Work of each job: merge its runs; copy one of two disks to the other; interleave one run \
                  of each disk except the one it writes to.",
        column: "kind",
        shown: |case| Shown::Text(case.options.kind.to_string()),
    },
    FieldOf {
        name: "policy",
        takes: FieldValuesOf::Whole(1..=4, |choices, number| {
            choices.options.policy = Policy::numbered(number as u8).unwrap_or(choices.options.policy);
        }),
        default: "2",
        meaning: "Placement of the runs of merges: 1 separate disks for writing, 2 all disks except that of \
                  the output, 3 as 2 but shifted so that each job reads where it writes, 4 all disks.",
        column: "policy",
        shown: |case| match case.options.kind {
            PlacedJob::Merge => Shown::Whole(case.options.policy.number().into()),
            PlacedJob::Copy | PlacedJob::Interleave => Shown::Missing,
        },
    },
    FieldOf {
        name: "jobs",
        takes: FieldValuesOf::Whole(1..=NODES_MAX, |choices, count| choices.options.jobs = count as u32),
        default: "5",
        meaning: "Number of concurrent jobs, each on a separate compute node and writing to a separate disk.",
        column: "jobs",
        shown: |case| Shown::Whole(case.options.jobs.into()),
    },
    FieldOf {
        name: "disks",
        takes: FieldValuesOf::Whole(1..=NODES_MAX, |choices, count| choices.options.disks = count as u32),
        default: "5",
        meaning: "Number of shared disks.",
        column: "disks",
        shown: |case| Shown::Whole(case.options.disks.into()),
    },
    FieldOf {
        name: "runs",
        takes: FieldValuesOf::Whole(1..=RUNS_MAX, |choices, count| choices.options.runs = count as u32),
        default: "20",
        meaning: "Input runs of each merge.",
        column: "runs",
        shown: |case| match case.options.kind {
            PlacedJob::Merge => Shown::Whole(case.options.runs.into()),
            PlacedJob::Copy | PlacedJob::Interleave => Shown::Missing,
        },
    },
    FieldOf {
        name: "run_blocks",
        takes: FieldValuesOf::Whole(1..=BLOCKS_MAX, |choices, blocks| choices.options.run_blocks = blocks),
        default: "1000",
        meaning: "Blocks of an input run.",
        column: "run_blocks",
        shown: |case| Shown::Whole(case.options.run_blocks),
    },
    FieldOf {
        name: "block",
        takes: FieldValuesOf::Size(1..=BLOCK_BYTES_MAX, |choices, bytes| choices.options.block_bytes = bytes),
        default: "\"4 KiB\"",
        meaning: "Size of a block.",
        column: "block_bytes",
        shown: |case| Shown::Whole(case.options.block_bytes),
    },
    FieldOf {
        name: "read_blocks",
        takes: FieldValuesOf::Whole(1..=BLOCKS_MAX, |choices, blocks| choices.options.read_blocks = blocks),
        default: "12",
        meaning: "Number of blocks read at once: a batch (b_r).",
        column: "read_blocks",
        shown: |case| Shown::Whole(case.options.read_blocks),
    },
    FieldOf {
        name: "write_blocks",
        takes: FieldValuesOf::Whole(1..=BLOCKS_MAX, |choices, blocks| choices.options.write_blocks = blocks),
        default: "40",
        meaning: "Number of blocks written at once (b_w).",
        column: "write_blocks",
        shown: |case| Shown::Whole(case.options.write_blocks),
    },
    FieldOf {
        name: "scheduling",
        takes: FieldValuesOf::Name(&Scheduling::NAMES, |choices, text| {
            parsed(text).map(|scheduling| choices.options.scheduling = scheduling)
        }),
        default: "\"fcfs\"",
        meaning: "The order in which a disk serves requests.",
        column: "scheduling",
        shown: |case| Shown::Text(case.options.scheduling.to_string()),
    },
    FieldOf {
        name: "buffer_blocks",
        takes: FieldValuesOf::WholeOrUnlimited(1..=BLOCKS_MAX, |choices, blocks| {
            choices.options.buffer_blocks = blocks
        }),
        default: "\"unlimited\"",
        meaning: "Number of buffer blocks for all merges together. Each has an equal portion, for requested \
                  and unused input and for output that is not on its disk.",
        column: "buffer_blocks",
        shown: |case| case.options.buffer_blocks.map_or(Shown::Missing, Shown::Whole),
    },
    FieldOf {
        name: "on_demand",
        takes: FieldValuesOf::Flag(|choices, on_demand| {
            let prefetched = BatchReading::Prefetched;
            choices.options.reading = if on_demand { BatchReading::OnDemand } else { prefetched };
        }),
        default: "false",
        meaning: "Request the next batch of a run when the last block of the previous batch is used, instead \
                  of its first.",
        column: "on_demand",
        shown: |case| Shown::Flag(case.options.reading == BatchReading::OnDemand),
    },
    FieldOf {
        name: "work",
        takes: FieldValuesOf::Text("TIME", "time", |choices, text| {
            choices.options.work = time(text)?;
            Ok(())
        }),
        default: "\"0 ms\"",
        meaning: "Processor time that a merge needs for each block.",
        column: "work",
        shown: |case| Shown::Text(case.options.work.to_string()),
    },
    FieldOf {
        name: "stagger",
        takes: FieldValuesOf::Text("TIME", "time", |choices, text| {
            choices.options.stagger = time(text)?;
            Ok(())
        }),
        default: "\"0 ms\"",
        meaning: "Time by which each job begins later than the previous one.",
        column: "stagger",
        shown: |case| Shown::Text(case.options.stagger.to_string()),
    },
    FieldOf {
        name: "contents",
        takes: FieldValuesOf::Name(&["real", "phantom"], |choices, text| {
            parsed(text).map(|contents| choices.options.contents = contents)
        }),
        default: "\"phantom\"",
        meaning: "Contents of files: real bytes, or phantoms, which take no memory and are not checked.",
        column: "contents",
        shown: |case| Shown::Text(case.options.contents.to_string()),
    },
];

impl Default for PlacementChoices {
    fn default() -> Self {
        PlacementChoices {
            machine: "shared-disks-1996".to_owned(),
            set: BTreeMap::new(),
            options: PlacementOptions::default(),
        }
    }
}

impl PlacementChoices {
    /// Returns the case of these choices on this machine.
    pub fn case(&self, machine: MachineDescription, seed: u64) -> PlacementCase {
        PlacementCase { machine, options: self.options, seed }
    }
}

impl FieldSet for PlacementChoices {
    type Case = PlacementCase;

    fn fields() -> &'static [PlacementField] {
        &PLACEMENT_FIELDS
    }

    fn machine(&mut self) -> &mut String {
        &mut self.machine
    }

    fn set(&mut self) -> &mut BTreeMap<String, String> {
        &mut self.set
    }

    fn machine_choice(&self) -> MachineChoice {
        let nodes_and_disks = Some((self.options.jobs, self.options.disks));
        MachineChoice { name: self.machine.clone(), set: self.set.clone(), nodes_and_disks }
    }

    fn without_effect(field: &str, case: &PlacementCase) -> Option<String> {
        unheeded_by_kind(field, case.options.kind)
    }
}

/// Returns the reason why a field has no effect on jobs of this kind, whatever its value; `None` if it may have an
/// effect.
pub fn unheeded_by_kind(field: &str, kind: PlacedJob) -> Option<String> {
    let is_of_merges = matches!(field, "policy" | "runs" | "on_demand" | "work");
    (is_of_merges && kind != PlacedJob::Merge).then(|| format!("these jobs {kind}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::Given;

    /// The documented default of each field must be the default of the choices.
    #[test]
    fn documented_defaults_equal_those_of_the_choices() {
        for field in &PLACEMENT_FIELDS {
            let mut choices = PlacementChoices::default();
            let default = field.default.trim_matches('"');
            field
                .choose(&mut choices, Given::Word(default))
                .unwrap_or_else(|why| panic!("{}: {why}", field.name));
            assert_eq!(
                format!("{choices:?}"),
                format!("{:?}", PlacementChoices::default()),
                "{}",
                field.name
            );
        }
    }

    #[test]
    fn the_machine_has_a_node_for_each_job_and_each_disk() {
        let mut choices = PlacementChoices::default();
        choices.options.jobs = 3;
        choices.options.disks = 7;
        let machine = choices.load_machine().expect("it is built in");
        assert_eq!((machine.nodes.compute.value, machine.nodes.io.value), (3, 7));
        assert!(choices.case(machine, 1).check().is_ok());
    }
}
