//! Teams: processes that synchronise at an agent, and read and write files collectively.

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
use crate::session::Session;
use crate::team_connect::reach_each_other;
use crate::thread::{Node, NodeThread, undisturbed};

/// Processes that act collectively, from any thread. Clones share the membership; the process leaves the team when the
/// last clone is dropped.
///
/// All members make the same calls in the same order. Calls are carried out one after another, in the order in which
/// they are made: a call gets its place before it returns its [`Pending`]. A call that fails for one member fails for
/// all. When a member disconnects or leaves, all later calls fail without waiting for it.
#[derive(Clone)]
pub struct Team(Arc<Shared>);

struct Shared {
    name: Arc<str>,
    rank: u32,
    size: u32,
    /// Number of the team on the node thread.
    number: u64,
    /// Number of calls so far.
    calls: AtomicU32,
    /// True if the members are connected to each other. It changes only in collective calls, and is the same for all
    /// members in each of them.
    is_connected: Arc<AtomicBool>,
    node: Arc<NodeThread>,
}

impl Session {
    /// Makes this process member `rank` (from 0) of a team of `size`. Blocks until all members have called this with
    /// the same name. The name must be a valid file name that no other team uses at that time. The members may be on
    /// several hosts; they must know the same agents. A team of one sends no request.
    ///
    /// # Errors
    /// If the rank is invalid, or two members use the same rank or different sizes; or if a member disconnects before
    /// all have joined.
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
    /// Returns the rank of this process, from 0.
    pub fn rank(&self) -> u32 {
        self.0.rank
    }

    /// Returns the number of members.
    pub fn size(&self) -> u32 {
        self.0.size
    }

    /// Enters a barrier: the call completes when all members have made it.
    pub fn barrier(&self) -> Pending<()> {
        self.begin(&self.0.name, TeamStep::Barrier, async |node, name, turn| {
            node.client.explained(&name, turn.gather(Ok(0)).await).map(drop)
        })
    }

    /// Enters a barrier with a value. Returns the values of all members, by rank.
    pub fn gather(&self, value: u64) -> Pending<Vec<u64>> {
        self.begin(&self.0.name, TeamStep::Barrier, async move |node, name, turn| {
            node.client.explained(&name, turn.gather(Ok(value)).await)
        })
    }

    /// Reads this member's selection of a file of the namespace, together with the selections of the other members,
    /// which may be empty, equal or different. Returns the selected bytes in the order of the file without gaps, and
    /// fewer if the file ends before the last of them. Holes are zeros.
    ///
    /// The read sees earlier writes of all members through their sessions.
    ///
    /// # Errors
    /// If the file is not open for reading, or a part of the selection cannot be read.
    pub fn read(&self, file: &Handle, selection: Selection, how: SelectedSettings) -> Pending<Vec<u8>> {
        self.begin_reading(file, how, async move |file, turn| {
            file.read_selected(Some(turn), &selection, how).await
        })
    }

    /// Reads like [`read`](Self::read), into memory that is lent until completion and is as long as the selection.
    /// Returns the number of bytes before the end of the file; the rest of the memory is unchanged.
    pub fn read_into(
        &self,
        file: &Handle,
        selection: Selection,
        memory: LentMemory,
        how: SelectedSettings,
    ) -> Pending<u64> {
        self.begin_reading(file, how, async move |file, turn| {
            // The known size is a lower bound, because other clients may have extended the file.
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
        let opened = self.usable(file, file.options().reads(), "the file is not open for reading");
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

    /// Writes this member's selection of a file of the namespace, together with the other members. `bytes` has the
    /// selected number of bytes, in the order of the file. Bytes that no member selected are unchanged. A byte that
    /// several members selected gets the value of one of them. The file ends at least at the last selected byte of any
    /// member.
    ///
    /// On completion, the agents have the data of all members, and the members' page caches and the namespace reflect
    /// the write.
    ///
    /// # Errors
    /// If the file is not open for writing, the number of bytes differs from the selection's, a disk is full, or an
    /// agent fails.
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

    /// Writes like [`write`](Self::write), from memory lent until completion.
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
        let opened = self.usable(file, file.options().writes(), "the file is not open for writing");
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

    /// Flushes all earlier writes of the members, through their sessions, to a file of the namespace, to stable
    /// storage. Afterwards each member reads the data of the others.
    ///
    /// # Errors
    /// The first unreported failure of any member's writes, or the failure of an agent.
    pub fn sync(&self, file: &Handle) -> Pending<()> {
        let opened = self.number_of(file);
        self.begin_on(file.shared_name(), TeamStep::Sync, opened, async move |node, file, turn| {
            let (file, _call) = joined(&turn, file).await?;
            joined(&turn, node.take_in_writes().await).await?;
            file.sync_together(&turn).await
        })
    }

    /// Leaves the team without waiting for the drop. Later collective calls of the members fail, and so do calls in
    /// flight for which not all members have arrived.
    pub fn leave(&self) -> Pending<()> {
        let number = self.0.number;
        self.0.node.begin(&self.0.name, move |node| async move {
            let team = node.teams.get(number);
            node.client.explained("cannot leave the team", team.leave().await)
        })
    }

    /// Returns the number of a file that this team may use in this way.
    fn usable(&self, file: &Handle, is_open_for_it: bool, why_not: &str) -> Result<u64> {
        if !is_open_for_it {
            return Err(Error::new(ErrorKind::BadMode, file.name(), why_not));
        }
        self.number_of(file)
    }

    /// Returns the number of a file, if it is open in the session of this team.
    fn number_of(&self, file: &Handle) -> Result<u64> {
        file.number_on(&self.0.node).ok_or_else(|| {
            let why = format!("the file is open in another session than that of the team {}", self.0.name);
            Error::new(ErrorKind::Invalid, file.name(), why)
        })
    }

    /// Begins the next collective call. Errors contain its name.
    fn begin<T, F>(&self, what: &Arc<str>, step: TeamStep, job: F) -> Pending<T>
    where
        T: Send + 'static,
        F: AsyncFnOnce(Rc<Node>, Arc<str>, TeamTurn<'_, RealMachine>) -> Result<T> + Send + 'static,
    {
        self.begin_with(what, step, |_, name| name.clone(), job)
    }

    /// Begins a collective call on an open file, which is not closed before the call has ended. If `file` is an error,
    /// the call fails.
    fn begin_on<T, F>(&self, name: &Arc<str>, step: TeamStep, file: Result<u64>, job: F) -> Pending<T>
    where
        T: Send + 'static,
        F: AsyncFnOnce(Rc<Node>, Result<FileInCall>, TeamTurn<'_, RealMachine>) -> Result<T> + Send + 'static,
    {
        let prepare =
            |node: &Node, name: &Arc<str>| file.and_then(|number| node.files.begin_call(number, name));
        self.begin_with(name, step, prepare, job)
    }

    /// Begins the next collective call, with a preparation by this member before its slot.
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

    /// Begins a collective transfer of a file's data. Members that exchange data first connect to each other, in a
    /// preceding slot, unless they are connected.
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

/// Open file, and the guard that keeps it open.
type FileInCall = (Rc<OpenFile>, OperationInFlight);

/// Returns `needed`. If it is an error, sends a refusal to the other members.
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
            // Do not wait: the remaining members find out at their next call.
            drop(self.node.begin(&self.name, move |node| async move {
                let Some(team) = node.teams.remove(number) else { return Ok(()) };
                node.client.explained("cannot leave the team", team.leave().await)
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
