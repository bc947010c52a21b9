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
    time_never_runs_backwards,
    sleepers_wake_in_order_of_their_deadlines,
    messages_of_a_pair_arrive_in_order,
    messages_of_a_class_arrive_in_order_among_others,
    urgent_messages_do_not_wait_for_all_that_are_less_urgent,
    a_completed_send_looks_at_its_payload_no_more,
    sending_does_not_wait_for_the_receiver_to_listen,
    large_messages_arrive_whole,
    a_closed_node_is_gone_for_its_peers,
    sending_to_a_closed_node_fails_or_is_lost,
    giving_up_a_peer_ends_the_connection_for_both,
    buffers_come_back_and_waiters_get_them_in_order,
    a_dropped_read_gives_its_buffer_back,
    what_is_written_is_read_and_the_rest_is_zeros,
    reads_and_writes_of_many_tasks_keep_apart,
    objects_carry_their_names_and_labels,
    removed_and_missing_objects_are_errors,
    resizing_cuts_and_extends,
    transactions_come_one_after_the_other,
    a_refused_transaction_changes_nothing,
    entries_are_in_the_order_of_their_keys,
    a_dropped_transaction_leaves_nothing_half_done,
    who_looks_sees_what_was_committed,
    errors_of_detached_tasks_do_not_vanish,
    waiting_tasks_of_a_node_are_woken_in_order,
}

#[test]
fn all_laws_are_kept_one_after_the_other() {
    for driver in drivers() {
        conformance::check_all(&Loopback { driver });
    }
}
