//! The orders in which a disk can serve its waiting requests, and the names of these orders for users.

use std::fmt;
use std::str::FromStr;

/// Order in which a disk's waiting requests are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Scheduling {
    /// First come, first served.
    Fcfs,
    /// Cyclic scan, by logical block: a client that reads one object sequentially delays all others.
    #[default]
    CyclicScan,
    /// Cyclic scan, by physical position where the disk reports it.
    PhysicalCyclicScan,
    /// Cyclic scan, by logical block, in closed sweeps: a sweep serves only the requests that waited at its beginning.
    FairScan,
    /// Round-robin among the jobs, one request each.
    RoundRobin,
    /// Any read before any write. An endless stream of reads starves writes.
    ReadPriority,
    /// Any read before any write, except a write that several reads have overtaken.
    BoundedReadPriority,
}

impl Scheduling {
    /// All orders.
    pub const ALL: [Scheduling; 7] = [
        Scheduling::Fcfs,
        Scheduling::CyclicScan,
        Scheduling::PhysicalCyclicScan,
        Scheduling::FairScan,
        Scheduling::RoundRobin,
        Scheduling::ReadPriority,
        Scheduling::BoundedReadPriority,
    ];

    /// The names of all orders, in the same order.
    pub const NAMES: [&str; Self::ALL.len()] = {
        let mut names = [""; Self::ALL.len()];
        let mut at = 0;
        while at < names.len() {
            names[at] = Self::ALL[at].name();
            at += 1;
        }
        names
    };

    /// Returns the name used in options, plans and results.
    pub const fn name(self) -> &'static str {
        match self {
            Scheduling::Fcfs => "fcfs",
            Scheduling::CyclicScan => "cyclic-scan",
            Scheduling::PhysicalCyclicScan => "physical-cyclic-scan",
            Scheduling::FairScan => "fair-scan",
            Scheduling::RoundRobin => "round-robin",
            Scheduling::ReadPriority => "read-priority",
            Scheduling::BoundedReadPriority => "bounded-read-priority",
        }
    }

    /// Returns a description of one line for users.
    pub fn meaning(self) -> &'static str {
        match self {
            Scheduling::Fcfs => "First come, first served",
            Scheduling::CyclicScan => "By ascending position, then again from the lowest (C-SCAN)",
            Scheduling::PhysicalCyclicScan => "C-SCAN by physical position instead of the offset in the file",
            Scheduling::FairScan => {
                "C-SCAN whose sweeps serve only requests that waited when the sweep began"
            }
            Scheduling::RoundRobin => "One request of each client in turn",
            Scheduling::ReadPriority => "Any read before any write; writes may wait forever",
            Scheduling::BoundedReadPriority => {
                "Any read before any write, except a write that 16 reads have passed"
            }
        }
    }
}

impl fmt::Display for Scheduling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Scheduling {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Scheduling::ALL.into_iter().find(|scheduling| scheduling.name() == text);
        found.ok_or_else(|| {
            format!("no scheduling {text:?}: expected one of {}", Scheduling::NAMES.join(", "))
        })
    }
}
