//! What is chosen in a plan for its cases: defaults at its top, variants, and what varies, for fields of any kind.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;
use std::rc::Rc;

use description::{MachineDescription, Misfit};
use experiment::{FieldOf, FieldSet, field_names};
use toml::de::{DeTable, DeValue};

use crate::misfits::Misfits;
use crate::reference::{TABLES, names};
use crate::value::{TomlValue, entries, unknown_key};

/// A value, and where it was chosen.
#[derive(Clone)]
pub struct Chosen<T> {
    pub(crate) value: T,
    pub(crate) span: Range<usize>,
}

/// What plans of one kind have beside the fields of their cases.
pub(crate) struct PlanForm<'k, C> {
    /// The keys that stand at the top only.
    pub(crate) own_keys: &'k [&'static str],
    /// What the only variant is called if there are none; nothing if there is no such name.
    pub(crate) usual_name: fn(&C) -> String,
}

/// What is chosen for the cells of a plan.
pub(crate) struct Settings<'a, C> {
    folder: &'a Path,
    variants: Vec<Variant<C>>,
    axes: Vec<Axis<'a>>,
}

struct Variant<C> {
    name: Chosen<String>,
    choices: C,
    /// Where a number of its machine or the machine itself was chosen.
    machine_span: Range<usize>,
    /// The keys that the plan chooses for it, `set.` before those of the machine: where, and whether another value than
    /// the usual one.
    keys: BTreeMap<String, Chosen<bool>>,
}

/// Something varied: a key, `set.` before it if it is one of the machine, and its values.
struct Axis<'a> {
    key: String,
    span: Range<usize>,
    values: Vec<TomlValue<'a>>,
}

/// A variant with a value of every axis.
pub(crate) struct Series<C> {
    pub(crate) variant: Chosen<String>,
    pub(crate) varied: Vec<(String, String)>,
    pub(crate) choices: C,
    pub(crate) machine: Rc<MachineDescription>,
    /// The keys that the plan chooses for it, what varies included, and where; none that are chosen as they are anyway.
    pub(crate) keys: Rc<BTreeMap<String, Range<usize>>>,
}

/// What stands before the keys of a machine's numbers.
const SET: &str = "set.";

const TABLE_KEYS: [&str; TABLES.len()] = names(&TABLES);

impl<'a, C: FieldSet> Settings<'a, C> {
    /// What stands there, as far as nothing is wrong with it. What has no place of its own is at `span`.
    pub(crate) fn read(
        table: &'a DeTable<'a>,
        form: &PlanForm<'_, C>,
        folder: &'a Path,
        span: Range<usize>,
        misfits: &Misfits,
    ) -> Self {
        let defaults = Variant {
            name: Chosen { value: String::new(), span: span.clone() },
            choices: C::default(),
            machine_span: span,
            keys: BTreeMap::new(),
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

    /// The sizes of what is combined, and where the last of them stands.
    pub(crate) fn counts(&self) -> (Vec<usize>, Range<usize>) {
        let axes = self.axes.iter().map(|axis| axis.values.len());
        let span = self.axes.last().map_or(0..0, |axis| axis.span.clone());
        (std::iter::once(self.variants.len()).chain(axes).collect(), span)
    }

    /// What varies must not be chosen as well.
    fn check_axes(&self, misfits: &Misfits) {
        for axis in &self.axes {
            let chosen = self.variants.iter().find(|variant| variant.keys.contains_key(&axis.key));
            if let Some(variant) = chosen {
                let (key, name) = (&axis.key, &variant.name.value);
                let message = format!(
                    "{key} varies but is chosen too, for variant {name}: expected it in one place only"
                );
                misfits.add(Misfit { span: axis.span.clone(), message });
            }
        }
    }

    /// Every variant with every combination of what varies; the last axis varies fastest.
    pub(crate) fn series(&self, misfits: &Misfits) -> Vec<Series<C>> {
        // Each is read once, and complained of once.
        let mut machines: BTreeMap<_, Option<Rc<MachineDescription>>> = BTreeMap::new();
        let mut all = Vec::new();
        for variant in &self.variants {
            let keys = Rc::new(self.unusual_keys(variant));
            let count = self.axes.iter().map(|axis| axis.values.len()).product();
            for combination in 0..count {
                let combined = misfits.note_once(self.combine(variant, combination));
                let Some((varied, choices)) = combined else { continue };
                let machine = machines.entry(choices.machine_choice());
                let load = || misfits.note_once(self.machine(variant, &choices)).map(Rc::new);
                let Some(machine) = machine.or_insert_with(load).clone() else { continue };
                let (variant, keys) = (variant.name.clone(), keys.clone());
                all.push(Series { variant, varied, choices, machine, keys });
            }
        }
        all
    }

    /// The keys that are chosen for a variant, or vary, and where; but for those that say what is so without them.
    fn unusual_keys(&self, variant: &Variant<C>) -> BTreeMap<String, Range<usize>> {
        let chosen = variant.keys.iter().filter(|(_, chosen)| chosen.value);
        let chosen = chosen.map(|(key, chosen)| (key.clone(), chosen.span.clone()));
        chosen.chain(self.axes.iter().map(|axis| (axis.key.clone(), axis.span.clone()))).collect()
    }

    /// What varies, and the choices, in the combination of this number.
    fn combine(&self, variant: &Variant<C>, mut number: usize) -> Result<(Vec<(String, String)>, C), Misfit> {
        let mut choices = variant.choices.clone();
        let mut varied = Vec::new();
        for axis in self.axes.iter().rev() {
            let value = axis.values[number % axis.values.len()];
            number /= axis.values.len();
            choose(&mut choices, &axis.key, value, self.folder)?;
            let key = axis.key.strip_prefix(SET).unwrap_or(&axis.key);
            varied.push((key.to_owned(), value.literal()?));
        }
        varied.reverse();
        Ok((varied, choices))
    }

    fn machine(&self, variant: &Variant<C>, choices: &C) -> Result<MachineDescription, Misfit> {
        let machine = choices.load_machine();
        machine.map_err(|error| {
            let axis = self.axes.iter().find(|axis| axis.key.starts_with(SET) || axis.key == "machine");
            let span = axis.map_or(variant.machine_span.clone(), |axis| axis.span.clone());
            let message = format!("{error}; `starfish machines` lists the machines and prints their keys");
            Misfit { span, message }
        })
    }
}

/// Chooses a value for a field or, after `set.`, for a number of the machine's description.
fn choose<C: FieldSet>(
    choices: &mut C,
    key: &str,
    value: TomlValue<'_>,
    folder: &Path,
) -> Result<(), Misfit> {
    if let Some(number) = key.strip_prefix(SET) {
        choices.set().insert(number.to_owned(), value.literal()?);
        return Ok(());
    }
    let field = FieldOf::<C>::expect(key);
    field.and_then(|field| field.choose(choices, value.given())).map_err(|why| value.misfit(why))?;
    let machine = choices.machine();
    if key == "machine" && machine.ends_with(".toml") {
        *machine = folder.join(&*machine).to_string_lossy().into_owned();
    }
    Ok(())
}

impl<C: FieldSet> Variant<C> {
    /// Chooses what stands at `key`, which may be `set`.
    fn choose(
        &mut self,
        key: &str,
        span: &Range<usize>,
        value: TomlValue<'_>,
        folder: &Path,
    ) -> Result<(), Misfit> {
        if key == "set" || key == "machine" {
            self.machine_span = value.span();
        }
        for (key, value) in if key == "set" { numbers(value)? } else { vec![(key.to_owned(), value)] } {
            choose(&mut self.choices, &key, value, folder)?;
            let usual = FieldOf::<C>::named(&key).map(|field| field.default.trim_matches('"').to_owned());
            let chosen = Chosen { value: value.literal().ok() != usual, span: span.clone() };
            self.keys.insert(key, chosen);
        }
        Ok(())
    }
}

/// The entries of a table with settings, whose keys are spelled as fields are, and none of which stands there twice.
fn settings<'a, C: FieldSet>(
    table: &'a DeTable<'a>,
    misfits: &Misfits,
) -> impl Iterator<Item = (&'a str, Range<usize>, TomlValue<'a>)> {
    let entries = entries(table).into_iter();
    let entries: Vec<_> = entries
        .map(|(key, at, value)| (FieldOf::<C>::named(key).map_or(key, |field| field.name), at, value))
        .collect();
    // The one says what the other does.
    let meant = |key| if key == "phantom" { "contents" } else { key };
    refuse_repetition(entries.iter().map(|(key, span, _)| (meant(*key).to_owned(), span.clone())), misfits);
    entries.into_iter()
}

/// The dotted keys below a table `set`, with `set.` before them: `{ "nodes.io" = 8 }` and `nodes.io = 8` are equal.
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

/// The variants of a plan, with the defaults that stand at its top.
fn variants<'a, C: FieldSet>(
    table: &'a DeTable<'a>,
    mut defaults: Variant<C>,
    form: &PlanForm<'_, C>,
    folder: &Path,
    misfits: &Misfits,
) -> Vec<Variant<C>> {
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
    let mut variants: Vec<Variant<C>> = Vec::new();
    for value in written {
        let Some(variant) = variant(value, &defaults, folder, misfits) else { continue };
        if variants.iter().any(|other| other.name.value == variant.name.value) {
            let message =
                format!("there is a variant {:?} already: expected another name", variant.name.value);
            misfits.add(Misfit { span: variant.name.span.clone(), message });
        }
        variants.push(variant);
    }
    variants
}

/// A variant, if it has a name.
fn variant<C: FieldSet>(
    value: TomlValue<'_>,
    defaults: &Variant<C>,
    folder: &Path,
    misfits: &Misfits,
) -> Option<Variant<C>> {
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
        keys: defaults.keys.clone(),
    };
    for (key, span, value) in settings::<C>(table, misfits).filter(|(key, ..)| *key != "name") {
        if key == "set" || FieldOf::<C>::named(key).is_some() {
            misfits.note(variant.choose(key, &span, value, folder));
        } else {
            misfits.add(unknown_key(key, span, &[&["name", "set"][..], &field_names::<C>()].concat()));
        }
    }
    name.map(|_| variant)
}

fn axes<'a, C: FieldSet>(vary: TomlValue<'a>, folder: &Path, misfits: &Misfits) -> Vec<Axis<'a>> {
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
            misfits.add(unknown_key(key, span, &[&["set"][..], &field_names::<C>()].concat()));
            continue;
        }
        let lists = if key == "set" { numbers(value) } else { Ok(vec![(key.to_owned(), value)]) };
        for (key, list) in misfits.note(lists).unwrap_or_default() {
            let Some(values) = misfits.note(list.list("values")) else { continue };
            // Each is possible by itself, whatever it is combined with.
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

pub(crate) fn refuse_repetition(values: impl IntoIterator<Item = (String, Range<usize>)>, misfits: &Misfits) {
    let mut seen = BTreeSet::new();
    for (value, span) in values {
        let message = format!("{value} is there already: expected every value once");
        if !seen.insert(value) {
            misfits.add(Misfit { span, message });
        }
    }
}
