//! Reads the state of an object when its file is opened: the header, the length and the flushed state.

use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;

use super::header::{self, Header, Refusal};
use super::layout::{GROUP_BYTES, HEADER_BYTES, Layout, UNIT_BYTES, group_of};
use super::record::Record;
use super::units::{Seal, UnitSums};

/// Maximum number of groups at the end of a file (64 GiB) that are searched for the object's end. The search is
/// necessary if the file is longer than the flushed length of the object.
const UNFLUSHED_GROUPS_MAX: u64 = (64 << 30) / GROUP_BYTES;

/// State of an object when its file is opened.
#[derive(Clone, Debug)]
pub(crate) struct FoundContents {
    pub(crate) seal: Seal,
    pub(crate) bytes: u64,
    /// True if the file is longer than the object, by bytes that were never written.
    pub(crate) has_excess: bool,
    /// True if the file is shorter than the flushed length of the object.
    pub(crate) is_cut: bool,
    /// True if the file is open for reading only.
    pub(crate) is_read_only: bool,
    /// Flushed state of the object.
    pub(crate) record: Record,
}

impl FoundContents {
    /// Returns the state of an object with an empty file of these first bytes.
    pub(super) fn of_empty(seal: Seal) -> Self {
        let [_, record] = Record::first();
        FoundContents { seal, bytes: 0, has_excess: false, is_cut: false, is_read_only: false, record }
    }
}

/// Returns the first bytes of the file of an empty object, and its seal.
///
/// # Errors
/// Fails if name and label are too long.
pub(super) fn first_bytes(name: &str, label: &[u8]) -> machine::Result<(Vec<u8>, Seal)> {
    let mut bytes = Header::encode(name, label)?;
    let seal = Seal { layout: Layout::V3, identity: header::identity_of(&bytes) };
    for record in Record::first() {
        let (record, record_at) = record.encode(&seal.layout, seal.identity);
        bytes.resize(record_at as usize, 0);
        bytes.extend_from_slice(&record);
    }
    bytes.resize(seal.layout.groups as usize, 0);
    Ok((bytes, seal))
}

/// Reads the header of an object's file, or returns the reason why the file is unusable.
pub(super) fn read_header(file: &impl FileExt) -> io::Result<std::result::Result<Header, Refusal>> {
    let mut bytes = [0; HEADER_BYTES];
    match file.read_exact_at(&mut bytes, 0) {
        Ok(()) => Ok(Header::decode(&bytes)),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
            let why = format!("its file is shorter than the header of {} bytes", HEADER_BYTES);
            Ok(Err(Refusal::Damaged(why)))
        }
        Err(error) => Err(error),
    }
}

/// Reads the header and the state of the file of the object `name`, or returns the reason why the file is unusable.
pub(super) fn read_object(
    file: &impl FileExt,
    file_bytes: u64,
    name: &str,
) -> io::Result<std::result::Result<(Header, FoundContents), Refusal>> {
    let header = match read_header(file)? {
        Ok(header) if header.name == name => header,
        Ok(header) => {
            let why = format!("it calls itself `{}`: was its file renamed?", header.name);
            return Ok(Err(Refusal::Damaged(why)));
        }
        Err(refusal) => return Ok(Err(refusal)),
    };
    let seal = Seal { layout: header.layout, identity: header.identity };
    Ok(read_contents(file, file_bytes, seal)?.map(|contents| (header, contents)))
}

/// Reads the state of an object's file, or returns the reason why the file is unusable. Does not detect missing or
/// changed data; these are reported when they are read.
pub(super) fn read_contents(
    file: &impl FileExt,
    file_bytes: u64,
    seal: Seal,
) -> io::Result<std::result::Result<FoundContents, Refusal>> {
    let Some(in_file) = seal.layout.object_bytes(file_bytes) else {
        let why = format!("its file is shorter than the {} bytes before data", seal.layout.groups);
        return Ok(Err(Refusal::Damaged(why)));
    };
    let mut begin_of_file = vec![0; seal.layout.groups as usize];
    file.read_exact_at(&mut begin_of_file, 0)?;
    let record = match Record::latest(&begin_of_file, &seal.layout, seal.identity) {
        Some(record) => record,
        // Earlier programs wrote no record before the first flush.
        None if !seal.layout.keeps_flushed => Record::default(),
        None => {
            let why = "neither of its two flush records matches its checksum".to_owned();
            return Ok(Err(Refusal::Damaged(why)));
        }
    };
    let bytes = length(file, &seal, &record, in_file)?;
    let is_cut = in_file < bytes;
    let has_excess = file_bytes > seal.layout.file_bytes(bytes);
    if has_excess
        && seal.layout.keeps_flushed
        && Record::is_one_lost(&begin_of_file, &seal.layout, seal.identity)
    {
        let why = format!(
            "one of its two flush records is lost, and the file is longer than the {bytes} bytes of the \
             other record"
        );
        return Ok(Err(Refusal::Damaged(why)));
    }
    Ok(Ok(FoundContents { seal, bytes, has_excess, is_cut, is_read_only: false, record }))
}

/// Returns the length of an object, given that its file has the length for `in_file` bytes: the flushed length, or the
/// end of later writes.
fn length(file: &impl FileExt, seal: &Seal, record: &Record, in_file: u64) -> io::Result<u64> {
    if !seal.layout.keeps_flushed || in_file <= record.bytes {
        return Ok(in_file.max(record.bytes));
    }
    let (flushed, last) = (group_of(record.bytes), group_of(in_file - 1));
    let mut page = vec![0; seal.layout.sums_bytes()];
    for group in (flushed.max(last.saturating_sub(UNFLUSHED_GROUPS_MAX))..=last).rev() {
        file.read_exact_at(&mut page, seal.layout.sums_in_file(group))?;
        for (end, sums) in seal.decode(&page, group, in_file, false).ends(group) {
            // A write that was to extend the last unit may have been interrupted.
            let end = end.min(in_file);
            if end <= record.bytes {
                return Ok(record.bytes);
            }
            if sums.is_end_flushed || is_there(file, seal, end, sums)? {
                return Ok(end);
            }
        }
    }
    Ok(record.bytes)
}

/// Returns true if the unit in which an object ends at `end` matches its checksums.
fn is_there(file: &impl FileExt, seal: &Seal, end: u64, sums: UnitSums) -> io::Result<bool> {
    let at = (end - 1) / UNIT_BYTES * UNIT_BYTES;
    let mut unit = [0; UNIT_BYTES as usize];
    file.read_exact_at(&mut unit[..(end - at) as usize], seal.layout.in_file(at))?;
    Ok(seal.vouching(sums, at, &unit).is_some())
}
