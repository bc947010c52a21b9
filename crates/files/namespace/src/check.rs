//! Checks the records of a namespace, and repairs them.
//!
//! Transactions leave no defects; a damaged database, or one restored from an older copy, may have them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::checked::{Repair, SurveyedRecord};
use crate::creating::NewEntry;
use crate::file_name::check_name;
use crate::inode::{FileLayout, FileNumber, Inode, InodeKind, RUN_STEP};
use crate::keys;
use crate::operation::{Location, NewInode};
use crate::refusal::TreeRefusal;
use crate::store::{Records, Step, TreeHeader, format_of};

/// A defect and its repair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Defect {
    /// Message for users.
    pub text: String,
    /// The repair.
    pub repair: Repair,
}

/// The directory for inodes without a name.
const LOST_AND_FOUND: &[u8] = b"lost+found";

/// A number further ahead than this, thus by 2^32 files, belongs to another namespace.
const NUMBERS_AHEAD_MAX: u64 = RUN_STEP << 32;

/// A name or key in readable form.
struct Shown<'a>(&'a [u8]);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0.escape_ascii())
    }
}

/// An entry that leads to an inode.
type InodeEntry<'a> = (FileNumber, &'a [u8]);

/// Returns the defects of records; `records` must be complete.
pub fn defects(records: &[SurveyedRecord]) -> Vec<Defect> {
    let mut found = Vec::new();
    let mut inodes: BTreeMap<FileNumber, &Inode> = BTreeMap::new();
    let mut leads: BTreeMap<FileNumber, Vec<InodeEntry<'_>>> = BTreeMap::new();
    let mut entries: BTreeMap<FileNumber, (u64, u32)> = BTreeMap::new();
    let mut orphans = BTreeSet::new();
    for record in records {
        match record {
            SurveyedRecord::Inode(inode) => drop(inodes.insert(inode.number, inode)),
            SurveyedRecord::Orphan(number) => drop(orphans.insert(*number)),
            SurveyedRecord::Unreadable(key) => found.push(Defect {
                text: format!("the record {} cannot be read", Shown(key)),
                repair: Repair::Erase { key: key.clone() },
            }),
            SurveyedRecord::Entry { .. } | SurveyedRecord::Extended(_) => {}
        }
    }
    for record in records {
        let SurveyedRecord::Entry { directory, name, number } = record else { continue };
        let why = if check_name(name).is_err() {
            Some("has an invalid name".to_owned())
        } else if !inodes.get(directory).is_some_and(|inode| inode.is_directory()) {
            Some("is in no directory".to_owned())
        } else {
            (!inodes.contains_key(number)).then(|| format!("leads to {:x}, which is missing", number.0))
        };
        if let Some(why) = why {
            let text = format!("the entry {} of directory {:x} {why}", Shown(name), directory.0);
            let repair = Repair::RemoveEntry { directory: *directory, name: name.clone() };
            found.push(Defect { text, repair });
            continue;
        }
        leads.entry(*number).or_default().push((*directory, name));
        let (all, directories) = entries.entry(*directory).or_default();
        *all += 1;
        *directories += u32::from(inodes[number].is_directory());
    }
    for inode in inodes.values() {
        let leads = leads.get(&inode.number).map_or(&[][..], Vec::as_slice);
        let counted = entries.get(&inode.number).copied().unwrap_or_default();
        found.extend(about_inode(inode, leads, counted, orphans.contains(&inode.number)));
    }
    found.extend(of_circles(&inodes));
    found
}

/// Returns the defects of an inode.
fn about_inode(
    inode: &Inode,
    leads: &[InodeEntry<'_>],
    (entries, directories): (u64, u32),
    is_orphan: bool,
) -> Vec<Defect> {
    let number = inode.number;
    let mut found = Vec::new();
    let mut complain = |text, repair| found.push(Defect { text, repair });
    let recount = |links, entries, parent| Repair::Recount { number, links, entries, parent };
    let InodeKind::Directory { parent } = inode.kind else {
        let names = leads.len() as u32;
        if names == 0 && !is_orphan {
            let text = format!("{:x} has no name", number.0);
            complain(text, Repair::Find { number });
        } else if names != inode.links {
            let text = format!("{:x} has {names} names, but its link count is {}", number.0, inode.links);
            complain(text, recount(names, None, None));
        } else if names > 0 && is_orphan {
            let text = format!("{:x} has a name, but is recorded as unlinked", number.0);
            complain(text, recount(names, None, None));
        }
        return found;
    };
    let is_root = number == FileNumber::ROOT;
    // If a directory has several names, keep the first.
    for (directory, name) in leads.iter().skip(usize::from(!is_root)) {
        let text =
            format!("the directory {:x} has another name, {} in {:x}", number.0, Shown(name), directory.0);
        complain(text, Repair::RemoveEntry { directory: *directory, name: name.to_vec() });
    }
    let at = match leads.first() {
        _ if is_root => FileNumber::ROOT,
        Some((directory, _)) => *directory,
        None => {
            complain(format!("the directory {:x} has no name", number.0), Repair::Find { number });
            return found;
        }
    };
    if (2 + directories, entries, at) != (inode.links, inode.size, parent) {
        let text = format!("the directory {:x} has a wrong count of entries, or a wrong parent", number.0);
        complain(text, recount(2 + directories, Some(entries), Some(at)));
    }
    found
}

/// Finds cycles of directories. One directory of each cycle is moved.
fn of_circles(inodes: &BTreeMap<FileNumber, &Inode>) -> Vec<Defect> {
    let mut known: BTreeSet<FileNumber> = BTreeSet::from([FileNumber::ROOT]);
    let mut found = Vec::new();
    for &start in inodes.keys() {
        let mut path = BTreeSet::new();
        let mut at = start;
        while let Some(Inode { kind: InodeKind::Directory { parent }, .. }) = inodes.get(&at) {
            if known.contains(&at) {
                break;
            }
            if !path.insert(at) {
                let text = format!("the directory {:x} is inside itself", at.0);
                found.push(Defect { text, repair: Repair::Find { number: at } });
                break;
            }
            at = *parent;
        }
        known.extend(path);
    }
    found
}

impl Records<'_> {
    /// Repairs a record.
    pub(crate) fn repair(&mut self, repair: &Repair) -> Step<()> {
        match repair {
            Repair::Erase { key } => Ok(self.transaction.remove(key)?),
            Repair::RemoveEntry { directory, name } => self.remove_entry(*directory, name),
            Repair::Recount { number, links, entries, parent: at } => {
                let mut inode = self.inode(*number)?;
                inode.links = *links;
                inode.size = entries.unwrap_or(inode.size);
                if let (InodeKind::Directory { parent }, Some(at)) = (&mut inode.kind, at) {
                    *parent = *at;
                }
                if *links > 0 {
                    self.transaction.remove(&keys::orphan(*number))?;
                }
                self.put_inode(&inode)
            }
            Repair::Find { number } => self.find_lost(*number),
            Repair::Doom { number } => {
                let mut inode = self.inode(*number)?;
                inode.links = 1;
                self.unlink_inode(&mut inode).map(drop)
            }
            Repair::Adopt { number, layout, bytes, stored_stripes } => {
                self.adopt(*number, *layout, *bytes, *stored_stripes)
            }
            Repair::Reserve { number } => self.reserve(*number),
        }
    }

    /// Returns the directory for inodes without a name; creates it if necessary.
    fn lost_and_found(&mut self) -> Step<Inode> {
        let at = Location { base: FileNumber::ROOT, path: LOST_AND_FOUND.to_vec() };
        match self.walk(&at, true)?.found {
            Some(inode) if inode.is_directory() => Ok(inode),
            Some(_) => Err(TreeRefusal::NotDirectory.into()),
            None => {
                let new = NewInode::Directory;
                self.make(&at, NewEntry { new, mode: 0o700, uid: 0, gid: 0, exclusive: true })
            }
        }
    }

    /// Gives an inode a name in `/lost+found` as its only name.
    fn find_lost(&mut self, number: FileNumber) -> Step<()> {
        let mut inode = self.inode(number)?;
        if let InodeKind::Directory { parent } = inode.kind {
            // The directory may be part of a cycle: then an entry of its parent leads to it.
            self.remove_entries_to(parent, number)?;
        }
        let mut lost = self.lost_and_found()?;
        match &mut inode.kind {
            InodeKind::Directory { parent } => {
                *parent = lost.number;
                lost.links += 1;
            }
            _ => inode.links = 1,
        }
        self.put_inode(&inode)?;
        self.put_entry(lost.number, number.to_string().as_bytes(), number)?;
        self.touch_directory(&mut lost, 1)
    }

    fn remove_entries_to(&mut self, directory: FileNumber, number: FileNumber) -> Step<()> {
        let mut after = Vec::new();
        loop {
            let listed = self.list(directory, &after, usize::MAX / 2)?;
            for entry in &listed.entries {
                if entry.inode.number == number {
                    self.remove_entry(directory, &entry.name)?;
                    let mut directory = self.known(directory)?;
                    directory.links = directory.links.saturating_sub(1);
                    self.touch_directory(&mut directory, -1)?;
                }
            }
            match listed.entries.last().filter(|_| listed.more) {
                Some(last) => after = last.name.clone(),
                None => return Ok(()),
            }
        }
    }

    /// Continues the numbering after this number, if it would otherwise be used later.
    fn reserve(&mut self, number: FileNumber) -> Step<()> {
        let header = self.header()?;
        let given = number.0.wrapping_sub(header.origin);
        match (header.last + 1..header.last.saturating_add(NUMBERS_AHEAD_MAX)).contains(&given) {
            true => self.put_header(TreeHeader { last: given, ..header }),
            false => Ok(()),
        }
    }

    /// Creates an inode for a number that has only contents.
    fn adopt(&mut self, number: FileNumber, layout: FileLayout, bytes: u64, stored_stripes: u32) -> Step<()> {
        if self.transaction.get(&keys::inode(number))?.is_some() {
            return Err(TreeRefusal::Exists.into());
        }
        self.reserve(number)?;
        let lost = self.lost_and_found()?;
        let name = number.to_string();
        let new = NewInode::PlacedFile(layout);
        let file = NewEntry { new, mode: 0o600, uid: 0, gid: 0, exclusive: true };
        let made = self.make_in(lost.clone(), name.as_bytes(), file)?;
        // Move the inode to the number of its contents.
        self.transaction.remove(&keys::inode(made.number))?;
        let format = format_of(&made);
        let adopted = Inode { number, size: bytes, stored_stripes, ..made };
        self.raise_format(format, &adopted)?;
        self.put_inode(&adopted)?;
        self.put_entry(lost.number, name.as_bytes(), number)
    }
}
