//! The four policies: counts computed for five disks, and properties for any number of jobs, disks and runs.

use placement::{JobPlacement, Policy, PolicyError};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

/// Returns the number of a job's input runs on each disk.
fn counts(job: &JobPlacement, disks: usize) -> Vec<usize> {
    (0..disks).map(|disk| job.runs_on(disk).count()).collect()
}

fn of_five(policy: Policy, jobs: usize) -> Vec<Vec<usize>> {
    let placed = policy.place(jobs, 5, 20).expect("a placement");
    assert!(placed.iter().enumerate().all(|(job, placed)| placed.output == job), "job k writes to disk k");
    placed.iter().map(|job| counts(job, 5)).collect()
}

/// Figure 1 of the report: two jobs on five disks.
#[test]
fn two_jobs_on_five_disks_are_placed_as_in_the_report() {
    let placed = |policy| of_five(policy, 2);
    assert_eq!(placed(Policy::DedicatedWriteDisks), [[0, 0, 7, 7, 6], [0, 0, 7, 7, 6]]);
    assert_eq!(placed(Policy::SeparateWithinJob), [[0, 5, 5, 5, 5], [5, 0, 5, 5, 5]]);
    assert_eq!(placed(Policy::SharedWithinJob), [[5, 0, 5, 5, 5], [0, 5, 5, 5, 5]]);
    assert_eq!(placed(Policy::AllDisks), [[4, 4, 4, 4, 4], [4, 4, 4, 4, 4]]);
}

#[test]
fn jobs_placed_by_the_advised_policy_cannot_race() {
    for disks in 1..9 {
        for jobs in 1..=disks {
            let placed = Policy::advised(disks, false).place(jobs, disks, disks).expect("a placement");
            // A single job has no other job to race with.
            assert!(jobs == 1 || placed.iter().all(JobPlacement::reads_where_it_writes), "{jobs} on {disks}");
        }
    }
}

#[test]
fn dedicated_write_disks_leave_fewer_disks_to_read_from() {
    assert_eq!(of_five(Policy::DedicatedWriteDisks, 1), [[0, 5, 5, 5, 5]]);
    assert_eq!(of_five(Policy::DedicatedWriteDisks, 3), vec![[0, 0, 0, 10, 10]; 3]);
    assert_eq!(of_five(Policy::DedicatedWriteDisks, 4), vec![[0, 0, 0, 0, 20]; 4]);
}

#[test]
fn by_policy_3_each_of_five_jobs_reads_all_disks_except_the_one_before_its_own() {
    let rows = of_five(Policy::SharedWithinJob, 5);
    let expected = [[5, 5, 5, 5, 0], [0, 5, 5, 5, 5], [5, 0, 5, 5, 5], [5, 5, 0, 5, 5], [5, 5, 5, 0, 5]];
    assert_eq!(rows, expected);
}

#[test]
fn runs_are_distributed_in_turn() {
    let placed = Policy::SeparateWithinJob.place(2, 3, 5).expect("a placement");
    assert_eq!(placed[0], JobPlacement { input: vec![1, 2, 1, 2, 1], output: 0 });
    assert_eq!(placed[1], JobPlacement { input: vec![0, 2, 0, 2, 0], output: 1 });
    let shared = Policy::SharedWithinJob.place(2, 3, 5).expect("a placement");
    assert_eq!(shared[0].input, [0, 2, 0, 2, 0]);
    assert_eq!(shared[0].runs_on(2).collect::<Vec<_>>(), [1, 3]);
}

#[test]
fn policy_3_places_a_single_job_as_policy_2_does() {
    assert_eq!(Policy::SharedWithinJob.place(1, 5, 20), Policy::SeparateWithinJob.place(1, 5, 20));
}

#[test]
fn impossible_placements_are_rejected() {
    let refused = |policy: Policy, jobs, disks| policy.place(jobs, disks, 20).expect_err("a refusal");
    for policy in Policy::ALL {
        assert_eq!(refused(policy, 6, 5), PolicyError::MoreJobsThanDisks { jobs: 6, disks: 5 });
        assert_eq!(refused(policy, 0, 5), PolicyError::Nothing { jobs: 0, disks: 5 });
        assert_eq!(refused(policy, 1, 0), PolicyError::Nothing { jobs: 1, disks: 0 });
    }
    let text = refused(Policy::DedicatedWriteDisks, 5, 5).to_string();
    assert_eq!(
        text,
        "policy 1 (dedicated write disks) leaves 5 jobs on 5 disks without a disk to read from; expected at \
         least one more disk"
    );
    for policy in [Policy::SeparateWithinJob, Policy::SharedWithinJob] {
        assert_eq!(refused(policy, 1, 1), PolicyError::NoDiskToRead { policy, jobs: 1, disks: 1 });
    }
    assert_eq!(Policy::AllDisks.place(1, 1, 2).expect("one disk for all")[0].input, [0, 0]);
}

#[test]
fn policies_have_the_numbers_of_the_report() {
    for (number, policy) in (1..).zip(Policy::ALL) {
        assert_eq!((policy.number(), Policy::numbered(number)), (number, Some(policy)));
    }
    assert_eq!((Policy::numbered(0), Policy::numbered(5)), (None, None));
}

/// Generates numbers of jobs and disks that every policy can place.
fn systems() -> impl Strategy<Value = (usize, usize)> {
    (2_usize..12).prop_flat_map(|disks| (1..disks, Just(disks)))
}

proptest! {
    #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(1996), ..ProptestConfig::default() })]

    #[test]
    fn every_run_lies_on_a_disk_and_no_disk_has_two_outputs((jobs, disks) in systems(), runs in 0_usize..60) {
        for policy in Policy::ALL {
            let placed = policy.place(jobs, disks, runs).expect("a placement");
            prop_assert_eq!(placed.len(), jobs);
            for (number, job) in placed.iter().enumerate() {
                prop_assert_eq!((job.output, job.input.len()), (number, runs));
                prop_assert!(job.input.iter().all(|&disk| disk < disks));
            }
        }
    }

    /// The numbers of input runs of a job on its disks differ by at most one.
    #[test]
    fn the_runs_of_a_job_are_spread_evenly((jobs, disks) in systems(), runs in 0_usize..60) {
        for policy in Policy::ALL {
            let read_from = match policy {
                Policy::DedicatedWriteDisks => disks - jobs,
                Policy::SeparateWithinJob | Policy::SharedWithinJob => disks - 1,
                Policy::AllDisks => disks,
            };
            for job in policy.place(jobs, disks, runs).expect("a placement") {
                let counts = counts(&job, disks);
                let used = counts.iter().filter(|&&count| count > 0).count();
                prop_assert_eq!(used, read_from.min(runs), "{} {:?}", policy, &counts);
                let least = if runs < read_from { 1 } else { runs / read_from };
                prop_assert!(counts.iter().all(|&count| count == 0 || count == least || count == least + 1));
            }
        }
    }

    /// A race needs separate input and output disks. Policies 1 and 2 have separate disks, policies 3 and 4 do not.
    #[test]
    fn only_by_policies_3_and_4_jobs_read_from_their_output_disks((jobs, disks) in systems(), rounds in 1_usize..5) {
        for policy in Policy::ALL {
            let shares = match policy {
                Policy::DedicatedWriteDisks | Policy::SeparateWithinJob => false,
                Policy::SharedWithinJob => jobs > 1,
                Policy::AllDisks => true,
            };
            for job in policy.place(jobs, disks, rounds * disks).expect("a placement") {
                prop_assert_eq!(job.reads_where_it_writes(), shares, "{}", policy);
            }
        }
    }

    /// Policy 3 permutes the runs of policy 2: with equal numbers of jobs and disks, each disk has the same load with
    /// both.
    #[test]
    fn policies_2_and_3_load_the_disks_equally(disks in 2_usize..12, rounds in 1_usize..5) {
        let load = |policy: Policy| {
            let placed = policy.place(disks, disks, rounds * (disks - 1)).expect("a placement");
            (0..disks)
                .map(|disk| placed.iter().map(|job| job.runs_on(disk).count()).sum::<usize>())
                .collect::<Vec<_>>()
        };
        prop_assert_eq!(load(Policy::SharedWithinJob), load(Policy::SeparateWithinJob));
        prop_assert_eq!(load(Policy::SharedWithinJob), vec![rounds * (disks - 1); disks]);
    }
}
