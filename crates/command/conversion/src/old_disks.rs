//! Node in this process that opens the disks and runs on a separate thread. It serves the converting client as an I/O
//! node, and also reads and removes old files.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::thread::{self, JoinHandle};

use command_line::failure::{Failure, Result};
use flume::Sender;
use fs::IoNodeSettings;
use machine::{Machine, Net};
use node::{Agent, AgentService};
use real::{RealMachine, Settings};

use super::old_files::{self, OldEntry, OldFile, OldState, Place};
use super::reading::{self, Contents, PARTS_WAITING};

/// Size of the block cache in bytes.
const CACHE_BYTES: u64 = 64 << 20;

/// Minimum number of cached blocks; with fewer blocks, requests would wait for each other.
const CACHE_BLOCKS_MIN: u64 = 8;

/// Node that has opened the disks. It stops when this value is dropped.
pub(super) struct OldDisks {
    address: SocketAddr,
    requests: Sender<Request>,
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<Result<()>>>,
}

/// Handle of the node. Clones refer to the same node.
#[derive(Clone)]
pub(super) struct OldDisksHandle(Sender<Request>);

/// Request of the client to the node.
enum Request {
    Read(OldFile, Sender<reading::Part>),
    Remove { name: String, places: Vec<Place>, done: Sender<Result<()>> },
}

impl OldDisks {
    /// Starts a node that opens the disks in these directories, and finds the old files on them.
    pub(super) fn start(settings: Settings, directories: Vec<PathBuf>) -> Result<(OldDisks, Vec<OldEntry>)> {
        let (ready_sender, ready) = flume::bounded(1);
        let (requests, asked) = flume::unbounded();
        let (stop, stopped) = flume::bounded::<()>(0);
        let incarnation = node::random()?;
        let thread = thread::spawn(move || {
            let served = real::run(settings, |machine| async move {
                let found = old_files::find(machine.disks(), &directories).await?;
                let settings = IoNodeSettings { incarnation, ..io_node_settings(&found) };
                // Without a receiver the caller has ended, and needs no answer.
                let _ = ready_sender.send((machine.address().expect("it listens"), found));
                let network = machine.clone();
                machine.spawn("waiting for the end", async move {
                    let _ = stopped.recv_async().await;
                    network.net().close();
                    Ok(())
                });
                let reader = machine.clone();
                machine.spawn("reading old files", async move {
                    while let Ok(request) = asked.recv_async().await {
                        serve(&reader, request).await;
                    }
                    Ok(())
                });
                let served = AgentService::new(machine.clone(), settings).serve().await;
                served.map_err(|error| Failure::new("cannot serve the disks", error))
            });
            served.map_err(|error| not_started(*error))?
        });
        let mut disks = OldDisks {
            address: ([127, 0, 0, 1], 0).into(),
            requests,
            stop: Some(stop),
            thread: Some(thread),
        };
        let Ok((address, found)) = ready.recv() else {
            return Err(disks.end().expect_err("it was never ready"));
        };
        disks.address = address;
        Ok((disks, found))
    }

    /// Returns the node as an agent, with its address.
    pub(super) fn agent(&self) -> Agent {
        Agent { name: "of this command".to_owned(), address: self.address, log: None }
    }

    /// Returns a handle for requests.
    pub(super) fn handle(&self) -> OldDisksHandle {
        OldDisksHandle(self.requests.clone())
    }

    /// Stops the node. Fails if the node has failed.
    pub(super) fn end(&mut self) -> Result<()> {
        self.stop = None;
        match self.thread.take().map(JoinHandle::join) {
            None => Ok(()),
            Some(Ok(served)) => served,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
        }
    }
}

impl OldDisksHandle {
    /// Returns a reader of the contents of a file that has all its stripes.
    pub(super) fn read(&self, file: &OldFile) -> Contents {
        let (parts, received) = flume::bounded(PARTS_WAITING);
        // If the node has ended, the reader fails.
        let _ = self.0.send(Request::Read(file.clone(), parts));
        Contents::new(received, file.bytes)
    }

    /// Removes these objects, one after the other. The removal is durable when the function returns.
    pub(super) async fn remove(&self, name: &str, places: &[Place]) -> Result<()> {
        let (done, outcome) = flume::bounded(1);
        let _ = self.0.send(Request::Remove { name: name.to_owned(), places: places.to_vec(), done });
        let ended = |_| Failure::new(name, "the node with the disks has ended");
        outcome.recv_async().await.map_err(ended)?
    }
}

async fn serve(machine: &RealMachine, request: Request) {
    match request {
        Request::Read(file, parts) => reading::send(machine.disks(), &file, &parts).await,
        Request::Remove { name, places, done } => {
            let removed = remove(machine, &name, &places).await;
            // The receiver is dropped if the client was interrupted.
            let _ = done.send(removed);
        }
    }
}

async fn remove(machine: &RealMachine, name: &str, places: &[Place]) -> Result<()> {
    for &(disk, stage) in places {
        match machine.disks()[disk].remove_staged(name, stage).await {
            Err(error) if !matches!(*error, machine::Error::NotFound { .. }) => {
                return Err(Failure::new(format!("cannot remove the old {name}"), error));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Returns settings of an I/O node that accept blocks as large as those of the old files.
fn io_node_settings(found: &[OldEntry]) -> IoNodeSettings {
    let settings = IoNodeSettings::agent();
    let block_bytes = found.iter().filter_map(|entry| match &entry.state {
        OldState::Finished(file) => Some(file.striping.block_bytes()),
        _ => None,
    });
    let block_bytes_max = block_bytes.max().unwrap_or(0).max(settings.block_bytes_max);
    let cache_blocks = (CACHE_BYTES / block_bytes_max).max(CACHE_BLOCKS_MIN) as usize;
    IoNodeSettings { block_bytes_max, cache_blocks, ..settings }
}

fn not_started(error: machine::Error) -> Failure {
    let failure = Failure::new("cannot open the disks", &error);
    match error {
        machine::Error::InUse { .. } => failure.remedy(
            "Stop that agent first: `starfish agents down` stops those that `agents up` has started.",
        ),
        _ => failure,
    }
}
