//! The page cache, as long as there is none: every page is asked for when it is wanted.

use fs::{Client, FileId, Result};
use layout::Striping;
use machine::{Memory, Payload};
use real::RealMachine;

use crate::settings::Hint;

#[derive(Clone)]
pub(crate) struct PageCache {
    client: Client<RealMachine>,
}

#[derive(Clone)]
pub(crate) struct PagedFile {
    file: fs::File<RealMachine>,
}

impl PageCache {
    pub(crate) fn new(client: Client<RealMachine>) -> Self {
        PageCache { client }
    }

    pub(crate) fn client(&self) -> &Client<RealMachine> {
        &self.client
    }

    pub(crate) async fn open(&self, name: &str) -> Result<PagedFile> {
        Ok(PagedFile { file: self.client.open(name).await? })
    }

    pub(crate) async fn create(&self, name: &str, file: FileId, striping: Striping) -> Result<PagedFile> {
        Ok(PagedFile { file: self.client.create_striped(name, file, striping).await? })
    }

    /// Removes a file.
    pub(crate) async fn unlink(&self, name: &str) -> Result<()> {
        self.client.unlink(name).await
    }

    /// Writes everything out.
    pub(crate) async fn flush(&self) -> Result<()> {
        Ok(())
    }
}

impl PagedFile {
    pub(crate) fn bytes(&self) -> u64 {
        self.file.bytes()
    }

    pub(crate) fn page_bytes(&self) -> u64 {
        self.file.striping().block_bytes()
    }

    pub(crate) fn stripe_count(&self) -> u32 {
        self.file.striping().stripe_count()
    }

    /// The bytes from `offset` on, fewer at the file's end.
    pub(crate) async fn read(&self, offset: u64, bytes: u64) -> Result<Payload> {
        let memory = Memory::real(vec![0; bytes as usize]);
        let found = self.file.read(offset, bytes, &memory, 0).await?;
        Ok(memory.get(0, found))
    }

    /// Whether a page can be read without waiting.
    pub(crate) fn is_ready(&self, _offset: u64) -> bool {
        false
    }

    pub(crate) async fn write(&self, offset: u64, payload: Payload) -> Result<()> {
        let (bytes, memory) = (payload.len(), Memory::real(payload.into_vec().expect("real bytes")));
        self.file.write(offset, bytes, &memory, 0).await
    }

    /// Asks the agents for the size.
    pub(crate) async fn refresh(&self) -> Result<u64> {
        self.file.refresh().await
    }

    pub(crate) async fn truncate(&self, bytes: u64) -> Result<()> {
        self.file.truncate(bytes).await
    }

    pub(crate) async fn flush(&self) -> Result<()> {
        self.file.flush().await
    }

    pub(crate) async fn close(&self) -> Result<()> {
        self.file.flush().await
    }

    pub(crate) fn advise(&self, _hint: Hint) {}
}
