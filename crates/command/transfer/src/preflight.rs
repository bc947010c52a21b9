//! Checks before an upload, so that it does not fail in the middle of the file.

use command_line::failure::{Failure, Result};
use command_line::say;
use machine::Message;
use node::{ConnectedNode, Size};

/// File size in bytes from which the free space is checked before the upload. For smaller files the query would take
/// longer than the upload.
const WORTH_ASKING: u64 = 64 << 20;

/// Block size in bytes below which the user gets a warning: each block is a request, so even a small file takes
/// minutes.
const BLOCK_BYTES_FEW: u64 = 4 << 10;

/// Fails for block sizes that no agent accepts, and warns of those that are slow.
pub fn check_block(block: Size) -> Result<()> {
    let most = Message::PAYLOAD_BYTES_MAX;
    if !(1..=most).contains(&block.0) {
        let why = format!(
            "expected a block size from 1 B to {}, and at most the --block-max of the agents",
            Size(most)
        );
        return Err(Failure::usage(format!("--block {block}"), why));
    }
    if block.0 < BLOCK_BYTES_FEW {
        say!(
            "starfish: --block {block}: each block is a separate request, so this is slow. Usual are 64 KiB \
             and more."
        );
    }
    Ok(())
}

/// Fails if the agents report too little free space for a file. A file to be replaced is kept until the new one is
/// complete, so the space of the old file does not count as free.
pub async fn check_space(connection: &ConnectedNode, name: &str, bytes: u64) -> Result<()> {
    if bytes < WORTH_ASKING {
        return Ok(());
    }
    check_room(name, bytes, room(&disks(connection).await?))
}

/// Fails if a file needs more bytes than are free. Succeeds if the free space is unknown.
fn check_room(name: &str, bytes: u64, room: Option<u64>) -> Result<()> {
    match room {
        Some(free) if free < bytes => {
            let (needs, free) = (Size(bytes).rounded(), Size(free).rounded());
            let failure =
                Failure::new(name, format!("it needs {needs}, and the disks have room for only {free}"));
            Err(failure.remedy(
                "Every disk gets an equal share, so the fullest disk is the limit. Remove files with \
                 `starfish rm`, or leave out agents with full disks.",
            ))
        }
        _ => Ok(()),
    }
}

/// Requests the free space of each disk from the agents.
async fn disks(connection: &ConnectedNode) -> Result<Vec<Free>> {
    let client = &connection.client;
    let mut disks = Vec::new();
    for &node in client.io_nodes() {
        let examined = connection.explained("cannot get the free space", client.examine(node).await)?;
        let computer = examined.computer.map(|computer| computer.id);
        disks.extend(examined.disks.into_iter().map(|disk| Free {
            device: computer.zip(disk.device),
            free: disk.space.map(|space| space.free),
        }));
    }
    Ok(disks)
}

/// Free space of a disk in bytes, and its device: the identity of the computer, and the number of the device on this
/// computer.
struct Free {
    device: Option<(u64, u64)>,
    free: Option<u64>,
}

/// Returns the maximum size in bytes of a file striped evenly over all these disks, or `None` if unknown. Disks on one
/// device share its free space.
fn room(disks: &[Free]) -> Option<u64> {
    let share = |disk: &Free| {
        let same = disks.iter().filter(|other| disk.device.is_some() && other.device == disk.device).count();
        disk.free.map(|free| free / same.max(1) as u64)
    };
    let smallest =
        disks.iter().map(share).try_fold(u64::MAX, |smallest, share| Some(smallest.min(share?)))?;
    Some(smallest.saturating_mul(disks.len() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_does_not_fit_is_rejected_with_both_sizes() {
        let text = check_room("huge", 15 << 40, Some(1 << 40)).expect_err("too little room").to_string();
        assert!(text.contains("huge: it needs 15.0 TiB, and the disks have room for only 1.0 TiB"), "{text}");
        for room in [Some(15 << 40), None] {
            assert!(check_room("huge", 15 << 40, room).is_ok());
        }
    }

    #[test]
    fn the_fullest_device_limits_the_free_space() {
        let disk = |device: Option<u64>, free| Free { device: device.map(|device| (7, device)), free };
        let apart = [disk(Some(1), Some(100)), disk(Some(2), Some(30)), disk(None, Some(500))];
        assert_eq!(room(&apart), Some(90));
        let together = [disk(Some(1), Some(100)), disk(Some(1), Some(100)), disk(Some(2), Some(500))];
        assert_eq!(room(&together), Some(150));
        assert_eq!(room(&[disk(Some(1), Some(100)), disk(Some(2), None)]), None, "unknown");
    }

    #[test]
    fn invalid_block_sizes_are_rejected() {
        for block in [0, (4 << 20) + 1] {
            let text = check_block(Size(block)).expect_err("no block").to_string();
            assert!(text.contains("from 1 B to 4 MiB") && text.contains("--block-max"), "{text}");
        }
        assert!(check_block(Size(4 << 20)).is_ok());
    }
}
