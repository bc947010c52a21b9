//! What the programs run on: agents on loopback, a disk used locally, files on both.

use std::io::{self, Read, Write};
use std::thread;
use std::time::{Duration, Instant};

use description::DiskDescription;
use experiment::LocalReader;
use flume::{Receiver, Sender};
use fs::Prefetch;
use machine::{Disk, Machine, Payload};
use pdiol::{OpenOptions, Session};
use real::DiskSettings;

use super::PAGE_BYTES;
use super::application::{Application, text};
use super::times::{Times, measure};
use crate::failure::{Failure, Result};
use crate::node;
use crate::processes::Agents;

/// The cache of an agent whose disk is fast: for all that is under way.
const CACHE: &str = "16MiB";

/// An agent keeps so little that a program which reads a file again finds nothing of it there.
pub(crate) const CACHE_FOR_READING: &str = "1MiB";

/// An agent that is written to keeps more, to write in the order of its disk.
pub(crate) const CACHE_FOR_WRITING: &str = "64MiB";

/// The name of the file on the local disk.
const LOCAL: &str = "file";

/// Agents, a directory that is the local disk, and the model of all of them.
pub(crate) struct Testbed {
    agents: Agents,
    model: DiskDescription,
}

impl Testbed {
    /// Starts agents with disks that are as fast as they can.
    pub(crate) fn start(agents: usize, model: DiskDescription) -> Result<Testbed> {
        Ok(Testbed { agents: Agents::start(agents, &options(CACHE, &[]))?, model })
    }

    /// The agents.
    pub(crate) fn agents(&self) -> &Agents {
        &self.agents
    }

    /// Starts the agents anew, with disks that take the times of `model`, and a cache of this size.
    pub(crate) fn slow_down(&mut self, model: &str, cache: &str) -> Result<()> {
        self.agents.restart(&options(cache, &["--disk-model", model]))
    }

    /// Makes the file of `bytes` bytes on the first `disks` agents, and tells what that took until all is on the media.
    pub(crate) fn write(&self, disks: usize, bytes: u64) -> Result<Times> {
        let session = self.session(disks, Prefetch::Adaptive)?;
        let name = name(disks, bytes);
        let (outcome, times) = measure(Some(&self.agents), || -> io::Result<()> {
            let options = OpenOptions::new().write(true).create(true).truncate(true);
            let mut file = session.open(&name, options)?;
            for block in text(bytes) {
                file.write_all(&block)?;
            }
            Ok(file.close()?)
        });
        self.agents.explain(outcome.map_err(|error| Failure::new(&name, error)))?;
        Ok(times)
    }

    /// Runs a program on the file of so many bytes on the first `disks` agents.
    pub(crate) fn read(
        &self,
        application: Application,
        disks: usize,
        bytes: u64,
        prefetch: Prefetch,
    ) -> Result<Times> {
        let session = self.session(disks, prefetch)?;
        let name = name(disks, bytes);
        let (outcome, times) = measure(Some(&self.agents), || -> io::Result<()> {
            let mut file = session.open(&name, OpenOptions::new().read(true))?;
            application.run(&mut file, bytes)?;
            Ok(file.close()?)
        });
        self.agents.explain(outcome.map_err(|error| Failure::new(&name, error)))?;
        Ok(times)
    }

    /// What each page of the file of so many bytes takes that is asked for alone, after a pause: seconds.
    pub(crate) fn page_times(&self, bytes: u64, pause: Duration) -> Result<Vec<f64>> {
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
        let mut settings = pdiol::Settings::of_environment(self.agents.agents[..disks].to_vec())?;
        settings.prefetch = prefetch;
        settings.block_bytes = PAGE_BYTES;
        let session =
            Session::start(settings).map_err(|error| Failure::new("connecting to the agents", error));
        self.agents.explain(session)
    }

    /// Makes the file on the local disk, in no modelled time.
    pub(crate) fn write_local(&self, bytes: u64) -> Result<()> {
        let written = real::run(self.local_settings(bytes, None)?, move |machine| async move {
            let disk = &machine.disks()[0];
            let object = disk.create(LOCAL, &[]).await?;
            let mut offset = 0;
            for block in text(bytes) {
                let payload = Payload::from(block);
                let end = offset + payload.len();
                disk.write(object.id, offset, payload).await?;
                offset = end;
            }
            disk.flush(object.id).await
        });
        written.and_then(|outcome| outcome).map_err(local_failure)
    }

    /// Runs a program on the file of so many bytes on the local disk, which takes the times of the model.
    pub(crate) fn read_local(&self, application: Application, bytes: u64) -> Result<Times> {
        let settings = self.local_settings(bytes, Some(self.model.clone()))?;
        let (pages, read) = flume::bounded(1);
        let (go, begin) = flume::bounded(1);
        let (tell, ready) = flume::bounded(1);
        let disk = thread::spawn(move || {
            real::run(settings, move |machine| async move {
                // If nobody is there any more, there is nothing to be done.
                let _ = tell.send(());
                let _ = begin.recv_async().await;
                deliver(machine, pages).await
            })
        });
        let mut reader = Pages { read, page: Vec::new(), used: 0 };
        // If it does not begin it has failed, and says so when it is joined.
        let _ = ready.recv();
        let (outcome, times) = measure(Some(&self.agents), || {
            let _ = go.send(());
            application.run(&mut reader, bytes)
        });
        drop(reader);
        let delivered = disk.join().expect("a local disk does not panic");
        delivered.and_then(|outcome| outcome).map_err(local_failure)?;
        outcome.map_err(local_failure)?;
        Ok(times)
    }

    fn local_settings(&self, bytes: u64, model: Option<DiskDescription>) -> Result<real::Settings> {
        let directory = self.agents.path(&format!("local-{bytes}"));
        Ok(real::Settings { disks: vec![DiskSettings { directory, model }], ..node::settings()? })
    }
}

fn options(cache: &str, more: &[&str]) -> Vec<String> {
    let usual = ["--cache", cache, "--block-max", "64KiB", "--prefetch", "0"];
    usual.iter().chain(more).map(|&option| option.to_owned()).collect()
}

fn name(disks: usize, bytes: u64) -> String {
    format!("{bytes}-bytes-on-{disks}")
}

fn local_failure(error: impl std::fmt::Display) -> Failure {
    Failure::new("the local disk", error)
}

/// Reads the file of the local disk for whoever takes its pages.
async fn deliver(machine: real::RealMachine, pages: Sender<Vec<u8>>) -> machine::Result<()> {
    let mut reader = LocalReader::open(machine, LOCAL, PAGE_BYTES).await?;
    while let Some(page) = reader.next().await? {
        let bytes = page.as_contiguous().expect("a real page, read into one buffer");
        if pages.send_async(bytes.to_vec()).await.is_err() {
            break;
        }
    }
    Ok(())
}

/// The pages of the local disk as a program reads them.
struct Pages {
    read: Receiver<Vec<u8>>,
    page: Vec<u8>,
    used: usize,
}

impl Read for Pages {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.used == self.page.len() {
            // No more pages is the end; whether there should be more, the program finds out.
            self.page = self.read.recv().unwrap_or_default();
            self.used = 0;
        }
        let bytes = into.len().min(self.page.len() - self.used);
        into[..bytes].copy_from_slice(&self.page[self.used..self.used + bytes]);
        self.used += bytes;
        Ok(bytes)
    }
}
