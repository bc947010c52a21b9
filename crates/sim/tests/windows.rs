//! How the windows of the page cache do on modelled disks: an adaptive window is nowhere much slower than the fixed
//! one that is best there.

use description::{Description, MachineDescription};
use fs::{Client, ClientSettings, FileId, IoNodeSettings, PageCache, PageCacheSettings, Prefetch, serve};
use machine::{Duration, Machine, Payload, Source};
use sim::{Layout, Settings, SimMachine, Simulation};

const PAGE: u64 = 64 * 1024;

/// An application that reads a file from front to back, and spends some time on each page.
#[derive(Clone, Copy, Debug)]
struct Scan {
    disks: u32,
    pages: u64,
    think: Duration,
    cache_pages: u64,
    /// Blocks that the I/O nodes read ahead on their own.
    io_node_ahead: u64,
    layout: Layout,
}

impl Scan {
    /// The time it takes with such a window, on disks of 20 MB/s behind a switch of 125e6 B/s.
    fn time(self, prefetch: Prefetch) -> Duration {
        let mut description = MachineDescription::load("cluster-switch").expect("built in");
        description.nodes.io.value = self.disks;
        description.nodes.compute.value = 1;
        description.disks.per_io_node.value = 1;
        description.buses.as_mut().expect("a cluster with buses").per_io_node.value = 1;
        let settings = Settings { layout: self.layout, block_bytes: PAGE, ..Settings::default() };
        let simulation = Simulation::new(&description, settings).expect("a sound description");
        let io_nodes = simulation.io_nodes().to_vec();
        let application = simulation.compute_nodes()[0].clone();
        simulation.run(self.run(io_nodes, application, prefetch)).expect("nothing fails")
    }

    async fn run(self, io_nodes: Vec<SimMachine>, node: SimMachine, prefetch: Prefetch) -> Duration {
        for io_node in &io_nodes {
            // A small cache, so that what was written is read from the disks.
            let prefetch_blocks = self.io_node_ahead;
            let settings = IoNodeSettings { cache_blocks: 16, prefetch_blocks, ..IoNodeSettings::default() };
            io_node.spawn("I/O node", serve(io_node.clone(), settings));
        }
        let names = io_nodes.iter().map(|io_node| io_node.node()).collect();
        let client =
            Client::connect(node.clone(), names, ClientSettings::default()).await.expect("connected");
        let settings = PageCacheSettings { bytes: self.cache_pages * PAGE, prefetch, write_behind: true };
        let cache = PageCache::new(client, settings);
        let file = cache.create("scanned", FileId(1), PAGE).await.expect("created");
        for page in 0..self.pages {
            let data = Payload::phantom(Source(1), page * PAGE, PAGE);
            file.write(page * PAGE, data).await.expect("written");
        }
        file.close().await.expect("closed");
        let start = node.now();
        let file = cache.open("scanned").await.expect("opened");
        for page in 0..self.pages {
            let data = file.read(page * PAGE, PAGE).await.expect("read");
            assert_eq!(data, Payload::phantom(Source(1), page * PAGE, PAGE));
            node.sleep_until(node.now() + self.think).await;
        }
        node.now().since(start)
    }
}

#[test]
fn an_adaptive_window_is_within_3_percent_of_the_best_fixed_one() {
    let contiguous = Layout::Contiguous { reserve_bytes: 64 << 20 };
    let mut worst = 0.0_f64;
    for (disks, layout) in [(1, contiguous), (2, contiguous), (4, contiguous), (4, Layout::Random)] {
        for (pages, cache_pages, io_node_ahead) in [(128, 4096, 0), (256, 32, 1)] {
            for think_us in [0, 1000, 3000] {
                let think = Duration::from_micros(think_us);
                let scan = Scan { disks, pages, think, cache_pages, io_node_ahead, layout };
                let fixed = [1, 4, 16, 64, 256].map(|pages| (scan.time(Prefetch::Window(pages)), pages));
                let (best, window) = fixed.into_iter().min().expect("some");
                let of_best = |time: Duration| time.as_nanos() as f64 / best.as_nanos() as f64;
                let (adaptive, none) = (of_best(scan.time(Prefetch::Adaptive)), of_best(fixed[0].0));
                println!("{scan:?}: best window {window}, window 1 takes {none:.2}, adaptive {adaptive:.3}");
                worst = worst.max(adaptive);
            }
        }
    }
    assert!(worst <= 1.03, "an adaptive window takes {worst} times as long as the best fixed one");
}
