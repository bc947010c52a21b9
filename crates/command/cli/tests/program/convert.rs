//! `starfish convert` with the files of an older version on three disks, which it converts to files of the namespace.
//!
//! `tests/data/old-set.tar.gz` contains three disks that were written by `starfish put` of the last version with flat
//! names. `old-set.b3` has the names and hashes of the finished files. One stripe of `damaged` was changed later, and
//! the program that wrote `unfinished` was killed.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use crate::common::{
    Agent, Store, fail, give_environment_of, hash, signal, starfish, stripe_files, text, wait,
};
use crate::killing::{draw, kill_after, rounds};
use tempfile::TempDir;

const HASHES: &str = include_str!("../data/old-set.b3");

/// With these options, all files except the damaged one are converted or removed.
const CONVERT_ALL: [&str; 4] = ["--rename", "a/b", "b/b", "--remove-unfinished"];

/// File with a large hole.
const SPARSE: &str = "hole.dat";

/// Directory with the disks of an old set.
struct OldSet {
    directory: TempDir,
}

impl OldSet {
    fn unpack() -> OldSet {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let archive = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/old-set.tar.gz");
        let unpacked = Command::new("tar").arg("-xzf").arg(archive).arg("-C").arg(directory.path()).status();
        assert!(unpacked.expect("a tar command").success());
        OldSet { directory }
    }

    /// Unpacks a set in which every file can be converted.
    fn without_damage() -> OldSet {
        let set = OldSet::unpack();
        for disk in 0..3 {
            fs::remove_file(set.disk(disk).join("damaged.stripe")).expect("a stripe");
        }
        set
    }

    fn disk(&self, index: usize) -> PathBuf {
        self.directory.path().join(format!("disk{index}"))
    }

    fn disks(&self) -> Vec<PathBuf> {
        (0..3).map(|index| self.disk(index)).collect()
    }

    /// Returns the command `starfish convert` for all disks with these options.
    fn command(&self, options: &[&str]) -> Command {
        let mut command = starfish(["convert", "--progress", "never"]);
        command.args(self.disks()).args(options);
        command
    }

    fn convert(&self, options: &[&str]) -> Output {
        self.command(options).output().expect("the program")
    }

    /// Returns the sorted names of the old stripes on all disks.
    fn old_stripes(&self) -> Vec<String> {
        let file_name =
            |path: PathBuf| path.file_name().and_then(|name| name.to_str()).expect("text").to_owned();
        let names = self.disks().into_iter().flat_map(|disk| stripe_files(&disk)).map(file_name);
        let mut names: Vec<String> = names.filter(|name| !name.starts_with("%2F")).collect();
        names.sort();
        names
    }

    /// Copies all files of the namespace from an agent that has all disks, and returns their hashes.
    fn converted(&self) -> BTreeMap<String, blake3::Hash> {
        let out = self.directory.path().join("out");
        let _ = fs::remove_dir_all(&out);
        let mut agent = Agent::start(self.disks(), &[]);
        let store = Store { agents: Vec::new(), directory: tempfile::tempdir().expect("a directory") };
        let mut get = store.command(&["get", "-r", "/"]);
        get.arg(&out).env("STARFISH_AGENTS", &agent.address);
        text(&get.output().expect("the program"));
        agent.signal("TERM");
        assert!(wait(&mut agent.child).success());
        let mut found = BTreeMap::new();
        collect(&out, "", &mut found);
        found
    }
}

/// Adds the hashes of all files in a directory to `found`.
fn collect(directory: &Path, before: &str, found: &mut BTreeMap<String, blake3::Hash>) {
    for entry in fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        let name = format!("{before}{}", path.file_name().and_then(|name| name.to_str()).expect("text"));
        if path.is_dir() {
            collect(&path, &format!("{name}/"), found);
        } else {
            found.insert(name, hash(&path));
        }
    }
}

/// Returns the hashes of the finished files of the set, without the files named here.
fn expected(without: &[&str]) -> BTreeMap<String, blake3::Hash> {
    let all = HASHES.lines().map(|line| {
        let (hash, name) = line.split_once("  ").expect("a hash and a name");
        (name.to_owned(), blake3::Hash::from_hex(hash).expect("a hash"))
    });
    all.filter(|(name, _)| !without.contains(&&**name)).collect()
}

/// Returns the hashes of all files that exist after a conversion with [`CONVERT_ALL`], without the damaged file.
fn all() -> BTreeMap<String, blake3::Hash> {
    let mut all = expected(&["damaged", "a/b"]);
    // The two files have the same contents.
    all.insert("b/b".to_owned(), all["größe 1"]);
    all
}

/// Returns standard output and standard error of a run, which must end with this exit code.
fn ended(output: &Output, code: i32) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
    let (stdout, errors) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{stdout}{errors}");
    (stdout, errors)
}

#[test]
fn convertible_files_are_converted_and_the_others_are_reported() {
    let set = OldSet::unpack();
    let old = set.old_stripes();
    let (listed, _) = ended(&set.convert(&["--dry-run"]), 1);
    assert!(listed.contains("\nresults/november/some.dat\n"), "{listed}");
    assert!(listed.ends_with("Would convert: 12 files, 5.1 MiB.\n"), "{listed}");
    assert_eq!(set.old_stripes(), old, "--dry-run changes nothing");
    assert!(!set.disk(0).join("namespace").exists());

    let time = fs::metadata(set.disk(0).join("ten.stripe")).and_then(|stripe| stripe.modified());
    let (stdout, errors) = ended(&set.convert(&[]), 1);
    assert_eq!(stdout, "Converted: 11 files, 5.1 MiB.\n");
    for part in [
        "starfish: a/b: a is a file, not a directory\n  Convert it to another path with `--rename",
        "starfish: damaged: object `damaged` (",
        "starfish: unfinished: it was never finished\n  `--remove-unfinished` removes it.",
        "starfish: convert: 3 files of an older version are left, see above",
    ] {
        assert!(errors.contains(part), "{errors}");
    }
    let mut left = Vec::new();
    for name in ["a%2Fb.stripe", "damaged.stripe", "unfinished.begun"] {
        left.extend(vec![name; 3]);
    }
    assert_eq!(set.old_stripes(), left);
    // A second conversion has nothing to do.
    assert_eq!(ended(&set.convert(&[]), 1).0, "");
    assert_eq!(set.old_stripes(), left);

    let (stdout, _) = ended(&set.convert(&CONVERT_ALL), 1);
    assert_eq!(stdout, "Converted: 1 file, 2.9 KiB.\nRemoved: 1 unfinished file.\n");
    assert_eq!(set.old_stripes(), ["damaged.stripe"; 3]);
    for disk in 0..3 {
        fs::rename(set.disk(disk).join("damaged.stripe"), set.directory.path().join("aside")).expect("room");
    }
    let (stdout, errors) = ended(&set.convert(&[]), 0);
    assert_eq!((&*stdout, &*errors), ("There are no files of an older version on these disks.\n", ""));

    assert_eq!(set.converted(), all());
    let out = set.directory.path().join("out");
    let sparse = fs::metadata(out.join(SPARSE)).expect("a file");
    assert!(sparse.blocks() * 512 < sparse.len() / 4, "holes stay holes");
    let numbered = |disk: usize| stripe_files(&set.disk(disk)).into_iter();
    let on_disks: u64 =
        (0..3).flat_map(numbered).map(|path| fs::metadata(path).expect("a file").blocks()).sum();
    assert!(on_disks * 512 < 1 << 20, "holes stay holes on the disks: {on_disks}");
    let time_of_copy = fs::metadata(out.join("ten")).and_then(|file| file.modified());
    assert_eq!(time_of_copy.expect("a time"), time.expect("a time"), "the time of the old stripes");
}

#[test]
fn a_kill_at_any_time_loses_no_file() {
    let set = OldSet::without_damage();
    let start = Instant::now();
    ended(&set.convert(&CONVERT_ALL), 0);
    let whole = start.elapsed();
    assert_eq!(set.converted(), all());

    let mut interrupted = 0;
    for round in 0..rounds() {
        let set = OldSet::without_damage();
        for kill in 0..3 {
            let after = draw(&[round, kill], whole.as_micros() as u64);
            let run = set.command(&["--rename", "a/b", "b/b"]).spawn().expect("the program");
            kill_after(run, Duration::from_micros(after));
            interrupted += u64::from(!set.old_stripes().is_empty());
        }
        ended(&set.convert(&CONVERT_ALL), 0);
        assert_eq!(set.old_stripes(), [""; 0], "round {round}");
        assert_eq!(set.converted(), all(), "round {round}");
    }
    assert!(interrupted > rounds(), "{interrupted} of the runs were killed before they ended");
}

#[test]
fn an_interrupted_conversion_can_be_resumed() {
    let set = OldSet::without_damage();
    for wait_for in [0, 100, 200] {
        let mut run = set.command(&[]).spawn().expect("the program");
        std::thread::sleep(Duration::from_millis(wait_for));
        signal(&run, "INT");
        let code = wait(&mut run).code();
        // The conversion may have ended before the signal.
        assert!(matches!(code, Some(1 | 130) | None), "{code:?}");
    }
    ended(&set.convert(&CONVERT_ALL), 0);
    assert_eq!(set.converted(), all());
}

#[test]
fn a_file_with_stripes_on_an_absent_disk_is_not_converted() {
    let set = OldSet::without_damage();
    let options = ["convert", "--progress", "never"];
    let mut command = starfish(options);
    command.arg(set.disk(0)).arg(set.disk(1));
    let before = set.old_stripes().len();
    let (stdout, errors) = ended(&command.output().expect("the program"), 1);
    // The file has only two stripes.
    assert_eq!(stdout, "Converted: 1 file, 48.8 KiB.\n");
    assert_eq!(set.old_stripes().len(), before - 2);
    let missing =
        "starfish: blocks.dat: stripe 2 of 3 is missing\n  Name the directories of all disks of the set.";
    assert!(errors.contains(missing), "{errors}");
    assert!(errors.contains("convert: 12 files of an older version are left"), "{errors}");
    // While a disk is missing, no file counts as unfinished: the stripes on that disk may be finished.
    fs::rename(set.disk(2), set.directory.path().join("away")).expect("room");
    let mut command = starfish(options);
    command.arg(set.disk(0)).arg(set.disk(2));
    let (_, errors) = ended(&command.output().expect("the program"), 1);
    assert!(errors.contains("disk2: No such file or directory\n  Is the disk mounted?"), "{errors}");
    fs::rename(set.directory.path().join("away"), set.disk(2)).expect("room");

    ended(&set.convert(&CONVERT_ALL), 0);
    assert_eq!(set.old_stripes(), [""; 0]);
}

#[test]
fn disks_in_use_by_an_agent_are_rejected() {
    let set = OldSet::without_damage();
    // An agent rejects files of an older version, so the test hides them before the agent starts.
    let aside = set.directory.path().join("aside");
    fs::rename(set.disk(2), &aside).expect("room");
    let agent = Agent::start(vec![set.disk(2)], &[]);
    let (_, errors) = ended(&set.convert(&[]), 1);
    assert!(errors.contains("disk2") && errors.contains("Stop that agent first"), "{errors}");
    drop(agent);
    fs::remove_dir_all(set.disk(2)).expect("a directory");
    fs::rename(&aside, set.disk(2)).expect("room");
    ended(&set.convert(&[]), 1);
}

#[test]
fn agents_reject_files_of_an_older_version() {
    let set = OldSet::unpack();
    let agent = || {
        let mut command = starfish(["agent", "--listen", "127.0.0.1:0", "--root"]);
        command.args(set.disks());
        fail(command, 1)
    };
    let errors = agent();
    let disks: Vec<String> = set.disks().iter().map(|disk| disk.display().to_string()).collect();
    let expected = format!("cannot start the agent: 13 files of an older version are on {}\n", disks[0]);
    let remedy = format!("`starfish convert {}`.", disks.join(" "));
    assert!(errors.contains(&expected) && errors.contains(&remedy), "{errors}");
    ended(&set.convert(&CONVERT_ALL), 1);
    assert!(agent().contains("1 file of an older version is on"), "only the damaged file is left");
}

#[test]
fn a_path_that_exists_already_is_reported() {
    let set = OldSet::without_damage();
    // A namespace already exists. One of its files has the same name as an old file.
    let aside = set.directory.path().join("aside");
    let mut old = Vec::new();
    for (index, disk) in set.disks().iter().enumerate() {
        let disk_aside = aside.join(index.to_string());
        fs::create_dir_all(&disk_aside).expect("room");
        for path in stripe_files(disk) {
            let to = disk_aside.join(path.file_name().expect("a name"));
            fs::rename(&path, &to).expect("room");
            old.push((to, path));
        }
    }
    let mut agent = Agent::start(set.disks(), &[]);
    let local = set.directory.path().join("local");
    fs::write(&local, b"another").expect("room");
    for arguments in [&["mkdir", "results", "blocks.dat"][..], &["put", local.to_str().expect("text"), "ten"]]
    {
        let mut command = starfish(arguments);
        command.env("STARFISH_AGENTS", &agent.address);
        text(&command.output().expect("the program"));
    }
    agent.signal("TERM");
    assert!(wait(&mut agent.child).success());
    for (from, to) in &old {
        fs::rename(from, to).expect("room");
    }

    for options in [&["--dry-run"][..], &[]] {
        let (stdout, errors) = ended(&set.convert(options), 1);
        assert!(stdout.contains(": 9 files, "), "{stdout}");
        for part in
            ["ten: another file has the path ten\n", "blocks.dat: a directory has the path blocks.dat\n"]
        {
            assert!(errors.contains(part), "{errors}");
        }
    }
    let renamed =
        ["--rename", "ten", "11", "--rename", "blocks.dat", "/blocks.dat/old", "--rename", "a/b", "b/b"];
    ended(&set.convert(&[&renamed[..], &["--remove-unfinished"]].concat()), 0);
    let mut expected = all();
    expected.insert("blocks.dat/old".to_owned(), expected["blocks.dat"]);
    expected.remove("blocks.dat");
    expected.insert("ten".to_owned(), blake3::hash(b"another"));
    expected.insert("11".to_owned(), blake3::hash(b"ten bytes."));
    assert_eq!(set.converted(), expected);
}

#[test]
fn a_full_disk_is_reported_and_loses_no_file() {
    let set = OldSet::without_damage();
    let before = set.old_stripes().len();
    let convert = set.command(&CONVERT_ALL);
    let mut shell = Command::new("sh");
    // The limit of 1 MiB for each file has the effect of a full disk. The hole begins before 1 MiB and ends after it.
    shell.args(["-c", "trap '' XFSZ; ulimit -f 2048; exec \"$@\"", "sh"]);
    shell.arg(convert.get_program()).args(convert.get_args());
    give_environment_of(&convert, &mut shell);
    let (stdout, errors) = ended(&shell.output().expect("a shell"), 1);
    assert!(stdout.starts_with("Converted: 11 files, "), "{stdout}{errors}");
    let full = "hole.dat: agent of this command: no space left on object ";
    assert!(
        errors.contains(full) && errors.contains("Free space on that disk, and convert again."),
        "{errors}"
    );
    assert!(set.old_stripes().len() < before);
    ended(&set.convert(&CONVERT_ALL), 0);
    assert_eq!(set.converted(), all());
}
