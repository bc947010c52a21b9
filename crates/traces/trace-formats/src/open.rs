//! Opens a trace of any supported format, detected by its first bytes.

use std::io::{self, Cursor, Read};

use trace::{ReadError, TraceReader};

use crate::collector::{Collector, Imported};
use crate::{chrome, perfetto};

/// Format of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceFormat {
    /// Our format.
    Tlv,
    /// Perfetto's protocol buffers.
    Perfetto,
    /// The JSON of Chrome's trace viewer.
    Chrome,
}

/// Reason why a trace cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum FormatError {
    /// Input or output failed.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The trace has our format, but cannot be read.
    #[error("{0}")]
    Trace(ReadError),
    /// The file is empty: nodes create the file of their trace when they start, and write it when they end.
    #[error("the file is empty: the recording program has not ended yet, or was killed")]
    Empty,
    /// The format is unknown.
    #[error("this is not a trace of Starfish, of Perfetto, or in Chrome's JSON")]
    Unknown,
    /// The file is JSON without events.
    #[error(
        "this is not a trace in JSON: expected an array of events, or an object with an array called \
         traceEvents"
    )]
    Json,
}

/// Number of bytes examined to detect a format.
const BEGINNING: usize = 64;

/// Returns the format of a file that begins with these bytes.
pub fn detect(beginning: &[u8]) -> Option<TraceFormat> {
    let text = beginning.strip_prefix(MARK).unwrap_or(beginning);
    let first = text.iter().find(|byte| !byte.is_ascii_whitespace());
    // A Perfetto packet can begin with the bytes of a newline and a bracket, but its numbers contain unprintable bytes.
    let is_text = !text.iter().any(|byte| byte.is_ascii_control() && !byte.is_ascii_whitespace());
    match first {
        _ if trace::is_trace(beginning) => Some(TraceFormat::Tlv),
        Some(b'[' | b'{') if is_text => Some(TraceFormat::Chrome),
        _ if beginning.first() == Some(&0x0a) => Some(TraceFormat::Perfetto),
        _ => None,
    }
}

/// Byte order mark, which some editors write before texts.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// Reads a trace of any format. Notes contain `name` as the name of the file.
pub fn read_any(reader: &mut TraceReader, name: &str, from: impl Read) -> Result<Imported, FormatError> {
    let (beginning, from) = beginning(from)?;
    if detect(&beginning) == Some(TraceFormat::Tlv) {
        reader.read(name, from).map_err(FormatError::Trace)?;
        return Ok(Imported::default());
    }
    let mut written = Vec::new();
    let imported = collected(&beginning, from)?.write(&mut written)?;
    reader.read(name, &written[..]).map_err(FormatError::Trace)?;
    Ok(imported)
}

/// Imports a trace of Perfetto or Chrome, for conversion to our format. Fails for a trace in our format.
pub fn collect(from: impl Read) -> Result<Collector, FormatError> {
    let (beginning, from) = beginning(from)?;
    collected(&beginning, from)
}

/// Returns the first bytes, and a reader that starts with them.
fn beginning<R: Read>(mut from: R) -> io::Result<(Vec<u8>, impl Read)> {
    let mut beginning = Vec::new();
    from.by_ref().take(BEGINNING as u64).read_to_end(&mut beginning)?;
    Ok((beginning.clone(), Cursor::new(beginning).chain(from)))
}

fn collected(beginning: &[u8], from: impl Read) -> Result<Collector, FormatError> {
    let mut from = io::BufReader::with_capacity(1 << 18, from);
    match detect(beginning) {
        Some(TraceFormat::Chrome) => {
            let mark = if beginning.starts_with(MARK) { MARK.len() } else { 0 };
            from.by_ref().take(mark as u64).read_to_end(&mut Vec::new())?;
            chrome::collect(from)?.ok_or(FormatError::Json)
        }
        Some(TraceFormat::Perfetto) => perfetto::collect(from)?.ok_or(FormatError::Unknown),
        Some(TraceFormat::Tlv) => {
            Err(io::Error::new(io::ErrorKind::InvalidInput, "it is already a trace of Starfish").into())
        }
        None if beginning.is_empty() => Err(FormatError::Empty),
        None => Err(FormatError::Unknown),
    }
}
