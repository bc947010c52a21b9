//! mycat, fs2pfs and pfs2fs: copy bytes from one file to another unchanged.

use std::io::{Read, Write};
use std::process::ExitCode;

use clap::{Args, Parser, ValueHint};

use crate::failure::{Failure, Result};
use crate::files::{Files, FilesArgs, NAMES};
use crate::name::FileName;
use crate::program::FileProgram;
use crate::store::Storage;
use crate::usage::{self, Stopwatch};
use node::Size;

/// Options for copying whole files.
#[derive(Args, Clone, Debug)]
struct WholeArgs {
    /// Replace an existing output file.
    #[arg(long, short)]
    force: bool,

    #[command(flatten)]
    files: FilesArgs,
}

/// Print files one after the other, ordinary and striped ones.
#[derive(Parser, Debug)]
#[command(name = "mycat", version, after_help = NAMES)]
pub struct Cat {
    /// The files; without any, standard input.
    #[arg(value_name = "FILE", add = command_line::file_or_stored())]
    names: Vec<FileName>,

    /// Output file, instead of standard output.
    #[arg(long, short, value_name = "FILE", default_value = "-", add = command_line::file_or_stored())]
    output: FileName,

    /// Size of a read or write.
    #[arg(long, value_name = "SIZE", default_value = "64KiB", value_parser = buffer)]
    buffer: Size,

    /// Replace an existing output file.
    #[arg(long, short)]
    force: bool,

    #[command(flatten)]
    files: FilesArgs,
}

/// Copy an ordinary file to a striped one. `starfish put` does the same, with progress and hashes.
#[derive(Parser, Debug)]
#[command(name = "fs2pfs", version, after_help = NAMES)]
pub struct ToStriped {
    /// The ordinary file.
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    input: FileName,

    /// Name of the striped file, with or without the prefix pfs: [default: the name of the ordinary file].
    #[arg(value_name = "NAME", add = command_line::stored())]
    output: Option<String>,

    #[command(flatten)]
    whole: WholeArgs,
}

/// Copy a striped file to an ordinary one. `starfish get` does the same, with progress and hashes.
#[derive(Parser, Debug)]
#[command(name = "pfs2fs", version, after_help = NAMES)]
pub struct FromStriped {
    /// Name of the striped file, with or without the prefix pfs:
    #[arg(value_name = "NAME", add = command_line::stored())]
    input: String,

    /// The ordinary file; - is standard output.
    #[arg(value_name = "FILE", default_value = "-", value_hint = ValueHint::FilePath)]
    output: FileName,

    #[command(flatten)]
    whole: WholeArgs,
}

fn buffer(text: &str) -> std::result::Result<Size, String> {
    let size: Size = text.parse()?;
    let allowed = (1..=1 << 30).contains(&size.0);
    if allowed { Ok(size) } else { Err("expected from 1 B to 1 GiB".into()) }
}

impl FileProgram for Cat {
    fn files(&mut self) -> &mut FilesArgs {
        &mut self.files
    }

    fn run(self) -> Result<ExitCode> {
        let files = Files::new(&self.files);
        let stopwatch = Stopwatch::start(&files);
        let names = if self.names.is_empty() { vec![FileName::Standard] } else { self.names };
        names.iter().try_for_each(|name| name.check_is_not(&self.output))?;
        let mut buffer = vec![0; self.buffer.0 as usize];
        // Open the first file before creating the output, so that a wrong name leaves no file behind.
        let mut first = Some(files.open(&names[0])?);
        let mut target = files.create(&self.output, self.force)?;
        for name in &names {
            let mut input = first.take().map_or_else(|| files.open(name), Ok)?;
            loop {
                let read = input.read(&mut buffer).map_err(|error| Failure::io(name, &error))?;
                if read == 0 {
                    break;
                }
                target.write_all(&buffer[..read]).map_err(|error| Failure::io(&self.output, &error))?;
            }
        }
        target.finish()?;
        if self.files.time {
            usage::print("mycat", &[("all", stopwatch.usage(&files))]);
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl FileProgram for ToStriped {
    fn files(&mut self) -> &mut FilesArgs {
        &mut self.whole.files
    }

    fn run(self) -> Result<ExitCode> {
        let own = || match &self.input {
            FileName::Local(path) => path.file_name()?.to_str().map(str::to_owned),
            _ => None,
        };
        let name = self.output.clone().or_else(own);
        let name = name.ok_or_else(|| {
            Failure::new(
                &self.input,
                "standard input has no name for the striped file\n  Give one: fs2pfs FILE NAME",
            )
        })?;
        self.whole.copy("fs2pfs", |files| files.put(&self.input, bare(&name), self.whole.force))
    }
}

impl FileProgram for FromStriped {
    fn files(&mut self) -> &mut FilesArgs {
        &mut self.whole.files
    }

    fn run(self) -> Result<ExitCode> {
        self.whole.copy("pfs2fs", |files| files.get(bare(&self.input), &self.output, self.whole.force))
    }
}

/// Returns the name of a striped file without the prefix `pfs:`.
fn bare(name: &str) -> &str {
    name.strip_prefix(command_line::STRIPED).unwrap_or(name)
}

impl WholeArgs {
    fn copy(&self, program: &str, copy: impl FnOnce(&Files) -> Result<()>) -> Result<ExitCode> {
        let files = Files::new(&self.files);
        let stopwatch = Stopwatch::start(&files);
        copy(&files)?;
        if self.files.time {
            usage::print(program, &[("all", stopwatch.usage(&files))]);
        }
        Ok(ExitCode::SUCCESS)
    }
}
