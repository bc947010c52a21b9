//! Laws of a namespace: a refused operation changes nothing; after any operation the records are consistent; and
//! programs see the same as in a local directory.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};

use layout::Striping;
use machine::{MetadataChanges, MetadataTable, NO_DISK};
use proptest::prelude::*;

use crate::keys::Space;
use crate::store::decoded_inode;
use crate::*;

/// A namespace in memory.
struct Tree {
    table: MetadataTable,
    now: UnixTime,
    run: u64,
    disks: u32,
}

/// Returns the directories that an operation reported; `None` for a removed one.
fn reported_directories(performed: &Performed) -> BTreeMap<FileNumber, Option<Inode>> {
    let reported = performed.directories.iter();
    reported.map(|inode| (inode.number, Some(inode.clone()).filter(|inode| inode.links > 0))).collect()
}

/// Returns the directories among the changed records.
fn changed_directories(
    after: &MetadataChanges,
    before: &MetadataChanges,
) -> BTreeMap<FileNumber, Option<Inode>> {
    let inode = |changes: &MetadataChanges, key: &[u8]| {
        let bytes = changes.get(key).cloned().flatten()?;
        decoded_inode(&bytes).ok().filter(Inode::is_directory)
    };
    let inodes = after.keys().filter(|key| key[0] == Space::Inode as u8);
    let directories = inodes.filter_map(|key| {
        let now = inode(after, key);
        let number = now.as_ref().or(inode(before, key).as_ref()).map(|inode| inode.number)?;
        Some((number, now))
    });
    directories.collect()
}

impl Tree {
    fn new() -> Tree {
        let mut tree = Tree { table: MetadataTable::default(), now: 0, run: 7, disks: 0 };
        tree.ask(TreeOperation::Begin { origin: 77, mode: 0o755, uid: 1, gid: 2 }).expect("a namespace");
        let entered = tree.ask(TreeOperation::EnterDisks { disks: vec![5, 3, 9] });
        assert_eq!(entered, Ok(TreeAnswer::Number(0)));
        tree
    }

    fn ask(&mut self, operation: TreeOperation) -> Result<TreeAnswer, TreeRefusal> {
        self.now += 1;
        let (performed, changes) =
            self.table.attempt(|t| perform(t, &operation, self.now, self.run)).expect("a store in memory");
        let before = self.table.clone();
        if let Ok(performed) = &performed {
            let after = changes.clone();
            let undo = self.table.apply(changes);
            assert_eq!(reported_directories(performed), changed_directories(&after, &undo), "{operation:?}");
        }
        let answer = performed.map(|performed| performed.answer);
        assert!(!operation.only_reads() || self.table == before, "{operation:?} only reads");
        answer
    }

    fn inode(&mut self, operation: TreeOperation) -> Result<Inode, TreeRefusal> {
        self.ask(operation).map(|answer| match answer {
            TreeAnswer::Inode(inode) => inode,
            other => panic!("{other:?}"),
        })
    }

    fn make(&mut self, path: &str, new: NewInode) -> Result<Inode, TreeRefusal> {
        let at = Location::of_path(path);
        self.inode(TreeOperation::Make { at, new, mode: 0o644, uid: 7, gid: 8, exclusive: true })
    }

    fn file(&mut self, path: &str) -> Result<Inode, TreeRefusal> {
        self.make(path, new_file())
    }

    fn look(&mut self, path: &str) -> Result<Inode, TreeRefusal> {
        self.inode(TreeOperation::Look { at: Location::of_path(path), follow: false })
    }

    fn remove(&mut self, path: &str, what: RemovalTarget) -> Result<TreeAnswer, TreeRefusal> {
        self.ask(TreeOperation::Remove { at: Location::of_path(path), what })
    }

    fn rename(&mut self, from: &str, to: &str, mode: RenameMode) -> Result<TreeAnswer, TreeRefusal> {
        let (from, to) = (Location::of_path(from), Location::of_path(to));
        self.ask(TreeOperation::Rename { from, to, mode })
    }

    fn records(&mut self, bytes_max: u32) -> Vec<SurveyedRecord> {
        let (mut all, mut after) = (Vec::new(), Vec::new());
        loop {
            let TreeAnswer::Records { records, more_after } =
                self.ask(TreeOperation::Survey { after, bytes_max }).expect("records")
            else {
                panic!("no records")
            };
            all.extend(records);
            match more_after {
                Some(key) => after = key,
                None => return all,
            }
        }
    }

    /// Checks that the records are consistent, and that the header counts all inodes.
    fn check(&mut self) {
        let records = self.records(500);
        assert_eq!(defects(&records), []);
        let inodes = records.iter().filter(|record| matches!(record, SurveyedRecord::Inode(_))).count();
        let Ok(TreeAnswer::Used(used)) = self.ask(TreeOperation::Describe) else { panic!("no namespace") };
        assert_eq!(used.inodes, inodes as u64);
    }

    fn names(&mut self, directory: FileNumber, bytes_max: u32) -> Vec<String> {
        let (mut all, mut after) = (Vec::new(), Vec::new());
        loop {
            let list = TreeOperation::List { directory, after, bytes_max };
            let Ok(TreeAnswer::Entries { entries, more, .. }) = self.ask(list) else { panic!("no entries") };
            after = entries.last().map(|entry| entry.name.clone()).unwrap_or_default();
            all.extend(entries.into_iter().map(|entry| String::from_utf8(entry.name).expect("text")));
            if !more {
                return all;
            }
        }
    }
}

fn new_file() -> NewInode {
    NewInode::File { striping: Striping::new(4096, 3).expect("a striping"), disks: 0 }
}

fn wrote(number: FileNumber, end: u64, stored_stripes: u32) -> TreeOperation {
    TreeOperation::Wrote { number, written: WrittenContents { end, stored_stripes, bytes: end } }
}

/// Returns the disks of the stripes of a file.
fn disks_of(tree: &mut Tree, number: FileNumber) -> Vec<u64> {
    let layout = tree.inode(TreeOperation::Get { number }).expect("there").layout().expect("a file");
    match tree.ask(TreeOperation::ReadDisks { list: layout.disks }) {
        Ok(TreeAnswer::Disks(disks)) => layout.disks_in(&disks).collect(),
        other => panic!("{other:?}"),
    }
}

fn link_to(target: &str) -> NewInode {
    NewInode::Link { target: target.into() }
}

#[test]
fn an_orphan_exists_until_it_is_forgotten() {
    let mut tree = Tree::new();
    let number = tree.file("a").expect("a file").number;
    let linked = tree.inode(TreeOperation::Link { number, at: Location::of_path("b") }).expect("a link");
    assert_eq!(linked.links, 2);
    assert_eq!(tree.remove("a", RemovalTarget::File), Ok(TreeAnswer::Removed { orphan: None }));
    let orphan = tree.remove("b", RemovalTarget::File);
    assert_eq!(orphan, Ok(TreeAnswer::Removed { orphan: Some(number) }));
    assert_eq!(tree.inode(wrote(number, 9, 0)).map(|inode| inode.size), Ok(9));
    let list = TreeOperation::ListOrphans { after: FileNumber(0), most: 9 };
    let Ok(TreeAnswer::Numbers(numbers)) = tree.ask(list) else { panic!("no numbers") };
    assert_eq!(numbers.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [number]);
    tree.check();
    let disks = disks_of(&mut tree, number);
    let forget = |disks: &[u64]| TreeOperation::Forget { numbers: vec![number], disks: disks.to_vec() };
    let partly = tree.ask(forget(&disks[1..]));
    assert_eq!(partly, Ok(TreeAnswer::Forgotten(Vec::new())), "a disk is away");
    assert_eq!(tree.inode(TreeOperation::Get { number }).map(|inode| inode.links), Ok(0));
    assert_eq!(tree.ask(forget(&disks)), Ok(TreeAnswer::Forgotten(vec![number])));
    assert_eq!(tree.inode(TreeOperation::Get { number }), Err(TreeRefusal::Removed));
    tree.check();
}

#[test]
fn each_append_reserves_a_range_and_each_change_has_a_version() {
    let mut tree = Tree::new();
    let number = tree.file("log").expect("a file").number;
    let mut ends = Vec::new();
    for bytes in [3, 0, 5] {
        let Ok(TreeAnswer::Appended { offset, inode }) =
            tree.ask(TreeOperation::Append { number, bytes, after: 0 })
        else {
            panic!("not appended")
        };
        ends.push((offset, inode.size, inode.append_end()));
    }
    assert_eq!(ends, [(0, 0, 3), (3, 0, 3), (3, 0, 8)], "nothing is to be read yet");
    let version = |changes| changes * RUN_STEP + 7;
    let state_after = |tree: &mut Tree, operation| {
        let inode = tree.inode(operation).expect("noted");
        (inode.size, inode.append_end(), inode.version)
    };
    assert_eq!(state_after(&mut tree, wrote(number, 3, 1)), (3, 8, version(2)));
    let after = |after| TreeOperation::Append { number, bytes: 2, after };
    let offset = |answer| match answer {
        Ok(TreeAnswer::Appended { offset, .. }) => offset,
        other => panic!("{other:?}"),
    };
    assert_eq!([5, 20].map(|end| offset(tree.ask(after(end)))), [8, 20]);
    assert_eq!(state_after(&mut tree, wrote(number, 22, 1)), (22, 22, version(3)));
    assert_eq!(offset(tree.ask(after(0))), 22);
    let resize = |bytes| {
        let changes = AttributeChanges { size: Some(bytes), ..AttributeChanges::default() };
        TreeOperation::Change { number, changes }
    };
    assert_eq!(state_after(&mut tree, resize(23)), (23, 24, version(4)));
    assert_eq!(state_after(&mut tree, resize(30)), (30, 30, version(5)));
    assert_eq!((offset(tree.ask(after(0))), state_after(&mut tree, resize(7))), (30, (7, 7, version(6))));
    let most = TreeOperation::Append { number, bytes: u64::MAX, after: 0 };
    assert_eq!(tree.ask(most), Err(TreeRefusal::FileTooLarge));
}

/// A power failure may lose the last transactions. A client that saw their results must notice that later results
/// differ.
#[test]
fn lost_and_later_changes_have_different_versions_and_file_numbers() {
    let mut tree = Tree::new();
    let number = tree.file("log").expect("a file").number;
    let before = tree.table.clone();
    let changes = AttributeChanges { size: Some(9), ..AttributeChanges::default() };
    let [lost, found] = [7, 8].map(|run| {
        (tree.table, tree.run) = (before.clone(), run);
        let version = tree.inode(TreeOperation::Change { number, changes }).expect("changed").version;
        (version, tree.file("next").expect("made").number)
    });
    assert!(lost.0 != found.0 && lost.1 != found.1, "{lost:?} and {found:?}");
}

#[test]
fn files_begin_on_each_disk_in_turn() {
    let mut tree = Tree::new();
    let mut begin = |name| tree.file(name).expect("made").layout().expect("a file").first;
    let begun: Vec<u32> = ["a", "b", "c", "d", "e", "f"].map(&mut begin).to_vec();
    for three in begun.windows(3) {
        assert_eq!(three.iter().sum::<u32>(), 3, "{begun:?}");
        assert!(three[0] != three[1], "{begun:?}");
    }
}

#[test]
fn exchanged_directories_have_the_correct_parents() {
    let mut tree = Tree::new();
    for path in ["one", "one/in", "two", "two/file"] {
        let new = if path.ends_with("file") { new_file() } else { NewInode::Directory };
        tree.make(path, new).expect("made");
    }
    for (outer, inner) in [("one", "one/in"), ("one/in", "one")] {
        assert_eq!(
            tree.rename(outer, inner, RenameMode::Exchange),
            Err(TreeRefusal::Invalid),
            "{outer} and {inner}"
        );
    }
    tree.make("one/in/deep", NewInode::Directory).expect("made");
    tree.rename("one/in/deep", "two/file", RenameMode::Exchange).expect("exchanged");
    assert!(tree.look("two/file").expect("there").is_directory());
    assert!(tree.look("one/in/deep").expect("there").layout().is_some());
    assert_eq!(
        tree.look("two/file/..").map(|inode| inode.number),
        tree.look("two").map(|inode| inode.number)
    );
    assert_eq!(tree.rename("one", "two", RenameMode::Keep), Err(TreeRefusal::Exists));
    tree.check();
}

#[test]
fn a_large_directory_is_listed_in_parts_and_in_order() {
    let mut tree = Tree::new();
    let directory = tree.make("d", NewInode::Directory).expect("a directory").number;
    let mut names: Vec<String> =
        (0..600).map(|i| format!("{:x}{}", i * 7919 % 600, "x".repeat(i % 200))).collect();
    for name in &names {
        tree.file(&format!("d/{name}")).expect("a file");
    }
    names.sort();
    for bytes_max in [1, 5000, u32::MAX] {
        assert_eq!(tree.names(directory, bytes_max), names);
    }
    assert_eq!(tree.look("d").expect("there").size, 600);
}

#[test]
fn names_are_limited_to_255_bytes_without_slash_and_nul() {
    let mut tree = Tree::new();
    let root = FileNumber::ROOT;
    let mut make = |path: Vec<u8>| {
        let at = Location { base: root, path };
        tree.inode(TreeOperation::Make { at, new: new_file(), mode: 0o644, uid: 0, gid: 0, exclusive: true })
    };
    let every: Vec<u8> = (1..=255u8).filter(|&byte| byte != b'/').collect();
    assert!(make(every).is_ok());
    assert!(make(vec![0xff; 255]).is_ok());
    assert_eq!(make(vec![b'x'; 256]), Err(TreeRefusal::NameTooLong));
    assert_eq!(make(vec![b'/'; 4096]), Err(TreeRefusal::NameTooLong));
    assert_eq!(make(b"a\0b".to_vec()), Err(TreeRefusal::Invalid));
    tree.check();
}

#[test]
fn extended_attributes_are_removed_with_their_inode() {
    let mut tree = Tree::new();
    let number = tree.file("a").expect("a file").number;
    let set = |name: &str, value: usize, mode| TreeOperation::SetExtended {
        number,
        name: name.into(),
        value: vec![7; value],
        mode,
    };
    assert_eq!(tree.ask(set("user.x", 5, SetValue::Replace)), Err(TreeRefusal::NoAttribute));
    assert_eq!(tree.ask(set("user.x", 5, SetValue::New)), Ok(TreeAnswer::Done));
    assert_eq!(tree.ask(set("user.x", 5, SetValue::New)), Err(TreeRefusal::Exists));
    assert_eq!(tree.ask(set("user.y", 1 << 20, SetValue::Any)), Err(TreeRefusal::TooLarge));
    assert_eq!(tree.ask(set("user.y", 0, SetValue::Any)), Ok(TreeAnswer::Done));
    let names = tree.ask(TreeOperation::ListExtended { number });
    assert_eq!(names, Ok(TreeAnswer::Names(vec![b"user.x".to_vec(), b"user.y".to_vec()])));
    tree.remove("a", RemovalTarget::File).expect("removed");
    let disks = disks_of(&mut tree, number);
    tree.ask(TreeOperation::Forget { numbers: vec![number], disks }).expect("forgotten");
    assert!(!tree.records(500).contains(&SurveyedRecord::Extended(number)));
}

#[test]
fn a_file_is_unfinished_until_its_first_name_is_renamed() {
    let mut tree = Tree::new();
    let striping = Striping::new(4096, 3).expect("a striping");
    let unfinished = NewInode::UnfinishedFile { striping, disks: 0 };
    let mark =
        |tree: &mut Tree, number| tree.ask(TreeOperation::GetExtended { number, name: UNFINISHED.to_vec() });
    let number = tree.file("whole").expect("a file").number;
    assert_eq!(mark(&mut tree, number), Err(TreeRefusal::NoAttribute));
    for mode in [RenameMode::Keep, RenameMode::Replace, RenameMode::Exchange] {
        let number = tree.make("hidden", unfinished.clone()).expect("a file").number;
        tree.ask(TreeOperation::Link { number, at: Location::of_path("other name") }).expect("a link");
        tree.rename("other name", "another", RenameMode::Keep).expect("renamed");
        assert_eq!(mark(&mut tree, number), Ok(TreeAnswer::Value(b"hidden".to_vec())));
        let name = if mode == RenameMode::Keep { "new" } else { "whole" };
        tree.rename("hidden", name, mode).expect("renamed");
        assert_eq!(mark(&mut tree, number), Err(TreeRefusal::NoAttribute), "{mode:?}");
        tree.remove("another", RemovalTarget::File).expect("removed");
        tree.check();
    }
}

#[test]
fn numbers_of_existing_contents_are_not_assigned_to_files() {
    let mut tree = Tree::new();
    let before = tree.file("before").expect("a file");
    let repair =
        |tree: &mut Tree, repair| assert_eq!(tree.ask(TreeOperation::Mend { repair }), Ok(TreeAnswer::Done));
    let ahead = |files: u64| FileNumber(before.number.0 + files * RUN_STEP);
    // The records are those of an older copy, and files were created since: the next three numbers have contents.
    let layout = before.layout().expect("a file");
    repair(&mut tree, Repair::Adopt { number: ahead(1), layout, bytes: 9, stored_stripes: 1 });
    repair(&mut tree, Repair::Adopt { number: ahead(3), layout, bytes: 9, stored_stripes: 1 });
    repair(&mut tree, Repair::Reserve { number: ahead(2) });
    repair(&mut tree, Repair::Reserve { number: ahead(1 << 33) });
    let after = tree.file("after").expect("a file");
    assert!((4..10).contains(&((after.number.0 - before.number.0) / RUN_STEP)), "{after:?}");
    assert_eq!(tree.look("lost+found").map(|found| found.size), Ok(2));
}

#[test]
fn damage_of_a_namespace_is_found_and_repaired() {
    let mut tree = Tree::new();
    for path in ["d", "d/e", "d/e/f", "g"] {
        tree.make(path, NewInode::Directory).expect("made");
    }
    let lost = tree.file("d/lost").expect("a file");
    let number = tree.file("twice").expect("a file").number;
    let (d, e) = (tree.look("d").expect("there"), tree.look("d/e").expect("there"));
    let changes = [
        (keys::entry(d.number, b"lost"), None),
        (keys::entry(FileNumber::ROOT, b"nowhere"), Some(12345u64.to_be_bytes().to_vec())),
        (keys::entry(FileNumber::ROOT, b"again"), Some(number.0.to_be_bytes().to_vec())),
        (keys::inode(FileNumber(99)), Some(b"garbage".to_vec())),
        // A cycle: d is within e, which is within d.
        (keys::entry(FileNumber::ROOT, b"d"), None),
        (keys::entry(e.number, b"d"), Some(d.number.0.to_be_bytes().to_vec())),
        (
            keys::inode(d.number),
            Some(store::encoded_inode(&Inode {
                kind: InodeKind::Directory { parent: e.number },
                ..d.clone()
            })),
        ),
    ];
    tree.table.apply(changes.into_iter().collect());
    let mut rounds = 0;
    loop {
        let found = defects(&tree.records(500));
        if found.is_empty() {
            break;
        }
        rounds += 1;
        assert!(rounds < 6, "{found:?}");
        for complaint in found {
            // A repair may be refused because an earlier one made it unnecessary.
            let _ = tree.ask(TreeOperation::Mend { repair: complaint.repair });
        }
    }
    let path = format!("lost+found/{}", lost.number);
    assert_eq!(tree.look(&path).map(|inode| inode.number), Ok(lost.number));
    assert_eq!(tree.look("again").map(|inode| inode.links), Ok(2));
    // If a disk of a file is lost, its identity may be unknown.
    let list = TreeOperation::EnterDisks { disks: vec![NO_DISK, 5, NO_DISK] };
    let Ok(TreeAnswer::Number(disks)) = tree.ask(list) else { panic!("no list") };
    let twice = TreeOperation::EnterDisks { disks: vec![NO_DISK, 5, 5] };
    assert_eq!(tree.ask(twice), Err(TreeRefusal::Invalid));
    let (number, layout) = (FileNumber(4242), FileLayout { disks, ..lost.layout().expect("a file") });
    let adopt = Repair::Adopt { number, layout, bytes: 99, stored_stripes: 2 };
    tree.ask(TreeOperation::Mend { repair: adopt }).expect("adopted");
    let adopted = tree.look("lost+found/0000000000001092").expect("adopted");
    assert_eq!((adopted.size, adopted.stored_stripes), (99, 2));
    assert!(disks_of(&mut tree, number).contains(&NO_DISK));
    tree.remove("lost+found/0000000000001092", RemovalTarget::File).expect("removed");
    let forget = TreeOperation::Forget { numbers: vec![number], disks: vec![5] };
    assert_eq!(tree.ask(forget), Ok(TreeAnswer::Forgotten(vec![number])));
    assert_eq!(defects(&tree.records(500)), []);
}

/// Restored records may list a file with a name as an orphan.
#[test]
fn a_file_with_a_name_is_neither_forgotten_nor_an_orphan() {
    let mut tree = Tree::new();
    let file = tree.file("named").expect("a file");
    let number = file.number;
    for links in [1, 0] {
        let inode = store::encoded_inode(&Inode { links, ..file.clone() });
        let changes = [(keys::inode(number), Some(inode)), (keys::orphan(number), Some(Vec::new()))];
        tree.table.apply(changes.into_iter().collect());
        let disks = disks_of(&mut tree, number);
        if links > 0 {
            let forget = TreeOperation::Forget { numbers: vec![number], disks };
            assert_eq!(tree.ask(forget), Ok(TreeAnswer::Forgotten(Vec::new())));
            let list = TreeOperation::ListOrphans { after: FileNumber(0), most: 9 };
            assert_eq!(tree.ask(list), Ok(TreeAnswer::Numbers(Vec::new())));
        }
        for Defect { repair, .. } in defects(&tree.records(500)) {
            tree.ask(TreeOperation::Mend { repair }).expect("mended");
        }
        assert_eq!(tree.look("named").map(|inode| inode.links), Ok(1));
        assert!(!tree.records(500).contains(&SurveyedRecord::Orphan(number)));
        tree.check();
    }
}

#[test]
fn a_namespace_is_created_once_and_a_newer_format_is_rejected() {
    let mut tree = Tree::new();
    let begin = TreeOperation::Begin { origin: 1, mode: 0, uid: 0, gid: 0 };
    assert_eq!(tree.ask(begin.clone()), Err(TreeRefusal::HasNamespace));
    let mut newer = tree.table.entries().find(|(key, _)| *key == keys::HEADER).expect("a header").1.to_vec();
    newer[0] = store::FORMAT as u8 + 1;
    tree.table.apply([(keys::HEADER.to_vec(), Some(newer))].into_iter().collect());
    let refused = Err(TreeRefusal::Newer { found: store::FORMAT + 1, known: store::FORMAT });
    assert_eq!(tree.look("/").map(drop), refused);
    assert_eq!(tree.ask(begin).map(drop), refused);
    let mut none = Tree { table: MetadataTable::default(), now: 0, run: 7, disks: 0 };
    assert_eq!(none.look("/"), Err(TreeRefusal::NoNamespace));
    assert_eq!(none.disks, 0);
}

#[test]
fn inodes_record_stored_stripes_and_older_inodes_are_readable() {
    let mut tree = Tree::new();
    let format =
        |tree: &Tree| tree.table.entries().find(|(key, _)| *key == keys::HEADER).expect("a header").1[0];
    let file = tree.file("a").expect("a file");
    assert_eq!(file.stored_stripes, 0);
    // A namespace of an older format, with its inodes.
    let old_header =
        [&[1], &tree.table.entries().find(|(key, _)| *key == keys::HEADER).expect("a header").1[1..]];
    let old_header = old_header.concat();
    tree.table.apply([(keys::HEADER.to_vec(), Some(old_header))].into_iter().collect());
    let old_inode = postcard::to_allocvec(&file).expect("encoded");
    let old_inode = old_inode.strip_suffix(&[0, 0, 0]).expect("fields of today");
    assert_eq!(old_inode, store::encoded_inode(&file), "nothing but the new fields is new");
    assert_eq!(tree.look("a"), Ok(file.clone()));
    tree.ask(wrote(file.number, 1, 0)).expect("noted");
    assert_eq!(format(&tree), 1, "programs of before can read all of it");
    let stored_after = |tree: &mut Tree, stripes| {
        tree.inode(wrote(file.number, 1, stripes)).map(|inode| inode.stored_stripes)
    };
    assert_eq!(
        [stored_after(&mut tree, 2), stored_after(&mut tree, 1), stored_after(&mut tree, 99)],
        [Ok(2), Ok(2), Ok(3)]
    );
    assert_eq!((format(&tree), tree.look("a").map(|inode| inode.stored_stripes)), (2, Ok(3)));
    let size = |bytes| AttributeChanges { size: Some(bytes), ..AttributeChanges::default() };
    let cut = |bytes| TreeOperation::Change { number: file.number, changes: size(bytes) };
    assert_eq!(tree.inode(cut(1)).map(|inode| inode.stored_stripes), Ok(3));
    assert_eq!(tree.inode(cut(0)).map(|inode| inode.stored_stripes), Ok(0), "nothing is left to be lost");
    tree.check();
}

#[test]
fn inodes_record_the_number_of_stored_bytes() {
    let mut tree = Tree::new();
    let file = tree.file("a").expect("a file").number;
    let size = |bytes| AttributeChanges { size: Some(bytes), ..AttributeChanges::default() };
    let resize = |bytes| TreeOperation::Change { number: file, changes: size(bytes) };
    let write = |end, bytes| TreeOperation::Wrote {
        number: file,
        written: WrittenContents { end, stored_stripes: 1, bytes },
    };
    let steps = [
        (write(100, 100), (100, 100)),
        (resize(1000), (1000, 100)),
        // Overwritten bytes count twice, but never exceed the length.
        (write(100, 100), (1000, 200)),
        (write(5000, 10), (5000, 210)),
        (TreeOperation::Append { number: file, bytes: 7, after: 0 }, (5000, 210)),
        (write(5007, 7), (5007, 217)),
        (resize(50), (50, 50)),
        (resize(60), (60, 50)),
        (write(20, 20), (60, 60)),
        (resize(0), (0, 0)),
        (resize(9), (9, 0)),
    ];
    for (operation, (bytes, stored)) in steps {
        tree.ask(operation.clone()).expect("noted");
        let inode = tree.look("a").expect("it exists");
        assert_eq!((inode.size, inode.stored_bytes()), (bytes, stored), "{operation:?}");
    }
    tree.check();
}

/// An action of a program, by paths.
#[derive(Clone, Debug)]
enum Act {
    File(String),
    Directory(String),
    Symlink(String, String),
    Link(String, String),
    Rename(String, String),
    Unlink(String),
    RemoveDirectory(String),
    Look(String, bool),
}

fn any_path() -> impl Strategy<Value = String> {
    let name = prop_oneof![8 => "[abc]", 1 => Just("..".to_owned()), 1 => Just(".".to_owned())];
    proptest::collection::vec(name, 1..4).prop_map(|names| names.join("/"))
}

fn any_act() -> impl Strategy<Value = Act> {
    prop_oneof![
        3 => any_path().prop_map(Act::File),
        4 => any_path().prop_map(Act::Directory),
        2 => (any_path(), any_path()).prop_map(|(target, path)| Act::Symlink(target, path)),
        2 => (any_path(), any_path()).prop_map(|(old, new)| Act::Link(old, new)),
        4 => (any_path(), any_path()).prop_map(|(old, new)| Act::Rename(old, new)),
        2 => any_path().prop_map(Act::Unlink),
        2 => any_path().prop_map(Act::RemoveDirectory),
        2 => (any_path(), any::<bool>()).prop_map(|(path, follow)| Act::Look(path, follow)),
    ]
}

/// Returns the error number of a refusal.
fn errno(refusal: TreeRefusal) -> i32 {
    const ENTRIES: [(TreeRefusal, i32); 10] = [
        (TreeRefusal::NotFound, 2),
        (TreeRefusal::Exists, 17),
        (TreeRefusal::NotDirectory, 20),
        (TreeRefusal::IsDirectory, 21),
        (TreeRefusal::Invalid, 22),
        (TreeRefusal::NotEmpty, 39),
        (TreeRefusal::Loop, 40),
        (TreeRefusal::NotPermitted, 1),
        (TreeRefusal::Busy, 16),
        (TreeRefusal::NameTooLong, 36),
    ];
    ENTRIES.into_iter().find(|(other, _)| *other == refusal).map_or(0, |(_, errno)| errno)
}

impl Tree {
    fn act(&mut self, act: &Act) -> Result<(), TreeRefusal> {
        let of = |path: &str| Location::of_path(path);
        match act {
            Act::File(path) => self.file(path).map(drop),
            Act::Directory(path) => self.make(path, NewInode::Directory).map(drop),
            Act::Symlink(target, path) => self.make(path, link_to(target)).map(drop),
            Act::Link(old, new) => {
                let number = self.look(old)?.number;
                self.inode(TreeOperation::Link { number, at: of(new) }).map(drop)
            }
            Act::Rename(old, new) => self.rename(old, new, RenameMode::Replace).map(drop),
            Act::Unlink(path) => self.remove(path, RemovalTarget::File).map(drop),
            Act::RemoveDirectory(path) => self.remove(path, RemovalTarget::Directory).map(drop),
            Act::Look(path, follow) => {
                self.inode(TreeOperation::Look { at: of(path), follow: *follow }).map(drop)
            }
        }
    }

    /// Collects all names below a directory, in the form of [`below`].
    fn all(&mut self, directory: FileNumber, at: &Path, found: &mut Vec<(PathBuf, char, u64)>) {
        let list = TreeOperation::List { directory, after: Vec::new(), bytes_max: u32::MAX };
        let Ok(TreeAnswer::Entries { entries, .. }) = self.ask(list) else { panic!("no entries") };
        for DirectoryEntry { name, inode } in entries {
            let path = at.join(OsStr::from_bytes(&name));
            let kind = match inode.kind {
                InodeKind::Directory { .. } => 'd',
                InodeKind::Link { .. } => 'l',
                _ => 'f',
            };
            found.push((path.clone(), kind, u64::from(inode.links)));
            if kind == 'd' {
                self.all(inode.number, &path, found);
            }
        }
    }
}

/// Performs the same action in a local directory, which acts as the root.
fn act_here(root: &Path, act: &Act) -> io::Result<()> {
    let of = |path: &String| root.join(path);
    match act {
        Act::File(path) => fs::OpenOptions::new().write(true).create_new(true).open(of(path)).map(drop),
        Act::Directory(path) => fs::create_dir(of(path)),
        Act::Symlink(target, path) => symlink(target, of(path)),
        Act::Link(old, new) => fs::hard_link(of(old), of(new)),
        Act::Rename(old, new) => fs::rename(of(old), of(new)),
        Act::Unlink(path) => fs::remove_file(of(path)),
        Act::RemoveDirectory(path) => fs::remove_dir(of(path)),
        Act::Look(path, true) => fs::metadata(of(path)).map(drop),
        Act::Look(path, false) => fs::symlink_metadata(of(path)).map(drop),
    }
}

fn below(root: &Path, at: &Path, found: &mut Vec<(PathBuf, char, u64)>) {
    let mut names: Vec<_> = fs::read_dir(root.join(at))
        .expect("a directory")
        .map(|entry| entry.expect("one").file_name())
        .collect();
    names.sort();
    for name in names {
        let path = at.join(name);
        let metadata = fs::symlink_metadata(root.join(&path)).expect("metadata");
        let kind = if metadata.is_dir() {
            'd'
        } else if metadata.is_symlink() {
            'l'
        } else {
            'f'
        };
        found.push((path.clone(), kind, metadata.nlink()));
        if kind == 'd' {
            below(root, &path, found);
        }
    }
}

/// True if a path could lead out of the directory that acts as the root.
fn leads_out(act: &Act) -> bool {
    let out = |path: &String| path.contains("..");
    match act {
        Act::File(path)
        | Act::Directory(path)
        | Act::Unlink(path)
        | Act::RemoveDirectory(path)
        | Act::Look(path, _) => out(path),
        Act::Symlink(one, two) | Act::Link(one, two) | Act::Rename(one, two) => out(one) || out(two),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_refused_operation_changes_nothing_and_records_stay_consistent(
        acts in proptest::collection::vec(any_act(), 1..60),
    ) {
        let mut tree = Tree::new();
        for act in &acts {
            let before = tree.table.clone();
            if tree.act(act).is_err() {
                prop_assert_eq!(&before, &tree.table);
            }
        }
        tree.check();
    }

    #[test]
    fn operations_have_the_same_results_as_in_a_local_directory(acts in proptest::collection::vec(any_act(), 1..60)) {
        let here = tempfile::tempdir().expect("a directory");
        let mut tree = Tree::new();
        for act in acts.iter().filter(|act| !leads_out(act)) {
            let (ours, theirs) = (tree.act(act), act_here(here.path(), act));
            let (ours, theirs) = (ours.err().map(errno), theirs.err().and_then(|error| error.raw_os_error()));
            prop_assert_eq!(ours, theirs, "{:?}", act);
        }
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        tree.all(FileNumber::ROOT, Path::new(""), &mut ours);
        below(here.path(), Path::new(""), &mut theirs);
        // Not all file systems count the links of directories.
        for (path, kind, links) in &mut theirs {
            let has_links = *kind != 'd' || *links > 1;
            *links = if has_links { *links } else { ours.iter().find(|(other, ..)| other == path).map_or(0, |(.., links)| *links) };
        }
        prop_assert_eq!(ours, theirs);
    }

    #[test]
    fn garbage_in_the_store_causes_no_panic(
        garbage in proptest::collection::vec((any::<prop::sample::Index>(), proptest::collection::vec(any::<u8>(), 0..40)), 1..8),
        acts in proptest::collection::vec(any_act(), 1..20),
    ) {
        let mut tree = Tree::new();
        for act in [Act::Directory("a".into()), Act::File("a/b".into()), Act::Symlink("a".into(), "c".into())] {
            tree.act(&act).expect("done");
        }
        let keys: Vec<Vec<u8>> = tree.table.entries().map(|(key, _)| key.to_vec()).filter(|key| key != keys::HEADER).collect();
        let changes = garbage.into_iter().map(|(key, value)| (key.get(&keys).clone(), Some(value))).collect();
        tree.table.apply(changes);
        for act in &acts {
            let _ = tree.act(act);
        }
        let _ = defects(&tree.records(500));
    }
}
