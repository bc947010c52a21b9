//! `starfish demo`: shows the whole system in one command.
//!
//! It starts four agents on this computer and copies a file to stripes over their disks by both access methods. It
//! shows that no byte was lost, and the throughput of the same file-system code on simulated machines.
//!
//! ```text
//!  file --put, traditional----> A --get, disk-directed--> the same bytes?
//!       --put, disk-directed--> B --get, traditional----> the same bytes?
//! ```

use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use command_line::TextTable;
use command_line::failure::{Failure, Result};
use command_line::progress::{Progress, Show};
use console::style;
use description::MachineDescription;
use experiment::{Case, Contents, DiskLayout, Options};
use layout::Problem;

use crate::simulation;
use node::Size;
use node::whole_file::Method;
use studies::bench::processes::{self, Agents};
use studies::bench::whole_file;
use studies::described::{load_machine, load_model};
use transfer::local::{self, Hashing};
use transfer::one_file::{Done, Put};
use transfer::preflight;

/// See Starfish work: a file on four disks of this computer, and on simulated machines.
///
/// Starts four agents on this computer, puts a file onto them in stripes, reads it back by both access methods, and
/// verifies its hash. Shows the measured throughput next to that of simulated machines with the same methods. All its
/// files are in a temporary directory, which is removed at the end. Takes less than a minute.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Input file [default: a generated file of pseudo-random bytes].
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,

    /// Disk model to which each agent is slowed down, so that striping has a visible effect; `none` for full speed.
    #[arg(long, value_name = "NAME", default_value = "streaming-20")]
    disk_model: String,

    /// Size of the generated file.
    #[arg(long, value_name = "SIZE", default_value = "64MiB", conflicts_with = "file", value_parser = some_bytes)]
    file_size: Size,
}

/// Parses a size of at least one byte, so that a read takes time.
fn some_bytes(text: &str) -> std::result::Result<Size, String> {
    let size: Size = text.parse()?;
    if size.0 > 0 { Ok(size) } else { Err("expected at least one byte".into()) }
}

const EXAMPLES: &str = "\
Examples:
  starfish demo
  starfish demo ~/Downloads/some-large-file
  starfish demo --disk-model hp97560 --file-size 16MiB
  starfish demo --disk-model none                     the speed of this computer's own disk";

/// Number of agents.
const AGENTS: usize = 4;

/// Cache size of each agent. It is small compared with the file, so that reads use the disks.
const CACHE: &str = "4MiB";

/// Stripe unit in bytes.
const BLOCK_BYTES: u64 = 256 << 10;

/// Maximum size of a simulated file in bytes. The throughput of larger files does not depend on the size.
const SIMULATED_BYTES_MAX: u64 = 64 << 20;

/// Throughput of one machine by operation and method, in the order of the table's columns.
type Throughputs = [f64; 4];

/// Runs the command.
pub(crate) fn run(arguments: Arguments) -> Result<()> {
    let model = arguments.disk_model.as_str();
    let disk = if model == "none" { None } else { Some(load_model(model)?) };
    let simulated = simulated_machines(model)?;
    // Each method writes a copy. A generated local file is another copy.
    let (bytes, copies) = match &arguments.file {
        Some(file) => match local::open(file)?.1 {
            Some(0) => return Err(Failure::usage(shown(file), "it is empty, so nothing can be measured")),
            size => (size.unwrap_or(0), 2),
        },
        None => (arguments.file_size.0, 3),
    };
    let mut options =
        vec!["--cache".to_owned(), CACHE.to_owned(), "--block-max".to_owned(), BLOCK_BYTES.to_string()];
    if disk.is_some() {
        options.extend(["--disk-model".to_owned(), model.to_owned()]);
    }
    say(format!("{}", style("One file on four disks, measured and simulated").bold()))?;
    say(String::new())?;

    let agents = Agents::start(AGENTS, &options)?;
    agents.cluster.run(move |connection| async move {
        preflight::check_space(&connection, "demo", bytes.saturating_mul(copies)).await
    })?;
    let names: Vec<&str> = agents.cluster.agents.iter().map(|agent| agent.name.as_str()).collect();
    let disks = disk
        .map_or("as fast as this computer's own".to_owned(), |disk| format!("as slow as {}", disk.name()));
    step("agents", format!("four processes at {}", names.join(", ")))?;
    step("disks", format!("one directory each, {disks}"))?;

    let file = match arguments.file {
        Some(file) => file,
        None => {
            let file = agents.path("made-for-the-demo");
            processes::make_file(&file, arguments.file_size.0)?;
            file
        }
    };
    let (measured, bytes) = agents.explain(measure(&agents, &file))?;
    let mut rows = vec![("measured: these four agents", measured)];
    for (what, experiments) in &simulated {
        let progress = Progress::count(Show::Auto, "simulating", experiments.len() as u64);
        let sized = experiments.iter().map(|experiment| with_size(experiment, bytes)).collect::<Vec<_>>();
        let outcomes = simulation::run(&sized, 1, Vec::new(), &progress)?;
        progress.finish();
        let throughput = |index: usize| outcomes[index].summary.throughput_mib_s;
        rows.push((what, [throughput(0), throughput(1), throughput(2), throughput(3)]));
    }
    say(String::new())?;
    local::print(table(&rows))?;
    say(String::new())?;
    local::print(EXPLANATION.lines().map(str::to_owned))
}

const EXPLANATION: &str = "\
Traditional: requests for block after block; agents cache, read ahead and write behind.
Disk-directed: requests for many blocks; each agent works through its disk in its own order.
All rows are the same file-system code. The simulated 1996 machine has 16 compute nodes and 16 agents with one
HP 97560 disk each; it moves 10 MiB in records of 8192 bytes (patterns rb and wb).
Next: `starfish agent --help` to use your own disks, `starfish simulate --help` to try other machines.";

/// Puts the file with each method, and reads each copy with the other method.
fn measure(agents: &Agents, file: &Path) -> Result<(Throughputs, u64)> {
    let original = hash(file)?;
    step("file", format!("{}, {}", Size(original.bytes), shown(file)))?;
    step("", format!("blake3 {}", hex(&original)))?;
    let written_traditionally = put(agents, file, "A", Method::Traditional)?;
    report("put", "traditional, in stripes of 256 KiB", &written_traditionally, None)?;
    let written_disk_directed = put(agents, file, "B", Method::DiskDirected)?;
    report("put", "disk-directed, many blocks a request", &written_disk_directed, None)?;
    let read_traditionally = get(agents, "B", Method::Traditional)?;
    report("get", "traditional, the disk-directed file", &read_traditionally, Some(&original))?;
    let read_disk_directed = get(agents, "A", Method::DiskDirected)?;
    report("get", "disk-directed, the traditional file", &read_disk_directed, Some(&original))?;
    step("identical", format!("blake3 {}, read by both methods", hex(&read_disk_directed)))?;
    let done = [written_traditionally, written_disk_directed, read_traditionally, read_disk_directed];
    Ok((done.map(|done| done.throughput()), original.bytes))
}

/// Returns the size and the hash of the local file.
fn hash(file: &Path) -> Result<Done> {
    let (input, size) = local::open(file)?;
    if size.is_none() {
        return Err(Failure::usage(
            file.display().to_string(),
            "the demo reads the file twice, so it needs a regular file",
        ));
    }
    let mut input = Hashing::new(input, true);
    let start = std::time::Instant::now();
    let bytes = io::copy(&mut input, &mut io::sink());
    let bytes = bytes.map_err(|error| Failure::new(file.display().to_string(), error))?;
    Ok(Done {
        name: file.display().to_string(),
        bytes,
        elapsed: start.elapsed(),
        hash: input.hash(),
        inode: None,
    })
}

fn put(agents: &Agents, file: &Path, name: &str, method: Method) -> Result<Done> {
    whole_file::put(&agents.cluster, file, name, Put::new(BLOCK_BYTES, method), Show::Auto)
}

fn get(agents: &Agents, name: &str, method: Method) -> Result<Done> {
    whole_file::get(&agents.cluster, name, method, true, Show::Auto)
}

fn hex(done: &Done) -> String {
    done.hash.map_or_else(String::new, |hash| hash.to_string())
}

fn shown(file: &Path) -> String {
    let made = file.file_name().is_some_and(|name| name == "made-for-the-demo");
    if made { "pseudo-random bytes generated for this demo".into() } else { file.display().to_string() }
}

/// Prints the result of a transfer. Fails if the data differ from the original.
fn report(verb: &str, how: &str, done: &Done, original: Option<&Done>) -> Result<()> {
    if let Some(original) = original.filter(|original| original.hash != done.hash) {
        let why = format!("blake3 {} instead of {}", hex(done), hex(original));
        return Err(Failure::new("the data read back differ", why));
    }
    let verdict = original.map_or("", |_| ", identical");
    let seconds = done.elapsed.as_secs_f64();
    step(verb, format!("{how:38} {:>12}  {seconds:6.2} s{verdict}", mib_s(done.throughput())))
}

fn mib_s(throughput: f64) -> String {
    if throughput.is_finite() { format!("{throughput:.1} MiB/s") } else { "-".into() }
}

fn step(name: &str, text: String) -> Result<()> {
    say(format!("{} {text}", style(format!("{name:>10}")).cyan()))
}

fn say(line: String) -> Result<()> {
    local::print([line])
}

/// Returns the machines to simulate. Each has an experiment for each column of the table.
fn simulated_machines(model: &str) -> Result<Vec<(&'static str, Vec<Case>)>> {
    let old = load_machine("starfish-1996", &[])?;
    let mut machines =
        vec![("simulated: the 1996 machine", experiments(&old, ["wb", "wb", "rb", "rb"], 8192))];
    if model != "none" {
        // The example cluster, with the nodes and disks of this demo. All other parts are faster than the disks.
        let changes = [
            "nodes.compute=1".to_owned(),
            format!("nodes.io={AGENTS}"),
            "processor.clock=3 GHz".into(),
            "network.link_bandwidth=1 GiB/s".into(),
            format!("disks.model={model}"),
            "disks.per_io_node=1".into(),
            "buses.per_io_node=1".into(),
        ];
        let same = load_machine("cluster-switch", &changes)?;
        // A get or put uses a single compute node.
        machines.insert(
            0,
            ("simulated: the same set-up", experiments(&same, ["wn", "wn", "rn", "rn"], BLOCK_BYTES)),
        );
    }
    Ok(machines)
}

fn experiments(machine: &MachineDescription, patterns: [&str; 4], block_bytes: u64) -> Vec<Case> {
    use experiment::Method::{DiskDirected, Traditional};
    let methods = [Traditional, DiskDirected, Traditional, DiskDirected];
    let experiment = |(method, pattern): (experiment::Method, &str)| Case {
        machine: machine.clone(),
        method,
        pattern: pattern.parse().expect("a pattern of the reports"),
        problem: Problem::new(10 << 20, block_bytes, machine.nodes.compute.value),
        layout: DiskLayout::Contiguous,
        options: Options { block_bytes, ..Options::default() },
        contents: Contents::Phantom,
        seed: 1,
    };
    methods.into_iter().zip(patterns).map(experiment).collect()
}

/// Returns the experiment with the file size of the demo, if it is on the demo's machine. The other machine keeps the
/// file size of the report.
fn with_size(experiment: &Case, bytes: u64) -> Case {
    let mut sized = experiment.clone();
    if sized.options.block_bytes == BLOCK_BYTES {
        sized.problem.file_bytes = bytes.clamp(1, SIMULATED_BYTES_MAX).next_multiple_of(BLOCK_BYTES);
    }
    sized
}

fn table(rows: &[(&str, Throughputs)]) -> Vec<String> {
    let mut table = TextTable::new(1);
    table.row(["", "write", "write", "read", "read"]);
    table.row(["", "traditional", "disk-directed", "traditional", "disk-directed"]);
    for (index, (what, throughputs)) in rows.iter().enumerate() {
        let cell = |throughput: &f64| {
            let cell = style(mib_s(*throughput));
            if index == 0 { cell.green().to_string() } else { cell.to_string() }
        };
        let name = if index == 0 { style(*what).bold().to_string() } else { (*what).to_owned() };
        table.row(std::iter::once(name).chain(throughputs.iter().map(cell)));
    }
    table.lines().collect()
}
