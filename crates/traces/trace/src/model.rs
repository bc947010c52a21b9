//! Types of recorded events, shared by writers and readers of traces.
//!
//! The file contains their fields in the order of declaration (see `lib.rs`): a change of these types changes the
//! format.

use serde::{Deserialize, Serialize};

/// Maximum length in bytes of a text in a file. The writer truncates longer texts.
pub const TEXT_BYTES_MAX: usize = 4096;

macro_rules! ids {
    ($($(#[$meaning:meta])* $name:ident)*) => {$(
        $(#[$meaning])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        pub struct $name(pub u32);
    )*};
}

ids! {
    /// Number of a process within a section of a file, chosen by the writer.
    ProcessId
    /// Number of a thread within a section of a file, chosen by the writer.
    ThreadId
    /// Number of a state within a section of a file, chosen by the writer.
    StateId
    /// Number of a counter within a section of a file, chosen by the writer.
    CounterId
    /// Number of an argument's name within a section of a file, chosen by the writer.
    NameId
}

/// Identifier of a process on its host, or in its simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ProcessNumber {
    /// Process id of the system.
    Pid(u32),
    /// Number of a node, real or simulated.
    Node(u32),
}

/// Recorded process: a running program, or a node of a simulated machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessInfo {
    /// Name of the computer; empty in a simulation.
    pub host: String,
    /// Number of the process on this host.
    pub number: ProcessNumber,
    /// Name of the program, or kind of the node.
    pub program: String,
    /// Command line: arguments separated by blanks; empty if unknown.
    pub command_line: String,
    /// Wall-clock time at time 0 of the records, in nanoseconds since 1970 (UTC); `None` if unknown, or if times are
    /// simulated.
    pub zero_unix_ns: Option<u64>,
}

impl ProcessInfo {
    /// Returns the title of a process in tables: `psrs 4711 on host`, `I/O node 3`.
    pub fn title(&self) -> String {
        let number = match self.number {
            ProcessNumber::Pid(number) | ProcessNumber::Node(number) => number,
        };
        let on = if self.host.is_empty() { "" } else { " on " };
        format!("{} {number}{on}{}", self.program, self.host)
    }

    /// Returns this process with the program, number and host in `title`, the inverse of [`title`](Self::title). A
    /// title of another form becomes the name of the program.
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

/// Row within a process: a thread of the operating system, a lane of tasks, or a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadInfo {
    /// Process of the thread.
    pub process: ProcessId,
    /// Name of the thread.
    pub name: String,
}

/// Colour: red, green, blue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Colour(pub u8, pub u8, pub u8);

/// State of a thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateInfo {
    /// Name. States of the same name and category are equal, even from different processes.
    pub name: String,
    /// Category of the state, for filters; may be empty.
    pub category: String,
    /// Colour in the viewer; `None` lets the viewer choose.
    pub colour: Option<Colour>,
}

/// Value over time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CounterInfo {
    /// Name of the counter.
    pub name: String,
    /// Unit of its values; may be empty.
    pub unit: String,
}

/// Offset of the clock of a process from the reference clock. The reference clock is that of the node that collected
/// the traces and compared the clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockOffset {
    /// Nanoseconds to add to the wall-clock time of the process to obtain the time on the reference clock.
    pub offset_ns: i64,
    /// Maximum error of the offset in either direction, in nanoseconds.
    pub uncertainty_ns: u64,
}

/// Counted or measured number.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Amount {
    /// Integer.
    Integer(i64),
    /// Real number.
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
    /// Converts integers beyond the range of `i64` to real numbers, which loses their last digits.
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

/// Value of an argument.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum RecordedValue {
    /// Number.
    Number(Amount),
    /// Text. The writer truncates it to [`TEXT_BYTES_MAX`] bytes.
    Text(String),
}

/// Event on a thread, with its time.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Time in nanoseconds on the clock of the thread's process.
    pub time_ns: u64,
    /// The event.
    pub event: RecordedEvent,
}

/// Kind of event on a thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum RecordedEvent {
    /// Begin of a state, nested in the states begun before.
    Begin(StateId),
    /// End of a state: the latest open one with this number.
    End(StateId),
    /// Complete state, which begins at the time of the record and lasts this number of nanoseconds. A duration of 0 is
    /// a point in time.
    Span(StateId, u64),
    /// Value of a counter from now on.
    Count(CounterId, Amount),
    /// Argument of a span. The span is the preceding [`RecordedEvent::Span`] if it has the same time and no state has
    /// begun or ended since; otherwise the open span that began last.
    Argument(NameId, RecordedValue),
    /// Departure of a flow with this unique number. Its arrival is a [`RecordedEvent::FlowIn`] with the same number.
    FlowOut(u64),
    /// Arrival of a flow. Its departure is a [`RecordedEvent::FlowOut`] with the same number.
    FlowIn(u64),
    /// Processor of the thread from now on.
    Processor(u32),
    /// Numbers of context switches of the thread so far.
    Switches {
        /// Switches because the thread waited.
        voluntary: u64,
        /// Switches because the system preempted the thread.
        involuntary: u64,
    },
}
