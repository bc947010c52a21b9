//! The programs of the benchmark, reduced to what they do with their input, and the text they read.

use std::fs::File;
use std::io::{self, Read, Write};

use clap::ValueEnum;
use memchr::memmem::Finder;

use super::PAGE_BYTES;

/// A program that reads a file from front to back, in calls of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Application {
    /// Writes what it reads to /dev/null, as mycat of the thesis.
    Cat,
    /// Counts the places where a word stands.
    Grep,
}

/// The word that grep looks for. It begins each block of the text and stands nowhere else.
const WORD: &[u8] = b"starfish";

/// The text repeats itself after so many bytes.
const TEXT_BYTES: usize = 1 << 20;

impl Application {
    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Application::Cat => "cat",
            Application::Grep => "grep",
        }
    }

    /// Runs on a text of `bytes` bytes. Fails if `input` is not that.
    pub(crate) fn run(self, input: &mut dyn Read, bytes: u64) -> io::Result<()> {
        let (read, expected) = match self {
            Application::Cat => (cat(input)?, bytes),
            Application::Grep => (grep(input)?, words(bytes)),
        };
        if read == expected {
            return Ok(());
        }
        let what = if self == Application::Cat { "bytes" } else { "lines" };
        Err(io::Error::other(format!("{} found {read} {what} where there are {expected}", self.name())))
    }
}

/// The text over and over again, up to `bytes`: lines of 64 digits.
pub(crate) fn text(bytes: u64) -> impl Iterator<Item = Vec<u8>> {
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

/// How often the word stands in a text.
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
    // The end of one call's bytes stands before those of the next: a word may lie across.
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

    /// Gives a few bytes in each call.
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
    fn programs_find_what_is_there_however_it_comes() {
        for bytes in [1, 7, 8, 70_000, (1 << 20) + 7, (1 << 20) + 8] {
            let whole: Vec<u8> = text(bytes).flatten().collect();
            assert_eq!(whole.len() as u64, bytes);
            for call in [3, 64 << 10, 1 << 20] {
                for application in [Application::Cat, Application::Grep] {
                    let ran = application.run(&mut Few(&whole, call), bytes);
                    ran.unwrap_or_else(|error| panic!("{bytes} in calls of {call}: {error}"));
                }
            }
        }
    }

    #[test]
    fn a_wrong_text_is_noticed() {
        assert!(Application::Cat.run(&mut Few(b"starfish", 9), 9).is_err());
        assert!(Application::Grep.run(&mut Few(b"sea star", 9), 8).is_err());
    }
}
