//! Extended attributes: small named values.

use machine::METADATA_VALUE_BYTES_MAX;

use crate::file_name::FILE_NAME_BYTES_MAX;
use crate::inode::FileNumber;
use crate::keys::{self, Space};
use crate::operation::SetValue;
use crate::refusal::TreeRefusal;
use crate::store::{Records, Step};

/// Maximum length of the value of an extended attribute in bytes: the value is sent in the header of a message.
pub(crate) const VALUE_BYTES_MAX: usize = 32 * 1024;
const _: () = assert!(VALUE_BYTES_MAX <= METADATA_VALUE_BYTES_MAX);

/// Maximum number of bytes of the names of all attributes of an inode, because the names are sent together.
const NAMES_BYTES_MAX: usize = 32 * 1024;

/// Number of attributes that are read from the store at once.
const AT_ONCE: usize = 64;

/// Checks the length of an attribute's name.
pub(crate) fn check_attribute(name: &[u8]) -> Result<(), TreeRefusal> {
    if name.len() > FILE_NAME_BYTES_MAX { Err(TreeRefusal::NameTooLong) } else { Ok(()) }
}

impl Records<'_> {
    pub(crate) fn set_extended(
        &mut self,
        number: FileNumber,
        name: &[u8],
        value: &[u8],
        mode: SetValue,
    ) -> Step<()> {
        let mut inode = self.inode(number)?;
        if name.is_empty() || name.contains(&0) {
            return Err(TreeRefusal::Invalid.into());
        }
        let key = keys::extended(number, name);
        let is_there = self.transaction.get(&key)?.is_some();
        match mode {
            SetValue::New if is_there => return Err(TreeRefusal::Exists.into()),
            SetValue::Replace if !is_there => return Err(TreeRefusal::NoAttribute.into()),
            _ => {}
        }
        let names: usize = self.list_extended(number)?.iter().map(Vec::len).sum();
        if !is_there && names + name.len() > NAMES_BYTES_MAX {
            return Err(TreeRefusal::TooLarge.into());
        }
        self.transaction.put(&key, value)?;
        inode.changed = self.now;
        self.put_inode(&inode)
    }

    pub(crate) fn get_extended(&mut self, number: FileNumber, name: &[u8]) -> Step<Vec<u8>> {
        match self.transaction.get(&keys::extended(number, name))? {
            Some(value) => Ok(value),
            None => {
                self.inode(number)?;
                Err(TreeRefusal::NoAttribute.into())
            }
        }
    }

    pub(crate) fn list_extended(&mut self, number: FileNumber) -> Step<Vec<Vec<u8>>> {
        self.inode(number)?;
        let mut from = keys::extended(number, b"");
        let to = keys::end_of(Space::Extended, number);
        let mut names = Vec::new();
        loop {
            let found = self.transaction.range(&from, &to, AT_ONCE)?;
            let is_end = found.len() < AT_ONCE;
            for (key, _) in found {
                let (_, name) = keys::parts(&key).ok_or(TreeRefusal::Damaged)?;
                names.push(name.to_vec());
                from = keys::after(key);
            }
            if is_end {
                return Ok(names);
            }
        }
    }

    pub(crate) fn remove_extended(&mut self, number: FileNumber, name: &[u8]) -> Step<()> {
        let mut inode = self.inode(number)?;
        self.get_extended(number, name)?;
        self.transaction.remove(&keys::extended(number, name))?;
        inode.changed = self.now;
        self.put_inode(&inode)
    }

    pub(crate) fn remove_extended_of(&mut self, number: FileNumber) -> Step<()> {
        let (from, to) = (keys::extended(number, b""), keys::end_of(Space::Extended, number));
        loop {
            let found = self.transaction.range(&from, &to, AT_ONCE)?;
            for (key, _) in &found {
                self.transaction.remove(key)?;
            }
            if found.len() < AT_ONCE {
                return Ok(());
            }
        }
    }
}
