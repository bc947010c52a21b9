//! pfssort: sorts lines, even if they exceed the memory.
//!
//! ```text
//!   block sort    input --thread--> block --> sorted --thread--> a run, in a temporary file
//!   merge         runs --thread, ahead--> the least line of all, again and again --thread, behind--> output
//! ```
//!
//! An input that fits into one block needs no temporary file. If there are more runs than can be merged in memory at
//! once, some are merged into longer ones first. Most of these merges are done as soon as enough runs exist, since each
//! run is an open file.
//!
//! - `order.rs`: the order of lines
//! - `block.rs`: a block of lines, and sorting it
//! - `resources.rs`: resources for sorting
//! - `runs.rs`: from the input to sorted runs
//! - `merge.rs`: from runs to one

mod block;
mod merge;
mod order;
mod resources;
mod runs;

use std::io::Write;
use std::process::ExitCode;
use std::thread;

use clap::{Parser, ValueHint};

use crate::failure::{Failure, Result};
use crate::files::{Files, FilesArgs, NAMES};
use crate::name::FileName;
use crate::placed_sort::{PlacedSort, SortNumber, SortPlacement};
use crate::program::FileProgram;
use crate::store::Storage;
use crate::usage::{self, Stopwatch};
use crate::write_behind::WriteBehind;
use merge::Merging;
use node::Size;
use order::Order;
use resources::Sorting;
use runs::Sorted;

/// Sort the lines of files, ordinary and striped ones, by their bytes.
///
/// The order is that of `LC_ALL=C sort`. Lines with equal keys are in the order of their bytes; with --stable, in input
/// order. With --unique, the first line in the input is kept. A last line without a newline gets one.
#[derive(Parser, Debug)]
#[command(name = "pfssort", version, after_help = NAMES)]
pub struct Arguments {
    /// The files; without any, standard input.
    #[arg(value_name = "FILE", add = command_line::file_or_stored())]
    names: Vec<FileName>,

    /// Output file. An existing file is replaced, and may be one of the inputs: it stays until the new file is
    /// complete, so there must be space for both.
    #[arg(long, short, value_name = "FILE", default_value = "-", add = command_line::file_or_stored())]
    output: FileName,

    /// Sort by the number at the start of the line: blanks, an optional minus, digits, an optional point and digits.
    #[arg(long, short)]
    numeric_sort: bool,

    /// Sort in descending order.
    #[arg(long, short)]
    reverse: bool,

    /// Keep only the first of lines with equal keys.
    #[arg(long, short)]
    unique: bool,

    /// Keep lines with equal keys in the order of the input.
    #[arg(long, short)]
    stable: bool,

    /// Memory for lines, without the pages of striped files.
    #[arg(long, short = 'S', value_name = "SIZE", default_value = "256MiB", value_parser = memory)]
    memory: Size,

    /// Place of temporary files: a directory, or pfs: for striped ones [default: striped if the output or the first
    /// input is, otherwise TMPDIR].
    #[arg(long, short = 'T', value_name = "PLACE", value_hint = ValueHint::DirPath)]
    temporary: Option<FileName>,

    /// Placement of striped runs and output: striped, each over all disks; or each on one disk, by policy 1 to 4 of
    /// `starfish merge`. The default suits single and concurrent sorts.
    #[arg(long, value_name = "POLICY", default_value = "striped")]
    placement: SortPlacement,

    /// Number K of this sort among J concurrent sorts, for --placement 1 to 4; it writes its output to disk K.
    #[arg(long, value_name = "K/J")]
    job: Option<SortNumber>,

    #[command(flatten)]
    files: FilesArgs,
}

/// Minimum memory: less would hold only a few lines.
const MEMORY_MIN: u64 = 256 << 10;

fn memory(text: &str) -> std::result::Result<Size, String> {
    let size: Size = text.parse()?;
    if size.0 >= MEMORY_MIN { Ok(size) } else { Err("expected at least 256KiB".into()) }
}

impl FileProgram for Arguments {
    fn files(&mut self) -> &mut FilesArgs {
        &mut self.files
    }

    fn run(mut self) -> Result<ExitCode> {
        if self.names.is_empty() {
            self.names.push(FileName::Standard);
        }
        let files = self.placed_files()?;
        let all = Stopwatch::start(&files);
        let order = Order {
            numeric: self.numeric_sort,
            reverse: self.reverse,
            unique: self.unique,
            stable: self.stable,
        };
        let sorting = Sorting { store: &files, order, memory: self.memory.0 };
        let block_sort = Stopwatch::start(&files);
        let sorted = sorting.sort(&self.names)?;
        let block_sort = block_sort.usage(&files);
        let merge = Stopwatch::start(&files);
        sorting.write(sorted, &self.output)?;
        if self.files.time {
            let phases =
                [("block sort", block_sort), ("merge", merge.usage(&files)), ("all", all.usage(&files))];
            usage::print("pfssort", &phases);
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Arguments {
    /// Returns the files, with runs and output on the disks of the placement.
    fn placed_files(&self) -> Result<Files> {
        match (self.placement, self.job) {
            (SortPlacement::Striped, Some(job)) => {
                let why = "with --placement striped, every sort uses all disks\n  Choose a policy: \
                           --placement 3";
                Err(Failure::new(format!("--job {job}"), why))
            }
            (SortPlacement::Striped, None) => Ok(self.files()),
            (SortPlacement::Policy(policy), job) => {
                let sort = job.unwrap_or(SortNumber::ONLY);
                self.files().with_sort_placed(PlacedSort { policy, sort })
            }
        }
    }

    /// Returns the files, with temporary files at the requested place.
    fn files(&self) -> Files {
        let striped = [&self.output, &self.names[0]].into_iter().find(|name| name.is_striped());
        let files = Files::new(&self.files);
        match self.temporary.as_ref().or(striped) {
            Some(place) => files.with_temporary_files_in(place),
            None => files,
        }
    }
}

/// Sorts the lines of the file `input` by their bytes into `output`, which is replaced. `memory` is the memory for
/// lines in bytes, as in the option of the program.
pub fn sort(store: &dyn Storage, input: &FileName, output: &FileName, memory: u64) -> Result<()> {
    let sorting = Sorting { store, order: Order::default(), memory: memory.max(MEMORY_MIN) };
    let sorted = sorting.sort(std::slice::from_ref(input))?;
    sorting.write(sorted, output)
}

impl Sorting<'_> {
    /// Writes the sorted lines; merges them if there are several runs.
    fn write(&self, sorted: Sorted, name: &FileName) -> Result<()> {
        let failed = |error| Failure::io(name, &error);
        let sorted = match sorted {
            Sorted::Runs(runs) => Sorted::Runs(merge::reduce(self, runs)?),
            block => block,
        };
        let output = self.store.create(name, true)?;
        let output = thread::scope(|scope| {
            let mut behind = WriteBehind::new(scope, output);
            match sorted {
                Sorted::Nothing => {}
                Sorted::Block(block) => block.write(self.order, &mut behind).map_err(failed)?,
                Sorted::Runs(runs) => {
                    let buffer_bytes = self.merge_buffer_bytes(runs.len());
                    let mut merging = Merging::begin(scope, runs, self.order, buffer_bytes)?;
                    while let Some(line) = merging.line() {
                        behind.write_all(line).map_err(failed)?;
                        merging.next()?;
                    }
                }
            }
            behind.finish().map_err(failed)
        })?;
        output.finish()
    }
}
