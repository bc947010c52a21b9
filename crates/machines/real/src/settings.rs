//! What a node can be told before it starts.

use std::fmt;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use description::DiskDescription;
use machine::NodeId;

use crate::report::Reporter;

/// How a node is to be: its name, its disks, and whom it talks to.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The node's name, unique among the nodes that talk to each other.
    pub node: NodeId,
    /// The cluster key. Nodes talk to each other if they have the same.
    pub keys: Keys,
    /// How the node talks to the operating system.
    pub driver: Driver,
    /// Where the node listens for others; port 0 takes any free one. A node that only calls has none.
    pub listen: Option<SocketAddr>,
    /// Nodes to connect to at the start.
    pub peers: Vec<Peer>,
    /// The node's disks.
    pub disks: Vec<DiskSettings>,
    /// Where its store of metadata is, if it is to have one.
    pub metadata: Option<MetadataPlace>,
    /// Where copies of that store go, if there are to be any: only of one in a directory.
    pub metadata_copies: Option<MetadataCopies>,
    /// Size in bytes of the file system's buffer pool.
    pub buffer_bytes: u64,
    /// What the node takes from others before they have to wait, and how long it waits for them.
    pub limits: Limits,
    /// The buffers of the node's sockets.
    pub sockets: SocketBuffers,
    /// Takes the reports of which no caller is told.
    pub reporter: Reporter,
}

/// The cluster key of a node, and how its connections use it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keys {
    /// The key to call others with.
    pub current: Key,
    /// The key before that, while it is being replaced: nodes that have only this one are let in and called, too.
    pub previous: Option<Key>,
    /// True if connections are encrypted. Otherwise the key only identifies nodes, and checksums detect damage. Nodes
    /// that differ in this do not talk to each other.
    pub encrypts: bool,
}

impl Keys {
    /// A new key at random, for nodes that share it within a program.
    ///
    /// Fails if the system has no random numbers.
    pub fn draw() -> machine::Result<Self> {
        let mut bytes = [0; Key::BYTES];
        let failed = |error: getrandom::Error| machine::Error::Io {
            what: "drawing a key".to_owned(),
            why: error.to_string(),
        };
        getrandom::fill(&mut bytes).map_err(failed)?;
        Ok(Keys::new(Key::new(bytes)))
    }

    /// One key, and encrypted connections.
    pub fn new(key: Key) -> Self {
        Keys { current: key, previous: None, encrypts: true }
    }

    /// All keys, the current one first.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Key> {
        std::iter::once(&self.current).chain(&self.previous)
    }
}

/// The secret that nodes of one file system share.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(blake3::Hash);

impl Key {
    /// Length in bytes.
    pub const BYTES: usize = blake3::KEY_LEN;

    /// The key of these bytes, which must not be guessable.
    pub fn new(bytes: [u8; Self::BYTES]) -> Self {
        // Hashes are compared in constant time, so it is one.
        Key(bytes.into())
    }

    /// The bytes of the key, to be written to a file that only its user may read.
    pub fn bytes(&self) -> &[u8; Self::BYTES] {
        self.0.as_bytes()
    }

    /// A key of its own for one use, which reveals nothing of this one.
    pub(crate) fn derive(&self, purpose: &str) -> [u8; Self::BYTES] {
        blake3::derive_key(purpose, self.0.as_bytes())
    }

    /// A name of this key that may be shown: 16 hexadecimal digits.
    pub fn name(&self) -> String {
        let name = self.derive("starfish 2026-11 name of a cluster key");
        name[..8].iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Says only that it is one.
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

/// Another node and where it listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its name.
    pub node: NodeId,
    /// Its address.
    pub address: SocketAddr,
}

/// A disk: a directory for its objects, and perhaps a model of how slow it is to be.
#[derive(Clone, Debug)]
pub struct DiskSettings {
    /// The directory. It is made if only its last part is missing.
    pub directory: PathBuf,
    /// The disk whose times the disk is to take. Without one it is as fast as it can.
    pub model: Option<DiskDescription>,
}

/// Where a store of metadata is.
#[derive(Clone, Debug)]
pub enum MetadataPlace {
    /// In a directory, which is made when there is something to keep, in a directory that is there, or is that of a
    /// disk.
    Directory(PathBuf),
    /// In a database of a PostgreSQL server, `postgresql://USER:PASSWORD@HOST/DATABASE`, as the libraries of PostgreSQL
    /// have it. One node at a time can use it. Fails unless the program is [built with it](HAS_POSTGRES).
    Postgres(String),
}

/// True if the program is built with PostgreSQL, by the feature `postgres`.
pub const HAS_POSTGRES: bool = cfg!(feature = "postgres");

/// Copies of a store of metadata, each in place of the one before.
#[derive(Clone, Debug)]
pub struct MetadataCopies {
    /// The directory they are made in, which is there and is not the store's own.
    pub directory: PathBuf,
    /// The time from one copy to the next, if anything has changed.
    pub every: Duration,
}

/// Bounds on what others can demand of a node.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Bytes of received data that wait for the file system or are in its hands. As much again may be on its way in.
    ///
    /// They have memory of their own, apart from the file system's pool: if both shared one, tasks that
    /// hold data received and wait for a buffer could wait for each other.
    pub receive_bytes: u64,
    /// Connections, beyond which others are refused. There are never more than the process has descriptors for.
    pub connections: usize,
    /// Time a node that calls this one has for introducing itself.
    pub handshake: Duration,
    /// How long a node that this one calls, or has called, may say nothing, not even when it is asked, before it is
    /// given up. A node that waits for a slow disk answers; one that is stopped, hung or cut off does not.
    pub silence: Duration,
    /// How long a node that this one has called and lost is called again when something is to be sent to it, before the
    /// sender is told: this long from its last word, but half of it at least.
    pub recall: Duration,
    /// Time the node takes at its end to send what was promised and to see its transfers complete.
    pub drain: Duration,
}

/// How large the buffers of each socket are, in bytes. Without a number the system chooses, and adapts its choice to
/// the connection, which is mostly better. The system may bound a number, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SocketBuffers {
    /// What has been sent and not yet arrived.
    pub send_bytes: Option<NonZeroU32>,
    /// What has arrived and was not yet taken.
    pub receive_bytes: Option<NonZeroU32>,
}

/// How a node talks to the operating system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Driver {
    /// io_uring where the kernel allows it, else polling.
    #[default]
    Automatic,
    /// io_uring, or fail.
    IoUring,
    /// Readiness of sockets, and a pool of threads for files.
    Polling,
}

impl Settings {
    /// A node that does not listen, has no disks, and connects to no other.
    pub fn new(node: NodeId, keys: Keys) -> Self {
        Settings {
            node,
            keys,
            driver: Driver::default(),
            listen: None,
            peers: Vec::new(),
            disks: Vec::new(),
            metadata: None,
            metadata_copies: None,
            buffer_bytes: 64 << 20,
            limits: Limits::default(),
            sockets: SocketBuffers::default(),
            reporter: Reporter::default(),
        }
    }
}

impl DiskSettings {
    /// A disk in `directory`, as fast as it can.
    pub fn plain(directory: PathBuf) -> Self {
        DiskSettings { directory, model: None }
    }

    /// A disk in `directory` that takes the times of `model`.
    pub fn modelled(directory: PathBuf, model: DiskDescription) -> Self {
        DiskSettings { directory, model: Some(model) }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            receive_bytes: 64 << 20,
            connections: 1024,
            handshake: Duration::from_secs(2),
            silence: Duration::from_secs(10),
            recall: Duration::from_secs(10),
            drain: Duration::from_secs(5),
        }
    }
}

impl Driver {
    /// The names of all drivers, as settings use them.
    pub const NAMES: [&'static str; 3] = ["automatic", "io_uring", "polling"];
}

impl fmt::Display for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::NAMES[*self as usize])
    }
}

impl FromStr for Driver {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "automatic" => Ok(Driver::Automatic),
            "io_uring" => Ok(Driver::IoUring),
            "polling" => Ok(Driver::Polling),
            other => Err(format!("no driver is called `{other}`: use one of {}", Self::NAMES.join(", "))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drivers_are_known_by_their_names() {
        for name in Driver::NAMES {
            assert_eq!(name.parse::<Driver>().map(|driver| driver.to_string()), Ok(name.to_owned()));
        }
        assert!("kqueue".parse::<Driver>().expect_err("unknown").contains("io_uring"));
    }
}
