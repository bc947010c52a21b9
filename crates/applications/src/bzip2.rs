//! pfsbzip2: compresses and decompresses, while threads read ahead and write behind.
//!
//! The format is that of bzip2; several compressed files one after the other are one, as there.

use std::io::{self, Read, Write};
use std::process::ExitCode;
use std::thread;

use bzip2::Compression;
use bzip2::read::{BzEncoder, MultiBzDecoder};
use clap::Parser;

use crate::ahead::Ahead;
use crate::behind::Behind;
use crate::failure::{Failure, Result};
use crate::files::{Files, FilesArgs, Input, NAMES, Output};
use crate::name::FileName;
use crate::usage::{self, Stopwatch};

/// What the names of compressed files end with.
const ENDING: &str = ".bz2";

/// Bytes that go from the (de)compressor to the output at a time.
const PIECE_BYTES: usize = 64 << 10;

/// Compress or decompress a file, ordinary or striped. The input stays.
#[derive(Parser, Debug)]
#[command(name = "pfsbzip2", version, after_help = NAMES)]
pub struct Arguments {
    /// The file; without any, standard input.
    #[arg(value_name = "FILE", default_value = "-")]
    input: FileName,

    /// Where to write. Without this: FILE.bz2, or what FILE is without that ending.
    #[arg(value_name = "OUTPUT")]
    output: Option<FileName>,

    /// Decompress.
    #[arg(long, short)]
    decompress: bool,

    /// Compress in blocks of so many times 100 000 bytes.
    #[arg(long, short, value_name = "1..9", default_value_t = 9, value_parser = clap::value_parser!(u32).range(1..=9))]
    blocks: u32,

    /// Replace the output if there is such a file already.
    #[arg(long, short)]
    force: bool,

    #[command(flatten)]
    files: FilesArgs,
}

impl Arguments {
    /// Runs the program.
    pub fn run(self) -> Result<ExitCode> {
        let files = Files::new(&self.files);
        let stopwatch = Stopwatch::start(&files);
        let name = self.output_name()?;
        let input = files.open(&self.input)?;
        let output = files.create(&name, self.force)?;
        let output = self.convert(input, output).map_err(|(is_input, error)| {
            let what = if is_input { &self.input } else { &name };
            Failure::io(what, &error)
        })?;
        output.finish()?;
        if self.files.time {
            usage::print("pfsbzip2", &[("all", stopwatch.usage(&files))]);
        }
        Ok(ExitCode::SUCCESS)
    }

    fn output_name(&self) -> Result<FileName> {
        if let Some(name) = &self.output {
            return Ok(name.clone());
        }
        let name = match (&self.input, self.decompress) {
            (FileName::Standard, _) => Some(FileName::Standard),
            (name, true) => name.without_ending(ENDING),
            (name, false) => name.with_ending(ENDING),
        };
        name.ok_or_else(|| {
            let why =
                format!("its name does not end with {ENDING}\n  Say where to write: pfsbzip2 -d FILE OUTPUT");
            Failure::new(&self.input, why)
        })
    }

    /// Gives the output back, or an error and whether it is the input's.
    fn convert<'a>(
        &self,
        input: Input<'a>,
        output: Output<'a>,
    ) -> std::result::Result<Output<'a>, (bool, io::Error)> {
        thread::scope(|scope| {
            let ahead = Ahead::new(scope, input);
            let mut behind = Behind::new(scope, output);
            let mut converted: Box<dyn Read> = if self.decompress {
                Box::new(MultiBzDecoder::new(ahead))
            } else {
                Box::new(BzEncoder::new(ahead, Compression::new(self.blocks)))
            };
            let mut piece = vec![0; PIECE_BYTES];
            loop {
                let bytes = converted.read(&mut piece).map_err(|error| (true, error))?;
                if bytes == 0 {
                    break;
                }
                behind.write_all(&piece[..bytes]).map_err(|error| (false, error))?;
            }
            drop(converted);
            behind.finish().map_err(|error| (false, error))
        })
    }
}
