//! Any message of a peer and any bytes of a disk are decoded or rejected, without a panic.

use fs_protocol::protocol::{Committed, Frame, Label, Request, VERSION};
use layout::{Extent, View};

use crate::examples::{frames, label};

#[path = "fuzz/examples.rs"]
mod examples;

/// Checks that a decoded frame, encoded and decoded again, is the same.
fn look_at_frame(header: &[u8]) {
    if let Ok(frame) = Frame::decode(header) {
        if let Frame::Request(_, Request::Collective(collective)) = &frame {
            look_at_view(&collective.view);
        }
        assert_eq!(Frame::decode(&frame.encode()), Ok(frame));
    }
}

/// Checks that a decoded view can be queried: each member's part of a block lies within its memory.
fn look_at_view(view: &View) {
    for member in [0, 1, u32::MAX] {
        let bytes = view.node_bytes(member);
        assert!(view.chunks(member).take(20).all(|chunk| chunk.memory_offset + chunk.bytes <= bytes));
    }
    for offset in [0, 4096, 1 << 40] {
        let pieces = view.pieces(Extent::new(offset, 4096)).take(50);
        assert!(pieces.map(|piece| piece.bytes).sum::<u64>() <= 50 * 4096);
    }
}

fn look_at_label(bytes: &[u8]) {
    if let Ok(label) = Label::decode(bytes) {
        assert_eq!(Label::decode(&label.encode()), Ok(label));
        assert!(label.stripe < label.striping.stripe_count(), "{label}");
    }
    if let Ok(Some(committed)) = Committed::decode(bytes) {
        assert_eq!(Committed::decode(&committed.encode()), Ok(Some(committed)));
    }
}

/// All releases of a protocol version write the same bytes: kinds of requests and replies are added after the
/// others, fields not at all. `STARFISH_FRAMES=write cargo test -p fs-protocol --test fuzz` adds examples, at
/// any place, and rewrites all of them for another version.
#[test]
fn all_releases_of_a_version_encode_frames_identically() {
    const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fuzz/frames.txt");
    let in_hex = |frame: Vec<u8>| frame.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let lines: Vec<String> =
        [format!("version {VERSION}")].into_iter().chain(frames().into_iter().map(in_hex)).collect();
    let text = std::fs::read_to_string(PATH).unwrap_or_default();
    let known: Vec<String> = text.lines().map(str::to_owned).collect();
    let mut left = lines.iter();
    let has_all = known.iter().all(|line| left.any(|other| other == line));
    let may_be_written = known.first() != lines.first() || has_all;
    assert!(
        may_be_written,
        "releases of {} would not understand this one: give the protocol another version",
        lines[0]
    );
    if std::env::var_os("STARFISH_FRAMES").is_some_and(|wish| wish == "write") {
        std::fs::write(PATH, lines.join("\n") + "\n").expect("room");
    } else {
        assert!(known == lines, "{PATH} lacks examples: STARFISH_FRAMES=write writes them");
    }
}

#[test]
fn requests_and_replies() {
    fuzz::target!("requests_and_replies", |input| {
        look_at_frame(input);
        look_at_frame(&fuzz::changed(&frames(), input));
    });
}

#[test]
fn labels() {
    fuzz::target!("labels", |input| {
        look_at_label(input);
        let earlier = b"SL\x01\x07\x80\x40\x04\x03".to_vec();
        let examples = [label().encode(), earlier, Committed { bytes: 77_777 }.encode()];
        look_at_label(&fuzz::changed(&examples, input));
    });
}
