//! Promises of the file system, one function each, generic over the machine, with tests on both machines.
//!
//! The tests run [`check_all`] and its parts, so the same promises are checked in simulation and in reality. Promises
//! for one of the machines only have separate tests. `attackers.rs` has requests of misbehaving clients.
//!
//! The tests depend on `node` and `experiment`, which instantiate the file system for a machine, to link this code
//! instead of compiling it again. The tests are not in the crates of the machines, so that a change of the file system
//! does not rebuild the tests of the machines.

pub mod attackers;
mod attacks;
mod counts;
mod damage;
mod failures;
pub mod faulty;
mod floods;
mod holds;
mod listed;
mod locks;
mod numbered;
mod pages;
mod random;
mod recordings;
mod seeded;
mod selected;
mod syncs;
mod tasks;
mod trees;
mod write_caches;

use std::cell::Cell;
use std::rc::Rc;

use fs::protocol::{
    BlockWrite, Collective, Direction, Flushing, Frame, MemoryId, Reply, Request, Selectors, StripePlaces,
};
use fs::{
    Client, ClientSettings, CollectiveSettings, Configuration, Error, Failure, FailureKind, Features, File,
    FileId, Group, IoNodeSettings, ListedStripe, NumberedFile, Scheduling, Threads, object_name, serve,
};
use layout::{Operation, Pattern, Problem, Striping};
use machine::conformance::Testbed;
use machine::{Class, Condition, Delivery, Disk, Duration, Machine, Memory, Message, Net, NodeId, Payload};

pub use attacks::{
    a_client_that_answers_nothing_blocks_no_others, a_defect_fails_only_one_request,
    a_disconnected_client_leaves_nothing_behind, a_group_with_missing_or_repeated_nodes_is_rejected,
    a_request_with_very_many_pieces_blocks_no_others, an_invalid_directory_of_extents_is_rejected,
    an_invalid_selection_is_rejected, another_protocol_version_is_reported_once,
    lost_data_are_not_read_as_zeros, only_members_count_at_a_barrier,
    requests_of_an_ended_connection_have_no_effect, stopped_collective_operations_do_not_block_others,
    unanswered_fetches_delay_only_their_own_writes,
};
pub use damage::{a_bit_flip_in_memory_is_detected, damage_is_found_and_adjacent_data_are_readable};
pub use failures::{
    a_collective_operation_reopens_its_file_after_a_restart, a_completed_write_through_is_at_the_disk,
    a_failed_collective_operation_has_ended_at_all_disks, a_failed_flush_is_reported_through_all_handles,
    a_failed_flush_is_reported_to_all_writers, a_failed_write_behind_of_one_member_fails_the_group,
    a_file_can_be_longer_than_its_disk, a_file_is_truncated_and_removed_despite_endless_appends,
    a_stopping_io_node_writes_all_data_despite_a_failure, accepted_writes_fit_on_the_disk,
    accepted_writes_to_many_files_fit_on_the_disk, after_a_failed_sync_every_flush_of_the_file_fails,
    all_users_of_a_shared_handle_get_its_failure, changes_of_a_file_complete_during_writes_of_others,
    later_writes_of_a_block_reach_the_disk_later, lost_data_are_not_a_hole,
    many_pieces_of_a_block_are_written_in_one_request, partial_blocks_are_written_back_in_time,
};
pub use floods::{
    a_client_can_lock_only_its_open_files, fences_stay_despite_many_fences_of_another_client,
    no_client_can_take_all_teams_and_jobs, no_reply_exceeds_a_message, repairs_do_not_change_objects_in_use,
    selecting_the_same_bytes_repeatedly_is_rejected, the_failure_text_of_a_member_has_a_limited_length,
    waiting_commands_take_little_memory,
};
pub use holds::{
    an_open_over_a_broken_connection_leaves_no_reference, an_unlinked_open_file_outlives_a_broken_connection,
    open_files_outlive_a_restart_of_the_metadata_server,
};
pub use listed::{a_lost_directory_of_extents_is_sent_again, extent_lists_agree_with_files_in_memory};
pub use numbered::{
    a_long_list_of_stripes_is_complete, a_loss_is_reported_at_close_or_to_the_next_opener,
    a_lost_numbered_write_is_reported_once, a_numbered_file_has_stripes_only_where_it_has_bytes,
    a_removed_numbered_file_stays_removed, a_write_of_no_bytes_does_not_extend_a_file,
    all_numbered_files_are_listed, any_client_can_read_a_numbered_file,
    cached_numbered_files_are_close_to_open_consistent, data_and_holes_of_a_file_are_found,
    data_flushed_by_an_earlier_incarnation_are_not_lost,
    errors_distinguish_foreign_stripes_and_unknown_disks, extent_lists_create_missing_stripes,
    losses_of_many_closed_files_are_all_reported, losses_through_two_handles_are_reported_to_the_next_opener,
    lost_data_of_an_unremovable_file_are_reported, lost_data_of_an_unremovable_stripe_are_reported,
    nodes_of_neighbouring_releases_work_together, one_scan_serves_all_waiting_list_requests,
};
pub use pages::{
    a_client_reads_its_own_writes, a_failed_write_behind_is_reported,
    a_failing_flush_fails_for_all_concurrent_callers,
    a_large_file_passes_through_the_cache_without_evicting_others,
    a_loss_is_reported_to_all_concurrent_flushes, a_window_prefetches_the_pages_after_the_current_one,
    an_uncached_read_keeps_no_pages, cached_files_of_any_size_are_read_back,
    cached_files_with_large_pages_are_read_back, clients_see_flushed_data_of_others,
    hints_take_effect_on_pages_at_once, lost_data_of_a_temporary_file_are_reported,
    many_readers_and_writers_share_a_small_cache, random_cached_operations_agree_with_files_in_memory,
    temporary_files_reach_no_disk, the_pages_of_a_request_are_read_together, truncated_data_do_not_return,
};

pub use counts::{
    a_read_without_prefetching_reads_only_its_bytes_from_disk,
    an_io_node_counts_its_requests_and_disk_accesses,
};
pub use locks::{
    a_strided_write_under_a_lost_lock_is_rejected, locks_exclude_others,
    locks_expire_after_their_client_disconnects, writes_under_a_lost_lock_are_rejected,
};
pub use random::random_requests_are_all_answered;
pub use recordings::io_nodes_record_their_activities_on_request;
pub use seeded::{cached_operations_of_a_seed, operations_of_a_seed, requests_of_a_seed};
pub use selected::{
    a_collective_write_reaches_the_disk_in_order, a_failure_of_one_member_fails_the_team,
    a_selection_creates_only_the_stripes_it_touches, concurrent_writes_beyond_the_end_all_stay,
    concurrent_writes_of_parts_of_new_blocks_all_stay, selections_agree_with_files_in_memory,
    selections_are_sent_again_to_a_new_incarnation, selections_of_a_failed_operation_are_forgotten,
    selections_of_a_seed, small_parts_of_blocks_are_sent_together,
};

pub use syncs::{
    a_collective_sync_persists_the_writes_of_all_members, one_member_queries_the_metadata_server_for_all,
};
pub use trees::{
    a_client_knows_directories_after_its_own_changes, a_disconnected_appender_delays_others_once,
    a_file_with_too_large_blocks_leaves_no_name, a_flush_also_persists_closed_writes_of_others,
    a_flush_does_not_wait_for_later_writes, a_lost_stripe_is_not_a_hole, a_missing_disk_does_not_hide_others,
    a_new_file_on_a_full_disk_has_the_length_of_its_stored_data, a_reader_sees_no_unwritten_bytes,
    a_replacing_file_is_persisted_first, a_stopping_io_node_flushes_files_concurrently,
    a_sync_of_all_files_includes_closed_files, a_truncation_and_a_write_are_serialised,
    a_truncation_by_another_client_is_visible_after_an_own_one,
    a_truncation_has_no_effect_if_a_node_is_unreachable, a_truncation_reaches_stripes_that_others_created,
    all_clients_share_one_namespace, an_open_file_is_not_removed_as_abandoned, an_open_reports_other_writers,
    an_unflushed_overwrite_is_visible_in_time, an_unlinked_file_exists_until_its_last_close,
    an_unwritten_range_is_not_counted, appends_of_many_clients_leave_no_gaps,
    appends_of_many_clients_lose_nothing, attributes_have_the_last_set_values,
    collective_writes_are_visible_to_all_members, concurrent_opens_return_the_same_file,
    contents_removed_while_an_io_node_is_away_are_deleted_later,
    data_sent_after_an_open_are_read_at_the_next_open, every_later_open_reads_closed_and_flushed_data,
    lookups_in_order_prefetch_entries, lost_changes_of_names_are_reported, no_second_namespace_is_created,
    open_orphans_do_not_hide_deletable_ones, open_stripes_are_not_reopened_after_writes_of_others,
    restored_names_have_their_contents, the_next_flush_reports_writes_that_a_close_could_not_report,
    too_long_names_and_values_are_rejected,
};
pub use write_caches::{
    a_disconnected_member_loses_only_its_unflushed_data,
    a_failed_group_flush_is_reported_until_its_data_are_flushed,
    a_flush_fails_if_its_coordinator_disconnects, a_flush_persists_the_writes_of_all_members,
    a_hole_before_an_unflushed_write_reads_as_zeros, a_member_reads_its_unflushed_writes,
    a_reopened_file_grows_through_its_write_cache, cached_data_of_a_removed_file_block_no_flush,
    each_byte_has_the_value_of_a_latest_write, members_with_different_io_nodes_lose_nothing,
    members_with_diverging_clocks_keep_their_own_order, members_with_ended_connections_block_no_flush,
    writes_are_flushed_in_time_without_a_request,
};

use tasks::Tasks;

/// Passes the names of all promises to a macro, so that the tests of each machine include all promises.
#[macro_export]
macro_rules! for_all_promises {
    ($do:ident) => {
        $do! {
            random_operations_agree_with_a_file_in_memory,
            interleaved_writes_of_several_clients_all_arrive,
            every_method_reads_and_writes_every_pattern,
            collective_and_independent_operations_see_each_others_data,
            extent_lists_agree_with_files_in_memory,
            a_lost_directory_of_extents_is_sent_again,
            a_long_list_of_stripes_is_complete,
            a_file_lies_on_its_chosen_disks,
            all_stripes_are_created_at_once,
            garbage_does_not_affect_other_clients,
            too_many_commands_of_a_client_are_rejected,
            a_client_that_answers_nothing_blocks_no_others,
            unanswered_fetches_delay_only_their_own_writes,
            a_disconnected_client_leaves_nothing_behind,
            an_invalid_directory_of_extents_is_rejected,
            a_group_with_missing_or_repeated_nodes_is_rejected,
            stopped_collective_operations_do_not_block_others,
            a_request_with_very_many_pieces_blocks_no_others,
            one_scan_serves_all_waiting_list_requests,
            another_protocol_version_is_reported_once,
            damage_is_found_and_adjacent_data_are_readable,
            a_bit_flip_in_memory_is_detected,
            only_members_count_at_a_barrier,
            waiting_commands_take_little_memory,
            selecting_the_same_bytes_repeatedly_is_rejected,
            no_client_can_take_all_teams_and_jobs,
            repairs_do_not_change_objects_in_use,
            a_client_can_lock_only_its_open_files,
            fences_stay_despite_many_fences_of_another_client,
            no_reply_exceeds_a_message,
            the_failure_text_of_a_member_has_a_limited_length,
            lost_data_are_not_read_as_zeros,
            requests_of_an_ended_connection_have_no_effect,
            a_sequential_stream_does_not_monopolise_a_disk,
            a_disconnecting_client_does_not_affect_others,
            calls_to_a_disconnected_io_node_fail,
            a_stopping_io_node_writes_accepted_data_to_disk,
            a_failing_member_fails_the_whole_group,
            a_write_of_no_bytes_does_not_extend_a_file,
            a_collective_operation_reopens_its_file_after_a_restart,
            a_failed_flush_is_reported_to_all_writers,
            after_a_failed_sync_every_flush_of_the_file_fails,
            lost_data_of_an_unremovable_file_are_reported,
            a_failed_flush_is_reported_through_all_handles,
            all_users_of_a_shared_handle_get_its_failure,
            later_writes_of_a_block_reach_the_disk_later,
            many_pieces_of_a_block_are_written_in_one_request,
            partial_blocks_are_written_back_in_time,
            accepted_writes_fit_on_the_disk,
            accepted_writes_to_many_files_fit_on_the_disk,
            lost_data_are_not_a_hole,
            a_completed_write_through_is_at_the_disk,
            a_failed_collective_operation_has_ended_at_all_disks,
            a_failed_write_behind_of_one_member_fails_the_group,
            a_stopping_io_node_writes_all_data_despite_a_failure,
            changes_of_a_file_complete_during_writes_of_others,
            a_file_is_truncated_and_removed_despite_endless_appends,
            a_file_can_be_longer_than_its_disk,
            cached_files_of_any_size_are_read_back,
            cached_files_with_large_pages_are_read_back,
            a_client_reads_its_own_writes,
            a_window_prefetches_the_pages_after_the_current_one,
            the_pages_of_a_request_are_read_together,
            an_uncached_read_keeps_no_pages,
            a_read_without_prefetching_reads_only_its_bytes_from_disk,
            temporary_files_reach_no_disk,
            a_large_file_passes_through_the_cache_without_evicting_others,
            a_failed_write_behind_is_reported,
            a_failing_flush_fails_for_all_concurrent_callers,
            a_loss_is_reported_to_all_concurrent_flushes,
            clients_see_flushed_data_of_others,
            random_cached_operations_agree_with_files_in_memory,
            hints_take_effect_on_pages_at_once,
            many_readers_and_writers_share_a_small_cache,
            truncated_data_do_not_return,
            each_byte_has_the_value_of_a_latest_write,
            members_with_diverging_clocks_keep_their_own_order,
            a_member_reads_its_unflushed_writes,
            a_hole_before_an_unflushed_write_reads_as_zeros,
            a_reopened_file_grows_through_its_write_cache,
            a_flush_persists_the_writes_of_all_members,
            writes_are_flushed_in_time_without_a_request,
            a_disconnected_member_loses_only_its_unflushed_data,
            a_failed_group_flush_is_reported_until_its_data_are_flushed,
            members_with_ended_connections_block_no_flush,
            cached_data_of_a_removed_file_block_no_flush,
            members_with_different_io_nodes_lose_nothing,
            a_flush_fails_if_its_coordinator_disconnects,
            io_nodes_record_their_activities_on_request,
            an_io_node_counts_its_requests_and_disk_accesses,
            any_client_can_read_a_numbered_file,
            data_and_holes_of_a_file_are_found,
            a_numbered_file_has_stripes_only_where_it_has_bytes,
            extent_lists_create_missing_stripes,
            cached_numbered_files_are_close_to_open_consistent,
            a_removed_numbered_file_stays_removed,
            lost_data_of_an_unremovable_stripe_are_reported,
            all_numbered_files_are_listed,
            errors_distinguish_foreign_stripes_and_unknown_disks,
            a_lost_numbered_write_is_reported_once,
            losses_of_many_closed_files_are_all_reported,
            data_flushed_by_an_earlier_incarnation_are_not_lost,
            losses_through_two_handles_are_reported_to_the_next_opener,
            nodes_of_neighbouring_releases_work_together,
            a_loss_is_reported_at_close_or_to_the_next_opener,
            lookups_in_order_prefetch_entries,
            all_clients_share_one_namespace,
            no_second_namespace_is_created,
            a_file_with_too_large_blocks_leaves_no_name,
            a_sync_of_all_files_includes_closed_files,
            every_later_open_reads_closed_and_flushed_data,
            appends_of_many_clients_lose_nothing,
            appends_of_many_clients_leave_no_gaps,
            a_disconnected_appender_delays_others_once,
            a_reader_sees_no_unwritten_bytes,
            a_new_file_on_a_full_disk_has_the_length_of_its_stored_data,
            an_unflushed_overwrite_is_visible_in_time,
            an_unlinked_file_exists_until_its_last_close,
            an_open_file_is_not_removed_as_abandoned,
            a_missing_disk_does_not_hide_others,
            open_orphans_do_not_hide_deletable_ones,
            concurrent_opens_return_the_same_file,
            an_open_reports_other_writers,
            a_flush_does_not_wait_for_later_writes,
            contents_removed_while_an_io_node_is_away_are_deleted_later,
            attributes_have_the_last_set_values,
            too_long_names_and_values_are_rejected,
            selections_agree_with_files_in_memory,
            a_selection_creates_only_the_stripes_it_touches,
            small_parts_of_blocks_are_sent_together,
            a_collective_write_reaches_the_disk_in_order,
            concurrent_writes_beyond_the_end_all_stay,
            concurrent_writes_of_parts_of_new_blocks_all_stay,
            selections_are_sent_again_to_a_new_incarnation,
            an_invalid_selection_is_rejected,
            a_failure_of_one_member_fails_the_team,
            selections_of_a_failed_operation_are_forgotten,
            lost_data_of_a_temporary_file_are_reported,
            collective_writes_are_visible_to_all_members,
            open_stripes_are_not_reopened_after_writes_of_others,
            a_collective_sync_persists_the_writes_of_all_members,
            one_member_queries_the_metadata_server_for_all,
            a_replacing_file_is_persisted_first,
            a_flush_also_persists_closed_writes_of_others,
            lost_changes_of_names_are_reported,
            a_truncation_reaches_stripes_that_others_created,
            a_truncation_by_another_client_is_visible_after_an_own_one,
            restored_names_have_their_contents,
            a_stopping_io_node_flushes_files_concurrently,
            a_truncation_has_no_effect_if_a_node_is_unreachable,
            the_next_flush_reports_writes_that_a_close_could_not_report,
            data_sent_after_an_open_are_read_at_the_next_open,
            a_truncation_and_a_write_are_serialised,
            an_unlinked_open_file_outlives_a_broken_connection,
            an_open_over_a_broken_connection_leaves_no_reference,
            open_files_outlive_a_restart_of_the_metadata_server,
            a_client_knows_directories_after_its_own_changes,
            a_lost_stripe_is_not_a_hole,
            an_unwritten_range_is_not_counted,
            locks_exclude_others,
            locks_expire_after_their_client_disconnects,
            writes_under_a_lost_lock_are_rejected,
            a_strided_write_under_a_lost_lock_is_rejected,
        }
    };
}

/// Parameters of a promise: a configuration, and the disk scheduling, unless the promise is about scheduling.
#[derive(Clone, Copy, Debug)]
pub struct Base {
    /// Configuration.
    pub configuration: Configuration,
    /// Disk scheduling.
    pub scheduling: Scheduling,
}

impl From<Configuration> for Base {
    fn from(configuration: Configuration) -> Self {
        Base { configuration, scheduling: configuration.io_node().scheduling }
    }
}

impl Base {
    fn with(self, scheduling: Scheduling) -> Self {
        Base { scheduling, ..self }
    }

    fn io_node(self) -> IoNodeSettings {
        IoNodeSettings { scheduling: self.scheduling, ..self.configuration.io_node() }
    }

    fn client(self) -> ClientSettings {
        self.configuration.client()
    }
}

/// Checks all promises, with this disk scheduling and under both configurations.
///
/// # Panics
/// If a promise is broken.
pub fn check_all(testbed: &impl Testbed, scheduling: Scheduling) {
    let base = |configuration| Base { configuration, scheduling };
    let [report, agent] = [Configuration::Report, Configuration::Agent].map(base);
    macro_rules! check {
        ($($promise:ident,)*) => { $($promise(testbed, report); $promise(testbed, agent);)* };
    }
    for_all_promises!(check);
}

const BLOCK: u64 = 512;

/// Returns settings with small limits, so that the tests reach these limits.
fn small(base: Base, threads: Threads) -> IoNodeSettings {
    IoNodeSettings {
        cache_blocks: 4,
        block_bytes_max: 4096,
        threads,
        prefetch_blocks: 1,
        wait_timeout: Some(Duration::from_secs(10)),
        ..base.io_node()
    }
}

/// Starts services on the first `io_nodes` nodes and clients on the rest.
async fn start<M: Machine>(
    base: Base,
    nodes: &[M],
    io_nodes: usize,
    settings: IoNodeSettings,
) -> Vec<Client<M>> {
    start_with(nodes, io_nodes, settings, base.client()).await
}

async fn start_with<M: Machine>(
    nodes: &[M],
    io_nodes: usize,
    settings: IoNodeSettings,
    client_settings: ClientSettings,
) -> Vec<Client<M>> {
    let names: Vec<NodeId> = nodes[..io_nodes].iter().map(|node| node.node()).collect();
    for node in &nodes[..io_nodes] {
        node.spawn("I/O node", serve(node.clone(), settings.clone()));
    }
    let mut clients = Vec::new();
    for node in &nodes[io_nodes..] {
        let connected = Client::connect(node.clone(), names.clone(), client_settings).await;
        clients.push(connected.expect("all I/O nodes answer"));
    }
    clients
}

fn run<B, F>(testbed: &B, nodes: usize, test: impl FnOnce(Vec<B::Machine>) -> F)
where
    B: Testbed,
    F: Future<Output = ()> + 'static,
{
    testbed.run(nodes, test).expect("no task of this test fails");
}

/// Returns bytes that identify their position: no two blocks are alike.
fn contents(bytes: u64) -> Vec<u8> {
    (0..bytes).map(|at| (at.wrapping_mul(31) ^ (at >> 8).wrapping_mul(97)) as u8).collect()
}

/// Returns an empty file of this number over all disks known to a client, in blocks of `block_bytes` bytes.
async fn described<M: Machine>(client: &Client<M>, number: u64, block_bytes: u64) -> NumberedFile {
    let striping = Striping::new(block_bytes, client.disks()).expect("a striping");
    client.new_numbered(FileId(number), striping).await.expect("all disks are there")
}

/// Returns a new file of this number with all its stripes, in blocks of `block_bytes` bytes.
async fn created_with<M: Machine>(client: &Client<M>, number: u64, block_bytes: u64) -> File<M> {
    let file = client.numbered(described(client, number, block_bytes).await).await.expect("opened");
    file.make_stripes().await.expect("room");
    file
}

/// Returns a new file of this number with all its stripes.
async fn created<M: Machine>(client: &Client<M>, number: u64) -> File<M> {
    created_with(client, number, BLOCK).await
}

/// Opens the file of this number with its current stripes.
async fn opened<M: Machine>(client: &Client<M>, number: u64) -> File<M> {
    client.numbered(stored(client, number, BLOCK).await).await.expect("opened")
}

/// Returns the attributes of the file of this number, in blocks of `block_bytes` bytes, from its stripes.
async fn stored<M: Machine>(client: &Client<M>, number: u64, block_bytes: u64) -> NumberedFile {
    let file = described(client, number, block_bytes).await;
    NumberedFile { bytes: client.stored_bytes(&file).await.expect("answered"), ..file }
}

/// Makes the changes of other clients to a file visible; returns its size in bytes.
async fn refresh<M: Machine>(client: &Client<M>, file: &File<M>) -> u64 {
    file.refresh();
    let bytes = stored(client, file.id().0, BLOCK).await.bytes;
    file.note_counted(u64::MAX);
    file.set_bytes(bytes);
    bytes
}

async fn write<M: Machine>(file: &File<M>, offset: u64, data: &[u8]) {
    let memory = Memory::real(data.to_vec());
    file.write(offset, memory.len(), &memory, 0).await.expect("the write succeeds");
}

/// Returns the bytes of real memory.
fn bytes_of(memory: Memory) -> Vec<u8> {
    memory.into_vec().expect("real memory")
}

async fn read<M: Machine>(file: &File<M>, offset: u64, bytes: u64) -> Vec<u8> {
    let memory = Memory::real(vec![0xEE; bytes as usize]);
    let got = file.read(offset, bytes, &memory, 0).await.expect("the read succeeds");
    let mut data = bytes_of(memory);
    data.truncate(got as usize);
    data
}

/// Small pseudorandom generator, the same on all machines.
struct Draw(u64);

impl Draw {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// Reads, writes, truncations and flushes by two alternating clients have the same results as on a file in memory, with
/// a cache far smaller than the file and under every setting.
pub fn random_operations_agree_with_a_file_in_memory(testbed: &impl Testbed, base: Base) {
    for (seed, scheduling, threads, memget_writes, requests_at_disk) in [
        (1, Scheduling::CyclicScan, Threads::Pool(4), false, 1),
        (2, Scheduling::Fcfs, Threads::PerRequest, false, 1),
        (3, Scheduling::PhysicalCyclicScan, Threads::PerRequest, true, 1),
        (4, Scheduling::PhysicalCyclicScan, Threads::Pool(4), false, 2),
        (5, Scheduling::CyclicScan, Threads::PerRequest, false, 3),
        (6, Scheduling::RoundRobin, Threads::Pool(4), false, 1),
        (7, Scheduling::ReadPriority, Threads::Pool(4), true, 2),
        (8, Scheduling::BoundedReadPriority, Threads::PerRequest, false, 1),
        (9, Scheduling::FairScan, Threads::Pool(4), false, 1),
    ] {
        run(testbed, 5, move |nodes| async move {
            let settings = ClientSettings { memget_writes, ..base.client() };
            let io_nodes = IoNodeSettings { requests_at_disk, ..small(base.with(scheduling), threads) };
            let clients = start_with(&nodes, 3, io_nodes, settings).await;
            random_operations(&clients, seed).await;
        });
    }
}

async fn random_operations<M: Machine>(clients: &[Client<M>], seed: u64) {
    let (mut draw, mut model) = (Draw(seed), Vec::<u8>::new());
    let files = [created(&clients[0], seed).await, opened(&clients[1], seed).await];
    for step in 0..120 {
        let file = &files[draw.below(2) as usize];
        // The other client may have changed it.
        refresh(&clients[0], file).await;
        let (offset, bytes) = (draw.below(24 * BLOCK), draw.below(4 * BLOCK));
        match draw.below(8) {
            0..=3 => {
                let data: Vec<u8> = (0..bytes).map(|_| draw.below(256) as u8).collect();
                write(file, offset, &data).await;
                put(&mut model, offset, &data);
            }
            4..=5 => {
                let start = (offset as usize).min(model.len());
                let end = ((offset + bytes) as usize).min(model.len());
                assert!(read(file, offset, bytes).await == model[start..end.max(start)], "step {step}");
            }
            6 => {
                let bytes = draw.below(24 * BLOCK);
                file.truncate(bytes).await.expect("truncated");
                model.resize(bytes as usize, 0);
            }
            _ => file.flush().await.expect("flushed"),
        }
        assert_eq!(refresh(&clients[0], file).await, model.len() as u64, "step {step}");
    }
    refresh(&clients[1], &files[1]).await;
    assert!(read(&files[1], 0, 30 * BLOCK).await == model);
}

/// Concurrent interleaved writes of several clients all arrive.
pub fn interleaved_writes_of_several_clients_all_arrive(testbed: &impl Testbed, base: Base) {
    for memget_writes in [false, true] {
        run(testbed, 7, move |nodes| write_side_by_side(base, nodes, memget_writes));
    }
}

async fn write_side_by_side<M: Machine>(base: Base, nodes: Vec<M>, memget_writes: bool) {
    let settings = ClientSettings { memget_writes, ..base.client() };
    let clients = start_with(&nodes, 3, small(base, Threads::Pool(3)), settings).await;
    let data = contents(40 * BLOCK);
    created(&clients[0], 9).await;
    let (left, done) = (Rc::new(Cell::new(clients.len())), Rc::new(Condition::new()));
    for (number, client) in clients.iter().enumerate() {
        let (client, data) = (client.clone(), data.clone());
        let (left, done) = (left.clone(), done.clone());
        nodes[3 + number].spawn("writer", async move {
            let file = opened(&client, 9).await;
            // Records of 96 bytes, a quarter of them per client, so that most blocks have several writers.
            for (index, record) in data.chunks(96).enumerate().skip(number).step_by(4) {
                write(&file, index as u64 * 96, record).await;
            }
            left.set(left.get() - 1);
            done.wake_all();
            Ok(())
        });
    }
    while left.get() > 0 {
        done.wait().await;
    }
    let file = opened(&clients[0], 9).await;
    assert!(read(&file, 0, 50 * BLOCK).await == data);
}

/// For every pattern of the reports and several record sizes: data that a group has written with one method can be read
/// with the other methods, by each member its own part.
pub fn every_method_reads_and_writes_every_pattern(testbed: &impl Testbed, base: Base) {
    let (disk_directed, two_phase) = (CollectiveSettings::disk_directed(), CollectiveSettings::two_phase());
    for (record_bytes, settings) in [
        (8, disk_directed),
        (8, disk_directed.queued()),
        (8, two_phase.queued()),
        (BLOCK, disk_directed.presorted()),
        (BLOCK, two_phase),
        (96, disk_directed.presorted()),
        (96, two_phase),
        (96, disk_directed.queued()),
    ] {
        run(testbed, 6, move |nodes| async move {
            let clients = start(base, &nodes, 2, small(base, Threads::Pool(4))).await;
            for (number, pattern) in (1..).zip(Pattern::all()) {
                let problem = Problem::new(16 * 96 * 8, record_bytes, 4);
                check_pattern(&nodes[2..], &clients, number, pattern, &problem, settings).await;
            }
        });
    }
}

async fn check_pattern<M: Machine>(
    nodes: &[M],
    clients: &[Client<M>],
    number: u64,
    pattern: Pattern,
    problem: &Problem,
    settings: CollectiveSettings,
) {
    let (view, data) = (pattern.view(problem).expect("a view"), contents(problem.file_bytes));
    // The first write to a stripe creates the stripe.
    let whole = opened(&clients[0], number).await;
    if pattern.operation() == Operation::Read {
        write(&whole, 0, &data).await;
    }
    let members: Vec<NodeId> = nodes.iter().map(|node| node.node()).collect();
    let (left, done) = (Rc::new(Cell::new(nodes.len())), Rc::new(Condition::new()));
    for (rank, client) in clients.iter().enumerate() {
        let group = Group::new(7, members.clone(), rank);
        let mut part = vec![0; view.node_bytes(rank as u32) as usize];
        for chunk in view.chunks(rank as u32) {
            let (file, memory) = (chunk.file_offset as usize, chunk.memory_offset as usize);
            let bytes = chunk.bytes as usize;
            part[memory..memory + bytes].copy_from_slice(&data[file..file + bytes]);
        }
        let client = client.clone();
        let (left, done) = (left.clone(), done.clone());
        nodes[rank].spawn("member", async move {
            let file = opened(&client, number).await;
            if pattern.operation() == Operation::Read {
                let memory = Memory::real(vec![0xEE; part.len()]);
                file.read_collective(&group, &view, &memory, settings).await.expect("read");
                assert!(memory.into_vec() == Some(part), "{pattern} member {rank}");
            } else {
                let memory = Memory::real(part);
                file.write_collective(&group, &view, &memory, settings).await.expect("written");
            }
            left.set(left.get() - 1);
            done.wake_all();
            Ok(())
        });
    }
    while left.get() > 0 {
        done.wait().await;
    }
    refresh(&clients[0], &whole).await;
    assert!(read(&whole, 0, problem.file_bytes).await == data, "{pattern} by single requests");
}

/// Collective writes and reads of one group, mixed with independent ones, see each other's data.
pub fn collective_and_independent_operations_see_each_others_data(testbed: &impl Testbed, base: Base) {
    run(testbed, 3, move |nodes| async move {
        let clients = start(base, &nodes, 2, small(base, Threads::Pool(4))).await;
        let file = created(&clients[0], 4).await;
        let group = Group::new(1, vec![nodes[2].node()], 0);
        let view = "rb".parse::<Pattern>().and_then(|rb| rb.view(&Problem::new(8 * BLOCK, BLOCK, 1)));
        let view = view.expect("a view");
        for round in 0..3_u8 {
            let written = Memory::real(vec![round; (8 * BLOCK) as usize]);
            file.write_collective(&group, &view, &written, CollectiveSettings::disk_directed())
                .await
                .expect("written");
            assert!(read(&file, BLOCK, 10).await == [round; 10]);
            write(&file, BLOCK, &[round + 100; 10]).await;
            let back = Memory::real(vec![0; (8 * BLOCK) as usize]);
            file.read_collective(&group, &view, &back, CollectiveSettings::disk_directed().presorted())
                .await
                .expect("read");
            let back = back.into_vec().expect("real memory");
            assert!(back[BLOCK as usize..][..12] == [[round + 100; 10].as_slice(), &[round; 2]].concat());
        }
    });
}

/// A file on chosen disks has its stripes there, in their order; impossible choices are rejected.
pub fn a_file_lies_on_its_chosen_disks(testbed: &impl Testbed, base: Base) {
    run(testbed, 4, move |nodes| async move {
        let client = &start(base, &nodes, 3, small(base, Threads::Pool(4))).await[0];
        let new = client.new_numbered_on(FileId(2), BLOCK, &[2, 0]).await.expect("they are there");
        let file = client.numbered(new.clone()).await.expect("opened");
        assert_eq!(client.list_numbered().await, Ok(vec![]), "nothing has been written");
        write(&file, 0, &contents(3 * BLOCK)).await;
        let stripe = |node: usize, stripe| {
            (nodes[node].node(), ListedStripe { file: FileId(2), disk: 0, stripe: Some(stripe) })
        };
        let listed = client.list_numbered().await;
        assert_eq!(listed, Ok(vec![stripe(0, (1, BLOCK)), stripe(2, (0, 2 * BLOCK))]));
        assert_eq!(client.stored_bytes(&new).await, Ok(3 * BLOCK));
        // Over all disks the stripes have the same order as these.
        let all = described(client, 3, BLOCK).await;
        assert_eq!(new.disks, [all.disks[2], all.disks[0]]);
        for (disks, named) in [(&[1, 1][..], "disk 1"), (&[0, 3], "disk 3")] {
            let error = client.new_numbered_on(FileId(4), BLOCK, disks).await.expect_err("refused");
            assert!(error.to_string().contains(named), "{error}");
        }
    });
}

/// Creating all stripes of a file at once creates one on each disk; afterwards no read or write has to open a stripe.
pub fn all_stripes_are_created_at_once(testbed: &impl Testbed, base: Base) {
    run(testbed, 4, move |nodes| async move {
        let clients = start(base, &nodes, 2, small(base, Threads::Pool(4))).await;
        let file = created(&clients[0], 2).await;
        assert_eq!(clients[1].list_numbered().await.map(|stripes| stripes.len()), Ok(2));
        let other = opened(&clients[1], 2).await;
        other.open_stripes().await.expect("they exist");
        let before = [attached(&clients[0]), attached(&clients[1])];
        write(&file, 0, &contents(6 * BLOCK)).await;
        file.flush_all().await.expect("flushed");
        other.set_bytes(6 * BLOCK);
        assert!(read(&other, 0, 7 * BLOCK).await == contents(6 * BLOCK));
        assert_eq!([attached(&clients[0]), attached(&clients[1])], before);
    });
}

/// Returns the number of a client's requests that open stripes.
fn attached<M: Machine>(client: &Client<M>) -> u64 {
    let asked = client.counts().asked.into_iter().filter(|asked| asked.operation == "attach");
    asked.map(|asked| asked.times.count()).sum()
}

/// Meaningless frames are answered with an error, and the service of all other clients continues.
pub fn garbage_does_not_affect_other_clients(testbed: &impl Testbed, base: Base) {
    run(testbed, 3, move |nodes| async move {
        let clients = start(base, &nodes[..2], 1, small(base, Threads::Pool(4))).await;
        let file = created(&clients[0], 1).await;
        let (vandal, target) = (&nodes[2], nodes[0].node());
        let mut other_version = Frame::Request(5, Request::Describe).encode();
        other_version[2] += 1;
        let team = Request::FormTeam { name: "x".repeat(50), rank: 0, size: 2 };
        let truncated = Frame::Request(5, team).encode()[..20].to_vec();
        for header in [vec![], vec![0; 100], other_version, truncated] {
            let message = Message { header, payload: Payload::from(vec![1; 9]), ..Message::default() };
            vandal.net().send(target, message).await.expect("sent");
            let Ok((_, Delivery::Message(answer))) = vandal.net().receive().await else {
                panic!("an answer")
            };
            let Ok(Frame::Reply(0, Reply::Failed(failure))) = Frame::decode(&answer.header) else {
                panic!("a complaint")
            };
            assert!(failure.text.contains("bad frame"), "{failure}");
        }
        let endless = |presort| {
            let view = "rb".parse::<Pattern>().and_then(|rb| rb.view(&Problem::new(1 << 50, BLOCK, 1)));
            Request::Collective(Box::new(Collective {
                file: FileId(1),
                direction: Direction::Read,
                presort,
                queued: false,
                view: view.expect("a view"),
                memory: MemoryId::Request(7),
                members: vec![nodes[1].node().0],
            }))
        };
        for request in [
            endless(false),
            endless(true),
            Request::Read { file: FileId(1), stripe: 0, offset: u64::MAX, bytes: 1, is_alone: false },
            Request::Read { file: FileId(1), stripe: 0, offset: 1, bytes: u32::MAX, is_alone: false },
            Request::Read { file: FileId(77), stripe: 0, offset: 0, bytes: 1, is_alone: false },
            Request::Resize { file: FileId(1), stripes: vec![(1000, 5)] },
            Request::Scrub { file: FileId(u64::MAX), disk: 0, offset: 0, bytes: 0 },
            Request::Attach {
                stripes: StripePlaces {
                    file: FileId(2),
                    striping: Striping::new(1 << 20, 1).expect("a striping"),
                    places: Vec::new(),
                },
                create: true,
            },
            collective_read_of(FileId(77), vandal),
        ] {
            let message = Message { header: Frame::Request(6, request).encode(), ..Message::default() };
            vandal.net().send(target, message).await.expect("sent");
            let Ok((_, Delivery::Message(answer))) = vandal.net().receive().await else {
                panic!("an answer")
            };
            let refused = matches!(Frame::decode(&answer.header), Ok(Frame::Reply(6, Reply::Failed(_))));
            assert!(refused, "{:?}", Frame::decode(&answer.header));
        }
        write(&file, 0, b"still served").await;
        assert!(read(&file, 0, 100).await == b"still served");
    });
}

/// A client with too many outstanding commands is rejected; other clients are not.
pub fn too_many_commands_of_a_client_are_rejected(testbed: &impl Testbed, base: Base) {
    run(testbed, 3, move |nodes| async move {
        let clients = start(base, &nodes[..2], 1, small(base, Threads::Pool(4))).await;
        let file = created(&clients[0], 1).await;
        write(&file, 0, &contents(BLOCK)).await;
        let (client, target) = (&nodes[2], nodes[0].node());
        const COMMANDS: u64 = 5000;
        for tag in 1..=COMMANDS {
            let request = collective_read_of(FileId(1), client);
            let message = Message { header: Frame::Request(tag, request).encode(), ..Message::default() };
            client.net().send(target, message).await.expect("sent");
        }
        // The client answers none of the Memputs, so all accepted commands stay in flight.
        let mut refused = 0;
        while refused < 10 {
            let answer = match client.net().receive().await.expect("a connection") {
                (_, Delivery::Message(answer)) => answer,
                // On a slow network the I/O node disconnects the client before the client reads the first rejection.
                (_, Delivery::Gone(_)) => break,
            };
            match Frame::decode(&answer.header) {
                Ok(Frame::Reply(tag, Reply::Failed(failure))) => {
                    assert!(
                        tag > COMMANDS / 2 && failure.text.contains("too many commands under way"),
                        "{failure}"
                    );
                    refused += 1;
                }
                Ok(Frame::Request(_, Request::Memput { .. })) => {}
                other => panic!("{other:?}"),
            }
        }
        clients[0].list_numbered().await.expect("served");
        assert!(read(&file, 0, BLOCK).await == contents(BLOCK));
        client.net().close();
    });
}

/// Returns a request to read the first block of a file into the memory of a node.
fn collective_read_of(file: FileId, node: &impl Machine) -> Request {
    let view = "rb".parse::<Pattern>().and_then(|rb| rb.view(&Problem::new(BLOCK, BLOCK, 1)));
    Request::Collective(Box::new(Collective {
        file,
        direction: Direction::Read,
        presort: false,
        queued: false,
        view: view.expect("a view"),
        memory: MemoryId::Request(1),
        members: vec![node.node().0],
    }))
}

/// A demand read is served before earlier background reads, and so is a promoted background read.
///
/// For machines whose disks take time: otherwise requests do not queue.
pub fn demand_is_served_before_background(testbed: &impl Testbed, base: Base) {
    demand_overtakes(testbed, base, 4, true);
    // With enough threads for all requests, background reads wait for slots of the cache. Promotion does not search
    // that queue.
    demand_overtakes(testbed, base, 64, false);
}

fn demand_overtakes(testbed: &impl Testbed, base: Base, threads: usize, promotes: bool) {
    run(testbed, 3, move |nodes| async move {
        const BLOCKS: u64 = 60;
        let settings = IoNodeSettings { prefetch_blocks: 0, ..small(base, Threads::Pool(threads)) };
        let clients = start(base, &nodes[..2], 1, settings).await;
        let file = created(&clients[0], 1).await;
        write(&file, 0, &contents(BLOCKS * BLOCK)).await;
        file.flush().await.expect("flushed");
        let (client, target) = (&nodes[2], nodes[0].node());
        let ask = async |class, tag, request| {
            let message =
                Message { class, header: Frame::Request(tag, request).encode(), ..Message::default() };
            client.net().send(target, message).await.expect("sent");
        };
        let read = |block| Request::Read {
            file: FileId(1),
            stripe: 0,
            offset: block * BLOCK,
            bytes: BLOCK as u32,
            is_alone: false,
        };
        for block in 0..40 {
            ask(Class::Background, 100 + block, read(block)).await;
        }
        ask(Class::Demand, 1, read(50)).await;
        let promote = Request::Promote { file: FileId(1), stripe: 0, offset: 39 * BLOCK + 7 };
        ask(Class::Control, 2, promote).await;
        let mut order = Vec::new();
        for _ in 0..42 {
            let Ok((_, Delivery::Message(answer))) = client.net().receive().await else {
                panic!("an answer")
            };
            match Frame::decode(&answer.header) {
                Ok(Frame::Reply(tag, Reply::Done)) => order.push(tag),
                other => panic!("{other:?}"),
            }
        }
        let place = |tag| order.iter().position(|&answered| answered == tag).expect("answered");
        assert!(place(1) < 30 && (place(139) < 30 || !promotes), "{order:?}");
    });
}

/// A sequential reader that always has requests in flight does not starve requests behind the disk arm, if scheduling
/// is fair.
pub fn a_sequential_stream_does_not_monopolise_a_disk(testbed: &impl Testbed, base: Base) {
    // An open sweep serves every request ahead of the arm.
    let is_open =
        |order: &Scheduling| matches!(order, Scheduling::CyclicScan | Scheduling::PhysicalCyclicScan);
    for scheduling in Scheduling::ALL.into_iter().filter(|order| !is_open(order)) {
        run(testbed, 3, move |nodes| async move {
            const BLOCKS: u64 = 100;
            let small = small(base.with(scheduling), Threads::Pool(16));
            let settings = IoNodeSettings { cache_blocks: 16, prefetch_blocks: 0, ..small };
            let clients = start(base, &nodes[..2], 1, settings).await;
            let file = created(&clients[0], 1).await;
            write(&file, 0, &contents(BLOCKS * BLOCK)).await;
            file.flush().await.expect("flushed");
            let (client, target) = (&nodes[2], nodes[0].node());
            let ask = async |block: u64| {
                let (offset, bytes) = (block * BLOCK, BLOCK as u32);
                let request = Request::Read { file: FileId(1), stripe: 0, offset, bytes, is_alone: false };
                let message =
                    Message { header: Frame::Request(block, request).encode(), ..Message::default() };
                client.net().send(target, message).await.expect("sent");
            };
            // Block 1 is behind the stream, which begins at 10 and has four requests in flight.
            for block in [10, 11, 12, 13, 1] {
                ask(block).await;
            }
            let (mut next, mut answered) = (14, 0);
            loop {
                let Ok((_, Delivery::Message(answer))) = client.net().receive().await else {
                    panic!("an answer")
                };
                match Frame::decode(&answer.header) {
                    Ok(Frame::Reply(1, Reply::Done)) => break,
                    Ok(Frame::Reply(_, Reply::Done)) => ask(next).await,
                    other => panic!("{other:?}"),
                }
                (next, answered) = (next + 1, answered + 1);
                assert!(answered < 20, "{scheduling:?}");
            }
        });
    }
}

/// An I/O node notices that one client's writes delay another's reads, and reports it on request. Under disk scheduling
/// that separates clients no read is delayed.
///
/// For machines whose disks take time.
pub fn reads_delayed_by_writes_are_reported(testbed: &impl Testbed, base: Base) {
    let keeps_apart = !matches!(base.scheduling, Scheduling::Fcfs);
    run(testbed, 3, move |nodes| async move {
        const BLOCKS: u64 = 1000;
        let settings = IoNodeSettings {
            cache_blocks: 300,
            prefetch_blocks: 0,
            threads: Threads::Pool(16),
            requests_at_disk: 1,
            ..base.io_node()
        };
        let clients = start(base, &nodes, 1, settings).await;
        let read_from = created(&clients[1], 1).await;
        write(&read_from, 0, &contents(BLOCKS * BLOCK)).await;
        read_from.flush().await.expect("flushed");
        let examined = async || {
            let disks = clients[1].examine(nodes[0].node()).await.expect("it answers").disks;
            disks.into_iter().find_map(|disk| disk.held_up)
        };
        assert_eq!(examined().await, None);
        let written = created(&clients[0], 2).await;
        let tasks = Tasks::default();
        tasks.begin(&nodes[1], async move { write(&written, 0, &contents(3 * BLOCKS * BLOCK)).await });
        // One read at a time, of blocks no longer in the cache.
        for block in 0..20 {
            read(&read_from, block * BLOCK, BLOCK).await;
        }
        tasks.wait().await;
        let held_up = examined().await;
        assert_eq!(held_up.is_none(), keeps_apart, "{:?}: {held_up:?}", base.scheduling);
        assert!(held_up.is_none_or(|delay| delay.reads > 0 && delay.writes_most > 1), "{held_up:?}");
    });
}

/// A client that disconnects does not affect other clients.
pub fn a_disconnecting_client_does_not_affect_others(testbed: &impl Testbed, base: Base) {
    run(testbed, 4, move |nodes| async move {
        let clients = start(base, &nodes, 2, small(base, Threads::Pool(4))).await;
        let file = created(&clients[0], 1).await;
        let memory = Memory::real(contents(30 * BLOCK));
        let leaver = file.clone();
        nodes[2].spawn("leaver", async move {
            // Succeeds or fails, depending on the time of the disconnect.
            let _ = leaver.write(0, 30 * BLOCK, &memory, 0).await;
            Ok(())
        });
        nodes[2].net().close();
        let file = opened(&clients[1], 1).await;
        write(&file, 40 * BLOCK, b"another client").await;
        file.flush().await.expect("flushed");
        assert!(read(&file, 40 * BLOCK, 100).await == b"another client");
    });
}

/// After an I/O node has disconnected, calls to it fail with an error that names the node, instead of blocking.
pub fn calls_to_a_disconnected_io_node_fail(testbed: &impl Testbed, base: Base) {
    run(testbed, 3, move |nodes| async move {
        let client = &start(base, &nodes, 2, small(base, Threads::Pool(4))).await[0];
        let file = created(client, 1).await;
        write(&file, 0, &contents(20 * BLOCK)).await;
        nodes[1].net().close();
        let memory = Memory::real(vec![0; (20 * BLOCK) as usize]);
        let error = file.read(0, 20 * BLOCK, &memory, 0).await.expect_err("a stripe is out of reach");
        let lost = nodes[1].node();
        let named = matches!(*error, Error::Machine(machine::Error::PeerGone { node, .. }) if node == lost);
        assert!(named, "{error}");
        assert!(client.list_numbered().await.is_err());
    });
}

/// A stopping I/O node writes all accepted data to its disk, even if no client has flushed them.
pub fn a_stopping_io_node_writes_accepted_data_to_disk(testbed: &impl Testbed, base: Base) {
    run(testbed, 2, move |nodes| async move {
        let (io_node, stopped) = (nodes[0].clone(), Rc::new(Condition::new()));
        let (settings, done) = (small(base, Threads::Pool(4)), stopped.clone());
        nodes[0].spawn("I/O node", async move {
            serve(io_node, settings).await?;
            done.wake_all();
            Ok(())
        });
        let names = vec![nodes[0].node()];
        let client = Client::connect(nodes[1].clone(), names, base.client()).await.expect("connected");
        let file = created(&client, 1).await;
        write(&file, 3, b"accepted, not flushed").await;
        nodes[0].net().close();
        stopped.wait().await;
        let object = nodes[0].disks()[0].open(&object_name(FileId(1))).await.expect("still there");
        let into = nodes[0].buffers().take(24).await;
        let found = nodes[0].disks()[0].read(object.id, 0, into).await.expect("read");
        assert_eq!(found.slice(3..24).to_vec(), Some(b"accepted, not flushed".to_vec()));
    });
}

/// If one member of a group cannot take part, all members of the operation fail, and the next operation works.
pub fn a_failing_member_fails_the_whole_group(testbed: &impl Testbed, base: Base) {
    for settings in [CollectiveSettings::disk_directed(), CollectiveSettings::two_phase()] {
        run(testbed, 4, move |nodes| fail_one_member(base, nodes, settings));
    }
}

async fn fail_one_member<M: Machine>(base: Base, nodes: Vec<M>, settings: CollectiveSettings) {
    let clients = start(base, &nodes, 2, small(base, Threads::Pool(4))).await;
    let whole = created(&clients[0], 1).await;
    write(&whole, 0, &contents(8 * BLOCK)).await;
    let view = "rb".parse::<Pattern>().and_then(|rb| rb.view(&Problem::new(8 * BLOCK, BLOCK, 2)));
    let view = view.expect("a view");
    let members: Vec<NodeId> = nodes[2..].iter().map(|node| node.node()).collect();
    let (left, done) = (Rc::new(Cell::new(2)), Rc::new(Condition::new()));
    for (rank, client) in clients.iter().enumerate() {
        let (group, client) = (Group::new(3, members.clone(), rank), client.clone());
        let (left, done) = (left.clone(), done.clone());
        nodes[2 + rank].spawn("member", async move {
            let file = opened(&client, 1).await;
            let too_small = Memory::real(vec![0; if rank == 1 { 10 } else { 4 * BLOCK as usize }]);
            let failed = file.read_collective(&group, &view, &too_small, settings).await;
            let text = failed.expect_err("a member has too little memory").to_string();
            assert!(text.contains("memory of 10 bytes"), "{text}");
            let memory = Memory::real(vec![0; 4 * BLOCK as usize]);
            file.read_collective(&group, &view, &memory, settings).await.expect("read");
            left.set(left.get() - 1);
            done.wake_all();
            Ok(())
        });
    }
    while left.get() > 0 {
        done.wait().await;
    }
}

/// Simplified I/O node that only answers requests, and can be restarted.
struct Restarting {
    run: Cell<u64>,
    /// True if this incarnation has opened the file.
    is_open: Cell<bool>,
    /// Number of collective requests served.
    collectives: Cell<u32>,
    /// True if the answer to the next flush is delayed.
    flushes_slowly: Cell<bool>,
    /// True if the I/O node has closed unflushed stripes.
    has_closed_stripes: Cell<bool>,
}

impl Restarting {
    /// Serves on this node.
    fn serve<M: Machine>(node: &M) -> Rc<Self> {
        let (run, is_open) = (Cell::new(1), Cell::new(false));
        let (collectives, flushes_slowly) = (Cell::new(0), Cell::default());
        let has_closed_stripes = Cell::default();
        let io_node = Rc::new(Restarting { run, is_open, collectives, flushes_slowly, has_closed_stripes });
        let (answering, machine) = (io_node.clone(), node.clone());
        node.spawn("I/O node", async move {
            while let Ok((from, Delivery::Message(message))) = machine.net().receive().await {
                let Ok(Frame::Request(tag, request)) = Frame::decode(&message.header) else {
                    panic!("a request")
                };
                let header = Frame::Reply(tag, answering.answer(&request)).encode();
                let answer = Message { header, payload: Payload::empty(), ..message };
                let is_slow = matches!(request, Request::Flush(Flushing::Stripes(_)))
                    && answering.flushes_slowly.replace(false);
                let (sender, wait) = (machine.clone(), Duration::from_millis(if is_slow { 300 } else { 0 }));
                machine.spawn("answer", async move {
                    sender.sleep_until(sender.now() + wait).await;
                    sender.net().send(from, answer).await
                });
            }
            Ok(())
        });
        io_node
    }

    /// Serves on the first of these nodes, with a client on the second.
    async fn with_client<M: Machine>(nodes: &[M], base: Base) -> (NodeId, Rc<Self>, Client<M>) {
        let (node, io_node) = (nodes[0].node(), Restarting::serve(&nodes[0]));
        let client = Client::connect(nodes[1].clone(), vec![node], base.client()).await.expect("it answers");
        (node, io_node, client)
    }

    /// Returns a file with one stripe on its disk.
    fn file(number: FileId, bytes: u64) -> NumberedFile {
        let striping = Striping::new(BLOCK, 1).expect("a striping");
        NumberedFile { number, striping, disks: vec![7], bytes, stored_stripes: 0 }
    }

    fn restart(&self) {
        self.run.set(self.run.get() + 1);
        self.is_open.set(false);
    }

    fn answer(&self, request: &Request) -> Reply {
        let not_open = Failure::new(FailureKind::NotOpen, "not open");
        match request {
            Request::Describe => {
                Reply::Described { disks: 1, block_bytes_max: BLOCK, features: Features::all().bits() }
            }
            Request::DescribeDisks => Reply::DisksDescribed { identities: vec![Some(7)] },
            Request::Attach { stripes, .. } => {
                self.is_open.set(true);
                Reply::Attached { stripes: stripes.places.iter().map(|&(stripe, _)| (stripe, 0)).collect() }
            }
            Request::Flush(Flushing::Own) if self.has_closed_stripes.get() => Reply::Done,
            Request::Flush(_) => Reply::Accepted { run: self.run.get() },
            Request::Write(BlockWrite { attach: Some(_), .. }) => {
                self.is_open.set(true);
                Reply::Accepted { run: self.run.get() }
            }
            Request::Write(_) | Request::Collective(_) | Request::MoveSelected(_) if !self.is_open.get() => {
                Reply::Failed(not_open)
            }
            Request::Collective(_) => {
                self.collectives.set(self.collectives.get() + 1);
                Reply::Done
            }
            Request::Select(_) => Reply::Accepted { run: self.run.get() },
            Request::MoveSelected(selected) => {
                self.collectives.set(self.collectives.get() + 1);
                match selected.selectors {
                    Selectors::Members(_) => Reply::Moved { blocks: vec![1], hidden: 0 },
                    Selectors::Asker(_) | Selectors::Locked { .. } => Reply::Accepted { run: self.run.get() },
                }
            }
            Request::Write(_) => Reply::Accepted { run: self.run.get() },
            other => panic!("{other:?}"),
        }
    }
}

/// Writes to a file in memory.
fn put(file: &mut Vec<u8>, offset: u64, data: &[u8]) {
    if !data.is_empty() {
        let end = offset as usize + data.len();
        file.resize(file.len().max(end), 0);
        file[offset as usize..end].copy_from_slice(data);
    }
}
