//! A *bare stripe*, which serves as a baseline of benchmarks: four processes each read a file and write it to a socket,
//! and one process receives the data, without any protocol.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread;
use std::time::Instant;

use command_line::failure::{Failure, Result};
use command_line::mib;

use crate::bench::processes::{self, Agents};

/// Number of sending processes.
pub const SENDERS: usize = 4;

/// Creates a file for each sender. Together the files are as long as the file of the benchmark.
pub fn stripe_files(agents: &Agents, bytes: u64) -> Result<Vec<PathBuf>> {
    let files = (0..SENDERS).map(|index| agents.path(&format!("stripe{index}")));
    let files: Vec<PathBuf> = files.collect();
    for file in &files {
        processes::make_file(file, bytes / SENDERS as u64)?;
    }
    Ok(files)
}

/// For each file, starts a process that sends it without any protocol. Returns the throughput of `receive` in MiB/s.
pub fn bare(
    files: &[PathBuf],
    block: usize,
    receive: fn(Vec<TcpStream>, usize) -> io::Result<u64>,
) -> Result<f64> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(bare_failure)?;
    let address = listener.local_addr().map_err(bare_failure)?;
    let (mut senders, mut streams) = (Vec::new(), Vec::new());
    for file in files {
        senders.push(start_sender(file, address, block).map_err(bare_failure)?);
        streams.push(listener.accept().map_err(bare_failure)?.0);
    }
    // Each sender waits for this byte, so that all start at the same time.
    let start = Instant::now();
    for stream in &mut streams {
        stream.write_all(&[0]).map_err(bare_failure)?;
    }
    let bytes = receive(streams, block).map_err(bare_failure)?;
    let elapsed = start.elapsed();
    for mut sender in senders {
        let status = sender.wait().map_err(bare_failure)?;
        if !status.success() {
            return Err(Failure::new("a sender of the bare stripe", status));
        }
    }
    Ok(mib(bytes) / elapsed.as_secs_f64())
}

fn bare_failure(error: io::Error) -> Failure {
    Failure::new("the bare stripe", error)
}

fn start_sender(file: &Path, to: SocketAddr, block: usize) -> io::Result<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    command
        .args(["bench", "--block", &block.to_string(), "--to", &to.to_string(), "--send"])
        .arg(file)
        .spawn()
}

/// Runs a sender.
pub fn send(file: &Path, to: SocketAddr, block: usize) -> Result<()> {
    send_all(file, to, block).map_err(bare_failure)
}

fn send_all(file: &Path, to: SocketAddr, block: usize) -> io::Result<()> {
    let mut stream = TcpStream::connect(to)?;
    let (mut file, mut buffer) = (File::open(file)?, vec![0; block]);
    stream.read_exact(&mut [0])?;
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(()),
            length => stream.write_all(&buffer[..length])?,
        }
    }
}

/// Receives on one thread, one block from each sender in turn. So the blocks are received in the order of the striped
/// file.
pub fn receive_in_turn(mut streams: Vec<TcpStream>, block: usize) -> io::Result<u64> {
    let (mut buffer, mut total) = (vec![0; block], 0);
    while !streams.is_empty() {
        let mut open = Vec::new();
        for mut stream in streams {
            let length = read_full(&mut stream, &mut buffer)?;
            total += length as u64;
            if length == block {
                open.push(stream);
            }
        }
        streams = open;
    }
    Ok(total)
}

/// Receives on a thread for each sender.
pub fn receive_in_threads(streams: Vec<TcpStream>, block: usize) -> io::Result<u64> {
    let threads =
        streams.into_iter().map(|stream| thread::spawn(move || receive_in_turn(vec![stream], block)));
    let threads: Vec<_> = threads.collect();
    threads.into_iter().map(|thread| thread.join().expect("a receiver does not panic")).sum()
}

fn read_full(stream: &mut TcpStream, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match stream.read(&mut buffer[filled..])? {
            0 => break,
            read => filled += read,
        }
    }
    Ok(filled)
}

/// Formats a throughput with its unit.
pub fn mib_s(throughput: f64) -> String {
    format!("{throughput:.1} MiB/s")
}
