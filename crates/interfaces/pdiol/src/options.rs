//! Options of PDIOL: from the command line, the environment, or defaults.
//!
//! The options precede an argument `-`: `program -window 16 -d 4 - argument ...`. The arguments after it belong to the
//! program. If the first argument does not begin with `-`, or no argument is a single `-`, all arguments belong to the
//! program.
//!
//! The environment variables have the names of the thesis with the prefix `PDIOL_`. A variable without the prefix may
//! be for another program: its value is used if it is valid for PDIOL, and ignored otherwise.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use node::{
    Agent, CacheWrites, Error, ErrorKind, Prefetch, Result, Settings, Size, SocketBuffers, flush_seconds,
};

use crate::log::{Log, LogFile};

/// Options of programs that use PDIOL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Name of the program, for the log.
    pub program: String,
    /// Prefetch policy.
    pub prefetch: Prefetch,
    /// True if a write returns before the agents have the data.
    pub write_behind: bool,
    /// Number of disks to stripe a new file over; `None` for all.
    pub disks: Option<NonZeroU32>,
    /// Buffer sizes of this program's sockets.
    pub sockets: SocketBuffers,
    /// Memory for pages, in bytes.
    pub cache_bytes: u64,
    /// Write cache, if there is one.
    pub write_cache: Option<CacheWrites>,
    /// Trace file for the library's work, if there is one.
    pub trace: Option<PathBuf>,
    /// Log file, if there is one.
    pub log: Option<LogFile>,
    /// Reasons why values of variables without the prefix were ignored, for the log.
    pub ignored: Vec<String>,
}

/// Formats the options for people, for the log.
impl fmt::Display for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.prefetch {
            Prefetch::Adaptive => write!(f, "adaptive window")?,
            Prefetch::None => write!(f, "no prefetching")?,
            Prefetch::Window(pages) => write!(f, "window of {pages} pages")?,
        }
        write!(f, ", write-behind {}", if self.write_behind { "on" } else { "off" })?;
        match self.disks {
            Some(disks) => write!(f, ", new files on {disks} disks")?,
            None => write!(f, ", new files on all disks")?,
        }
        write!(f, ", cache of {}", Size(self.cache_bytes))?;
        if let Some(CacheWrites { bytes, flush_after, job }) = &self.write_cache {
            write!(f, ", write cache of {}", Size(*bytes))?;
            if let Some(time) = flush_after {
                write!(f, " flushed after {} s", time.as_secs_f64())?;
            }
            if let Some(job) = job {
                write!(f, " with the job {job}")?;
            }
        }
        if let Some(path) = &self.trace {
            write!(f, ", traced to {}", path.display())?;
        }
        let SocketBuffers { send_bytes, receive_bytes } = self.sockets;
        for (which, bytes) in [("send", send_bytes), ("receive", receive_bytes)] {
            if let Some(bytes) = bytes {
                write!(f, ", {which} buffers of {}", Size(u64::from(bytes.get())))?;
            }
        }
        Ok(())
    }
}

impl Options {
    /// Returns the settings of a session with these agents, and the log, which begins with the options.
    pub fn begin(&self, agents: Vec<Agent>) -> Result<(Settings, Log)> {
        let log = Log::begin(self.log.as_ref())?;
        let mut settings = Settings::of_environment(agents)?;
        settings.cache_bytes = self.cache_bytes;
        settings.write_cache = self.write_cache.clone().or(settings.write_cache);
        settings.trace = self.trace.clone().or(settings.trace);
        settings.prefetch = self.prefetch;
        settings.write_behind = self.write_behind;
        settings.disks = self.disks;
        settings.sockets = self.sockets;
        settings.reporter = log.reporter();
        log.line(&format!("{} begins: {self}", self.program));
        self.ignored.iter().for_each(|ignored| log.line(&format!("ignored: {ignored}")));
        for agent in &settings.agents {
            log.line(&format!("agent {} at {}", agent.name, agent.address));
        }
        Ok((settings, log))
    }
}

impl Default for Options {
    /// Returns the options of an empty command line in an empty environment.
    fn default() -> Self {
        match find(&mut Vec::new(), |_| None) {
            Ok(Asked::Run(options)) => options,
            other => unreachable!("the defaults are values: {other:?}"),
        }
    }
}

/// Result of parsing the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Run with these options.
    Run(Options),
    /// Print the help.
    Help,
}

/// Option in the table.
struct Row {
    long: &'static str,
    short: &'static str,
    variable: &'static str,
    argument: &'static str,
    default: &'static str,
    meaning: &'static str,
}

const fn row(
    [long, short, variable]: [&'static str; 3],
    [argument, default]: [&'static str; 2],
    meaning: &'static str,
) -> Row {
    Row { long, short, variable, argument, default, meaning }
}

/// All options, in the order of the thesis's table A.1, followed by new ones.
const TABLE: [Row; 13] = [
    row(["prefetch", "p", "PREFETCH"], ["0|1", "1"], "prefetch pages"),
    row(
        ["write-behind", "w", "WRITEBEHIND"],
        ["0|1", "1"],
        "continue while written data are sent to the agents",
    ),
    row(["disk_number", "d", "DISKNUMBER"], ["N|all", "all"], "disks over which new files are striped"),
    row(["window", "W", "WINDOW_SIZE"], ["N|adaptive", "adaptive"], "pages to prefetch"),
    row(["ssock", "S", "SND_BUFF"], ["BYTES|auto", "auto"], "send buffer of each socket of this program"),
    row(["rsock", "r", "RCV_BUFF"], ["BYTES|auto", "auto"], "receive buffer of each socket of this program"),
    row(["LOG", "l", "LOG"], ["0|1", "0"], "write a log"),
    row(["log", "L", "LOG_FILE"], ["FILE", "log.txt"], "file that the log is appended to"),
    row(
        ["cache", "c", "CACHE"],
        ["BYTES", "256M"],
        "memory for pages, at least 64K; K, M, G are powers of 1024",
    ),
    row(
        ["write_cache", "C", "WRITE_CACHE"],
        ["BYTES|0", "0"],
        "memory for writes until the job flushes, at least 4K",
    ),
    row(
        ["flush_seconds", "F", "FLUSH_SECONDS"],
        ["SECONDS", "30"],
        "time limit of data in the write cache; 0: no limit",
    ),
    row(["job", "J", "JOB"], ["NAME", ""], "job whose processes flush together"),
    row(
        ["trace", "t", "TRACE"],
        ["FILE", ""],
        "append a trace of reads, writes and waits for pages to this file",
    ),
];

/// Options that the thesis does not have.
const NEW: [&str; 5] = ["cache", "write_cache", "flush_seconds", "job", "trace"];

/// Prefix of the environment variables.
const PREFIX: &str = "PDIOL_";

/// Separator between the options of PDIOL and the arguments of the program.
const SEPARATOR: &str = "-";

impl Row {
    fn is_called(&self, name: &str) -> bool {
        name == self.long || name == self.short
    }

    /// Returns the name of the environment variable.
    fn variable(&self) -> String {
        format!("{PREFIX}{}", self.variable)
    }

    /// Returns the name of the variable in the thesis, if it has one.
    fn old_variable(&self) -> Option<&'static str> {
        (!NEW.contains(&self.long)).then_some(self.variable)
    }

    /// Returns the value of an option that is not on the command line: from the environment, or the default.
    fn of_environment(&self, variable: impl Fn(&str) -> Option<OsString>) -> Given {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let of = |name: &str, value, is_old| Given {
            place: format!("the environment variable {name}"),
            value,
            is_old,
        };
        let name = self.variable();
        let new = set(&name).map(|value| of(&name, value, false));
        let old = || self.old_variable().and_then(|name| Some(of(name, set(name)?, true)));
        let default = || Given { place: "the default".into(), value: self.default.into(), is_old: false };
        new.or_else(old).unwrap_or_else(default)
    }
}

/// Value of an option.
struct Given {
    /// Origin of the value, for errors.
    place: String,
    value: OsString,
    /// True if the origin is a variable of the thesis.
    is_old: bool,
}

/// Values of all options, by their long names.
struct Values {
    program: String,
    given: BTreeMap<&'static str, Given>,
    /// Reasons for ignoring some values.
    ignored: Vec<String>,
}

/// Returns the name that a program was called by, without its directory.
pub fn program_name(arguments: &[OsString]) -> String {
    let name = arguments.first().map(|name| Path::new(name).file_name().unwrap_or(name));
    name.map_or("program".into(), OsStr::to_string_lossy).into_owned()
}

/// Parses the options. `arguments` begin with the name of the program; the options of PDIOL are removed from them.
pub fn find(arguments: &mut Vec<OsString>, variable: impl Fn(&str) -> Option<OsString>) -> Result<Asked> {
    let given = TABLE.iter().map(|row| (row.long, row.of_environment(&variable))).collect();
    let mut values = Values { program: program_name(arguments), given, ignored: Vec::new() };
    if values.take_from(take_given(arguments))? {
        return Ok(Asked::Help);
    }
    values.options().map(Asked::Run)
}

/// Removes the options of PDIOL from the command line and returns them.
fn take_given(arguments: &mut Vec<OsString>) -> Vec<OsString> {
    let Some(end) = separator(arguments) else { return Vec::new() };
    let mut given: Vec<OsString> = arguments.drain(1..=end).collect();
    given.pop();
    given
}

/// Returns the index of the separator, if the arguments begin with options.
fn separator(arguments: &[OsString]) -> Option<usize> {
    let begins = |argument: &OsString| argument.as_encoded_bytes().starts_with(SEPARATOR.as_bytes());
    arguments.get(1).filter(|first| begins(first))?;
    arguments.iter().skip(1).position(|argument| argument == SEPARATOR).map(|at| at + 1)
}

/// Returns true if the arguments begin with an option of PDIOL and contain the separator `-`.
pub fn are_given(arguments: &[OsString]) -> bool {
    let first = arguments.get(1).map(|first| first.to_string_lossy());
    let is_known = first.is_some_and(|first| {
        let name = first.split('=').next().unwrap_or_default();
        TABLE.iter().any(|row| row.is_called(bare(name)))
    });
    is_known && separator(arguments).is_some()
}

/// Returns the name of an option without its dashes.
fn bare(name: &str) -> &str {
    name.strip_prefix("--").or(name.strip_prefix('-')).unwrap_or("")
}

impl Values {
    /// Parses the options of the command line. Returns true if one of them asks for help.
    fn take_from(&mut self, arguments: Vec<OsString>) -> Result<bool> {
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            let text = argument.to_string_lossy();
            let (name, value) = match text.split_once('=') {
                Some((name, value)) => (name, Some(value.into())),
                None => (&*text, None),
            };
            let name = bare(name);
            if matches!(name, "h" | "help" | "Help") {
                return Ok(true);
            }
            let Some(row) = TABLE.iter().find(|row| row.is_called(name)) else {
                let error = Error::new(ErrorKind::Invalid, text.clone(), "PDIOL has no such option");
                return Err(error.with_remedy(
                    "Write options of PDIOL before an argument `-` and those of the program after it; -h - \
                     lists them",
                ));
            };
            let value = value.or_else(|| arguments.next()).ok_or_else(|| {
                let why = format!("a value is missing: {}", row.argument);
                Error::new(ErrorKind::Invalid, text.clone(), why)
            })?;
            let place = format!("the option -{}", row.long);
            self.given.insert(row.long, Given { place, value, is_old: false });
        }
        Ok(false)
    }

    fn options(mut self) -> Result<Options> {
        let prefetches = self.value("prefetch", flag)?;
        let window = self.value("window", |text| text.parse().ok())?;
        let logs = self.value("LOG", flag)?;
        let is_required = !self.given["LOG"].is_old;
        Ok(Options {
            prefetch: if prefetches { window } else { Prefetch::None },
            write_behind: self.value("write-behind", flag)?,
            disks: self.value("disk_number", |text| number_or(text, "all"))?,
            sockets: SocketBuffers {
                send_bytes: self.value("ssock", |text| number_or(text, "auto"))?,
                receive_bytes: self.value("rsock", |text| number_or(text, "auto"))?,
            },
            cache_bytes: self.value("cache", cache_bytes)?,
            write_cache: self.write_cache()?,
            trace: self.trace(),
            log: logs.then(|| LogFile { path: self.given["log"].value.clone(), is_required }),
            program: self.program,
            ignored: self.ignored,
        })
    }

    fn trace(&self) -> Option<PathBuf> {
        Some(self.given["trace"].value.clone()).filter(|path| !path.is_empty()).map(PathBuf::from)
    }

    fn write_cache(&mut self) -> Result<Option<CacheWrites>> {
        let bytes = self.value("write_cache", write_cache_bytes)?;
        let flush_after = self.value("flush_seconds", |text| flush_seconds(text.parse().ok()?))?;
        let job = self.value("job", |text| Some(text.to_owned()))?;
        let cache = |bytes| CacheWrites { bytes, flush_after, job: Some(job).filter(|job| !job.is_empty()) };
        Ok(bytes.map(cache))
    }

    /// Returns the value of an option, or an error with the value's origin and the valid values. If a variable without
    /// the prefix has an invalid value, uses the default: the variable is for another program.
    fn value<T>(&mut self, long: &str, parse: impl Fn(&str) -> Option<T>) -> Result<T> {
        let given = &self.given[long];
        if let Some(value) = given.value.to_str().and_then(&parse) {
            return Ok(value);
        }
        let row = TABLE.iter().find(|row| row.long == long).expect("a row for every value");
        let why = format!("{} is not a valid value", quoted(&given.value));
        let may = format!("Expected {}: {}", row.argument, row.meaning);
        let error = Error::new(ErrorKind::Invalid, given.place.clone(), why).with_remedy(may);
        if !given.is_old {
            return Err(error);
        }
        self.ignored.push(error.to_string());
        Ok(parse(row.default).expect("the default is a value"))
    }
}

fn quoted(text: &OsStr) -> String {
    format!("{:?}", text.to_string_lossy())
}

fn flag(text: &str) -> Option<bool> {
    match text {
        "0" => Some(false),
        "1" => Some(true),
        _ => None,
    }
}

/// Parses a number; 0 and `word` stand for `None`.
fn number_or(text: &str, word: &str) -> Option<Option<NonZeroU32>> {
    if text == word { Some(None) } else { text.parse().ok().map(NonZeroU32::new) }
}

/// Parses the size of a cache in bytes: at least a page of 64 KiB.
fn cache_bytes(text: &str) -> Option<u64> {
    text.parse().ok().map(|Size(bytes)| bytes).filter(|&bytes| bytes >= 1 << 16)
}

/// Parses the size of a write cache in bytes, at least 4 KiB; 0 stands for no cache.
fn write_cache_bytes(text: &str) -> Option<Option<u64>> {
    match text.parse().ok()? {
        Size(0) => Some(None),
        Size(bytes) => (bytes >= 4096).then_some(Some(bytes)),
    }
}

/// Returns the help text about the options.
pub fn help(program: &str) -> String {
    let mut text = format!(
        "{program} reads and writes files that are striped over the disks of many machines (PDIOL).\n\n\
         Usage: {program} [OPTIONS OF PDIOL] - [ARGUMENTS OF {program}]\n\
         \x20      {program} [ARGUMENTS OF {program}]\n\n\
         Options of PDIOL, with the environment variable of each and its default:\n"
    );
    for row in &TABLE {
        let names = format!("-{}, -{} {}", row.short, row.long, row.argument);
        text +=
            &format!("  {names:<28} {}\n  {:<28} [{}={}]\n", row.meaning, "", row.variable(), row.default);
    }
    text += "  -h, -help                    this text\n\n\
             Variables of the thesis are also read without PDIOL_, if their values are valid.\n\n\
             The agents, which have the disks, are read from the first of these that exists:\n\
             \x20 $STARFISH_AGENTS         HOST:PORT,HOST:PORT\n\
             \x20 the file $PDIOLCONF      names, HOST:PORT or HOST, between spaces or line ends; # begins a comment\n\
             \x20 the file $HOME/PDIOLconf, like $PDIOLCONF\n\
             \x20 the file ~/.config/starfish/config.toml: agents = [\"HOST:PORT\", ...]\n\
             \x20 the agents that `starfish agents up` started\n\
             \x20 the file $HOME/bin/conf, like $PDIOLCONF\n\n\
             Start one with `starfish agent --root DIRECTORY --listen :7117`; see pdiol(7).\n";
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(arguments: &str, variables: &[(&str, &str)]) -> (Result<Asked>, String) {
        let mut arguments: Vec<OsString> = arguments.split(' ').map(Into::into).collect();
        let variable = |name: &str| {
            variables.iter().find(|(variable, _)| *variable == name).map(|(_, value)| OsString::from(value))
        };
        let asked = find(&mut arguments, variable);
        let rest: Vec<_> = arguments.iter().map(|argument| argument.to_string_lossy()).collect();
        (asked, rest.join(" "))
    }

    fn options(arguments: &str, variables: &[(&str, &str)]) -> Options {
        match found(arguments, variables).0 {
            Ok(Asked::Run(options)) => options,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_command_line_of_the_thesis_is_understood() {
        let line = "pfs2fs -disk_number 4 -prefetch 1 -w 0 - sort.txt sorttxt.bak";
        let options = options(line, &[]);
        assert_eq!((options.disks, options.write_behind), (NonZeroU32::new(4), false));
        assert!(
            options.to_string().contains("write-behind off, new files on 4 disks, cache of "),
            "{options}"
        );
        assert_eq!(options.prefetch, Prefetch::Adaptive);
        assert_eq!(found(line, &[]).1, "pfs2fs sort.txt sorttxt.bak");
    }

    #[test]
    fn options_of_pdiol_are_distinguished_from_those_of_the_program() {
        let are = |line: &str| are_given(&line.split(' ').map(Into::into).collect::<Vec<OsString>>());
        for line in ["prog -disk_number 4 - a", "prog --window=4 -", "prog -p 0 -"] {
            assert!(are(line), "{line}");
        }
        for line in ["prog", "prog -", "prog -disk_number 4 a", "prog -k 4 -", "prog a -p 0 -"] {
            assert!(!are(line), "{line}");
        }
    }

    #[test]
    fn arguments_of_the_program_stay() {
        for line in ["prog", "prog a b", "prog pattern -", "prog -x -y", "prog -l"] {
            assert_eq!(found(line, &[]).1, line);
        }
        assert_eq!(found("prog - -", &[]).1, "prog -");
        assert_eq!(found("prog -W 8 - -x -", &[]).1, "prog -x -");
    }

    #[test]
    fn options_override_variables_and_variables_override_defaults() {
        let window = |line, variables: &[(&str, &str)]| options(line, variables).prefetch;
        assert_eq!(window("prog", &[]), Prefetch::Adaptive);
        assert_eq!(window("prog", &[("PDIOL_WINDOW_SIZE", "16")]), Prefetch::Window(16));
        assert_eq!(window("prog", &[("PDIOL_WINDOW_SIZE", "")]), Prefetch::Adaptive);
        assert_eq!(window("prog --window=4 -", &[("PDIOL_WINDOW_SIZE", "16")]), Prefetch::Window(4));
        assert_eq!(window("prog -W adaptive -", &[("PDIOL_WINDOW_SIZE", "nonsense")]), Prefetch::Adaptive);
        assert_eq!(window("prog -p 0 -", &[("PDIOL_WINDOW_SIZE", "16")]), Prefetch::None);
        let log = LogFile { path: "my".into(), is_required: true };
        assert_eq!(options("prog -LOG 1 -log my -", &[("LOG", "1")]).log, Some(log));
        assert_eq!(options("prog -c 8M -", &[]).cache_bytes, 8 << 20);
        let cached = options("prog -write_cache 1M -flush_seconds 0 -job sort -", &[]).write_cache;
        assert_eq!(
            cached,
            Some(CacheWrites { flush_after: None, job: Some("sort".into()), ..CacheWrites::of(1 << 20) })
        );
        assert_eq!(
            options("prog", &[("PDIOL_WRITE_CACHE", "1M")]).write_cache,
            Some(CacheWrites::of(1 << 20))
        );
        assert_eq!(options("prog", &[("WRITE_CACHE", "1M"), ("JOB", "x")]).write_cache, None);
        assert_eq!(options("prog -trace a.tlv -", &[("PDIOL_TRACE", "b.tlv")]).trace, Some("a.tlv".into()));
        assert_eq!(options("prog", &[("PDIOL_TRACE", "b.tlv")]).trace, Some("b.tlv".into()));
        assert_eq!(options("prog", &[("TRACE", "b.tlv")]).trace, None);
        let sockets = SocketBuffers { send_bytes: NonZeroU32::new(65_536), receive_bytes: None };
        assert_eq!(options("prog -S 65536 -r auto -", &[("PDIOL_RCV_BUFF", "9")]).sockets, sockets);
    }

    #[test]
    fn unprefixed_variables_count_if_valid_and_are_ignored_otherwise() {
        let old =
            options("prog", &[("WINDOW_SIZE", "16"), ("WRITEBEHIND", "0"), ("LOG", "1"), ("LOG_FILE", "x")]);
        assert_eq!((old.prefetch, old.write_behind), (Prefetch::Window(16), false));
        assert_eq!(old.log, Some(LogFile { path: "x".into(), is_required: false }));
        let both = options("prog", &[("WINDOW_SIZE", "16"), ("PDIOL_WINDOW_SIZE", "4"), ("CACHE", "1M")]);
        assert_eq!((both.prefetch, both.cache_bytes), (Prefetch::Window(4), 256 << 20));
        let others = [("LOG", "debug"), ("PREFETCH", "yes"), ("WINDOW_SIZE", "80x24"), ("LOG_FILE", "")];
        let ignoring = options("prog", &others);
        let says = ["the environment variable PREFETCH: \"yes\"", "WINDOW_SIZE: \"80x24\"", "LOG: \"debug\""];
        assert!(
            says.iter().zip(&ignoring.ignored).all(|(says, ignored)| ignored.contains(says)),
            "{ignoring:?}"
        );
        assert_eq!(ignoring.ignored.len(), says.len());
        assert_eq!(Options { ignored: Vec::new(), ..ignoring }, options("prog", &[]));
    }

    #[test]
    fn errors_of_bad_values_contain_source_and_valid_values() {
        for (line, variables, says) in [
            (
                "prog -window many -",
                &[][..],
                "the option -window: \"many\" is not a valid value. Expected N|adaptive",
            ),
            ("prog -p yes -", &[], "the option -prefetch: \"yes\""),
            ("prog", &[("PDIOL_DISKNUMBER", "-1")], "the environment variable PDIOL_DISKNUMBER: \"-1\""),
            (
                "prog",
                &[("PDIOL_LOG", "debug"), ("LOG", "1")],
                "the environment variable PDIOL_LOG: \"debug\"",
            ),
            ("prog -c 99999999999G -", &[], "the option -cache"),
            (
                "prog -c 1 -",
                &[],
                "the option -cache: \"1\" is not a valid value. Expected BYTES: memory for pages, at least \
                 64K",
            ),
            (
                "prog -C 4095 -",
                &[],
                "the option -write_cache: \"4095\" is not a valid value. Expected BYTES|0: memory for writes \
                 until the job flushes, at least 4K",
            ),
            ("prog -F -1 -", &[], "the option -flush_seconds"),
            ("prog -d -", &[], "-d: a value is missing: N|all"),
            ("prog -nonsense 1 -", &[], "-nonsense: PDIOL has no such option"),
            ("prog -w 0 stray -", &[], "stray: PDIOL has no such option"),
        ] {
            let error = found(line, variables).0.expect_err(line);
            assert_eq!(error.kind(), ErrorKind::Invalid);
            assert!(error.to_string().starts_with(says), "{line}: {error}");
        }
    }

    #[test]
    fn help_names_every_option() {
        for line in ["prog -h -", "prog -help -", "prog --help -", "prog -d 2 -h -"] {
            assert_eq!(found(line, &[]).0, Ok(Asked::Help));
        }
        let help = help("prog");
        for row in &TABLE {
            assert!(help.contains(row.long) && help.contains(&row.variable()), "{}", row.long);
        }
        assert!(help.lines().all(|line| line.chars().count() <= 110), "{help}");
    }
}
