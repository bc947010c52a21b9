//! The file system keeps its promises on real nodes, with each driver.

mod common;
mod testbed;

use common::drivers;
use fs::conformance;
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
}
