//! Requests of misbehaving clients, for promises and for measurements of their cost to other clients.

use fs::protocol::{
    BlockWrite, Collective, CollectiveId, Direction, Fetch, FileId, Frame, LockAnswer, LockChange, LockStep,
    MemoryId, OpenFor, Reply, Request, Selected, SelectedPart, Selecting, Selectors,
};
use fs::{LockMode, LockRange};
use layout::{Extent, Pattern, Problem, Selection};
use machine::{Class, Delivery, Machine, Message, Net, NodeId, Payload};
use namespace::{FileNumber, Location, TreeOperation};

/// Sends a request to an I/O node without receiving the answer.
///
/// # Panics
/// If there is no connection.
pub async fn send(
    from: &impl Machine,
    to: NodeId,
    class: Class,
    tag: u64,
    request: Request,
    payload: Payload,
) {
    let header = Frame::Request(tag, request).encode();
    from.net().send(to, Message { class, header, payload }).await.expect("there is a connection");
}

/// Sends a request without data to a node, and returns the answer.
///
/// # Panics
/// If the node disconnects, or sends another message.
pub async fn answer<M: Machine>(client: &M, node: NodeId, tag: u64, request: Request) -> Reply {
    send(client, node, Class::Demand, tag, request, Payload::empty()).await;
    next_reply(client, tag).await
}

/// Returns the next message, which is the answer to the request of this tag.
///
/// # Panics
/// If the next message is not this answer.
pub async fn next_reply<M: Machine>(client: &M, tag: u64) -> Reply {
    let (_, Delivery::Message(message)) = client.net().receive().await.expect("a connection") else {
        panic!("given up")
    };
    match Frame::decode(&message.header) {
        Ok(Frame::Reply(answered, reply)) if answered == tag => reply,
        other => panic!("{other:?}"),
    }
}

/// Returns a write to the first stripe of a file whose data the I/O node has to fetch.
pub fn fetched_write(file: FileId, to: Extent) -> Request {
    let fetch = Some(Fetch { memory: MemoryId::Request(1), offset: 0, bytes: to.bytes as u32 });
    Request::Write(BlockWrite { fetch, ..BlockWrite::new(file, 0, to.offset) })
}

/// Returns a request to read a file into the memories of members, each of which has records of `record_bytes` in turn.
///
/// # Panics
/// If records do not divide the file.
pub fn collective_read(
    file: FileId,
    file_bytes: u64,
    record_bytes: u64,
    queued: bool,
    members: Vec<u64>,
) -> Request {
    let problem = Problem::new(file_bytes, record_bytes, members.len() as u32);
    let view = "rc".parse::<Pattern>().and_then(|rc| rc.view(&problem)).expect("a view");
    let (direction, memory) = (Direction::Read, MemoryId::Request(1));
    Request::Collective(Box::new(Collective {
        file,
        direction,
        presort: true,
        queued,
        view,
        memory,
        members,
    }))
}

/// Returns the selection of every second byte of the first MiB.
///
/// # Panics
/// Never.
pub fn alternate_bytes() -> Selection {
    Selection::vector(Extent::new(0, 1), 1 << 19, 2).expect("a vector")
}

/// Returns requests of a member to select parts of a file, and at the end to write them.
pub fn selected_write(member: NodeId, file: FileId, parts: Vec<Selection>) -> Vec<Request> {
    let memory = MemoryId::Collective(CollectiveId { group: 5, operation: 1 });
    let count = parts.len() as u32;
    let select = |selection| {
        let part = SelectedPart { at: 0, selection, stripes: vec![0] };
        Request::Select(Box::new(Selecting { memory, file, parts: count, part }))
    };
    let write = Request::MoveSelected(Box::new(Selected {
        file,
        direction: Direction::Write,
        presort: true,
        queued: true,
        to_media: false,
        memory,
        selectors: Selectors::Members(vec![member.0]),
    }));
    parts.into_iter().map(select).chain([write]).collect()
}

/// Opens a file of a namespace, locks all of it for owner 1, and returns the lease.
///
/// # Panics
/// If the metadata server refuses.
pub async fn lock_of(client: &impl Machine, metadata_server: NodeId, path: &str, number: FileNumber) -> u64 {
    let look = TreeOperation::Look { at: Location::of_path(path), follow: true };
    let open = Request::Tree { operation: Box::new(look), hold: Some(OpenFor::Reading) };
    let opened = answer(client, metadata_server, 1, open).await;
    assert!(matches!(opened, Reply::Tree { .. }), "{opened:?}");
    match answer(client, metadata_server, 2, lock(0, number, 1, LockRange::WHOLE)).await {
        Reply::Lock(LockAnswer::Done { lease }) => lease,
        other => panic!("{other:?}"),
    }
}

/// Returns a request for a shared lock on part of a file.
pub fn lock(lease: u64, number: FileNumber, owner: u64, range: LockRange) -> Request {
    let step = LockStep::Set(LockMode::Shared);
    Request::Lock { lease, change: Some(LockChange { number, owner, range, step, claims: false }) }
}
