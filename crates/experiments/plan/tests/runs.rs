//! Tests of runs of plans: they are independent of the number of threads, run each trial once, and keep all results
//! even after a failure or an early end.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use plan::{
    Journal, JournalError, PlacementCase, Plan, PlannedTrial, Progress, cell_table, execute, results, shard,
    trial_table, trials,
};

fn plan(text: &str) -> Plan {
    let text = format!("trials = 2\nfile_size = \"512 KiB\"\ncontents = \"phantom\"\n{text}");
    Plan::parse(&text, "p.toml").unwrap_or_else(|error| panic!("{error}"))
}

fn small() -> Plan {
    plan(
        "name = \"small\"\npatterns = [\"rb\", \"wcc\"]\nlayout = \"random\"\n[[variant]]\nname = \"tpfs\"\n\
        method = \"traditional\"\n[[variant]]\nname = \"ddio\"\nmethod = \"disk-directed\"\n",
    )
}

fn run(planned: &[PlannedTrial<'_>], journal: &mut Journal) -> usize {
    let ran = AtomicUsize::new(0);
    let before = journal.len();
    let failures = execute(planned, journal, 2, &|| false, &|progress: Progress| {
        ran.fetch_max(progress.trials_done, Ordering::Relaxed);
    });
    assert!(failures.expect("a journal").is_empty());
    assert_eq!(ran.load(Ordering::Relaxed), planned.len());
    journal.len() - before
}

fn csv(table: &plan::ResultTable) -> String {
    let mut bytes = Vec::new();
    table.write_csv(&mut bytes).expect("memory");
    String::from_utf8(bytes).expect("text")
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let plans = [small()];
    let tables = [1, 3].map(|threads| {
        let mut journal = Journal::in_memory();
        execute(&trials(&plans), &mut journal, threads, &|| false, &|_| {}).expect("it runs");
        csv(&trial_table(&results(&plans, &journal)))
    });
    assert_eq!(tables[0], tables[1]);
    assert_eq!(tables[0].lines().count(), 1 + 4 * 2);
}

#[test]
fn equal_trials_of_all_plans_are_run_once() {
    let twin =
        "name = \"twin\"\npatterns = [\"wcc\", \"rc\"]\nmethod = \"disk-directed\"\nlayout = \"random\"\n";
    let plans = [small(), plan(twin), plan(&twin.replace("twin", "twin again"))];
    let planned = trials(&plans);
    // Pattern wcc of the second plan is also in the first plan, and the third plan equals the second.
    assert_eq!(planned.len(), 2 * (4 + 1));
    assert!(planned.is_sorted_by_key(|one| std::cmp::Reverse(one.cost)));
    let mut journal = Journal::in_memory();
    assert_eq!(run(&planned, &mut journal), 10);
    assert!(results(&plans, &journal).iter().all(plan::CellResult::is_complete));
    let other_seed = [plan(&format!("seed = 2\n{twin}"))];
    assert_eq!(run(&plan::trials(&other_seed), &mut journal), 4);
}

/// A trial runs the description in its key, even if the file of a disk is edited after the plan was read.
#[test]
fn a_plan_keeps_the_disk_that_it_has_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("disk.toml");
    let disk = include_str!("../../../../machines/disks/streaming-20.toml");
    fs::write(&path, disk).expect("a file");
    let text = format!(
        "name = \"x\"\npatterns = [\"rb\"]\nmethod = \"disk-directed\"\nset = {{ \"disks.model\" = \"{}\" }}\n",
        path.display()
    );
    let (plans, mut journals) = ([plan(&text)], [Journal::in_memory(), Journal::in_memory()]);
    let measured = |journal: &mut Journal| {
        run(&trials(&plans), journal);
        csv(&trial_table(&results(&plans, journal)))
    };
    let before = measured(&mut journals[0]);
    fs::write(&path, disk.replace("20 MiB/s\", source", "5 MiB/s\", source")).expect("a file");
    assert_eq!(measured(&mut journals[1]), before);
    fs::remove_file(&path).expect("it exists");
    assert_eq!(run(&trials(&plans), &mut journals[0]), 0, "the keys are the same");
}

/// A copy is an interleave of two disks. So the experiments are equal, and the keys of their trials are equal, too.
#[test]
fn equal_jobs_of_different_kinds_have_equal_keys_and_results() {
    let measured = |kind: &str| {
        let text =
            format!("name = \"x\"\nkind = \"{kind}\"\njobs = 2\ndisks = 2\nrun_blocks = 500\ntrials = 1\n");
        let plans = [Plan::<PlacementCase>::parse(&text, "p.toml").unwrap_or_else(|error| panic!("{error}"))];
        let (planned, mut journal) = (trials(&plans), Journal::in_memory());
        run(&planned, &mut journal);
        (planned[0].key, journal.get(planned[0].key).expect("it is run").clone())
    };
    let (copy, interleave) = (measured("copy"), measured("interleave"));
    assert!(copy.1.placed.as_ref().is_some_and(|placed| placed.backlogs.len() == 2));
    assert_eq!(copy, interleave);
}

#[test]
fn a_journal_with_a_torn_last_line_is_continued() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("journal.jsonl");
    let plans = [small()];
    let planned = trials(&plans);
    let reference = {
        let mut journal = Journal::open(&path).expect("a new journal");
        assert_eq!(run(&planned, &mut journal), 8);
        assert!(matches!(Journal::open(&path), Err(JournalError::InUse(_))));
        csv(&cell_table(&results(&plans, &journal)))
    };
    let whole = fs::read(&path).expect("the journal");
    let line = whole.iter().position(|&byte| byte == b'\n').expect("lines");
    for kept in [0, 1, line, line + 1, line + 40, whole.len() - 1, whole.len()] {
        fs::write(&path, &whole[..kept]).expect("the journal");
        let lines = if kept == line || kept + 1 == whole.len() { 1 } else { 0 }
            + whole[..kept].iter().filter(|&&byte| byte == b'\n').count();
        for (missing, damaged) in [(8 - lines, None), (0, Some(()))] {
            let mut journal = Journal::open(&path).expect("the journal");
            assert_eq!(run(&planned, &mut journal), missing, "{kept} bytes kept");
            assert_eq!(csv(&cell_table(&results(&plans, &journal))), reference, "{kept} bytes kept");
            assert!(damaged.is_none() || journal.damaged() <= 1);
        }
    }
}

#[test]
fn a_file_that_is_no_journal_is_rejected_and_unchanged() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("nvme.toml");
    for text in
        ["name = \"nvme\"\n", "{\n  \"program\": 1\n}\n", "\n\nelapsed,trial\n", "{\"program\":1}\n", "\0"]
    {
        fs::write(&path, text).expect("a file");
        assert!(matches!(Journal::open(&path), Err(JournalError::NotAJournal(_))), "{text:?}");
        assert!(matches!(Journal::in_memory().merge(&path), Err(JournalError::NotAJournal(_))), "{text:?}");
        assert_eq!(fs::read_to_string(&path).expect("the file"), text);
    }
    fs::write(&path, "").expect("a file");
    assert!(Journal::open(&path).is_ok(), "an empty file becomes a journal");
}

#[test]
fn trials_of_another_program_are_reported_and_run_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("journal.jsonl");
    let plans = [small()];
    run(&trials(&plans), &mut Journal::open(&path).expect("a new journal"));
    let text = fs::read_to_string(&path).expect("the journal");
    fs::write(&path, text.replace(plan::PROGRAM, "0.0.1+other")).expect("the journal");
    let mut journal = Journal::open(&path).expect("the journal");
    assert_eq!((journal.len(), journal.foreign(), journal.damaged()), (0, 8, 0));
    assert_eq!(run(&trials(&plans), &mut journal), 8);
}

#[test]
fn contradictory_results_of_one_trial_are_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("journal.jsonl");
    let plans = [small()];
    run(&trials(&plans)[..1], &mut Journal::open(&path).expect("a new journal"));
    let line = fs::read_to_string(&path).expect("the journal");
    let mut file = fs::OpenOptions::new().append(true).open(&path).expect("the journal");
    write!(file, "{}", line.replace("\"elapsed_ns\":", "\"elapsed_ns\":1")).expect("the journal");
    assert!(matches!(Journal::open(&path), Err(JournalError::Contradiction { .. })));
}

#[test]
fn shards_have_each_trial_once_and_their_journals_merge() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |index: usize| folder.path().join(format!("{index}.jsonl"));
    let plans = [small()];
    let mut keys = Vec::new();
    for index in 0..3 {
        let shard = shard(trials(&plans), index, 3);
        keys.extend(shard.iter().map(|one| one.key));
        run(&shard, &mut Journal::open(&path(index)).expect("a new journal"));
    }
    keys.sort();
    let mut all: Vec<_> = trials(&plans).iter().map(|one| one.key).collect();
    all.sort();
    assert_eq!(keys, all);
    let merged = |order: &[usize]| {
        let mut journal = Journal::in_memory();
        order.iter().for_each(|&index| journal.merge(&path(index)).expect("a journal"));
        csv(&cell_table(&results(&plans, &journal)))
    };
    let mut whole = Journal::in_memory();
    run(&trials(&plans), &mut whole);
    let reference = csv(&cell_table(&results(&plans, &whole)));
    for order in [&[0, 1, 2][..], &[2, 0, 1, 0, 2]] {
        assert_eq!(merged(order), reference);
    }
    assert!(Journal::in_memory().merge(Path::new("/nonexistent")).is_err());

    // Merge from text, without a file.
    let mut copy = Journal::in_memory();
    copy.merge_text(&whole.to_text(), "a text").expect("the text of a journal");
    copy.merge_text("torn", "a text").expect("invalid lines are skipped");
    assert!(copy.entries().eq(whole.entries()));
    assert_eq!(copy.damaged(), 1);
}

#[test]
fn a_failed_cell_does_not_affect_the_others() {
    let mut plans = [plan(
        "name = \"mixed\"\npatterns = [\"rb\"]\nmethod = \"disk-directed\"\n[[variant]]\nname = \"good\"\n\
        [[variant]]\nname = \"bad\"\n",
    )];
    // No parsed plan can have this case.
    plans[0].cells[1].case.problem.nodes = 3;
    let mut journal = Journal::in_memory();
    let failures = execute(&trials(&plans), &mut journal, 2, &|| false, &|_| {}).expect("a journal");
    assert_eq!(failures.len(), 2, "{failures:?}");
    assert!(failures[0].why.contains("3 compute nodes"), "{failures:?}");
    assert!(failures[0].what.contains("trial 0") && failures[1].what.contains("trial 1"), "{failures:?}");
    let results = results(&plans, &journal);
    let complete: Vec<_> = results.iter().map(plan::CellResult::is_complete).collect();
    assert_eq!(complete, [true, false]);
    assert_eq!(cell_table(&results).rows.len(), 1);
}

#[test]
fn no_trial_starts_after_a_stop() {
    let plans = [small()];
    let mut journal = Journal::in_memory();
    let done = AtomicUsize::new(0);
    let stop = || done.load(Ordering::Relaxed) >= 3;
    let count = |progress: Progress| done.store(progress.trials_done, Ordering::Relaxed);
    assert!(execute(&trials(&plans), &mut journal, 1, &stop, &count).expect("a journal").is_empty());
    assert_eq!(journal.len(), 3);
}

#[test]
fn utilisations_are_parts_of_the_measured_time() {
    let plans = [small()];
    let mut journal = Journal::in_memory();
    run(&trials(&plans), &mut journal);
    for result in results(&plans, &journal) {
        for (_, trial) in &result.trials {
            assert_eq!((trial.disks.parts, trial.buses.parts, trial.links.parts), (16, 16, 64));
            assert_eq!((trial.compute_processors.parts, trial.io_processors.parts), (16, 16));
            for busy in [trial.disks, trial.buses, trial.links, trial.compute_processors, trial.io_processors]
            {
                let mean = trial.mean_utilisation(busy).expect("parts");
                let most = trial.most_utilisation(busy).expect("parts");
                assert!(0.0 < mean && mean <= most && most <= 1.0, "{busy:?} of {}", trial.elapsed_ns);
            }
            // With random blocks, the disks are the bottleneck.
            assert!(trial.mean_utilisation(trial.disks) > Some(0.5), "{trial:?}");
        }
    }
}
