//! Crashes of the metadata server of a namespace, or of all I/O nodes, while clients have files open, or have just
//! removed one.

use seeds::metadata_server_crashes::{
    a_crash_loses_a_stripe_known_to_the_metadata_server, a_crash_takes_a_new_stripe,
    a_crash_takes_a_stripe_that_another_client_has_open, a_crash_takes_what_was_written,
    a_removed_file_comes_back, an_idle_clients_file_is_left_alone,
};

#[test]
fn what_comes_in_the_place_of_what_a_crash_has_taken_is_seen() {
    let taken = (0..20).filter(|&seed| a_crash_takes_what_was_written(seed)).count();
    assert!((1..20).contains(&taken), "{taken} of 20 crashes have taken something");
}

#[test]
fn open_files_of_an_idle_client_outlive_the_metadata_server() {
    for seed in 0..5 {
        assert!(an_idle_clients_file_is_left_alone(seed), "seed {seed}");
    }
}

#[test]
fn what_a_crash_brings_back_has_its_contents() {
    let back = (0..20).filter(|&seed| a_removed_file_comes_back(seed)).count();
    assert!((1..20).contains(&back), "{back} of 20 names are there again");
}

#[test]
fn what_a_crash_has_taken_can_be_read_and_written_again() {
    for crash in [
        a_crash_takes_a_new_stripe,
        a_crash_loses_a_stripe_known_to_the_metadata_server,
        a_crash_takes_a_stripe_that_another_client_has_open,
    ] {
        let taken = (0..20).filter(|&seed| crash(seed)).count();
        assert!((1..20).contains(&taken), "{taken} of 20 crashes have taken a stripe");
    }
}
