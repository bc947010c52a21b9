//! Write caches of sessions that name the same job, on real agents on loopback.

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use node::{CacheWrites, ErrorKind, Handle, OpenOptions, Session, Settings};
use test_agents::Agents;

const READ: OpenOptions = OpenOptions::new().read(true);
const WRITE: OpenOptions = OpenOptions::new().write(true);
const BOTH: OpenOptions = READ.write(true).create(true);
const MEMBERS: usize = 4;

/// Returns a session that is a member of a job.
fn member(agents: &Agents, job: &str, bytes: u64) -> Session {
    let mut settings = agents.settings();
    settings.write_cache =
        Some(CacheWrites { flush_after: None, job: Some(job.into()), ..CacheWrites::of(bytes) });
    Session::start(settings).expect("they are there")
}

/// Returns settings of a session whose write cache is flushed soon after a write, without a request.
fn flushed_in_time(agents: &Agents) -> Settings {
    let flush_after = Some(Duration::from_millis(20));
    let mut settings = agents.settings();
    settings.write_cache = Some(CacheWrites { flush_after, ..CacheWrites::of(1 << 20) });
    settings
}

/// Returns a session without a write cache.
fn plain(agents: &Agents) -> Session {
    Session::start(agents.settings()).expect("they are there")
}

/// Waits until a condition holds, for at most 10 s.
fn until(is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(10), "it takes too long");
        thread::sleep(Duration::from_millis(5));
    }
}

fn read_all(handle: &Handle) -> Vec<u8> {
    let mut bytes = vec![0; handle.stat().expect("it is there").bytes as usize];
    let read = handle.read_at(0, &mut bytes).expect("read");
    assert_eq!(read, bytes.len());
    bytes
}

/// A file that is reopened for each append keeps all records.
#[test]
fn a_reopened_file_loses_nothing() {
    const RECORDS: usize = 300;
    let agents = Agents::start(2);
    let session = member(&agents, "log", 32 << 10);
    let (mut expected, append) = (Vec::new(), READ.append(true).create(true));
    for (turn, options) in [BOTH, append, BOTH, append].into_iter().enumerate() {
        let file = session.open("log", options).expect("it is there, or made");
        for record in 0..RECORDS {
            let record = [(turn * RECORDS + record) as u8; 100];
            let end = file.stat().expect("it is open").bytes;
            assert_eq!(end, expected.len() as u64, "turn {turn}");
            match options.appends() {
                true => assert_eq!(file.append(record), Ok(end)),
                false => file.write_at(end, record).expect("cached"),
            }
            expected.extend(record);
        }
        let mut last = [0; 100];
        assert_eq!(file.read_at(expected.len() as u64 - 100, &mut last), Ok(100), "turn {turn}");
        file.close().expect("flushed");
    }
    session.finish().expect("nothing is left");
    assert!(read_all(&plain(&agents).open("log", READ).expect("it is there")) == expected);
}

#[test]
fn flush_close_and_finish_report_a_failed_flush() {
    let agents = Agents::start(2);
    let session = member(&agents, "job", 1 << 20);
    let file = session.open("full", BOTH).expect("a new one");
    file.write_at(0, [1; 100]).expect("cached");
    file.write_at(1 << 50, [2; 100]).expect("cached, though no disk has room for it");
    for outcome in [file.flush(), file.close(), session.finish()] {
        let error = outcome.expect_err("there is no room");
        assert_eq!(error.kind(), ErrorKind::NoSpace);
        assert_eq!(error.to_string().matches("agent 127.0.0.1").count(), 1, "{error}");
    }
}

/// Records of all members are interleaved, and each member writes its own in a scattered order, with flushes of full
/// caches in between.
#[test]
fn interleaved_writes_of_all_members_lose_nothing() {
    const RECORDS: usize = 20_000;
    let agents = Agents::start(3);
    plain(&agents).open("shared", BOTH).expect("made").close().expect("closed");
    let together = &Barrier::new(MEMBERS);
    thread::scope(|scope| {
        for rank in 0..MEMBERS {
            let session = member(&agents, "checkpoint", 256 << 10);
            scope.spawn(move || {
                let file = session.open("shared", WRITE).expect("it is there");
                together.wait();
                for number in 0..RECORDS {
                    // 7919 is prime, so each record is written once.
                    let index = (number * 7919 % RECORDS * MEMBERS + rank) as u64;
                    file.write_from(index * 8, &(index + 1).to_le_bytes()).expect("cached");
                }
                file.close().expect("flushed");
                session.finish().expect("nothing is left");
            });
        }
    });
    let found = read_all(&plain(&agents).open("shared", READ).expect("it is there"));
    let expected: Vec<u8> = (1..=(RECORDS * MEMBERS) as u64).flat_map(u64::to_le_bytes).collect();
    assert!(found == expected);
}

#[test]
fn a_member_reads_its_own_writes_and_on_open_those_of_others() {
    let agents = Agents::start(2);
    let (one, other) = (member(&agents, "job", 1 << 20), member(&agents, "job", 1 << 20));
    let file = one.open("numbers", BOTH).expect("a new one");
    file.write_at(0, [1; 100]).expect("cached");
    file.flush().expect("on the disks");
    for (offset, value) in [(50, 2), (90, 3)] {
        file.write_at(offset, [value; 20]).expect("cached");
    }
    assert_eq!(file.append([4; 5]).expect("behind all that is cached"), 110);
    let expected = [vec![1; 50], vec![2; 20], vec![1; 20], vec![3; 20], vec![4; 5]].concat();
    assert!(read_all(&file) == expected);
    file.set_len(112).expect("cut");
    assert!(read_all(&file) == expected[..112]);
    file.close().expect("closed");

    let file = one.open("numbers", WRITE).expect("it is there");
    file.write_at(0, [7; 10]).expect("cached, and not flushed yet");
    // Recent writes may not be in the cache yet.
    let now = [vec![7; 10], expected[10..112].to_vec()].concat();
    until(|| read_all(&other.open("numbers", READ).expect("it is there")) == now);
    file.close().expect("closed");
}

#[test]
fn cached_writes_reach_the_disks_without_a_request() {
    let agents = Agents::start(2);
    let session = Session::start(flushed_in_time(&agents)).expect("they are there");
    let file = session.open("numbers", BOTH).expect("a new one");
    file.close().expect("others can open it");
    let (file, other) = (session.open("numbers", WRITE).expect("it is there"), plain(&agents));
    let seen = other.open("numbers", READ).expect("it is there");
    // Other clients learn the file's length when it is closed.
    let on_disks = || -> u64 {
        let stripes = agents.stripes().into_iter();
        stripes.map(|path| std::fs::metadata(path).map_or(0, |stripe| stripe.len())).sum()
    };
    let before = on_disks();
    file.write_at(0, [5; 10]).expect("cached");
    until(|| on_disks() > before);
    assert_eq!(seen.stat().expect("it is there").bytes, 0);
    file.close().expect("closed");
    assert!(read_all(&seen) == [5; 10]);
}

#[test]
fn a_dropped_member_blocks_no_flush_and_loses_nothing() {
    let agents = Agents::start(2);
    plain(&agents).open("shared", BOTH).expect("made").close().expect("closed");
    let (stays, goes) = (member(&agents, "job", 1 << 20), member(&agents, "job", 1 << 20));
    let file = stays.open("shared", WRITE).expect("it is there");
    file.write_at(0, [1; 10]).expect("cached");
    // This statement drops the member's file; the next one drops its session.
    goes.open("shared", WRITE).expect("it is there").write_at(10, [2; 10]).expect("cached");
    drop(goes);
    file.close().expect("flushed");
    stays.finish().expect("nothing is left");
    let found = read_all(&plain(&agents).open("shared", READ).expect("it is there"));
    assert!(found == [[1; 10], [2; 10]].concat());
}

/// Returns a job of two with a file of the namespace, to which each has written 1000 bytes.
fn written_by_two(agents: &Agents) -> [(Session, Handle); 2] {
    let members = [0, 1].map(|_| member(agents, "job", 1 << 20));
    let mut rank = 0;
    members.map(|session| {
        let file = session.open("numbers", BOTH).expect("it is made once");
        file.write_at(1000 * rank, [rank as u8 + 1; 1000]).expect("cached");
        rank += 1;
        (session, file)
    })
}

#[test]
fn a_truncation_by_one_member_holds_for_all() {
    let agents = Agents::start(2);
    let [(_one, first), (_other, second)] = written_by_two(&agents);
    for file in [&first, &second] {
        file.flush().expect("on the disks");
    }
    first.set_len(100).expect("cut");
    assert_eq!(second.stat().expect("it is there").bytes, 100);
    assert!(read_all(&second) == [1; 100]);
    second.write_at(100, [7; 3]).expect("cached");
    second.close().expect("flushed");
    assert!(read_all(&first) == [vec![1; 100], vec![7; 3]].concat());
}

#[test]
fn flushed_writes_of_a_member_count_after_its_send() {
    let agents = Agents::start(2);
    let [(_one, first), (_other, second)] = written_by_two(&agents);
    // Recent writes may not be in the cache yet, but their own session sees them.
    assert_eq!(second.stat().expect("it is there").bytes, 2000);
    first.flush().expect("all members take part");
    second.send().expect("nothing is left to be flushed");
    assert_eq!(first.stat().expect("it is there").bytes, 2000);
    assert!(read_all(&first) == [[1; 1000], [2; 1000]].concat());
}

#[test]
fn a_failed_background_flush_is_reported_by_write_or_flush() {
    let mut agents = Agents::start(2);
    let mut settings = flushed_in_time(&agents);
    settings.silence = Duration::from_millis(300);
    let session = Session::start(settings).expect("they are there");
    let make = |name, disk| session.open(name, BOTH.on_disk(disk)).expect("a new one");
    let (other, file) = (make("other", 0), make("file", 1));
    other.write_at(0, [1; 10]).expect("cached");
    other.flush().expect("on the disks");
    agents.agents[1].end();
    // While the agent is absent, each flush fails.
    until(|| file.write_at(0, [2; 10]).is_err());
    for _ in 0..3 {
        thread::sleep(Duration::from_millis(700));
        let written = file.write_at(0, [3; 10]);
        let mut found = [0; 10];
        assert_eq!((other.known_bytes(), other.read_at(0, &mut found), found), (Ok(10), Ok(10), [1; 10]));
        let failure = [written, file.flush()].into_iter().find_map(Result::err).expect("it has failed");
        assert!(failure.to_string().contains("disconnected"), "{failure}");
    }
}
