//! pfsgrep: prints matching lines, using ripgrep's searcher.
//!
//! Patterns have the syntax of the crate `regex`, which is nearly that of `grep -E`. All files are treated as text, as
//! by `grep -a`.

use std::convert::Infallible;
use std::io::{self, Read, Write};
use std::process::ExitCode;

use clap::Parser;
use command_line::say;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkMatch};

use crate::failure::{Failure, Result};
use crate::files::{Files, FilesArgs, NAMES};
use crate::name::FileName;
use crate::program::FileProgram;
use crate::store::Storage;
use crate::usage::{self, Stopwatch};

/// Print the lines of files, ordinary and striped ones, that match a pattern.
///
/// Exit codes: 0 if a line matches, 1 if none does, 2 after an error.
#[derive(Parser, Debug)]
#[command(name = "pfsgrep", version, after_help = NAMES)]
pub struct Arguments {
    /// Regular expression, similar to grep -E: see <https://docs.rs/regex>. Use -e for a pattern that begins with -.
    #[arg(value_name = "PATTERN", required_unless_present = "patterns")]
    pattern: Option<String>,

    /// The files; without any, standard input.
    #[arg(value_name = "FILE", add = command_line::file_or_stored())]
    names: Vec<FileName>,

    /// Pattern; repeat the option to find lines that match any of several. All arguments are files then.
    #[arg(long = "regexp", short = 'e', value_name = "PATTERN", allow_hyphen_values = true)]
    patterns: Vec<String>,

    /// Extended regular expressions, as in grep -E; this is the default.
    #[arg(long, short = 'E', conflicts_with = "fixed_strings")]
    extended_regexp: bool,

    /// Match the pattern as plain text.
    #[arg(long, short = 'F')]
    fixed_strings: bool,

    /// Ignore upper and lower case.
    #[arg(long, short)]
    ignore_case: bool,

    /// Select the lines that do not match.
    #[arg(long, short = 'v')]
    invert_match: bool,

    /// Match whole words only.
    #[arg(long, short)]
    word_regexp: bool,

    /// Match whole lines only.
    #[arg(long, short = 'x')]
    line_regexp: bool,

    /// Print each line with its number.
    #[arg(long, short = 'n')]
    line_number: bool,

    /// Print only the number of matching lines.
    #[arg(long, short)]
    count: bool,

    /// Print only the names of files with matching lines.
    #[arg(long, short = 'l')]
    files_with_matches: bool,

    /// Print nothing; the exit code is the result.
    #[arg(long, short)]
    quiet: bool,

    #[command(flatten)]
    files: FilesArgs,
}

impl FileProgram for Arguments {
    fn files(&mut self) -> &mut FilesArgs {
        &mut self.files
    }

    fn run(self) -> Result<ExitCode> {
        let matcher = self.matcher().map_err(|error| Failure::new("the pattern", error))?;
        let files = Files::new(&self.files);
        let stopwatch = Stopwatch::start(&files);
        let names = self.names();
        let mut printer = self.printer();
        let mut failed = false;
        for name in &names {
            let prefix = if names.len() > 1 { format!("{name}:") } else { String::new() };
            let searched = self.check_input(name).and_then(|()| files.open(name));
            let searched =
                searched.and_then(|input| self.search(&matcher, input, name, prefix, &mut printer));
            // Like grep, continue with the other files.
            if let Err(failure) = searched {
                say!("pfsgrep: {failure}");
                failed = true;
            }
            if printer.is_over() {
                break;
            }
        }
        printer.finish()?;
        if self.files.time {
            usage::print("pfsgrep", &[("all", stopwatch.usage(&files))]);
        }
        Ok(match (printer.found, failed) {
            (true, false) => ExitCode::SUCCESS,
            (true, true) if self.quiet => ExitCode::SUCCESS,
            (false, false) => ExitCode::from(1),
            (_, true) => ExitCode::from(2),
        })
    }
}

impl Arguments {
    /// Returns the files. The first argument is the pattern, unless an option gives one.
    fn names(&self) -> Vec<FileName> {
        let first = self.pattern.as_ref().filter(|_| !self.patterns.is_empty());
        let first = first.map(|name| name.parse().unwrap_or_else(|never: Infallible| match never {}));
        let names: Vec<FileName> = first.into_iter().chain(self.names.iter().cloned()).collect();
        if names.is_empty() { vec![FileName::Standard] } else { names }
    }

    fn matcher(&self) -> std::result::Result<RegexMatcher, grep_regex::Error> {
        let patterns = match &self.pattern {
            Some(pattern) if self.patterns.is_empty() => std::slice::from_ref(pattern),
            _ => &self.patterns[..],
        };
        RegexMatcherBuilder::new()
            .line_terminator(Some(b'\n'))
            .case_insensitive(self.ignore_case)
            .fixed_strings(self.fixed_strings)
            .word(self.word_regexp)
            .whole_line(self.line_regexp)
            .build_many(patterns)
    }

    fn print(&self) -> Print {
        match self {
            Arguments { quiet: true, .. } => Print::Nothing,
            Arguments { files_with_matches: true, .. } => Print::Name,
            Arguments { count: true, .. } => Print::Count,
            _ => Print::Lines,
        }
    }

    fn printer(&self) -> Printer {
        let print = self.print();
        let output = io::BufWriter::with_capacity(OUTPUT_BYTES, io::stdout().lock());
        Printer { print, output, broken: None, found: false, prefix: String::new(), lines: 0 }
    }

    /// Rejects an input that is also standard output if lines are printed: printed lines would be found again without
    /// end. Other output is printed only after the file has been read.
    fn check_input(&self, name: &FileName) -> Result<()> {
        if self.print() == Print::Lines { name.check_is_not(&FileName::Standard) } else { Ok(()) }
    }

    fn search(
        &self,
        matcher: &RegexMatcher,
        input: impl Read,
        name: &FileName,
        prefix: String,
        printer: &mut Printer,
    ) -> Result<()> {
        (printer.prefix, printer.lines) = (prefix, 0);
        let mut searcher = SearcherBuilder::new()
            .line_number(self.line_number)
            .invert_match(self.invert_match)
            .binary_detection(BinaryDetection::none())
            .bom_sniffing(false)
            .build();
        let searched = searcher.search_reader(matcher, input, &mut *printer);
        searched.map_err(|error| Failure::io(name, &error))?;
        printer.end_file(name);
        Ok(())
    }
}

/// Bytes of output per write.
const OUTPUT_BYTES: usize = 64 << 10;

/// Output for matching lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Print {
    Lines,
    Count,
    Name,
    Nothing,
}

/// Printer of results.
struct Printer {
    print: Print,
    output: io::BufWriter<io::StdoutLock<'static>>,
    /// The write error that ended the output.
    broken: Option<io::Error>,
    /// True if a line was found in any file.
    found: bool,
    /// Prefix of each line of the current file.
    prefix: String,
    /// Number of lines found in the current file.
    lines: u64,
}

impl Printer {
    /// Returns true if further results cannot change the output.
    fn is_over(&self) -> bool {
        self.broken.is_some() || (self.print == Print::Nothing && self.found)
    }

    fn end_file(&mut self, name: &FileName) {
        let (prefix, lines) = (&self.prefix, self.lines);
        let printed = match self.print {
            Print::Count => writeln!(self.output, "{prefix}{lines}"),
            Print::Name if lines > 0 => writeln!(self.output, "{name}"),
            _ => Ok(()),
        };
        self.broken = self.broken.take().or(printed.err());
    }

    fn line(&mut self, found: &SinkMatch<'_>) -> io::Result<()> {
        let output = &mut self.output;
        output.write_all(self.prefix.as_bytes())?;
        if let Some(number) = found.line_number() {
            write!(output, "{number}:")?;
        }
        output.write_all(found.bytes())?;
        // The last line of a file may lack its newline.
        if found.bytes().ends_with(b"\n") { Ok(()) } else { output.write_all(b"\n") }
    }

    fn finish(&mut self) -> Result<()> {
        let finished = self.broken.take().map_or_else(|| self.output.flush(), Err);
        finished.map_err(|error| Failure::io("standard output", &error))
    }
}

impl Sink for &mut Printer {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        self.found = true;
        self.lines += 1;
        match self.print {
            Print::Lines => {
                self.broken = self.line(found).err();
                Ok(self.broken.is_none())
            }
            Print::Count => Ok(true),
            Print::Name | Print::Nothing => Ok(false),
        }
    }
}
