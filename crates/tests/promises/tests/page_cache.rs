//! Page cache on modelled disks: an adaptive window is nearly as fast as the best fixed window in each case, and demand
//! reads overtake prefetching.

use description::{Description, MachineDescription};
use experiment as _;
use fs::{
    Advice, Client, ClientSettings, FileId, IoNodeSettings, NumberedFile, PageCache, PageCacheSettings,
    PagedFile, Prefetch, serve,
};
use layout::Striping;
use machine::{Duration, Machine, Payload, Source};
use sim::{Layout, Settings, SimMachine, Simulation};

const PAGE: u64 = 64 * 1024;

const CONTIGUOUS: Layout = Layout::Contiguous { reserve_bytes: 64 << 20 };

/// File on disks of 20 MiB/s behind a switch of 125e6 B/s, and an application on a separate node.
#[derive(Clone, Copy, Debug)]
struct Setting {
    disks: u32,
    layout: Layout,
    pages: u64,
    cache_pages: u64,
    /// Blocks in the cache of an I/O node: fewer than the file has, so that written data are read from the disks.
    io_node_blocks: usize,
    /// Blocks that the I/O nodes prefetch themselves.
    io_node_ahead: u64,
}

type File = PagedFile<SimMachine>;

impl Setting {
    fn run<T: 'static>(
        self,
        prefetch: Prefetch,
        application: impl AsyncFnOnce(File, SimMachine) -> T + 'static,
    ) -> T {
        let mut description = MachineDescription::load("cluster-switch").expect("built in");
        description.nodes.io.value = self.disks;
        description.nodes.compute.value = 1;
        description.disks.per_io_node.value = 1;
        description.buses.as_mut().expect("a cluster with buses").per_io_node.value = 1;
        let settings = Settings { layout: self.layout, block_bytes: PAGE, ..Settings::default() };
        let simulation = Simulation::new(&description, settings);
        let io_nodes = simulation.io_nodes().to_vec();
        let node = simulation.compute_nodes()[0].clone();
        let run = async move {
            let file = self.prepare(&io_nodes, &node, prefetch).await;
            application(file, node).await
        };
        simulation.run(run).expect("nothing fails")
    }

    /// Starts I/O nodes and a client, writes the file, and reopens it.
    async fn prepare(self, io_nodes: &[SimMachine], node: &SimMachine, prefetch: Prefetch) -> File {
        for io_node in io_nodes {
            let (cache_blocks, prefetch_blocks) = (self.io_node_blocks, self.io_node_ahead);
            let settings = IoNodeSettings { cache_blocks, prefetch_blocks, ..IoNodeSettings::report() };
            io_node.spawn("I/O node", serve(io_node.clone(), settings));
        }
        let names = io_nodes.iter().map(|io_node| io_node.node()).collect();
        let client = Client::connect(node.clone(), names, ClientSettings::report()).await.expect("connected");
        let settings = PageCacheSettings {
            bytes: self.cache_pages * PAGE,
            prefetch,
            write_behind: true,
            ..PageCacheSettings::default()
        };
        let cache = PageCache::new(client, settings);
        let striping = Striping::new(PAGE, self.disks).expect("a striping");
        let new = cache.client().new_numbered(FileId(2), striping).await.expect("all disks are there");
        let file = cache.open_numbered(new.clone()).await.expect("opened");
        for page in 0..self.pages {
            let data = Payload::phantom(Source(1), page * PAGE, PAGE);
            file.write(page * PAGE, data).await.expect("written");
        }
        file.flush().await.expect("flushed");
        file.close().await.expect("closed");
        cache.open_numbered(NumberedFile { bytes: self.pages * PAGE, ..new }).await.expect("opened")
    }

    /// Returns the time to read the file sequentially, with some computing on each page.
    fn scan(self, prefetch: Prefetch, think: Duration) -> Duration {
        self.run(prefetch, async move |file, node| {
            let start = node.now();
            for page in 0..self.pages {
                read_page(&file, page).await;
                node.sleep_until(node.now() + think).await;
            }
            node.now().since(start)
        })
    }
}

async fn read_page(file: &File, page: u64) {
    let data = file.read(page * PAGE, PAGE).await.expect("read");
    assert_eq!(data, Payload::phantom(Source(1), page * PAGE, PAGE));
}

#[test]
fn an_adaptive_window_is_within_3_percent_of_the_best_fixed_one() {
    let mut worst = 0.0_f64;
    for (disks, layout) in [(1, CONTIGUOUS), (2, CONTIGUOUS), (4, CONTIGUOUS), (4, Layout::Random)] {
        for (pages, cache_pages, io_node_ahead) in [(128, 4096, 0), (256, 32, 1)] {
            for think_us in [0, 1000, 3000] {
                let setting =
                    Setting { disks, layout, pages, cache_pages, io_node_blocks: 16, io_node_ahead };
                let time = |prefetch| setting.scan(prefetch, Duration::from_micros(think_us));
                let fixed = [1, 4, 16, 64, 256].map(|pages| (time(Prefetch::Window(pages)), pages));
                let (best, window) = fixed.into_iter().min().expect("some");
                let of_best = |time: Duration| time.as_nanos() as f64 / best.as_nanos() as f64;
                let (adaptive, none) = (of_best(time(Prefetch::Adaptive)), of_best(fixed[0].0));
                println!("{setting:?}, {think_us} us a page:");
                println!(
                    "  best window {window}; relative to its time, window 1 takes {none:.2}, adaptive {adaptive:.3}"
                );
                worst = worst.max(adaptive);
            }
        }
    }
    assert!(worst <= 1.03, "an adaptive window takes {worst} times as long as the best fixed one");
}

/// Time limit for reading some pages. A page takes 3.1 ms on such a disk, or 11.1 ms if it is not sequential.
const SOME_PAGES: Duration = Duration::from_millis(50);

/// Returns the time to read `page` after background requests for other pages.
fn demand(page: u64, ask: impl AsyncFnOnce(&File) + 'static) -> Duration {
    let setting = Setting {
        disks: 1,
        layout: CONTIGUOUS,
        pages: 400,
        cache_pages: 400,
        io_node_blocks: 128,
        io_node_ahead: 0,
    };
    setting.run(Prefetch::Window(64), async move |file, node| {
        ask(&file).await;
        let start = node.now();
        read_page(&file, page).await;
        node.now().since(start)
    })
}

#[test]
fn a_demanded_page_overtakes_prefetched_pages() {
    let time = demand(150, async |file| read_page(file, 0).await);
    assert!(time < SOME_PAGES, "{time:?}");
}

#[test]
fn a_demanded_prefetched_page_is_promoted() {
    let time = demand(60, async |file| read_page(file, 0).await);
    assert!(time < SOME_PAGES, "{time:?}");
    let time =
        demand(160, async |file| file.advise(Advice::WillNeed { offset: 100 * PAGE, bytes: 80 * PAGE }));
    assert!(time < SOME_PAGES, "{time:?}");
}
