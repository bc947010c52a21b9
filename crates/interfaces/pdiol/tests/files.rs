//! Files of real agents on loopback, used from any thread.

use std::io::{BufRead, Cursor, Read, Seek, SeekFrom, Write};
use std::net::TcpListener;
use std::thread;
use std::time::Duration;

use namespace::TreeRefusal;
use pdiol::{Advice, ErrorKind, OpenOptions, Prefetch, Session, Settings};
use proptest::collection::vec;
use proptest::prelude::*;
use test_agents::{Agents, make_directory};

const READ: OpenOptions = OpenOptions::new().read(true);
const MAKE: OpenOptions = OpenOptions::new().write(true).create(true).truncate(true);
const BOTH: OpenOptions = MAKE.read(true);

/// Returns bytes that depend on their offset.
fn contents(bytes: usize) -> Vec<u8> {
    (0..bytes as u64).map(|offset| (offset.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}

fn make(session: &Session, name: &str, contents: &[u8]) {
    let mut file = session.open(name, MAKE).expect("a new file");
    file.write_all(contents).expect("room");
    file.close().expect("it is written");
}

fn read(session: &Session, name: &str) -> Vec<u8> {
    let mut all = Vec::new();
    session.open(name, READ).expect("it is there").read_to_end(&mut all).expect("it can be read");
    all
}

#[test]
fn written_data_are_read_around_page_boundaries() {
    let agents = Agents::start(4);
    let session = agents.session();
    for bytes in [0, 1, 65_535, 65_536, 65_537, 1_000_000] {
        make(&session, "file", &contents(bytes));
        assert!(read(&session, "file") == contents(bytes), "{bytes} bytes");
        let stat = session.stat("file").expect("it is there");
        assert_eq!((stat.bytes, stat.block_bytes, stat.stripes), (bytes as u64, 65_536, 4));
    }
    session.finish().expect("all is written");
    assert!(read(&agents.session(), "file") == contents(1_000_000), "another session");
}

/// Reading the first page of a request starts the reads of all its pages, unless a fixed window limits their number.
#[test]
fn all_pages_of_a_large_request_are_read_together() {
    const PAGE: usize = 65_536;
    let agents = Agents::start(2);
    let data = contents(20 * PAGE);
    make(&agents.session(), "large", &data);
    for (prefetch, together) in
        [(Prefetch::Adaptive, true), (Prefetch::Window(1), false), (Prefetch::None, false)]
    {
        let mut settings = agents.settings();
        settings.prefetch = prefetch;
        let session = Session::start(settings).expect("they are there");
        let mut file = session.open("large", READ).expect("it is there");
        file.seek(SeekFrom::Start(5 * PAGE as u64)).expect("within the file");
        let mut into = vec![0; 8 * PAGE];
        let first = file.read(&mut into).expect("it can be read");
        assert!(first >= PAGE && (together || first == PAGE), "{prefetch:?}: {first} bytes at first");
        // During the pause the started reads complete, and then one call returns all ready pages.
        thread::sleep(Duration::from_millis(500));
        let second = file.read(&mut into[first..]).expect("it can be read");
        let expected = if together { 7 * PAGE + PAGE - first } else { PAGE };
        assert_eq!(second, expected, "{prefetch:?}: after {first} bytes");
        assert!(into[..first + second] == data[5 * PAGE..5 * PAGE + first + second]);
    }
}

#[test]
fn files_open_during_a_panic_are_written() {
    const NAMES: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let agents = Agents::start(2);
    let unwound = thread::spawn({
        let session = agents.session();
        move || {
            // At this point some tasks are idle, and closing a file wakes its task.
            let mut files = NAMES.map(|name| session.open(name, MAKE).expect("a new file"));
            files.iter_mut().for_each(|file| file.write_all(&contents(100_000)).expect("room"));
            // Panic without a message on standard error.
            std::panic::resume_unwind(Box::new("the program's own"));
        }
    });
    let panic = unwound.join().expect_err("it panicked");
    assert_eq!(panic.downcast_ref(), Some(&"the program's own"));
    let session = agents.session();
    assert!(NAMES.iter().all(|name| read(&session, name) == contents(100_000)));
}

#[test]
fn lines_and_bytes_are_read_across_pages() {
    let agents = Agents::start(2);
    let session = agents.session();
    let text: String = (0..30_000).map(|line| format!("line {line}\n")).collect();
    make(&session, "text", text.as_bytes());
    let lines = session.open("text", READ).expect("it is there").lines();
    assert!(lines.map(|line| line.expect("text") + "\n").collect::<String>() == text);
    let bytes = session.open("text", READ).expect("it is there").bytes();
    assert!(bytes.map(|byte| byte.expect("it can be read")).eq(text.bytes()));
}

#[test]
fn a_file_may_be_longer_than_four_gibibytes() {
    let agents = Agents::start(3);
    let session = agents.session();
    let mut file = session.open("sparse", BOTH).expect("a new file");
    let far = (5 << 30) + 123;
    file.seek(SeekFrom::Start(far)).expect("an offset");
    file.write_all(b"end").expect("room");
    assert_eq!(file.stat().expect("it is there").bytes, far + 3);
    let mut around = [1; 6];
    file.seek(SeekFrom::End(-6)).expect("an offset");
    file.read_exact(&mut around).expect("it can be read");
    assert_eq!(&around, b"\0\0\0end");
    file.set_len(4 << 30).expect("cut");
    assert_eq!(file.seek(SeekFrom::End(0)).expect("an offset"), 4 << 30);
    let error = file.seek(SeekFrom::Current(-5 << 30)).expect_err("before its beginning").to_string();
    assert!(
        error.contains("-5368709120 bytes from offset 4294967296 is before the start of the file"),
        "{error}"
    );
    assert_eq!(file.read(&mut around).expect("the end"), 0);
    file.close().expect("it is written");
}

#[test]
fn valid_names_open_files_and_others_fail() {
    let agents = Agents::start(1);
    let session = agents.session();
    make_directory(&session, "größe").expect("a directory");
    for name in ["with space", "größe/dat", "..."] {
        make(&session, name, name.as_bytes());
        assert_eq!(read(&session, name), name.as_bytes());
        assert_eq!(
            read(&session, &format!("/größe/../../{name}")),
            name.as_bytes(),
            "above the root is the root"
        );
    }
    assert_eq!(session.list().expect("names"), ["...", "größe/dat", "with space"]);
    let long = "x".repeat(300);
    for (name, kind) in [
        ("..", ErrorKind::Refused(TreeRefusal::IsDirectory)),
        (".../", ErrorKind::Refused(TreeRefusal::NotDirectory)),
        ("/etc/passwd", ErrorKind::NotFound),
        ("", ErrorKind::NotFound),
        (&long, ErrorKind::NameTooLong),
        ("nothing", ErrorKind::NotFound),
    ] {
        assert_eq!(session.open(name, READ).expect_err(name).kind(), kind, "{name}");
        assert_eq!(session.stat(name).expect_err(name).kind(), kind, "{name}");
        assert_eq!(session.unlink(name).expect_err(name).kind(), kind, "{name}");
    }
    session.unlink("...").expect("it is there");
    assert_eq!(session.list().expect("names").len(), 2);
}

#[test]
fn open_options_determine_access() {
    let agents = Agents::start(2);
    let session = agents.session();
    make(&session, "x", b"abc");
    let exists = session.open("x", MAKE.create_new(true)).expect_err("it exists");
    assert_eq!(exists.kind(), ErrorKind::Exists);
    let mut appending = session.open("x", OpenOptions::new().append(true).read(true)).expect("it is there");
    appending.write_all(b"de").expect("room");
    appending.rewind().expect("an offset");
    appending.write_all(b"f").expect("room");
    assert_eq!(appending.position(), 6);
    appending.close().expect("it is written");
    assert_eq!(read(&session, "x"), b"abcdef");
    let mut writing = session.open("x", OpenOptions::new().write(true)).expect("it is there");
    writing.write_all(b"A").expect("room");
    assert_eq!(
        writing.read(&mut [0]).expect_err("not open for it").kind(),
        std::io::ErrorKind::PermissionDenied
    );
    writing.close().expect("it is written");
    assert_eq!(read(&session, "x"), b"Abcdef");
    let mut reading = session.open("x", READ).expect("it is there");
    assert!(reading.write(b"x").is_err() && reading.set_len(0).is_err());
    make(&session, "x", b"");
    assert_eq!(read(&session, "x"), b"");
}

#[test]
fn alternating_appends_of_two_sessions_lose_nothing() {
    let agents = Agents::start(2);
    let sessions = [agents.session(), agents.session()];
    drop(sessions[0].open("log", MAKE.block_bytes(512)).expect("a new file"));
    let append = OpenOptions::new().append(true).read(true);
    let mut files = sessions.map(|session| session.open("log", append).expect("it is there"));
    let mut expected = Vec::new();
    for turn in 0..6_u8 {
        // The other handle has begun its append already when this one appends.
        let [mine, other] = [turn % 2, 1 - turn % 2].map(usize::from);
        files[other].write_all(&[100 + turn; 10]).expect("room");
        files[mine].write_all(&vec![turn; 1000 + usize::from(turn)]).expect("room");
        for (file, bytes, count) in [(mine, turn, 1000 + usize::from(turn)), (other, 100 + turn, 10)] {
            files[file].sync().expect("it is written");
            expected.resize(expected.len() + count, bytes);
            assert_eq!(files[file].position(), expected.len() as u64);
        }
    }
    let mut found = Vec::new();
    files[0].rewind().expect("an offset");
    files[0].read_to_end(&mut found).expect("it can be read");
    assert!(found == expected && read(&agents.session(), "log") == expected);
}

/// With any number of concurrent appends, the data of one call stay together, whatever pages they touch.
#[test]
fn concurrently_appended_records_are_not_torn() {
    const WRITERS: u8 = 4;
    const RECORDS: usize = 60;
    const BYTES: usize = 300;
    let agents = Agents::start(2);
    agents.session().open("log", MAKE.block_bytes(512)).expect("a new file").close().expect("closed");
    thread::scope(|scope| {
        for writer in 1..=WRITERS {
            let session = agents.session();
            scope.spawn(move || {
                let mut file = session.open("log", OpenOptions::new().append(true)).expect("it is there");
                for _ in 0..RECORDS {
                    file.write_all(&[writer; BYTES]).expect("room");
                    file.sync().expect("it is written");
                }
            });
        }
    });
    let found = read(&agents.session(), "log");
    assert_eq!(found.len(), usize::from(WRITERS) * RECORDS * BYTES);
    let torn = found.chunks(BYTES).filter(|record| record.iter().any(|byte| *byte != record[0])).count();
    assert_eq!(torn, 0, "records with bytes of others");
}

/// A seek, a flush, or a stat discards buffered bytes, so that the handle reads data of another handle.
#[test]
fn a_seek_flush_or_stat_discards_buffered_data() {
    let agents = Agents::start(2);
    let (session, elsewhere) = (agents.session(), agents.session());
    make(&session, "x", &[0; 2000]);
    let mut file = session.open("x", READ).expect("it is there");
    type Look = fn(&mut pdiol::File);
    let looks: [(&Session, Look); 4] = [
        (&session, |file| {
            file.seek(SeekFrom::Start(10)).expect("an offset");
        }),
        (&session, |file| file.sync().expect("there is nothing to flush")),
        (&session, |file| {
            file.stat().expect("it is there");
        }),
        (&elsewhere, |file| {
            file.stat().expect("it is there");
        }),
    ];
    for (value, (writer, look)) in (1..).zip(looks) {
        file.rewind().expect("an offset");
        file.read_exact(&mut [0; 10]).expect("it can be read");
        let mut other = writer.open("x", OpenOptions::new().write(true)).expect("it is there");
        other.write_all(&[value; 2000]).expect("room");
        other.close().expect("it is written");
        look(&mut file);
        let mut rest = Vec::new();
        file.read_to_end(&mut rest).expect("it can be read");
        assert!(rest == [value; 1990], "look {value}: {:?}", &rest[..10]);
    }
}

#[test]
fn a_truncated_file_keeps_its_striping() {
    let agents = Agents::start(3);
    make(&agents.session(), "x", &contents(300_000));
    let mut settings = agents.settings();
    settings.disks = std::num::NonZeroU32::new(2);
    settings.block_bytes = 4096;
    let session = Session::start(settings).expect("they are there");
    make(&session, "x", &contents(10_000));
    let stat = session.stat("x").expect("it is there");
    assert_eq!((stat.bytes, stat.block_bytes, stat.stripes), (10_000, 65_536, 3));
    assert!(read(&session, "x") == contents(10_000));

    let mut settings = agents.settings();
    settings.disks = std::num::NonZeroU32::new(9);
    let session = Session::start(settings).expect("they are there");
    let error = session.open("y", MAKE).expect_err("there are three disks");
    assert_eq!(error.kind(), pdiol::ErrorKind::Invalid);
    assert!(error.to_string().contains("over 9 disks: the agents have 3"), "{error}");
}

#[test]
fn a_handle_moves_between_threads_with_its_buffer() {
    let agents = Agents::start(2);
    let session = agents.session();
    make(&session, "x", &contents(200_000));
    let mut file = session.open("x", READ).expect("it is there");
    let mut first = vec![0; 1000];
    file.read_exact(&mut first).expect("it can be read");
    let rest = thread::spawn(move || {
        let mut rest = Vec::new();
        file.read_to_end(&mut rest).map(|_| rest)
    });
    drop(session);
    let rest = rest.join().expect("no panic").expect("it can be read");
    assert!([first, rest].concat() == contents(200_000));
}

#[test]
fn errors_name_missing_agents() {
    let mut agents = Agents::start(2);
    make(&agents.session(), "x", &contents(100_000));
    let session = agents.session();
    session.learn_disks().expect("they are there");
    let address = agents.agents[1].address.clone();
    agents.agents[1].end();
    let opened = session.open("x", READ).map_err(std::io::Error::from);
    let error = opened.and_then(|mut file| file.read_to_end(&mut Vec::new())).expect_err("an agent is gone");
    assert!(error.to_string().contains(&address), "{error}");
    let error = Session::start(agents.settings()).expect_err("an agent is gone");
    assert!(error.to_string().contains(&address) && error.remedy().is_some(), "{error}");
    assert_eq!(error.kind(), ErrorKind::Unreachable);
}

#[test]
fn another_version_and_a_missing_agent_are_different_errors() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound").to_string();
    let answering = thread::spawn(move || {
        let (mut caller, _) = listener.accept().expect("a caller");
        let mut greeting = [0; 48];
        caller.read_exact(&mut greeting).expect("it introduces itself");
        // The version follows after eight bytes of identification.
        greeting[8] ^= 0x40;
        caller.write_all(&greeting).expect("it listens");
    });
    let others = Agents::start(1);
    let failing = |name: &str| {
        let mut settings = Settings::new(pdiol::agents::named([name]).expect("an address"));
        settings.key = Some(others.key_file());
        Session::start(settings).expect_err("no agent of this version")
    };
    let error = failing(&address);
    assert_eq!(error.kind(), ErrorKind::Protocol, "{error}");
    assert!(error.to_string().contains("Install the same version"), "{error}");
    answering.join().expect("it answers");
    let error = failing("127.0.0.1:1");
    assert_eq!(error.kind(), ErrorKind::Unreachable, "{error}");
    assert!(error.to_string().contains("Is it running?"), "{error}");
}

#[test]
fn lost_writes_are_reported_by_sync_and_close() {
    let mut agents = Agents::start(2);
    let session = agents.session();
    let address = agents.agents[1].address.clone();
    let mut flushed = session.open("flushed", MAKE).expect("a new file");
    let mut closed = session.open("closed", MAKE).expect("a new file");
    agents.agents[1].end();
    // The second agent has one of the two blocks of each file.
    for file in [&mut flushed, &mut closed] {
        file.write_all(&contents(100_000)).expect("written behind");
    }
    let error = flushed.sync().expect_err("lost");
    assert!(error.kind() == ErrorKind::Gone && error.to_string().contains(&address), "{error}");
    let error = closed.close().expect_err("lost");
    assert!(error.kind() == ErrorKind::Gone && error.to_string().contains(&address), "{error}");
}

/// Operation on a file, and on a vector in memory for comparison.
#[derive(Clone, Debug)]
enum Step {
    Read(usize),
    Write(usize),
    Room(usize),
    Seek(SeekFrom),
    SetLen(u64),
    Sync,
    Hint(Advice),
}

fn steps() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..3000_usize).prop_map(Step::Read),
        4 => (0..3000_usize).prop_map(Step::Write),
        1 => (0..100_usize).prop_map(Step::Room),
        2 => (0..6000_u64).prop_map(|offset| Step::Seek(SeekFrom::Start(offset))),
        1 => (-2000..2000_i64).prop_map(|by| Step::Seek(SeekFrom::Current(by))),
        1 => (-2000..500_i64).prop_map(|by| Step::Seek(SeekFrom::End(by))),
        1 => (0..6000_u64).prop_map(Step::SetLen),
        1 => Just(Step::Sync),
        1 => prop_oneof![
            Just(Advice::Sequential), Just(Advice::Random), Just(Advice::WillNeed { offset: 100, bytes: 5000 })
        ].prop_map(Step::Hint),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_file_behaves_as_an_array_of_bytes(steps in vec(steps(), 1..60)) {
        let agents = Agents::start(2);
        let session = agents.session();
        let mut file = session.open("x", BOTH.block_bytes(512)).unwrap();
        let mut model = Cursor::new(Vec::new());
        let mut written = 0_u8;
        for step in steps {
            written = written.wrapping_add(1);
            match step {
                // A vector grows even by an empty write beyond its end.
                Step::Write(0) => {}
                Step::Read(bytes) => {
                    let (mut got, mut expected) = (Vec::new(), Vec::new());
                    Read::by_ref(&mut file).take(bytes as u64).read_to_end(&mut got).unwrap();
                    Read::by_ref(&mut model).take(bytes as u64).read_to_end(&mut expected).unwrap();
                    prop_assert_eq!(got, expected);
                }
                Step::Write(bytes) => {
                    file.write_all(&vec![written; bytes]).unwrap();
                    model.write_all(&vec![written; bytes]).unwrap();
                }
                Step::Room(bytes) => {
                    let bytes = bytes.min(file.room().len());
                    file.room()[..bytes].fill(written);
                    file.commit(bytes);
                    if bytes > 0 {
                        model.write_all(&vec![written; bytes]).unwrap();
                    }
                }
                Step::Seek(to) => {
                    let (got, expected) = (file.seek(to).ok(), model.seek(to).ok());
                    prop_assert_eq!(got, expected);
                }
                Step::SetLen(bytes) => {
                    file.set_len(bytes).unwrap();
                    model.get_mut().resize(bytes as usize, 0);
                }
                Step::Sync => file.sync().unwrap(),
                Step::Hint(hint) => file.hint(hint).unwrap(),
            }
            prop_assert_eq!(file.position(), model.position());
        }
        file.close().unwrap();
        prop_assert!(read(&session, "x") == model.into_inner());
    }
}
