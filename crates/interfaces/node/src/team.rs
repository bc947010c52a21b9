//! Teams: processes that meet at an agent, and read and write files together.

use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use fs::{SelectedSettings, TeamStep, TeamTurn};
use layout::Selection;
use machine::{LentMemory, Loan, Memory, OperationInFlight};
use real::RealMachine;

use crate::error::{Error, ErrorKind, Result};
use crate::handle::Handle;
use crate::open_file::OpenFile;
use crate::pending::Pending;
use crate::reach::reach_each_other;
use crate::session::Session;
use crate::thread::{Node, NodeThread, undisturbed};

/// Processes that do things together, from any thread. Cloning gives another handle on the same; with the last of them
/// the process leaves the team.
///
/// All members call the same things in the same order. Calls are carried out one after the other: each takes its place
/// in that order when it is made, before it returns its [`Pending`]. What fails for one member fails for all. When one
/// of them is gone, or has left, everything that is called afterwards fails; nobody waits for it.
#[derive(Clone)]
pub struct Team(Arc<Shared>);

struct Shared {
    name: Arc<str>,
    rank: u32,
    size: u32,
    /// The number of the team on the node thread.
    number: u64,
    /// How many calls there have been.
    calls: AtomicU32,
    /// Whether the members are connected to each other. It changes at turns, and is the same for all of them at each.
    is_connected: Arc<AtomicBool>,
    node: Arc<NodeThread>,
}

impl Session {
    /// Makes this process member `rank` of a team of `size`, from 0. Waits until all members have called this with the
    /// same name: one that a file could have, and that is nobody else's until then. The members may be on several
    /// hosts; they have to know the same agents. A team of one asks nobody.
    ///
    /// # Errors
    /// If there is no such rank, or two members come as the same one or with different sizes; or if a member that has
    /// come is gone before all have.
    pub fn team(&self, name: &str, rank: u32, size: u32) -> Result<Team> {
        let (node, owned) = (self.node_thread().clone(), name.to_owned());
        let number = node.call(name, move |node| async move {
            let formed = fs::TeamMembership::form(&node.client.connection.client, &owned, rank, size).await;
            Ok(node.teams.enter(node.client.explained(&owned, formed)?))
        })?;
        let (name, calls, is_connected) = (name.into(), AtomicU32::new(0), AtomicBool::new(size == 1).into());
        Ok(Team(Arc::new(Shared { name, rank, size, number, calls, is_connected, node })))
    }
}

impl Team {
    /// Which of the members this process is, from 0.
    pub fn rank(&self) -> u32 {
        self.0.rank
    }

    /// How many members there are.
    pub fn size(&self) -> u32 {
        self.0.size
    }

    /// Waits until all members have called this.
    pub fn meet(&self) -> Pending<()> {
        self.begin(&self.0.name, TeamStep::Meet, async |node, name, turn| {
            node.client.explained(&name, turn.gather(Ok(0)).await).map(drop)
        })
    }

    /// Waits until all members have called this; what each has brought, by rank.
    pub fn gather(&self, value: u64) -> Pending<Vec<u64>> {
        self.begin(&self.0.name, TeamStep::Meet, async move |node, name, turn| {
            node.client.explained(&name, turn.gather(Ok(value)).await)
        })
    }

    /// Reads what this member has selected of a file of the namespace, together with the other members and what they
    /// have selected of it: nothing, or the same, or anything else. The bytes come one right after the other in the
    /// order of the file; if it ends before the last of them, those that there are. Holes are zeros.
    ///
    /// What any member has written through its session before is in the file.
    ///
    /// # Errors
    /// If the file is not open for reading, or not all of it can be read.
    pub fn read(&self, file: &Handle, selection: Selection, how: SelectedSettings) -> Pending<Vec<u8>> {
        self.begin_reading(file, how, async move |file, turn| {
            file.read_selected(Some(turn), &selection, how).await
        })
    }

    /// Does what [`read`](Self::read) does, into memory that is lent until this is done, as long as what is selected.
    /// How many bytes there are; what is behind them does not change.
    pub fn read_into(
        &self,
        file: &Handle,
        selection: Selection,
        memory: LentMemory,
        how: SelectedSettings,
    ) -> Pending<u64> {
        self.begin_reading(file, how, async move |file, turn| {
            // As far as is known: others may have made it longer.
            let sure = selection.bytes_before(file.known_bytes());
            let loan = Loan::of(memory, sure);
            let read = file.read_selected_into(Some(turn), &selection, &loan, how).await?;
            loan.settle(read);
            Ok(read)
        })
    }

    fn begin_reading<T, F>(&self, file: &Handle, how: SelectedSettings, read: F) -> Pending<T>
    where
        T: Send + 'static,
        F: AsyncFnOnce(Rc<OpenFile>, &TeamTurn<'_, RealMachine>) -> Result<T> + Send + 'static,
    {
        let opened = self.usable(file, file.options().reads(), "it is not open for reading");
        self.begin_moving(
            file.shared_name(),
            TeamStep::read(how.method),
            opened,
            async move |node, file, turn| {
                let (file, _call) = joined(&turn, file).await?;
                joined(&turn, node.take_in_writes().await).await?;
                read(file, &turn).await
            },
        )
    }

    /// Writes what this member has selected of a file of the namespace, together with the other members: `bytes` are as
    /// many as are selected, in the order of the file. Of what nobody has selected nothing changes; of what several
    /// have, each byte is then some member's. The file is as long then as the last selected byte of any member wants
    /// it.
    ///
    /// When this is done, the data of all members are at the disks, and the members' page caches and the namespace
    /// know.
    ///
    /// # Errors
    /// If the file is not open for writing, there are not as many bytes as are selected, there is no room, or an agent
    /// cannot do it.
    pub fn write(
        &self,
        file: &Handle,
        selection: Selection,
        bytes: Vec<u8>,
        how: SelectedSettings,
    ) -> Pending<()> {
        self.begin_writing(file, how, async move |file, turn| {
            file.write_selected(Some(turn), &selection, &Memory::real(bytes), how).await
        })
    }

    /// Does what [`write`](Self::write) does, from memory that is lent until this is done.
    pub fn write_from(
        &self,
        file: &Handle,
        selection: Selection,
        memory: LentMemory,
        how: SelectedSettings,
    ) -> Pending<()> {
        self.begin_writing(file, how, async move |file, turn| {
            file.write_selected(Some(turn), &selection, &Loan::of(memory, 0), how).await
        })
    }

    fn begin_writing<F>(&self, file: &Handle, how: SelectedSettings, write: F) -> Pending<()>
    where
        F: AsyncFnOnce(Rc<OpenFile>, &TeamTurn<'_, RealMachine>) -> Result<()> + Send + 'static,
    {
        let opened = self.usable(file, file.options().writes(), "it is not open for writing");
        self.begin_moving(
            file.shared_name(),
            TeamStep::write(how.method),
            opened,
            async move |node, file, turn| {
                let (file, _call) = joined(&turn, file).await?;
                joined(&turn, node.take_in_writes().await).await?;
                write(file, &turn).await
            },
        )
    }

    /// Waits until everything that the members have written to a file of the namespace is on the disks: of each member
    /// what it has written through its session before. Each then reads what the others have written.
    ///
    /// # Errors
    /// The first failure of any member's writes that was not told, or if an agent cannot do it.
    pub fn sync(&self, file: &Handle) -> Pending<()> {
        let opened = self.number_of(file);
        self.begin_on(file.shared_name(), TeamStep::Sync, opened, async move |node, file, turn| {
            let (file, _call) = joined(&turn, file).await?;
            joined(&turn, node.take_in_writes().await).await?;
            file.sync_together(&turn).await
        })
    }

    /// Leaves the team, before this is dropped: what the members do together from now on fails, and what is under way
    /// and has not brought all of them together.
    pub fn leave(&self) -> Pending<()> {
        let number = self.0.number;
        self.0.node.begin(&self.0.name, move |node| async move {
            let team = node.teams.get(number);
            node.client.explained("leaving a team", team.leave().await)
        })
    }

    /// The number of a file that this team may use so.
    fn usable(&self, file: &Handle, is_open_for_it: bool, why_not: &str) -> Result<u64> {
        if !is_open_for_it {
            return Err(Error::new(ErrorKind::BadMode, file.name(), why_not));
        }
        self.number_of(file)
    }

    /// The number of a file, if it is open in the session of this team.
    fn number_of(&self, file: &Handle) -> Result<u64> {
        file.number_on(&self.0.node).ok_or_else(|| {
            let why = format!("it is open in another session than the team {}", self.0.name);
            Error::new(ErrorKind::Invalid, file.name(), why)
        })
    }

    /// Begins the next thing that the members do together; `what` names it in errors.
    fn begin<T, F>(&self, what: &Arc<str>, step: TeamStep, job: F) -> Pending<T>
    where
        T: Send + 'static,
        F: AsyncFnOnce(Rc<Node>, Arc<str>, TeamTurn<'_, RealMachine>) -> Result<T> + Send + 'static,
    {
        self.begin_with(what, step, |_, name| name.clone(), job)
    }

    /// The same with an open file, if it is one. It is not closed before that has been done.
    fn begin_on<T, F>(&self, name: &Arc<str>, step: TeamStep, file: Result<u64>, job: F) -> Pending<T>
    where
        T: Send + 'static,
        F: AsyncFnOnce(Rc<Node>, Result<FileInCall>, TeamTurn<'_, RealMachine>) -> Result<T> + Send + 'static,
    {
        let prepare =
            |node: &Node, name: &Arc<str>| file.and_then(|number| node.files.begin_call(number, name));
        self.begin_with(name, step, prepare, job)
    }

    /// Begins the next thing that the members do together, with what this member prepares before its turn comes.
    fn begin_with<T, P, F>(
        &self,
        what: &Arc<str>,
        step: TeamStep,
        prepare: impl FnOnce(&Node, &Arc<str>) -> P + Send + 'static,
        job: F,
    ) -> Pending<T>
    where
        T: Send + 'static,
        P: 'static,
        F: AsyncFnOnce(Rc<Node>, P, TeamTurn<'_, RealMachine>) -> Result<T> + Send + 'static,
    {
        let (number, named) = (self.0.number, what.clone());
        let call = self.0.calls.fetch_add(1, Ordering::Relaxed);
        self.0.node.begin(what, move |node| async move {
            let (team, prepared) = (node.teams.get(number), prepare(&node, &named));
            let turn = team.turn(call, step).await;
            job(node, prepared, turn).await
        })
    }

    /// The same of moving data of a file. Members that exchange data take a turn before, in which they connect to each
    /// other unless they are connected.
    fn begin_moving<T, F>(&self, name: &Arc<str>, step: TeamStep, file: Result<u64>, job: F) -> Pending<T>
    where
        T: Send + 'static,
        F: AsyncFnOnce(Rc<Node>, Result<FileInCall>, TeamTurn<'_, RealMachine>) -> Result<T> + Send + 'static,
    {
        let exchanges = matches!(step, TeamStep::Move { in_two_phases: true, .. });
        let connecting = exchanges.then(|| {
            let is_connected = self.0.is_connected.clone();
            self.begin(&self.0.name, step, async move |node, name, turn| {
                if !is_connected.load(Ordering::Relaxed) {
                    node.client.explained(&name, reach_each_other(&node.client, &turn).await)?;
                    is_connected.store(true, Ordering::Relaxed);
                }
                Ok(())
            })
        });
        self.begin_on(name, step, file, async move |node, file, turn| {
            let connected = match connecting {
                Some(connecting) => connecting.await,
                None => Ok(()),
            };
            joined(&turn, connected).await?;
            job(node, file, turn).await
        })
    }
}

/// An open file, and what keeps it open.
type FileInCall = (Rc<OpenFile>, OperationInFlight);

/// What this member needs for a turn, if it has it. Otherwise the others are told that it has not.
async fn joined<T>(turn: &TeamTurn<'_, RealMachine>, needed: Result<T>) -> Result<T> {
    if let Err(error) = &needed {
        turn.refuse(&fs::Error::Invalid(error.to_string())).await;
    }
    needed
}

impl Drop for Shared {
    fn drop(&mut self) {
        let number = self.number;
        undisturbed(|| {
            // Nobody waits for it: who is left finds out at the next call.
            drop(self.node.begin(&self.name, move |node| async move {
                let Some(team) = node.teams.remove(number) else { return Ok(()) };
                node.client.explained("leaving a team", team.leave().await)
            }));
        });
    }
}

impl fmt::Debug for Team {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shared { name, rank, size, .. } = &*self.0;
        f.debug_struct("Team")
            .field("name", name)
            .field("rank", rank)
            .field("size", size)
            .finish_non_exhaustive()
    }
}
