//! Compute nodes write several arrays, each to a separate file: the patterns of the ENWRICH report (section 4.1).
//!
//! ```text
//!   wcc      one array                        all nodes write the array
//!   wss      one array, as in wc              all nodes start each round of one record together
//!   wrnncc   two arrays, as in wnn and wcc    each node writes pieces of both arrays in turn
//!   wpnncc   two arrays, as in wnn and wcc    half of the nodes write the first array, half the second
//! ```
//!
//! Nodes send independent requests, or write into a write cache that all nodes share.

use std::fmt;
use std::str::FromStr;

use fs::{File, WriteCache, WriteCacheSettings};
use layout::{Chunk, Extent, LayoutError, Operation, Pattern, Problem, Shape, View};
use machine::{Machine, Memory};

use crate::{Error, FlushTally, Member, Outcome};

/// A job in which the members write arrays.
#[derive(Clone, Debug, PartialEq)]
pub struct ArraysJob {
    /// Names of the files, one for each array.
    pub files: Vec<String>,
    /// Arrays, and the members that write each array.
    pub pattern: ArrayPattern,
    /// Total size of all arrays and size of a record in bytes, number of members, and shape and grid of each array.
    pub problem: Problem,
    /// Settings of the write cache, if the members use one.
    pub write_cache: Option<WriteCacheSettings>,
}

/// The arrays of a job, and the members that write them. A single array can also be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ArrayPattern {
    /// One array.
    One(Pattern),
    /// One array, whose records are distributed cyclically. All members start each round together.
    InRounds,
    /// Two arrays; each member writes pieces of both in turn.
    InTurn(Pattern, Pattern),
    /// Two arrays; the first half of the members writes the first array, the second half the second.
    Apart(Pattern, Pattern),
}

impl ArrayPattern {
    /// Returns the number of arrays.
    pub fn arrays(&self) -> usize {
        match self {
            ArrayPattern::One(_) | ArrayPattern::InRounds => 1,
            ArrayPattern::InTurn(..) | ArrayPattern::Apart(..) => 2,
        }
    }

    /// Returns the operation of the job: read or write.
    pub fn operation(&self) -> Operation {
        self.of_array(0).operation()
    }

    /// True if an array is a matrix. Shape and grid have an effect only then.
    pub fn is_of_matrix(&self) -> bool {
        (0..self.arrays()).any(|array| self.of_array(array).is_of_matrix())
    }

    /// Iterates over the patterns of the STARFISH report, in its order.
    pub fn all() -> impl Iterator<Item = ArrayPattern> {
        Pattern::all().map(ArrayPattern::One)
    }

    /// Returns the pattern of the array with this number, counted from 0.
    ///
    /// # Panics
    /// If there is no array of this number.
    pub fn of_array(&self, array: usize) -> Pattern {
        match *self {
            ArrayPattern::InRounds => "wc".parse().expect("a pattern of the report"),
            ArrayPattern::One(first) => first,
            ArrayPattern::InTurn(first, second) | ArrayPattern::Apart(first, second) => {
                [first, second][array]
            }
        }
    }

    /// Returns the members that write an array: the first member, and the number of members.
    fn writers(&self, array: usize, members: u32) -> (u32, u32) {
        match self {
            ArrayPattern::Apart(..) => (members / 2 * array as u32, members / 2),
            _ => (0, members),
        }
    }
}

impl ArraysJob {
    /// Returns the size in bytes of each array, and so of its file.
    pub fn array_bytes(&self) -> u64 {
        self.problem.file_bytes / self.pattern.arrays() as u64
    }

    /// Returns the problem of one array that `members` members write.
    fn problem_of_one(&self, members: u32) -> Problem {
        Problem { file_bytes: self.array_bytes(), nodes: members, ..self.problem }
    }

    pub(crate) fn check(&self, members: u32) -> Result<(), Error> {
        let arrays = self.pattern.arrays();
        if self.files.len() != arrays {
            let text = format!("{} is of {arrays} files, not {}", self.pattern, self.files.len());
            return Err(Error::Invalid(text));
        }
        if matches!(self.pattern, ArrayPattern::Apart(..)) && (members < 2 || !members.is_multiple_of(2)) {
            let text = format!("{} needs two halves of compute nodes, not {members}", self.pattern);
            return Err(Error::Invalid(text));
        }
        for array in 0..arrays {
            let pattern = self.pattern.of_array(array);
            if pattern.operation() == Operation::Read {
                return Err(Error::Invalid(format!("{pattern}: arrays are written")));
            }
            pattern.view(&self.problem_of_one(self.pattern.writers(array, members).1))?;
        }
        Ok(())
    }
}

/// Part of a member in the job, for one array.
struct ArrayPart<M: Machine> {
    file: File<M>,
    view: View,
    /// Rank among the members that write the array.
    rank: u32,
    /// Maximum size of a write in bytes. If the members write two arrays in turn, it is a row of the array.
    piece_bytes: u64,
    memory: Memory,
}

/// Part of a member in the job.
pub struct ArraysPart<M: Machine> {
    job: ArraysJob,
    member: Member<M>,
    /// Files of all arrays.
    files: Vec<File<M>>,
    /// Arrays that this member writes.
    arrays: Vec<ArrayPart<M>>,
    cache: Option<WriteCache<M>>,
    /// Number of rounds if all members start each round together: the number of pieces of the first member.
    rounds: Option<usize>,
}

impl<M: Machine> ArraysPart<M> {
    pub(crate) async fn prepare(job: &ArraysJob, member: Member<M>) -> Result<Self, Error> {
        let client = member.client()?;
        let members = member.group.members.len() as u32;
        let (mut files, mut arrays) = (Vec::new(), Vec::new());
        for (array, name) in job.files.iter().enumerate() {
            let file = member.open(name).await?;
            files.push(file.clone());
            let (first, count) = job.pattern.writers(array, members);
            let Some(rank) = member.rank().checked_sub(first).filter(|rank| *rank < count) else { continue };
            let problem = job.problem_of_one(count);
            let view = job.pattern.of_array(array).view(&problem)?;
            let memory = member.contents.memory(view.node_bytes(rank));
            for chunk in view.chunks(rank) {
                let payload = member.contents.payload(chunk.file_offset, chunk.bytes);
                memory.place(chunk.memory_offset, &payload);
            }
            let records = problem.file_bytes / problem.record_bytes;
            let row = problem.shape.unwrap_or_else(|| Shape::most_square(records)).columns;
            let piece_bytes = match job.pattern {
                ArrayPattern::InTurn(..) => row * problem.record_bytes,
                _ => u64::MAX,
            };
            arrays.push(ArrayPart { file, view, rank, piece_bytes, memory });
        }
        let rounds = match (job.pattern, arrays.first()) {
            (ArrayPattern::InRounds, Some(array)) => Some(array.view.chunks(0).count()),
            _ => None,
        };
        let cache = match job.write_cache {
            Some(settings) => {
                let (job, name) = (format!("{:016x}", member.group.id), format!("member {}", member.rank()));
                let memory = member.contents.memory(0);
                Some(WriteCache::join(client.clone(), &job, &name, settings, &memory).await?)
            }
            None => None,
        };
        Ok(ArraysPart { job: job.clone(), member, files, arrays, cache, rounds })
    }

    pub(crate) async fn run(&self) -> Result<Outcome, Error> {
        let machine = &self.member.machine;
        let (begin, mut outcome) = (machine.now(), Outcome::default());
        let mut pieces: Vec<_> = self.arrays.iter().map(|array| array.pieces()).collect();
        for round in 0.. {
            if self.rounds.is_some_and(|rounds| round < rounds) {
                self.member.client()?.barrier(&self.member.group).await?;
            }
            let mut any = false;
            for (array, pieces) in self.arrays.iter().zip(&mut pieces) {
                let Some(piece) = pieces.next() else { continue };
                any = true;
                let asked = machine.now();
                self.write(array, piece).await?;
                outcome.writes.take_in(piece.bytes, machine.now().since(asked));
            }
            if !any && self.rounds.is_none_or(|rounds| round + 1 >= rounds) {
                break;
            }
        }
        if let Some(cache) = &self.cache {
            // Because of the barrier, the last flush of the cache contains the remaining data of all members.
            self.member.client()?.barrier(&self.member.group).await?;
            cache.leave().await?;
            outcome.flushes = Some(FlushTally::of(cache));
        }
        outcome.elapsed = machine.now().since(begin);
        Ok(outcome)
    }

    async fn write(&self, array: &ArrayPart<M>, piece: Chunk) -> fs::Result<()> {
        let Chunk { file_offset: offset, memory_offset: at, bytes } = piece;
        match &self.cache {
            Some(cache) => cache.write(&array.file, offset, &array.memory.get(at, bytes)).await,
            None => array.file.write(offset, bytes, &array.memory, at).await,
        }
    }

    pub(crate) async fn finish(&self) -> Result<(), Error> {
        if self.cache.is_some() {
            return Ok(());
        }
        // The first member flushes all files to stable storage, including files it did not write.
        for file in &self.files {
            file.flush_all().await?;
        }
        Ok(())
    }

    pub(crate) async fn check(&self) -> Result<(), Error> {
        if self.member.rank() > 0 {
            return Ok(());
        }
        for name in &self.job.files {
            let file = self.member.open_written(name).await?;
            crate::pattern::check_file(&file, self.job.array_bytes(), self.member.contents).await?;
        }
        Ok(())
    }
}

impl<M: Machine> ArrayPart<M> {
    /// Iterates over the parts of the array that this member writes, one for each request.
    fn pieces(&self) -> impl Iterator<Item = Chunk> {
        let most = self.piece_bytes;
        self.view.chunks(self.rank).flat_map(move |chunk| {
            let count = chunk.bytes.div_ceil(most);
            (0..count).map(move |index| {
                let at = index * most;
                let Extent { offset, bytes } =
                    Extent::new(chunk.file_offset + at, most).clip(chunk.file_extent().end());
                Chunk { file_offset: offset, memory_offset: chunk.memory_offset + at, bytes }
            })
        })
    }
}

impl From<Pattern> for ArrayPattern {
    fn from(pattern: Pattern) -> Self {
        ArrayPattern::One(pattern)
    }
}

impl fmt::Display for ArrayPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letters = |pattern: &Pattern| pattern.to_string()[1..].to_owned();
        f.pad(&match self {
            ArrayPattern::One(pattern) => pattern.to_string(),
            ArrayPattern::InRounds => "wss".to_owned(),
            ArrayPattern::InTurn(first, second) => format!("wr{}{}", letters(first), letters(second)),
            ArrayPattern::Apart(first, second) => format!("wp{}{}", letters(first), letters(second)),
        })
    }
}

impl FromStr for ArrayPattern {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        if name == "wss" {
            return Ok(ArrayPattern::InRounds);
        }
        let two = |letters: &str| -> Option<(Pattern, Pattern)> {
            let (first, second) = letters.split_at_checked(2)?;
            let pattern = |letters: &str| (letters.len() == 2).then(|| format!("w{letters}").parse().ok())?;
            Some((pattern(first)?, pattern(second)?))
        };
        if let Some((first, second)) = name.strip_prefix("wr").and_then(two) {
            return Ok(ArrayPattern::InTurn(first, second));
        }
        if let Some((first, second)) = name.strip_prefix("wp").and_then(two) {
            return Ok(ArrayPattern::Apart(first, second));
        }
        match name.parse() {
            Ok(pattern) => Ok(ArrayPattern::One(pattern)),
            Err(_) if ["wr", "wp"].iter().any(|both| name.starts_with(both)) => Err(format!(
                "no pattern {name:?}: after wr or wp come the letters of two arrays, as in wrnncc or wpnbbn"
            )),
            Err(error) => Err(LayoutError::to_string(&error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn array_patterns_of_the_report_are_parsed_and_others_rejected() {
        for name in ["rb", "wnn", "wnc", "wcc", "wss", "wrnnbb", "wrnncc", "wpbccb", "wpnncc"] {
            assert_eq!(name.parse::<ArrayPattern>().unwrap().to_string(), name);
        }
        for name in ["", "w", "wr", "wrnn", "wrnnb", "wrnnbbb", "rrnncc", "wrxxbb", "wp\u{e9}bb"] {
            assert!(name.parse::<ArrayPattern>().is_err(), "{name}");
        }
    }
}
