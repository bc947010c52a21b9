//! Teams of sessions on real agents on loopback.

use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use layout::{Extent, Selection};
use node::{CollectiveMethod, ErrorKind, OpenOptions, SelectedSettings, Session, Team};
use test_agents::Agents;

const BOTH: OpenOptions = OpenOptions::new().read(true).write(true).create(true);
const MEMBERS: u32 = 3;

/// Runs a function for each member of a team, in a separate thread and session.
fn in_team(agents: &Agents, name: &str, member: impl Fn(Session, Team) + Sync) {
    thread::scope(|scope| {
        for rank in 0..MEMBERS {
            let member = &member;
            scope.spawn(move || {
                let mut settings = agents.settings();
                settings.silence = Duration::from_secs(5);
                let session = Session::start(settings).expect("they are there");
                let team = session.team(name, rank, MEMBERS).expect("formed");
                assert_eq!((team.rank(), team.size()), (rank, MEMBERS));
                member(session, team);
            });
        }
    });
}

/// Returns every third record of eight bytes, beginning with record `rank`.
fn records(rank: u32, count: u64) -> Selection {
    Selection::vector(Extent::new(8 * u64::from(rank), 8), count, 8 * u64::from(MEMBERS)).expect("a vector")
}

fn contents(rank: u32, bytes: u64) -> Vec<u8> {
    (0..bytes).map(|at| (at * 7 + u64::from(rank) * 31 + (at >> 9)) as u8).collect()
}

#[test]
fn members_write_small_records_together_and_read_them() {
    let agents = Agents::start(3);
    let count = 50_000;
    in_team(&agents, "records", |session, team| {
        let file = session.open("records", BOTH).expect("opened");
        assert_eq!(team.gather(u64::from(team.rank()) * 5).wait(), Ok(vec![0, 5, 10]));
        let own = records(team.rank(), count);
        for round in 0..4 {
            let directed = SelectedSettings::default();
            let how = match round {
                0 | 1 => directed,
                _ => SelectedSettings { method: CollectiveMethod::TwoPhase, queued: round == 3, ..directed },
            };
            let bytes = contents(team.rank() + round, own.bytes());
            let to_media = round % 2 == 1;
            team.write(&file, own.clone(), bytes, SelectedSettings { to_media, ..how })
                .wait()
                .expect("written");
            // Calls are begun one after another, and completed in any order.
            let other = (team.rank() + 1) % MEMBERS;
            let reading = team.read(&file, records(other, count), how);
            let beyond = team.read(&file, records(0, count + 10), how);
            let barrier = team.barrier();
            assert_eq!(beyond.wait().expect("read"), contents(round, own.bytes()));
            assert_eq!(reading.wait().expect("read"), contents(other + round, own.bytes()));
            barrier.wait().expect("met");
            // Reading through the page cache returns the same data.
            let mut some = [0; 8];
            file.read_at(u64::from(other) * 8, &mut some).expect("read");
            assert_eq!(some[..], contents(other + round, 8));
        }
        assert_eq!(file.stat().expect("it is there").bytes, 8 * u64::from(MEMBERS) * count);
        file.flush().expect("flushed");
        file.close().expect("closed");
    });
}

#[test]
fn a_failed_call_fails_for_all_and_a_left_member_blocks_none() {
    let agents = Agents::start(2);
    in_team(&agents, "failing", |session, team| {
        let file = session.open("shared", BOTH).expect("opened");
        let own = records(team.rank(), 10);
        // First one member passes a byte too few; then one member has opened the file for reading only.
        let short = if team.rank() == 1 { 79 } else { 80 };
        let written = team.write(&file, own.clone(), vec![1; short], SelectedSettings::default()).wait();
        assert!(
            written
                .expect_err("one fails")
                .why()
                .contains("the buffer has 79 bytes, but the selection has 80")
        );
        let options = if team.rank() == 2 { OpenOptions::new().read(true) } else { BOTH };
        let other = session.open("shared", options).expect("opened");
        let written = team.write(&other, own.clone(), vec![1; 80], SelectedSettings::default()).wait();
        assert!(written.expect_err("one fails").to_string().contains("not open for writing"));
        team.write(&file, own.clone(), vec![1; 80], SelectedSettings::default())
            .wait()
            .expect("and now none does");
        if team.rank() > 0 {
            let error = team.barrier().wait().expect_err("one has left");
            assert_eq!(error.kind(), ErrorKind::Gone);
            assert!(error.why().contains("rank 0 of the team failing has left"), "{error}");
            assert_eq!(error.lost_rank(), Some(0));
        }
    });
}

#[test]
fn leaving_a_team_ends_its_own_wait_at_a_barrier() {
    let agents = Agents::start(2);
    let end = Barrier::new(MEMBERS as usize);
    in_team(&agents, "left", |_session, team| {
        if team.rank() == 0 {
            let barrier = team.barrier();
            team.leave().wait().expect("the agent is there");
            assert_eq!(barrier.wait().expect_err("the team is left").kind(), ErrorKind::Gone);
        }
        end.wait();
    });
}

#[test]
fn a_gather_during_a_write_of_others_is_out_of_step() {
    let agents = Agents::start(2);
    in_team(&agents, "apart", |session, team| {
        let file = session.open("apart", BOTH).expect("it is made once");
        let outcome = match team.rank() {
            0 => team.gather(0).wait().map(drop),
            rank => {
                team.write(&file, records(rank, 4), contents(rank, 32), SelectedSettings::default()).wait()
            }
        };
        let error = outcome.expect_err("they are out of step");
        assert!(
            error.why().ends_with("out of step: a barrier of rank 0 and a write of ranks 1, 2"),
            "{error}"
        );
        assert!(error.remedy().is_some_and(|remedy| remedy.contains("the same calls")), "{error}");
    });
}

#[test]
fn a_read_during_a_write_of_others_fails_and_nothing_is_written() {
    let agents = Agents::start(2);
    let directed = SelectedSettings::default();
    let two_phase = SelectedSettings { method: CollectiveMethod::TwoPhase, ..directed };
    for (name, how, expected) in [
        ("directed", directed, "a read of rank 0 and a write of ranks 1, 2"),
        ("two-phase", two_phase, "a read in two phases of rank 0 and a write in two phases of ranks 1, 2"),
    ] {
        in_team(&agents, name, |session, team| {
            let file = session.open(name, BOTH).expect("it is made once");
            let own = records(team.rank(), 4);
            let outcome = match team.rank() {
                0 => team.read(&file, own, how).wait().map(drop),
                rank => team.write(&file, own, contents(rank, 32), how).wait(),
            };
            let error = outcome.expect_err("they are out of step");
            assert_eq!(error.kind(), ErrorKind::Gone, "{error}");
            assert!(error.why().ends_with(&format!("out of step: {expected}")), "{error}");
            assert_eq!(file.stat().expect("it is there").bytes, 0);
        });
    }
}

#[test]
fn a_single_process_reads_and_writes_its_selection() {
    let agents = Agents::start(3);
    let session = Session::start(agents.settings()).expect("they are there");
    let file = session.open("alone", BOTH).expect("opened");
    file.write_at(0, vec![9; 100_000]).expect("written");
    let (team, own) = (session.team("alone", 0, 1).expect("formed"), records(1, 4000));
    let bytes = contents(1, own.bytes());
    file.begin_write_selected(own.clone(), bytes.clone()).wait().expect("written");
    assert_eq!(file.begin_read_selected(own.clone()).wait().expect("read"), bytes);
    assert_eq!(team.read(&file, own, SelectedSettings::default()).wait().expect("read"), bytes);
    let between = file.begin_read_selected(records(0, 4000)).wait().expect("read");
    assert_eq!(between, vec![9; 32_000]);
    assert_eq!(team.gather(5).wait(), Ok(vec![5]));
    let nothing = file.begin_read_selected(Selection::contiguous(Extent::new(0, 1 << 62)).expect("long"));
    assert!(nothing.wait().expect_err("too much").why().contains("not enough memory for"));
}
