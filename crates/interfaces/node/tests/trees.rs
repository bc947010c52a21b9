//! The namespace of real agents on loopback, through sessions.

use std::thread;

use namespace::{RenameMode, TreeRefusal};
use node::{ErrorKind, OpenOptions, Session};
use test_agents::{Agents, make_directory};

const READ: OpenOptions = OpenOptions::new().read(true);
const BOTH: OpenOptions = READ.write(true).create(true);

fn session(agents: &Agents) -> Session {
    Session::start(agents.settings()).expect("they are there")
}

fn kind<T: std::fmt::Debug>(outcome: node::Result<T>) -> ErrorKind {
    outcome.expect_err("it is refused").kind()
}

#[test]
fn all_sessions_share_one_namespace() {
    let agents = Agents::start(3);
    let (first, other) = (session(&agents), session(&agents));
    assert_eq!(kind(first.open("directory/file", BOTH)), ErrorKind::NotFound);
    make_directory(&other, "directory").expect("made");
    assert_eq!(kind(make_directory(&first, "directory")), ErrorKind::Exists);
    let file = first.open("directory/file", BOTH).expect("made");
    file.write_at(100_000, b"end".to_vec()).expect("written");
    assert_eq!(first.stat("/directory/file").expect("there").bytes, 100_003, "its own writes count");
    file.close().expect("closed");
    let theirs = other.open("/directory/../directory/file", READ).expect("there");
    let mut read = [7; 5];
    assert_eq!(theirs.read_at(99_999, &mut read), Ok(4));
    assert_eq!(&read[..4], b"\0end");
    assert_eq!(other.list(), Ok(vec!["directory/file".into()]));
    first.tree().rename("directory/file", "moved", RenameMode::Replace).expect("moved");
    first.unlink("moved").expect("removed");
    assert_eq!(kind(other.stat("moved")), ErrorKind::NotFound);
    assert_eq!(theirs.read_at(100_000, &mut read), Ok(3), "it is open there");
    theirs.close().expect("closed");
    assert_eq!(kind(first.unlink("directory")), ErrorKind::Refused(TreeRefusal::IsDirectory));
    for session in [first, other] {
        session.finish().expect("all is written");
    }
}

#[test]
fn concurrent_appends_of_sessions_lose_nothing() {
    const SESSIONS: usize = 3;
    const RECORDS: usize = 50;
    let agents = Agents::start(2);
    thread::scope(|scope| {
        for writer in 0..SESSIONS {
            let session = session(&agents);
            scope.spawn(move || {
                let log = session.open("log", BOTH.append(true)).expect("there");
                for record in 0..RECORDS {
                    log.append(format!("{writer}:{record:03};").into_bytes()).expect("appended");
                }
                log.close().expect("closed");
            });
        }
    });
    let log = session(&agents).open("log", READ).expect("there");
    let mut bytes = vec![0; log.known_bytes().expect("known") as usize];
    log.read_at(0, &mut bytes).expect("read");
    let text = String::from_utf8(bytes).expect("what was written");
    let mut records: Vec<&str> = text.split_terminator(';').collect();
    records.sort_unstable();
    let expected: Vec<String> = (0..SESSIONS)
        .flat_map(|writer| (0..RECORDS).map(move |record| format!("{writer}:{record:03}")))
        .collect();
    assert_eq!(records, expected);
}

#[test]
fn flushed_data_survive_a_restart_of_all_agents() {
    let mut agents = Agents::start(3);
    let before = session(&agents);
    make_directory(&before, "d").expect("made");
    let file = before.open("d/file", BOTH).expect("made");
    file.write_at(0, vec![9; 1 << 20]).expect("written");
    file.flush().expect("on the disks");
    drop((file, before));
    agents.restart();
    let after = session(&agents);
    let file = after.open("d/file", READ).expect("there");
    let mut read = vec![0; 1 << 20];
    assert_eq!(file.read_at(0, &mut read), Ok(1 << 20));
    assert!(read.iter().all(|byte| *byte == 9));
}
