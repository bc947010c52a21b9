//! A request or its answer, with the tag that they share: the header of a message.

use machine::Message;
use serde::{Deserialize, Serialize};

use super::encoding::{decode, encode};
use super::reply::Reply;
use super::request::Request;

/// The version of the protocol. Other versions are refused. If nodes can work without a change, the change gets a
/// [feature](crate::Features) instead of a new version.
pub const VERSION: u8 = 22;

const FRAME_MAGIC: [u8; 2] = *b"SF";

/// A request or an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Frame {
    /// A request with its tag; the answer carries the same tag.
    Request(u64, Request),
    /// The answer to the request with this tag.
    Reply(u64, Reply),
}

impl Frame {
    /// Returns the header with this frame.
    pub fn encode(&self) -> Vec<u8> {
        encode(FRAME_MAGIC, VERSION, self)
    }

    /// Returns the protocol version of a header, if it is not this program's version.
    pub fn other_version(header: &[u8]) -> Option<u8> {
        let version = *header.strip_prefix(&FRAME_MAGIC)?.first()?;
        (version != VERSION).then_some(version)
    }

    /// Decodes a header. The text of the error states the expected input.
    pub fn decode(header: &[u8]) -> Result<Frame, String> {
        if header.len() > Message::HEADER_BYTES_MAX {
            return Err(format!("a header of {} bytes is too long", header.len()));
        }
        decode(FRAME_MAGIC, VERSION, header)
    }
}

#[cfg(test)]
mod tests {
    use layout::Striping;
    use namespace::{FileNumber, WrittenContents};
    use proptest::prelude::*;

    use super::super::{
        BlockWrite, FileId, Flushing, ListedStripe, OpenFor, RecordingStep, StripeHome, StripePlaces,
        WrittenUntil,
    };
    use super::*;
    use crate::error::Failure;

    #[test]
    fn another_protocol_version_is_rejected_with_its_number() {
        let mut header = Frame::Request(1, Request::Describe).encode();
        header[2] = VERSION + 1;
        let error = Frame::decode(&header).unwrap_err();
        assert!(error.contains(&format!("version {}", VERSION + 1)), "{error}");
    }

    proptest! {
        #[test]
        fn encoded_frames_are_decoded(tag: u64, offset: u64, bytes: u32, name in ".{0,50}") {
            let striping = Striping::new(4096, 3).expect("a striping");
            let frames = [
                Frame::Request(tag, Request::Read {
                    file: FileId(offset),
                    stripe: bytes,
                    offset,
                    bytes,
                    is_alone: true,
                }),
                Frame::Request(tag, Request::Write(BlockWrite {
                    until: WrittenUntil::AtDisk,
                    lease: Some(tag),
                    attach: Some(StripeHome { striping, disk: tag }),
                    ..BlockWrite::new(FileId(offset), bytes, offset)
                })),
                Frame::Request(tag, Request::CloseFile {
                    number: FileNumber(offset),
                    used: OpenFor::Writing,
                    written: Some(WrittenContents { end: tag, stored_stripes: bytes, bytes: tag }),
                }),
                Frame::Reply(tag, Reply::Failed(Failure::invalid(name.clone()))),
                Frame::Request(tag, Request::Record(RecordingStep::Fetch)),
                Frame::Reply(tag, Reply::RecordedPart { bytes: name.into_bytes() }),
                Frame::Request(tag, Request::Flush(Flushing::Stripes(StripePlaces {
                    file: FileId(offset),
                    striping,
                    places: vec![(bytes, offset)],
                }))),
                Frame::Reply(tag, Reply::StripesListed {
                    stripes: vec![ListedStripe { file: FileId(tag), disk: bytes, stripe: Some((bytes, offset)) }],
                    more: true,
                    failure: None,
                }),
            ];
            for frame in frames {
                prop_assert_eq!(Frame::decode(&frame.encode()), Ok(frame));
            }
        }

        #[test]
        fn garbage_is_decoded_without_a_panic(bytes: Vec<u8>, cut in 0usize..40) {
            let _ = Frame::decode(&bytes);
            let _ = Frame::decode(&[&FRAME_MAGIC[..], &[VERSION], &bytes].concat());
            let whole = Frame::Request(9, Request::FormTeam { name: "a name of some length".into(), rank: 1, size: 2 }).encode();
            if cut < whole.len() {
                prop_assert!(Frame::decode(&whole[..cut]).is_err());
            }
        }
    }
}
