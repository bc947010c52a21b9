//! Testbed for the programs: agents on loopback, a disk used locally, and files on both.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use ::fs::{IoNodeSettings, Prefetch, Scheduling};
use applications::{FileName, Files, FilesArgs, Storage};
use blake3::Hash;
use command_line::failure::{Failure, Result};
use description::DiskDescription;
use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};
use node::Size;
use pdiol::{OpenOptions, Session};
use real::DiskSettings;
use transfer::cluster::agent_settings;

use super::PAGE_BYTES;
use super::application::{Application, text};
use super::local_disk::LocalDisk;
use super::striped::{Striped, TemporaryFiles};
use crate::bench::processes::Agents;
use crate::bench::times::{Times, measure};

/// Cache size of an agent whose disk is fast: enough for all requests in flight.
const CACHE: &str = "16MiB";

/// Cache size so small that a program that reads a file a second time finds no part of it in the cache.
pub const CACHE_FOR_READING: &str = "1MiB";

/// Cache size for programs that read and write several files at the same time. It lets an agent serve requests in the
/// order of its disk, but is less than a quarter of the data that such a program writes to one disk before it reads
/// them.
pub const CACHE_FOR_BOTH: &str = "4MiB";

/// Cache size of an agent for writes. It is larger, so that the agent can write in the order of its disk.
pub const CACHE_FOR_WRITING: &str = "64MiB";

/// Name of the file on the disk used locally.
const LOCAL: &str = "file";

/// Name of the programs' output file.
const OUTPUT: &str = "output";

/// Agents, a disk used locally, and the kind of all their disks.
pub struct ProgramTestbed {
    agents: Agents,
    disks: Disks,
}

/// Kind of the disks.
pub enum Disks {
    /// Disks that take the times of the named disk model.
    Modelled(String, Box<DiskDescription>),
    /// Directories of this computer, at full speed.
    Host,
}

/// Place of a run: the disk used locally (`None`), or a number of agents with a prefetch window.
pub type RunPlace = Option<(usize, Prefetch)>;

impl ProgramTestbed {
    /// Starts agents with disks at full speed.
    pub fn start(agents: usize, disks: Disks) -> Result<ProgramTestbed> {
        let testbed = ProgramTestbed { agents: Agents::start(agents, &options(CACHE, &[]))?, disks };
        // Create the namespace on the first agent, because every run uses this agent.
        testbed.session(1, Prefetch::None)?;
        Ok(testbed)
    }

    /// Returns the agents.
    pub fn agents(&self) -> &Agents {
        &self.agents
    }

    /// Restarts the agents, with disks at full speed and with caches that can hold a file of the given size.
    pub fn keep(&mut self, bytes: u64) -> Result<()> {
        self.agents.restart(&options(&(bytes + (16 << 20)).to_string(), &[]))
    }

    /// Restarts the agents with a cache of this size, and with disks that take the times of their model, if they have
    /// one.
    pub fn slow_down(&mut self, cache: &str) -> Result<()> {
        match &self.disks {
            Disks::Modelled(name, _) => self.agents.restart(&options(cache, &["--disk-model", name])),
            Disks::Host => self.agents.restart(&options(cache, &[])),
        }
    }

    /// Writes a file of `bytes` bytes on the first `disks` agents. Returns the times until all data are on stable
    /// storage.
    pub fn write(&self, disks: usize, bytes: u64) -> Result<Times> {
        let session = self.session(disks, Prefetch::Adaptive)?;
        let name = name(disks, bytes);
        let (outcome, times) = measure(Some(&self.agents), || -> io::Result<()> {
            let options = OpenOptions::new().write(true).create(true).truncate(true);
            let mut file = session.open(&name, options)?;
            for block in text(bytes) {
                file.write_all(&block)?;
            }
            file.sync()?;
            Ok(file.close()?)
        });
        self.agents.explain(outcome.map_err(|error| Failure::new(&name, error)))?;
        Ok(times)
    }

    /// Runs a program on the existing file of the given size. Returns the times, and the hash of the output; `None`
    /// instead of the hash if the program only reads.
    pub fn run(
        &self,
        application: Application,
        bytes: u64,
        place: RunPlace,
    ) -> Result<(Times, Option<Hash>)> {
        if matches!(self.disks, Disks::Host) {
            drop_pages(&self.agents.path("."))?;
        }
        let run = Run { agents: &self.agents, application, bytes };
        match (place, &self.disks) {
            (Some((disks, prefetch)), _) => {
                let store = Striped::new(self.session(disks, prefetch)?, self.temporary_files());
                let names = [name(disks, bytes), OUTPUT.to_owned()].map(|name| FileName::Local(name.into()));
                let ran = run.on(&store, &names, None);
                if !application.only_reads() {
                    self.agents.explain(store.remove(&names[1]).map_err(failed))?;
                }
                ran
            }
            (None, Disks::Modelled(_, model)) => {
                let disk = LocalDisk::start(self.local_settings(bytes, Some(model.as_ref().clone()))?)?;
                let ran = run.on(&disk, &[LOCAL, OUTPUT].map(|name| FileName::Local(name.into())), None);
                disk.finish().and(ran)
            }
            (None, Disks::Host) => {
                let directory = self.local_directory(bytes);
                let files = Files::new(&FilesArgs::default());
                let files = files.with_temporary_files_in(&FileName::Local(directory.clone()));
                let [input, output] = [LOCAL, OUTPUT].map(|name| directory.join(name));
                let to_sync = (!application.only_reads()).then(|| output.clone());
                run.on(&files, &[input, output].map(FileName::Local), to_sync.as_deref())
            }
        }
    }

    fn temporary_files(&self) -> TemporaryFiles {
        match self.disks {
            Disks::Modelled(..) => TemporaryFiles::OnDisks,
            Disks::Host => TemporaryFiles::Cached,
        }
    }

    /// Returns the time in seconds to get each page of the file of the given size. Each page is requested alone, after
    /// a pause.
    pub fn page_times(&self, bytes: u64, pause: Duration) -> Result<Vec<f64>> {
        let session = self.session(1, Prefetch::Window(1))?;
        let name = name(1, bytes);
        let read = || -> io::Result<Vec<f64>> {
            let mut file = session.open(&name, OpenOptions::new().read(true))?;
            let (mut page, mut times) = (vec![0; PAGE_BYTES as usize], Vec::new());
            loop {
                thread::sleep(pause);
                let start = Instant::now();
                if file.read(&mut page)? == 0 {
                    return Ok(times);
                }
                times.push(start.elapsed().as_secs_f64());
            }
        };
        self.agents.explain(read().map_err(|error| Failure::new(&name, error)))
    }

    fn session(&self, disks: usize, prefetch: Prefetch) -> Result<Session> {
        let mut settings = node::Settings::of_environment(self.agents.cluster.agents[..disks].to_vec())?;
        settings.prefetch = prefetch;
        settings.block_bytes = PAGE_BYTES;
        let session =
            Session::start(settings).map_err(|error| Failure::new("cannot connect to the agents", error));
        self.agents.explain(session)
    }

    /// Writes the file on the disk used locally, without modelled delays.
    pub fn write_local(&self, bytes: u64) -> Result<()> {
        match self.disks {
            Disks::Modelled(..) => {
                let disk = LocalDisk::start(self.local_settings(bytes, None)?)?;
                let name = FileName::Local(LOCAL.into());
                let written = disk.create(&name, true).and_then(|mut file| {
                    text(bytes)
                        .try_for_each(|block| file.write_all(&block))
                        .map_err(|error| applications::Failure::io(&name, &error))?;
                    file.finish()
                });
                disk.finish().and(written.map_err(failed))
            }
            Disks::Host => {
                let directory = self.local_directory(bytes);
                let write = || -> io::Result<()> {
                    fs::create_dir_all(&directory)?;
                    let mut file = File::create(directory.join(LOCAL))?;
                    text(bytes).try_for_each(|block| file.write_all(&block))?;
                    file.sync_all()
                };
                write().map_err(|error| Failure::new(directory.display().to_string(), error))
            }
        }
    }

    fn local_settings(&self, bytes: u64, model: Option<DiskDescription>) -> Result<real::Settings> {
        let directory = self.local_directory(bytes);
        Ok(real::Settings { disks: vec![DiskSettings { directory, model }], ..agent_settings(None)? })
    }

    fn local_directory(&self, bytes: u64) -> PathBuf {
        self.agents.path(&format!("local-{bytes}"))
    }
}

fn failed(failure: applications::Failure) -> Failure {
    Failure::new("cannot run a program", failure)
}

/// Run of a program on a file of the given size in bytes.
struct Run<'a> {
    agents: &'a Agents,
    application: Application,
    bytes: u64,
}

impl Run<'_> {
    /// Runs the program on its input and output file, and checks the output. Ordinary files (`to_sync`) are on the disk
    /// only after a sync, other files when they are finished.
    fn on(
        &self,
        store: &dyn Storage,
        [input, output]: &[FileName; 2],
        to_sync: Option<&Path>,
    ) -> Result<(Times, Option<Hash>)> {
        let (outcome, times) = measure(Some(self.agents), || {
            self.application.run(store, input, output, self.bytes)?;
            let synced = to_sync.map_or(Ok(()), |path| File::open(path)?.sync_all());
            synced.map_err(|error| applications::Failure::io(output, &error))
        });
        self.agents.explain(outcome.map_err(failed))?;
        if self.application.only_reads() {
            return Ok((times, None));
        }
        let made = store.open(output).map_err(failed);
        let checked = made.and_then(|made| {
            let checked = self.application.check(made, self.bytes);
            checked.map_err(|error| Failure::new(output.to_string(), error))
        });
        Ok((times, Some(self.agents.explain(checked)?)))
    }
}

/// Requests that the kernel drops the cached pages of all files below a directory.
fn drop_pages(directory: &Path) -> Result<()> {
    let drop = || -> io::Result<()> {
        for entry in fs::read_dir(directory)? {
            let path = entry?.path();
            if path.is_dir() {
                drop_pages(&path).map_err(|failure| io::Error::other(failure.to_string()))?;
            } else if path.is_file() {
                let file = File::open(&path)?;
                // The kernel can drop a page only if it is on the disk.
                file.sync_all()?;
                posix_fadvise(&file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED)?;
            }
        }
        Ok(())
    };
    drop().map_err(|error| Failure::new(directory.display().to_string(), error))
}

fn options(cache: &str, more: &[&str]) -> Vec<String> {
    // Blocks of different files are far apart on the disk. This order serves the blocks of one file together.
    let scheduling = "physical-cyclic-scan";
    let usual = ["--cache", cache, "--block-max", "64KiB", "--prefetch", "0", "--scheduling", scheduling];
    usual.iter().chain(more).map(|&option| option.to_owned()).collect()
}

/// Returns the settings of an agent started with these options.
pub fn serving(cache: &str) -> IoNodeSettings {
    let cache_bytes = cache.parse::<Size>().expect("it is a size").0;
    IoNodeSettings {
        scheduling: Scheduling::PhysicalCyclicScan,
        cache_blocks: (cache_bytes / PAGE_BYTES) as usize,
        block_bytes_max: PAGE_BYTES,
        prefetch_blocks: 0,
        ..IoNodeSettings::agent()
    }
}

fn name(disks: usize, bytes: u64) -> String {
    format!("{bytes}-bytes-on-{disks}")
}
