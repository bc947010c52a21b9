//! Finds the object with a name on a disk, and decodes its label.

use machine::{Disk, Machine, Object};

use super::IoNode;
use crate::error::{Failure, FailureKind};
use crate::protocol::Label;

impl<M: Machine> IoNode<M> {
    /// Returns the stripe with this name on a disk, if it exists.
    pub(super) async fn find_stripe(
        &self,
        name: &str,
        disk: usize,
    ) -> Result<Option<(Object, Label)>, Box<Failure>> {
        let Some(object) = found(self.machine.disks()[disk].open(name).await)? else {
            return Ok(None);
        };
        let label = read_label(name, disk, &object.label)?;
        Ok(Some((object, label)))
    }
}

/// Converts the outcome of opening an object: returns `None` if the object does not exist.
pub(super) fn found(opened: machine::Result<Object>) -> Result<Option<Object>, Box<Failure>> {
    match opened {
        Err(error) if matches!(*error, machine::Error::NotFound { .. }) => Ok(None),
        Err(error) => Err(error.into()),
        Ok(object) => Ok(Some(object)),
    }
}

pub(super) fn read_label(name: &str, disk: usize, label: &[u8]) -> Result<Label, Box<Failure>> {
    Label::decode(label).map_err(|why| {
        let text = format!("{name}: disk {disk}: not a Starfish stripe: {why}");
        Failure::new(FailureKind::Damaged, text).into()
    })
}
