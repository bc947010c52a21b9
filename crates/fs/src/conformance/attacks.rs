//! What holds when a client does not do its part, by mistake or on purpose: others are served meanwhile, and what it
//! held comes back.

use machine::conformance::Testbed;
use machine::{Class, Delivery, Duration, Machine, Message, Net, NodeId, Payload};

use super::{BLOCK, contents, read, run, small, start, write};
use crate::protocol::{Fetch, Frame, MemoryId, Request};
use crate::{FileId, IoNodeSettings, Scheduling, Sharing, Threads};

/// How long the I/O nodes here wait for a client.
const PATIENCE: Duration = Duration::from_secs(1);

fn settings(sharing: Sharing) -> IoNodeSettings {
    IoNodeSettings {
        cache_blocks: 16,
        sharing,
        patience: Some(PATIENCE),
        ..small(Scheduling::CyclicScan, Threads::Pool(16))
    }
}

/// Sends a request to an I/O node, and leaves it at that.
async fn send(from: &impl Machine, to: NodeId, class: Class, tag: u64, request: Request, payload: Payload) {
    let header = Frame::Request(tag, request).encode();
    from.net().send(to, Message { class, header, payload }).await.expect("there is a connection");
}

/// A write whose data are to be fetched.
fn fetched_write(file: FileId, block: u64) -> Request {
    let fetch = Some(Fetch { memory: MemoryId::Request(1), offset: 0, bytes: BLOCK as u32 });
    Request::Write { file, stripe: 0, offset: block * BLOCK, fetch }
}

/// Receives, and answers nothing, until the other side has given this one up; says why that is.
async fn stay_silent(node: &impl Machine) -> String {
    loop {
        match node.net().receive().await {
            Ok((_, Delivery::Message(_))) => {}
            Ok((_, Delivery::Gone(why))) => return why,
            Err(error) => panic!("{error}"),
        }
    }
}

/// A client that has the data of its writes fetched and gives none keeps no thread that others need, and is given up;
/// then its blocks can be used again.
pub fn who_answers_nothing_keeps_nobody_waiting(testbed: &impl Testbed) {
    for sharing in [Sharing::Fair, Sharing::Arrival] {
        run(testbed, 3, move |nodes| async move {
            let clients = start(&nodes[..2], 1, settings(sharing)).await;
            let file = clients[0].create("served", FileId(1), BLOCK).await.expect("created");
            let begun = nodes[1].now();
            for block in 0..40 {
                let (target, request) = (nodes[0].node(), fetched_write(FileId(1), 100 + block));
                send(&nodes[2], target, Class::Demand, 1 + block, request, Payload::empty()).await;
            }
            // A command has no part in the threads: when it has been answered all of the above has come.
            clients[0].list().await.expect("served");
            write(&file, 0, &contents(4 * BLOCK)).await;
            assert!(read(&file, 0, 4 * BLOCK).await == contents(4 * BLOCK));
            let served = nodes[1].now().since(begun);
            stay_silent(&nodes[2]).await;
            let given_up = nodes[1].now().since(begun);
            // In the order of arrival threads do wait for it, but only as long as the I/O node has patience.
            assert!(sharing == Sharing::Arrival || served < given_up, "{served} and {given_up}");
            let bytes = (140 * BLOCK) as usize;
            assert!(read(&file, 0, 140 * BLOCK).await.len() < bytes, "nothing of what it had was written");
            write(&file, 0, &contents(140 * BLOCK)).await;
            assert!(read(&file, 0, 140 * BLOCK).await == contents(140 * BLOCK));
        });
    }
}

/// When a client is gone its fetches fail, what waits of it is thrown away, and all memory is there for others.
pub fn a_client_that_is_gone_leaves_nothing_behind(testbed: &impl Testbed) {
    run(testbed, 3, |nodes| async move {
        // Given up it will not be while this lasts: it goes by itself.
        let patience = Some(Duration::from_secs(600));
        let settings = IoNodeSettings { patience, ..settings(Sharing::Fair) };
        let clients = start(&nodes[..2], 1, settings).await;
        let file = clients[0].create("served", FileId(1), BLOCK).await.expect("created");
        let target = nodes[0].node();
        for tag in 1..=300 {
            let request = match tag % 3 {
                0 => fetched_write(FileId(1), tag),
                1 => Request::Write { file: FileId(1), stripe: 0, offset: 1000 * BLOCK, fetch: None },
                _ => Request::Read { file: FileId(1), stripe: 0, offset: 7, bytes: 30 },
            };
            let class = if tag % 5 == 0 { Class::Background } else { Class::Demand };
            send(&nodes[2], target, class, tag, request, contents(BLOCK).into()).await;
        }
        clients[0].list().await.expect("served");
        nodes[2].net().close();
        // A block that is pinned for a fetch could not be forgotten.
        file.truncate(0).await.expect("cut");
        write(&file, 0, &contents(40 * BLOCK)).await;
        assert!(read(&file, 0, 40 * BLOCK).await == contents(40 * BLOCK));
        clients[0].unlink("served").await.expect("removed");
    });
}
