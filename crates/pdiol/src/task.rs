//! The node thread's half of an open file: a task that does what the handle asks, in order.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use flume::{Receiver, Sender};
use fs::{Advice, PagedFile, Prefetch};
use machine::{Machine, Payload};
use real::RealMachine;

use crate::error::{Error, Result};
use crate::file::Stat;
use crate::lease::{Lending, Lent};
use crate::node::Node;

/// Commands of a handle. Those with an answer say so; closing the channel closes the file and is answered, too.
pub(crate) enum Command {
    /// The page from this offset on, and following ready pages up to the limit in bytes. Answered.
    Read {
        /// Offset of the first byte, anywhere in a page.
        offset: u64,
        /// Bytes that the caller will read from there on, and so will request next.
        wanted: u64,
        /// How many pages at most.
        pages: usize,
    },
    /// These bytes are to be at this offset.
    Write {
        /// Offset of the first byte.
        offset: u64,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// These bytes are to be at the end of the file. Answered with the size after that, even if they could not be.
    Append(Vec<u8>),
    /// Whether a write has failed. Answered.
    Check,
    /// The size as far as this client knows. Answered.
    Size,
    /// The file's metadata. Answered.
    Stat,
    /// A new length. Answered.
    SetLen(u64),
    /// Everything written is to be on the disks. Answered.
    Flush,
    /// What comes. Answered.
    Advise(Advice),
}

/// The answer to a command.
pub(crate) enum Answer {
    /// Pages in order; none at the end of the file.
    Pages(Vec<Lent>),
    /// A size in bytes.
    Size(u64),
    /// What there is to know.
    Stat(Stat),
    /// It is done.
    Done,
}

/// Commands that may wait for the task. Each may be a page.
const WAITING_MAX: usize = 8;

/// A handle's half: where its commands go and its answers come from.
pub(crate) struct Line {
    /// There until the file is closed.
    pub(crate) commands: Option<Sender<Command>>,
    pub(crate) answers: Receiver<Result<Answer>>,
    /// Whether a write has failed that has not been reported.
    pub(crate) failed: Arc<AtomicBool>,
    pub(crate) page_bytes: u64,
}

/// Starts the task of an open file.
pub(crate) fn start(node: &Rc<Node>, name: &str, file: PagedFile<RealMachine>) -> Line {
    let (commands, taken) = flume::bounded(WAITING_MAX);
    let (tell, answers) = flume::bounded(1);
    let failed = Arc::new(AtomicBool::new(false));
    let page_bytes = file.page_bytes();
    let task = Task {
        node: node.clone(),
        name: name.to_owned(),
        file,
        lending: Lending::default(),
        knows_end: false,
        failure: None,
        failed: failed.clone(),
    };
    node.machine.spawn("file", async move {
        task.serve(taken, tell).await;
        Ok(())
    });
    Line { commands: Some(commands), answers, failed, page_bytes }
}

struct Task {
    node: Rc<Node>,
    name: String,
    file: PagedFile<RealMachine>,
    lending: Lending,
    /// Whether the end of the file is where this client thinks, unless somebody else is appending just now.
    knows_end: bool,
    /// The first failed write since the last report.
    failure: Option<Error>,
    failed: Arc<AtomicBool>,
}

impl Task {
    async fn serve(mut self, commands: Receiver<Command>, tell: Sender<Result<Answer>>) {
        while let Ok(command) = commands.recv_async().await {
            if let Some(answer) = self.carry_out(command).await {
                // A handle that is gone wants no answer.
                let _ = tell.send(answer);
            }
        }
        let _ = tell.send(self.close().await);
    }

    /// The handle is closed.
    async fn close(self) -> Result<Answer> {
        let Task { node, name, file, failure, .. } = self;
        let closed = node.told(&name, file.close().await);
        failure.map_or(closed, Err).map(|()| Answer::Done)
    }

    async fn carry_out(&mut self, command: Command) -> Option<Result<Answer>> {
        self.lending.take_back();
        match command {
            Command::Read { offset, wanted, pages } => {
                let read = self.read(offset, wanted, pages).await;
                Some(self.told(read).map(Answer::Pages))
            }
            Command::Write { offset, bytes } => {
                let written = self.file.write(offset, Payload::from(bytes)).await;
                self.note(written);
                None
            }
            Command::Append(bytes) => {
                let appended = self.append(Payload::from(bytes)).await;
                self.note(appended);
                Some(Ok(Answer::Size(self.file.bytes())))
            }
            Command::Check => Some(self.take_failure().map(|()| Answer::Done)),
            Command::Size => Some(Ok(Answer::Size(self.file.bytes()))),
            Command::Stat => {
                let stat = self.stat().await;
                Some(self.told(stat).map(Answer::Stat))
            }
            Command::SetLen(bytes) => {
                let cut = self.file.truncate(bytes).await;
                Some(self.told(cut).map(|()| Answer::Done))
            }
            Command::Flush => {
                let flushed = self.file.flush().await;
                self.note(flushed);
                self.knows_end = false;
                Some(self.take_failure().map(|()| Answer::Done))
            }
            Command::Advise(advice) => {
                self.file.advise(advice);
                Some(Ok(Answer::Done))
            }
        }
    }

    /// Writes at the end. Others may have appended since all of this client's was with the agents last: then the size is
    /// asked for anew, as late as that can be.
    async fn append(&mut self, bytes: Payload) -> fs::Result<()> {
        if !self.knows_end {
            self.file.refresh().await?;
        }
        self.knows_end = self.node.settings.write_behind;
        self.file.write(self.file.bytes(), bytes).await
    }

    async fn read(&mut self, offset: u64, wanted: u64, pages: usize) -> fs::Result<Vec<Lent>> {
        let (page_bytes, mut at, mut lent) = (self.file.page_bytes(), offset, Vec::new());
        // A fixed window, or none, says how many pages are under way, whatever is wanted.
        let is_adaptive = self.node.settings.prefetch == Prefetch::Adaptive;
        let end = if is_adaptive { offset.saturating_add(wanted) } else { offset };
        while lent.is_empty() || (lent.len() < pages && self.file.is_ready(at)) {
            let rest_of_page = page_bytes - at % page_bytes;
            let payload = self.file.read_some(at, rest_of_page.max(end.saturating_sub(at))).await?;
            if payload.is_empty() {
                break;
            }
            at += payload.len();
            lent.push(self.lending.lend(payload));
            // A page that ends early is the last.
            if at % page_bytes != 0 {
                break;
            }
        }
        Ok(lent)
    }

    async fn stat(&self) -> fs::Result<Stat> {
        let bytes = self.file.refresh().await?;
        Ok(Stat::of(bytes, self.file.striping()))
    }

    fn told<T>(&self, outcome: fs::Result<T>) -> Result<T> {
        self.node.told(&self.name, outcome)
    }

    /// Keeps the failure of a write until it can be reported.
    fn note(&mut self, outcome: fs::Result<()>) {
        if let Err(error) = self.told(outcome) {
            self.failure.get_or_insert(error);
            self.failed.store(true, Ordering::Release);
        }
    }

    fn take_failure(&mut self) -> Result<()> {
        self.failed.store(false, Ordering::Release);
        self.failure.take().map_or(Ok(()), Err)
    }
}
