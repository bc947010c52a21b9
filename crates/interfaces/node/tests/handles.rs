//! Handles of files on real agents on loopback, used by many threads at once.

use std::future::IntoFuture;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use node::{Advice, ErrorKind, OpenOptions, Pending, Session};
use test_agents::Agents;

const READ: OpenOptions = OpenOptions::new().read(true);
const BOTH: OpenOptions = READ.write(true).create(true);
const PAGE: usize = 64 << 10;

fn session(agents: &Agents) -> Session {
    Session::start(agents.settings()).expect("they are there")
}

/// Returns a session with a short timeout for agents.
fn impatient(agents: &Agents) -> Session {
    let mut settings = agents.settings();
    settings.silence = Duration::from_millis(500);
    Session::start(settings).expect("they are there")
}

/// Returns bytes that depend on their offset and on their writer.
fn contents(bytes: usize, writer: u64) -> Vec<u8> {
    let byte = |offset: u64| (offset + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15 ^ writer << 17) >> 56;
    (0..bytes as u64).map(|offset| byte(offset) as u8).collect()
}

#[test]
fn many_threads_write_and_read_one_file_at_once() {
    const THREADS: usize = 8;
    const PART: usize = 5 * PAGE + 1234;
    let agents = Agents::start(3);
    let session = session(&agents);
    let file = session.open("shared", BOTH).expect("a new file");
    let together = &Barrier::new(THREADS);
    thread::scope(|scope| {
        for number in 0..THREADS {
            let file = file.clone();
            scope.spawn(move || {
                let (start, mine) = (number * PART, contents(PART, number as u64));
                together.wait();
                // Use pieces that end within a page, and write the last piece first.
                let pieces: Vec<_> = mine.chunks(30_000).enumerate().collect();
                let writes: Vec<Pending<()>> = pieces
                    .iter()
                    .rev()
                    .map(|(index, piece)| file.begin_write((start + index * 30_000) as u64, *piece))
                    .collect();
                writes.into_iter().for_each(|write| write.wait().expect("room"));
                let mut read = vec![0; PART];
                assert_eq!(file.read_at(start as u64, &mut read), Ok(PART));
                assert!(read == mine, "thread {number}");
            });
        }
    });
    assert_eq!(file.stat().expect("it is there").bytes, (THREADS * PART) as u64);
    file.close().expect("it is written");
    let file = self::session(&agents).open("shared", READ).expect("it is there");
    for number in (0..THREADS).rev() {
        let mut read = vec![0; PART];
        assert_eq!(file.read_at((number * PART) as u64, &mut read), Ok(PART));
        assert!(read == contents(PART, number as u64), "part {number}");
    }
}

#[test]
fn reads_stop_at_the_end_of_file_and_lend_whole_pages() {
    let agents = Agents::start(2);
    let session = session(&agents);
    let file = session.open("file", BOTH).expect("a new file");
    let all = contents(3 * PAGE + 10, 7);
    file.write_at(0, &*all).expect("room");
    let mut into = vec![0; 2 * PAGE];
    assert_eq!(file.read_at(2 * PAGE as u64 + 5, &mut into), Ok(PAGE + 5));
    assert!(into[..PAGE + 5] == all[2 * PAGE + 5..]);
    for beyond in [all.len() as u64, 1 << 40, u64::MAX] {
        assert_eq!(file.read_at(beyond, &mut into), Ok(0));
    }
    let lent = file.begin_read(1, u64::MAX).wait().expect("it can be read");
    let lengths: Vec<usize> = lent.iter().map(|page| page.as_slice().len()).collect();
    assert_eq!(lengths, [PAGE - 1, PAGE, PAGE, 10]);
    // Lent pages do not change, even when the file is changed or closed.
    file.set_len(1).expect("cut");
    assert_eq!(file.stat().expect("it is there").bytes, 1);
    file.close().expect("it is written");
    assert!(lent.iter().flat_map(|page| page.as_slice()).eq(&all[1..]));
}

#[test]
fn read_latest_returns_data_that_others_have_sent() {
    let agents = Agents::start(2);
    let (writer, reader) = (session(&agents), session(&agents));
    let written = writer.open("seen", BOTH).expect("a new file");
    let send = |bytes: &[u8]| written.write_at(0, bytes).and_then(|()| written.send()).expect("room");
    send(b"once");
    let (read, mut found) = (reader.open("seen", READ).expect("it is there"), [0; 9]);
    assert_eq!((read.read_at(0, &mut found), &found[..4]), (Ok(4), &b"once"[..]));
    send(b"once more");
    assert_eq!((read.read_latest_at(0, &mut found), &found), (Ok(9), b"once more"));
}

#[test]
fn concurrent_appends_of_threads_lose_nothing() {
    let agents = Agents::start(2);
    let session = session(&agents);
    let file =
        session.open("log", OpenOptions::new().append(true).read(true).create(true)).expect("a new file");
    thread::scope(|scope| {
        for writer in 0..4_u8 {
            let file = &file;
            scope.spawn(move || {
                for turn in 0..20 {
                    let line = vec![writer * 20 + turn; 1000];
                    let at = file.append(&*line).expect("room");
                    let mut found = vec![0; line.len()];
                    assert_eq!(file.read_at(at, &mut found), Ok(1000));
                    assert_eq!(found, line);
                }
            });
        }
    });
    assert_eq!(file.known_bytes(), Ok(80_000));
    let mut all = vec![0; 80_000];
    assert_eq!(file.read_at(0, &mut all), Ok(80_000));
    let mut lines: Vec<u8> = all.chunks(1000).map(|line| line[0]).collect();
    lines.sort_unstable();
    assert!(lines.into_iter().eq(0..80));
}

/// Appends lose nothing even if each thread has opened the file separately and waits for free pages in the page cache.
#[test]
fn concurrent_appends_through_several_handles_lose_nothing() {
    const LINES: usize = 12;
    const BYTES: usize = 2 * PAGE / 3;
    let agents = Agents::start(2);
    let mut settings = agents.settings();
    settings.cache_bytes = 2 * PAGE as u64;
    let session = Session::start(settings).expect("they are there");
    let append = OpenOptions::new().append(true).create(true);
    session.open("log", append).expect("a new file").close().expect("it is written");
    let together = &Barrier::new(4);
    thread::scope(|scope| {
        for writer in 0..4 {
            let file = session.open("log", append).expect("it is there");
            scope.spawn(move || {
                together.wait();
                for turn in 0..LINES {
                    file.append(vec![(writer * LINES + turn) as u8; BYTES]).expect("room");
                }
                file.close().expect("it is written");
            });
        }
    });
    let file = session.open("log", READ).expect("it is there");
    let mut all = vec![0; 4 * LINES * BYTES + 1];
    assert_eq!(file.read_at(0, &mut all), Ok(4 * LINES * BYTES));
    let mut lines: Vec<usize> = all.chunks_exact(BYTES).map(|line| line[0].into()).collect();
    lines.sort_unstable();
    assert!(lines.into_iter().eq(0..4 * LINES));
}

#[test]
fn failures_are_returned_to_the_right_caller() {
    let mut agents = Agents::start(2);
    let session = session(&agents);
    let file = session.open("file", BOTH).expect("a new file");
    file.write_at(0, contents(8 * PAGE, 1)).expect("room");
    file.close().expect("it is written");
    // The cache of another session has no pages of the file.
    let session = impatient(&agents);
    let file = session.open("file", BOTH).expect("it is there");
    file.advise(Advice::Random).expect("it is open");
    agents.agents[1].end();
    // One agent has the even pages, the other the odd ones.
    let reads: Vec<_> = (0..8).map(|page| file.begin_read((page * PAGE) as u64, 10)).collect();
    let beyond = file.begin_write(u64::MAX - 5, vec![1]);
    let outcomes: Vec<_> = reads.into_iter().map(Pending::wait).collect();
    let gone = usize::from(outcomes[0].is_ok());
    for (page, outcome) in outcomes.into_iter().enumerate() {
        match outcome {
            Ok(lent) => {
                assert_ne!(page % 2, gone);
                assert!(lent[0].as_slice() == &contents(8 * PAGE, 1)[page * PAGE..][..10]);
            }
            Err(error) => {
                assert_eq!((page % 2, error.kind()), (gone, ErrorKind::Gone), "{error}");
                assert!(error.to_string().contains(&agents.agents[1].address), "{error}");
            }
        }
    }
    assert_eq!(beyond.wait().expect_err("no file is so long").kind(), ErrorKind::TooLarge);
    // The next flush of each file reports its lost writes.
    let lost = file.begin_write((gone * PAGE) as u64, vec![7; PAGE]);
    assert_eq!(lost.wait(), Ok(()), "written behind");
    assert_eq!(file.flush().expect_err("lost").kind(), ErrorKind::Gone);
}

#[test]
fn closed_or_unsuitable_handles_reject_calls() {
    let agents = Agents::start(1);
    let session = session(&agents);
    let writing = session.open("file", OpenOptions::new().write(true).create(true)).expect("a new file");
    writing.write_at(0, *b"abc").expect("room");
    assert_eq!(writing.read_at(0, &mut [0]).expect_err("not open for it").kind(), ErrorKind::BadMode);
    let twin = writing.clone();
    writing.close().expect("it is written");
    assert_eq!(twin.write_at(0, *b"x").expect_err("it is closed").kind(), ErrorKind::Closed);
    assert_eq!(twin.close().expect_err("it is closed").kind(), ErrorKind::Closed);
    let reading = session.open("file", READ).expect("it is there");
    for refused in [reading.write_at(0, *b"x"), reading.append(*b"x").map(drop), reading.set_len(0)] {
        assert_eq!(refused.expect_err("not open for it").kind(), ErrorKind::BadMode);
    }
    let mut all = [0; 5];
    assert_eq!((reading.read_at(0, &mut all), &all), (Ok(3), b"abc\0\0"));
}

#[test]
fn calls_in_flight_complete_after_all_handles_are_dropped() {
    let agents = Agents::start(2);
    let session = session(&agents);
    let file = session.open("file", BOTH).expect("a new file");
    let writes: Vec<_> =
        (0..64).map(|page| file.begin_write((page * PAGE) as u64, contents(PAGE, page as u64))).collect();
    let flush = file.begin_flush();
    drop((file, session));
    writes.into_iter().for_each(|write| write.wait().expect("room"));
    flush.wait().expect("it is written");
    let file = self::session(&agents).open("file", READ).expect("it was finished");
    for page in 0..64 {
        let mut read = vec![0; PAGE];
        assert_eq!(file.read_at((page * PAGE) as u64, &mut read), Ok(PAGE));
        assert!(read == contents(PAGE, page as u64), "page {page}");
    }
}

#[test]
fn calls_in_flight_end_without_their_agent_and_session() {
    let mut agents = Agents::start(2);
    let session = session(&agents);
    let file = session.open("file", BOTH).expect("a new file");
    file.write_at(0, contents(4 * PAGE, 1)).expect("room");
    file.close().expect("it is written");
    let session = impatient(&agents);
    let file = session.open("file", READ).expect("it is there");
    agents.agents[1].end();
    let reads: Vec<_> = (0..4).map(|page| file.begin_read((page * PAGE) as u64, 1)).collect();
    let start = Instant::now();
    drop((file, session));
    assert!(start.elapsed() < Duration::from_secs(10), "the patience with agents is half a second");
    assert!(reads.iter().all(Pending::is_ready));
    let outcomes: Vec<bool> = reads.into_iter().map(|read| read.wait().is_ok()).collect();
    assert_eq!(outcomes, [true, false, true, false].map(|is_there| is_there == outcomes[0]));
}

#[test]
fn calls_can_be_awaited_in_another_executor() {
    let agents = Agents::start(2);
    let session = session(&agents);
    let file = session.open("file", BOTH).expect("a new file");
    let read = real::block_on(node::Driver::default(), async {
        let writes = [file.begin_write(0, *b"abc"), file.begin_write(100_000, *b"def")];
        for write in writes {
            write.into_future().await?;
        }
        file.begin_read(99_999, 4).await
    });
    let read: Vec<u8> =
        read.expect("a runtime").expect("room").iter().flat_map(|page| page.as_slice().to_vec()).collect();
    assert_eq!(read, b"\0def");
}
