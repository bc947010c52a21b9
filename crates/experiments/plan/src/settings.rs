//! Settings of a plan for its cases: defaults at the top, variants, and varied values. Works for fields of any kind of
//! plan.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;
use std::rc::Rc;

use description::{MachineDescription, Misfit, in_folder};
use experiment::{FieldOf, FieldSet, field_names};
use toml::de::{DeTable, DeValue};

use crate::plan_errors::PlanErrors;
use crate::reference::{TABLES, names};
use crate::value::{TomlValue, entries, unknown_key};

/// A chosen value, and its place in the plan.
#[derive(Clone)]
pub struct Chosen<T> {
    pub(crate) value: T,
    pub(crate) span: Range<usize>,
}

/// Properties of one kind of plans in addition to the fields of the cases.
pub(crate) struct PlanForm<'k, C> {
    /// Keys that are allowed only at the top.
    pub(crate) own_keys: &'k [&'static str],
    /// Function that returns the name of the only variant if the plan defines none; an empty text if it has no name.
    pub(crate) usual_name: fn(&C) -> String,
}

/// Settings for the cells of a plan.
pub(crate) struct Settings<'a, C> {
    folder: &'a Path,
    variants: Vec<Variant<'a, C>>,
    axes: Vec<Axis<'a>>,
}

struct Variant<'a, C> {
    name: Chosen<String>,
    choices: C,
    /// Place in the plan where the machine or one of its values was chosen.
    machine_span: Range<usize>,
    /// Settings that the plan chooses for the variant, by key. Keys of the machine have the prefix `set.`.
    settings: BTreeMap<String, Setting<'a>>,
}

/// A setting: the value of a key.
#[derive(Clone)]
struct Setting<'a> {
    value: TomlValue<'a>,
    /// Place of the key.
    span: Range<usize>,
    /// True if the value equals the default.
    is_usual: bool,
}

/// A varied setting: its key, with the prefix `set.` for a value of the machine, and its values.
struct Axis<'a> {
    key: String,
    span: Range<usize>,
    values: Vec<TomlValue<'a>>,
}

/// A variant with one value of each varied setting.
pub(crate) struct Series<'a, C> {
    pub(crate) variant: Chosen<String>,
    pub(crate) varied: Vec<(String, String)>,
    pub(crate) choices: C,
    pub(crate) machine: Rc<MachineDescription>,
    /// Keys that the plan chooses for the series, including varied ones, and their places. Keys whose values equal the
    /// default are omitted.
    pub(crate) keys: Rc<BTreeMap<String, Range<usize>>>,
    /// All settings that the plan chooses for the series, by key, including varied ones.
    values: Vec<(String, TomlValue<'a>)>,
}

/// Prefix of keys for values of a machine.
const SET: &str = "set.";

const TABLE_KEYS: [&str; TABLES.len()] = names(&TABLES);

impl<'a, C: FieldSet> Settings<'a, C> {
    /// Reads the settings, leaving out mistakes, which it reports. Mistakes that have no place are reported at `span`.
    pub(crate) fn read(
        table: &'a DeTable<'a>,
        form: &PlanForm<'_, C>,
        folder: &'a Path,
        span: Range<usize>,
        misfits: &PlanErrors,
    ) -> Self {
        let defaults = Variant {
            name: Chosen { value: String::new(), span: span.clone() },
            choices: C::default(),
            machine_span: span,
            settings: BTreeMap::new(),
        };
        let vary = table.get("vary").map(TomlValue);
        let settings = Settings {
            folder,
            variants: variants(table, defaults, form, folder, misfits),
            axes: vary.map_or(Vec::new(), |vary| axes::<C>(vary, folder, misfits)),
        };
        settings.check_axes(misfits);
        settings
    }

    /// Returns the sizes of all lists that are combined, and the place of the last list.
    pub(crate) fn counts(&self) -> (Vec<usize>, Range<usize>) {
        let axes = self.axes.iter().map(|axis| axis.values.len());
        let span = self.axes.last().map_or(0..0, |axis| axis.span.clone());
        (std::iter::once(self.variants.len()).chain(axes).collect(), span)
    }

    /// Reports settings that are both varied and chosen.
    fn check_axes(&self, misfits: &PlanErrors) {
        for axis in &self.axes {
            let chosen = self.variants.iter().find(|variant| variant.settings.contains_key(&axis.key));
            if let Some(variant) = chosen {
                let (key, name) = (&axis.key, &variant.name.value);
                let message = format!(
                    "{key} is both in [vary] and set for variant {name}: expected it in one place only"
                );
                misfits.add(Misfit { span: axis.span.clone(), message });
            }
        }
    }

    /// Returns every variant with every combination of varied values. The last varied setting changes fastest.
    pub(crate) fn series(&self, misfits: &PlanErrors) -> Vec<Series<'a, C>> {
        // Cache the machines, so that each machine is read only once and its mistakes are reported only once.
        let mut machines: BTreeMap<_, Option<Rc<MachineDescription>>> = BTreeMap::new();
        let mut all = Vec::new();
        for variant in &self.variants {
            let keys = Rc::new(self.unusual_keys(variant));
            let count = self.axes.iter().map(|axis| axis.values.len()).product();
            for combination in 0..count {
                let combined = misfits.note_once(self.combine(variant, combination));
                let Some((varied, choices)) = combined else { continue };
                let machine = machines.entry(choices.machine_choice());
                let values = self.values(variant, combination);
                let load = || misfits.note_once(self.machine(variant, &choices, &values)).map(Rc::new);
                let Some(machine) = machine.or_insert_with(load).clone() else { continue };
                let (variant, keys) = (variant.name.clone(), keys.clone());
                all.push(Series { variant, varied, choices, machine, keys, values });
            }
        }
        all
    }

    /// Returns the keys that are chosen for a variant or varied, with their places. Omits settings that equal the
    /// default.
    fn unusual_keys(&self, variant: &Variant<'a, C>) -> BTreeMap<String, Range<usize>> {
        let chosen = variant.settings.iter().filter(|(_, setting)| !setting.is_usual);
        let chosen = chosen.map(|(key, setting)| (key.clone(), setting.span.clone()));
        chosen.chain(self.axes.iter().map(|axis| (axis.key.clone(), axis.span.clone()))).collect()
    }

    /// Returns the varied settings of the combination with this number, and the resulting choices.
    fn combine(&self, variant: &Variant<'a, C>, number: usize) -> Result<(Vec<(String, String)>, C), Misfit> {
        let mut choices = variant.choices.clone();
        let mut varied = Vec::new();
        for (key, value) in self.combination(number) {
            choose(&mut choices, key, value, self.folder)?;
            varied.push((key.strip_prefix(SET).unwrap_or(key).to_owned(), value.literal()?));
        }
        Ok((varied, choices))
    }

    /// Returns keys and values of the varied settings in the combination with this number, in the order of the plan.
    fn combination(&self, mut number: usize) -> Vec<(&str, TomlValue<'a>)> {
        let mut values = Vec::new();
        for axis in self.axes.iter().rev() {
            values.push((&*axis.key, axis.values[number % axis.values.len()]));
            number /= axis.values.len();
        }
        values.reverse();
        values
    }

    /// Returns all settings of a variant in the combination with this number, by key.
    fn values(&self, variant: &Variant<'a, C>, number: usize) -> Vec<(String, TomlValue<'a>)> {
        let chosen = variant.settings.iter().map(|(key, setting)| (key.clone(), setting.value));
        chosen
            .chain(self.combination(number).into_iter().map(|(key, value)| (key.to_owned(), value)))
            .collect()
    }

    fn machine(
        &self,
        variant: &Variant<'a, C>,
        choices: &C,
        values: &[(String, TomlValue<'a>)],
    ) -> Result<MachineDescription, Misfit> {
        let machine = choices.load_machine();
        machine.map_err(|error| {
            let is_possible = |key: &str, choices: &C| is_of_machine(key) && choices.load_machine().is_ok();
            // Without this setting, another mistake may appear. Then the error is a different one, which also shows
            // that this setting was the mistake.
            let is_mended = |key: &str, choices: &C| {
                let other = choices.load_machine().err().map(|other| other.to_string());
                is_of_machine(key) && other != Some(error.to_string())
            };
            let span = self.to_blame(values, is_possible).or_else(|| self.to_blame(values, is_mended));
            let message = format!("{error}; `starfish machines` lists the machines and prints their keys");
            Misfit { span: span.unwrap_or(variant.machine_span.clone()), message }
        })
    }

    /// Returns the place of the setting that makes a series impossible: without this setting the series would be
    /// possible. `is_possible` decides for given choices and their machine.
    pub(crate) fn at_fault(
        &self,
        series: &Series<'a, C>,
        is_possible: impl Fn(&C, MachineDescription) -> bool,
    ) -> Option<Range<usize>> {
        self.to_blame(&series.values, |key, choices| {
            if !is_of_machine(key) {
                return is_possible(choices, MachineDescription::clone(&series.machine));
            }
            choices.load_machine().is_ok_and(|machine| is_possible(choices, machine))
        })
    }

    /// Returns the place of the last value whose removal alone makes the settings possible.
    fn to_blame(
        &self,
        values: &[(String, TomlValue<'a>)],
        is_possible: impl Fn(&str, &C) -> bool,
    ) -> Option<Range<usize>> {
        let without = |left_out: &str| {
            let mut choices = C::default();
            let others = values.iter().filter(|(key, _)| key != left_out);
            // Choosing cannot fail, because each value was checked when it was read.
            others.for_each(|(key, value)| drop(choose(&mut choices, key, *value, self.folder)));
            choices
        };
        let blamed = values.iter().filter(|(key, _)| is_possible(key, &without(key)));
        blamed.map(|(_, value)| value.span()).max_by_key(|span| span.start)
    }
}

/// True if a key determines the machine.
fn is_of_machine(key: &str) -> bool {
    key == "machine" || key.starts_with(SET)
}

/// Sets a field or, with the prefix `set.`, a value in the machine's description.
fn choose<C: FieldSet>(
    choices: &mut C,
    key: &str,
    value: TomlValue<'_>,
    folder: &Path,
) -> Result<(), Misfit> {
    if let Some(number) = key.strip_prefix(SET) {
        let literal = value.literal()?;
        let literal = if key == "set.disks.model" { in_folder(&literal, folder) } else { literal };
        choices.set().insert(number.to_owned(), literal);
        return Ok(());
    }
    let field = FieldOf::<C>::expect(key);
    field.and_then(|field| field.choose(choices, value.given())).map_err(|why| value.misfit(why))?;
    let machine = choices.machine();
    if key == "machine" {
        *machine = in_folder(machine, folder);
    }
    Ok(())
}

impl<'a, C: FieldSet> Variant<'a, C> {
    /// Chooses the value at `key`, which may be `set`.
    fn choose(
        &mut self,
        key: &str,
        span: &Range<usize>,
        value: TomlValue<'a>,
        folder: &Path,
    ) -> Result<(), Misfit> {
        if key == "set" || key == "machine" {
            self.machine_span = value.span();
        }
        for (key, value) in if key == "set" { numbers(value)? } else { vec![(key.to_owned(), value)] } {
            choose(&mut self.choices, &key, value, folder)?;
            let usual = FieldOf::<C>::named(&key).map(|field| field.default.trim_matches('"').to_owned());
            let is_usual = value.literal().ok() == usual;
            self.settings.insert(key, Setting { value, span: span.clone(), is_usual });
        }
        Ok(())
    }
}

/// Returns the entries of a table of settings, with keys spelled like the fields. Reports repeated keys.
fn settings<'a, C: FieldSet>(
    table: &'a DeTable<'a>,
    misfits: &PlanErrors,
) -> impl Iterator<Item = (&'a str, Range<usize>, TomlValue<'a>)> {
    let entries = entries(table).into_iter();
    let entries: Vec<_> = entries
        .map(|(key, at, value)| (FieldOf::<C>::named(key).map_or(key, |field| field.name), at, value))
        .collect();
    // `phantom` sets the same field as `contents`.
    let meant = |key| if key == "phantom" { "contents" } else { key };
    refuse_repetition(entries.iter().map(|(key, span, _)| (meant(*key).to_owned(), span.clone())), misfits);
    entries.into_iter()
}

/// Returns the error for an unknown key. If the value is a table, as in `nodes.io = 8`, the user probably meant a value
/// of the machine.
fn unknown_setting(key: &str, span: Range<usize>, value: TomlValue<'_>, known: &[&str]) -> Misfit {
    let within = value.0.get_ref().as_table().and_then(|table| entries(table).into_iter().next());
    match within {
        Some((first, ..)) => {
            let message = format!(
                "unknown key {key:?}: numbers of the machine are written set = {{ \"{key}.{first}\" = ... }}"
            );
            Misfit { span, message }
        }
        None => unknown_key(key, span, known),
    }
}

/// Returns the entries of a table `set` with dotted keys: `{ "nodes.io" = 8 }` and `nodes.io = 8` are equivalent.
fn numbers(value: TomlValue<'_>) -> Result<Vec<(String, TomlValue<'_>)>, Misfit> {
    let mut found = Vec::new();
    let mut below = vec![(SET.to_owned(), value)];
    while let Some((prefix, value)) = below.pop() {
        for (key, _, value) in entries(value.table()?) {
            let key = format!("{prefix}{key}");
            match value.0.get_ref() {
                DeValue::Table(_) => below.push((format!("{key}."), value)),
                _ => found.push((key, value)),
            }
        }
    }
    Ok(found)
}

/// Returns the variants of a plan. They inherit the defaults at the top of the plan.
fn variants<'a, C: FieldSet>(
    table: &'a DeTable<'a>,
    mut defaults: Variant<'a, C>,
    form: &PlanForm<'_, C>,
    folder: &Path,
    misfits: &PlanErrors,
) -> Vec<Variant<'a, C>> {
    let mut written = None;
    for (key, span, value) in settings::<C>(table, misfits) {
        match key {
            "variant" => written = misfits.note(value.list("[[variant]]")),
            _ if key == "set" || FieldOf::<C>::named(key).is_some() => {
                misfits.note(defaults.choose(key, &span, value, folder));
            }
            _ if form.own_keys.contains(&key) => {}
            _ => misfits.add(unknown_key(
                key,
                span,
                &[form.own_keys, &TABLE_KEYS, &field_names::<C>()].concat(),
            )),
        }
    }
    let Some(written) = written else {
        defaults.name.value = (form.usual_name)(&defaults.choices);
        if defaults.name.value.is_empty() {
            defaults.name.value = "all".to_owned();
        }
        return vec![defaults];
    };
    let mut variants: Vec<Variant<'a, C>> = Vec::new();
    for value in written {
        let Some(variant) = variant(value, &defaults, folder, misfits) else { continue };
        if variants.iter().any(|other| other.name.value == variant.name.value) {
            let message = format!("a variant {:?} already exists: expected another name", variant.name.value);
            misfits.add(Misfit { span: variant.name.span.clone(), message });
        }
        variants.push(variant);
    }
    variants
}

/// Returns a variant, or `None` if it has no valid name.
fn variant<'a, C: FieldSet>(
    value: TomlValue<'a>,
    defaults: &Variant<'a, C>,
    folder: &Path,
    misfits: &PlanErrors,
) -> Option<Variant<'a, C>> {
    let table = misfits.note(value.table())?;
    let named = table.get("name").map(TomlValue).ok_or_else(|| {
        value.misfit("the variant's name is missing: expected a line such as name = \"fcfs\"")
    });
    let name = named.and_then(|name| match name.text()? {
        text if text.contains(['/', ',']) => Err(name.misfit("expected a name without / and commas")),
        text => Ok(Chosen { value: text.to_owned(), span: name.span() }),
    });
    let name = misfits.note(name);
    let mut variant = Variant {
        name: name.clone().unwrap_or(Chosen { value: String::new(), span: value.span() }),
        choices: defaults.choices.clone(),
        machine_span: defaults.machine_span.clone(),
        settings: defaults.settings.clone(),
    };
    for (key, span, value) in settings::<C>(table, misfits).filter(|(key, ..)| *key != "name") {
        if key == "set" || FieldOf::<C>::named(key).is_some() {
            misfits.note(variant.choose(key, &span, value, folder));
        } else {
            misfits.add(unknown_setting(
                key,
                span,
                value,
                &[&["name", "set"][..], &field_names::<C>()].concat(),
            ));
        }
    }
    name.map(|_| variant)
}

fn axes<'a, C: FieldSet>(vary: TomlValue<'a>, folder: &Path, misfits: &PlanErrors) -> Vec<Axis<'a>> {
    let mut axes = Vec::new();
    let is_empty = |table: TomlValue<'_>| table.0.get_ref().as_table().is_some_and(|table| table.is_empty());
    let varied = vary.0.get_ref().as_table().and_then(|table| table.get("set")).map(TomlValue);
    if let Some(empty) = [Some(vary), varied].into_iter().flatten().find(|table| is_empty(*table)) {
        misfits.add(empty.misfit("nothing varies: expected lists of values, such as outstanding = [1, 2]"));
    }
    for (key, span, value) in
        misfits.note(vary.table()).into_iter().flat_map(|table| settings::<C>(table, misfits))
    {
        if key != "set" && FieldOf::<C>::named(key).is_none() {
            misfits.add(unknown_setting(key, span, value, &[&["set"][..], &field_names::<C>()].concat()));
            continue;
        }
        let lists = if key == "set" { numbers(value) } else { Ok(vec![(key.to_owned(), value)]) };
        for (key, list) in misfits.note(lists).unwrap_or_default() {
            let Some(values) = misfits.note(list.list("values")) else { continue };
            // Check each value alone, independently of its combinations.
            let possible = |value: &TomlValue<'_>| {
                let chosen = choose(&mut C::default(), &key, *value, folder);
                let literal = chosen.and_then(|()| value.literal());
                misfits.note(literal).map(|literal| (literal, value.span()))
            };
            refuse_repetition(values.iter().filter_map(possible), misfits);
            axes.push(Axis { key, span: span.clone(), values });
        }
    }
    axes
}

pub(crate) fn refuse_repetition(
    values: impl IntoIterator<Item = (String, Range<usize>)>,
    misfits: &PlanErrors,
) {
    let mut seen = BTreeSet::new();
    for (value, span) in values {
        let message = format!("{value} is listed twice: expected every value once");
        if !seen.insert(value) {
            misfits.add(Misfit { span, message });
        }
    }
}
