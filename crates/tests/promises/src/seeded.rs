//! Runs drawn from a seed: settings, number of nodes, and operations.
//!
//! A promise tests one situation. These tests search for situations that no promise covers: a seed determines one short
//! run, and the crate `seeds` makes as many runs as time permits. A failing run fails again with the same seed.

use fs::{
    Client, ClientSettings, CollectiveMethod, CollectiveSettings, Configuration, File, FileId, Group,
    IoNodeSettings, NumberedFile, Prefetch, Scheduling, Threads,
};
use layout::{Operation, Pattern, Problem, Striping, View};
use machine::conformance::Testbed;
use machine::{Duration, Machine, Memory, Payload};

use super::pages::cached_operations;
use super::random::{Asking, ask_at_random};
use super::tasks::Tasks;
use super::{BLOCK, Base, Draw, contents, put, read, run, small, start_with, write};

/// Operations of one run: enough to fill the caches several times, few enough for hundreds of runs a second.
const STEPS: u32 = 60;

/// Maximum number of files that exist at the same time.
const FILES: usize = 3;

/// Maximum length in bytes to which a single operation extends a file.
const FILE_BYTES_MAX: u64 = 24 * BLOCK;

/// Settings drawn from a seed: a configuration with small limits.
struct Chosen {
    base: Base,
    io_nodes: usize,
    clients: usize,
    io_node: IoNodeSettings,
    client: ClientSettings,
}

impl Chosen {
    fn draw(draw: &mut Draw) -> Self {
        let base = Base {
            configuration: draw.one_of(&Configuration::ALL),
            scheduling: draw.one_of(&Scheduling::ALL),
        };
        let threads = draw.one_of(&[Threads::Pool(2), Threads::Pool(4), Threads::PerRequest]);
        let io_node = IoNodeSettings {
            cache_blocks: 4 + draw.below(6) as usize,
            prefetch_blocks: draw.below(3),
            requests_at_disk: 1 + draw.below(3) as usize,
            buffers_per_disk: 1 + draw.below(3) as usize,
            ..small(base, threads)
        };
        let client = ClientSettings {
            outstanding_per_disk: draw.one_of(&[1, 4, 64]),
            memget_writes: draw.below(4) == 0,
            ..base.client()
        };
        let (io_nodes, clients) = (1 + draw.below(4) as usize, 1 + draw.below(4) as usize);
        Chosen { base, io_nodes, clients, io_node, client }
    }
}

impl Draw {
    /// Returns the stream of a seed. Streams of adjacent seeds are unrelated.
    fn of(seed: u64) -> Self {
        Draw(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }
}

/// Operations of several clients on several files, sequential and concurrent, independent and collective, have the same
/// results as on files in memory.
pub fn operations_of_a_seed(testbed: &impl Testbed, seed: u64) {
    let mut draw = Draw::of(seed);
    let chosen = Chosen::draw(&mut draw);
    run(testbed, chosen.io_nodes + chosen.clients, move |nodes| async move {
        let clients = start_with(&nodes, chosen.io_nodes, chosen.io_node, chosen.client).await;
        let nodes = nodes[chosen.io_nodes..].to_vec();
        let mut program = Program { nodes, clients, draw, files: Default::default(), begun: 1 };
        for _ in 0..STEPS {
            program.step().await;
        }
        program.finish().await;
    });
}

/// Random operations of a seed through page caches, each client first on separate files and then in turn on one.
pub fn cached_operations_of_a_seed(testbed: &impl Testbed, seed: u64) {
    let mut draw = Draw::of(seed);
    let Chosen { base, io_node, .. } = Chosen::draw(&mut draw);
    let pages = draw.one_of(&[1, 2, 3, 5, 8, 40]);
    let prefetch = match draw.below(3) {
        0 => Prefetch::None,
        1 => Prefetch::Window(1 + draw.below(16)),
        _ => Prefetch::Adaptive,
    };
    cached_operations(testbed, base, io_node, seed, pages, prefetch);
}

/// Requests are all answered, even if they are valid individually but inconsistent with each other.
pub fn requests_of_a_seed(testbed: &impl Testbed, seed: u64) {
    let Chosen { base, io_node, .. } = Chosen::draw(&mut Draw::of(seed));
    let limit = Duration::from_secs(1000);
    // A block of the cache for each thread and for each member with data in flight, as for the promise.
    let settings = IoNodeSettings { cache_blocks: 16, wait_timeout: Some(limit), incarnation: 1, ..io_node };
    // On a slow disk the completion of written-behind data takes time.
    let pause = Duration::from_secs(1);
    let asking = Asking { requests: 600, seed, limit, least_done: 0, pause };
    ask_at_random(testbed, base, settings, asking);
}

/// A file, its expected contents, and each client's handle on it.
struct Known<M: Machine> {
    file: NumberedFile,
    contents: Vec<u8>,
    handles: Vec<Option<File<M>>>,
}

/// Actions of the clients, and expected files.
struct Program<M: Machine> {
    nodes: Vec<M>,
    clients: Vec<Client<M>>,
    draw: Draw,
    files: [Option<Known<M>>; FILES],
    /// Number of files and groups created so far; the numbers are unique.
    begun: u64,
}

impl<M: Machine> Program<M> {
    async fn step(&mut self) {
        let (index, who) = (self.draw.below(3) as usize, self.draw.below(self.clients.len() as u64) as usize);
        if self.files[index].is_none() {
            return self.make(index, who).await;
        }
        match self.draw.below(24) {
            0 => self.remove(index, who).await,
            1 => self.make(index, who).await,
            2 => self.list(who).await,
            3..=4 => self.truncate(index, who).await,
            5..=6 => self.handle(index, who).await.flush().await.expect("flushed"),
            7..=12 => self.write(index, who).await,
            13..=18 => self.read(index, who).await,
            19..=20 => self.write_side_by_side(index).await,
            _ => self.move_together(index).await,
        }
    }

    /// Returns the handle of a client on a file. Opens the file if necessary, and otherwise refreshes the handle as if
    /// it were newly opened.
    async fn handle(&mut self, index: usize, who: usize) -> File<M> {
        let known = self.files[index].as_mut().expect("the file exists");
        if known.handles[who].is_none() {
            let opened = self.clients[who].numbered(known.file.clone()).await;
            known.handles[who] = Some(opened.expect("opened"));
        }
        let file = known.handles[who].clone().expect("opened");
        file.refresh();
        let bytes = self.clients[who].stored_bytes(&known.file).await.expect("answered");
        assert_eq!(bytes, known.contents.len() as u64, "the length of file {index} to client {who}");
        file.note_counted(u64::MAX);
        file.set_bytes(bytes);
        file
    }

    /// Returns the handles of all clients.
    async fn handles(&mut self, index: usize) -> Vec<File<M>> {
        let mut handles = Vec::new();
        for who in 0..self.clients.len() {
            handles.push(self.handle(index, who).await);
        }
        handles
    }

    fn contents(&mut self, index: usize) -> &mut Vec<u8> {
        &mut self.files[index].as_mut().expect("the file exists").contents
    }

    /// Creates a file, in place of an existing one if any.
    async fn make(&mut self, index: usize, who: usize) {
        if self.files[index].is_some() {
            self.remove(index, who).await;
        }
        let client = self.clients[who].clone();
        let block = self.draw.one_of(&[BLOCK, 2 * BLOCK, 8 * BLOCK]);
        let stripes = 1 + self.draw.below(u64::from(client.disks())) as u32;
        let striping = Striping::new(block, stripes).expect("a striping");
        self.begun += 1;
        let file = client.new_numbered(FileId(self.begun), striping).await.expect("all disks are there");
        let opened = client.numbered(file.clone()).await.expect("opened");
        if self.draw.below(2) == 0 {
            opened.make_stripes().await.expect("room");
        }
        let data = self.data(FILE_BYTES_MAX);
        write(&opened, 0, &data).await;
        let mut handles: Vec<Option<File<M>>> = self.clients.iter().map(|_| None).collect();
        handles[who] = Some(opened);
        self.files[index] = Some(Known { file, contents: data, handles });
    }

    async fn remove(&mut self, index: usize, who: usize) {
        let known = self.files[index].take().expect("the file exists");
        self.clients[who].remove_numbered(&[known.file.number]).await.expect("removed");
    }

    /// Asserts that all stripes belong to existing files.
    async fn list(&mut self, who: usize) {
        let listed = self.clients[who].list_numbered().await.expect("listed");
        let is_known = |file| self.files.iter().flatten().any(|known| known.file.number == file);
        assert!(listed.iter().all(|(_, stripe)| is_known(stripe.file)), "{listed:?}");
    }

    async fn truncate(&mut self, index: usize, who: usize) {
        let bytes = self.draw.below(FILE_BYTES_MAX);
        self.resize(index, who, bytes).await;
    }

    async fn resize(&mut self, index: usize, who: usize, bytes: u64) {
        // Create all stripes first, so that each stripe gets the length of the file.
        let file = self.handle(index, who).await;
        file.make_stripes().await.expect("room");
        file.truncate(bytes).await.expect("truncated");
        self.contents(index).resize(bytes as usize, 0);
    }

    async fn write(&mut self, index: usize, who: usize) {
        let (offset, data) = (self.draw.below(FILE_BYTES_MAX), self.data(4 * BLOCK));
        let file = self.handle(index, who).await;
        write(&file, offset, &data).await;
        put(self.contents(index), offset, &data);
    }

    async fn read(&mut self, index: usize, who: usize) {
        let (offset, bytes) = (self.draw.below(FILE_BYTES_MAX), self.draw.below(6 * BLOCK));
        let file = self.handle(index, who).await;
        let found = read(&file, offset, bytes).await;
        let contents = self.contents(index);
        let start = (offset as usize).min(contents.len());
        let end = ((offset + bytes) as usize).min(contents.len());
        assert!(found == contents[start..end], "{bytes} bytes at {offset} of file {index}");
    }

    /// Each client writes separate records, some of which share blocks with those of others, and reads them back.
    async fn write_side_by_side(&mut self, index: usize) {
        let (start, record) = (self.draw.below(8 * BLOCK), 1 + self.draw.below(BLOCK + 100));
        let rounds = 1 + self.draw.below(6);
        let flushes = self.draw.below(2) == 0;
        let (tasks, writers) = (Tasks::default(), self.clients.len());
        for (who, file) in self.handles(index).await.into_iter().enumerate() {
            let mut records = Vec::new();
            for round in 0..rounds {
                let at = start + (round * writers as u64 + who as u64) * record;
                let data = vec![self.draw.below(256) as u8; record as usize];
                records.push((at, data));
            }
            let theirs = records.clone();
            tasks.begin(&self.nodes[who], async move {
                for (at, data) in &theirs {
                    write(&file, *at, data).await;
                }
                if flushes {
                    file.flush().await.expect("flushed");
                }
                for (at, data) in &theirs {
                    assert!(read(&file, *at, data.len() as u64).await == *data, "the record at {at}");
                }
            });
            records.iter().for_each(|(at, data)| put(self.contents(index), *at, data));
        }
        tasks.wait().await;
    }

    /// All clients together write the file, or read it, in a pattern of the reports.
    async fn move_together(&mut self, index: usize) {
        let patterns: Vec<Pattern> = Pattern::all().collect();
        let pattern = self.draw.one_of(&patterns);
        let record = self.draw.one_of(&[8, 96, BLOCK]);
        // With a multiple of 16 * 24 records every pattern has a view for any size of the group.
        let problem = Problem::new(16 * 24 * record, record, self.clients.len() as u32);
        let settings = self.collective_settings();
        let Ok(view) = pattern.view(&problem) else { return };
        if problem.file_bytes > 2 * FILE_BYTES_MAX {
            return;
        }
        self.resize(index, 0, problem.file_bytes).await;
        let files = self.handles(index).await;
        if pattern.operation() == Operation::Write {
            let kept = self.draw.below(256) as u8;
            let data = contents(problem.file_bytes).into_iter().map(|byte| byte ^ kept).collect();
            *self.contents(index) = data;
        }
        self.begun += 1;
        let (tasks, members) = (Tasks::default(), self.nodes.iter().map(|node| node.node()));
        let members: Vec<_> = members.collect();
        for (who, file) in files.into_iter().enumerate() {
            let part = part_of(self.contents(index), &view, who as u32);
            let group = Group::new(self.begun, members.clone(), who);
            tasks.begin(&self.nodes[who], async move {
                if pattern.operation() == Operation::Read {
                    let memory = Memory::real(vec![0xEE; part.len()]);
                    file.read_collective(&group, &view, &memory, settings).await.expect("read");
                    let found = memory.get(0, part.len() as u64);
                    assert!(found == Payload::from(part), "{pattern}, member {who}");
                } else {
                    let memory = Memory::real(part);
                    file.write_collective(&group, &view, &memory, settings).await.expect("written");
                }
            });
        }
        tasks.wait().await;
    }

    fn collective_settings(&mut self) -> CollectiveSettings {
        let presort = self.draw.below(2) == 0;
        let method =
            self.draw.one_of(&[CollectiveMethod::DiskDirected { presort }, CollectiveMethod::TwoPhase]);
        CollectiveSettings { method, queued: self.draw.below(2) == 0 }
    }

    /// Returns fewer than `most` random bytes.
    fn data(&mut self, most: u64) -> Vec<u8> {
        let bytes = self.draw.below(most);
        (0..bytes).map(|_| self.draw.below(256) as u8).collect()
    }

    /// Asserts that a client reads the expected contents of all files, and removes them.
    async fn finish(mut self) {
        for index in 0..FILES {
            let Some(known) = &mut self.files[index] else { continue };
            known.handles.fill(None);
            let file = self.handle(index, 0).await;
            let contents = self.contents(index).clone();
            assert!(read(&file, 0, contents.len() as u64 + BLOCK).await == contents, "file {index}");
            self.remove(index, 0).await;
        }
        assert_eq!(self.clients[0].list_numbered().await, Ok(vec![]));
    }
}

/// Returns the part of a file in the memory of a member of a group.
fn part_of(contents: &[u8], view: &View, member: u32) -> Vec<u8> {
    let mut part = vec![0; view.node_bytes(member) as usize];
    for chunk in view.chunks(member) {
        let (file, memory) = (chunk.file_offset as usize, chunk.memory_offset as usize);
        let bytes = chunk.bytes as usize;
        part[memory..memory + bytes].copy_from_slice(&contents[file..file + bytes]);
    }
    part
}
