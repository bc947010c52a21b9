//! Promises about statistics of I/O nodes.

use fs::{
    Client, IoNodeCounts, IoNodeDiskCounts, IoNodeService, IoNodeSettings, PageCache, PageCacheSettings,
    Threads,
};
use machine::conformance::Testbed;
use machine::{Duration, Machine};

use super::{BLOCK, Base, contents, created, described, read, run, small, stored, write};

/// The counters of an I/O node are right as soon as it is idle: they include each request once, all transferred data,
/// and every disk access with its wait.
pub fn an_io_node_counts_its_requests_and_disk_accesses(testbed: &impl Testbed, base: Base) {
    run(testbed, 2, move |nodes| async move {
        let service = IoNodeService::new(nodes[0].clone(), small(base, Threads::Pool(4)));
        let (serving, name) = (service.clone(), nodes[0].node());
        nodes[0].spawn("I/O node", async move { serving.serve().await });
        let client = Client::connect(nodes[1].clone(), vec![name], base.client()).await.expect("it answers");
        let data = contents(20 * BLOCK + 7);
        let file = created(&client, 1).await;
        write(&file, 0, &data).await;
        file.flush().await.expect("flushed");
        let other = described(&client, 1, 2 * BLOCK).await;
        client.numbered_stripes(&other).await.expect_err("its block size differs");
        assert!(read(&file, 0, data.len() as u64).await == data);

        let mut counts = service.counts().await;
        for _ in 0..1000 {
            if is_settled(&counts, data.len() as u64) {
                break;
            }
            nodes[1].sleep_until(nodes[1].now() + Duration::from_millis(10)).await;
            counts = service.counts().await;
        }
        assert!(is_settled(&counts, data.len() as u64), "{counts:?}");
        assert_eq!(counts.traffic.failures, [("invalid", 1)]);
        assert_eq!(counts.traffic.bytes_received, data.len() as u64);
        assert_eq!((counts.clients, counts.refused, counts.traffic.bad_messages), (1, 0, 0));
        let disks = &counts.disks;
        assert_eq!(disks.len(), nodes[0].disks().len());
        assert!(disks.iter().all(|disk| disk.answers && disk.failures == 0), "{counts:?}");
        assert!(disks.iter().map(|disk| disk.flushes.count()).sum::<u64>() > 0, "{counts:?}");
        assert_eq!(disks.iter().map(|disk| disk.bytes_written).sum::<u64>(), data.len() as u64);
        assert_eq!((counts.cache.dirty_blocks, counts.cache.dirty_bytes), (0, 0));
        assert!((1..=counts.cache.blocks_max).contains(&counts.cache.blocks));
        assert!(counts.open_stripes > 0);
    });
}

/// For a read without prefetching of an uncached part of a block, an I/O node reads only that part from the disk.
pub fn a_read_without_prefetching_reads_only_its_bytes_from_disk(testbed: &impl Testbed, base: Base) {
    const BLOCKS: u64 = 40;
    run(testbed, 2, move |nodes| async move {
        let settings = IoNodeSettings { cache_blocks: 4, ..small(base, Threads::Pool(4)) };
        let service = IoNodeService::new(nodes[0].clone(), settings);
        let (serving, name) = (service.clone(), nodes[0].node());
        nodes[0].spawn("I/O node", async move { serving.serve().await });
        let client = Client::connect(nodes[1].clone(), vec![name], base.client()).await.expect("it answers");
        let data = contents(BLOCKS * BLOCK);
        let file = created(&client, 1).await;
        write(&file, 0, &data).await;
        file.flush().await.expect("flushed");
        // Any block may have been the last one written; these reads evict the first half from the cache.
        for block in BLOCKS / 2..BLOCKS {
            read(&file, block * BLOCK, BLOCK).await;
        }
        let bytes_read = async || {
            let disks = service.counts().await.disks;
            disks.iter().map(|disk| disk.bytes_read).sum::<u64>()
        };
        let before = bytes_read().await;
        let cache = PageCache::new(client.clone(), PageCacheSettings::default());
        let file = cache.open_numbered(stored(&client, 1, BLOCK).await).await.expect("opened");
        for block in 0..BLOCKS / 2 {
            let part = file.read_alone(block * BLOCK + 5, 10).await.expect("it is readable").to_vec();
            let at = (block * BLOCK + 5) as usize;
            assert_eq!(part.as_deref(), Some(&data[at..at + 10]));
        }
        assert_eq!(bytes_read().await - before, BLOCKS / 2 * 10);
    });
}

/// Returns true if all requests have completed and are counted.
fn is_settled(counts: &IoNodeCounts, bytes_read: u64) -> bool {
    let served = |name: &str| {
        let all = counts.traffic.served.iter().filter(|served| served.operation == name);
        all.map(|served| served.times.count()).sum::<u64>()
    };
    let cache = &counts.cache;
    let accesses_are_whole = |disk: &IoNodeDiskCounts| {
        let idle = (disk.waiting, disk.pending_write_bytes) == (0, 0);
        idle && disk.waits.count() == disk.reads.count() + disk.writes.count()
    };
    cache.hits + cache.misses == served("read")
        && cache.hit_bytes + cache.missed_bytes == bytes_read
        && counts.traffic.bytes_sent == bytes_read
        && served("write") >= 21
        && ["describe", "attach", "flush"].iter().all(|name| served(name) > 0)
        && counts.disks.iter().all(accesses_are_whole)
        && (counts.pool.busy_threads, counts.pool.waiting_on_demand) == (0, 0)
}
