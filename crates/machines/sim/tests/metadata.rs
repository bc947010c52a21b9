//! Simulated metadata stores: state after a crash, costs of transactions and flushes, and repeatable runs.

use description::{Description, MachineDescription};
use machine::conformance::{counted_transactions_left, make_counted_transactions};
use machine::{Duration, Machine, MetadataStore};
use sim::conformance::metadata_costs;
use sim::{Metadata, Settings, Simulation};

/// Returns a machine with one I/O node with a store.
fn node() -> Simulation {
    let mut description = MachineDescription::load("golden").expect("built in");
    description.metadata = Some(metadata_costs());
    Simulation::new(&description, Settings::default())
}

fn store(simulation: &Simulation) -> Metadata {
    simulation.io_nodes()[0].metadata().expect("described").clone()
}

/// Returns the number of transactions left by a crash, of twenty with eight flushed, and the digest of the run.
fn left_of_twenty(seed: u64) -> (u64, u64) {
    let simulation = node();
    simulation.expect_crashes();
    let all = store(&simulation);
    let before = all.clone();
    let made = simulation.run(async move {
        make_counted_transactions(&before, 0..8).await;
        before.flush().await.expect("a device");
        make_counted_transactions(&before, 8..20).await;
    });
    made.expect("they are made");
    simulation.io_nodes()[0].crash(seed);
    let after = all.clone();
    let left = simulation.run(async move { counted_transactions_left(&after).await }).expect("a run");
    // Changes that survive one crash also survive the next.
    simulation.io_nodes()[0].crash(!seed);
    let again = simulation.run(async move { counted_transactions_left(&all).await }).expect("a run");
    assert_eq!(again, left);
    (left, simulation.digest())
}

#[test]
fn a_crash_keeps_flushed_transactions_and_a_prefix_of_later_ones() {
    let left: Vec<u64> = (0..40).map(|seed| left_of_twenty(seed).0).collect();
    assert!(left.iter().all(|left| (8..=20).contains(left)), "{left:?}");
    assert!(left.contains(&8) && left.contains(&20), "{left:?}");
    assert_eq!(left_of_twenty(3), left_of_twenty(3));
}

#[test]
fn a_flush_interrupted_by_a_crash_does_not_block_later_ones() {
    let simulation = node();
    simulation.expect_crashes();
    let machine = simulation.io_nodes()[0].clone();
    let all = store(&simulation);
    let flushing = all.clone();
    machine.spawn("flushing", async move {
        make_counted_transactions(&flushing, 0..1).await;
        flushing.flush().await
    });
    let (clock, half) = (machine.clone(), Duration::from_micros(500));
    simulation.run(async move { clock.sleep_until(clock.now() + half).await }).expect("a run");
    machine.crash(1);
    let flushed = simulation.run(async move {
        let left = counted_transactions_left(&all).await;
        make_counted_transactions(&all, left..left + 3).await;
        all.flush().await.expect("a device");
        left
    });
    machine.crash(2);
    let (after, left) = (store(&simulation), flushed.expect("a run"));
    let found = simulation.run(async move { counted_transactions_left(&after).await }).expect("a run");
    assert_eq!(found, left + 3);
}

#[test]
fn transactions_take_processor_time_and_flushes_share_the_device() {
    let simulation = node();
    let (all, machine) = (store(&simulation), simulation.io_nodes()[0].clone());
    let taken = simulation.run(async move {
        let start = machine.now();
        // Each of the ten reads one entry and changes two.
        make_counted_transactions(&all, 0..10).await;
        let transactions = machine.now().since(start);
        let (first, second) = (all.flush(), all.flush());
        futures(first, second).await;
        (transactions, machine.now().since(start))
    });
    let (transactions, with_flushes) = taken.expect("a run");
    // All are passed to the thread at once. The thread commits the first alone; by then the others have arrived.
    assert_eq!(transactions, Duration::from_micros(10 + 2 * 3 + 10 * (20 + 3 * 2)));
    assert_eq!(with_flushes, transactions + Duration::from_millis(1));
}

#[test]
fn a_transaction_waits_for_a_flush_in_flight() {
    let simulation = node();
    let (all, machine) = (store(&simulation), simulation.io_nodes()[0].clone());
    let taken = simulation.run(async move {
        make_counted_transactions(&all, 0..1).await;
        let start = machine.now();
        let transaction = async {
            make_counted_transactions(&all, 1..2).await;
            Ok(())
        };
        futures(all.flush(), transaction).await;
        machine.now().since(start)
    });
    // The time to pass it to the thread overlaps the flush.
    assert_eq!(taken.expect("a run"), Duration::from_micros(1000 + 3 + 20 + 3 * 2));
}

/// Waits for both, running concurrently.
async fn futures(
    first: impl Future<Output = machine::Result<()>>,
    second: impl Future<Output = machine::Result<()>>,
) {
    let (mut first, mut second) = (Box::pin(first), Box::pin(second));
    let (mut first_done, mut second_done) = (false, false);
    std::future::poll_fn(|context| {
        first_done = first_done || first.as_mut().poll(context).is_ready();
        second_done = second_done || second.as_mut().poll(context).is_ready();
        if first_done && second_done { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
}

#[test]
fn a_machine_has_no_metadata_store_unless_it_is_described() {
    let description = MachineDescription::load("golden").expect("built in");
    let simulation = Simulation::new(&description, Settings::default());
    assert!(simulation.nodes().iter().all(|node| node.metadata().is_none()));
    assert!(node().compute_nodes().iter().all(|node| node.metadata().is_none()));
}
