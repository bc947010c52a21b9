//! Session: the node thread for programs, and operations on names.

use std::fmt;
use std::io::{Read, Write};
use std::sync::Arc;

use crate::contents;
use crate::error::{Error, Result};
use crate::handle::Handle;
use crate::pending::Pending;
use crate::settings::{OpenOptions, Settings};
use crate::sparse::Dense;
use crate::stat::Stat;
use crate::thread::NodeThread;
use crate::tree::Tree;
use crate::whole_file::{self, CopyError, Method, Uploaded};

/// Connection to the file system, usable from any thread. Clones share it. Dropping the last clone and the last file
/// opened with it ends the node thread.
#[derive(Clone)]
pub struct Session {
    node: Arc<NodeThread>,
}

impl Session {
    /// Starts a node thread and connects it to the agents.
    pub fn start(settings: Settings) -> Result<Session> {
        Ok(Session { node: Arc::new(NodeThread::start(settings)?) })
    }

    pub(crate) fn node_thread(&self) -> &Arc<NodeThread> {
        &self.node
    }

    /// Returns the namespace of the set.
    pub fn tree(&self) -> Tree {
        Tree::new(self.node.clone())
    }

    /// Asks the agents for their disks, unless these are known already. Opening or creating a file does the same, so
    /// the first open is faster after this call.
    ///
    /// # Errors
    /// If an agent does not answer.
    pub fn learn_disks(&self) -> Result<()> {
        const WHAT: &str = "cannot get the list of disks";
        self.node.call(WHAT, |node| async move {
            node.client.explained(WHAT, node.client.tree.all_disks().await).map(drop)
        })
    }

    /// Opens a file, or creates one.
    ///
    /// # Errors
    /// If it cannot be opened or created with these options.
    pub fn open(&self, name: &str, options: OpenOptions) -> Result<Handle> {
        self.open_path(name.as_bytes(), options)
    }

    /// Opens a file by a path that need not be UTF-8, or creates one.
    ///
    /// # Errors
    /// If it cannot be opened or created with these options.
    pub fn open_path(&self, path: &[u8], options: OpenOptions) -> Result<Handle> {
        let name = &*String::from_utf8_lossy(path);
        options.check(name)?;
        let (owned, path) = (name.to_owned(), path.to_vec());
        let (number, page_bytes) = self.node.call(name, move |node| async move {
            let file = contents::open(&node.client, &owned, &path, options).await?;
            if let Some(write_cache) = node.client.write_cache.as_ref().filter(|_| !options.writes()) {
                // Flush the write caches first: the reader must see data of other members of the job.
                node.take_in_writes().await?;
                node.client.explained(&owned, write_cache.flush_file(file.paged().file()).await)?;
                node.client.explained(&owned, file.attributes().await)?;
            }
            let page_bytes = file.paged().page_bytes();
            Ok((node.files.enter(&node.client, &owned, Some(path), file), page_bytes))
        })?;
        Ok(Handle::new(self.node.clone(), name, options, number, page_bytes))
    }

    /// Returns the metadata of a file.
    pub fn stat(&self, name: &str) -> Result<Stat> {
        self.stat_path(name.as_bytes())
    }

    /// Returns the metadata of a file, by a path that need not be UTF-8.
    pub fn stat_path(&self, path: &[u8]) -> Result<Stat> {
        let (name, path) = (String::from_utf8_lossy(path).into_owned(), path.to_vec());
        let owned = name.clone();
        self.node.call(&name, move |node| async move { contents::stat(&node.client, &owned, &path).await })
    }

    /// Removes a file, or the remaining parts of a damaged file.
    pub fn unlink(&self, name: &str) -> Result<()> {
        self.unlink_path(name.as_bytes())
    }

    /// Removes a file, or the remaining parts of a damaged file, by a path that need not be UTF-8.
    pub fn unlink_path(&self, path: &[u8]) -> Result<()> {
        let (name, path) = (String::from_utf8_lossy(path).into_owned(), path.to_vec());
        let owned = name.clone();
        self.node.call(&name, move |node| async move { contents::unlink(&node.client, &owned, &path).await })
    }

    /// Returns the number of disks of all agents together.
    pub fn disks(&self) -> Result<u32> {
        self.node
            .call("cannot count the disks", |node| async move { Ok(node.client.connection.client.disks()) })
    }

    /// Returns the paths of all files, sorted.
    pub fn list(&self) -> Result<Vec<String>> {
        self.node.call("cannot list the files", |node| async move { contents::list(&node.client).await })
    }

    /// Copies a whole file to `output` and returns `output`. Bypasses the page cache, so the copy lacks unsent writes
    /// of this session. Calls `moved` with the number of further bytes that have arrived.
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
            let client = &node.client;
            let file =
                contents::open(client, &owned, owned.as_bytes(), OpenOptions::new().read(true)).await?;
            let copied = whole_file::download(
                &client.connection,
                file.paged().file(),
                Method::Traditional,
                Dense(output),
                moved,
            )
            .await;
            client.explained(&owned, file.close().await)?;
            Ok(copied.map(|Dense(output)| output))
        })?
    }

    /// Creates a file, and begins to copy the contents of `input` to it, bypassing the page cache. The answer contains
    /// the input and its number of bytes; when it arrives, the file is on stable storage. Calls `moved` with the number
    /// of further bytes that were sent.
    ///
    /// If copying fails, the file stays, with the bytes that were copied.
    ///
    /// # Errors
    /// If the file cannot be created, or exists.
    pub fn begin_upload<R: Read + Send + 'static>(
        &self,
        name: &str,
        input: R,
        moved: impl Fn(u64) + Clone + Send + 'static,
    ) -> Result<Pending<std::result::Result<(R, u64), CopyError>>> {
        let (made, is_made) = flume::bounded(1);
        let owned = name.to_owned();
        let copying = self.node.begin(&name.into(), move |node| async move {
            let (client, options) = (&node.client, OpenOptions::new().write(true).create_new(true));
            let file = contents::open(client, &owned, owned.as_bytes(), options.unfinished(true)).await?;
            // The caller that has begun the copy waits for this.
            let _ = made.send(());
            let copied = whole_file::upload(
                &client.connection,
                file.paged().file(),
                Method::Traditional,
                Dense(input),
                moved,
            )
            .await;
            if let Ok((_, Uploaded { bytes, written })) = &copied
                && *bytes > 0
            {
                client.explained(&owned, file.wrote_past_cache(*bytes, *written).await)?;
            }
            client.explained(&owned, file.close().await)?;
            client.explained(&owned, client.tree.flush().await)?;
            Ok(copied.map(|(Dense(input), uploaded)| (input, uploaded.bytes)))
        });
        match is_made.recv() {
            Ok(()) => Ok(copying),
            Err(_) => Err(copying.wait().err().unwrap_or_else(|| Error::closed(name))),
        }
    }

    /// Flushes all written data to stable storage, removes temporary files, and reports any write that failed.
    ///
    /// The node thread ends with the last handle of the session and its files.
    pub fn finish(&self) -> Result<()> {
        const WHAT: &str = "cannot flush buffered writes";
        self.node.call(WHAT, |node| async move {
            let ended = node.end_write_cache().await;
            let removed = node.client.remove_temporary_files().await;
            let cache = &node.client.cache;
            let finished = if ended.is_ok() { cache.finish().await } else { Ok(()) };
            ended.and(removed).and(node.client.explained(WHAT, finished))
        })
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Session")
    }
}
