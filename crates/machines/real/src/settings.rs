//! Settings of a node before its start.

use std::fmt;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use description::DiskDescription;
use machine::NodeId;

use crate::report::Reporter;

/// Settings of a node: its name, its disks, and its peers.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Name of the node, unique among the nodes that communicate.
    pub node: NodeId,
    /// Cluster key. Nodes communicate only if they have the same key.
    pub keys: Keys,
    /// Interface to the operating system.
    pub driver: Driver,
    /// Listening address; port 0 selects any free port. `None` for a node that only calls others.
    pub listen: Option<SocketAddr>,
    /// Nodes to connect to at the start.
    pub peers: Vec<Peer>,
    /// Disks of the node.
    pub disks: Vec<DiskSettings>,
    /// Location of the metadata store, if the node has one.
    pub metadata: Option<MetadataPlace>,
    /// Copies of the metadata store, if configured; only for a store in a directory.
    pub metadata_copies: Option<MetadataCopies>,
    /// Size in bytes of the file system's buffer pool.
    pub buffer_bytes: u64,
    /// Limits of received data and connections, and timeouts.
    pub limits: Limits,
    /// Buffer sizes of the node's sockets.
    pub sockets: SocketBuffers,
    /// Receives the events that no caller learns of.
    pub reporter: Reporter,
}

/// Cluster key of a node, and its use in connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keys {
    /// Key to call others with.
    pub current: Key,
    /// Previous key while it is being replaced: nodes that have only this key can still connect and be connected to.
    pub previous: Option<Key>,
    /// True if connections are encrypted. Otherwise the key only identifies nodes, and checksums detect damage. Nodes
    /// that differ in this setting refuse each other.
    pub encrypts: bool,
}

impl Keys {
    /// Draws a random key, for nodes that share it within a program.
    ///
    /// Fails if the system has no random numbers.
    pub fn draw() -> machine::Result<Self> {
        let mut bytes = [0; Key::BYTES];
        let failed = |error: getrandom::Error| machine::Error::Io {
            what: "cannot create a key".to_owned(),
            why: error.to_string(),
        };
        getrandom::fill(&mut bytes).map_err(failed)?;
        Ok(Keys::new(Key::new(bytes)))
    }

    /// Returns settings with one key and encrypted connections.
    pub fn new(key: Key) -> Self {
        Keys { current: key, previous: None, encrypts: true }
    }

    /// Returns all keys, the current one first.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Key> {
        std::iter::once(&self.current).chain(&self.previous)
    }
}

/// Secret shared by the nodes of one file system.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(blake3::Hash);

impl Key {
    /// Length in bytes.
    pub const BYTES: usize = blake3::KEY_LEN;

    /// Creates a key from these bytes, which must not be guessable.
    pub fn new(bytes: [u8; Self::BYTES]) -> Self {
        // A hash as representation, because hashes are compared in constant time.
        Key(bytes.into())
    }

    /// Returns the bytes of the key, to be written to a file that only its user may read.
    pub fn bytes(&self) -> &[u8; Self::BYTES] {
        self.0.as_bytes()
    }

    /// Derives a separate key for one purpose, which reveals nothing about this key.
    pub(crate) fn derive(&self, purpose: &str) -> [u8; Self::BYTES] {
        blake3::derive_key(purpose, self.0.as_bytes())
    }

    /// Returns a public name of this key: 16 hexadecimal digits.
    pub fn name(&self) -> String {
        let name = self.derive("starfish 2026-11 name of a cluster key");
        name[..8].iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Hides the key.
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

/// Another node and its listening address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Name of the node.
    pub node: NodeId,
    /// Listening address of the node.
    pub address: SocketAddr,
}

/// Disk: a directory for its objects, and an optional model to slow it down to.
#[derive(Clone, Debug)]
pub struct DiskSettings {
    /// Directory of the disk. Created if only its last component is missing.
    pub directory: PathBuf,
    /// Model whose times the disk takes. Without one the disk runs at full speed.
    pub model: Option<DiskDescription>,
}

/// Location of a metadata store.
#[derive(Clone, Debug)]
pub enum MetadataPlace {
    /// Directory, created when the first entry is stored. Its parent must exist, or be the directory of a disk.
    Directory(PathBuf),
    /// Database of a PostgreSQL server, `postgresql://USER:PASSWORD@HOST/DATABASE`, as the libraries of PostgreSQL
    /// define it. Only one node at a time can use it. Fails unless the program is [built with it](HAS_POSTGRES).
    Postgres(String),
}

/// True if the program is built with PostgreSQL, by the feature `postgres`.
pub const HAS_POSTGRES: bool = cfg!(feature = "postgres");

/// Periodic copies of a metadata store, each replacing the previous copy.
#[derive(Clone, Debug)]
pub struct MetadataCopies {
    /// Directory of the copies. Must exist and not be the store's directory.
    pub directory: PathBuf,
    /// Time between two copies, if anything has changed.
    pub every: Duration,
}

/// Limits of the resources that other nodes can use.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Limit of received data, in bytes, that wait for the file system or are used by it. The same number of bytes may
    /// be arriving in addition.
    ///
    /// Received data have their own memory, apart from the file system's pool. If both shared one pool, tasks that hold
    /// received data and wait for a buffer could wait for each other.
    pub receive_bytes: u64,
    /// Limit of connections; more are refused. The descriptor limit of the process may lower it.
    pub connections: usize,
    /// Time limit for a calling node to introduce itself.
    pub handshake: Duration,
    /// Time after which a called node is declared lost if it sends nothing, not even answers to pings. A node that
    /// waits for a slow disk still answers; a stopped, hanging or disconnected node does not.
    pub silence: Duration,
    /// Time limit for reconnecting to a lost node that this one had called, before the sender gets an error. Counted
    /// from the last message of the lost node; attempts take at least half of this time.
    pub recall: Duration,
    /// Time limit at shutdown for sending promised messages and completing transfers.
    pub drain: Duration,
}

/// Sizes in bytes of the buffers of each socket. Default: the system chooses, and adapts the size to the connection,
/// which is usually better. The system may also limit a given size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SocketBuffers {
    /// Size of the send buffer, for data sent and not yet acknowledged.
    pub send_bytes: Option<NonZeroU32>,
    /// Size of the receive buffer, for data received and not yet read.
    pub receive_bytes: Option<NonZeroU32>,
}

/// Interface to the operating system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Driver {
    /// io_uring if the kernel allows it, otherwise polling.
    #[default]
    Automatic,
    /// io_uring; fails if the kernel does not allow it.
    IoUring,
    /// Readiness of sockets, and a pool of threads for files.
    Polling,
}

impl Settings {
    /// Returns settings of a node that does not listen, has no disks, and connects to no other.
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
    /// Returns a disk in `directory` at full speed.
    pub fn plain(directory: PathBuf) -> Self {
        DiskSettings { directory, model: None }
    }

    /// Returns a disk in `directory` that takes the times of `model`.
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
    /// Names of all drivers, as used in settings.
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
    fn drivers_are_parsed_from_their_names() {
        for name in Driver::NAMES {
            assert_eq!(name.parse::<Driver>().map(|driver| driver.to_string()), Ok(name.to_owned()));
        }
        assert!("kqueue".parse::<Driver>().expect_err("unknown").contains("io_uring"));
    }
}
