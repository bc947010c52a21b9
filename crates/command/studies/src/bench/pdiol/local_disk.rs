//! A modelled disk that is used locally, like a disk of an operating system: without network, agents, page cache and
//! file system.
//!
//! ```text
//!   program's threads                  the disk's thread: a node with one modelled disk
//!
//!   Pages       <--- extents -----      a task for each open input file, which reads ahead
//!   Written     ---- extents ---->      a task for each open output file, which writes behind
//! ```
//!
//! Files that are used at the same time share the disk, one extent after the other in the order of the requests. An
//! extent is longer than the read-ahead of operating systems. Written data are not cached, not even those of temporary
//! files: they are written to the disk, and reads wait for the disk, as on the agents.

use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

use applications::{FileName, Output, Storage, Temporary};
use flume::{Receiver, Sender};
use jobs::LocalReader;
use machine::{Disk, Machine, Payload};
use real::RealMachine;

use command_line::failure::{Failure, Result};

/// Size of an extent in bytes. An extent is read or written with one access.
const STRETCH_BYTES: u64 = 512 << 10;

/// Number of extents to read ahead: one that the disk transfers, and one in its queue.
const STRETCHES_AHEAD: usize = 2;

/// Maximum number of a file's extents that wait to be written: 256 MiB, as much as the page cache of a session.
const STRETCHES_BEHIND: usize = 512;

/// Modelled disk. Dropping it stops its thread.
pub struct LocalDisk {
    commands: Option<Sender<Command>>,
    thread: Option<JoinHandle<machine::Result<()>>>,
    temporary_files: AtomicU64,
}

enum Command {
    /// Reads the whole file, or until the receiver of the extents is dropped.
    Read { name: String, stretches: Sender<io::Result<Vec<u8>>> },
    /// Creates or replaces the file with the received extents, and reports when all of them are on the disk.
    Write { name: String, stretches: Receiver<Vec<u8>>, written: Sender<io::Result<()>> },
    /// Removes the file.
    Remove { name: String },
}

impl LocalDisk {
    /// Starts the disk described by `settings`.
    pub fn start(settings: real::Settings) -> Result<LocalDisk> {
        let (commands, to_do) = flume::unbounded();
        let (sender, ready) = flume::bounded(1);
        let thread = thread::spawn(move || {
            real::run(settings, move |machine| async move {
                // A dropped receiver needs no message.
                let _ = sender.send(());
                serve(&machine, &to_do).await;
            })
        });
        let disk =
            LocalDisk { commands: Some(commands), thread: Some(thread), temporary_files: AtomicU64::new(0) };
        if ready.recv().is_ok() { Ok(disk) } else { disk.finish().map(|()| unreachable!("it did not begin")) }
    }

    /// Stops the disk. Fails if its thread has failed.
    pub fn finish(mut self) -> Result<()> {
        self.end().map_err(|error| Failure::new("the local disk", error))
    }

    fn end(&mut self) -> machine::Result<()> {
        self.commands = None;
        let ended = self.thread.take().map(|thread| thread.join().expect("a local disk does not panic"));
        ended.unwrap_or(Ok(()))
    }

    fn commands(&self) -> Sender<Command> {
        self.commands.clone().expect("it has not ended")
    }

    fn write(&self, name: String) -> Written {
        Written::begin(self.commands(), name)
    }
}

impl Drop for LocalDisk {
    fn drop(&mut self) {
        // `start` has reported a failed start.
        let _ = self.end();
    }
}

impl Storage for LocalDisk {
    fn open(&self, name: &FileName) -> applications::Result<Box<dyn Read + Send + '_>> {
        Ok(Box::new(Pages::begin(&self.commands(), name.to_string())))
    }

    fn create(&self, name: &FileName, _replace: bool) -> applications::Result<Box<dyn Output + '_>> {
        Ok(Box::new(self.write(name.to_string())))
    }

    fn temporary(&self) -> applications::Result<Box<dyn Temporary>> {
        let number = self.temporary_files.fetch_add(1, Ordering::Relaxed);
        Ok(Box::new(TemporaryFile::Written(self.write(format!("temporary-{number}")))))
    }
}

fn gone() -> io::Error {
    io::Error::other("the local disk has ended")
}

/// Input file.
struct Pages {
    stretches: Receiver<io::Result<Vec<u8>>>,
    stretch: Vec<u8>,
    used: usize,
}

impl Pages {
    fn begin(commands: &Sender<Command>, name: String) -> Pages {
        let (send, stretches) = flume::bounded(0);
        // If the thread has ended, the first receive fails.
        let _ = commands.send(Command::Read { name, stretches: send });
        Pages { stretches, stretch: Vec::new(), used: 0 }
    }
}

impl Read for Pages {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.used == self.stretch.len() {
            // The end of the extents is the end of the file. The program checks the length.
            self.stretch = self.stretches.recv().unwrap_or(Ok(Vec::new()))?;
            self.used = 0;
        }
        let bytes = into.len().min(self.stretch.len() - self.used);
        into[..bytes].copy_from_slice(&self.stretch[self.used..self.used + bytes]);
        self.used += bytes;
        Ok(bytes)
    }
}

/// Output file. Dropping this value before the file is finished removes the file.
struct Written {
    commands: Sender<Command>,
    name: String,
    stretch: Vec<u8>,
    /// Sender of extents; `None` after the last one.
    stretches: Option<Sender<Vec<u8>>>,
    written: Receiver<io::Result<()>>,
}

impl Written {
    fn begin(commands: Sender<Command>, name: String) -> Written {
        let (stretches, receive) = flume::bounded(STRETCHES_BEHIND);
        let (sender, written) = flume::bounded(1);
        // If the thread has ended, sending the first extent fails.
        let _ = commands.send(Command::Write { name: name.clone(), stretches: receive, written: sender });
        Written { commands, name, stretch: Vec::new(), stretches: Some(stretches), written }
    }

    fn send(&mut self) -> io::Result<()> {
        let stretch = std::mem::take(&mut self.stretch);
        let sent = self.stretches.as_ref().is_some_and(|stretches| stretches.send(stretch).is_ok());
        if sent { Ok(()) } else { self.written.recv().unwrap_or_else(|_| Err(gone())) }
    }

    /// Waits until all data are on the disk.
    fn complete(&mut self) -> io::Result<()> {
        self.send()?;
        self.stretches = None;
        self.written.recv().unwrap_or_else(|_| Err(gone()))
    }
}

impl Write for Written {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        if self.stretch.len() as u64 == STRETCH_BYTES {
            self.send()?;
        }
        let bytes = from.len().min(STRETCH_BYTES as usize - self.stretch.len());
        self.stretch.extend_from_slice(&from[..bytes]);
        Ok(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Output for Written {
    fn finish(mut self: Box<Self>) -> applications::Result<()> {
        let complete = self.complete();
        complete.map_err(|error| applications::Failure::io(&self.name, &error))
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        if self.stretches.take().is_some() {
            // Wait until the task has created the file, so that the removal happens afterwards.
            let _ = self.written.recv();
            let _ = self.commands.send(Command::Remove { name: self.name.clone() });
        }
    }
}

enum TemporaryFile {
    Written(Written),
    Read { commands: Sender<Command>, name: String, pages: Pages },
}

impl Temporary for TemporaryFile {
    fn rewind(&mut self) -> io::Result<()> {
        match self {
            TemporaryFile::Written(file) => {
                file.complete()?;
                let (commands, name) = (file.commands.clone(), file.name.clone());
                let pages = Pages::begin(&commands, name.clone());
                *self = TemporaryFile::Read { commands, name, pages };
            }
            TemporaryFile::Read { commands, name, pages } => *pages = Pages::begin(commands, name.clone()),
        }
        Ok(())
    }
}

impl Read for TemporaryFile {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            TemporaryFile::Read { pages, .. } => pages.read(into),
            TemporaryFile::Written(_) => Ok(0),
        }
    }
}

impl Write for TemporaryFile {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        match self {
            TemporaryFile::Written(file) => file.write(from),
            TemporaryFile::Read { .. } => Err(io::Error::other("it is being read")),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        if let TemporaryFile::Read { commands, name, .. } = self {
            let _ = commands.send(Command::Remove { name: name.clone() });
        }
    }
}

/// Serves commands until the channel is closed.
async fn serve(machine: &RealMachine, commands: &Receiver<Command>) {
    while let Ok(command) = commands.recv_async().await {
        let machine = machine.clone();
        match command {
            Command::Read { name, stretches } => {
                machine.clone().spawn("reading ahead", async move {
                    if let Err(error) = read(machine, &name, &stretches).await {
                        // If the receiver is dropped, the program no longer needs the file.
                        let _ = stretches.send_async(Err(io::Error::other(error.to_string()))).await;
                    }
                    Ok(())
                });
            }
            Command::Write { name, stretches, written } => {
                machine.clone().spawn("writing behind", async move {
                    let outcome = write(&machine, &name, &stretches).await;
                    drop(stretches);
                    let _ = written.send(outcome.map_err(|error| io::Error::other(error.to_string())));
                    Ok(())
                });
            }
            // The file may not exist, which is no error.
            Command::Remove { name } => drop(machine.disks()[0].remove(&name).await),
        }
    }
}

async fn read(
    machine: RealMachine,
    name: &str,
    stretches: &Sender<io::Result<Vec<u8>>>,
) -> machine::Result<()> {
    let mut reader = LocalReader::open(machine, name, STRETCH_BYTES, STRETCHES_AHEAD).await?;
    while let Some(stretch) = reader.next().await? {
        let bytes = stretch.to_vec().expect("real bytes");
        if stretches.send_async(Ok(bytes)).await.is_err() {
            break;
        }
    }
    Ok(())
}

async fn write(machine: &RealMachine, name: &str, stretches: &Receiver<Vec<u8>>) -> machine::Result<()> {
    let disk = &machine.disks()[0];
    // The file may not exist, which is no error.
    let _ = disk.remove(name).await;
    let object = disk.create(name, &[]).await?;
    let mut offset = 0;
    while let Ok(stretch) = stretches.recv_async().await {
        let payload = Payload::from(stretch);
        let end = offset + payload.len();
        disk.write(object.id, offset, payload).await?;
        offset = end;
    }
    disk.flush(object.id).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use real::DiskSettings;

    #[test]
    fn files_are_read_as_written_and_temporary_files_are_removed() {
        let directory = tempfile::tempdir().expect("a directory");
        let disks = vec![DiskSettings::plain(directory.path().join("disk"))];
        let settings = real::Settings { disks, ..transfer::cluster::agent_settings(None).expect("settings") };
        let disk = LocalDisk::start(settings.clone()).expect("a disk");
        let name: FileName = "file".parse().expect("a name");
        let contents: Vec<u8> = (0..2_000_000_u32).map(|index| (index / 5) as u8).collect();
        for bytes in [0, 1, STRETCH_BYTES as usize, contents.len()] {
            let mut file = disk.create(&name, true).expect("a file");
            file.write_all(&contents[..bytes]).expect("space");
            file.finish().expect("space");
            let mut read = Vec::new();
            disk.open(&name).expect("a file").read_to_end(&mut read).expect("it exists");
            assert!(read == contents[..bytes], "{bytes}");
            let mut temporary = disk.temporary().expect("a file");
            temporary.write_all(&contents[..bytes]).expect("space");
            for _ in 0..2 {
                temporary.rewind().expect("space");
                let mut read = Vec::new();
                temporary.read_to_end(&mut read).expect("it exists");
                assert!(read == contents[..bytes], "{bytes}");
            }
        }
        drop(disk.create(&"half".parse().expect("a name"), true).expect("a file"));
        let missing: FileName = "nothing".parse().expect("a name");
        assert!(disk.open(&missing).expect("the read reports it").read(&mut [0; 8]).is_err());
        disk.finish().expect("it ends");
        let left = real::run(settings, |machine| async move { machine.disks()[0].list().await });
        assert_eq!(left.and_then(|names| names).expect("a directory"), ["file"]);
    }
}
