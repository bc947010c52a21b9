//! Fuzz test: any contents of a disk's directory are decoded or rejected.

use super::header::Header;
use super::layout::{HEADER_BYTES, Layout};
use super::name::{self, Decoded, ObjectFileKind};
use super::record::Record;

const IDENTITY: u64 = 77;

/// Checks that a decoded record can be encoded and decoded again; decoding may sort its groups.
fn look_at_records(bytes: &[u8]) {
    for layout in [Layout::V2, Layout::V3] {
        let Some(record) = Record::latest(bytes, &layout, IDENTITY) else { continue };
        let (encoded, at) = record.encode(&layout, IDENTITY);
        let mut file = vec![0; layout.groups as usize];
        file[at as usize..at as usize + encoded.len()].copy_from_slice(&encoded);
        assert_eq!(Record::latest(&file, &layout, IDENTITY), Some(record));
    }
}

fn look_at_header(bytes: &[u8]) {
    let mut whole = [0; HEADER_BYTES];
    let taken = bytes.len().min(HEADER_BYTES);
    whole[..taken].copy_from_slice(&bytes[..taken]);
    if let Ok(header) = Header::decode(&whole) {
        assert!(header.name.len() + header.label.len() <= HEADER_BYTES);
    }
}

/// Checks that two file names never name the same object.
fn look_at_name(bytes: &[u8]) {
    let file_name = String::from_utf8_lossy(bytes);
    if let Some(Decoded::Name(name)) = name::decode(&file_name) {
        assert!(
            ObjectFileKind::ALL.into_iter().any(|kind| name::encode(&name, kind) == file_name),
            "{file_name}"
        );
    }
}

/// Returns the first bytes of a file, up to the end of a record.
fn with_record(layout: Layout, sequence: u64) -> Vec<u8> {
    let written = [0..2, 5..7, 9..10].into_iter().collect();
    let record = Record { sequence, bytes: 10 << 20, written, note: b"a note".to_vec() };
    let (encoded, at) = record.encode(&layout, IDENTITY);
    let mut file = vec![0; at as usize];
    file.extend(encoded);
    file
}

#[test]
fn records() {
    fuzz::target!("records", |input| {
        look_at_records(input);
        // The fuzzer changes only the record itself.
        for (layout, sequence) in [(Layout::V2, 2), (Layout::V3, 2), (Layout::V3, 3)] {
            let mut file = with_record(layout, sequence);
            let record = file.split_off(layout.records[(sequence % 2) as usize] as usize);
            file.extend(fuzz::changed(&[record], input));
            look_at_records(&file);
        }
    });
}

#[test]
fn headers() {
    fuzz::target!("headers", |input| {
        look_at_header(input);
        look_at_header(&fuzz::changed(&[Header::encode("a name", b"a label").expect("short")], input));
    });
}

#[test]
fn file_names() {
    fuzz::target!("file_names", |input| {
        look_at_name(input);
        let example = |name| name::encode(name, ObjectFileKind::New).into_bytes();
        let long = "x".repeat(300);
        look_at_name(&fuzz::changed(&[example("a/b %.dat"), example(".hidden"), example(&long)], input));
    });
}
