//! Generates the pages with all keys of plans, machines and disks from the code.
//!
//! The keys of plans are a table in the crate `plan`, which its decoder uses. The keys of machines and disks are the
//! fields of the decoded types; the names, types and doc comments of the fields are read from the source files. One
//! function generates each page: [`plan_page`] and [`machine_page`].

use std::collections::BTreeMap;
use std::fmt::Write;

use description::{Bytes, Frequency, Rate, Rpm, Time, WrittenAsText};
use experiment::{FIELDS, FieldOf, FieldSet, FieldValuesOf, PLACEMENT_FIELDS};
use machine::Work;
use plan::reference::{PLACEMENT_TOP, PlanKey, TABLES, TOP};

use crate::{assert_page_is, root};

/// Source files with the types that define the keys of machines and disks.
const SOURCES: [&str; 2] =
    ["crates/machines/description/src/machine.rs", "crates/machines/description/src/disk.rs"];

#[test]
fn the_page_of_plan_keys_is_up_to_date() {
    assert_page_is("docs/manual/plan-keys.md", &plan_page());
}

#[test]
fn the_page_of_machine_keys_is_up_to_date() {
    assert_page_is("docs/manual/machine-keys.md", &machine_page());
}

fn plan_page() -> String {
    let mut page = "# All keys of a plan\n\n\
        This page is generated from the code. [Plans](plans.md) explains their use.\n\n\
        A size is a text with a unit, such as `\"64 KiB\"` or `\"10 MB\"`, or a plain number of bytes: \
        KiB, MiB and GiB are powers of 1024, KB, MB and GB of 1000. A flag is `true` or `false`. Keys may \
        have hyphens, as options of `starfish simulate` have: `file-size` is `file_size`.\n\n"
        .to_owned();
    let of_plans = |keys: &[PlanKey]| -> Vec<[String; 4]> {
        keys.iter().map(|key| [key.name, key.value, key.default, key.meaning].map(str::to_owned)).collect()
    };
    let of_jobs: Vec<PlanKey> = PLACEMENT_TOP.into_iter().filter(|key| key.name == "figure").collect();
    for (title, text, keys) in [
        ("At the top of the plan", "", of_plans(&TOP)),
        ("Tables", "", of_plans(&TABLES)),
        (
            "Settings",
            "Settings at the top of the plan are the defaults of all variants. A variant can have its own \
             values. In `[vary]` each setting has a list of values. Settings are also options of `starfish \
             simulate`, and arguments of `starfish.simulate` in Python.\n\n",
            of_cases(&FIELDS),
        ),
        (
            "At the top of a plan of jobs that share disks",
            "Such a plan has the keys above, except `patterns`, `records` and `table`.\n\n",
            of_plans(&of_jobs),
        ),
        (
            "Settings of jobs that share disks",
            "These keys are written in the same places as settings. They are also options of `starfish \
             merge`, and arguments of `starfish.simulate_merges` in Python.\n\n",
            of_cases(&PLACEMENT_FIELDS),
        ),
    ] {
        write!(page, "## {title}\n\n{text}| key | value | default | meaning |\n|---|---|---|---|\n")
            .expect("memory");
        for [name, value, default, meaning] in keys {
            let default = if default.is_empty() { String::new() } else { format!("`{default}`") };
            writeln!(page, "| `{name}` | {value} | {default} | {meaning} |").expect("memory");
        }
        page.push('\n');
    }
    page.truncate(page.trim_end().len());
    page + "\n"
}

/// Returns the name, value, default and meaning of each of these fields.
fn of_cases<C: FieldSet>(fields: &[FieldOf<C>]) -> Vec<[String; 4]> {
    let row = |field: &FieldOf<C>| {
        let FieldOf { name, takes, default, meaning, .. } = field;
        [(*name).to_owned(), takes.in_words(), (*default).to_owned(), (*meaning).to_owned()]
    };
    fields.iter().map(row).collect()
}

/// Fields that are separate arguments of `starfish.simulate`, because each accepts several values.
const NAMED_IN_PYTHON: [&str; 3] = ["machine", "method", "layout"];

#[test]
fn the_options_of_the_python_package_are_up_to_date() {
    assert_page_is("python/starfish/options.py", &python_options());
}

fn python_options() -> String {
    let mut module = "\"\"\"What can be chosen for `simulate` and `simulate_merges`: made from the tables of crates/experiments/experiment.\"\"\"\n\n\
        from __future__ import annotations\n\n\
        from collections.abc import Sequence\n\
        from typing import TypedDict\n\n\
        Size = int | str\n\
        \"\"\"A number of bytes, or a text such as ``\"64 KiB\"`` or ``\"1.5 MiB\"``, powers of two; \
        ``\"10 MB\"`` is ten million.\"\"\"\n\n\
        Sides = str | tuple[int, int]\n\
        \"\"\"Rows and columns: ``(40, 32)`` or ``\"40x32\"``.\"\"\"\n\n\n\
        class Options(TypedDict, total=False):\n    \
        \"\"\"What can be chosen besides what is compared; ``None`` is the same as nothing.\"\"\"\n"
        .to_owned();
    module += &python_fields(&FIELDS, |kind| format!("{kind} | None"));
    module += "\n\nclass MergeOptions(TypedDict, total=False):\n    \
        \"\"\"What can be chosen of jobs that share disks, each a value or several; ``None`` is the same as nothing.\"\"\"\n";
    module += &python_fields(&PLACEMENT_FIELDS, |kind| format!("{kind} | Sequence[{kind}] | None"));
    module
}

/// Returns the keys of a typed dictionary for these fields. `optional` formats the type of a value.
fn python_fields<C: FieldSet>(fields: &[FieldOf<C>], optional: fn(&str) -> String) -> String {
    let mut module = String::new();
    for field in fields.iter().filter(|field| !NAMED_IN_PYTHON.contains(&field.name)) {
        let kind = match &field.takes {
            FieldValuesOf::Flag(_) => "bool",
            FieldValuesOf::Size(..) => "Size",
            FieldValuesOf::Whole(..) => "int",
            FieldValuesOf::Name(..) => "str",
            FieldValuesOf::WholeOrName(..) | FieldValuesOf::WholeOrUnlimited(..) => "int | str",
            FieldValuesOf::Text("RxC", ..) => "Sides",
            FieldValuesOf::Text(..) => "str",
        };
        let kind = optional(kind);
        let (name, meaning) = (field.name, field.meaning.replace('`', "``"));
        let default = match field.default.trim_matches('"') {
            "" => String::new(),
            default => format!(" Default: {default}."),
        };
        write!(module, "\n    {name}: {kind}\n    \"\"\"{}\"\"\"\n", wrapped(&format!("{meaning}{default}")))
            .expect("memory");
    }
    module
}

/// Wraps the text for a docstring with an indentation of four spaces.
fn wrapped(text: &str) -> String {
    let (mut lines, mut line) = (Vec::new(), String::new());
    for word in text.split(' ') {
        if !line.is_empty() && line.len() + word.len() > 95 {
            lines.push(std::mem::take(&mut line));
        }
        line += if line.is_empty() { "" } else { " " };
        line += word;
    }
    lines.push(line);
    lines.join("\n    ")
}

fn machine_page() -> String {
    let types = Types::read();
    let mut page = "# All keys of machines and disks\n\n\
        This page is generated from the code. [Machines](machines.md) explains their use.\n\n\
        Every number is written with its source, `{ value = \"50 MHz\", source = \"...\" }`, \
        and with `calibrated = \"...\"` if it was fitted. There are no defaults: every key is required, even if its value is 0, unless it is marked as optional.\n\n\
        | value | expected |\n|---|---|\n"
        .to_owned();
    for (word, expected) in [
        ("time", Time::EXPECTED),
        ("size", Bytes::EXPECTED),
        ("rate", Rate::EXPECTED),
        ("frequency", Frequency::EXPECTED),
        ("rotation", Rpm::EXPECTED),
        ("cycles", "a whole number of cycles of the processor"),
        ("count", "a whole number"),
        ("flag", "true or false"),
    ] {
        writeln!(page, "| {word} | {expected} |").expect("memory");
    }
    page.push_str("\n## A machine\n\n");
    types.table("MachineDescription", "", &mut page);
    page.push_str("## A disk\n\n");
    for variant in &types.get("DiskDescription").fields {
        writeln!(page, "### {}\n", heading(&variant.doc)).expect("memory");
        types.table(inner(&variant.kind), "", &mut page);
    }
    page.truncate(page.trim_end().len());
    page + "\n"
}

/// Types of the source files, by name.
struct Types(BTreeMap<String, Type>);

/// Struct with its fields, or enum with its variants.
#[derive(Default)]
struct Type {
    is_enum: bool,
    fields: Vec<Field>,
}

/// Field of a struct or variant of an enum.
#[derive(Clone, Default)]
struct Field {
    name: String,
    /// Type as written in the source file; for a variant, the type of its value.
    kind: String,
    doc: String,
    /// True if the decoder has a default for the field.
    has_default: bool,
    /// Fields of a variant; a struct's field has none.
    fields: Vec<Field>,
}

impl Types {
    /// Reads the source files, in which rustfmt puts each field and each variant on its own line.
    fn read() -> Types {
        let mut types = BTreeMap::new();
        for source in SOURCES {
            let text = std::fs::read_to_string(root().join(source)).expect("a source");
            let mut current: Option<(String, Type)> = None;
            let (mut doc, mut has_default, mut is_skipped) = (Vec::new(), false, false);
            for line in text.lines() {
                let indent = line.len() - line.trim_start().len();
                let line = line.trim();
                if let Some(text) = line.strip_prefix("///") {
                    doc.push(text.trim());
                    continue;
                }
                if line.starts_with("#[") {
                    has_default |= line == "#[serde(default)]";
                    is_skipped |= line == "#[serde(skip)]";
                    continue;
                }
                let documented = std::mem::take(&mut doc).join(" ");
                let documented = documented.split("  ").next().unwrap_or_default().to_owned();
                let has_default = std::mem::take(&mut has_default);
                if std::mem::take(&mut is_skipped) {
                    continue;
                }
                let opens =
                    |keyword| line.strip_prefix(keyword).and_then(|rest: &str| rest.strip_suffix(" {"));
                if indent == 0 {
                    types.extend(current.take());
                    let (of_struct, of_enum) = (opens("pub struct "), opens("pub enum "));
                    if let Some(name) = of_struct.or(of_enum) {
                        let found = Type { is_enum: of_enum.is_some(), fields: Vec::new() };
                        current = Some((name.to_owned(), found));
                    }
                } else if let Some((_, found)) = &mut current {
                    let line = line.strip_prefix("pub ").unwrap_or(line);
                    let (name, kind) =
                        line.split_once(": ").or_else(|| line.split_once('(')).unwrap_or((line, ""));
                    let (name, kind) =
                        (name.trim_end_matches([' ', '{', ',']), kind.trim_end_matches([',', ')']));
                    let is_part = name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
                    let (name, kind) = (name.to_owned(), kind.to_owned());
                    let field = Field { name, kind, doc: documented, has_default, fields: Vec::new() };
                    match (is_part && !field.name.is_empty(), indent) {
                        (true, 4) => found.fields.push(field),
                        (true, _) => found.fields.last_mut().expect("a variant").fields.push(field),
                        _ => {}
                    }
                }
            }
            types.extend(current);
        }
        Types(types)
    }

    fn get(&self, name: &str) -> &Type {
        self.0.get(name).unwrap_or_else(|| panic!("{name} is in none of the files of SOURCES"))
    }

    /// Writes the table of a type, whose keys begin with `prefix`, and the tables of the types of its fields.
    fn table(&self, name: &str, prefix: &str, page: &mut String) {
        self.rows(&self.get(name).fields, prefix, page);
    }

    fn rows(&self, fields: &[Field], prefix: &str, page: &mut String) {
        let (tables, values): (Vec<&Field>, Vec<&Field>) =
            fields.iter().partition(|field| self.is_table(inner(&field.kind)));
        page.push_str("| key | value | meaning |\n|---|---|---|\n");
        for field in &values {
            let name = if field.name == "_kind" { "kind" } else { &field.name };
            let value = self.value(&field.kind);
            let optional =
                if field.kind.starts_with("Option") || field.has_default { "; optional" } else { "" };
            let meaning = if name == "kind" { "Which kind of disk this is." } else { &field.doc };
            writeln!(page, "| `{prefix}{name}` | {value}{optional} | {meaning} |").expect("memory");
        }
        if let Some(field) = tables.iter().find(|field| inner(&field.kind) == "Topology") {
            let kinds = self.variants("Topology").map(|(kind, _)| kind).collect::<Vec<_>>().join(", ");
            writeln!(page, "| `{prefix}kind` | {kinds} | {} |", field.doc).expect("memory");
        }
        page.push('\n');
        for field in values.iter().filter(|field| self.is_choice(inner(&field.kind))) {
            for (value, doc) in self.variants(inner(&field.kind)) {
                writeln!(page, "- {value}: {doc}").expect("memory");
            }
            page.push('\n');
        }
        for field in tables {
            self.section(field, prefix, page);
        }
    }

    fn is_table(&self, kind: &str) -> bool {
        match kind {
            "WorkCosts" | "Topology" => true,
            _ => self.0.get(kind).is_some_and(|found| !found.is_enum && kind != "Region"),
        }
    }

    /// Returns true if the value of this type is one of a few words.
    fn is_choice(&self, kind: &str) -> bool {
        self.0.get(kind).is_some_and(|found| found.is_enum)
    }

    /// Returns the values of an enum, as they are written in files, with their meanings.
    fn variants(&self, name: &str) -> impl Iterator<Item = (String, &str)> {
        let variants = self.get(name).fields.iter();
        variants
            .map(|variant| (format!("`\"{}\"`", snake_case(&variant.name).replace('_', "-")), &*variant.doc))
    }

    fn section(&self, field: &Field, prefix: &str, page: &mut String) {
        let (kind, key) = (inner(&field.kind), format!("{prefix}{}", field.name));
        let optional = if field.kind.starts_with("Option") { "Optional. " } else { "" };
        match kind {
            "Topology" => {
                for variant in &self.get(kind).fields {
                    writeln!(page, "#### {}\n", heading(&variant.doc)).expect("memory");
                    let held = inner(&variant.kind);
                    let fields = if held.is_empty() { &variant.fields } else { &self.get(held).fields };
                    self.rows(fields, prefix, page);
                }
            }
            "WorkCosts" => {
                let of_one = &self.get("WorkCost").fields;
                writeln!(page, "### `{key}`\n\n{} Each kind of work is a table:\n", field.doc)
                    .expect("memory");
                self.rows(of_one, &format!("{key}.WORK."), page);
                page.push_str("The kinds of work:\n\n| key | meaning |\n|---|---|\n");
                for (name, meaning) in Work::NAMES.iter().zip(Work::MEANINGS) {
                    writeln!(page, "| `{key}.{name}` | {meaning} |").expect("memory");
                }
                page.push('\n');
            }
            _ => {
                writeln!(page, "### `{key}`\n\n{optional}{}\n", field.doc).expect("memory");
                self.table(kind, &format!("{key}."), page);
            }
        }
    }

    /// Describes the value of a field in one or two words.
    fn value(&self, kind: &str) -> String {
        let word = match inner(kind) {
            "String" => "text",
            "u32" => "count",
            "bool" => "flag",
            "Time" => "time",
            "Bytes" => "size",
            "Rate" => "rate",
            "Frequency" => "frequency",
            "Rpm" => "rotation",
            "Cycles" => "cycles",
            "Region" => "list of `\"first-last\"`",
            "IgnoredAny" => "`\"mechanical\"`, `\"streaming\"` or `\"drawn\"`",
            name => return self.variants(name).map(|(value, _)| value).collect::<Vec<_>>().join(", "),
        };
        word.to_owned()
    }
}

/// Returns the innermost type, without the generic types around it.
fn inner(kind: &str) -> &str {
    kind.rsplit('<').next().unwrap_or(kind).trim_end_matches('>')
}

/// Returns a sentence without its full stop, as the title of a section.
fn heading(doc: &str) -> &str {
    doc.trim_end_matches('.')
}

fn snake_case(name: &str) -> String {
    let mut snake = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}
