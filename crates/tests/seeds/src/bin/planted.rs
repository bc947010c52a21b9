//! Program `planted`: plants each bug of `planted.toml`, and shows which of them the schedules find.
//!
//!     cargo run -p seeds --bin planted                           # all bugs; Ctrl-C stops it
//!     cargo run -p seeds --bin planted -- --only 3 17 --count 100000
//!
//! It copies the tracked files of the workspace to a directory under `target`, with all bugs behind a switch. It builds
//! the program `seeds` there once. Then it runs the schedules with each bug until the first failure. The directory is
//! kept: the next build compiles only changed crates.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use clap::Parser;
use seeds::planted::{Bug, VARIABLE, bugs, plant};

/// Plant bugs in a copy of the file system, and show which of them the schedules find.
#[derive(Parser)]
struct Arguments {
    /// Number of runs with each bug.
    #[arg(long, default_value_t = 20_000)]
    count: u64,

    /// Numbers of the bugs [default: all].
    #[arg(long, value_name = "N", num_args = 1..)]
    only: Vec<usize>,

    /// Maximum time in seconds for the runs of a bug.
    #[arg(long, default_value_t = 300)]
    seconds: u64,
}

/// Interval between two checks for the end of a program.
const BEAT: Duration = Duration::from_millis(20);

fn main() -> ExitCode {
    match show_table(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            let _ = writeln!(std::io::stderr(), "planted: {why}");
            ExitCode::FAILURE
        }
    }
}

fn show_table(arguments: &Arguments) -> Result<(), String> {
    let bugs = bugs()?;
    let numbers = if arguments.only.is_empty() { (1..=bugs.len()).collect() } else { arguments.only.clone() };
    if let Some(unknown) = numbers.iter().find(|number| !(1..=bugs.len()).contains(number)) {
        return Err(format!("there is no bug {unknown}: the last is {}", bugs.len()));
    }
    let directory = directory();
    copy_with_bugs(&bugs, &directory.join("source"))?;
    let program = build(&directory)?;
    let output = directory.join("output");
    // A failure without any bug would be taken for that of the bugs.
    println!("no bug: {}", run(&program, 0, arguments, &output)?);
    let mut found = 0;
    for &number in &numbers {
        let Bug { file, breaks, .. } = &bugs[number - 1];
        let outcome = run(&program, number, arguments, &output)?;
        println!("{number:>3}  {file}\n     {breaks}\n     {outcome}");
        found += usize::from(outcome.starts_with("found"));
    }
    println!("{found} of {} bugs found", numbers.len());
    Ok(())
}

/// Returns the root of the workspace.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

/// Returns the directory of the copy and of its build.
fn directory() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from).join("planted")
}

/// Copies the tracked files of the workspace with all bugs. Leaves unchanged files as they are, so that cargo does not
/// compile them again.
fn copy_with_bugs(bugs: &[Bug], copy: &Path) -> Result<(), String> {
    let mut by_file: BTreeMap<&str, Vec<(usize, &Bug)>> = BTreeMap::new();
    for (number, bug) in (1..).zip(bugs) {
        by_file.entry(&bug.file).or_default().push((number, bug));
    }
    let tracked = tracked_files()?;
    if let Some(file) = by_file.keys().find(|file| !tracked.iter().any(|tracked| tracked == *file)) {
        return Err(format!("{file} has a bug in the list, and is not a tracked file"));
    }
    remove_others(copy, copy, &tracked)?;
    for file in tracked.iter().filter(|file| root().join(file).is_file()) {
        let contents = fs::read(root().join(file)).map_err(|error| cannot("read", file, &error))?;
        let contents = match by_file.get(file.as_str()) {
            Some(bugs) => plant(&String::from_utf8_lossy(&contents), bugs)?.into_bytes(),
            None => contents,
        };
        write_if_changed(&copy.join(file), &contents).map_err(|error| cannot("write", file, &error))?;
    }
    Ok(())
}

fn cannot(what: &str, file: &str, error: &std::io::Error) -> String {
    format!("cannot {what} {file}: {error}")
}

fn tracked_files() -> Result<Vec<String>, String> {
    let listed = Command::new("git").args(["ls-files", "-z"]).current_dir(root()).output();
    let listed = listed.map_err(|error| format!("cannot run git: {error}"))?;
    if !listed.status.success() {
        return Err(format!("git ls-files failed: {}", String::from_utf8_lossy(&listed.stderr)));
    }
    let files = String::from_utf8_lossy(&listed.stdout);
    Ok(files.split_terminator('\0').map(str::to_owned).collect())
}

/// Removes files from the copy that the workspace no longer has.
fn remove_others(copy: &Path, directory: &Path, tracked: &[String]) -> Result<(), String> {
    let Ok(entries) = fs::read_dir(directory) else { return Ok(()) };
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path.strip_prefix(copy).unwrap_or(&path).to_string_lossy().into_owned();
        if path.is_dir() {
            remove_others(copy, &path, tracked)?;
        } else if name != "Cargo.lock" && tracked.binary_search(&name).is_err() {
            fs::remove_file(&path).map_err(|error| cannot("remove", &name, &error))?;
        }
    }
    Ok(())
}

fn write_if_changed(file: &Path, contents: &[u8]) -> std::io::Result<()> {
    if fs::read(file).is_ok_and(|before| before == contents) {
        return Ok(());
    }
    fs::create_dir_all(file.parent().expect("it is in the copy"))?;
    fs::write(file, contents)
}

/// Builds the program `seeds` with all bugs, and returns its path.
fn build(directory: &Path) -> Result<PathBuf, String> {
    let target = directory.join("build");
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--package", "seeds", "--bin", "seeds", "--target-dir"]).arg(&target);
    // Planted code breaks lints of the workspace.
    cargo.env("RUSTFLAGS", "--cap-lints allow").current_dir(directory.join("source"));
    let built = cargo.status().map_err(|error| format!("cannot run cargo: {error}"))?;
    if built.success() { Ok(target.join("debug/seeds")) } else { Err("the copy does not compile".into()) }
}

/// Runs the schedules with a bug, and describes the outcome.
fn run(program: &Path, number: usize, arguments: &Arguments, output: &Path) -> Result<String, String> {
    let Arguments { count, seconds, .. } = arguments;
    let file = File::create(output).map_err(|error| cannot("write", &output.to_string_lossy(), &error))?;
    let errors = file.try_clone().map_err(|error| error.to_string())?;
    let mut seeds = Command::new(program);
    seeds.args(["schedules", "--first", "--count", &count.to_string()]).env(VARIABLE, number.to_string());
    seeds.stdout(file).stderr(errors);
    let status = status_within(&mut seeds, Duration::from_secs(*seconds))?;
    let printed = fs::read(output).map_err(|error| error.to_string())?;
    let printed = String::from_utf8_lossy(&printed);
    Ok(match status {
        None => format!("found: the runs do not end within {seconds} s"),
        Some(status) if status.success() => format!("not found in {count} runs"),
        Some(status) => match first_failure(&printed) {
            Some((seed, law)) => format!("found at seed {seed}: {law}"),
            None => {
                format!("found: the program ends with {status}: {}", printed.lines().next().unwrap_or(""))
            }
        },
    })
}

/// Runs a program. Kills it and returns `None` if it takes longer than `limit`.
fn status_within(program: &mut Command, limit: Duration) -> Result<Option<ExitStatus>, String> {
    let begun = Instant::now();
    let mut running = program.spawn().map_err(|error| format!("cannot run seeds: {error}"))?;
    loop {
        if let Some(status) = running.try_wait().map_err(|error| error.to_string())? {
            return Ok(Some(status));
        }
        if begun.elapsed() > limit {
            running.kill().and_then(|()| running.wait()).map_err(|error| error.to_string())?;
            return Ok(None);
        }
        thread::sleep(BEAT);
    }
}

/// Returns the lowest seed in the output of `seeds`, and the broken law.
fn first_failure(printed: &str) -> Option<(u64, &str)> {
    let (mut law, mut first) = ("", None);
    for line in printed.lines() {
        if let Some(group) = line.strip_prefix("schedules: ") {
            law = group.rsplit_once(": ").map_or(group, |(law, _)| law);
        } else if let Some((seed, _)) = line.strip_prefix("  seed ").and_then(|line| line.split_once(": "))
            && let Ok(seed) = seed.parse::<u64>()
        {
            first = first.into_iter().chain([(seed, law)]).min();
        }
    }
    first
}
