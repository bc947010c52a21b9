//! Reads traces of any format, and reports gaps and irregularities in them on standard error.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use command_line::failure::{Failure, Result};
use command_line::say;
use trace::{Alignment, Limits, NoteKind, ReadError, Timeline, TraceReader};
use trace_formats::{FormatError, Imported, read_any};

use super::shown;
use command_line::durations;
use transfer::local::STANDARD;

/// Traces that are analysed together.
#[derive(Args)]
pub(super) struct TracesArgs {
    /// Traces; - for standard input. Several traces are put on one clock.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// Alignment of the clocks of several traces.
    #[arg(long, value_enum, default_value_t = AlignmentName::Clock)]
    align: AlignmentName,
}

/// Alignment of the clocks of several traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum AlignmentName {
    /// By the wall clock.
    Clock,
    /// Each trace begins at 0.
    Starts,
}

impl TracesArgs {
    /// Reads the traces.
    pub(super) fn read(&self) -> Result<Timeline> {
        let alignment = match self.align {
            AlignmentName::Clock => Alignment::WallClock,
            AlignmentName::Starts => Alignment::Starts,
        };
        let files: Vec<&Path> = self.files.iter().map(PathBuf::as_path).collect();
        read(&files, alignment)
    }
}

/// Time range of a trace.
#[derive(Args)]
pub(super) struct RangeArgs {
    /// Omit events before this time, for example 1500us or 2s. The trace starts at 0.
    #[arg(long, value_name = "TIME", value_parser = time)]
    from: Option<u64>,

    /// Omit events at this time or later.
    #[arg(long, value_name = "TIME", value_parser = time)]
    to: Option<u64>,
}

fn time(text: &str) -> std::result::Result<u64, String> {
    let time = durations::parse(text)?;
    u64::try_from(time.as_nanos()).map_err(|_| "expected a shorter time".to_owned())
}

impl RangeArgs {
    /// Returns the range on the clock of a timeline, or `None` if the whole timeline is selected.
    pub(super) fn of(&self, timeline: &Timeline) -> Result<Option<Range<u64>>> {
        if self.from.is_none() && self.to.is_none() {
            return Ok(None);
        }
        let first = timeline.extent_ns().map_or(0, |(first, _)| first);
        let from = first.saturating_add(self.from.unwrap_or(0));
        let to = self.to.map_or(u64::MAX, |to| first.saturating_add(to));
        if from >= to {
            return Err(Failure::usage("--to", "it must be later than --from"));
        }
        Ok(Some(from..to))
    }
}

/// Reads one trace.
pub(super) fn read_one(file: &Path) -> Result<Timeline> {
    read(&[file], Alignment::WallClock)
}

fn read(files: &[&Path], alignment: Alignment) -> Result<Timeline> {
    let mut reader = TraceReader::new(Limits::default());
    for file in files {
        let name = file.display().to_string();
        let read = read_any(&mut reader, &name, open(file)?);
        print_notes_of(&name, &read.map_err(|error| failed(file, &error))?);
    }
    let timeline = reader.finish(alignment);
    print_notes(&timeline, |kind| !kind.is_usual());
    Ok(timeline)
}

/// Prints the notes of these kinds about a timeline.
pub(super) fn print_notes(timeline: &Timeline, is_shown: impl Fn(NoteKind) -> bool) {
    let shown_notes = timeline.notes.iter().filter(|note| is_shown(note.kind));
    shown_notes.for_each(|note| say!("{}", shown::text(&note.to_string())));
}

/// Opens a file, or standard input.
pub(super) fn open(file: &Path) -> Result<Box<dyn Read>> {
    if file.as_os_str() == STANDARD {
        return Ok(Box::new(io::stdin().lock()));
    }
    let opened = File::open(file).map_err(|error| {
        let failure = Failure::new(file.display().to_string(), &error);
        match error.kind() {
            io::ErrorKind::NotFound => failure.remedy("`starfish trace record -o FILE PROGRAM` records one."),
            _ => failure,
        }
    })?;
    Ok(Box::new(opened))
}

/// Prints the number of omitted records of another tool's trace, by kind.
pub(super) fn print_notes_of(name: &str, imported: &Imported) {
    let name = shown::text(name);
    imported.notes().for_each(|note| say!("{name}: {note}"));
}

/// Returns the failure of reading a trace, with a remedy.
pub(super) fn failed(file: &Path, error: &FormatError) -> Failure {
    let failure = Failure::new(file.display().to_string(), error);
    match error {
        FormatError::Trace(ReadError::Version(_)) => {
            failure.remedy("Use the version of Starfish that wrote it, or a newer one.")
        }
        _ => failure,
    }
}
