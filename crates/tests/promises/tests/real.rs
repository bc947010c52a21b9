//! Promises of the file system on real nodes, with each driver.

#[path = "../../../machines/real/tests/common/mod.rs"]
mod common;
#[path = "../../../machines/real/tests/testbed/mod.rs"]
mod testbed;

use std::cell::{Cell, RefCell};
use std::io::Write;
use std::rc::Rc;
use std::time::Instant;

use common::stranger::{DEMAND, Headed, join};
use common::{Reports, drivers, run_nodes, until};
use fs::protocol::{Frame, Request};
use fs::{
    Client, ClientSettings, Configuration, File, FileId, IoNodeSettings, NumberedFile, PageCache,
    PageCacheSettings, Prefetch, Scheduling, Threads, serve,
};
use layout::Striping;
use machine::{Delivery, Duration, KeptEvent, Machine, Memory, Message, Net, NoteRing, Payload};
use node as _;
use promises::Base;
use real::{Limits, RealMachine, Settings};
use testbed::Loopback;

macro_rules! each {
    ($($promise:ident,)*) => {
        $(
            #[test]
            fn $promise() {
                for driver in drivers() {
                    for base in Configuration::ALL {
                        eprintln!("in the configuration {base:?}");
                        promises::$promise(&Loopback { driver }, base.into());
                    }
                }
            }
        )*
    };
}

promises::for_all_promises!(each);

/// Simulated machines check all promises under all disk schedulings; this test checks a few promises under some
/// schedulings, on real disks in real time.
#[test]
fn promises_are_kept_under_other_disk_schedules() {
    let orders = [Scheduling::RoundRobin, Scheduling::ReadPriority];
    for (driver, scheduling) in drivers().into_iter().flat_map(|driver| orders.map(|one| (driver, one))) {
        let (testbed, base) = (Loopback { driver }, Base { configuration: Configuration::Agent, scheduling });
        eprintln!("{scheduling} with {driver:?}");
        promises::any_client_can_read_a_numbered_file(&testbed, base);
        promises::interleaved_writes_of_several_clients_all_arrive(&testbed, base);
        promises::later_writes_of_a_block_reach_the_disk_later(&testbed, base);
        promises::partial_blocks_are_written_back_in_time(&testbed, base);
        promises::accepted_writes_fit_on_the_disk(&testbed, base);
        promises::a_client_reads_its_own_writes(&testbed, base);
        promises::each_byte_has_the_value_of_a_latest_write(&testbed, base);
    }
}

const PAGE: u64 = 64 * 1024;

/// Makes the first node an I/O node, and the second its client.
async fn client_of(nodes: &[RealMachine], settings: IoNodeSettings) -> fs::Result<Client<RealMachine>> {
    nodes[0].spawn("I/O node", serve(nodes[0].clone(), settings));
    Client::connect(nodes[1].clone(), vec![nodes[0].node()], ClientSettings::agent()).await
}

/// Numbers of files.
const FIRST: FileId = FileId(2);
const SECOND: FileId = FileId(3);

/// Returns a file of this number over all disks, of `bytes` bytes in blocks of `block_bytes`.
async fn described(
    client: &Client<RealMachine>,
    number: FileId,
    block_bytes: u64,
    bytes: u64,
) -> fs::Result<NumberedFile> {
    let striping = Striping::new(block_bytes, client.disks()).expect("a striping");
    Ok(NumberedFile { bytes, ..client.new_numbered(number, striping).await? })
}

/// Creates a file of the first number, with all its stripes.
async fn new_file(client: &Client<RealMachine>, block_bytes: u64) -> fs::Result<File<RealMachine>> {
    let file = client.numbered(described(client, FIRST, block_bytes, 0).await?).await?;
    file.make_stripes().await?;
    Ok(file)
}

/// Pages in a cache must not occupy the memory into which further pages are received.
#[test]
fn a_cache_larger_than_the_receive_memory_fills_up() {
    for driver in drivers() {
        let limits = Limits { receive_bytes: 2 * PAGE, ..Limits::default() };
        let adapt = |settings| Settings { limits: limits.clone(), ..settings };
        let outcome = run_nodes(driver, 2, &Reports::default(), adapt, async |nodes: Vec<RealMachine>| {
            let client = client_of(&nodes, IoNodeSettings::agent()).await?;
            let settings = PageCacheSettings {
                bytes: 40 * PAGE,
                prefetch: Prefetch::Window(16),
                write_behind: true,
                ..PageCacheSettings::default()
            };
            let cache = PageCache::new(client, settings);
            // Two files that together exceed the cache; a single file of this size would not stay in the cache.
            let halves = [(FIRST, 0..30_u8), (SECOND, 30..60)];
            for (number, pages) in halves.clone() {
                let file = cache.open_numbered(described(cache.client(), number, PAGE, 0).await?).await?;
                for (at, page) in (0..).step_by(PAGE as usize).zip(pages) {
                    file.write(at, Payload::from(vec![page; PAGE as usize])).await?;
                }
                file.close().await?;
            }
            // Pages that applications still hold do not block the cache either.
            let (mut files, mut held) = (Vec::new(), Vec::new());
            for (number, pages) in halves {
                let file = described(cache.client(), number, PAGE, 30 * PAGE).await?;
                let file = cache.open_numbered(file).await?;
                for (at, page) in (0..).step_by(PAGE as usize).zip(pages) {
                    let data = file.read(at, PAGE).await?;
                    assert!(data.to_vec() == Some(vec![page; PAGE as usize]), "page {page}");
                    held.push(data);
                }
                files.push(file);
            }
            assert_eq!(cache.bytes(), 40 * PAGE);
            fs::Result::Ok(())
        });
        outcome.expect("no task fails").expect("no operation fails");
    }
}

/// Answers to a slow peer occupy the memory of evicted blocks; requests that wait for memory continue when the answers
/// have been sent.
#[test]
fn slow_replies_delay_other_requests_without_blocking_them() {
    const BLOCK: u64 = 4 << 20;
    const READS: u64 = 16;
    for driver in drivers() {
        let limits = Limits { receive_bytes: 2 * BLOCK, ..Limits::default() };
        let adapt = |settings| Settings { limits: limits.clone(), ..settings };
        let outcome = run_nodes(driver, 3, &Reports::default(), adapt, async |nodes: Vec<RealMachine>| {
            let settings = IoNodeSettings {
                cache_blocks: 1,
                block_bytes_max: BLOCK,
                prefetch_blocks: 0,
                threads: Threads::Pool(READS as usize),
                ..IoNodeSettings::agent()
            };
            let (target, client) = (nodes[0].node(), client_of(&nodes, settings).await?);
            let file = new_file(&client, BLOCK).await?;
            file.truncate(READS * BLOCK).await?;
            for block in 0..READS {
                let (offset, bytes) = (block * BLOCK, BLOCK as u32);
                let request = Request::Read { file: FIRST, stripe: 0, offset, bytes, is_alone: false };
                let header = Frame::Request(1 + block, request).encode();
                nodes[2].net().send(target, Message { header, ..Message::default() }).await?;
            }
            // Wait until all buffers between the nodes are full.
            nodes[2].sleep_until(nodes[2].now() + Duration::from_millis(300)).await;
            let (received, asker) = (Rc::new(Cell::new(0)), nodes[2].clone());
            let count = received.clone();
            nodes[2].spawn("receiver", async move {
                while let Ok((_, Delivery::Message(answer))) = asker.net().receive().await {
                    assert_eq!(answer.payload.len(), BLOCK);
                    count.set(count.get() + 1);
                }
                Ok(())
            });
            until(&nodes[1], || received.get() == READS).await;
            fs::Result::Ok(())
        });
        outcome.expect("no task fails").expect("no operation fails");
    }
}

/// A page is received once and not copied again on its way to the application.
#[test]
fn a_page_reaches_the_application_without_a_copy() {
    for driver in drivers() {
        let outcome = run_nodes(
            driver,
            2,
            &Reports::default(),
            |settings| settings,
            async |nodes| {
                let nodes: Vec<RealMachine> = nodes;
                let client = client_of(&nodes, IoNodeSettings::agent()).await?;
                let cache = PageCache::new(client, PageCacheSettings::default());
                let new = described(cache.client(), FIRST, PAGE, 0).await?;
                let file = cache.open_numbered(new.clone()).await?;
                file.write(0, Payload::from(vec![7; 2 * PAGE as usize])).await?;
                file.close().await?;
                let file = cache.open_numbered(NumberedFile { bytes: 2 * PAGE, ..new }).await?;
                let (first, again) = (file.read(5, PAGE - 5).await?, file.read(5, 100).await?);
                let (first, again) = (first.as_contiguous(), again.as_contiguous());
                assert_eq!(first.map(|bytes| bytes[..100].as_ptr()), again.map(<[u8]>::as_ptr));
                fs::Result::Ok(())
            },
        );
        outcome.expect("no task fails").expect("no operation fails");
    }
}

/// Number of pages of the file that a stranger requests.
const PAGES: u64 = 100;

/// Returns a message in which a stranger requests a page, on demand or in the background.
fn ask(tag: u64, class: u8) -> Headed {
    let offset = tag % PAGES * PAGE;
    message(tag, class, Request::Read { file: FIRST, stripe: 0, offset, bytes: PAGE as u32, is_alone: false })
}

fn message(tag: u64, class: u8, request: Request) -> Headed {
    (class, Frame::Request(tag, request).encode())
}

/// Number of threads of an I/O node with few threads.
const THREADS: u64 = 16;

/// Returns settings with few threads, and a cache larger than the file.
fn few_threads() -> IoNodeSettings {
    let (threads, cache_blocks) = (Threads::Pool(THREADS as usize), 2 * PAGES as usize);
    IoNodeSettings { threads, cache_blocks, ..IoNodeSettings::agent() }
}

/// Makes the second node a client of the first, and returns it with the file.
async fn client_with_file(
    nodes: &[RealMachine],
    settings: IoNodeSettings,
) -> fs::Result<(Client<RealMachine>, File<RealMachine>)> {
    let client = client_of(nodes, settings).await?;
    let file = new_file(&client, PAGE).await?;
    Ok((client, file))
}

/// Runs `work` of a client while a stranger reads no answers. The stranger has sent `messages`, whose answers exceed
/// the sockets' buffers, over its data connection.
fn with_a_stranger(
    settings: IoNodeSettings,
    messages: &[Headed],
    work: impl AsyncFn(Client<RealMachine>, File<RealMachine>) -> fs::Result<()> + Copy + 'static,
) {
    for driver in drivers() {
        let settings = settings.clone();
        let outcome = run_nodes(
            driver,
            2,
            &Reports::default(),
            |settings| settings,
            async |nodes| {
                let nodes: Vec<RealMachine> = nodes;
                let (client, file) = client_with_file(&nodes, settings).await?;
                let memory = Memory::real(vec![3; (PAGES * PAGE) as usize]);
                file.write(0, memory.len(), &memory, 0).await?;
                file.flush().await?;
                let [control, mut data] = join(&nodes[0], 7).await;
                let frames = data.frames(messages);
                data.stream.write_all(&frames).expect("room for questions");
                // Give the node time to receive all these messages before the client's requests.
                nodes[0].sleep_until(nodes[0].now() + Duration::from_millis(300)).await;
                let (is_done, done) = (Rc::new(Cell::new(false)), Rc::new(Cell::new(None)));
                let (flag, outcome) = (is_done.clone(), done.clone());
                nodes[1].spawn("client", async move {
                    outcome.set(Some(work(client, file).await));
                    flag.set(true);
                    Ok(())
                });
                until(&nodes[0], || is_done.get()).await;
                drop((control, data));
                done.take().expect("it is done")
            },
        );
        outcome.expect("no task fails").expect("the client is served");
    }
}

#[test]
fn a_client_that_sends_garbage_and_reads_no_replies_blocks_no_others() {
    let mut messages: Vec<Headed> = (1..=600).map(|tag| ask(tag, b'd')).collect();
    messages.push((DEMAND, b"trash".to_vec()));
    with_a_stranger(few_threads(), &messages, async |client, _| {
        client.round_trip(client.io_nodes()[0]).await
    });
}

#[test]
fn unread_replies_occupy_no_threads_that_others_need() {
    let messages: Vec<Headed> = (1..=1200).map(|tag| ask(tag, b"db"[tag as usize % 2])).collect();
    with_a_stranger(few_threads(), &messages, async |_, file| {
        let memory = Memory::real(vec![0; (PAGES * PAGE) as usize]);
        assert_eq!(file.read(0, PAGES * PAGE, &memory, 0).await?, PAGES * PAGE);
        Ok(())
    });
}

#[test]
fn unread_replies_occupy_no_memory_that_random_reads_need() {
    // The cache is smaller than the file, and the answers to the stranger exceed the memory for partial blocks.
    const CACHED: u64 = 40;
    let settings = IoNodeSettings {
        threads: Threads::Pool(64),
        cache_blocks: CACHED as usize,
        block_bytes_max: PAGE,
        wait_timeout: None,
        ..IoNodeSettings::agent()
    };
    let alone = |tag: u64| {
        let offset = tag % (PAGES - CACHED) * PAGE;
        message(
            tag,
            b'd',
            Request::Read { file: FIRST, stripe: 0, offset, bytes: PAGE as u32, is_alone: true },
        )
    };
    let messages: Vec<Headed> = (1..=1000).map(alone).collect();
    with_a_stranger(settings, &messages, async |client, file| {
        file.flush().await?;
        let file = described(&client, FIRST, PAGE, PAGES * PAGE).await?;
        let file = PageCache::new(client, PageCacheSettings::default()).open_numbered(file).await?;
        for page in 0..PAGES - CACHED {
            assert_eq!(file.read_alone(page * PAGE + 5, 10).await?.to_vec(), Some(vec![3; 10]));
        }
        Ok(())
    });
}

#[test]
fn a_defect_fails_only_one_request() {
    for driver in drivers() {
        promises::a_defect_fails_only_one_request(&Loopback { driver }, Configuration::Agent.into());
    }
}

/// STARFISH_REQUESTS sets the number of requests.
#[test]
fn random_requests_are_all_answered() {
    let requests = std::env::var("STARFISH_REQUESTS").map_or(2000, |text| text.parse().expect("a number"));
    for (seed, driver) in (1..).zip(drivers()) {
        let limit = Duration::from_secs(60 + requests / 100);
        promises::random_requests_are_all_answered(
            &Loopback { driver },
            Configuration::Agent.into(),
            requests,
            seed,
            limit,
        );
    }
}

#[test]
fn a_client_with_endless_requests_blocks_no_others() {
    const ROUNDS: u64 = 40;
    // More requests than one client may have waiting, and more rejections than it may leave unread.
    let messages: Vec<Headed> = (1..=36_000).map(|tag| ask(tag, b'd')).collect();
    for driver in drivers() {
        let outcome = run_nodes(
            driver,
            2,
            &Reports::default(),
            |settings| settings,
            async |nodes| {
                let nodes: Vec<RealMachine> = nodes;
                let (client, file) = client_with_file(&nodes, few_threads()).await?;
                file.truncate(PAGES * PAGE).await?;
                let [control, mut data] = join(&nodes[0], 7).await;
                let frames = data.frames(&messages);
                let ring = Rc::new(RefCell::new(NoteRing::new(1 << 20)));
                nodes[0].notes().record(ring.clone());
                let served = || {
                    let is_read = |what: &_| matches!(what, KeptEvent::Begin { name: "serve: read", .. });
                    ring.borrow().notes().filter(|note| is_read(&note.what)).count() as u64
                };
                let flood = std::thread::spawn(move || {
                    // Ignore the error: the I/O node may disconnect during the write.
                    let _ = data.stream.write_all(&frames);
                    data
                });
                let memory = Memory::real(vec![0; PAGE as usize]);
                until(&nodes[0], || served() > 0).await;
                let begun = Instant::now();
                for page in 0..ROUNDS {
                    client.list_numbered().await?;
                    assert_eq!(file.read(page * PAGE, PAGE, &memory, 0).await?, PAGE);
                }
                // This only detects a hang: a blocked client waits until the node drops the stranger, after a minute.
                assert!(begun.elapsed() < Duration::from_secs(40).into(), "{:?}", begun.elapsed());
                // A request of the client waits for at most one of the stranger's requests on each thread.
                let before_all = served() - ROUNDS;
                assert!(
                    before_all <= ROUNDS * THREADS,
                    "{before_all} of the stranger's requests were served"
                );
                until(&nodes[0], || flood.is_finished()).await;
                // When the stranger has disconnected, its waiting requests are dropped, not served first.
                drop((flood.join(), control));
                let before = served();
                assert_eq!(file.read(0, PAGE, &memory, 0).await?, PAGE);
                assert!(served() - before <= THREADS + 1, "{}", served() - before);
                fs::Result::Ok(())
            },
        );
        outcome.expect("no task fails").expect("the client is served");
    }
}
