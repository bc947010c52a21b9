//! A plan: a TOML file that describes simulations.
//!
//! ```toml
//! name = "table-02"                        # required; also the name of its results
//! title = "FCFS against C-SCAN"            # a line for people
//! trials = 5                               # of each cell; default 5
//! seed = 1                                 # seed of all random numbers; default 1
//! layout = "contiguous"                    # a setting: the default of all variants
//!
//! [[variant]]                              # one side of the comparison; default: a single one
//! name = "fcfs"
//! scheduling = "fcfs"
//!
//! [vary]                                   # every combination of these values, for every variant
//! outstanding = [1, 2, 4]
//! set = { "nodes.io" = [8, 16] }           # values of the machine
//!
//! [figure]                                 # the published figure, if the plan reproduces one; likewise [table]
//! number = 2
//! value = "throughput"
//! ```
//!
//! The keys of settings are the fields of a case, and `set`. A setting at the top is a default; others are in a variant
//! or in `[vary]`. Keys can also be spelled with hyphens, like options. A size is a text, or a number of bytes.
//!
//! There are two kinds of plans, [`PlanKind`]: access methods (`pattern_plan.rs`) and jobs that share disks
//! (`placement_plan.rs`).

use std::ops::{Range, RangeInclusive};
use std::path::Path;

use description::{Error, MachineDescription, Misfit, SIZE_LIMIT};
use experiment::{Case, FieldSet};
use toml::Spanned;
use toml::de::DeTable;

use crate::ignored_settings::IgnoredSettings;
use crate::kind::PlanKind;
use crate::measure::Quantity;
use crate::plan_errors::PlanErrors;
use crate::settings::{PlanForm, Series, Settings};
use crate::value::{TomlValue, entries, unknown_key};

/// Maximum number of cells in a plan.
pub const CELLS_MAX: usize = 10_000;

/// Maximum number of trials of a cell.
pub const TRIALS_MAX: u64 = 1000;

/// Default number of trials, as in the reports.
const TRIALS: u64 = 5;

const SEED: u64 = 1;

/// A plan of simulations: cases of one kind.
#[derive(Clone, Debug)]
pub struct Plan<K = Case> {
    /// Name of the plan.
    pub name: String,
    /// Title, one line; may be empty.
    pub title: String,
    /// File of the plan, as the caller named it.
    pub file: String,
    /// Number of trials of each cell, at least one.
    pub trials: u64,
    /// Seed of all random numbers.
    pub seed: u64,
    /// Published table or figure for comparison.
    pub published: Option<Publication>,
    /// All combinations: for each record size and each pattern, if any, the variants in their order.
    pub cells: Vec<PlannedCell<K>>,
}

/// One combination of a plan.
#[derive(Clone, Debug)]
pub struct PlannedCell<K = Case> {
    /// Name of the variant.
    pub variant: String,
    /// Keys and values of the varied settings, in the order of the plan.
    pub varied: Vec<(String, String)>,
    /// Name or path of the machine.
    pub machine: String,
    /// Replaced values of the machine, by dotted key.
    pub set: Vec<(String, String)>,
    /// Case to run.
    pub case: K,
}

/// A published table or figure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Publication {
    /// Kind: table or figure.
    pub kind: Kind,
    /// Number of the table or figure.
    pub number: u32,
    /// Measured system: `tpfs`, `ddio`, ...; empty for a figure.
    pub system: String,
    /// Quantity of the published values.
    pub quantity: Quantity,
}

/// Kind of published results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A table.
    Table,
    /// A figure.
    Figure,
}

impl<K: PlanKind> Plan<K> {
    /// Reads and checks the plan at `path`. Paths in the plan are relative to its folder. Fails with a list of all
    /// mistakes in the plan.
    pub fn load(path: &str) -> Result<Self, Error> {
        Self::parse(&description::read_text(path)?, path)
    }

    /// Reads and checks `text`. Errors mention `file`, and paths in the plan are relative to the folder of `file`.
    pub fn parse(text: &str, file: &str) -> Result<Self, Error> {
        let table = parse_table(text).map_err(|misfit| misfit.refused(text, file))?;
        let folder = Path::new(file).parent().unwrap_or(Path::new(""));
        let misfits = PlanErrors::default();
        let subjects = K::subjects(table.get_ref(), &misfits);
        let draft = Draft::read(table.get_ref(), folder, &misfits);
        let plan = misfits.judge(()).and_then(|()| {
            let plan = draft.plan(subjects, file, &misfits);
            misfits.judge(plan)
        });
        plan.map_err(|all| Misfit::all_refused(all, text, file))
    }
}

impl<K> Plan<K> {
    /// Returns the number of the published table or figure, if the plan reproduces one.
    pub fn number(&self) -> Option<u32> {
        self.published.as_ref().map(|published| published.number)
    }
}

/// Parses the top-level table of a plan of any kind.
fn parse_table(text: &str) -> Result<Spanned<DeTable<'_>>, Misfit> {
    if text.len() > SIZE_LIMIT {
        let message = format!("expected at most {SIZE_LIMIT} bytes of plan");
        return Err(Misfit { span: 0..0, message });
    }
    DeTable::parse(text)
        .map_err(|error| Misfit { span: error.span().unwrap_or(0..0), message: error.message().to_owned() })
}

impl<K> PlannedCell<K> {
    /// Returns the variant and its varied settings, as in `fcfs,outstanding=4`.
    pub fn series(&self) -> String {
        let varied = self.varied.iter().map(|(key, value)| format!(",{key}={value}"));
        std::iter::once(self.variant.clone()).chain(varied).collect()
    }
}

impl<K: PlanKind> PlannedCell<K> {
    /// Returns the name of the cell within its plan: its [series](Self::series), and the other parts that this kind of
    /// plan has. Examples are `fcfs/rb/8192` and, with varied settings, `fcfs,outstanding=4/rb/8192`.
    pub fn label(&self) -> String {
        let place = self.case.place().into_iter().map(|value| format!("/{value}"));
        std::iter::once(self.series()).chain(place).collect()
    }
}

/// Contents of a plan's file, before they are combined to cells.
struct Draft<'a, K: PlanKind> {
    head: Head,
    published: Option<Publication>,
    settings: Settings<'a, K::Choices>,
}

/// Keys at the top of every plan.
struct Head {
    name: String,
    title: String,
    trials: u64,
    seed: u64,
    /// Place of the name in the file.
    span: Range<usize>,
}

impl Head {
    fn read<'a>(table: &'a DeTable<'a>, misfits: &PlanErrors) -> Self {
        let get = |key: &str| table.get(key).map(TomlValue);
        let name = misfits.note(get("name").ok_or_else(|| Misfit {
            span: 0..0,
            message: "the name is missing: expected a line such as name = \"table-02\"".to_owned(),
        }));
        let text =
            |written: Option<TomlValue<'a>>| misfits.note_or(written.map_or(Ok(""), |text| text.text()), "");
        let number = |written: Option<TomlValue<'_>>, allowed: RangeInclusive<u64>, usual| {
            misfits.note_or(written.map_or(Ok(usual), |number| number.integer(allowed)), usual)
        };
        Head {
            name: text(name).to_owned(),
            title: text(get("title")).to_owned(),
            trials: number(get("trials"), 1..=TRIALS_MAX, TRIALS),
            seed: number(get("seed"), 0..=i64::MAX as u64, SEED),
            span: name.map_or(0..0, |name| name.span()),
        }
    }
}

impl<'a, K: PlanKind> Draft<'a, K> {
    /// Reads the draft, leaving out mistakes, which it reports.
    fn read(table: &'a DeTable<'a>, folder: &'a Path, misfits: &PlanErrors) -> Self {
        let own_keys: Vec<&str> = K::TOP.iter().map(|key| key.name).collect();
        let form = PlanForm { own_keys: &own_keys, usual_name: K::usual_name };
        let head = Head::read(table, misfits);
        Draft {
            published: published::<K>(table, misfits),
            settings: Settings::read(table, &form, folder, head.span.clone(), misfits),
            head,
        }
    }

    /// Combines the draft to a plan, leaving out mistakes, which it reports.
    fn plan(
        self,
        subjects: impl ExactSizeIterator<Item = K::Subject>,
        file: &str,
        misfits: &PlanErrors,
    ) -> Plan<K> {
        let (counts, span) = self.settings.counts();
        let is_small = misfits.note(check_size(counts.into_iter().chain([subjects.len()]), span)).is_some();
        let series = if is_small { self.settings.series(misfits) } else { Vec::new() };
        let (mut cells, mut unheeded) = (Vec::new(), IgnoredSettings::default());
        for subject in subjects.filter(|_| is_small) {
            for series in &series {
                let cell = misfits.note_once(self.cell(series, &subject)).flatten();
                cell.iter().for_each(|cell| unheeded.note(series, &cell.case));
                cells.extend(cell);
            }
        }
        unheeded.report_to(misfits);
        let Draft { head: Head { name, title, trials, seed, .. }, published, .. } = self;
        Plan { name, title, file: file.to_owned(), trials, seed, published, cells }
    }

    /// Returns the cell of a series and a subject, or `None` if plans exclude this cell.
    fn cell(
        &self,
        series: &Series<'a, K::Choices>,
        subject: &K::Subject,
    ) -> Result<Option<PlannedCell<K>>, Misfit> {
        let Series { variant, varied, choices, machine, .. } = series;
        let case = |choices: &_, machine| K::case(subject, variant, choices, machine, self.head.seed);
        let Some(planned) = case(choices, MachineDescription::clone(machine))? else {
            return Ok(None);
        };
        let chosen = choices.machine_choice();
        let cell = PlannedCell {
            variant: variant.value.clone(),
            varied: varied.clone(),
            machine: chosen.name,
            set: chosen.set.into_iter().collect(),
            case: planned,
        };
        cell.case.check().map_err(|error| {
            let checked = |choices: &_, machine| Some(case(choices, machine).ok()??.check());
            let is_possible =
                |choices: &_, machine| checked(choices, machine).is_some_and(|checked| checked.is_ok());
            // Without this setting, another mistake may appear. Then the error is a different one, which also shows
            // that this setting was the mistake.
            let is_mended = |choices: &_, machine| {
                checked(choices, machine).is_some_and(|checked| {
                    checked.err().map(|other| other.to_string()) != Some(error.to_string())
                })
            };
            // A key that is not in the plan has no place.
            let of_subject = K::place_of(&error, subject).filter(|span| !span.is_empty());
            let span = of_subject
                .or_else(|| self.settings.at_fault(series, is_possible))
                .or_else(|| self.settings.at_fault(series, is_mended));
            let message = format!("{}: {error}", cell.label());
            Misfit { span: span.unwrap_or_else(|| variant.span.clone()), message }
        })?;
        Ok(Some(cell))
    }
}

/// Rejects a plan that has too many combinations.
fn check_size(counts: impl Iterator<Item = usize>, span: Range<usize>) -> Result<(), Misfit> {
    let cells = counts.into_iter().try_fold(1usize, |cells, count| cells.checked_mul(count));
    if cells.is_none_or(|cells| cells > CELLS_MAX) {
        let cells = cells.map_or_else(|| "too many".to_owned(), |cells| cells.to_string());
        let message =
            format!("expected at most {CELLS_MAX} combinations, not {cells}: make several plans of this one");
        return Err(Misfit { span, message });
    }
    Ok(())
}

/// Returns the published table or figure that a plan names, if any.
fn published<K: PlanKind>(table: &DeTable<'_>, misfits: &PlanErrors) -> Option<Publication> {
    let top = |key: &str| {
        let is_own = K::TOP.iter().any(|own| own.name == key);
        table.get(key).filter(|_| is_own).map(TomlValue)
    };
    let (kind, written, keys): (_, _, &[&str]) = match (top("table"), top("figure")) {
        (None, None) => return None,
        (Some(table), None) => (Kind::Table, table, &["number", "system", "value"]),
        (None, Some(figure)) => (Kind::Figure, figure, &["number", "value"]),
        (Some(_), Some(figure)) => {
            misfits.add(figure.misfit("expected a table or a figure, not both"));
            return None;
        }
    };
    // If there is only one possible quantity, the plan need not name it.
    let keys = if K::QUANTITIES.len() == 1 { &keys[..keys.len() - 1] } else { keys };
    let table = misfits.note(written.table())?;
    for (key, span, _) in entries(table).into_iter().filter(|(key, ..)| !keys.contains(key)) {
        misfits.add(unknown_key(key, span, keys));
    }
    let get = |key: &str| {
        let value = table.get(key).map(TomlValue);
        value.ok_or_else(|| written.misfit(format!("{key} is missing: expected {}", keys.join(", "))))
    };
    let number = misfits.note(get("number").and_then(|number| number.integer(1..=u64::from(u32::MAX))));
    let system = match kind {
        Kind::Table => misfits.note(get("system").and_then(|system| system.text())),
        Kind::Figure => Some(""),
    };
    let quantity = match K::QUANTITIES {
        [only] => Ok(*only),
        several => get("value").and_then(|value| quantity(value, several)),
    };
    let quantity = misfits.note(quantity);
    Some(Publication { kind, number: number? as u32, system: system?.to_owned(), quantity: quantity? })
}

/// Returns the quantity of this name. Fails if the quantity is not among `several`.
fn quantity(named: TomlValue<'_>, several: &[Quantity]) -> Result<Quantity, Misfit> {
    let text = named.text()?;
    let found = several.iter().copied().find(|quantity| quantity.name() == text);
    let names: Vec<&str> = several.iter().map(|quantity| quantity.name()).collect();
    found.ok_or_else(|| named.misfit(format!("expected {}", names.join(" or "))))
}
