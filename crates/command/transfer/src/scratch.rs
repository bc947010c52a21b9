//! Files without names, for measurements. Only their creator knows their numbers; the namespace does not.

use std::collections::BTreeMap;

use fs::{FileId, NumberedFile};
use layout::Striping;
use node::{ConnectedNode, Result};

/// Remedy for stripes of such a file that may not have been removed.
pub const LEFT: &str =
    "Stripes of unnamed files may be left: `starfish fsck --repair --remove-unnamed` removes them.";

/// Describes a new file over all disks, in blocks of `block_bytes` bytes. The last argument is its name in error
/// messages.
pub async fn describe(connection: &ConnectedNode, what: &str, block_bytes: u64) -> Result<NumberedFile> {
    let striping = Striping::new(block_bytes, connection.client.disks()).map_err(Box::<fs::Error>::from);
    let striping = connection.explained(what, striping)?;
    let described = connection.client.new_numbered(node::new_file_id()?, striping).await;
    connection.explained(what, described)
}

/// Describes a new file on these disks, in blocks of `block_bytes` bytes. Error messages call it by the given name.
pub async fn describe_on(
    connection: &ConnectedNode,
    what: &str,
    block_bytes: u64,
    disks: &[u32],
) -> Result<NumberedFile> {
    let described = connection.client.new_numbered_on(node::new_file_id()?, block_bytes, disks).await;
    connection.explained(what, described)
}

/// Removes these files. Missing ones are no error.
pub async fn remove<'a>(
    connection: &ConnectedNode,
    files: impl IntoIterator<Item = &'a NumberedFile>,
) -> Result<()> {
    let files: Vec<FileId> = files.into_iter().map(|file| file.number).collect();
    connection.explained("cannot remove files", connection.client.remove_numbered(&files).await).map(drop)
}

/// Files, by the names that jobs use for them.
pub type JobFiles = BTreeMap<String, NumberedFile>;
