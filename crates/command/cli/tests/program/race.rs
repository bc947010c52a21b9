//! A race on a real agent. The writes of one client delay the reads of another client, and the agent reports this in
//! all its outputs.

use std::cell::Cell;
use std::rc::Rc;

use crate::common::{Store, ask, client, watched};
use crate::exposition::{parse, value};
use fs::{File, NumberedFile};
use jobs::{Contents, fill};
use layout::Striping;
use machine::TaskGroup;
use node::ConnectedNode;
use real::RealMachine;
use trace::Amount;

const BLOCK: u64 = 4 << 10;

/// Number of concurrent writes of one client. It is higher than the number that may delay a read without being
/// reported.
const WRITES: u64 = 100;

/// Number of consecutive reads of the other client. Each read waits for the writes in the queue.
const READS: u64 = 4;

/// Describes a new, empty file on all disks.
async fn describe(connection: &ConnectedNode) -> NumberedFile {
    let id = node::new_file_id().expect("randomness");
    let striping = Striping::new(BLOCK, connection.client.disks()).expect("a striping");
    connection.client.new_numbered(id, striping).await.expect("all disks can be used")
}

async fn open(connection: &ConnectedNode, file: NumberedFile) -> File<RealMachine> {
    connection.client.numbered(file).await.expect("all disks can be used")
}

/// Writes blocks again and again, many at once, until `stop` is closed. Sends a message on `begun` when the first write
/// has ended and others are waiting.
async fn write_on(
    connection: ConnectedNode,
    file: File<RealMachine>,
    begun: flume::Sender<()>,
    stop: flume::Receiver<()>,
) {
    let (is_over, all) = (Rc::new(Cell::new(false)), TaskGroup::<jobs::Error>::new());
    for block in 0..WRITES {
        let (file, is_over, begun) = (file.clone(), is_over.clone(), begun.clone());
        all.spawn(&connection.machine, "block after block", async move {
            let memory = Contents::Real.memory(BLOCK);
            // Two consecutive writes are never to the same block, because the second one would be merged with the first
            // one.
            for turn in 0.. {
                if is_over.get() {
                    break;
                }
                file.write_through((turn % 2 * WRITES + block) * BLOCK, BLOCK, &memory, 0).await?;
                let _ = begun.try_send(());
            }
            Ok(())
        });
    }
    let _ = stop.recv_async().await;
    is_over.set(true);
    all.join_or_fail().await.expect("all is written");
}

#[test]
fn an_agent_reports_that_one_client_delays_another() {
    let mut store = Store::start(&[]);
    let (agent, _) = watched(store.directory.path(), &["disk"], &[]);
    let (sender, described_file) = flume::bounded::<NumberedFile>(1);
    let made = client(&[&agent.address], async move |connection: ConnectedNode| {
        let described = describe(&connection).await;
        let file = open(&connection, described.clone()).await;
        fill(&connection.machine, &file, READS * BLOCK, Contents::Real, |_| {}).await.expect("it is written");
        file.flush().await.expect("it is flushed");
        sender.send(NumberedFile { bytes: READS * BLOCK, ..described }).expect("the test waits");
    });
    made.join().expect("it is made");
    let to_read = described_file.recv().expect("it is sent");
    drop(agent);
    // Restarts the agent with slow disks and an empty cache.
    let slowed = ["--scheduling", "fcfs", "--disk-model", "drawn-14400", "--prefetch", "0"];
    let (agent, metrics) = watched(store.directory.path(), &["disk"], &slowed);
    let address = agent.address.clone();
    store.agents.push(agent);
    assert!(!store.run(&["doctor", "--quick"]).contains("delayed by writes of another client"));
    store.run(&["trace", "start"]);

    let (stop, stopped) = flume::bounded::<()>(0);
    let (begun, has_begun) = flume::bounded::<()>(1);
    let writer = client(&[&address], async move |connection: ConnectedNode| {
        let described = describe(&connection).await;
        let file = open(&connection, described).await;
        file.truncate(2 * WRITES * BLOCK).await.expect("there is room");
        write_on(connection, file, begun, stopped).await;
    });
    has_begun.recv().expect("it begins");
    let reader = client(&[&address], async move |connection: ConnectedNode| {
        let file = open(&connection, to_read).await;
        let memory = Contents::Real.memory(BLOCK);
        for block in 0..READS {
            let found = file.read(block * BLOCK, BLOCK, &memory, 0).await.expect("it is read");
            assert_eq!(found, BLOCK);
        }
    });
    reader.join().expect("all is read");
    drop(stop);
    writer.join().expect("all is written");

    let stdout = store.run(&["doctor", "--quick"]);
    assert!(stdout.contains("reads from disk 0 were delayed by writes of another client"), "{stdout}");
    assert!(stdout.contains("--scheduling round-robin"), "{stdout}");
    let (_, numbers) = ask(&metrics, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let held_up = value(&parse(&numbers), "starfish_agent_disk_held_up_reads_total", &[("disk", "0")]);
    assert!(held_up.is_some_and(|reads| (1.0..=READS as f64).contains(&reads)), "{held_up:?}");
    let log = std::fs::read_to_string(store.path("log")).expect("a log");
    assert_eq!(log.matches("are delayed by a client's writes").count(), 1, "{log}");
    store.run(&["trace", "stop", "-o", "race.tlv"]);
    let bytes = std::fs::read(store.path("race.tlv")).expect("a trace");
    let trace = trace::read("race.tlv", bytes.as_slice()).expect("a trace");
    let most = |name: &str| {
        let has_name = |counter: u32| trace.counters[counter as usize].name == name;
        let counts = trace.counts.iter().filter(|count| has_name(count.counter));
        let whole = |value| match value {
            Amount::Integer(number) => number,
            Amount::Real(number) => panic!("{number} is not whole"),
        };
        counts.map(|count| whole(count.value)).max().unwrap_or(0)
    };
    assert_eq!(Some(most("disk 0: reads held up") as f64), held_up);
    assert!(most("disk 0: bytes of pending writes") > 64 * BLOCK as i64);
}
