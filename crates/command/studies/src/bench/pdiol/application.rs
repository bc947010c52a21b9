//! The programs of the benchmark, their input text, and the check of their outputs.
//!
//! cat and grep contain only the processing of their input. sort and bzip2 are the programs of the
//! crate `applications`, with their threads and temporary files.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};

use applications::bzip2::Conversion;
use applications::{FileName, Storage};
use blake3::Hash;
use clap::ValueEnum;
use memchr::memmem::Finder;

use super::PAGE_BYTES;

/// Program that reads a file sequentially.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Application {
    /// Writes its input to /dev/null, like mycat of the thesis.
    Cat,
    /// Counts the occurrences of a word.
    Grep,
    /// Sorts the lines, with memory for a quarter of them: writes sorted runs, reads them, and writes the merged lines.
    Sort,
    /// Compresses like bzip2 -9.
    Bzip2,
}

/// Word that grep searches for. It is at the start of each period of the text and nowhere else.
const WORD: &[u8] = b"starfish";

/// Period of the text in bytes.
const TEXT_BYTES: usize = 1 << 20;

/// Divisor that yields the memory of sort from the file size, so that there are several runs to merge.
const SORT_MEMORY_PART: u64 = 4;

/// Minimum memory of sort in bytes. With less memory, small files would be merged twice.
const SORT_MEMORY_MIN: u64 = 4 << 20;

/// Block size of bzip2 in units of 100 000 bytes. This is bzip2's default.
const BZIP2_BLOCKS: u32 = 9;

impl Application {
    /// All programs.
    pub const ALL: [Application; 4] =
        [Application::Cat, Application::Grep, Application::Sort, Application::Bzip2];

    /// Returns the name of the program.
    pub fn name(self) -> &'static str {
        match self {
            Application::Cat => "cat",
            Application::Grep => "grep",
            Application::Sort => "sort",
            Application::Bzip2 => "bzip2",
        }
    }

    /// True if the program writes no file.
    pub fn only_reads(self) -> bool {
        matches!(self, Application::Cat | Application::Grep)
    }

    /// Runs the program on a text of `bytes` bytes. A program that only reads fails if `input` differs from the text.
    pub fn run(
        self,
        store: &dyn Storage,
        input: &FileName,
        output: &FileName,
        bytes: u64,
    ) -> applications::Result<()> {
        match self {
            Application::Cat | Application::Grep => {
                let read = self.read(&mut store.open(input)?, bytes);
                read.map_err(|error| applications::Failure::io(input, &error))
            }
            Application::Sort => {
                let memory = (bytes / SORT_MEMORY_PART).max(SORT_MEMORY_MIN);
                applications::sort::sort(store, input, output, memory)
            }
            Application::Bzip2 => {
                let conversion = Conversion::Compress { blocks: BZIP2_BLOCKS };
                applications::bzip2::convert(store, input, output, true, conversion)
            }
        }
    }

    fn read(self, input: &mut dyn Read, bytes: u64) -> io::Result<()> {
        let (what, read, expected) = match self {
            Application::Cat => ("bytes", cat(input)?, bytes),
            _ => ("words", grep(input)?, words(bytes)),
        };
        if read == expected {
            return Ok(());
        }
        Err(io::Error::other(format!("{} found {read} {what} instead of {expected}", self.name())))
    }

    /// Returns the hash of the output for a text of `bytes` bytes. Fails if the output is wrong, as far as the program
    /// can detect it.
    pub fn check(self, output: impl Read, bytes: u64) -> io::Result<Hash> {
        let mut output = BufReader::with_capacity(TEXT_BYTES, Hashing(output, blake3::Hasher::new()));
        if self == Application::Sort {
            let (found, expected) = (Lines::of(&mut output)?, Lines::of(&mut Text::new(bytes))?);
            if found != (Lines { sorted: true, ..expected }) {
                let (is, are) = (found.count, expected.count);
                let why = format!("sort wrote {is} of {are} lines; sorted: {}", found.sorted);
                return Err(io::Error::other(why));
            }
        }
        // Hash the rest, which is not checked. This is the whole output if the right output is unknown.
        io::copy(&mut output, &mut io::sink())?;
        Ok(output.get_ref().1.finalize())
    }
}

/// Reader that hashes the data that pass through.
struct Hashing<R>(R, blake3::Hasher);

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.0.read(into)?;
        self.1.update(&into[..read]);
        Ok(read)
    }
}

/// Properties of lines that can be computed without storing the lines.
#[derive(Debug, Default, PartialEq, Eq)]
struct Lines {
    count: u64,
    /// Sum of a hash of each line, which is independent of the order.
    sum: u64,
    /// True if no line is less than the line before.
    sorted: bool,
}

impl Lines {
    fn of(text: &mut impl BufRead) -> io::Result<Lines> {
        let mut lines = Lines { sorted: true, ..Lines::default() };
        let (mut last, mut line) = (Vec::new(), Vec::new());
        while text.read_until(b'\n', &mut line)? > 0 {
            if line.last() == Some(&b'\n') {
                line.pop();
            }
            let hash = blake3::hash(&line);
            let (first, _) = hash.as_bytes().split_first_chunk().expect("it has 32");
            lines.sum = lines.sum.wrapping_add(u64::from_le_bytes(*first));
            lines.count += 1;
            lines.sorted &= last <= line;
            std::mem::swap(&mut last, &mut line);
            line.clear();
        }
        Ok(lines)
    }
}

/// Reader of the text.
struct Text<I> {
    blocks: I,
    block: Vec<u8>,
    used: usize,
}

impl Text<()> {
    fn new(bytes: u64) -> Text<impl Iterator<Item = Vec<u8>>> {
        Text { blocks: text(bytes), block: Vec::new(), used: 0 }
    }
}

impl<I: Iterator<Item = Vec<u8>>> Read for Text<I> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.fill_buf()?.read(into)?;
        self.consume(read);
        Ok(read)
    }
}

impl<I: Iterator<Item = Vec<u8>>> BufRead for Text<I> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.used == self.block.len() {
            (self.block, self.used) = (self.blocks.next().unwrap_or_default(), 0);
        }
        Ok(&self.block[self.used..])
    }

    fn consume(&mut self, bytes: usize) {
        self.used += bytes;
    }
}

/// Returns the text of `bytes` bytes as blocks: lines of 64 digits, repeated after each period.
pub fn text(bytes: u64) -> impl Iterator<Item = Vec<u8>> {
    let mut block = Vec::with_capacity(TEXT_BYTES + 65);
    block.extend_from_slice(WORD);
    block.push(b'\n');
    for line in 0_u64.. {
        if block.len() >= TEXT_BYTES {
            break;
        }
        block.extend_from_slice(blake3::hash(&line.to_le_bytes()).to_hex().as_bytes());
        block.push(b'\n');
    }
    block.truncate(TEXT_BYTES);
    let starts = (0..bytes).step_by(TEXT_BYTES);
    starts.map(move |start| block[..(bytes - start).min(TEXT_BYTES as u64) as usize].to_vec())
}

/// Returns the number of occurrences of the word in a text.
fn words(bytes: u64) -> u64 {
    let last = u64::from(bytes % TEXT_BYTES as u64 >= WORD.len() as u64);
    bytes / TEXT_BYTES as u64 + last
}

fn cat(input: &mut dyn Read) -> io::Result<u64> {
    let (mut output, mut buffer, mut total) =
        (File::options().write(true).open("/dev/null")?, vec![0; PAGE_BYTES as usize], 0);
    loop {
        match input.read(&mut buffer)? {
            0 => return Ok(total),
            read => {
                output.write_all(&buffer[..read])?;
                total += read as u64;
            }
        }
    }
}

fn grep(input: &mut dyn Read) -> io::Result<u64> {
    let finder = Finder::new(WORD);
    // Keep the last bytes before the next ones, because a word may begin in one read and end in the next.
    let (mut buffer, mut kept, mut found) = (vec![0; PAGE_BYTES as usize + WORD.len()], 0, 0);
    loop {
        let read = input.read(&mut buffer[kept..kept + PAGE_BYTES as usize])?;
        if read == 0 {
            return Ok(found);
        }
        let end = kept + read;
        found += finder.find_iter(&buffer[..end]).count() as u64;
        let keep = end.min(WORD.len() - 1);
        buffer.copy_within(end - keep..end, 0);
        kept = keep;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reader that returns a few bytes in each call.
    struct Few<'a>(&'a [u8], usize);

    impl Read for Few<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let bytes = self.1.min(into.len()).min(self.0.len());
            into[..bytes].copy_from_slice(&self.0[..bytes]);
            self.0 = &self.0[bytes..];
            Ok(bytes)
        }
    }

    #[test]
    fn cat_and_grep_accept_the_text_in_reads_of_any_size() {
        for bytes in [1, 7, 8, 70_000, (1 << 20) + 7, (1 << 20) + 8] {
            let whole: Vec<u8> = text(bytes).flatten().collect();
            assert_eq!(whole.len() as u64, bytes);
            for call in [3, 64 << 10, 1 << 20] {
                for application in [Application::Cat, Application::Grep] {
                    let ran = application.read(&mut Few(&whole, call), bytes);
                    ran.unwrap_or_else(|error| panic!("{bytes} in calls of {call}: {error}"));
                }
            }
        }
    }

    #[test]
    fn a_wrong_text_is_detected() {
        assert!(Application::Cat.read(&mut Few(b"starfish", 9), 9).is_err());
        assert!(Application::Grep.read(&mut Few(b"sea star", 9), 8).is_err());
    }

    #[test]
    fn sorted_output_must_have_all_lines_in_order() {
        let bytes = (1 << 20) + 70_000;
        let whole: Vec<u8> = text(bytes).flatten().collect();
        let mut lines: Vec<&[u8]> = whole.split(|&byte| byte == b'\n').collect();
        lines.sort();
        let sorted = [lines.join(&b'\n'), b"\n".to_vec()].concat();
        let check = |output: &[u8]| Application::Sort.check(output, bytes);
        assert_eq!(check(&sorted).expect("it is sorted"), blake3::hash(&sorted));
        assert!(check(&whole).is_err(), "not sorted");
        assert!(check(&sorted[..sorted.len() - 65]).is_err(), "a line is missing");
        let mut other = sorted.clone();
        other[7] += 1;
        assert!(check(&other).is_err(), "another line");
        assert_eq!(Application::Bzip2.check(&whole[..], bytes).expect("anything"), blake3::hash(&whole));
    }
}
