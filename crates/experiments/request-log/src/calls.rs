//! Calls that are more than a request for one range: selections in closed form, and collective calls.
//!
//! A log of MPI programs contains such calls (format 2) and is replayed call by call. An *opening* is a collective open
//! of a file. Its processes number their collective calls from 0, so the calls of an opening that have the same number
//! are one collective call.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;

use layout::{Operation, Selection, SelectionError};

use crate::error::{Error, Place};
use crate::file_names::FileNames;
use crate::request::{Action, OFFSET_MAX, Request};

/// A call that is not a request for a single range of bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedCall {
    /// Index of the file among those of the log.
    pub file: u32,
    /// Operation, and selection of the transferred bytes; `None` if the call flushes written data to the disks.
    pub moves: Option<(Operation, Selection)>,
    /// Opening and number of a collective call; `None` if a single process made the call.
    pub together: Option<CommonTurn>,
    /// Method of the recorded call, if known.
    pub method: Option<CallMethod>,
}

/// Identity of a collective call within the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CommonTurn {
    /// Index of the opening among those of the log.
    pub opening: u32,
    /// Number of the call among the collective calls of the opening, from 0.
    pub number: u64,
}

/// A collective open: its processes, and the layout of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedOpening {
    /// Name of the opening in the log.
    pub name: String,
    /// Index of the file.
    pub file: u32,
    /// Block size of the file in bytes.
    pub block_bytes: u64,
    /// Number of disks over which the file was striped.
    pub stripes: u32,
    /// Members in the order of their ranks, as indexes among the nodes of the log. Empty if the log lacks some members.
    /// The log then contains none of their collective calls.
    pub members: Vec<usize>,
}

/// Method of a collective call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CallMethod {
    /// Each process accessed the file independently.
    Independent,
    /// The I/O nodes directed the transfer.
    DiskDirected,
    /// The processes first exchanged data with each other.
    TwoPhase,
    /// The processes wrote into their memory, and flushed it collectively.
    WriteCached,
}

impl CallMethod {
    /// All methods.
    pub const ALL: [CallMethod; 4] =
        [CallMethod::Independent, CallMethod::DiskDirected, CallMethod::TwoPhase, CallMethod::WriteCached];

    /// Returns the name of the method.
    pub fn name(self) -> &'static str {
        match self {
            CallMethod::Independent => "independent",
            CallMethod::DiskDirected => "disk-directed",
            CallMethod::TwoPhase => "two-phase",
            CallMethod::WriteCached => "write-cached",
        }
    }

    /// Returns the method of this name.
    pub fn named(name: &str) -> Option<CallMethod> {
        CallMethod::ALL.into_iter().find(|method| method.name() == name)
    }
}

impl fmt::Display for CallMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An opening, as one of its members recorded it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpeningToWrite<'a> {
    /// Name of the opening, which is unique.
    pub name: &'a str,
    /// Rank of the member, from 0.
    pub rank: u32,
    /// Number of members.
    pub size: u32,
    /// Block size of the file in bytes.
    pub block_bytes: u64,
    /// Number of disks over which the file is striped.
    pub stripes: u32,
}

/// Files, calls and openings in the part of a log that was read so far.
pub(crate) struct LogTables {
    pub(crate) files: FileNames,
    calls: Vec<LoggedCall>,
    openings: Vec<PartOpening>,
    by_name: BTreeMap<String, u32>,
    /// Number of processes, if the log states it.
    processes: Option<u32>,
    /// Number of selection nodes that may still be read. The next field is the number of members of openings that may
    /// still be read.
    nodes_left: u64,
    members_left: u64,
    nodes_max: u64,
    /// Number of inputs that ended in the middle of a line.
    torn: u64,
}

/// An opening, of which some members may not have been read yet.
struct PartOpening {
    name: String,
    file: u32,
    size: u32,
    block_bytes: u64,
    stripes: u32,
    /// Numbers of the members' nodes, by rank.
    members: BTreeMap<u32, u32>,
    nodes: BTreeSet<u32>,
}

impl LogTables {
    /// Creates empty tables, with limits on the numbers of files, of nodes of selections, and of members of openings.
    pub(crate) fn new(files: u32, selection_nodes: u64, members: u64) -> Self {
        LogTables {
            files: FileNames::new(files),
            calls: Vec::new(),
            openings: Vec::new(),
            by_name: BTreeMap::new(),
            processes: None,
            nodes_left: selection_nodes,
            members_left: members,
            nodes_max: selection_nodes,
            torn: 0,
        }
    }

    /// Records that an input ends in the middle of a line.
    pub(crate) fn note_torn(&mut self) {
        self.torn += 1;
    }

    /// Records the number of processes that the log states at `place`. Fails if a previous log stated another number.
    pub(crate) fn note_processes(&mut self, processes: u32, place: Place) -> Result<(), Error> {
        let known = *self.processes.get_or_insert(processes);
        if known == processes {
            return Ok(());
        }
        let why = format!(
            "this log is of a run with {processes} processes, and the logs before it are of one with {known}"
        );
        // A later run with more processes would have overwritten all logs of the earlier run.
        let (fewer, last) = (processes.min(known), processes.min(known).saturating_sub(1));
        Err(Error::new(place, why).remedy(format!(
            "Name the logs of a single run. If all have the same name, 0 to {last} belong to the later run, \
             with {fewer} processes; higher numbers are from an earlier run."
        )))
    }

    /// Adds a member to an opening, as the node recorded it.
    pub(crate) fn note_opening(
        &mut self,
        node: u32,
        file: u32,
        opening: OpeningToWrite<'_>,
    ) -> Result<(), String> {
        let OpeningToWrite { name, rank, size, block_bytes, stripes } = opening;
        if rank >= size {
            return Err(format!("rank {rank} of {size} processes"));
        }
        if block_bytes == 0 || stripes == 0 {
            return Err("expected blocks of at least one byte, on at least one disk".to_owned());
        }
        self.members_left = self.members_left.checked_sub(1).ok_or("files are opened too often")?;
        let next = self.openings.len() as u32;
        let index = *self.by_name.entry(name.to_owned()).or_insert(next);
        if index == next {
            let (name, members, nodes) = (name.to_owned(), BTreeMap::new(), BTreeSet::new());
            self.openings.push(PartOpening { name, file, size, block_bytes, stripes, members, nodes });
        }
        let opening = &mut self.openings[index as usize];
        if (opening.file, opening.size) != (file, size) {
            let (name, other) = (&opening.name, &self.files.all()[opening.file as usize]);
            return Err(format!(
                "opening {name} is recorded elsewhere as one of {other:?} by {} processes",
                opening.size
            ));
        }
        if let Some(other) = opening.members.insert(rank, node) {
            return Err(format!("rank {rank} of opening {name} already belongs to node {other}"));
        }
        match opening.nodes.insert(node) {
            true => Ok(()),
            false => Err(format!("node {node} already has another rank of opening {name}")),
        }
    }

    /// Returns the index of the opening of this name. Fails unless the node is a member and the opening is of this
    /// file.
    pub(crate) fn opening(&self, name: &str, node: u32, file: u32) -> Result<u32, String> {
        let index = self.by_name.get(name).copied();
        let opening = index.map(|index| &self.openings[index as usize]);
        match opening {
            Some(opening) if opening.file == file && opening.nodes.contains(&node) => {
                Ok(index.unwrap_or_default())
            }
            Some(_) => Err(format!("node {node} has no opening {name} of this file")),
            None => Err(format!("no earlier line defines the opening {name}")),
        }
    }

    /// Adds a call and returns the action that refers to it.
    pub(crate) fn push(&mut self, call: LoggedCall) -> Result<Action, String> {
        if let Some((_, selection)) = &call.moves {
            self.take_room(selection)?;
        }
        self.calls.push(call);
        Ok(Action::Call(self.calls.len() as u32 - 1))
    }

    fn take_room(&mut self, selection: &Selection) -> Result<(), String> {
        if selection.end() > OFFSET_MAX {
            let end = selection.end();
            return Err(format!("it ends at byte {end}, beyond the limit of a file, {OFFSET_MAX} (256 TiB)"));
        }
        let left = self.nodes_left.checked_sub(selection.nodes());
        let most = self.nodes_max;
        self.nodes_left =
            left.ok_or_else(|| format!("selections have more than {most} runs, repetitions and lists"))?;
        Ok(())
    }

    /// If the last call continues an earlier call of the same node, merges the two and returns true. A selection that
    /// is too long for one line continues on the next line.
    pub(crate) fn joins(&mut self, before: Option<&Request>, request: &Request) -> Result<bool, String> {
        let (Some(Action::Call(before)), Action::Call(last)) =
            (before.map(|before| before.action), request.action)
        else {
            return Ok(false);
        };
        let (one, other) = (&self.calls[before as usize], &self.calls[last as usize]);
        if one.together.is_none() || one.together != other.together {
            return Ok(false);
        }
        let (Some((kind, first)), Some((other_kind, second))) = (&one.moves, &other.moves) else {
            return Err("this call is recorded twice".to_owned());
        };
        if kind != other_kind {
            return Err("a call cannot both read and write".to_owned());
        }
        let joined = Selection::joined(&[(0, first.clone()), (0, second.clone())]);
        let joined = joined.map_err(|error: SelectionError| format!("a continued call: {error}"))?;
        self.calls[before as usize].moves = Some((*kind, joined));
        self.calls.pop();
        Ok(true)
    }

    /// Removes collective calls that some members of the opening did not make, and returns all others.
    pub(crate) fn finish(self, nodes: &mut BTreeMap<u32, Vec<Request>>) -> Result<LoggedCalls, Error> {
        let LogTables { calls, openings, processes, torn, .. } = self;
        let calls_made = collective_calls(nodes, &calls)?;
        let is_whole = |turn: &CommonTurn| calls_made[turn].count == openings[turn.opening as usize].size;
        let mut left_out = 0;
        for requests in nodes.values_mut() {
            let before = requests.len();
            requests.retain(|request| turn_of(&calls, request).is_none_or(|turn| is_whole(&turn)));
            left_out += (before - requests.len()) as u64;
        }
        nodes.retain(|_, requests| !requests.is_empty());
        let indices: BTreeMap<u32, usize> = nodes.keys().copied().zip(0..).collect();
        let openings = openings.into_iter().map(|opening| opening.finish(&indices)).collect();
        Ok(LoggedCalls { calls, openings, processes, left_out, torn })
    }
}

/// Contents of a log of format 2 in addition to its requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoggedCalls {
    /// Calls; a request holds the index of its call.
    pub calls: Vec<LoggedCall>,
    /// Openings; a call holds the index of its opening.
    pub openings: Vec<LoggedOpening>,
    /// Number of recorded processes, even if the log lacks some of them.
    pub processes: Option<u32>,
    /// Number of omitted collective calls, because the log lacks the same call of other members.
    pub left_out: u64,
    /// Number of omitted last lines that have no newline, because a process was stopped while it wrote them.
    pub torn: u64,
}

impl LoggedCalls {
    /// Returns the number of pieces that all calls transfer.
    pub fn pieces(&self) -> u64 {
        let selections = self.calls.iter().filter_map(|call| call.moves.as_ref());
        selections.map(|(_, selection)| selection.runs()).fold(0, u64::saturating_add)
    }
}

impl PartOpening {
    fn finish(self, indices: &BTreeMap<u32, usize>) -> LoggedOpening {
        let PartOpening { name, file, size, block_bytes, stripes, members, .. } = self;
        let found: Option<Vec<usize>> = members.values().map(|node| indices.get(node).copied()).collect();
        let members = found.filter(|members| members.len() == size as usize).unwrap_or_default();
        LoggedOpening { name, file, block_bytes, stripes, members }
    }
}

/// A collective call: its operation, and the number of members that made it.
struct CommonCall {
    kind: Option<Operation>,
    count: u32,
}

fn turn_of(calls: &[LoggedCall], request: &Request) -> Option<CommonTurn> {
    match request.action {
        Action::Call(call) => calls[call as usize].together,
        _ => None,
    }
}

/// Returns the collective calls, with the numbers of members that made them. Fails if members recorded different
/// operations.
fn collective_calls(
    nodes: &BTreeMap<u32, Vec<Request>>,
    calls: &[LoggedCall],
) -> Result<BTreeMap<CommonTurn, CommonCall>, Error> {
    let mut common_calls: BTreeMap<CommonTurn, CommonCall> = BTreeMap::new();
    for (node, requests) in nodes {
        for request in requests {
            let Action::Call(call) = request.action else { continue };
            let LoggedCall { moves, together: Some(turn), .. } = &calls[call as usize] else { continue };
            let kind = moves.as_ref().map(|(kind, _)| *kind);
            let common = common_calls.entry(*turn).or_insert(CommonCall { kind, count: 0 });
            if common.kind != kind {
                let number = turn.number;
                let why = format!("call {number} of an opening differs between node {node} and others");
                return Err(Error::new(Place::Log, why));
            }
            common.count += 1;
        }
    }
    Ok(common_calls)
}

/// Fails if nodes would wait for each other forever in a replay.
pub(crate) fn check_order(nodes: &[&[Request]], logged: &LoggedCalls) -> Result<(), Error> {
    let LoggedCalls { calls, openings, .. } = logged;
    let mut at = vec![0; nodes.len()];
    let mut waiting: BTreeMap<CommonTurn, usize> = BTreeMap::new();
    let mut at_sync = Vec::new();
    let mut running: VecDeque<usize> = (0..nodes.len()).collect();
    loop {
        while let Some(node) = running.pop_front() {
            let rest = nodes[node][at[node]..].iter();
            let next = rest.enumerate().find_map(|(passed, request)| match request.action {
                Action::Sync => Some((passed, None)),
                _ => turn_of(calls, request).map(|turn| (passed, Some(turn))),
            });
            let Some((passed, turn)) = next else {
                at[node] = nodes[node].len();
                continue;
            };
            at[node] += passed;
            let Some(turn) = turn else {
                at_sync.push(node);
                continue;
            };
            let members = &openings[turn.opening as usize].members;
            let come = waiting.entry(turn).or_default();
            *come += 1;
            if *come == members.len() {
                waiting.remove(&turn);
                members.iter().for_each(|&member| at[member] += 1);
                running.extend(members);
            }
        }
        if let Some((turn, _)) = waiting.iter().next() {
            let name = &openings[turn.opening as usize].name;
            let why = format!(
                "nodes would wait for each other forever: some wait for others to make call {} of opening \
                 {name}",
                turn.number
            );
            return Err(Error::new(Place::Log, why)
                .remedy("All members must make collective calls in the same order."));
        }
        if at_sync.is_empty() {
            return Ok(());
        }
        for node in at_sync.drain(..) {
            at[node] += 1;
            running.push_back(node);
        }
    }
}
