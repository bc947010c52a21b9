//! Common programs work in a mounted directory as in any other.

mod common;

use std::fs;
use std::thread;
use std::time::Duration;

use common::Mount;
use prerequisites::has;

/// Creates a small tree of files, links and directories in a directory of this name.
fn make_tree(mount: &Mount, name: &str) {
    let root = mount.at(name);
    for number in 0..20 {
        let directory = root.join(format!("part {}", number % 4));
        fs::create_dir_all(&directory).expect("a directory");
        let bytes: Vec<u8> = (0..number * 40_000).map(|byte| (byte * 7 + number) as u8).collect();
        fs::write(directory.join(format!("file{number}")), bytes).expect("a file");
    }
    std::os::unix::fs::symlink("part 1/file1", root.join("link")).expect("a link");
    fs::hard_link(root.join("part 2/file2"), root.join("second name")).expect("a name");
    fs::create_dir(root.join("empty")).expect("a directory");
}

#[test]
fn files_are_copied_moved_and_packed() {
    let Some(mount) = Mount::of_new_agents() else { return };
    make_tree(&mount, "tree");
    mount.run("cp", &["-a", "tree", "copy"]);
    mount.run("diff", &["-r", "tree", "copy"]);
    mount.run("mv", &["copy", "moved"]);
    assert!(!mount.at("copy").exists());
    mount.run("tar", &["-cf", "packed.tar", "tree"]);
    fs::create_dir(mount.at("unpacked")).expect("a directory");
    mount.run("tar", &["-xf", "packed.tar", "-C", "unpacked"]);
    mount.run("diff", &["-r", "moved", "unpacked/tree"]);
    assert_eq!(fs::read_link(mount.at("moved/link")).expect("a link").to_str(), Some("part 1/file1"));
    mount.run("rm", &["-r", "moved", "unpacked", "tree", "packed.tar"]);
    assert_eq!(fs::read_dir(&mount.path).expect("a directory").count(), 0);
    mount.end();
}

#[test]
fn a_second_rsync_copies_nothing() {
    let Some(mount) = Mount::of_new_agents().filter(|_| has("rsync")) else { return };
    make_tree(&mount, "tree");
    let first = mount.run("rsync", &["-aHi", "tree/", "copy/"]);
    assert!(first.contains("file19"), "{first}");
    let second = mount.run("rsync", &["-aHi", "--checksum", "tree/", "copy/"]);
    assert_eq!(second, "", "nothing has changed");
    let third = mount.run("rsync", &["-aHi", "tree/", "copy/"]);
    assert_eq!(third, "", "the times are the same");
    mount.end();
}

#[test]
fn a_git_clone_passes_fsck() {
    let Some(mount) = Mount::of_new_agents().filter(|_| has("git")) else { return };
    make_tree(&mount, "project");
    let git = |arguments: &[&str]| {
        let who = ["-c", "user.name=nobody", "-c", "user.email=nobody@example.org", "-C", "project"];
        mount.run("git", &[&who, arguments].concat())
    };
    git(&["init", "-q"]);
    git(&["add", "-A"]);
    git(&["commit", "-qm", "all"]);
    mount.run("git", &["clone", "-q", "project", "clone"]);
    mount.run("git", &["-C", "clone", "fsck", "--strict"]);
    mount.run("git", &["-C", "clone", "gc", "-q"]);
    assert_eq!(mount.run("git", &["-C", "clone", "status", "--porcelain"]), "");
    mount.end();
}

#[test]
fn two_threads_write_one_database() {
    let Some(mount) = Mount::of_new_agents() else { return };
    let path = mount.at("numbers.db");
    let open = {
        let path = path.clone();
        move || {
            let database = rusqlite::Connection::open(&path).expect("a database");
            database.busy_timeout(Duration::from_secs(50)).expect("patience");
            database
        }
    };
    open().execute_batch("CREATE TABLE numbers (writer INTEGER, number INTEGER)").expect("a table");
    let writers = [1, 2].map(|writer| {
        let open = open.clone();
        thread::spawn(move || {
            let database = open();
            for number in 0..20 {
                let insert = "INSERT INTO numbers VALUES (?1, ?2)";
                database.execute(insert, [writer, number]).expect("it waits for the other");
            }
        })
    });
    writers.into_iter().for_each(|writer| writer.join().expect("no error"));
    let database = open();
    let count: i64 = database.query_row("SELECT count(*) FROM numbers", [], |row| row.get(0)).expect("rows");
    assert_eq!(count, 40);
    let check: String =
        database.query_row("PRAGMA integrity_check", [], |row| row.get(0)).expect("an answer");
    assert_eq!(check, "ok");
    drop(database);
    mount.end();
}

#[test]
fn memory_mappings_and_flock_work() {
    let Some(mount) = Mount::of_new_agents().filter(|_| has("python3")) else { return };
    let program = "
import fcntl, mmap, os, sys
with open('mapped', 'w+b') as file:
    file.truncate(1000000)
    with mmap.mmap(file.fileno(), 0) as memory:
        memory[0:5] = b'first'
        memory[999990:1000000] = b'the last 9'
        memory.flush()
    file.seek(999990)
    assert file.read() == b'the last 9'
with open('mapped', 'rb') as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as memory:
    assert memory[0:6] == b'first\\0' and memory[-10:] == b'the last 9'
one, other = open('mapped', 'r+b'), open('mapped', 'r+b')
fcntl.flock(one, fcntl.LOCK_EX)
try:
    fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    sys.exit('locked twice')
except BlockingIOError:
    pass
";
    mount.run("python3", &["-c", program]);
    let bytes = fs::read(mount.at("mapped")).expect("a file");
    assert_eq!((bytes.len(), &bytes[..5], &bytes[999_990..]), (1_000_000, &b"first"[..], &b"the last 9"[..]));
    mount.end();
}

#[test]
fn extended_attributes_are_stored_and_name_the_stripes() {
    let Some(mount) = Mount::of_new_agents().filter(|_| has("python3")) else { return };
    fs::write(mount.at("file"), b"something").expect("a file");
    let program = "
import errno, os
def fails(number, work):
    try:
        work()
    except OSError as error:
        assert error.errno == number, error
    else:
        assert False, number
os.setxattr('file', 'user.colour', b'green')
assert os.getxattr('file', 'user.colour') == b'green'
assert os.listxattr('file') == ['user.colour'], os.listxattr('file')
fails(errno.EEXIST, lambda: os.setxattr('file', 'user.colour', b'red', os.XATTR_CREATE))
fails(errno.ENODATA, lambda: os.getxattr('file', 'user.shape'))
for size in (32769, 65000, 65500, 65530, 65536):
    fails(errno.E2BIG, lambda: os.setxattr('file', 'user.large', b'v' * size))
for ns in (-1, -999_999_999, -1_500_000_000, -86_400_250_000_000, -86_400_000_000_000, 1_500_000_000):
    os.utime('file', ns=(ns, ns))
    assert os.stat('file').st_mtime_ns == ns, (ns, os.stat('file').st_mtime_ns)
fails(errno.EPERM, lambda: os.setxattr('file', 'user.starfish.agents', b'x'))
os.removexattr('file', 'user.colour')
assert os.listxattr('file') == []
print(os.getxattr('file', 'user.starfish.agents').decode())
print(os.getxattr('file', 'user.starfish.stripes').decode())
space = os.statvfs('.')
assert space.f_bavail > 0 and space.f_namemax == 255
";
    let stdout = mount.run("python3", &["-c", program]);
    let names = mount.agents().names();
    assert!(stdout.starts_with(&names), "{stdout}");
    let is_stripe = |line: &&str| {
        line.split_once(' ').is_some_and(|(agent, _)| names.split(',').any(|name| name == agent))
    };
    assert_eq!(stdout.lines().filter(is_stripe).count(), 2, "{stdout}");
    mount.end();
}

#[test]
fn git_clones_a_repository_of_hundreds_of_files() {
    let Some(mount) = Mount::of_new_agents().filter(|_| has("git")) else { return };
    const FILES: usize = 400;
    let who = ["-c", "user.name=nobody", "-c", "user.email=nobody@example.org"];
    mount.run("git", &["init", "-q", "project"]);
    for number in 0..FILES {
        let directory = mount.at("project").join(format!("part{}", number % 17));
        fs::create_dir_all(&directory).expect("a directory");
        fs::write(directory.join(format!("file{number}")), format!("{number}\n").repeat(number))
            .expect("a file");
    }
    mount.run("git", &["-C", "project", "add", "-A"]);
    mount.run("git", &[&who[..], &["-C", "project", "commit", "-qm", "all"]].concat());
    mount.run("git", &["clone", "-q", "--no-hardlinks", "project", "clone"]);
    mount.run("git", &["-C", "clone", "fsck", "--full", "--strict"]);
    mount.run("diff", &["-r", "--exclude=.git", "project", "clone"]);
    let listed = mount.run("git", &["-C", "clone", "ls-files"]);
    assert_eq!(listed.lines().count(), FILES);
    mount.end();
}

#[test]
fn make_rebuilds_only_changed_files() {
    let Some(mount) = Mount::of_new_agents().filter(|_| has("make") && has("cc")) else { return };
    const PARTS: usize = 8;
    let project = mount.at("project");
    fs::create_dir(&project).expect("a directory");
    let mut main = String::from("#include <stdio.h>\n");
    for part in 0..PARTS {
        fs::write(
            project.join(format!("part{part}.c")),
            format!("int part{part}(void) {{ return {part}; }}\n"),
        )
        .expect("a file");
        main.push_str(&format!("int part{part}(void);\n"));
    }
    let sum: Vec<String> = (0..PARTS).map(|part| format!("part{part}()")).collect();
    main.push_str(&format!("int main(void) {{ printf(\"%d\\n\", {}); return 0; }}\n", sum.join(" + ")));
    fs::write(project.join("main.c"), main).expect("a file");
    let objects: Vec<String> = (0..PARTS).map(|part| format!("part{part}.o")).collect();
    let makefile = format!("program: main.o {0}\n\tcc -o program main.o {0}\n", objects.join(" "));
    fs::write(project.join("Makefile"), makefile).expect("a file");
    let first = mount.run("make", &["-j3", "-C", "project"]);
    assert_eq!(first.matches(" -c ").count(), PARTS + 1, "{first}");
    assert_eq!(mount.run("project/program", &[]), "28\n");
    assert!(mount.run("make", &["-C", "project"]).contains("up to date"));
    fs::write(project.join("part3.c"), "int part3(void) { return 103; }\n").expect("a file");
    let again = mount.run("make", &["-j3", "-C", "project"]);
    assert_eq!(again.matches(" -c ").count(), 1, "{again}");
    assert_eq!(mount.run("project/program", &[]), "128\n");
    mount.end();
}

#[test]
fn two_processes_write_one_database() {
    let Some(mount) = Mount::of_new_agents().filter(|_| has("sqlite3")) else { return };
    mount.run("sqlite3", &["numbers.db", "CREATE TABLE numbers (number INTEGER)"]);
    let insert = "for i in 1 2 3 4 5 6 7 8 9 10; do
        sqlite3 -cmd '.timeout 50000' numbers.db \
            'BEGIN IMMEDIATE; INSERT INTO numbers SELECT count(*) FROM numbers; COMMIT' || exit 1
    done";
    mount.run("sh", &["-c", &format!("( {insert} ) & ( {insert} ) || exit 1; wait $!")]);
    let found = "SELECT count(*), count(DISTINCT number), max(number) FROM numbers; PRAGMA integrity_check";
    assert_eq!(mount.run("sqlite3", &["numbers.db", found]), "20|20|19\nok\n");
    mount.end();
}

#[test]
fn fio_verifies_its_written_data() {
    let Some(mount) = Mount::of_new_agents().filter(|_| has("fio")) else { return };
    for (direct, engine) in [("0", "psync"), ("1", "libaio"), ("0", "mmap")] {
        let (direct, engine) = (format!("--direct={direct}"), format!("--ioengine={engine}"));
        let job =
            ["--name=job", "--size=12m", "--bsrange=4k-64k", "--rw=randrw", "--iodepth=8", "--numjobs=2"];
        let verify = ["--verify=crc32c", "--verify_fatal=1", "--do_verify=1", &direct, &engine];
        mount.run("fio", &[&job[..], &verify].concat());
    }
    mount.end();
}
