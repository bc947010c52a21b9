//! Making files by name: stripes on all disks or on those that are named, in place of the finished file of that name or
//! where there is none.

use layout::{DiskPlace, Striping, stripe_disks};
use machine::{Machine, NodeId, Payload};

use super::commit::about;
use super::file::File;
use super::{Client, check_name};
use crate::error::{Error, FailureKind, Result};
use crate::protocol::{FileId, Request, StripeHome};

/// A file to be made.
#[derive(Clone, Copy)]
struct NewFile<'a> {
    name: &'a str,
    file: FileId,
    striping: Striping,
    /// The disk of each stripe, by its index among all disks; without them the first ones.
    disks: Option<&'a [u32]>,
    /// The finished file of that name that it is to take the place of.
    replaces: Option<FileId>,
}

impl<M: Machine> Client<M> {
    /// Makes an empty file over all disks, in blocks of `block_bytes`.
    ///
    /// `file` is its identity, drawn at random by the caller. It is unfinished until it is
    /// [committed](File::commit). Fails if there is a finished file of that name, or somebody is writing one; what
    /// others have left unfinished gives way.
    pub async fn create(&self, name: &str, file: FileId, block_bytes: u64) -> Result<File<M>> {
        self.create_striped(name, file, Striping::new(block_bytes, self.disks())?).await
    }

    /// Makes an empty file over as many disks as `striping` has stripes.
    ///
    /// Otherwise like [`create`](Self::create). Fails if there are fewer disks.
    pub async fn create_striped(&self, name: &str, file: FileId, striping: Striping) -> Result<File<M>> {
        self.check_striping(name, striping)?;
        self.create_new(NewFile { name, file, striping, disks: None, replaces: None }).await
    }

    /// Makes an empty file with a stripe on each of `disks`, in this order, in blocks of `block_bytes`. Disks are known
    /// by their index: disk *i* is that of stripe *i* of a file over all disks. If the file `replaces` the finished one
    /// of that name, that stays as it is until the new one is committed.
    ///
    /// Otherwise like [`create`](Self::create). Fails if there is no such disk, or one is named twice.
    pub async fn create_on(
        &self,
        name: &str,
        file: FileId,
        block_bytes: u64,
        disks: &[u32],
        replaces: bool,
    ) -> Result<File<M>> {
        check_name(name)?;
        let striping = self.check_disks(name, block_bytes, disks)?;
        let replaces = if replaces { self.replaced(name).await? } else { None };
        self.create_new(NewFile { name, file, striping, disks: Some(disks), replaces }).await
    }

    /// How a file lies on these disks; refuses what [`create_on`](Self::create_on) does.
    pub(super) fn check_disks(&self, name: &str, block_bytes: u64, disks: &[u32]) -> Result<Striping> {
        let striping = Striping::new(block_bytes, disks.len() as u32)?;
        self.check_stripes(name, striping)?;
        for (stripe, &disk) in disks.iter().enumerate() {
            if disk >= self.disks() || disks[..stripe].contains(&disk) {
                let (all, why) = (self.disks(), format!("{name} cannot have a stripe on disk {disk}"));
                let text = format!("{why}: name disks of 0 to {}, each once", all - 1);
                return Err(Error::Invalid(text).into());
            }
        }
        Ok(striping)
    }

    /// As [`create_striped`](Self::create_striped), but if there is a finished file of that name, it stays as it is
    /// until the new one is committed, and is replaced then.
    pub async fn create_replacing(&self, name: &str, file: FileId, striping: Striping) -> Result<File<M>> {
        self.check_striping(name, striping)?;
        let replaces = self.replaced(name).await?;
        self.create_new(NewFile { name, file, striping, disks: None, replaces }).await
    }

    /// The finished file of this name, if there is one.
    async fn replaced(&self, name: &str) -> Result<Option<FileId>> {
        match self.find(name).await {
            Ok(parts) => Ok(Some(parts.file)),
            Err(error) if matches!(*error, Error::NotFound { .. } | Error::Unfinished { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn create_new(&self, new: NewFile<'_>) -> Result<File<M>> {
        let NewFile { name, file, .. } = new;
        // Before there is anything of it, so that nobody here takes it for what others have left.
        let is_new = self.inner.begun.borrow_mut().insert(file);
        let created = self.create_or_clear(new).await;
        if let Err(error) = created {
            if is_new {
                self.inner.begun.borrow_mut().remove(&file);
            }
            return Err(about(error, name));
        }
        let stat = self.stat_unfinished(name).await?;
        Ok(File::new(self.clone(), name, stat))
    }

    /// Makes the stripes of a new file. What others have left unfinished gives way.
    async fn create_or_clear(&self, new: NewFile<'_>) -> Result<()> {
        let name = new.name;
        let mut outcome = self.create_stripes(new).await;
        if outcome.as_ref().is_err_and(|error| error.is_remote(FailureKind::Unfinished)) {
            let left = self.find_unfinished(name).await;
            if left.is_ok_and(|left| self.inner.begun.borrow().contains(&left.file)) {
                return Err(Error::BeingWritten { name: name.into() }.into());
            }
            match self.unlink_unfinished(name).await {
                Err(error) if !matches!(*error, Error::NotFound { .. }) => return Err(error),
                _ => outcome = self.create_stripes(new).await,
            }
        }
        outcome
    }

    async fn create_stripes(&self, new: NewFile<'_>) -> Result<()> {
        let NewFile { name, file, striping, replaces, .. } = new;
        let mut disks: Vec<DiskPlace> = stripe_disks(&self.inner.disks.borrow())?;
        match new.disks {
            Some(chosen) => disks = chosen.iter().map(|&disk| disks[disk as usize]).collect(),
            None => disks.truncate(striping.stripe_count() as usize),
        }
        let begun = self.inner.endpoint.machine().date().as_nanos();
        let request_to = |node: usize| {
            let here = (0..).zip(&disks).filter(|(_, place)| place.node as usize == node);
            let stripes = here.map(|(stripe, place)| StripeHome { stripe, disk: place.disk }).collect();
            Some(Request::Create { name: name.into(), file, striping, begun, replaces, stripes })
        };
        let answers = self.ask_all(request_to).await;
        let made = answers.iter().filter(|(_, answer)| answer.is_ok()).map(|&(node, _)| node);
        let made: Vec<NodeId> = made.collect();
        let Some(error) = answers.into_iter().find_map(|(_, answer)| answer.err()) else { return Ok(()) };
        // Nothing half-made stays behind; what cannot be undone now can be removed by name later.
        for node in made {
            let undo = Request::Discard { name: name.into(), file: Some(file), uncommitted: false };
            let _ = self.inner.endpoint.call(node, undo, Payload::empty()).await;
        }
        Err(error)
    }

    /// Refuses what no file here can be: a name that is none, more stripes than disks, blocks larger than all I/O nodes
    /// can handle. Ask before a file makes place for another one.
    pub fn check_striping(&self, name: &str, striping: Striping) -> Result<()> {
        check_name(name)?;
        self.check_stripes(name, striping)
    }

    /// Refuses more stripes than disks, and blocks larger than all I/O nodes can handle.
    fn check_stripes(&self, name: &str, striping: Striping) -> Result<()> {
        let (stripes, disks) = (striping.stripe_count(), self.disks());
        if stripes > disks {
            let there = if disks == 1 { "is 1 disk".to_owned() } else { format!("are {disks} disks") };
            let why = format!("{name} cannot have {stripes} stripes: there {there}");
            return Err(Error::Invalid(why).into());
        }
        self.check_blocks(name, striping)
    }

    /// Refuses blocks larger than all I/O nodes can handle.
    pub(super) fn check_blocks(&self, name: &str, striping: Striping) -> Result<()> {
        let (block, most) = (striping.block_bytes(), self.block_bytes_max());
        if block > most {
            return Err(Error::BlockTooLarge { name: name.into(), bytes: block, most }.into());
        }
        Ok(())
    }
}
