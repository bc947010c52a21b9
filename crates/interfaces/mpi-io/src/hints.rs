//! Hints of an `MPI_Info`: hints of ROMIO and our own that are in force, and hints without effect, with the reasons.
//!
//! Programs can query hints, so their texts are kept; [`ParsedHints::of`] alone parses them.

use std::collections::BTreeMap;
use std::env;
use std::fmt;
use std::num::NonZeroU32;

use layout::Operation;
use node::{CollectiveMethod, OpenOptions, SelectedSettings, Stat};
use request_log::CallMethod;

/// The environment variable with hints for programs that pass none; hints of the program take precedence.
const VARIABLE: &str = "STARFISH_MPI_HINTS";

/// A known hint.
struct KnownHint {
    name: &'static str,
    values: Values,
    /// The reason if the hint has no effect.
    idle: Option<&'static str>,
}

/// Valid values of a hint.
enum Values {
    Any,
    /// A whole number, at least this one.
    Number(u32),
    Among(&'static [&'static str]),
}

const fn known(name: &'static str, values: Values) -> KnownHint {
    KnownHint { name, values, idle: None }
}

const fn idle(name: &'static str, values: Values, why: &'static str) -> KnownHint {
    KnownHint { name, values, idle: Some(why) }
}

const KNOWN: [KnownHint; 17] = [
    idle("access_style", Values::Any, "Starfish does not use it"),
    idle("cb_buffer_size", Values::Number(1), "Starfish has no aggregators"),
    idle("cb_nodes", Values::Number(1), "Starfish has no aggregators"),
    idle("ind_rd_buffer_size", Values::Number(1), "Starfish does no data sieving"),
    idle("ind_wr_buffer_size", Values::Number(1), "Starfish does no data sieving"),
    known("romio_cb_read", SWITCH),
    known("romio_cb_write", SWITCH),
    idle("romio_ds_read", SWITCH, "Starfish does no data sieving"),
    idle("romio_ds_write", SWITCH, "Starfish does no data sieving"),
    idle("romio_no_indep_rw", FLAG, "every process opens the file"),
    known(METHOD, Values::Among(METHODS)),
    known("starfish_presort", FLAG),
    known("starfish_queued", FLAG),
    known("starfish_visible", Values::Among(&["call", "sync"])),
    known("start_iodevice", Values::Number(0)),
    known("striping_factor", Values::Number(1)),
    known("striping_unit", Values::Number(1)),
];

/// Prefix of the names of our hints.
const OURS: &str = "starfish_";

/// The hint that names the method.
pub(crate) const METHOD: &str = "starfish_method";
const METHODS: &[&str] = &["auto", "disk-directed", "two-phase", "independent", WRITE_CACHED];
const WRITE_CACHED: &str = "write-cached";
const SWITCH: Values = Values::Among(&["enable", "disable", "automatic"]);
const FLAG: Values = Values::Among(&["true", "false"]);

/// Hints for striping, which have an effect only when the file is created.
const OF_STRIPING: [&str; 3] = ["start_iodevice", "striping_factor", "striping_unit"];

/// The hints of a file that are in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hints {
    in_force: HintTexts,
    effects: ParsedHints,
    /// Hints without effect, with their values and the reasons.
    idle: BTreeMap<String, (String, String)>,
}

/// Hints as text, as programs set and query them.
type HintTexts = BTreeMap<&'static str, String>;

/// The hints in force that have an effect, parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ParsedHints {
    /// The method of collective calls; `None` for `auto`.
    method: Option<CallMethod>,
    /// True if the hint `romio_cb_read` disables collective reads.
    reads_alone: bool,
    /// True if the hint `romio_cb_write` disables collective writes.
    writes_alone: bool,
    presort: bool,
    queued: bool,
    /// True if other processes see a write when its call has returned.
    visible_at_once: bool,
    /// Number of the disk of a file on one disk.
    first_disk: Option<u32>,
    /// Number of disks of a new file.
    disks: Option<NonZeroU32>,
    /// Block size of a new file in bytes.
    block_bytes: Option<NonZeroU32>,
}

impl ParsedHints {
    fn of(texts: &HintTexts) -> ParsedHints {
        let text = |key: &str| texts.get(key).map(String::as_str);
        let is = |key: &str, value: &str| text(key) == Some(value);
        let number = |key: &str| text(key).and_then(|value| value.parse().ok());
        ParsedHints {
            method: text(METHOD).and_then(CallMethod::named),
            reads_alone: is("romio_cb_read", "disable"),
            writes_alone: is("romio_cb_write", "disable"),
            presort: !is("starfish_presort", "false"),
            queued: !is("starfish_queued", "false"),
            visible_at_once: !is("starfish_visible", "sync"),
            first_disk: number("start_iodevice"),
            disks: number("striping_factor").and_then(NonZeroU32::new),
            block_bytes: number("striping_unit").and_then(NonZeroU32::new),
        }
    }
}

/// Hints that decide the method; all processes with the file open must agree on them.
const OF_METHOD: [&str; 3] = [METHOD, "romio_cb_read", "romio_cb_write"];

/// The hints that all processes with a file open must have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CommonHints {
    /// The methods of writes and of reads.
    methods: [CallMethod; 2],
}

impl CommonHints {
    /// Returns the hints as a number.
    pub(crate) fn packed(self) -> u16 {
        let index = |method| CallMethod::ALL.iter().position(|known| *known == method);
        u16::from_le_bytes(self.methods.map(|method| index(method).expect("it is one of all") as u8))
    }

    /// Returns the hints that [`packed`](Self::packed) encoded in this number.
    pub(crate) fn of_packed(packed: u16) -> Self {
        let method = |index: u8| CallMethod::ALL[usize::from(index) % CallMethod::ALL.len()];
        CommonHints { methods: packed.to_le_bytes().map(method) }
    }

    /// Describes the differences to the hints of another process.
    pub(crate) fn differences(self, others: CommonHints) -> String {
        let of = [("writes", "romio_cb_write"), ("reads", "romio_cb_read")];
        let each = of.into_iter().zip(self.methods.into_iter().zip(others.methods));
        let each = each.filter(|(_, (own, other))| own != other).map(|((what, switch), (own, other))| {
            format!("the method for {what} is {own} in one and {other} in the other ({METHOD}, {switch})")
        });
        each.collect::<Vec<_>>().join(", ")
    }
}

impl fmt::Display for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Values::Any => f.write_str("any value"),
            Values::Number(least) => write!(f, "a whole number from {least}"),
            Values::Among(values) => f.write_str(&values.join(", ")),
        }
    }
}

/// Returns the known hint of this name.
fn known_as(name: &str) -> Option<&'static KnownHint> {
    KNOWN.iter().find(|known| known.name == name)
}

impl KnownHint {
    fn takes(&self, value: &str) -> bool {
        match self.values {
            Values::Any => true,
            Values::Number(least) => value.parse::<u32>().is_ok_and(|number| number >= least),
            Values::Among(values) => values.contains(&value),
        }
    }
}

impl Hints {
    /// Returns the hints of a file opened by `processes` processes, before any hint is set. Includes hints that
    /// programs for ROMIO expect, even if they have no effect here.
    pub(crate) fn usual(processes: u32) -> Hints {
        let nodes = processes.to_string();
        let usual = [
            ("cb_buffer_size", "16777216"),
            ("cb_nodes", &nodes),
            ("ind_rd_buffer_size", "4194304"),
            ("ind_wr_buffer_size", "524288"),
            ("romio_cb_read", "automatic"),
            ("romio_cb_write", "automatic"),
            ("romio_ds_read", "automatic"),
            ("romio_ds_write", "automatic"),
            ("romio_no_indep_rw", "false"),
            ("starfish_method", "auto"),
            ("starfish_presort", "true"),
            ("starfish_queued", "true"),
            ("starfish_visible", "call"),
        ];
        let in_force = usual.into_iter().map(|(key, value)| (key, value.to_owned())).collect();
        Hints { effects: ParsedHints::of(&in_force), in_force, idle: BTreeMap::new() }
    }

    /// Sets or removes a hint in force; returns the previous value.
    fn set(&mut self, key: &'static str, value: Option<String>) -> Option<String> {
        let before = match value {
            Some(value) => self.in_force.insert(key, value),
            None => self.in_force.remove(key),
        };
        self.effects = ParsedHints::of(&self.in_force);
        before
    }

    /// Reads hints in ROMIO's format: one `key value` per line; lines that begin with `#` are comments.
    pub(crate) fn take_lines(&mut self, lines: &str) {
        for line in lines.lines().filter(|line| !line.starts_with('#')) {
            let words: Vec<&str> = line.split_whitespace().collect();
            if let [key, value] = words[..] {
                self.take(key, value);
            }
        }
    }

    /// Reads the hints in the environment.
    pub(crate) fn take_environment(&mut self) {
        self.take_pairs(&env::var(VARIABLE).unwrap_or_default());
    }

    /// Reads hints in the form `key=value`, separated by commas.
    fn take_pairs(&mut self, given: &str) {
        for pair in given.split(',').filter(|pair| !pair.trim().is_empty()) {
            match pair.split_once('=') {
                Some((key, value)) => self.take(key.trim(), value),
                None => self.note_idle(pair.trim(), "", "expected key=value"),
            }
        }
    }

    fn note_idle(&mut self, key: &str, value: &str, why: impl Into<String>) {
        self.idle.insert(key.to_owned(), (value.to_owned(), why.into()));
    }

    /// Sets a hint. As MPI requires, an unknown hint or an invalid value has no effect.
    pub(crate) fn take(&mut self, key: &str, value: &str) {
        let value = value.trim();
        let why = match known_as(key) {
            None => Some("unknown hint".to_owned()),
            Some(known) if !known.takes(value) => Some(format!("expected {}", known.values)),
            Some(known) => {
                self.set(known.name, Some(value.to_owned()));
                known.idle.map(str::to_owned)
            }
        };
        self.idle.remove(key);
        if let Some(why) = why {
            self.note_idle(key, value, why);
        }
    }

    /// Sets a hint of an open file, whose striping can no longer change.
    pub(crate) fn take_later(&mut self, key: &str, value: &str) {
        let value = value.trim();
        let makes_sense = known_as(key).is_some_and(|known| known.takes(value));
        if key == METHOD && (value == WRITE_CACHED) != self.caches_writes() {
            self.note_idle(key, value, "write-cached can be set only when the file is opened");
        } else if !OF_STRIPING.contains(&key) || !makes_sense {
            self.take(key, value);
        } else if !self.is_known(key, value) {
            self.note_idle(key, value, "the striping is chosen when the file is created");
        }
    }

    /// Sets a hint that is passed with a view. Setting a view has no barrier, so hints on which processes must agree do
    /// not change.
    pub(crate) fn take_with_view(&mut self, key: &str, value: &str) {
        let (before, is_of_method) = (self.in_common(), OF_METHOD.contains(&key));
        let mut taken = self.clone();
        taken.take_later(key, value);
        if is_of_method && taken.in_common() != before {
            self.note_idle(
                key,
                value.trim(),
                "the method can be set when the file is opened, or by MPI_File_set_info",
            );
        } else {
            *self = taken;
        }
    }

    /// True if a hint already has this value, with or without effect.
    fn is_known(&self, key: &str, value: &str) -> bool {
        let is_idle = self.idle.get(key).is_some_and(|(idle, _)| idle == value);
        is_idle || self.in_force.get(key).is_some_and(|in_force| in_force == value)
    }

    /// Before a file is opened, clears hints that request more than the existing `disks` disks, or a disk beyond them.
    pub(crate) fn note_disks(&mut self, disks: u32) {
        let ParsedHints { disks: factor, first_disk, .. } = self.effects;
        let counted = [
            ("striping_factor", factor.map(NonZeroU32::get), disks, ""),
            ("start_iodevice", first_disk, disks.saturating_sub(1), ", counted from 0"),
        ];
        for (key, asked, most, how) in counted {
            if asked.is_some_and(|asked| asked > most)
                && let Some(asked) = self.set(key, None)
            {
                let there = if disks == 1 { "is 1 disk".to_owned() } else { format!("are {disks} disks") };
                self.note_idle(key, &asked, format!("there {there}{how}"));
            }
        }
    }

    /// Replaces the striping hints by the actual striping of the file.
    pub(crate) fn note_striping(&mut self, stat: Stat) {
        for (key, fact) in [("striping_factor", stat.stripes.into()), ("striping_unit", stat.block_bytes)] {
            let fact = fact.to_string();
            if let Some(asked) = self.set(key, Some(fact.clone())).filter(|asked| *asked != fact) {
                self.note_idle(key, &asked, format!("the file has {fact}"));
            }
        }
        if stat.stripes > 1
            && let Some(asked) = self.set("start_iodevice", None)
        {
            self.note_idle("start_iodevice", &asked, "it requires a file on one disk: striping_factor=1");
        }
    }

    /// Returns the options for creating a file with these hints; `None` if no hint asks for striping.
    pub(crate) fn striped(&self, options: OpenOptions) -> Option<OpenOptions> {
        let ParsedHints { first_disk, disks, block_bytes, .. } = self.effects;
        let options = disks.map_or(options, |disks| options.disks(disks));
        let options = match first_disk {
            Some(first) if disks == Some(NonZeroU32::MIN) => options.on_disk(first),
            _ => options,
        };
        let striped = block_bytes.map_or(options, |bytes| options.block_bytes(bytes.get().into()));
        (disks.is_some() || block_bytes.is_some()).then_some(striped)
    }

    /// Returns messages about our hints that are unknown or have an invalid value. Hints without our prefix may be for
    /// another library.
    pub(crate) fn mistakes(&self) -> impl Iterator<Item = String> {
        let ours = self.without_effect().filter(|(key, ..)| key.starts_with(OURS));
        let mistaken = ours.filter(|(key, value, _)| known_as(key).is_none_or(|known| !known.takes(value)));
        mistaken.map(|(key, value, why)| format!("the hint {key}={value} has no effect: {why}"))
    }

    /// Returns the hints without effect: key, value and reason.
    pub(crate) fn without_effect(&self) -> impl Iterator<Item = (&str, &str, &str)> {
        self.idle.iter().map(|(key, (value, why))| (&**key, &**value, &**why))
    }

    /// Returns the method of collective calls and the hint that chose it; `None` if no hint did.
    pub(crate) fn method(&self, operation: Operation) -> (CallMethod, Option<&'static str>) {
        let (is_disabled, switch) = match operation {
            Operation::Read => (self.effects.reads_alone, "romio_cb_read"),
            Operation::Write => (self.effects.writes_alone, "romio_cb_write"),
        };
        match self.effects.method {
            // Reads do not go through a write cache.
            Some(CallMethod::WriteCached) => (CallMethod::DiskDirected, None),
            Some(method) => (method, Some(METHOD)),
            None if is_disabled => (CallMethod::Independent, Some(switch)),
            None => (CallMethod::DiskDirected, None),
        }
    }

    /// Returns the hints that must be equal in all processes with the file open.
    pub(crate) fn in_common(&self) -> CommonHints {
        let [written, read] = [Operation::Write, Operation::Read].map(|operation| self.method(operation).0);
        let written = if self.caches_writes() { CallMethod::WriteCached } else { written };
        CommonHints { methods: [written, read] }
    }

    /// True if writes go into a write cache.
    pub(crate) fn caches_writes(&self) -> bool {
        self.effects.method == Some(CallMethod::WriteCached)
    }

    /// True if processes see each other's writes when the calls have returned, not only after a sync.
    pub(crate) fn is_seen_at_once(&self) -> bool {
        !self.caches_writes() && self.effects.visible_at_once
    }

    /// Returns the settings with which all members move data by this method.
    pub(crate) fn moves(&self, method: CallMethod) -> SelectedSettings {
        let ParsedHints { presort, queued, .. } = self.effects;
        let method = match method {
            CallMethod::TwoPhase => CollectiveMethod::TwoPhase,
            _ => CollectiveMethod::DiskDirected { presort },
        };
        SelectedSettings { method, queued, ..SelectedSettings::default() }
    }

    /// Returns the hint of this index, in the order of names.
    pub(crate) fn numbered(&self, index: usize) -> Option<(&str, &str)> {
        self.in_force.iter().nth(index).map(|(key, value)| (*key, value.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_hints_are_ignored() {
        let mut hints = Hints::usual(4);
        let before = hints.clone();
        for (key, value) in
            [("cb_nodes", "many"), ("cb_nodes", "0"), ("nonsense", "1"), ("romio_cb_read", "on")]
        {
            hints.take(key, value);
        }
        hints.take_later("striping_unit", "65536");
        assert_eq!(hints.in_force, before.in_force);
        hints.take("striping_unit", "65536");
        assert_eq!(hints.striped(OpenOptions::new()), Some(OpenOptions::new().block_bytes(65536)));
    }

    /// A hint of another library may be valid for that library; an unknown hint with our prefix is a typing error.
    #[test]
    fn misspelt_starfish_hints_are_mistakes() {
        let mut hints = Hints::usual(4);
        hints.take_pairs(
            "starfish_method=twophase,starfish_metod=auto,romio_cb_read=on,nonsense=1,cb_nodes=2",
        );
        assert_eq!(
            hints.mistakes().collect::<Vec<_>>(),
            [
                "the hint starfish_method=twophase has no effect: expected auto, disk-directed, two-phase, independent, \
                 write-cached",
                "the hint starfish_metod=auto has no effect: unknown hint",
            ]
        );
    }

    fn without_effect(hints: &Hints) -> Vec<(&str, &str, &str)> {
        hints.without_effect().collect()
    }

    #[test]
    fn ineffective_hints_are_listed_with_the_reason() {
        let mut hints = Hints::usual(4);
        hints
            .take_lines("# a comment 1\ncb_nodes 2\nstriping_factor\t3\nromio_cb_read a lot\n\nnonsense 1\n");
        hints.take("starfish_queued", "perhaps");
        hints.take("romio_cb_write", "disable");
        let idle = [
            ("cb_nodes", "2", "Starfish has no aggregators"),
            ("nonsense", "1", "unknown hint"),
            ("starfish_queued", "perhaps", "expected true, false"),
        ];
        assert_eq!(without_effect(&hints), idle);
        // A later valid value takes effect.
        hints.take("starfish_queued", "false");
        assert_eq!(without_effect(&hints), idle[..2]);
        assert_eq!(hints.in_force["cb_nodes"], "2");
    }

    #[test]
    fn an_ineffective_hint_keeps_its_first_reason() {
        let mut hints = Hints::usual(1);
        let given = [("striping_factor", "9"), ("striping_unit", "banana"), ("start_iodevice", "3")];
        given.iter().for_each(|(key, value)| hints.take(key, value));
        hints.take_pairs("rubbish,");
        hints.note_disks(3);
        hints.note_striping(Stat {
            bytes: 0,
            block_bytes: 65536,
            stripes: 3,
            attributes: Default::default(),
        });
        // The program passes the same hints again with its view.
        given.iter().for_each(|(key, value)| hints.take_later(key, value));
        let idle = [
            ("rubbish", "", "expected key=value"),
            ("start_iodevice", "3", "there are 3 disks, counted from 0"),
            ("striping_factor", "9", "there are 3 disks"),
            ("striping_unit", "banana", "expected a whole number from 1"),
        ];
        assert_eq!(without_effect(&hints), idle);
        assert_eq!(hints.in_force.get("start_iodevice"), None);
        hints.take_later("striping_factor", "2");
        assert_eq!(
            without_effect(&hints)[2],
            ("striping_factor", "2", "the striping is chosen when the file is created")
        );
    }

    #[test]
    fn a_file_on_one_disk_can_be_placed_on_any_disk() {
        let mut hints = Hints::usual(1);
        hints.take("start_iodevice", "2");
        assert_eq!(hints.striped(OpenOptions::new()), None);
        hints.take("striping_factor", "1");
        let one = OpenOptions::new().disks(NonZeroU32::MIN).on_disk(2);
        assert_eq!(hints.striped(OpenOptions::new()), Some(one));
    }

    #[test]
    fn writes_are_visible_at_once_unless_a_hint_delays_them() {
        let mut hints = Hints::usual(2);
        assert!(hints.is_seen_at_once());
        hints.take_later("starfish_visible", "sync");
        assert!(!hints.is_seen_at_once());
    }

    #[test]
    fn the_write_cache_hint_has_an_effect_only_at_open() {
        let mut hints = Hints::usual(2);
        hints.take_later("starfish_method", "write-cached");
        assert!(!hints.caches_writes() && hints.is_seen_at_once());
        assert_eq!(without_effect(&hints).len(), 1);
        hints.take("starfish_method", "write-cached");
        assert!(hints.caches_writes() && !hints.is_seen_at_once());
        assert_eq!(hints.method(Operation::Read), (CallMethod::DiskDirected, None));
        hints.take_later("starfish_method", "auto");
        assert!(hints.caches_writes());
    }

    #[test]
    fn hints_of_a_view_do_not_change_the_method() {
        let mut hints = Hints::usual(2);
        hints.take_with_view("romio_cb_write", "disable");
        hints.take_with_view("starfish_visible", "sync");
        assert_eq!((hints.in_common(), hints.is_seen_at_once()), (Hints::usual(2).in_common(), false));
        assert_eq!(without_effect(&hints).len(), 1);
        // The value is already in force.
        hints.take_later("romio_cb_write", "disable");
        hints.take_with_view("romio_cb_write", "disable");
        assert_eq!(without_effect(&hints), []);
    }

    #[test]
    fn common_hints_survive_packing_into_a_number() {
        let (usual, mut other) = (Hints::usual(2), Hints::usual(2));
        other.take("cb_nodes", "1");
        assert_eq!(usual.in_common(), other.in_common());
        other.take("romio_cb_write", "disable");
        let common = CommonHints::of_packed(other.in_common().packed());
        assert_ne!(common, usual.in_common());
        assert_eq!(
            usual.in_common().differences(common),
            "the method for writes is disk-directed in one and independent in the other (starfish_method, \
             romio_cb_write)"
        );
    }

    #[test]
    fn starfish_hints_override_romio_hints() {
        let mut hints = Hints::usual(1);
        assert_eq!(hints.method(Operation::Write), (CallMethod::DiskDirected, None));
        hints.take("romio_cb_write", "disable");
        assert_eq!(hints.method(Operation::Write), (CallMethod::Independent, Some("romio_cb_write")));
        assert_eq!(hints.method(Operation::Read), (CallMethod::DiskDirected, None));
        hints.take("starfish_method", "disk-directed");
        assert_eq!(hints.method(Operation::Write), (CallMethod::DiskDirected, Some(METHOD)));
    }
}
