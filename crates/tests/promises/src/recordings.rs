//! Promises about recordings of I/O nodes' activities.

use std::cell::RefCell;
use std::rc::Rc;

use fs::protocol::RECORDED_BYTES_MAX;
use fs::{Client, FailureKind, NodeRecording, Result, Threads};
use machine::conformance::Testbed;
use machine::{Duration, Machine, NodeId, NoteRing};
use trace::{NoteKind, Timeline};

use super::faulty::Faulty;
use super::{BLOCK, Base, contents, created, opened, read, run, small, start, write};

/// Offset of the I/O nodes' clocks.
const AHEAD: Duration = Duration::from_secs(3600);

/// Tolerance for clocks: the wall clock and the monotonic clock are read one after the other, and a busy computer may
/// delay the second read.
const SLACK: Duration = Duration::from_secs(1);

type Recordings = Vec<(NodeId, Result<NodeRecording>)>;

/// Returns the trace of a recording, and a function that counts the spans of a state.
fn understood(recording: &NodeRecording) -> (Timeline, impl Fn(&str) -> usize) {
    let timeline = trace::read("recording", &*recording.section).expect("a trace");
    let states: Vec<String> =
        timeline.spans.state.iter().map(|state| timeline.states[*state as usize].name.clone()).collect();
    (timeline, move |name: &str| states.iter().filter(|state| *state == name).count())
}

fn all_refused(recordings: Recordings) -> bool {
    recordings
        .iter()
        .all(|(_, outcome)| outcome.as_ref().is_err_and(|error| error.is_remote(FailureKind::Invalid)))
}

/// Two I/O nodes, whose clocks are ahead, record from the request of one client until the request of another. The
/// recordings contain exactly the spans of the requests in between, and the actual offsets of the clocks.
pub fn io_nodes_record_their_activities_on_request(testbed: &impl Testbed, base: Base) {
    run(testbed, 4, move |nodes| async move {
        let nodes = Faulty::all(nodes);
        nodes[..2].iter().for_each(|node| node.faults().ahead.set(AHEAD));
        let clients = start(base, &nodes, 2, small(base, Threads::Pool(4))).await;
        assert!(all_refused(clients[0].stop_recording().await), "no recording runs");
        let file = created(&clients[0], 1).await;
        clients[0].start_recording().await.expect("no recording runs");
        let data = contents(400 * BLOCK);
        write(&file, 0, &data).await;
        assert!(read(&file, 0, 400 * BLOCK).await == data);
        let recordings = clients[1].stop_recording().await;
        assert_eq!(recordings.len(), 2);
        for (node, recording) in recordings {
            let recording = recording.unwrap_or_else(|error| panic!("{node}: {error}"));
            let (timeline, count) = understood(&recording);
            // The recording does not contain the clients' side of requests, so these two kinds of notes are expected.
            let is_odd = |kind| !matches!(kind, NoteKind::Unfinished | NoteKind::FlowUnmatched);
            assert!(!timeline.notes.iter().any(|note| is_odd(note.kind)), "{:?}", timeline.notes);
            assert_eq!([count("serve: write"), count("serve: read")], [200, 200]);
            assert_eq!([count("serve: attach"), count("serve: describe")], [0, 0]);
            let bytes = recording.section.len();
            assert!((RECORDED_BYTES_MAX..timeline.spans.len() * 256).contains(&bytes), "{bytes} bytes");
            let clock = recording.clock;
            let wrong = clock.offset_ns.saturating_add_unsigned(AHEAD.as_nanos()).unsigned_abs();
            assert!(wrong <= clock.uncertainty_ns + SLACK.as_nanos(), "{clock:?}");
        }
        assert!(nodes.iter().all(|node| !node.notes().is_on()), "it has ended");
        assert!(all_refused(clients[1].stop_recording().await), "it has ended");
        restart_a_recording(&clients[0]).await;
        refuse_a_second_recording(&clients[0], &nodes).await;
    });
}

/// A restarted recording contains later events only.
async fn restart_a_recording<M: Machine>(client: &Client<M>) {
    client.start_recording().await.expect("no recording runs");
    client.list_numbered().await.expect("listed");
    client.start_recording().await.expect("it is restarted");
    opened(client, 1).await;
    for (_, recording) in client.stop_recording().await {
        let recording = recording.expect("recorded");
        let (_, count) = understood(&recording);
        assert_eq!([count("serve: list stripes"), count("serve: attach")], [0, 1]);
    }
}

/// If one of the nodes is already being recorded, this recording continues, and no new recording begins.
async fn refuse_a_second_recording<M: Machine>(client: &Client<M>, nodes: &[M]) {
    let other = Rc::new(RefCell::new(NoteRing::new(1000)));
    nodes[1].notes().record(other.clone());
    let refused = client.start_recording().await.expect_err("one is recorded");
    assert!(refused.is_remote(FailureKind::Invalid) && refused.node() == Some(nodes[1].node()), "{refused}");
    assert!(!nodes[0].notes().is_on() && nodes[1].notes().is_on());
    assert!(all_refused(client.stop_recording().await), "no recording was started");
    let before = other.borrow().notes().len();
    client.list_numbered().await.expect("listed");
    assert!(other.borrow().notes().len() > before, "the other recording continues");
    nodes[1].notes().stop();
}
