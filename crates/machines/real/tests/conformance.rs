//! Runs the conformance tests of the machine interface on real nodes, with each driver.

mod common;
mod testbed;

use common::drivers;
use machine::conformance;
use testbed::Loopback;

macro_rules! laws {
    ($($law:ident,)*) => {
        $(
            #[test]
            fn $law() {
                for driver in drivers() {
                    conformance::$law(&Loopback { driver });
                }
            }
        )*
    };
}

laws! {
    time_never_goes_backwards,
    sleepers_wake_in_order_of_their_deadlines,
    messages_of_a_pair_arrive_in_order,
    messages_of_each_class_arrive_in_order,
    urgent_messages_do_not_wait_for_all_less_urgent_ones,
    a_completed_send_no_longer_reads_its_payload,
    a_send_completes_before_the_receiver_receives,
    large_messages_arrive_whole,
    peers_see_a_closed_node_disconnect,
    a_send_to_a_disconnected_node_fails,
    disconnecting_a_peer_ends_the_connection_for_both,
    buffers_return_to_the_pool_and_waiters_get_them_in_order,
    a_cancelled_read_returns_its_buffer,
    reads_return_written_data_and_zeros_elsewhere,
    concurrent_accesses_to_separate_ranges_do_not_interfere,
    objects_keep_their_names_and_labels,
    missing_and_existing_objects_are_reported_as_errors,
    resizing_truncates_or_extends_an_object,
    transactions_of_many_tasks_are_serial,
    a_rejected_transaction_changes_nothing,
    entries_are_sorted_by_their_keys,
    a_cancelled_transaction_is_done_completely_or_not_at_all,
    a_read_only_transaction_sees_committed_changes,
    errors_of_detached_tasks_are_reported,
    waiting_tasks_of_a_node_are_woken_in_order,
}

#[test]
fn the_real_machine_keeps_all_laws() {
    for driver in drivers() {
        conformance::check_all(&Loopback { driver });
    }
}
