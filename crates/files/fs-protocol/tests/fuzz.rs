//! Whatever a peer sends or a disk holds is understood or refused, and nothing worse happens.

use fs_protocol::protocol::{Committed, Frame, Label, Request};
use layout::{Extent, View};

use crate::examples::{frames, label};

#[path = "fuzz/examples.rs"]
mod examples;

/// What is understood is understood again when it is said again.
fn look_at_frame(header: &[u8]) {
    if let Ok(frame) = Frame::decode(header) {
        if let Frame::Request(_, Request::Collective(collective)) = &frame {
            look_at_view(&collective.view);
        }
        assert_eq!(Frame::decode(&frame.encode()), Ok(frame));
    }
}

/// A view that was understood can be asked: its members have of every block what they have in their memory.
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
