//! What is in force of an `MPI_Info`: the hints of ROMIO that mean something here, and our own.

use std::collections::BTreeMap;
use std::env;
use std::num::NonZeroU32;

use node::{CollectiveMethod, OpenOptions, SelectedSettings, Stat};
use request_log::CallMethod;

/// The environment variable with hints for programs that give none; what a program says itself takes precedence.
const VARIABLE: &str = "STARFISH_MPI_HINTS";

/// Hints that are known, with what values they can have; those without any take a number.
const KNOWN: [(&str, &[&str]); 16] = [
    ("access_style", &[]),
    ("cb_buffer_size", &[]),
    ("cb_nodes", &[]),
    ("ind_rd_buffer_size", &[]),
    ("ind_wr_buffer_size", &[]),
    ("romio_cb_read", SWITCH),
    ("romio_cb_write", SWITCH),
    ("romio_ds_read", SWITCH),
    ("romio_ds_write", SWITCH),
    ("romio_no_indep_rw", &["true", "false"]),
    ("starfish_method", &["auto", "disk-directed", "two-phase", "independent"]),
    ("starfish_presort", &["true", "false"]),
    ("starfish_queued", &["true", "false"]),
    ("starfish_visible", &["call", "sync"]),
    ("striping_factor", &[]),
    ("striping_unit", &[]),
];

const SWITCH: &[&str] = &["enable", "disable", "automatic"];

/// Hints of how a file is striped, which count when it is made.
const OF_STRIPING: [&str; 2] = ["striping_factor", "striping_unit"];

/// The hints in force of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hints(BTreeMap<&'static str, String>);

impl Hints {
    /// Those of a file that so many processes open, before anybody says anything else. What ROMIO's programs expect to
    /// find is there, whether it means anything or not.
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
        Hints(usual.into_iter().map(|(key, value)| (key, value.to_owned())).collect())
    }

    /// Takes in the hints of the environment, `key=value` with commas between.
    pub(crate) fn take_environment(&mut self) {
        let given = env::var(VARIABLE).unwrap_or_default();
        let pairs = given.split(',').filter_map(|pair| pair.split_once('='));
        pairs.for_each(|(key, value)| self.take(key.trim(), value));
    }

    /// Takes in a hint; one that is not known, or whose value makes no sense, is ignored, as MPI wants it.
    pub(crate) fn take(&mut self, key: &str, value: &str) {
        let value = value.trim();
        let Some((key, values)) = KNOWN.into_iter().find(|(known, _)| *known == key) else { return };
        let is_number = || value.parse::<u32>().is_ok_and(|number| number > 0);
        let is_text = key == "access_style";
        if is_text || values.contains(&value) || (values.is_empty() && is_number()) {
            self.0.insert(key, value.to_owned());
        }
    }

    /// Takes in a hint for a file that is open: how it is striped does not change any more.
    pub(crate) fn take_later(&mut self, key: &str, value: &str) {
        if !OF_STRIPING.contains(&key) {
            self.take(key, value);
        }
    }

    /// How the file is striped in fact.
    pub(crate) fn note_striping(&mut self, stat: Stat) {
        self.0.insert("striping_factor", stat.stripes.to_string());
        self.0.insert("striping_unit", stat.block_bytes.to_string());
    }

    /// The options for a file that may be made; nothing if they ask for nothing.
    pub(crate) fn striped(&self, options: OpenOptions) -> Option<OpenOptions> {
        let number =
            |key| self.0.get(key).and_then(|value| value.parse::<u32>().ok()).and_then(NonZeroU32::new);
        let [factor, unit] = OF_STRIPING.map(number);
        let options = factor.map_or(options, |disks| options.disks(disks));
        let striped = unit.map_or(options, |bytes| options.block_bytes(bytes.get().into()));
        (factor.is_some() || unit.is_some()).then_some(striped)
    }

    /// How a collective call moves data: `switch` is ROMIO's hint about it.
    pub(crate) fn method(&self, switch: &str) -> CallMethod {
        let is_disabled = self.0.get(switch).is_some_and(|value| value == "disable");
        match self.0.get("starfish_method").and_then(|word| CallMethod::named(word)) {
            Some(method) => method,
            None if is_disabled => CallMethod::Independent,
            None => CallMethod::DiskDirected,
        }
    }

    /// Whether processes see what others have written when these calls have returned, not only after a sync.
    pub(crate) fn is_seen_at_once(&self) -> bool {
        self.0.get("starfish_visible").is_none_or(|value| value == "call")
    }

    /// How all members move data by this method.
    pub(crate) fn moves(&self, method: CallMethod) -> SelectedSettings {
        let is = |key: &str| self.0.get(key).is_none_or(|value| value == "true");
        let method = match method {
            CallMethod::TwoPhase => CollectiveMethod::TwoPhase,
            _ => CollectiveMethod::DiskDirected { presort: is("starfish_presort") },
        };
        SelectedSettings { method, queued: is("starfish_queued"), ..SelectedSettings::default() }
    }

    /// The hint of this index, in the order of their names.
    pub(crate) fn numbered(&self, index: usize) -> Option<(&str, &str)> {
        self.0.iter().nth(index).map(|(key, value)| (*key, value.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_that_make_no_sense_are_ignored() {
        let mut hints = Hints::usual(4);
        let before = hints.clone();
        for (key, value) in
            [("cb_nodes", "many"), ("cb_nodes", "0"), ("nonsense", "1"), ("romio_cb_read", "on")]
        {
            hints.take(key, value);
        }
        hints.take_later("striping_unit", "65536");
        assert_eq!(hints, before);
        hints.take("striping_unit", "65536");
        assert_eq!(hints.striped(OpenOptions::new()), Some(OpenOptions::new().block_bytes(65536)));
    }

    #[test]
    fn writes_are_seen_at_once_unless_a_hint_says_otherwise() {
        let mut hints = Hints::usual(2);
        assert!(hints.is_seen_at_once());
        hints.take_later("starfish_visible", "sync");
        assert!(!hints.is_seen_at_once());
    }

    #[test]
    fn the_method_is_ours_or_romios() {
        let mut hints = Hints::usual(1);
        assert_eq!(hints.method("romio_cb_write"), CallMethod::DiskDirected);
        hints.take("romio_cb_write", "disable");
        assert_eq!(hints.method("romio_cb_write"), CallMethod::Independent);
        assert_eq!(hints.method("romio_cb_read"), CallMethod::DiskDirected);
        hints.take("starfish_method", "disk-directed");
        assert_eq!(hints.method("romio_cb_write"), CallMethod::DiskDirected);
    }
}
