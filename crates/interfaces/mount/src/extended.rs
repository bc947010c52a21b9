//! Extended attributes: stored ones, and some that describe where a file is stored.
//!
//! The attributes about the storage are read-only, and are not listed, so that programs do not copy them:
//!
//! | name | value |
//! |---|---|
//! | `user.starfish.number` | the number of the file |
//! | `user.starfish.agents` | the agents of the set, separated by commas |
//! | `user.starfish.stripes` | the bytes of a block, then of each stripe the agent and the identity of the disk |

use std::fmt::Write;

use fuser::Errno;
use namespace::{FileNumber, SetValue, TreeAnswer, TreeOperation};

use crate::mounted_tree::{MountedTree, Outcome, about};

/// Prefix of the read-only attributes.
const OURS: &[u8] = b"user.starfish.";

/// Prefixes of attributes that can be stored. Attributes with other prefixes have a meaning to the kernel that Starfish
/// does not implement.
const KEPT: [&[u8]; 2] = [b"user.", b"trusted."];

impl MountedTree {
    pub(crate) async fn set_extended(
        &self,
        number: FileNumber,
        name: Vec<u8>,
        value: Vec<u8>,
        mode: SetValue,
    ) -> Outcome<()> {
        check_settable(&name)?;
        self.done(number, TreeOperation::SetExtended { number, name, value, mode }).await
    }

    pub(crate) async fn remove_extended(&self, number: FileNumber, name: Vec<u8>) -> Outcome<()> {
        check_settable(&name)?;
        self.done(number, TreeOperation::RemoveExtended { number, name }).await
    }

    async fn done(&self, number: FileNumber, operation: TreeOperation) -> Outcome<()> {
        self.settle(about(number), self.tree().perform(operation).await).map(drop)
    }

    pub(crate) async fn extended(&self, number: FileNumber, name: Vec<u8>) -> Outcome<Vec<u8>> {
        if let Some(name) = name.strip_prefix(OURS) {
            return self.read_only_attribute(number, name).await;
        }
        if !is_kept(&name) {
            return Err(Errno::EOPNOTSUPP);
        }
        let got = self.tree().perform(TreeOperation::GetExtended { number, name }).await;
        match self.settle(about(number), got)? {
            TreeAnswer::Value(value) => Ok(value),
            _ => Err(Errno::EIO),
        }
    }

    /// Returns the names of all attributes, each followed by a zero byte.
    pub(crate) async fn extended_names(&self, number: FileNumber) -> Outcome<Vec<u8>> {
        let listed = self.tree().perform(TreeOperation::ListExtended { number }).await;
        match self.settle(about(number), listed)? {
            TreeAnswer::Names(names) => {
                let names = names.into_iter().filter(|name| !name.starts_with(OURS));
                Ok(names.flat_map(|name| name.into_iter().chain([0])).collect())
            }
            _ => Err(Errno::EIO),
        }
    }

    /// Returns the value of a read-only attribute.
    async fn read_only_attribute(&self, number: FileNumber, name: &[u8]) -> Outcome<Vec<u8>> {
        match name {
            b"number" => Ok(number.0.to_string().into_bytes()),
            b"agents" => {
                let nodes = self.node.client().io_nodes();
                let names: Vec<&str> = nodes.iter().map(|&node| self.node.agent(node)).collect();
                Ok(names.join(",").into_bytes())
            }
            b"stripes" => self.settle(about(number), self.stripes(number).await).map(String::into_bytes),
            _ => Err(Errno::ENODATA),
        }
    }

    async fn stripes(&self, number: FileNumber) -> fs::Result<String> {
        let inode = self.tree().inode(TreeOperation::Get { number }).await?;
        let file = self.tree().numbered(&inode).await?;
        let disks = self.node.client().disks_by_identity().await?;
        let mut text = format!("{}\n", file.striping.block_bytes());
        for identity in file.disks {
            let agent = disks.get(&identity).map_or("?", |&(node, _)| self.node.agent(node));
            writeln!(text, "{agent} {identity:016x}").expect("a string takes it");
        }
        Ok(text)
    }
}

fn is_kept(name: &[u8]) -> bool {
    KEPT.iter().any(|space| name.starts_with(space))
}

fn check_settable(name: &[u8]) -> Outcome<()> {
    if name.starts_with(OURS) {
        Err(Errno::EPERM)
    } else if is_kept(name) {
        Ok(())
    } else {
        Err(Errno::EOPNOTSUPP)
    }
}
