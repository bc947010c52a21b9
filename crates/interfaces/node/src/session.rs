//! A session: the node thread as programs have it, and operations on names.

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

    pub(crate) fn node_thread(&self) -> &Arc<NodeThread> {
        &self.node
    }

    /// The namespace of the set, if it has one. Another client may have begun it since the session was started.
    ///
    /// # Errors
    /// If the session has ended, or an agent does not answer.
    pub fn tree(&self) -> Result<Option<Tree>> {
        const WHAT: &str = "namespace";
        let is_there = self.node.call(WHAT, |node| async move { node.client.find_tree().await })?;
        Ok(is_there.then(|| Tree::new(self.node.clone())))
    }

    /// The namespace of the set; if it has none, one is begun, and its root is this user's.
    ///
    /// # Errors
    /// If none can be begun.
    pub fn begin_tree(&self) -> Result<Tree> {
        const WHAT: &str = "new namespace";
        self.node.call(WHAT, |node| async move { node.client.begin_tree().await })?;
        Ok(Tree::new(self.node.clone()))
    }

    /// Asks the agents for their disks, as opening or making a file does, unless it is known already: the first file is
    /// opened sooner then. Without a namespace no agent is asked.
    ///
    /// # Errors
    /// If an agent does not answer.
    pub fn learn_disks(&self) -> Result<()> {
        const WHAT: &str = "asking for the disks";
        self.node.call(WHAT, |node| async move {
            let tree = node.client.tree.borrow().clone();
            match tree {
                Some(tree) => node.client.explained(WHAT, tree.all_disks().await).map(drop),
                None => Ok(()),
            }
        })
    }

    /// Opens a file, or makes one.
    ///
    /// # Errors
    /// If it cannot be opened or made as `options` say.
    pub fn open(&self, name: &str, options: OpenOptions) -> Result<Handle> {
        self.open_path(name.as_bytes(), options)
    }

    /// Opens a file by a path that need not be a text, or makes one.
    ///
    /// # Errors
    /// If it cannot be opened or made as `options` say; of flat names, those that are no text.
    pub fn open_path(&self, path: &[u8], options: OpenOptions) -> Result<Handle> {
        let name = &*String::from_utf8_lossy(path);
        options.check(name)?;
        let (owned, path) = (name.to_owned(), path.to_vec());
        let (number, page_bytes) = self.node.call(name, move |node| async move {
            let file = contents::open(&node.client, &owned, &path, options).await?;
            if let Some(write_cache) = node.client.write_cache.as_ref().filter(|_| !options.writes()) {
                // What others of the job have written is to be read.
                node.take_in_writes().await?;
                node.client.explained(&owned, write_cache.flush_file(file.file()).await)?;
                node.client.explained(&owned, file.refresh().await)?;
            }
            let page_bytes = file.page_bytes();
            Ok((node.files.enter(&node.client, &owned, Some(path), file), page_bytes))
        })?;
        Ok(Handle::new(self.node.clone(), name, options, number, page_bytes))
    }

    /// The metadata of a file.
    pub fn stat(&self, name: &str) -> Result<Stat> {
        self.stat_path(name.as_bytes())
    }

    /// The metadata of a file, by a path that need not be a text.
    pub fn stat_path(&self, path: &[u8]) -> Result<Stat> {
        let (name, path) = (String::from_utf8_lossy(path).into_owned(), path.to_vec());
        let owned = name.clone();
        self.node.call(&name, move |node| async move { contents::stat(&node.client, &owned, &path).await })
    }

    /// Removes a file, or what is left of one.
    pub fn unlink(&self, name: &str) -> Result<()> {
        self.unlink_path(name.as_bytes())
    }

    /// Removes a file, or what is left of one, by a path that need not be a text.
    pub fn unlink_path(&self, path: &[u8]) -> Result<()> {
        let (name, path) = (String::from_utf8_lossy(path).into_owned(), path.to_vec());
        let owned = name.clone();
        self.node.call(&name, move |node| async move { contents::unlink(&node.client, &owned, &path).await })
    }

    /// The number of disks of all agents together.
    pub fn disks(&self) -> Result<u32> {
        self.node.call("counting the disks", |node| async move { Ok(node.client.connection.client.disks()) })
    }

    /// The names of all files, sorted: with a namespace, their paths.
    pub fn list(&self) -> Result<Vec<String>> {
        self.node.call("listing the files", |node| async move { contents::list(&node.client).await })
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
            Ok(whole_file::download(connection, &file, Dense(output), moved)
                .await
                .map(|Dense(output)| output))
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
            // The caller that has begun the copy waits for this.
            let _ = made.send(());
            let copied = whole_file::upload(connection, &file, Dense(input), moved).await;
            Ok(copied.map(|(Dense(input), uploaded)| (input, uploaded.bytes)))
        });
        match is_made.recv() {
            Ok(()) => Ok(copying),
            Err(_) => Err(copying.wait().err().unwrap_or_else(|| Error::closed(name))),
        }
    }

    /// Removes the unfinished file of this name, if there is one. A finished one stays.
    ///
    /// # Errors
    /// If it cannot be removed.
    pub fn discard(&self, name: &str) -> Result<()> {
        let owned = name.to_owned();
        self.node.call(name, move |node| async move { contents::discard(&node.client, &owned).await })
    }

    /// Flushes everything written to the disks, removes temporary files, and reports any write that failed.
    ///
    /// The node thread ends with the last handle of the session and its files.
    pub fn finish(&self) -> Result<()> {
        const WHAT: &str = "writing out what was written behind";
        self.node.call(WHAT, |node| async move {
            let ended = node.end_write_cache().await;
            let removed = node.client.remove_temporary_files().await;
            let cache = &node.client.cache;
            let finished = match &ended {
                Ok(()) => cache.finish().await,
                // A new file that lacks what could not be flushed stays unfinished.
                Err(_) => cache.remove_temporary_files().await,
            };
            ended.and(removed).and(node.client.explained(WHAT, finished))
        })
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Session")
    }
}
