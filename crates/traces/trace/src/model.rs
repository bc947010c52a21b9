//! What is recorded: the types that writers and readers of traces share.
//!
//! They are encoded as they stand here, field by field (see the crate): to change one is to change the format.

use serde::{Deserialize, Serialize};

/// The most bytes of a text in a file. Longer ones are cut when they are written.
pub const TEXT_BYTES_MAX: usize = 4096;

macro_rules! ids {
    ($($(#[$meaning:meta])* $name:ident)*) => {$(
        $(#[$meaning])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        pub struct $name(pub u32);
    )*};
}

ids! {
    /// The number of a process within a section of a file, the writer's choice.
    ProcessId
    /// The number of a thread within a section of a file, the writer's choice.
    ThreadId
    /// The number of a state within a section of a file, the writer's choice.
    StateId
    /// The number of a counter within a section of a file, the writer's choice.
    CounterId
    /// The number of an argument's name within a section of a file, the writer's choice.
    NameId
}

/// What tells a process from others on its host, or in its simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ProcessNumber {
    /// The system's number of a process.
    Pid(u32),
    /// The number of a node, real or simulated.
    Node(u32),
}

/// A process whose threads are recorded: a program that runs, or a node of a simulated machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessInfo {
    /// The computer; empty in a simulation.
    pub host: String,
    /// Its number there.
    pub number: ProcessNumber,
    /// The program, or what kind of node it is.
    pub program: String,
    /// The command line, arguments separated by blanks; empty if there is none.
    pub command_line: String,
    /// What the wall clock showed at time 0 of its records, in nanoseconds since 1970 (UTC); none where times are
    /// simulated or it is not known.
    pub zero_unix_ns: Option<u64>,
}

impl ProcessInfo {
    /// What a process is called in tables: `psrs 4711 on host`, `I/O node 3`.
    pub fn title(&self) -> String {
        let number = match self.number {
            ProcessNumber::Pid(number) | ProcessNumber::Node(number) => number,
        };
        let on = if self.host.is_empty() { "" } else { " on " };
        format!("{} {number}{on}{}", self.program, self.host)
    }

    /// The same process with this title, as [`title`](Self::title) makes it. A name of another form is its program's.
    #[must_use]
    pub fn titled(self, title: &str) -> Self {
        let (name, host) = title.rsplit_once(" on ").unwrap_or((title, ""));
        let numbered =
            name.rsplit_once(' ').and_then(|(program, number)| Some((program, number.parse().ok()?)));
        let Some((program, number)) = numbered else {
            return ProcessInfo { program: title.to_owned(), ..self };
        };
        let number = match self.number {
            ProcessNumber::Pid(pid) if pid == number => ProcessNumber::Pid(pid),
            _ => ProcessNumber::Node(number),
        };
        ProcessInfo { program: program.to_owned(), number, host: host.to_owned(), ..self }
    }
}

/// A row within a process: a thread of the system, a lane of a task, a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadInfo {
    /// The process it belongs to.
    pub process: ProcessId,
    /// What it is called.
    pub name: String,
}

/// A colour: red, green, blue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Colour(pub u8, pub u8, pub u8);

/// What a thread can be in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateInfo {
    /// Its name. States of the same name and category are the same, whichever process records them.
    pub name: String,
    /// What kind of state it is, for filters; may be empty.
    pub category: String,
    /// The colour it is to have; none to leave that to the viewer.
    pub colour: Option<Colour>,
}

/// A number over time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CounterInfo {
    /// What it is called.
    pub name: String,
    /// The unit of its numbers; may be empty.
    pub unit: String,
}

/// How the clock of a process differs from that of reference: the collector's, who compared them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockOffset {
    /// What is to be added to the process's wall clock to have that of reference, in nanoseconds.
    pub offset_ns: i64,
    /// By how much that may be wrong, up or down, in nanoseconds.
    pub uncertainty_ns: u64,
}

/// A number that was counted or measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Amount {
    /// A whole one.
    Integer(i64),
    /// Any.
    Real(f64),
}

macro_rules! integers {
    ($($integer:ty)*) => {$(
        impl From<$integer> for Amount {
            fn from(integer: $integer) -> Self {
                Amount::Integer(integer.into())
            }
        }
    )*};
}

integers!(i8 u8 i16 u16 i32 u32 i64);

impl From<u64> for Amount {
    /// One beyond `i64` loses its last digits.
    fn from(integer: u64) -> Self {
        i64::try_from(integer).map_or(Amount::Real(integer as f64), Amount::Integer)
    }
}

impl From<usize> for Amount {
    fn from(integer: usize) -> Self {
        Amount::from(integer as u64)
    }
}

impl From<f64> for Amount {
    fn from(real: f64) -> Self {
        Amount::Real(real)
    }
}

/// The value of an argument.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum RecordedValue {
    /// A number.
    Number(Amount),
    /// A text, of which [`TEXT_BYTES_MAX`] bytes are kept.
    Text(String),
}

/// Something that happened on a thread.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// When, in nanoseconds on the clock of the thread's process.
    pub time_ns: u64,
    /// What.
    pub event: RecordedEvent,
}

/// What can happen on a thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum RecordedEvent {
    /// A state begins, within those that have begun before.
    Begin(StateId),
    /// A state ends: the one of this number that began last and has not ended.
    End(StateId),
    /// A state, known as a whole: it begins at the time of the record and lasts this many nanoseconds. 0 is a state
    /// that has no duration: a point in time.
    Span(StateId, u64),
    /// A counter has this value from now on.
    Count(CounterId, Amount),
    /// Something about a span: the one that was told by the [`RecordedEvent::Span`] before, if that has the same time
    /// and nothing has begun or ended since; else the innermost open one, begun last.
    Argument(NameId, RecordedValue),
    /// Something leaves, and arrives elsewhere as a [`RecordedEvent::FlowIn`] of the same number, of nothing else.
    FlowOut(u64),
    /// What left as a [`RecordedEvent::FlowOut`] of the same number arrives.
    FlowIn(u64),
    /// The thread is on this processor.
    Processor(u32),
    /// How often the system has taken the processor from the thread so far.
    Switches {
        /// Because it waited.
        voluntary: u64,
        /// Because it was another's turn.
        involuntary: u64,
    },
}
