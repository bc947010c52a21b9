//! `starfish view`: shows traces in the browser.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::thread;

use clap::Args;
use trace::ReadError;
use trace_formats::FormatError;
use viewer::{FileColumns, FileError, FirstLook, ServeError, Server, TraceFiles};

use super::trace::shown;
use command_line::failure::{Failure, Result};
use command_line::say;
use transfer::{interrupt, local};

/// Show traces in a browser, with the Thread Log Viewer.
///
/// The page has a time line for every process, node and thread, and shows the durations of all calls and their
/// distribution. A server on this computer delivers the page. The server answers only requests with the secret address
/// that it prints, and reads only these files. The page also shows how files grow that are still being written. Ctrl-C
/// stops the server.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Traces of Starfish, Perfetto or Chrome. They are put on one clock.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Show a separate time line for each file, each starting at 0, for example a prediction next to a measurement.
    #[arg(long)]
    beside: bool,

    /// Write a self-contained HTML page to FILE instead of starting a server.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["no_open", "port"])]
    html: Option<PathBuf>,

    /// Print the address without starting a browser.
    #[arg(long)]
    no_open: bool,

    /// Port of the server; 0 selects any free port.
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    port: u16,
}

const EXAMPLES: &str = "\
Examples:
  starfish view run.tlv                       a browser opens
  starfish view node1.tlv node2.tlv           several files on one clock
  starfish view --beside write.tlv write-predicted.tlv
  starfish view run.tlv --html run.html       a self-contained page";

/// Runs the command.
pub(crate) fn run(arguments: Arguments) -> Result<()> {
    let files = TraceFiles::new(arguments.files);
    let look = if arguments.beside { FirstLook::Beside } else { FirstLook::Together };
    if let Some(path) = &arguments.html {
        return write_page(path, &files, look);
    }
    let stop = interrupt::channel()?;
    let server = Server::new(files, arguments.port).map_err(|error| match error {
        ServeError::File(error) => unreadable(error),
        ServeError::Io(error) => {
            let failure = Failure::new(format!("cannot listen on port {}", arguments.port), error);
            failure.remedy("Leave out --port to use any free port.")
        }
    })?;
    let address = match look.fragment() {
        "" => server.address(),
        fragment => format!("{}#{fragment}", server.address()),
    };
    print_notes(&server.notes());
    println!("{address}\nCtrl-C ends it.");
    thread::spawn(|| server.answer());
    if !arguments.no_open && open::that_detached(&address).is_err() {
        say!("starfish: cannot start a browser; open the address above");
    }
    // An interruption is the normal end, and no failure.
    let _ = stop.recv();
    Ok(())
}

/// Writes one page with the contents of all files.
pub(crate) fn write_page(path: &Path, files: &TraceFiles, look: FirstLook) -> Result<()> {
    let FileColumns { columns, notes } = files.columns().map_err(unreadable)?;
    print_notes(&notes);
    let page = viewer::self_contained(&columns, look);
    local::write(path, |output| output.write_all(page.as_bytes()))
}

/// Prints gaps and irregularities in the files.
fn print_notes(notes: &[String]) {
    notes.iter().for_each(|note| say!("{}", shown::text(note)));
}

fn unreadable(FileError { path, cause }: FileError) -> Failure {
    let failure = Failure::new(path, &cause);
    match cause {
        FormatError::Trace(ReadError::Version(_)) => {
            failure.remedy("Use the version of Starfish that wrote it, or a newer one.")
        }
        _ => failure,
    }
}
