//! Failures while the members of a job flush their write caches: an agent that is killed and restarted, and a full
//! disk.

use std::process::Command;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{Agent, Store};
use node::{CacheWrites, ErrorKind, Handle, OpenOptions, Result, Session, Settings};

const MEMBERS: usize = 2;
const READ: OpenOptions = OpenOptions::new().read(true);
const WRITE: OpenOptions = OpenOptions::new().write(true);
const NEW: OpenOptions = WRITE.create(true);

/// Returns the usual settings of a session, with a short silence timeout.
fn settings(store: &Store) -> Settings {
    let mut settings = store.settings();
    settings.cache_bytes = 1 << 20;
    settings.silence = Duration::from_secs(1);
    settings
}

/// Starts a session that is a member of a job.
fn member(store: &Store, bytes: u64) -> Session {
    let mut settings = settings(store);
    settings.write_cache =
        Some(CacheWrites { flush_after: None, job: Some("job".into()), ..CacheWrites::of(bytes) });
    Session::start(settings).expect("the agents run")
}

/// Creates the file that the members write to.
fn make_file(store: &Store) {
    let session = Session::start(settings(store)).expect("the agents run");
    session.open("file", NEW).and_then(|file| file.close()).expect("made");
}

/// Returns the contents of a file, read without a write cache.
fn contents(store: &Store, name: &str) -> Vec<u8> {
    let session = Session::start(settings(store)).expect("the agents run");
    let file = session.open(name, READ).expect("it exists");
    let mut bytes = vec![0; file.stat().expect("it exists").bytes as usize];
    assert_eq!(file.read_at(0, &mut bytes).expect("read"), bytes.len());
    bytes
}

/// Repeats an operation until it succeeds, and returns the errors before that.
fn repeated(mut attempt: impl FnMut() -> Result<()>) -> Vec<String> {
    let (start, mut errors) = (Instant::now(), Vec::new());
    while let Err(error) = attempt() {
        errors.push(error.to_string());
        assert!(start.elapsed() < Duration::from_secs(20), "it takes too long: {errors:?}");
    }
    errors
}

/// Writes every `MEMBERS`th record of 8 bytes, and sometimes flushes. Repeats each failing call until it succeeds, and
/// returns the errors.
fn write_records(file: &Handle, rank: usize, records: usize) -> Vec<String> {
    let mut errors = Vec::new();
    for number in 0..records {
        let index = (number * MEMBERS + rank) as u64;
        errors.extend(repeated(|| file.write_from(index * 8, &(index + 1).to_le_bytes())));
        if number % 500 == 499 {
            errors.extend(repeated(|| file.flush()));
            thread::sleep(Duration::from_millis(2));
        }
    }
    errors.extend(repeated(|| file.flush()));
    errors
}

/// One of the two agents keeps the list of the job's members, the other one does not.
#[test]
fn an_agent_killed_during_a_flush_is_named_and_loses_no_data() {
    const RECORDS: usize = 100_000;
    for killed in 0..2 {
        let mut store = Store::start(&[1, 1]);
        let address = store.agents[killed].address.clone();
        make_file(&store);
        let sessions: Vec<Session> = (0..MEMBERS).map(|_| member(&store, 64 << 10)).collect();
        let (together, store) = (&Barrier::new(MEMBERS + 1), &mut store);
        let errors: Vec<String> = thread::scope(|scope| {
            let writing: Vec<_> = (0..MEMBERS)
                .zip(&sessions)
                .map(|(rank, session)| {
                    scope.spawn(move || {
                        let file = session.open("file", WRITE).expect("it exists");
                        together.wait();
                        let errors = write_records(&file, rank, RECORDS);
                        file.close().expect("all is flushed");
                        errors
                    })
                })
                .collect();
            together.wait();
            thread::sleep(Duration::from_millis(200));
            let agent = &mut store.agents[killed];
            agent.child.kill().expect("a child process of the test");
            agent.child.wait().expect("a child process of the test");
            // This pause is longer than two consecutive flushes wait for the agent. A flush that was begun because of a
            // full cache does not report its failure if the next flush succeeds.
            thread::sleep(Duration::from_millis(2500));
            let roots = agent.roots.clone();
            *agent = Agent::start_at(&address, roots, &[]);
            writing.into_iter().flat_map(|member| member.join().expect("it continues")).collect()
        });
        assert!(!errors.is_empty(), "it was killed during the writes");
        assert!(errors.iter().all(|text| text.contains(&address)), "{errors:?}");
        for session in &sessions {
            session.finish().expect("nothing is left");
        }
        let expected: Vec<u8> = (1..=(RECORDS * MEMBERS) as u64).flat_map(u64::to_le_bytes).collect();
        assert!(contents(store, "file") == expected, "agent {killed}");
    }
}

/// Resource limit with which an agent's disk is full when a file has 1 MiB, until [`let_grow`] removes the limit.
const FULL_AT_A_MIB: &str = "-S -f 2048";

/// Removes the resource limit of an agent.
fn let_grow(agent: &Agent) {
    let pid = format!("--pid={}", agent.child.id());
    let more = Command::new("prlimit").args([&pid, "--fsize=unlimited:"]).status();
    assert!(more.expect("prlimit").success());
}

/// Each member gets an error that names the agent with the full disk, even if another agent keeps the list of the job's
/// members.
#[test]
fn a_disk_full_during_a_flush_is_reported_and_loses_no_data() {
    for full in 0..2 {
        let mut store = Store::start(&[1, 1]);
        let address = store.agents[full].address.clone();
        store.restart_limited(full, FULL_AT_A_MIB);
        make_file(&store);

        let sessions: Vec<Session> = (0..MEMBERS).map(|_| member(&store, 16 << 20)).collect();
        let files: Vec<Handle> =
            sessions.iter().map(|session| session.open("file", WRITE).expect("it exists")).collect();
        let expected = crate::common::contents(3 << 20);
        for (index, chunk) in expected.chunks(4096).enumerate() {
            files[index % MEMBERS].write_from(4096 * index as u64, chunk).expect("cached");
        }
        for file in files.iter().chain(&files) {
            let error = file.flush().expect_err("no room");
            assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
            let text = error.to_string();
            for part in ["no space left on", &format!("agent {address}")] {
                assert!(text.contains(part), "{text}");
            }
        }
        let_grow(&store.agents[full]);
        // Each flush may report the earlier failure once more.
        files.iter().for_each(|file| assert!(repeated(|| file.flush()).len() <= 1));
        files.iter().for_each(|file| file.close().expect("closed"));
        sessions.iter().for_each(|session| session.finish().expect("nothing is left"));
        assert!(contents(&store, "file") == expected);
    }
}

/// If a cache is full and its data cannot be written when the handle is closed, the data are not lost.
#[test]
fn data_in_a_full_cache_at_close_are_written_later() {
    let mut store = Store::start(&[1, 1]);
    store.restart_limited(0, FULL_AT_A_MIB);
    make_file(&store);
    let session = member(&store, 64 << 10);
    let file = session.open("file", WRITE).expect("it exists");
    let (expected, mut written) = (crate::common::contents(6 << 20), 0);
    while file.write_from(written as u64, &expected[written..written + 4096]).is_ok() {
        written += 4096;
    }
    let error = file.close().expect_err("no room");
    assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
    drop(file);
    let_grow(&store.agents[0]);
    assert!(repeated(|| session.finish()).len() <= 1);
    assert!(contents(&store, "file") == expected[..written]);
}
