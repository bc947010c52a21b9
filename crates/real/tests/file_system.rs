//! The file system keeps its promises on real nodes, with each driver.

mod common;
mod testbed;

use common::{Reports, drivers, run_nodes};
use fs::{
    Client, ClientSettings, FileId, IoNodeSettings, PageCache, PageCacheSettings, Prefetch, conformance,
    serve,
};
use machine::{Machine, Payload};
use real::{Limits, RealMachine, Settings};
use testbed::Loopback;

macro_rules! promises {
    ($($promise:ident,)*) => {
        $(
            #[test]
            fn $promise() {
                for driver in drivers() {
                    conformance::$promise(&Loopback { driver });
                }
            }
        )*
    };
}

fs::for_all_promises!(promises);

const PAGE: u64 = 64 * 1024;

/// Pages of a cache must not keep the memory that the next ones have to be received into.
#[test]
fn a_cache_larger_than_what_a_node_may_receive_fills_up() {
    for driver in drivers() {
        let limits = Limits { receive_bytes: 2 * PAGE, ..Limits::default() };
        let adapt = |settings| Settings { limits: limits.clone(), ..settings };
        let outcome = run_nodes(driver, 2, &Reports::default(), adapt, async |nodes: Vec<RealMachine>| {
            nodes[0].spawn("I/O node", serve(nodes[0].clone(), IoNodeSettings::default()));
            let names = vec![nodes[0].node()];
            let client = Client::connect(nodes[1].clone(), names, ClientSettings::default()).await?;
            let settings =
                PageCacheSettings { bytes: 40 * PAGE, prefetch: Prefetch::Window(16), write_behind: true };
            let cache = PageCache::new(client, settings);
            // Both together are more than the cache holds; one alone would pass through it.
            let halves = [("first", 0..30_u8), ("second", 30..60)];
            for (name, pages) in halves.clone() {
                let file = cache.create(name, FileId(1 + u64::from(pages.start)), PAGE).await?;
                for (at, page) in (0..).step_by(PAGE as usize).zip(pages) {
                    file.write(at, Payload::from(vec![page; PAGE as usize])).await?;
                }
                file.close().await?;
            }
            // What applications still hold is as little in the way.
            let (mut files, mut held) = (Vec::new(), Vec::new());
            for (name, pages) in halves {
                let file = cache.open(name).await?;
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

/// A page is received once and not copied again on its way to the application.
#[test]
fn a_page_reaches_the_application_in_one_piece() {
    for driver in drivers() {
        let outcome = run_nodes(
            driver,
            2,
            &Reports::default(),
            |settings| settings,
            async |nodes| {
                let nodes: Vec<RealMachine> = nodes;
                nodes[0].spawn("I/O node", serve(nodes[0].clone(), IoNodeSettings::default()));
                let names = vec![nodes[0].node()];
                let client = Client::connect(nodes[1].clone(), names, ClientSettings::default()).await?;
                let cache = PageCache::new(client, PageCacheSettings::default());
                let file = cache.create("pieces", FileId(1), PAGE).await?;
                file.write(0, Payload::from(vec![7; 2 * PAGE as usize])).await?;
                file.close().await?;
                let file = cache.open("pieces").await?;
                let (first, again) = (file.read(5, PAGE - 5).await?, file.read(5, 100).await?);
                let (first, again) = (first.as_contiguous(), again.as_contiguous());
                assert_eq!(first.map(|bytes| bytes[..100].as_ptr()), again.map(<[u8]>::as_ptr));
                fs::Result::Ok(())
            },
        );
        outcome.expect("no task fails").expect("no operation fails");
    }
}
