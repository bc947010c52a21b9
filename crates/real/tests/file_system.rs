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

promises! {
    files_of_any_size_are_read_back,
    random_operations_agree_with_a_file_in_memory,
    clients_that_write_side_by_side_do_not_disturb_each_other,
    every_pattern_is_read_and_written_alike_by_every_method,
    collective_operations_follow_each_other,
    names_name_files_and_nothing_else,
    a_missing_stripe_is_named,
    a_foreign_stripe_is_named,
    garbage_costs_nobody_else_anything,
    a_client_that_goes_away_leaves_the_others_served,
    an_io_node_that_goes_away_fails_the_calls_to_it,
    an_io_node_that_stops_writes_out_what_it_has,
    a_failing_member_fails_the_whole_group,
    cached_files_of_any_size_are_read_back,
    cached_files_with_large_pages_are_read_back,
    a_client_reads_what_it_has_written,
    a_window_brings_in_the_pages_after_the_one_in_use,
    temporary_files_reach_no_disk,
    a_write_that_fails_behind_is_reported,
    clients_see_what_others_have_flushed,
    random_cached_operations_agree_with_files_in_memory,
    hints_move_pages,
    many_share_a_small_cache,
}

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
            let file = cache.create("large", FileId(1), PAGE).await?;
            for page in 0..60_u8 {
                file.write(u64::from(page) * PAGE, Payload::from(vec![page; PAGE as usize])).await?;
            }
            file.close().await?;
            let file = cache.open("large").await?;
            // What applications still hold is as little in the way.
            let mut held = Vec::new();
            for page in 0..60_u8 {
                let data = file.read(u64::from(page) * PAGE, PAGE).await?;
                assert!(data.to_vec() == Some(vec![page; PAGE as usize]), "page {page}");
                held.push(data);
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
