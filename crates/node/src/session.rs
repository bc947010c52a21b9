//! A session: the node thread as programs have it, and operations on names.

use std::fmt;
use std::io::{Read, Write};
use std::sync::Arc;

use fs::PagedFile;
use layout::Striping;
use real::RealMachine;

use crate::client_node::ClientNode;
use crate::error::{Error, ErrorKind, Result};
use crate::handle::Handle;
use crate::pending::Pending;
use crate::random::new_file_id;
use crate::settings::{OpenOptions, Settings};
use crate::stat::Stat;
use crate::thread::NodeThread;
use crate::whole_file::{self, CopyError};

/// A connection to the file system, usable from any thread. Cloning gives another handle on the same; dropping the
/// last of them and of the files opened with it ends the node thread.
#[derive(Clone)]
pub struct Session {
    node: Arc<NodeThread>,
}

impl Session {
    /// Starts a node thread and connects it to the agents.
    pub fn start(settings: Settings) -> Result<Session> {
        Ok(Session { node: Arc::new(NodeThread::start(settings)?) })
    }

    /// Opens a file, or makes one.
    pub fn open(&self, name: &str, options: OpenOptions) -> Result<Handle> {
        options.check(name)?;
        let owned = name.to_owned();
        let (number, page_bytes) = self.node.call(name, move |node| async move {
            let file = open(&node.client, &owned, options).await?;
            if let Some(write_cache) = node.client.write_cache.as_ref().filter(|_| !options.writes()) {
                // What others of the job have written is to be read.
                node.take_in_writes().await?;
                node.client.told(&owned, write_cache.flush_file(file.file()).await)?;
                node.client.told(&owned, file.refresh().await)?;
            }
            let page_bytes = file.page_bytes();
            Ok((node.files.enter(&node.client, &owned, file), page_bytes))
        })?;
        Ok(Handle::new(self.node.clone(), name, options, number, page_bytes))
    }

    /// The metadata of a file.
    pub fn stat(&self, name: &str) -> Result<Stat> {
        let owned = name.to_owned();
        self.node.call(name, move |node| async move {
            let stat = node.client.told(&owned, node.client.cache.stat(&owned).await)?;
            Ok(Stat::of(stat.bytes, stat.striping))
        })
    }

    /// Removes a file, or whatever is left of one.
    pub fn unlink(&self, name: &str) -> Result<()> {
        let owned = name.to_owned();
        self.node.call(name, move |node| async move {
            node.client.told(&owned, node.client.cache.unlink(&owned).await)
        })
    }

    /// The names of all files, sorted.
    pub fn list(&self) -> Result<Vec<String>> {
        const WHAT: &str = "listing the files";
        self.node
            .call(WHAT, |node| async move { node.client.told(WHAT, node.client.cache.client().list().await) })
    }

    /// Copies a whole file to `output`, which comes back, past the page cache: what this session has not written out is
    /// not in it. `moved` hears how many more bytes have come.
    ///
    /// # Errors
    /// Those of the file, and of writing to `output`.
    pub fn download<W: Write + Send + 'static>(
        &self,
        name: &str,
        output: W,
        moved: impl Fn(u64) + Clone + Send + 'static,
    ) -> std::result::Result<W, CopyError> {
        let owned = name.to_owned();
        self.node.call(name, move |node| async move {
            let connection = &node.client.connection;
            let file = connection.open(&owned, false).await?;
            Ok(whole_file::download(connection, &file, output, moved).await)
        })?
    }

    /// Makes a file of this name, and begins to copy all that `input` holds to it, past the page cache. The answer is
    /// the input, and the number of bytes it had; then the file is on the disks, under its name. A file that is
    /// replaced stays until then. `moved` hears how many more bytes have gone.
    ///
    /// If copying fails the file stays as it is, unfinished: see [`discard`](Self::discard).
    ///
    /// # Errors
    /// If no such file can be made, or there is one that is not to be replaced.
    pub fn begin_upload<R: Read + Send + 'static>(
        &self,
        name: &str,
        replace: bool,
        input: R,
        moved: impl Fn(u64) + Clone + Send + 'static,
    ) -> Result<Pending<std::result::Result<(R, u64), CopyError>>> {
        let (made, is_made) = flume::bounded(1);
        let owned = name.to_owned();
        let copying = self.node.begin(&name.into(), move |node| async move {
            let (connection, settings) = (&node.client.connection, &node.client.settings);
            let striping = connection.striping(settings.block_bytes, settings.disks)?;
            let file = connection.create(&owned, striping, replace).await?;
            // Who has begun this waits for it.
            let _ = made.send(());
            Ok(whole_file::upload(connection, &file, input, moved).await)
        });
        match is_made.recv() {
            Ok(()) => Ok(copying),
            Err(_) => Err(copying.wait().err().unwrap_or_else(|| Error::closed(name))),
        }
    }

    /// Removes the unfinished file of this name, if there is one.
    ///
    /// # Errors
    /// If it cannot be removed.
    pub fn discard(&self, name: &str) -> Result<()> {
        let owned = name.to_owned();
        self.node.call(name, move |node| async move { node.client.connection.discard(&owned).await })
    }

    /// Flushes everything written to the disks, removes temporary files, and reports any write that failed.
    ///
    /// The node thread ends with the last handle of the session and its files.
    pub fn finish(&self) -> Result<()> {
        const WHAT: &str = "writing out what was written behind";
        self.node.call(WHAT, |node| async move {
            let ended = node.end_write_cache().await;
            ended.and(node.client.told(WHAT, node.client.cache.finish().await))
        })
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Session")
    }
}

/// Opens a file as `options` say.
async fn open(client: &ClientNode, name: &str, options: OpenOptions) -> Result<PagedFile<RealMachine>> {
    let wanted = striping(client, options)?;
    if options.create_new {
        return create(client, name, wanted).await;
    }
    match client.told(name, client.cache.open(name).await) {
        Ok(file) if options.truncate => emptied(client, name, file, wanted).await,
        // What others have left unfinished has nothing that could be kept.
        Err(error) if error.kind() == ErrorKind::Unfinished && options.create && options.truncate => {
            create(client, name, wanted).await
        }
        Err(error) if error.kind() == ErrorKind::NotFound && options.create => {
            match create(client, name, wanted).await {
                // Somebody made it meanwhile.
                Err(error) if error.kind() == ErrorKind::Exists => {
                    client.told(name, client.cache.open(name).await)
                }
                made => made,
            }
        }
        opened => opened,
    }
}

/// How a file is striped that is made now.
fn striping(client: &ClientNode, options: OpenOptions) -> Result<Striping> {
    let block_bytes = options.block_bytes.unwrap_or(client.settings.block_bytes);
    client.connection.striping(block_bytes, client.settings.disks)
}

async fn create(client: &ClientNode, name: &str, striping: Striping) -> Result<PagedFile<RealMachine>> {
    let file = new_file_id()?;
    client.told(name, client.cache.create_striped(name, file, striping).await)
}

/// The file without contents. If it is to be striped differently, it is another one, which replaces it when it is
/// closed.
async fn emptied(
    client: &ClientNode,
    name: &str,
    file: PagedFile<RealMachine>,
    wanted: Striping,
) -> Result<PagedFile<RealMachine>> {
    if file.striping() == wanted {
        client.told(name, file.truncate(0).await)?;
        return Ok(file);
    }
    drop(file);
    client.told(name, client.cache.create_replacing(name, new_file_id()?, wanted).await)
}
