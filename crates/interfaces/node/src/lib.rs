//! Common base of all interfaces to the file system: a thread that is a client node, and handles of files that any
//! thread may use.
//!
//! A [`Session`] is a separate thread, the *node thread*: a client node of the real machine with the file system's
//! client and its page cache. A [`Handle`] is an open file. It has no position: each call includes one, and any number
//! of calls of any number of threads may be in flight. Each call returns a [`Pending`] result: wait for it, or await
//! it.
//!
//! ```no_run
//! use node::{OpenOptions, Session, Settings};
//!
//! # fn main() -> node::Result<()> {
//! let session = Session::start(Settings::new(node::agents::find()?))?;
//! let numbers = session.open("numbers", OpenOptions::new().read(true).write(true).create(true))?;
//! let both = [numbers.begin_write(0, vec![1; 100]), numbers.begin_write(1 << 20, vec![2; 100])];
//! for written in both {
//!     written.wait()?;
//! }
//! let mut some = [0; 10];
//! numbers.read_at(1 << 20, &mut some)?;
//! numbers.close()
//! # }
//! ```
//!
//! ```text
//!   any thread                                     node thread
//!
//!   Handle: read_at, write_at, append, ...          a task for each call
//!      --------- a call, with its Pending ------>     client, page cache, connections
//!      <-------- its answer; pages, lent -------
//! ```
//!
//! Map of the code, in reading order:
//!
//! - [`Session`] in `session.rs`, [`Handle`] in `handle.rs`, [`Pending`] in `pending.rs`: start here.
//! - `settings.rs`: options of a session and of an open file; [`Size`] in `size.rs`: bytes as people write them.
//! - [`agents`]: the agents of the file system; [`key`]: the secret shared with them; `random.rs`: identities.
//! - `thread.rs`: the node thread; `client_node.rs`: its client.
//! - `contents.rs`: files by their paths; `stat.rs`: metadata of a file.
//! - `hidden.rs`: temporary names of incomplete files.
//! - `open_file.rs`: the node thread's half of an open file; `uncached_reads.rs`: reads that bypass the page cache.
//! - `lease.rs`: pages lent to other threads.
//! - `write_queue.rs`: the queue of writes to the write cache; `cached_write.rs` fills this queue; `queue_drain.rs`
//!   empties it.
//! - `temporary_paths.rs`: files that are removed with the session.
//! - [`ConnectedNode`] in `connected.rs`: a connected node, for programs that need no separate node thread.
//! - [`whole_file`]: copies whole files to and from the agents; [`sparse`]: holes of these files.
//! - [`BlockingWork`] in `blocking_work.rs`: work that would block a node.
//! - [`AgentService`] in `serving.rs`: the other side, an agent.
//! - [`Team`] in `team.rs`: processes with barriers and collective reads and writes; `teams.rs`: those of a node
//!   thread.
//! - `team_connect.rs`: connections between the members of a team.
//! - [`Tree`] in `tree.rs`: the namespace; `tree_node.rs`: its half on the node thread.
//! - `node_trace.rs`: the work of a node of this process, added to a trace file.
//! - [`TracedCall`] in `traced_call.rs`: the calls of the program that cause this work; `thread_clock.rs`: times of
//!   these calls.
//! - `names.rs`, `error.rs`, `errno.rs`: errors, with the agent and a remedy; `counted.rs`: counts in messages.
//!
//! Not here, on purpose: positions and buffers (crate `pdiol`); prefetching, eviction and writing behind (the page
//! cache of `fs`).

pub mod agents;
mod blocking_work;
mod cached_write;
mod client_node;
mod connected;
mod contents;
mod counted;
mod errno;
mod error;
mod handle;
mod hidden;
pub mod key;
mod lease;
mod names;
mod node_trace;
mod open_file;
mod pending;
mod queue_drain;
mod random;
mod serving;
mod session;
mod settings;
mod size;
pub mod sparse;
mod stat;
mod team;
mod team_connect;
mod teams;
mod temporary_paths;
mod thread;
mod thread_clock;
mod traced_call;
mod tree;
mod tree_node;
mod uncached_reads;
pub mod whole_file;
mod write_queue;

pub use agents::Agent;
pub use blocking_work::BlockingWork;
pub use connected::{ConnectedNode, new_tree};
pub use counted::counted;
pub use error::{Error, ErrorKind, Result};
pub use fs::{Advice, CollectiveMethod, LockMode, LockRange, OpenTreeFile, Prefetch, SelectedSettings};
pub use handle::Handle;
pub use hidden::{hidden_name, is_hidden};
pub use lease::LentPage;
pub use machine::LentMemory;
pub use node_trace::NodeTrace;
pub use pending::Pending;
pub use random::{new_file_id, new_node_id, random};
pub use real::{Driver, Report, Reporter, SocketBuffers};
pub use serving::{AgentService, serve};
pub use session::Session;
pub use settings::{BLOCK, CacheWrites, OpenOptions, Settings, TRACE_VARIABLE, flush_seconds};
pub use size::Size;
pub use stat::{FileAttributes, Stat};
pub use team::Team;
pub use thread::undisturbed;
pub use traced_call::TracedCall;
pub use tree::Tree;
pub use tree_node::TreeNode;
pub use uncached_reads::UncachedReads;
