//! Behaviour of files in one mount, and visibility between two mounts of the same agents.

mod common;

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt, symlink};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use common::Mount;
use mount::{LockScope, MountCounts, MountSettings};
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::statvfs::statvfs;
use prerequisites::has;
use test_agents::Agents;

/// Returns two mounts of the same agents.
fn two() -> Option<(Mount, Mount)> {
    let first = Mount::of_new_agents()?;
    let second = Mount::of(first.agents(), "b", MountSettings::default())?;
    Some((first, second))
}

#[test]
fn renaming_a_new_file_replaces_the_old_one_atomically() {
    let Some(mount) = Mount::of_new_agents() else { return };
    let (path, beside) = (mount.at("text"), mount.at(".text.new"));
    fs::write(&path, vec![b'0'; 100_000]).expect("a file");
    let done = Arc::new(AtomicBool::new(false));
    let reader = {
        let (path, done) = (path.clone(), done.clone());
        thread::spawn(move || {
            while !done.load(Ordering::Relaxed) {
                let bytes = fs::read(&path).expect("it is always there");
                assert!(bytes.len() == 100_000 && bytes.iter().all(|byte| *byte == bytes[0]), "all of one");
            }
        })
    };
    for version in b'1'..=b'9' {
        let mut file = File::create(&beside).expect("a new file");
        file.write_all(&vec![version; 100_000]).expect("room");
        file.sync_all().expect("a disk");
        drop(file);
        fs::rename(&beside, &path).expect("it replaces");
    }
    done.store(true, Ordering::Relaxed);
    reader.join().expect("it saw whole files");
    assert_eq!(fs::read(&path).expect("a file"), vec![b'9'; 100_000]);
    mount.end();
}

#[test]
fn names_may_have_up_to_255_arbitrary_bytes() {
    let Some(mount) = Mount::of_new_agents() else { return };
    let longest = [vec![b'x'; 250], vec![0xff, 0xfe, b' ', b'\n', b'\\']].concat();
    let path = mount.at(OsStr::from_bytes(&longest));
    fs::write(&path, b"here").expect("a file");
    assert_eq!(fs::read(&path).expect("a file"), b"here");
    let names: Vec<_> = fs::read_dir(&mount.path)
        .expect("a directory")
        .map(|entry| entry.expect("one").file_name())
        .collect();
    assert_eq!(names, [OsStr::from_bytes(&longest)]);
    let error = fs::write(mount.at("y".repeat(256)), b"").expect_err("too long");
    assert_eq!(error.kind(), ErrorKind::InvalidFilename);
    mount.end();
}

#[test]
fn a_file_removed_while_open_exists_until_it_is_closed() {
    let Some(mount) = Mount::of_new_agents() else { return };
    let path = mount.at("file");
    fs::write(&path, vec![7; 1_000_000]).expect("a file");
    let mut file = File::options().read(true).write(true).open(&path).expect("a file");
    fs::remove_file(&path).expect("a name");
    assert!(!path.exists());
    assert_eq!(file.metadata().expect("attributes").nlink(), 0);
    file.write_all_at(b"still", 999_000).expect("room");
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).expect("contents");
    assert_eq!((bytes.len(), &bytes[998_999..999_006]), (1_000_000, &b"\x07still\x07"[..]));
    drop(file);
    let is_free = || {
        let disks = mount.agents().agents.iter().map(|agent| &agent.disk);
        let bytes = |disk| {
            let entries = fs::read_dir(disk).expect("a disk").map(|entry| entry.expect("one").metadata());
            entries.filter_map(Result::ok).filter(fs::Metadata::is_file).map(|file| file.len()).sum::<u64>()
        };
        disks.map(bytes).sum::<u64>() < 100_000
    };
    within(Duration::from_secs(20), "the stripes are removed", is_free);
    mount.end();
}

/// Waits for a condition; panics after `time`.
fn within(time: Duration, what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < time, "{what} within {time:?}");
        thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn readers_see_writes_of_a_write_only_handle() {
    let Some(mount) = Mount::of_new_agents() else { return };
    let path = mount.at("file");
    let write_only = || File::options().write(true).create(true).truncate(false).open(&path).expect("a file");
    let writer = write_only();
    let during = {
        writer.write_all_at(&[1; 5000], 0).expect("room");
        File::open(&path).expect("a file")
    };
    for round in 1..=9_u8 {
        let at = u64::from(round) * 5000;
        writer.write_all_at(&[round + 1; 5000], at).expect("room");
        // Write a part twice, so that a read of stale cached pages would be detected.
        writer.write_all_at(&[round + 1; 100], 4000).expect("room");
        let mut bytes = vec![0; at as usize + 5000];
        during.read_exact_at(&mut bytes, 0).expect("all of it");
        assert!(
            bytes[4000..4100].iter().chain(&bytes[at as usize..]).all(|byte| *byte == round + 1),
            "{round}"
        );
    }
    drop((writer, during));
    // Now the file is open through the kernel's pages before it is written.
    let before = File::open(&path).expect("a file");
    let mut bytes = vec![0; 50_000];
    before.read_exact_at(&mut bytes, 0).expect("all of it");
    let writer = write_only();
    writer.write_all_at(&[77; 5000], 45_000).expect("room");
    writer.write_all_at(&[77; 5000], 50_000).expect("room");
    let mut bytes = vec![0; 10_000];
    before.read_exact_at(&mut bytes, 45_000).expect("all of it");
    assert!(bytes.iter().all(|byte| *byte == 77));
    drop((writer, before));
    mount.end();
}

#[test]
fn files_are_truncated_extended_and_punched() {
    let Some(mount) = Mount::of_new_agents().filter(|_| has("fallocate")) else { return };
    let path = mount.at("file");
    fs::write(&path, vec![1; 600_000]).expect("a file");
    let file = File::options().read(true).write(true).open(&path).expect("a file");
    file.set_len(300_000).expect("it can be cut");
    file.set_len(400_000).expect("it can be extended");
    file.write_all_at(&[2; 10], 1_000_000).expect("room beyond its end");
    drop(file);
    mount.run("fallocate", &["--punch-hole", "--offset", "100", "--length", "1000", "file"]);
    let mut expected = [vec![1; 300_000], vec![0; 700_000], vec![2; 10]].concat();
    expected[100..1100].fill(0);
    assert!(fs::read(&path).expect("a file") == expected);
    mount.run("truncate", &["-s", "5", "file"]);
    assert_eq!(fs::read(&path).expect("a file"), [1; 5]);
    mount.end();
}

/// Unwritten ranges do not count as space, so programs search for holes and skip them.
#[test]
fn holes_take_no_space_and_are_left_out_of_copies() {
    const MIB: u64 = 1 << 20;
    let Some((here, there)) = two() else { return };
    let space = |mount: &Mount, name: &str| {
        thread::sleep(MountSettings::default().attribute_timeout);
        fs::metadata(mount.at(name)).expect("attributes").blocks() * 512
    };
    let about_one = MIB..2 * MIB;
    let file = File::create(here.at("file")).expect("a file");
    assert_eq!(space(&here, "file"), 0);
    file.set_len(100 * MIB).expect("it can be extended");
    assert_eq!(space(&here, "file"), 512, "some programs skip a file without blocks");
    file.write_all_at(&vec![1; MIB as usize], 50 * MIB + 1).expect("room");
    assert!(about_one.contains(&space(&here, "file")), "before the close");
    drop(file);
    for mount in [&here, &there] {
        assert!(about_one.contains(&space(mount, "file")));
    }
    here.run("cp", &["file", "copy"]);
    assert!(about_one.contains(&space(&there, "copy")), "{}", space(&there, "copy"));
    assert!(fs::read(there.at("copy")).expect("a file") == fs::read(here.at("file")).expect("a file"));
    if has("tar") {
        here.run("tar", &["-S", "-c", "-f", "tar", "file"]);
        assert!(about_one.contains(&space(&there, "tar")), "{}", space(&there, "tar"));
    }
    // Dense files: written in different orders, and truncated.
    let file = File::create(here.at("dense")).expect("a file");
    file.write_all_at(&[1; 2_000_000], 1_000_000).expect("room");
    file.write_all_at(&[1; 1_000_000], 0).expect("room");
    drop(file);
    assert_eq!(space(&there, "dense"), 3_000_000_u64.next_multiple_of(512));
    File::options()
        .write(true)
        .open(there.at("dense"))
        .and_then(|file| file.set_len(5))
        .expect("it can be cut");
    assert_eq!(space(&here, "dense"), 512);
    there.end();
    here.end();
}

/// Zeros are written only over data, so that holes stay holes, whatever their size.
#[test]
fn punching_and_zeroing_a_large_hole_keeps_other_data() {
    const LENGTH: u64 = 16 << 30;
    let Some(mount) = Mount::of_new_agents().filter(|_| has("fallocate")) else { return };
    let path = mount.at("file");
    let file = File::create(&path).expect("a file");
    file.set_len(LENGTH).expect("it can be extended");
    file.write_all_at(&[1; 3000], LENGTH / 2).expect("room");
    drop(file);
    mount.run("fallocate", &["--punch-hole", "--offset", "0", "--length", "8GiB", "file"]);
    mount.run("fallocate", &["--zero-range", "--offset", "8GiB", "--length", "1000", "file"]);
    mount.run("fallocate", &["--zero-range", "--offset", "16GiB", "--length", "1000", "file"]);
    let file = File::open(&path).expect("a file");
    assert_eq!(file.metadata().expect("attributes").len(), LENGTH + 1000);
    let mut data = [7; 3000];
    file.read_exact_at(&mut data, LENGTH / 2).expect("it is there");
    assert!(data[..1000].iter().all(|byte| *byte == 0) && data[1000..].iter().all(|byte| *byte == 1));
    drop(file);
    mount.end();
}

/// A hole punched in data frees space on the agents.
#[test]
fn punching_a_hole_in_data_frees_its_space() {
    let Some(mount) = Mount::of_new_agents().filter(|_| has("fallocate")) else { return };
    let on_disks = || -> u64 {
        let disks = mount.agents().agents.iter().map(|agent| &agent.disk);
        let files = disks.flat_map(|disk| fs::read_dir(disk).expect("a directory"));
        files.map(|file| file.and_then(|file| file.metadata()).expect("a file").blocks() * 512).sum()
    };
    let path = mount.at("file");
    fs::write(&path, vec![1; 8 << 20]).expect("a file");
    File::open(&path).and_then(|file| file.sync_all()).expect("it can be flushed");
    let before = on_disks();
    mount.run("fallocate", &["--punch-hole", "--offset", "1MiB", "--length", "4MiB", "file"]);
    File::open(&path).and_then(|file| file.sync_all()).expect("it can be flushed");
    let after = on_disks();
    // Allow for the agents' own metadata.
    assert!(before - after >= (4 << 20) - (64 << 10), "{before} {after}");
    let expected = [vec![1; 1 << 20], vec![0; 4 << 20], vec![1; 3 << 20]].concat();
    assert!(fs::read(&path).expect("a file") == expected);
    mount.end();
}

#[test]
fn data_closed_on_one_mount_are_read_on_the_other() {
    let Some((a, b)) = two() else { return };
    for round in 0..5_u8 {
        fs::write(a.at("file"), vec![round; 300_000]).expect("a file");
        assert!(fs::read(b.at("file")).expect("a file") == vec![round; 300_000], "round {round}");
        let longer = 300_000 + usize::from(round) * 1000;
        fs::write(b.at("file"), vec![round + 100; longer]).expect("a file");
        assert!(fs::read(a.at("file")).expect("a file") == vec![round + 100; longer], "round {round}");
    }
    b.end();
    a.end();
}

#[test]
fn an_open_reader_sees_appends_of_another_mount() {
    let Some((a, b)) = two() else { return };
    fs::write(a.at("log"), b"one\n").expect("a file");
    let mut reader = File::open(b.at("log")).expect("a file");
    let mut text = String::new();
    reader.read_to_string(&mut text).expect("text");
    let mut writer = File::options().append(true).open(a.at("log")).expect("a file");
    writer.write_all(b"two\n").expect("room");
    drop(writer);
    within(Duration::from_secs(10), "the second line comes", || {
        reader.read_to_string(&mut text).expect("text");
        text == "one\ntwo\n"
    });
    drop(reader);
    b.end();
    a.end();
}

#[test]
fn appends_from_two_mounts_lose_nothing() {
    const LINES: usize = 100;
    let Some((a, b)) = two() else { return };
    File::create(a.at("log")).expect("a file");
    let writers = [("a", a.at("log")), ("b", b.at("log"))].map(|(name, path)| {
        thread::spawn(move || {
            let mut file = File::options().append(true).open(path).expect("a file");
            for number in 0..LINES {
                file.write_all(format!("{name} {number} {}\n", "-".repeat(number)).as_bytes()).expect("room");
            }
        })
    });
    writers.into_iter().for_each(|writer| writer.join().expect("no error"));
    let text = fs::read_to_string(a.at("log")).expect("text");
    assert_eq!(text, fs::read_to_string(b.at("log")).expect("text"), "both see the same");
    for name in ["a", "b"] {
        let own: Vec<_> = text.lines().filter(|line| line.starts_with(name)).collect();
        let expected: Vec<_> =
            (0..LINES).map(|number| format!("{name} {number} {}", "-".repeat(number))).collect();
        assert_eq!(own, expected);
    }
    b.end();
    a.end();
}

#[test]
fn writes_go_to_their_offset_after_o_append_is_cleared() {
    let Some(mount) = Mount::of_new_agents() else { return };
    let open =
        || File::options().read(true).append(true).create(true).open(mount.at("file")).expect("a file");
    let mut file = open();
    file.write_all(b"some text").expect("room");
    file.write_at(b" more", 0).expect("room");
    fcntl(&file, FcntlArg::F_SETFL(OFlag::empty())).expect("it appends no more");
    file.write_all_at(b"S", 0).expect("room");
    fcntl(&file, FcntlArg::F_SETFL(OFlag::O_APPEND)).expect("it appends again");
    file.write_all(b".").expect("room");
    drop(file);
    assert_eq!(fs::read(mount.at("file")).expect("a file"), b"Some text more.");
    mount.end();
}

#[test]
fn allocation_by_another_user_clears_the_setuid_bit() {
    if !nix::unistd::geteuid().is_root() {
        return prerequisites::skip("only root can be another user");
    }
    let agents = Agents::start(1);
    let settings = MountSettings { allow_other: true, ..MountSettings::default() };
    let Some(mount) = Mount::of(&agents, "a", settings).filter(|_| has("python3")) else { return };
    let program = "
import os
file = os.open('file', os.O_RDWR | os.O_CREAT)
def mode_after(user):
    os.fchown(file, 1000, 1000)
    os.fchmod(file, 0o4755)
    os.seteuid(user)
    os.posix_fallocate(file, 0, 100)
    os.seteuid(0)
    return os.fstat(file).st_mode & 0o7777
print(oct(mode_after(0)), oct(mode_after(1000)))
";
    assert_eq!(mount.run("python3", &["-c", program]), "0o4755 0o755\n");
    mount.end();
}

#[test]
fn a_rename_on_one_mount_is_seen_on_the_other() {
    let Some((a, b)) = two() else { return };
    fs::create_dir(a.at("from")).expect("a directory");
    fs::write(a.at("from/file"), b"1").expect("a file");
    fs::write(a.at("other"), b"2").expect("a file");
    assert_eq!(fs::read(b.at("from/file")).expect("a file"), b"1");
    assert_eq!(fs::read(b.at("other")).expect("a file"), b"2");
    fs::rename(b.at("from/file"), b.at("other")).expect("it replaces");
    // The first mount still has the old inode of this name cached; the kernel looks it up again.
    assert_eq!(fs::read(a.at("other")).expect("a file"), b"1");
    within(Duration::from_secs(10), "the old name disappears", || !a.at("from/file").exists());
    fs::remove_dir(a.at("from")).expect("it is empty");
    b.end();
    a.end();
}

#[test]
fn a_read_only_mount_rejects_changes() {
    let agents = Agents::start(1);
    let Some(writable) = Mount::of(&agents, "a", MountSettings::default()) else { return };
    fs::write(writable.at("file"), b"text").expect("a file");
    let settings = MountSettings { read_only: true, ..MountSettings::default() };
    let Some(mount) = Mount::of(&agents, "b", settings) else { return };
    assert_eq!(fs::read(mount.at("file")).expect("a file"), b"text");
    for error in
        [fs::write(mount.at("file"), b""), fs::remove_file(mount.at("file")), fs::create_dir(mount.at("x"))]
    {
        assert_eq!(error.expect_err("read-only").kind(), ErrorKind::ReadOnlyFilesystem);
    }
    mount.end();
    writable.end();
}

#[test]
fn locks_fail_with_enolck_if_the_mount_has_no_lock_scope() {
    let agents = Agents::start(1);
    let settings = MountSettings { locks: LockScope::Nowhere, ..MountSettings::default() };
    let Some(mount) = Mount::of(&agents, "a", settings) else { return };
    let file = File::create(mount.at("file")).expect("a file");
    let error = file.lock().expect_err("no lock");
    assert_eq!(error.raw_os_error(), Some(nix::libc::ENOLCK), "{error}");
    drop(file);
    mount.end();
}

#[test]
fn direct_io_reads_and_writes_the_same_data() {
    let agents = Agents::start(2);
    let settings = MountSettings { direct: true, ..MountSettings::default() };
    let Some(mount) = Mount::of(&agents, "a", settings) else { return };
    let bytes: Vec<u8> = (0..3_000_000_u32).map(|number| (number / 1000) as u8).collect();
    fs::write(mount.at("file"), &bytes).expect("a file");
    assert!(fs::read(mount.at("file")).expect("a file") == bytes);
    let direct = File::options().read(true).custom_flags(nix::libc::O_DIRECT).open(mount.at("file"));
    let mut part = vec![0; 4096];
    direct.expect("a file").read_exact_at(&mut part, 1_000_000 / 4096 * 4096).expect("contents");
    assert_eq!(part[..], bytes[1_000_000 / 4096 * 4096..][..4096]);
    let mut file = File::options().append(true).read(true).open(mount.at("file")).expect("a file");
    file.write_all(b"end").expect("room");
    file.seek(SeekFrom::End(-3)).expect("an end");
    let mut end = String::new();
    file.read_to_string(&mut end).expect("text");
    assert_eq!(end, "end");
    drop(file);
    mount.end();
}

#[test]
fn a_listing_has_each_entry_once_during_removals() {
    let Some(mount) = Mount::of_new_agents() else { return };
    for number in 0..1000 {
        File::create(mount.at(format!("file{number:04}"))).expect("a file");
    }
    let mut seen = Vec::new();
    for entry in fs::read_dir(&mount.path).expect("a directory") {
        let entry = entry.expect("one");
        seen.push(entry.file_name().into_string().expect("text"));
        if seen.len() % 2 == 0 {
            fs::remove_file(entry.path()).expect("it is there");
        }
    }
    seen.sort_unstable();
    assert_eq!(seen, (0..1000).map(|number| format!("file{number:04}")).collect::<Vec<_>>());
    assert_eq!(fs::read_dir(&mount.path).expect("a directory").count(), 500);
    mount.end();
}

fn counts(mount: &Mount) -> MountCounts {
    let counter = mount.mounted.as_ref().expect("until it ends").counter();
    counter.counts(Duration::from_secs(10)).expect("it answers")
}

/// Returns the number of requests of this kind that agents have answered to a mount.
fn asked(mount: &Mount, operation: &str) -> u64 {
    let counts = counts(mount);
    let asked = counts.agents.asked.iter().filter(|asked| asked.operation == operation);
    asked.map(|asked| asked.times.count()).sum()
}

/// Waits until the mount has closed all files; the kernel does not wait for that.
fn all_closed(mount: &Mount) {
    let start = Instant::now();
    while counts(mount).open_files > 0 || counts(mount).under_way > 0 {
        assert!(start.elapsed() < Duration::from_secs(20), "a file is still open");
        thread::sleep(Duration::from_millis(1));
    }
}

/// The kernel looks up each name before it is removed, and fetches the attributes of the directory in between.
#[test]
fn removing_files_fetches_no_attributes_of_their_directory() {
    const FILES: u64 = 200;
    let Some(mount) = Mount::of_new_agents() else { return };
    fs::create_dir(mount.at("many")).expect("a directory");
    let directory = || fs::metadata(mount.at("many")).expect("attributes");
    for number in 0..FILES {
        File::create(mount.at(format!("many/{number}"))).expect("a file");
        assert_eq!(directory().len(), number + 1, "its own changes are seen at once");
    }
    let before = asked(&mount, "names");
    for number in 0..FILES {
        fs::remove_file(mount.at(format!("many/{number}"))).expect("it is there");
    }
    let asked = asked(&mount, "names") - before;
    // Allow for more than two requests per file: some are made each second, and inodes are forgotten in batches of a
    // few dozen.
    assert!(asked < 5 * FILES / 2, "{asked} metadata requests for {FILES} files");
    let changed = directory();
    assert_eq!((changed.len(), changed.nlink()), (0, 2));
    fs::set_permissions(mount.at("many"), fs::Permissions::from_mode(0o500)).expect("one's own");
    assert_eq!(directory().mode() & 0o7777, 0o500);
    let open = File::open(mount.at("many")).expect("a directory");
    fs::remove_dir(mount.at("many")).expect("it is empty");
    assert!(!open.metadata().is_ok_and(|gone| gone.nlink() > 0), "it is gone");
    drop(open);
    mount.end();
}

/// Returns the index of the one of two agents that is not the metadata server.
fn agent_without_metadata(agents: &Agents) -> usize {
    let [first, second] = [0, 1].map(|index| {
        let identity = fs::read(agents.agents[index].disk.join(".starfish.disk"));
        identity.expect("a disk has an identity")
    });
    usize::from(first < second)
}

#[test]
fn a_disconnected_agent_causes_an_error_and_no_hang() {
    let mut agents = Agents::start(2);
    let Some(mount) = Mount::of(&agents, "a", MountSettings::default()) else { return };
    fs::write(mount.at("file"), vec![1; 2_000_000]).expect("a file");
    all_closed(&mount);
    let total = || statvfs(&mount.path).expect("what is there").blocks();
    let of_both = total();
    let without_names = agent_without_metadata(&agents);
    agents.agents[without_names].end();
    let start = Instant::now();
    assert!(total() <= of_both, "only space on the remaining agent counts");
    // Bypass the kernel's pages, since the kernel has cached the file.
    let opened = File::options().read(true).custom_flags(nix::libc::O_DIRECT).open(mount.at("file"));
    let read = opened.and_then(|mut file| file.read_to_end(&mut Vec::new()));
    let error = read.expect_err("a part of it is gone");
    assert_eq!(error.raw_os_error(), Some(nix::libc::EIO), "{error}");
    assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
}

#[test]
fn circular_links_and_too_long_paths_are_rejected() {
    let Some(mount) = Mount::of_new_agents() else { return };
    symlink("b", mount.at("a")).expect("a link");
    symlink("a", mount.at("b")).expect("a link");
    symlink("itself/further", mount.at("itself")).expect("a link");
    for name in ["a", "b", "itself"] {
        let error = File::open(mount.at(name)).expect_err("a circle");
        assert_eq!(error.raw_os_error(), Some(nix::libc::ELOOP), "{error}");
        assert!(fs::symlink_metadata(mount.at(name)).expect("a link").is_symlink());
    }
    // The longest possible target of a link.
    let target = "t/".repeat(2047);
    symlink(&target, mount.at("long")).expect("a link");
    assert_eq!(fs::read_link(mount.at("long")).expect("a link").as_os_str().len(), 4094);
    fs::remove_file(mount.at("long")).expect("a link");
    // The kernel accepts paths up to 4095 bytes.
    let mut path = mount.path.clone();
    while path.as_os_str().len() + 202 < 4095 {
        path.push("d".repeat(200));
    }
    fs::create_dir_all(&path).expect("directories");
    let rest = 4095 - path.as_os_str().len() - 1;
    assert!(rest <= 255, "{rest}");
    path.push("f".repeat(rest));
    assert_eq!(path.as_os_str().len(), 4095);
    fs::write(&path, b"far down").expect("a file");
    assert_eq!(fs::read(&path).expect("a file"), b"far down");
    let renamed = path.with_file_name("g".repeat(rest));
    fs::rename(&path, &renamed).expect("a name of the same length");
    let longer = path.with_file_name("f".repeat(rest.min(254) + 1));
    if longer.as_os_str().len() > 4095 {
        assert_eq!(
            File::create(&longer).expect_err("too long").raw_os_error(),
            Some(nix::libc::ENAMETOOLONG)
        );
    }
    fs::remove_dir_all(mount.path.join("d".repeat(200))).expect("all of it");
    mount.end();
}

#[test]
fn lseek_finds_data_and_holes_as_in_a_local_file() {
    let Some(mount) = Mount::of_new_agents().filter(|_| has("python3")) else { return };
    let plain = tempfile::NamedTempFile::new().expect("a file of the system");
    fs::write(mount.at("sparse"), b"").expect("a file");
    let program = "
import errno, os, sys
def extents(path):
    file = os.open(path, os.O_RDWR)
    os.ftruncate(file, 3000000)
    os.pwrite(file, b'here', 2000000)
    os.pwrite(file, b'x' * 300000, 1 << 20)
    found, at = [], 0
    while at < 3000000:
        try:
            at = os.lseek(file, at, os.SEEK_DATA)
        except OSError as error:
            assert error.errno == errno.ENXIO, error
            break
        found.append((at, end := os.lseek(file, at, os.SEEK_HOLE)))
        assert os.lseek(file, at + 1, os.SEEK_DATA) == at + 1 and os.lseek(file, end, os.SEEK_HOLE) == end
        at = end
    for whence in (os.SEEK_DATA, os.SEEK_HOLE):
        try:
            os.lseek(file, 3000000, whence)
        except OSError as error:
            assert error.errno == errno.ENXIO, error
        else:
            assert False
    return found
here, there = extents('sparse'), extents(sys.argv[1])
told = (here, there)
assert [begin for begin, end in here] == [begin for begin, end in there], told
# The mount ends data at the exact byte; a local file ends them at a whole block.
assert all(0 <= other - end < 4096 for (begin, end), (_, other) in zip(here, there)), told
";
    mount.run("python3", &["-c", program, plain.path().to_str().expect("text")]);
    mount.run("cp", &["--sparse=always", "sparse", "copy"]);
    assert!(fs::read(mount.at("sparse")).expect("a file") == fs::read(mount.at("copy")).expect("a file"));
    mount.end();
}
