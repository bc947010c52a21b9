//! Chooses the access path of a call and records the reason.

use std::fmt;

use layout::Operation;
use request_log::CallMethod;

use crate::hints::{Hints, METHOD};

/// Access path of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum AccessPath {
    /// Collective: moves the data of all members at once, by this method.
    Together(CallMethod),
    /// Independent: holds the lock of the file.
    Atomic,
    /// Independent: one piece, through the page cache.
    PageCache,
    /// Independent: several pieces, in one request to each agent.
    Selections,
    /// Writes into the write cache of this process, which all members flush together.
    WriteCached,
}

/// The access path of a call, and its reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Choice {
    pub(crate) way: AccessPath,
    pub(crate) why: AccessPathReason,
}

/// Reason for an access path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum AccessPathReason {
    /// `starfish_method=auto`, and no other hint decides.
    Auto,
    /// A hint names the method.
    Method,
    /// This hint of ROMIO's is `disable`.
    Disabled(&'static str),
    /// The file is in atomic mode: a call sees all or nothing of another.
    AtomicMode,
    /// A single process has the file open.
    OneProcess,
    /// The call is not collective.
    OwnCall,
}

/// Properties of a call that decide its access path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallProperties {
    pub(crate) operation: Operation,
    pub(crate) together: bool,
    pub(crate) is_atomic: bool,
    /// True if the file was opened for writing through a write cache.
    pub(crate) caches_writes: bool,
    /// Number of processes with the file open.
    pub(crate) members: u32,
    /// Number of pieces that this process moves.
    pub(crate) pieces: u64,
}

impl CallProperties {
    /// Returns the access path. For collective calls it depends only on values that are the same in all members.
    pub(crate) fn choose(self, hints: &Hints) -> Choice {
        let alone = |why| Choice { way: self.way_alone(), why };
        let is_write = self.operation == Operation::Write;
        match self {
            CallProperties { caches_writes: true, is_atomic: false, .. } if is_write => {
                Choice { way: AccessPath::WriteCached, why: AccessPathReason::Method }
            }
            CallProperties { together: false, .. } => alone(AccessPathReason::OwnCall),
            CallProperties { is_atomic: true, .. } => alone(AccessPathReason::AtomicMode),
            CallProperties { members: 1, .. } => alone(AccessPathReason::OneProcess),
            _ => match hints.method(self.operation) {
                (CallMethod::Independent, hint) => alone(AccessPathReason::of(hint)),
                (method, hint) => {
                    Choice { way: AccessPath::Together(method), why: AccessPathReason::of(hint) }
                }
            },
        }
    }

    fn way_alone(self) -> AccessPath {
        match (self.is_atomic, self.pieces) {
            (true, _) => AccessPath::Atomic,
            (false, 0 | 1) => AccessPath::PageCache,
            (false, _) => AccessPath::Selections,
        }
    }
}

impl AccessPath {
    pub(crate) fn name(self) -> &'static str {
        match self {
            AccessPath::Together(method) => method.name(),
            AccessPath::Atomic => "atomic",
            AccessPath::PageCache => "through the page cache",
            AccessPath::Selections => "by selections",
            AccessPath::WriteCached => CallMethod::WriteCached.name(),
        }
    }
}

impl AccessPathReason {
    /// Returns the reason for the hint that decided.
    fn of(hint: Option<&'static str>) -> AccessPathReason {
        match hint {
            None => AccessPathReason::Auto,
            Some(METHOD) => AccessPathReason::Method,
            Some(switch) => AccessPathReason::Disabled(switch),
        }
    }
}

impl fmt::Display for AccessPathReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AccessPathReason::Auto => f.write_str("auto"),
            AccessPathReason::Method => f.write_str(METHOD),
            AccessPathReason::Disabled(hint) => write!(f, "{hint}=disable"),
            AccessPathReason::AtomicMode => f.write_str("atomic mode"),
            AccessPathReason::OneProcess => f.write_str("one process has the file open"),
            AccessPathReason::OwnCall => f.write_str("independent call"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use experiment::{AccessPattern, Choices, DiskLayout, FieldSet, Method, Options, Queued};

    use super::*;

    /// Machines on which the methods are compared, with their changed settings.
    const MACHINES: [(&str, &[(&str, &str)]); 4] = [
        ("loopback", &[FOUR, SHARED, ("disks.model", "streaming-20")]),
        ("loopback", &[FOUR, SHARED, ("disks.model", "flash-qlc")]),
        ("cluster-switch", &[SIXTEEN, ONE_DISK, ONE_BUS, ("disks.model", "hp97560")]),
        ("cluster-switch", &[SIXTEEN, ONE_DISK, ONE_BUS, ("disks.model", "flash-qlc")]),
    ];
    const FOUR: (&str, &str) = ("nodes.compute", "4");
    const SIXTEEN: (&str, &str) = ("nodes.compute", "16");
    const SHARED: (&str, &str) = ("processor.shared", "2");
    const ONE_DISK: (&str, &str) = ("disks.per_io_node", "1");
    const ONE_BUS: (&str, &str) = ("buses.per_io_node", "1");

    /// Cells where another method is more than a tenth faster than that of `auto`: machine, pattern, record size in
    /// bytes, and method. The last machine is limited by its network, not its disks.
    const EXCEPTIONS: [(usize, &str, u64, Method); 4] = [
        (3, "ra", 64, Method::TwoPhase),
        (3, "ra", 8192, Method::TwoPhase),
        (3, "rb", 64, Method::Traditional),
        (3, "rb", 8192, Method::Traditional),
    ];

    /// Returns the simulated throughput of a pattern by a method, as calls of an MPI program.
    fn simulated(machine: usize, method: Method, pattern: AccessPattern, record_bytes: u64) -> f64 {
        let (name, set) = MACHINES[machine];
        let options =
            Options { calls: true, block_bytes: 64 << 10, queued: Queued::Always, ..Options::of_agents() };
        let choices = Choices {
            machine: name.to_owned(),
            set: set
                .iter()
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
                .collect::<BTreeMap<_, _>>(),
            file_bytes: 4 << 20,
            layout: DiskLayout::Contiguous,
            options: options.of(method),
            ..Choices::default()
        };
        let machine = choices.load_machine().expect("built in");
        let case = choices.case(machine, method, pattern, record_bytes, 1);
        case.trial(0).unwrap_or_else(|error| panic!("{case}: {error}")).throughput_mib_s()
    }

    /// Returns the method of `auto` for calls of several processes.
    fn of_auto(operation: Operation) -> Method {
        let situation = CallProperties {
            operation,
            together: true,
            is_atomic: false,
            caches_writes: false,
            members: 4,
            pieces: 2,
        };
        match situation.choose(&Hints::usual(4)) {
            Choice { way: AccessPath::Together(method), why: AccessPathReason::Auto } => {
                method.name().parse().expect("a method")
            }
            other => panic!("{other:?}"),
        }
    }

    /// Checks some cells of the plans of `experiments/mpi`: the method of `auto` is at most a tenth slower than the
    /// best one, or the cell is an exception, which the manual explains.
    #[test]
    fn the_method_of_auto_is_nearly_the_fastest() {
        let mut found = Vec::new();
        for machine in 0..MACHINES.len() {
            for name in ["ra", "rb", "rcc", "wb", "wcc"] {
                let pattern: AccessPattern = name.parse().expect("a pattern");
                let cached = (pattern.operation() == Operation::Write).then_some(Method::WriteCached);
                for record_bytes in [64, 8192] {
                    let rate = |method| (simulated(machine, method, pattern, record_bytes), method);
                    let rates = Method::ALL.into_iter().chain(cached).map(rate);
                    let (most, best) = rates.max_by(|one, other| one.0.total_cmp(&other.0)).expect("three");
                    let (taken, _) = rate(of_auto(pattern.operation()));
                    if taken < 0.9 * most {
                        found.push((machine, name, record_bytes, best));
                    }
                }
            }
        }
        assert_eq!(found, EXCEPTIONS);
    }

    #[test]
    fn the_situation_of_a_call_decides_its_access_path() {
        let situation = CallProperties {
            operation: Operation::Write,
            together: true,
            is_atomic: false,
            caches_writes: false,
            members: 4,
            pieces: 2,
        };
        let usual = Hints::usual(4);
        let choose = |situation: CallProperties| {
            let Choice { way, why } = situation.choose(&usual);
            (way, why)
        };
        assert_eq!(
            choose(situation),
            (AccessPath::Together(CallMethod::DiskDirected), AccessPathReason::Auto)
        );
        assert_eq!(
            choose(CallProperties { together: false, ..situation }),
            (AccessPath::Selections, AccessPathReason::OwnCall)
        );
        assert_eq!(
            choose(CallProperties { members: 1, ..situation }),
            (AccessPath::Selections, AccessPathReason::OneProcess)
        );
        assert_eq!(
            choose(CallProperties { is_atomic: true, ..situation }),
            (AccessPath::Atomic, AccessPathReason::AtomicMode)
        );
        let cached = CallProperties { caches_writes: true, together: false, pieces: 1, ..situation };
        assert_eq!(choose(cached), (AccessPath::WriteCached, AccessPathReason::Method));
        assert_eq!(
            choose(CallProperties { operation: Operation::Read, ..cached }),
            (AccessPath::PageCache, AccessPathReason::OwnCall)
        );
    }
}
