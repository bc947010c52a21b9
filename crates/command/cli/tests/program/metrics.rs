//! Metrics of agents for Prometheus, requested by HTTP.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{Store, ask, fail, hash, starfish, watched};
use crate::exposition::{parse, value};

#[test]
fn an_agent_exports_its_requests_and_disks() {
    let mut store = Store::start(&[]);
    let (agent, address) = watched(store.directory.path(), &["disk1", "disk2"], &[]);
    store.agents.push(agent);
    let get = || ask(&address, "GET /metrics HTTP/1.1\r\nHost: localhost:9117\r\n\r\n");
    let (foreign, _) = ask(&address, "GET /metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n");
    assert!(foreign.starts_with("HTTP/1.1 403 "), "{foreign}");
    let (head, body) = get();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(
        head.contains("\r\nContent-Type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n")
    );
    let before = parse(&body);
    assert_eq!(value(&before, "starfish_agent_received_bytes_total", &[]), Some(0.0));

    let original = store.make_file("file", 3_000_000);
    store.run(&["put", "file"]);
    store.run(&["get", "file", "back"]);
    assert_eq!(hash(&store.path("back")), original);
    let mut after = parse(&get().1);
    let start = Instant::now();
    // A client may have received the data before the agent has counted them and noticed that the client has
    // disconnected.
    while value(&after, "starfish_agent_sent_bytes_total", &[]) < Some(3_000_000.0)
        || value(&after, "starfish_agent_clients", &[]) != Some(0.0)
    {
        assert!(start.elapsed() < Duration::from_secs(30), "{after:?}");
        thread::sleep(Duration::from_millis(20));
        after = parse(&get().1);
    }
    let total = |name: &str, labels: &[(&str, &str)]| {
        value(&after, name, labels).unwrap_or_else(|| panic!("no {name} {labels:?}"))
    };
    assert_eq!(total("starfish_agent_received_bytes_total", &[]), 3_000_000.0);
    let reads = total("starfish_agent_request_seconds_count", &[("operation", "read"), ("class", "demand")]);
    let looked_up: f64 = ["hit", "miss"]
        .iter()
        .map(|result| total("starfish_agent_cache_reads_total", &[("result", result)]))
        .sum();
    assert!(reads > 0.0 && reads <= looked_up, "{reads} reads, {looked_up} looked up");
    let mut written = 0.0;
    for (disk, root) in ["disk1", "disk2"].iter().enumerate() {
        let (disk, directory) = (disk.to_string(), store.path(root).display().to_string());
        let of_disk = [("disk", &*disk)];
        assert_eq!(total("starfish_agent_disk_info", &[of_disk[0], ("directory", &directory)]), 1.0);
        assert_eq!(total("starfish_agent_disk_up", &of_disk), 1.0);
        assert!(total("starfish_agent_disk_flush_seconds_count", &of_disk) > 0.0);
        let free = total("starfish_agent_disk_free_bytes", &of_disk);
        assert!(free > 0.0 && free <= total("starfish_agent_disk_size_bytes", &of_disk));
        written += total("starfish_agent_disk_written_bytes_total", &of_disk);
    }
    assert_eq!(written, 3_000_000.0);
    // A disk whose directory is missing counts as a disk that does not answer.
    std::fs::rename(store.path("disk2"), store.path("elsewhere")).expect("renamed");
    let gone = parse(&get().1);
    let up = ["0", "1"].map(|disk| value(&gone, "starfish_agent_disk_up", &[("disk", disk)]));
    std::fs::rename(store.path("elsewhere"), store.path("disk2")).expect("renamed");
    assert_eq!(up, [Some(1.0), Some(0.0)]);
}

#[test]
fn the_server_has_only_metrics_and_silent_clients_do_not_block_it() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (agent, address) = watched(directory.path(), &["disk"], &[]);
    assert!(ask(&address, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").1.contains("href=\"metrics\""));
    for (request, status) in [
        ("GET /metrics/ HTTP/1.1\r\nHost: localhost\r\n\r\n", "404"),
        ("GET /../etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n", "404"),
        ("POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n", "405"),
        ("DELETE / HTTP/1.1\r\nHost: localhost\r\n\r\n", "405"),
        ("what\r\n\r\n", "400"),
    ] {
        let (head, _) = ask(&address, request);
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{request:?}: {head}");
    }
    let (head, body) = ask(&address, "HEAD /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200 ") && body.is_empty(), "{head}");
    let threads = || {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", agent.child.id())).expect("Linux");
        tasks.count()
    };
    // A silent client occupies a thread of the server for only a few seconds.
    let before = threads();
    let silent: Vec<TcpStream> = (0..40).map(|_| TcpStream::connect(&address).expect("it listens")).collect();
    let start = Instant::now();
    loop {
        let mut stream = TcpStream::connect(&address).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("set");
        let mut reply = String::new();
        let asked = stream
            .write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
            .and_then(|()| stream.read_to_string(&mut reply));
        if asked.is_ok() && reply.ends_with("# EOF\n") {
            break;
        }
        assert!(threads() <= before + 17, "{} threads", threads());
        assert!(start.elapsed() < Duration::from_secs(30), "new clients are not served");
        thread::sleep(Duration::from_millis(100));
    }
    drop(silent);
    while threads() > before {
        assert!(start.elapsed() < Duration::from_secs(60), "{} threads", threads());
        thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn an_unusable_metrics_address_is_reported_with_a_remedy() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let root = directory.path().to_str().expect("UTF-8");
    let agent = |address: &str| {
        starfish(["agent", "--root", root, "--create", "--listen", "127.0.0.1:0", "--metrics", address])
    };
    let error = fail(agent("nowhere"), 2);
    assert!(error.contains("--metrics nowhere") && error.contains("127.0.0.1:9117"), "{error}");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = taken.local_addr().expect("bound").port().to_string();
    let error = fail(agent(&port), 1);
    assert!(error.contains(&format!("--metrics {port}")) && error.contains("Each agent"), "{error}");
}

#[test]
fn a_metrics_port_can_be_relative_to_the_port_of_the_agent() {
    let mut store = Store::start(&[]);
    let (agent, address) = watched(store.directory.path(), &["disk"], &["--metrics", "+2000"]);
    let port = |address: &str| address.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
    assert_eq!(port(&address), port(&agent.address).map(|own| own + 2000));
    store.agents.push(agent);
}
