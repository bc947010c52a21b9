//! Returns all records of a namespace, in pages, for a check.

use crate::checked::SurveyedRecord;
use crate::keys::{self, Space};
use crate::operation::TreeAnswer;
use crate::store::{Records, Step, decoded_inode, number_of};

/// Number of records that are read from the store at once.
const AT_ONCE: usize = 256;

/// Bytes of a record in an answer, without fields of variable length.
const RECORD_BYTES: usize = 120;

impl Records<'_> {
    pub(crate) fn survey(&mut self, after: &[u8], bytes_max: usize) -> Step<TreeAnswer> {
        // Start after the lists of disks, which the check does not cover.
        let mut from = keys::after(after.to_vec()).max(vec![Space::Entry as u8]);
        let to = keys::end_of_space(Space::Extended);
        let (mut records, mut bytes, mut last) = (Vec::new(), 0, Vec::new());
        loop {
            let found = self.transaction.range(&from, &to, AT_ONCE)?;
            let is_end = found.len() < AT_ONCE;
            for (key, value) in found {
                bytes +=
                    RECORD_BYTES + key.len() + if key[0] == Space::Inode as u8 { value.len() } else { 0 };
                if bytes > bytes_max && !records.is_empty() {
                    return Ok(TreeAnswer::Records { records, more_after: Some(last) });
                }
                records.extend(surveyed(&key, &value));
                last = key.clone();
                from = keys::after(key);
            }
            if is_end {
                return Ok(TreeAnswer::Records { records, more_after: None });
            }
        }
    }
}

/// Returns the contents of a record; `None` if the check does not need the record.
fn surveyed(key: &[u8], value: &[u8]) -> Option<SurveyedRecord> {
    let unreadable = || SurveyedRecord::Unreadable(key.to_vec());
    let space = [Space::Entry, Space::Inode, Space::Orphan, Space::Extended];
    let space = space.into_iter().find(|&space| space as u8 == key[0]);
    // The header is not checked.
    if key == keys::HEADER {
        return None;
    }
    let (Some(space), Some((number, rest))) = (space, keys::parts(key)) else { return Some(unreadable()) };
    Some(match space {
        Space::Entry => match number_of(value) {
            Ok(target) => SurveyedRecord::Entry { directory: number, name: rest.to_vec(), number: target },
            Err(_) => unreadable(),
        },
        Space::Inode => match decoded_inode(value) {
            Ok(inode) if inode.number == number && rest.is_empty() => SurveyedRecord::Inode(inode),
            _ => unreadable(),
        },
        Space::Orphan => SurveyedRecord::Orphan(number),
        Space::Extended => SurveyedRecord::Extended(number),
        Space::Disks => unreadable(),
    })
}
