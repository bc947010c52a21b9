//! A plan of jobs that share disks: the same grammar as `plan.rs`, with the fields of
//! `crates/experiment/src/placement_fields.rs` and without patterns and records.
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

use std::path::Path;

use description::{Error, MachineDescription, Misfit};
use experiment::{Field, PlacementCase, PlacementChoices, PlacementField};
use toml::de::DeTable;

use crate::misfits::Misfits;
use crate::plan::{Head, check_size, parse_table};
use crate::reference::{PLACEMENT_TOP, names};
use crate::settings::{PlanForm, Series, Settings};
use crate::value::{TomlValue, entries, unknown_key};

/// What is to be simulated of jobs that share disks.
#[derive(Clone, Debug)]
pub struct PlacementPlan {
    /// What it is called.
    pub name: String,
    /// What it is about, in a line; may be empty.
    pub title: String,
    /// How many trials of each cell, at least one.
    pub trials: u64,
    /// Where all randomness comes from.
    pub seed: u64,
    /// Which published figure it is a part of.
    pub figure: Option<u32>,
    /// All combinations, the variants in their order.
    pub cells: Vec<PlacementCell>,
}

/// One combination of such a plan.
#[derive(Clone, Debug)]
pub struct PlacementCell {
    /// The name of the variant.
    pub variant: String,
    /// Keys and values of what is varied, in the order of the plan.
    pub varied: Vec<(String, String)>,
    /// What is run.
    pub case: PlacementCase,
}

const OWN_KEYS: [&str; PLACEMENT_TOP.len()] = names(&PLACEMENT_TOP);

const FORM: PlanForm<PlacementChoices> = PlanForm { own_keys: &OWN_KEYS, usual_name: |_| String::new() };

impl PlacementPlan {
    /// Whether this is the text of such a plan, by its keys, and not of one of access methods: it has no patterns, and
    /// chooses something that only jobs have which share disks.
    pub fn is_one(text: &str) -> bool {
        let Ok(table) = DeTable::parse(text) else { return false };
        let table = table.get_ref();
        let variants = table.get("variant").and_then(|variants| variants.get_ref().as_array());
        let variants = variants.into_iter().flatten().filter_map(|variant| variant.get_ref().as_table());
        let vary = table.get("vary").and_then(|vary| vary.get_ref().as_table());
        let keys = std::iter::once(table).chain(variants).chain(vary).flat_map(entries);
        let is_own = |key: &str| PlacementField::named(key).is_some() && Field::named(key).is_none();
        table.get("patterns").is_none() && keys.map(|(key, ..)| key).any(is_own)
    }

    /// Reads and checks `text`; complaints name `file`, and paths in it are relative to the folder of that. Fails with
    /// all that is wrong in it.
    pub fn parse(text: &str, file: &str) -> Result<PlacementPlan, Error> {
        let table = parse_table(text).map_err(|misfit| misfit.refused(text, file))?;
        let folder = Path::new(file).parent().unwrap_or(Path::new(""));
        let misfits = Misfits::default();
        let table = table.get_ref();
        let head = Head::read(table, &misfits);
        let figure = table.get("figure").map(TomlValue).and_then(|figure| misfits.note(number(figure)));
        let settings = Settings::read(table, &FORM, folder, head.span.clone(), &misfits);
        let plan = misfits.judge(()).and_then(|()| {
            let cells = cells(&settings, head.seed, &misfits);
            let Head { name, title, trials, seed, .. } = head;
            misfits.judge(PlacementPlan { name, title, trials, seed, figure, cells })
        });
        plan.map_err(|all| Misfit::all_refused(all, text, file))
    }
}

fn cells(settings: &Settings<'_, PlacementChoices>, seed: u64, misfits: &Misfits) -> Vec<PlacementCell> {
    let (counts, span) = settings.counts();
    if misfits.note(check_size(counts.into_iter(), span)).is_none() {
        return Vec::new();
    }
    let series = settings.series(misfits).into_iter();
    series.filter_map(|series| misfits.note_once(cell(series, seed))).collect()
}

fn cell(series: Series<PlacementChoices>, seed: u64) -> Result<PlacementCell, Misfit> {
    let Series { variant, varied, choices, machine } = series;
    let case = choices.case(MachineDescription::clone(&machine), seed);
    case.check().map_err(|error| {
        let varied: String = varied.iter().map(|(key, value)| format!(",{key}={value}")).collect();
        Misfit { span: variant.span.clone(), message: format!("{}{varied}: {error}", variant.value) }
    })?;
    Ok(PlacementCell { variant: variant.value, varied, case })
}

/// The number of the published figure.
fn number(figure: TomlValue<'_>) -> Result<u32, Misfit> {
    let table = figure.table()?;
    if let Some((key, span, _)) = entries(table).into_iter().find(|(key, ..)| *key != "number") {
        return Err(unknown_key(key, span, &["number"]));
    }
    let number = table.get("number").map(TomlValue);
    let number = number.ok_or_else(|| figure.misfit("number is missing: expected { number = 2 }"))?;
    Ok(number.integer(1..=u64::from(u32::MAX))? as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<PlacementPlan, String> {
        PlacementPlan::parse(text, "p.toml").map_err(|error| error.to_string())
    }

    #[test]
    fn a_plan_is_all_combinations() {
        let text = "name = \"x\"\ntrials = 3\nfigure = { number = 2 }\nrun_blocks = 100\n\
                    [[variant]]\nname = \"a\"\npolicy = 3\n[[variant]]\nname = \"b\"\nbuffer-blocks = 4000\n\
                    [vary]\njobs = [2, 3]\n";
        let plan = parse(text).expect("it makes sense");
        assert_eq!((plan.trials, plan.figure, plan.cells.len()), (3, Some(2), 4));
        let (first, last) = (&plan.cells[0].case, &plan.cells[3].case);
        assert_eq!((first.policy.number(), first.jobs, first.buffer_blocks), (3, 2, None));
        assert_eq!((last.policy.number(), last.jobs, last.buffer_blocks), (2, 3, Some(4000)));
        assert_eq!(last.machine.nodes.compute.value, 3, "the machine has a node for each job");
        assert!(PlacementPlan::is_one(text) && PlacementPlan::is_one("name = \"x\"\npolicy = 4"));
        assert!(!PlacementPlan::is_one("name = \"x\"\nmethod = \"traditional\"\npatterns = [\"rb\"]"));
    }

    #[test]
    fn what_makes_no_sense_is_named_with_its_line() {
        for (text, why) in [
            ("name = \"x\"\npolicy = 1", "no disk to read from"),
            ("name = \"x\"\njobs = 6", "6 jobs need 6 disks"),
            ("name = \"x\"\nread_blocks = 0", "from 1 to"),
            ("name = \"x\"\nbuffer_blocks = 100", "may wait for ever"),
            ("name = \"x\"\npatterns = [\"rb\"]", "patterns"),
            ("name = \"x\"\nfigure = { numbre = 2 }", "number"),
        ] {
            let error = parse(text).expect_err("refused");
            assert!(error.contains(why) && error.contains("p.toml"), "{error}");
        }
    }
}
