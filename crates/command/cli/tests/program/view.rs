//! `starfish view`: the answers of its server, requests that the server rejects, growing files, and pages written to
//! files. `crates/traces/viewer/page/test` tests the contents of the page in a browser.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

use crate::common::{fail, finish, signal, starfish, succeed, wait};
use trace::{
    FileWriter, ProcessId, ProcessInfo, ProcessNumber, Record, RecordedEvent, StateId, StateInfo, ThreadId,
    ThreadInfo,
};

const HOSTILE: &str = "</script><script>alert(1)</script>";

/// Writes a process whose state has a name that looks like markup. A thread is in this state ten times.
fn section(mut writer: FileWriter<std::fs::File>) {
    let name = || HOSTILE.to_owned();
    let state = StateInfo { name: name(), category: String::new(), colour: None };
    writer.state(StateId(7), &state).expect("a state");
    writer.thread(ThreadId(3), &ThreadInfo { process: ProcessId(0), name: name() }).expect("a thread");
    let record = |time_ns, event| Record { time_ns, event };
    let records: Vec<_> = (0..10)
        .flat_map(|at| {
            let begin = record(at * 1000, RecordedEvent::Begin(StateId(7)));
            [begin, record(at * 1000 + 400, RecordedEvent::End(StateId(7)))]
        })
        .collect();
    writer.records(ThreadId(3), &records).expect("records");
}

fn process() -> ProcessInfo {
    ProcessInfo {
        host: "here".to_owned(),
        number: ProcessNumber::Pid(17),
        program: "psrs".to_owned(),
        command_line: String::new(),
        zero_unix_ns: None,
    }
}

/// Server of a viewer, which ends with the test.
struct Viewer {
    child: Child,
    host: String,
    token: String,
}

impl Viewer {
    fn of(file: &Path) -> Viewer {
        let mut command = starfish(["view", "--no-open"]);
        let mut child = command.arg(file).spawn().expect("it starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("an address");
        let (host, token) =
            line.strip_prefix("http://").and_then(|rest| rest.split_once('/')).expect("an address");
        Viewer { child, host: host.to_owned(), token: token.trim().trim_end_matches('/').to_owned() }
    }

    /// Sends `request`, and returns the status and the body of the answer.
    fn answer(&self, request: &str) -> (String, Vec<u8>) {
        let mut stream = TcpStream::connect(&self.host).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a limit");
        let mut answer = Vec::new();
        // The server stops reading a request that is too long.
        let _ = stream.write_all(request.as_bytes()).and_then(|()| stream.read_to_end(&mut answer));
        let status = String::from_utf8_lossy(answer.get(9..12).unwrap_or_default()).into_owned();
        (status, answer)
    }

    fn get(&self, path: &str) -> (String, Vec<u8>) {
        self.answer(&format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.host))
    }
}

impl Drop for Viewer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn trace_in(directory: &tempfile::TempDir) -> std::path::PathBuf {
    let file = directory.path().join("one.tlv");
    section(FileWriter::create(&file, &process()).expect("a file"));
    file
}

#[test]
fn the_server_answers_only_its_paths_and_clients_with_the_token() {
    let directory = tempfile::tempdir().expect("a directory");
    let viewer = Viewer::of(&trace_in(&directory));
    let Viewer { host, token, .. } = &viewer;
    let (status, page) = viewer.get(&format!("/{token}/"));
    let page = String::from_utf8(page).expect("text");
    assert_eq!(status, "200");
    assert!(page.contains("Content-Security-Policy: frame-ancestors 'none'") && page.contains("nosniff"));
    assert!(page.contains("default-src 'none'"));
    let (status, columns) = viewer.get(&format!("/{token}/columns"));
    assert_eq!(status, "200");
    assert!(columns.windows(8).any(|bytes| bytes == b"TLVCOL01"));
    let mut wrong = token.clone();
    wrong.replace_range(..1, if token.starts_with('0') { "1" } else { "0" });
    let paths = [
        "/".to_owned(),
        "/columns".to_owned(),
        format!("/{wrong}/"),
        format!("/{wrong}/columns"),
        format!("/{token}"),
        format!("/{token}0/"),
        format!("/{token}/one.tlv"),
        format!("/{token}/../{token}/"),
        format!("/{token}//etc/passwd"),
        format!("/{token}/columns/../../../../etc/passwd"),
        "/etc/passwd".to_owned(),
        "http://127.0.0.1/".to_owned(),
    ];
    for path in paths {
        assert_eq!(viewer.get(&path).0, "404", "{path}");
    }
    // The host names are foreign ones that could resolve to this address; then a request has no host, and one has two.
    for named in ["evil.example", "example", &format!("{host}.evil.example")] {
        let request = format!("GET /{token}/columns HTTP/1.1\r\nHost: {named}\r\n\r\n");
        assert_eq!(viewer.answer(&request).0, "403", "{named}");
    }
    assert_eq!(viewer.answer(&format!("GET /{token}/ HTTP/1.1\r\n\r\n")).0, "403");
    assert_eq!(viewer.answer(&format!("GET /{token}/ HTTP/1.1\r\nHost: {host}\r\nHost: x\r\n\r\n")).0, "403");
    assert_eq!(viewer.answer(&format!("POST /{token}/ HTTP/1.1\r\nHost: {host}\r\n\r\n")).0, "405");
    assert_eq!(viewer.answer("nonsense\r\n\r\n").0, "400");
    assert_ne!(viewer.answer(&format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(40_000))).0, "200");
    // Incomplete requests do not delay other requests.
    let mut idle: Vec<_> = (0..10).map(|_| TcpStream::connect(host).expect("it listens")).collect();
    idle.iter_mut().for_each(|stream| stream.write_all(b"GET /").expect("the server accepts bytes"));
    assert_eq!(viewer.get(&format!("/{token}/")).0, "200");
}

#[test]
fn a_growing_file_is_sent_again_and_an_unchanged_one_is_not() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = trace_in(&directory);
    let viewer = Viewer::of(&file);
    let columns = format!("/{}/columns", viewer.token);
    let version = |answer: &[u8]| {
        let text = String::from_utf8_lossy(answer).into_owned();
        text.split_once("X-Version: ")
            .and_then(|(_, rest)| rest.split_once('\r'))
            .expect("a version")
            .0
            .to_owned()
    };
    let (_, first) = viewer.get(&columns);
    let known = format!("{columns}?known={}", version(&first));
    assert_eq!(viewer.get(&known).0, "204");
    section(FileWriter::append(&file, &process()).expect("a file"));
    let end = Instant::now() + Duration::from_secs(20);
    let second = loop {
        let (status, answer) = viewer.get(&known);
        if status == "200" {
            break answer;
        }
        assert!(Instant::now() < end, "the appended part is not sent");
        std::thread::sleep(Duration::from_millis(50));
    };
    assert!(second.len() > first.len());
    // While the file is not a valid trace, the server shows its last valid state.
    std::fs::write(&file, "no trace").expect("a file");
    std::thread::sleep(Duration::from_millis(400));
    assert_eq!(viewer.get(&columns).1.len(), second.len());
}

#[test]
fn a_written_page_has_no_markup_of_a_trace() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = trace_in(&directory);
    let page = directory.path().join("one.html");
    let mut view = starfish(["view", "--html"]);
    view.arg(&page).arg(&file).arg(&file).arg("--beside");
    succeed(view);
    let begins_beside = std::fs::read_to_string(&page).expect("a page").contains("data-look=\"beside=yes\">");
    assert!(begins_beside);
    let mut view = starfish(["view", "--html"]);
    view.arg(&page).arg(&file).arg(&file);
    succeed(view);
    let page = std::fs::read_to_string(page).expect("a page");
    assert!(page.starts_with("<!doctype html>") && !page.contains("alert(1)"));
    assert!(!page.contains("beside=yes\">"));
    assert_eq!(page.matches("<script").count(), 2);
}

#[test]
fn a_signal_ends_the_viewer() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = trace_in(&directory);
    for (name, code) in [("TERM", 0), ("INT", 130)] {
        let mut viewer = Viewer::of(&file);
        signal(&viewer.child, name);
        assert_eq!(wait(&mut viewer.child).code(), Some(code), "{name}");
    }
}

/// The trace of a killed program is shown as far as it is complete, with a notice.
#[test]
fn the_missing_end_of_a_trace_is_reported() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = trace_in(&directory);
    let whole = std::fs::read(&file).expect("a trace");
    let written = |expected: bool| {
        let mut view = starfish(["view", "--html"]);
        view.arg(directory.path().join("page.html")).arg(&file);
        let output = finish(view);
        let stderr = String::from_utf8(output.stderr).expect("text");
        assert!(
            output.status.success() && stderr.contains("one.tlv: it ends in the middle") == expected,
            "{stderr}"
        );
    };
    written(false);
    std::fs::write(&file, &whole[..whole.len() - 3]).expect("a file");
    written(true);
    let mut viewer = Viewer::of(&file);
    viewer.child.kill().expect("a child process of the test");
    let mut stderr = String::new();
    viewer.child.stderr.take().expect("a pipe").read_to_string(&mut stderr).expect("text");
    assert!(stderr.contains("one.tlv: it ends in the middle"), "{stderr}");
}

#[test]
fn a_file_that_cannot_be_shown_is_rejected_with_its_name() {
    let directory = tempfile::tempdir().expect("a directory");
    let view = |file: &str| {
        let mut view = starfish(["view", "--no-open", file]);
        view.current_dir(directory.path());
        view
    };
    assert!(fail(view("missing.tlv"), 1).contains("missing.tlv"));
    std::fs::write(directory.path().join("text.tlv"), "some text").expect("a file");
    let stderr = fail(view("text.tlv"), 1);
    assert!(stderr.contains("text.tlv") && stderr.contains("not a trace"), "{stderr}");
    fail(starfish(["view"]), 2);
}
