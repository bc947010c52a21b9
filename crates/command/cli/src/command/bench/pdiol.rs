//! `starfish bench pdiol`: runs the benchmark of the PDIOL thesis on this computer, predicted and measured.

use std::collections::BTreeMap;
use std::path::PathBuf;

use ::fs::Prefetch;
use blake3::Hash;
use clap::Args;
use command_line::failure::{Failure, Result};
use command_line::progress::Progress;

use crate::options::experiment::{ProgressArgs, RoundsArgs};
use crate::output::row_format::{RowFormat, write_page};
use node::Size;
use studies::bench::pdiol::PAGE_BYTES;
use studies::bench::pdiol::application::Application;
use studies::bench::pdiol::limits::{self, measure_limits};
use studies::bench::pdiol::page::page;
use studies::bench::pdiol::prediction::ProgramPredictor;
use studies::bench::pdiol::results::{ElapsedRounds, ProgramRow, Results};
use studies::bench::pdiol::testbed::{
    CACHE_FOR_BOTH, CACHE_FOR_READING, CACHE_FOR_WRITING, Disks, ProgramTestbed,
};
use studies::bench::rounds::middle_of;
use studies::bench::times::Times;
use studies::described::load_streaming_model;
use transfer::local;

/// Run the benchmark of the PDIOL thesis: sequential programs on one disk used locally, and on 1, 2 and 4 agents.
///
/// Starts agents on loopback, whose disks take the times of a model, and runs programs on their files with several
/// prefetch windows; the output is verified. cat and grep read. sort writes runs as temporary files, reads them and
/// writes the merged lines; bzip2 compresses. With modelled disks, striped or local, these programs read all bytes from
/// disk and write all bytes to disk. Next to each measurement of cat and grep is the prediction of the simulated
/// machine for this computer. All ratios are from this one run. The files are in TMPDIR, so writing is no faster than
/// the disk under that directory.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Sizes of the files, at least 8 MiB.
    #[arg(long, value_name = "SIZE,...", value_delimiter = ',', default_value = "8MiB,32MiB")]
    sizes: Vec<Size>,

    /// Use the sizes of the thesis and 1 GiB: 8, 32, 128, 512 and 1024 MiB. This takes about two hours, and 8 GiB of
    /// TMPDIR.
    #[arg(long, conflicts_with = "sizes")]
    full: bool,

    /// Numbers of disks, at most 4.
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_value = "1,2,4",
          value_parser = clap::value_parser!(u8).range(1..=4))]
    disks: Vec<u8>,

    /// Prefetch windows: numbers of pages, or adaptive [default: 1, 4, 16, 64, 256 and adaptive for cat and grep; 16
    /// and adaptive for sort and bzip2, which take longer].
    #[arg(long, value_name = "PAGES,...", value_delimiter = ',')]
    windows: Vec<Prefetch>,

    /// Programs to run [default: all; with --predict, those that can be predicted].
    #[arg(long, value_enum, value_name = "PROGRAM,...", value_delimiter = ',')]
    programs: Vec<Application>,

    /// Disk model. It must be a streaming one, which has a known rate.
    #[arg(long, value_name = "NAME", default_value = "st318416w")]
    disk_model: String,

    /// Use the disk under TMPDIR instead of modelled disks: ordinary files for the local disk, and agents with
    /// directories on it. Before each run the system's page cache is written and dropped, if that file system supports
    /// it (tmpfs does not). The caches of the disk and of its host cannot be dropped, and all four agents share the one
    /// disk. Temporary files stay in memory as usual. Nothing is predicted.
    #[arg(long, conflicts_with_all = ["disk_model", "predict"])]
    host_disks: bool,

    /// Size of the file used to measure limits and writing.
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = whole_mib)]
    limit_size: Size,

    #[command(flatten)]
    rounds: RoundsArgs,

    /// Predict for this machine, such as pdiol-2003, and measure nothing.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["rounds", "limit_size", "disk_model"])]
    predict: Option<String>,

    /// Output format: a row for each run; JSON is one object, with the limits of this computer.
    #[arg(long, value_enum, default_value_t = RowFormat::Table)]
    format: RowFormat,

    /// Also write a page with plots to this file.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    #[command(flatten)]
    progress: ProgressArgs,
}

const EXAMPLES: &str = "\
Examples:
  starfish bench pdiol
  starfish bench pdiol --sizes 128MiB --programs cat --windows 1,64,adaptive --rounds 3
  starfish bench pdiol --programs sort,bzip2 --sizes 128MiB --disks 1,4
  TMPDIR=/mnt/disk starfish bench pdiol --host-disks --sizes 512MiB --html host.html
  starfish bench pdiol --predict pdiol-2003 --sizes 128MiB,512MiB
  starfish bench pdiol --full --html pdiol.html";

/// The sizes of the thesis, and one more.
const FULL: [Size; 5] = [Size(8 << 20), Size(32 << 20), Size(128 << 20), Size(512 << 20), Size(1 << 30)];

/// Minimum size of a measured file in bytes. A smaller file, striped over four agents, would fit into their caches.
const MEASURED_BYTES_MIN: u64 = 8 << 20;

/// Parses a size that can be divided among four senders.
fn whole_mib(text: &str) -> std::result::Result<Size, String> {
    let size: Size = text.parse()?;
    let fits = size.0 > 0 && size.0.is_multiple_of(4 << 20);
    if fits { Ok(size) } else { Err("expected a multiple of 4 MiB".into()) }
}

/// Runs the command.
pub(crate) fn run(arguments: Arguments) -> Result<()> {
    let plan = plan(&arguments)?;
    // Fail now, not after an hour of measurements.
    arguments.html.as_deref().map_or(Ok(()), local::check_writable)?;
    let mut results = match &arguments.predict {
        Some(machine) => predicted(&plan, &ProgramPredictor::of(machine)?)?,
        None => measured(&arguments, &plan)?,
    };
    results.compare();
    arguments.format.print_report(&results, Results::lines, Results::csv, |_| Vec::new())?;
    write_page(arguments.html.as_deref(), |command| page(&results, command))
}

/// One program on one file: on the local disk, or on a number of disks with a prefetch window.
struct Cell {
    application: Application,
    bytes: u64,
    place: Option<(usize, Prefetch)>,
}

/// Windows of the thesis, and the adaptive window, which is the default of other programs.
const WINDOWS: [Prefetch; 6] = [
    Prefetch::Window(1),
    Prefetch::Window(4),
    Prefetch::Window(16),
    Prefetch::Window(64),
    Prefetch::Window(256),
    Prefetch::Adaptive,
];

/// Windows for programs that take longer.
const FEW_WINDOWS: [Prefetch; 2] = [Prefetch::Window(16), Prefetch::Adaptive];

fn plan(arguments: &Arguments) -> Result<Vec<Cell>> {
    let sizes = if arguments.full { FULL.to_vec() } else { arguments.sizes.clone() };
    let least = if arguments.predict.is_some() { PAGE_BYTES } else { MEASURED_BYTES_MIN };
    if let Some(size) = sizes.iter().find(|size| size.0 < least) {
        let why =
            format!("it is smaller than {}, so the agents would serve it from their cache", Size(least));
        return Err(Failure::usage(format!("--sizes {size}"), why));
    }
    let mut cells = Vec::new();
    for application in programs(arguments)? {
        let windows = windows(arguments, application);
        for &Size(bytes) in &sizes {
            cells.push(Cell { application, bytes, place: None });
            let disks = arguments.disks.iter().map(|&disks| usize::from(disks));
            let places = disks.flat_map(|disks| windows.iter().map(move |&window| (disks, window)));
            cells.extend(places.map(|place| Cell { application, bytes, place: Some(place) }));
        }
    }
    Ok(cells)
}

fn programs(arguments: &Arguments) -> Result<Vec<Application>> {
    let asked = &arguments.programs;
    if arguments.predict.is_none() {
        return Ok(if asked.is_empty() { Application::ALL.to_vec() } else { asked.clone() });
    }
    match asked.iter().find(|application| !application.only_reads()) {
        Some(application) => {
            let what = format!("--predict with --programs {}", application.name());
            let failure = Failure::usage(what, "programs that write a file cannot be predicted");
            Err(failure.remedy("Choose cat or grep."))
        }
        None if asked.is_empty() => {
            Ok(Application::ALL.into_iter().filter(|application| application.only_reads()).collect())
        }
        None => Ok(asked.clone()),
    }
}

fn windows(arguments: &Arguments, application: Application) -> Vec<Prefetch> {
    let usual = if application.only_reads() { &WINDOWS[..] } else { &FEW_WINDOWS[..] };
    if arguments.windows.is_empty() {
        return usual.to_vec();
    }
    arguments.windows.clone()
}

fn predict(predictor: &ProgramPredictor, cell: &Cell) -> Result<f64> {
    match cell.place {
        Some((disks, window)) => predictor.read(disks, cell.bytes, window),
        None => predictor.read_local(cell.bytes),
    }
}

fn row(cell: &Cell, times: Option<Times>, predicted: Option<f64>) -> ProgramRow {
    ProgramRow::new(cell.application.name(), cell.bytes, cell.place, times, predicted)
}

fn predicted(plan: &[Cell], predictor: &ProgramPredictor) -> Result<Results> {
    let rows = plan.iter().map(|cell| Ok(row(cell, None, Some(predict(predictor, cell)?))));
    let rows = rows.collect::<Result<_>>()?;
    Ok(Results { limits: None, host_disks: false, write_share: None, write_bytes: 0, rows })
}

fn measured(arguments: &Arguments, plan: &[Cell]) -> Result<Results> {
    let (disks, rate) = disks(arguments)?;
    let progress = Progress::count(arguments.progress.show, "measuring", plan.len() as u64);
    let mut testbed = ProgramTestbed::start(limits::AGENTS, disks)?;
    make_files(&testbed, plan)?;
    let Size(write_bytes) = arguments.limit_size;
    let limits = measure_limits(&mut testbed, write_bytes, 3)?;
    let predictor =
        rate.map(|_| ProgramPredictor::of_this_computer(&limits, &arguments.disk_model)).transpose()?;
    let (mut rows, mut outputs) = (Vec::new(), BTreeMap::new());
    let mut cache = None;
    for cell in plan {
        let wanted = if cell.application.only_reads() { CACHE_FOR_READING } else { CACHE_FOR_BOTH };
        if cache.replace(wanted) != Some(wanted) {
            testbed.slow_down(wanted)?;
        }
        let mut seconds = Vec::new();
        let times = middle_of(
            arguments.rounds.rounds,
            |times: &Times| times.elapsed,
            || {
                let times = measure(&testbed, cell, &mut outputs)?;
                seconds.push(times.elapsed.as_secs_f64());
                Ok(times)
            },
        )?;
        let predictor = predictor.as_ref().filter(|_| cell.application.only_reads());
        let predicted = predictor.map(|predictor| predict(predictor, cell)).transpose()?;
        let rounds = ElapsedRounds::of(&seconds);
        rows.push(ProgramRow { rounds, ..row(cell, Some(times), predicted) });
        progress.add(1);
    }
    let write_share = match rate {
        Some(rate) => {
            testbed.slow_down(CACHE_FOR_WRITING)?;
            let writing = testbed.write(limits::AGENTS, write_bytes)?.elapsed.as_secs_f64();
            Some(write_bytes as f64 / (rate * limits::AGENTS as f64) / writing)
        }
        None => None,
    };
    progress.finish();
    Ok(Results { limits: Some(limits), host_disks: arguments.host_disks, write_share, write_bytes, rows })
}

/// Returns the requested disks, and the rate of each in bytes per second, if that is known.
fn disks(arguments: &Arguments) -> Result<(Disks, Option<f64>)> {
    if arguments.host_disks {
        return Ok((Disks::Host, None));
    }
    let (model, rate) = load_streaming_model(&arguments.disk_model)?;
    Ok((Disks::Modelled(arguments.disk_model.clone(), model.into()), Some(rate as f64)))
}

/// Creates each file that the cells read once, while the disks are fast.
fn make_files(testbed: &ProgramTestbed, plan: &[Cell]) -> Result<()> {
    let mut files: Vec<_> =
        plan.iter().map(|cell| (cell.bytes, cell.place.map(|(disks, _)| disks))).collect();
    files.sort_unstable();
    files.dedup();
    for (bytes, disks) in files {
        match disks {
            Some(disks) => drop(testbed.write(disks, bytes)?),
            None => testbed.write_local(bytes)?,
        }
    }
    Ok(())
}

/// Output of each program for each file size in bytes. It is the output of the first run, on the local disk.
type Outputs = BTreeMap<(&'static str, u64), Hash>;

/// Runs a cell once. Fails if the program's output differs from that of its first run.
fn measure(testbed: &ProgramTestbed, cell: &Cell, outputs: &mut Outputs) -> Result<Times> {
    let place = cell.place;
    let (times, made) = testbed.run(cell.application, cell.bytes, place)?;
    if let Some(made) = made {
        let name = cell.application.name();
        if *outputs.entry((name, cell.bytes)).or_insert(made) != made {
            return Err(Failure::new(name, "its output from a striped file differs from its local output"));
        }
    }
    Ok(times)
}
