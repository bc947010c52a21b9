//! pfsbzip2: compresses and decompresses, while threads read ahead and write behind.
//! The format is that of bzip2. As with bzip2, several compressed files in sequence form one file. Bytes after the last
//! compressed file, such as the zeros that fill the last block of a tape, are reported and ignored.

use std::cell::Cell;
use std::io::{self, BufRead, BufReader, Chain, Cursor, Read, Write};
use std::process::ExitCode;
use std::thread;

use bzip2::Compression;
use bzip2::bufread::BzDecoder;
use bzip2::read::BzEncoder;
use clap::Parser;
use command_line::say;

use crate::failure::{Failure, Result};
use crate::files::{Files, FilesArgs, NAMES};
use crate::name::FileName;
use crate::program::FileProgram;
use crate::read_ahead::ReadAhead;
use crate::store::{Output, Storage};
use crate::usage::{self, Stopwatch};
use crate::write_behind::WriteBehind;

/// Ending of the names of compressed files.
const ENDING: &str = ".bz2";

/// Bytes per transfer from the (de)compressor to the output.
const PIECE_BYTES: usize = 64 << 10;

/// Compress or decompress a file, ordinary or striped, and keep the input.
#[derive(Parser, Debug)]
#[command(name = "pfsbzip2", version, after_help = NAMES)]
pub struct Arguments {
    /// Input file; - is standard input.
    #[arg(value_name = "FILE", default_value = "-", add = command_line::file_or_stored())]
    input: FileName,

    /// Output file [default: FILE.bz2, or FILE without that ending].
    #[arg(value_name = "OUTPUT", add = command_line::file_or_stored())]
    output: Option<FileName>,

    /// Decompress.
    #[arg(long, short)]
    decompress: bool,

    /// Block size for compressing, in units of 100 000 bytes, as in `bzip2 -1` to `-9`.
    #[arg(long, short, value_name = "1..9", default_value_t = 9, value_parser = clap::value_parser!(u32).range(1..=9))]
    blocks: u32,

    /// Replace an existing output file.
    #[arg(long, short)]
    force: bool,

    #[command(flatten)]
    files: FilesArgs,
}

impl FileProgram for Arguments {
    fn files(&mut self) -> &mut FilesArgs {
        &mut self.files
    }

    fn run(self) -> Result<ExitCode> {
        // Like bzip2: a user who may not read the input must not get access to the output.
        let files = Files::new(&self.files).with_permissions_of(&self.input);
        let stopwatch = Stopwatch::start(&files);
        let name = self.output_name()?;
        self.input.check_is_not(&name)?;
        let conversion = match self.decompress {
            true => Conversion::Decompress,
            false => Conversion::Compress { blocks: self.blocks },
        };
        convert(&files, &self.input, &name, self.force, conversion)?;
        if self.files.time {
            usage::print("pfsbzip2", &[("all", stopwatch.usage(&files))]);
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Arguments {
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
                format!("the name does not end with {ENDING}\n  Name the output: pfsbzip2 -d FILE OUTPUT");
            Failure::new(&self.input, why)
        })
    }
}

/// Operation on a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conversion {
    /// Compresses the file.
    Compress {
        /// Block size in units of 100 000 bytes, from 1 to 9.
        blocks: u32,
    },
    /// Decompresses the file.
    Decompress,
}

/// Reads the file `input` and writes `output`. Fails if `output` exists, unless `replace` is true.
pub fn convert(
    store: &dyn Storage,
    input: &FileName,
    output: &FileName,
    replace: bool,
    conversion: Conversion,
) -> Result<()> {
    let source = store.open(input)?;
    let target = store.create(output, replace)?;
    let converted = convert_all(source, target, conversion);
    let (written, has_more) =
        converted.map_err(|(is_input, error)| Failure::io(if is_input { input } else { output }, &error))?;
    if has_more {
        say!("pfsbzip2: {input}: ignored trailing bytes after the compressed data");
    }
    written.finish()
}

/// Converts the input. Returns the output, and true if other bytes follow the compressed data. With an error, returns
/// true if the input caused the error.
fn convert_all<'a>(
    input: Box<dyn Read + Send + 'a>,
    output: Box<dyn Output + 'a>,
    conversion: Conversion,
) -> std::result::Result<(Box<dyn Output + 'a>, bool), (bool, io::Error)> {
    thread::scope(|scope| {
        let ahead = ReadAhead::new(scope, input);
        let mut behind = WriteBehind::new(scope, output);
        let has_more = Cell::new(false);
        let mut converted: Box<dyn Read> = match conversion {
            Conversion::Compress { blocks } => Box::new(BzEncoder::new(ahead, Compression::new(blocks))),
            Conversion::Decompress => Box::new(Streams::new(BufReader::new(ahead), &has_more)),
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
        let written = behind.finish().map_err(|error| (false, error))?;
        Ok((written, has_more.get()))
    })
}

/// Number of bytes that mark the start of a bzip2 stream: `BZh` and a digit.
const MARK_BYTES: usize = 4;

/// Reader of the decompressed bzip2 streams at the beginning of an input.
struct Streams<'a, R> {
    /// The current stream; `None` at the end.
    stream: Option<BzDecoder<Chain<Cursor<Vec<u8>>, R>>>,
    /// Set to true if other bytes follow the streams.
    has_more: &'a Cell<bool>,
}

impl<'a, R: BufRead> Streams<'a, R> {
    /// Starts with the first stream; reading fails if the input does not begin with one.
    fn new(input: R, has_more: &'a Cell<bool>) -> Self {
        Streams { stream: Some(BzDecoder::new(Cursor::new(Vec::new()).chain(input))), has_more }
    }

    /// Continues with the next stream. Without another stream, ends the reader.
    fn go_on(&mut self, behind: Chain<Cursor<Vec<u8>>, R>) -> io::Result<()> {
        // The decoder has consumed all of the start mark, so all further bytes are in the input.
        let (_, mut input) = behind.into_inner();
        let mut mark = Vec::new();
        input.by_ref().take(MARK_BYTES as u64).read_to_end(&mut mark)?;
        let is_stream = matches!(mark[..], [b'B', b'Z', b'h', b'1'..=b'9']);
        self.has_more.set(!is_stream && !mark.is_empty());
        self.stream = is_stream.then(|| BzDecoder::new(Cursor::new(mark).chain(input)));
        Ok(())
    }
}

impl<R: BufRead> Read for Streams<'_, R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while let Some(stream) = &mut self.stream {
            let read = stream.read(into)?;
            if read > 0 || into.is_empty() {
                return Ok(read);
            }
            if let Some(stream) = self.stream.take() {
                self.go_on(stream.into_inner())?;
            }
        }
        Ok(0)
    }
}
