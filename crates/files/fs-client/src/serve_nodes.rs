//! Serves other nodes at a compute node. I/O nodes write data into its open memory and read data from it. The node
//! takes part in flushes of write caches, and coordinates the barriers of groups whose first member it is.

use std::rc::Rc;

use machine::{Machine, Memory, Message, NodeId, Payload, Work};

use super::ClientInner;
use crate::endpoint::{Caller, RequestHandler};
use crate::error::Failure;
use crate::protocol::{MemoryId, Reply, Request};

impl<M: Machine> RequestHandler for ClientInner<M> {
    async fn handle(
        self: &Rc<Self>,
        caller: Caller,
        request: Request,
        payload: Payload,
    ) -> machine::Result<()> {
        let machine = self.endpoint.machine();
        let about = || [("node", caller.node.0), ("bytes", payload.len())];
        let span = machine.notes().span(request.spans().serve, about);
        machine.notes().received(span.place(), || caller.question());
        match request {
            Request::Memput { memory, offset } => {
                machine.compute(Work::HandleMemput { bytes: payload.len() }).await;
                let outcome = self.memory(memory, offset, payload.len());
                let outcome = outcome.map(|memory| memory.place(offset, &payload));
                let outcome = outcome.map(|()| (Reply::Done, Payload::empty()));
                self.endpoint.reply(caller, outcome).await
            }
            Request::Memget { memory, offset, bytes } => {
                let bytes = u64::from(bytes);
                machine.compute(Work::HandleMemget { bytes }).await;
                let outcome = check_memget(bytes).and_then(|()| self.memory(memory, offset, bytes));
                let outcome = outcome.map(|memory| (Reply::Done, memory.get(offset, bytes)));
                // Reply in a separate task, as by DMA, so that the next request need not wait.
                let endpoint = self.endpoint.clone();
                machine.spawn("memget", async move { endpoint.reply(caller, outcome).await });
                Ok(())
            }
            Request::MemputPieces { memory, pieces } => {
                machine.compute(Work::HandleMemput { bytes: payload.len() }).await;
                machine.compute(Work::UnpackPieces { pieces: pieces.len() as u64 }).await;
                let outcome = self.scatter(memory, &pieces, &payload);
                self.endpoint.reply(caller, outcome.map(|()| (Reply::Done, Payload::empty()))).await
            }
            Request::MemgetPieces { memory, pieces } => {
                machine.compute(Work::HandleMemget { bytes: 0 }).await;
                machine.compute(Work::UnpackPieces { pieces: pieces.len() as u64 }).await;
                let outcome = self.gather(memory, &pieces);
                if let Ok(data) = &outcome {
                    machine.compute(Work::PackData { bytes: data.len() }).await;
                }
                self.endpoint.reply(caller, outcome.map(|data| (Reply::Done, data))).await
            }
            Request::FlushTogether { group, flush, file } => {
                if self.joining.count() == 0 {
                    let outcome = self.flush_together(group, flush, file);
                    return self.endpoint.reply(caller, outcome).await;
                }
                // The request may be of a job whose coordinator has just admitted this node.
                let client = self.clone();
                machine.spawn("flush after joining", async move {
                    client.joining.none().await;
                    let outcome = client.flush_together(group, flush, file);
                    client.endpoint.reply(caller, outcome).await
                });
                Ok(())
            }
            Request::EnterBarrier { barrier, step: None, failure, .. } => {
                self.enter(barrier, caller, failure).await
            }
            other => {
                let failure = Failure::invalid(format!("a compute node does not serve {other:?}"));
                self.endpoint.reply(caller, Err(failure.into())).await
            }
        }
    }

    fn peer_disconnected(self: &Rc<Self>, peer: NodeId) {
        self.disconnected.borrow_mut().insert(peer);
        *self.disconnects.borrow_mut().entry(peer).or_default() += 1;
        self.leave(peer);
        self.barrier_changed.wake_all();
        self.lost.wake_all();
    }
}

/// Memory that is open to other nodes until this is dropped.
#[must_use]
pub(super) struct OpenMemory<'a, M: Machine> {
    client: &'a ClientInner<M>,
    /// The name by which other nodes address it.
    pub(super) id: MemoryId,
}

impl<M: Machine> Drop for OpenMemory<'_, M> {
    fn drop(&mut self) {
        self.client.memories.borrow_mut().remove(&self.id);
    }
}

impl<M: Machine> ClientInner<M> {
    /// Opens memory to other nodes.
    pub(super) fn open_memory(&self, id: MemoryId, memory: &Memory) -> OpenMemory<'_, M> {
        self.memories.borrow_mut().insert(id, memory.clone());
        OpenMemory { client: self, id }
    }

    /// Opens memory for one file request of this node.
    pub(super) fn open_for_request(&self, memory: &Memory) -> OpenMemory<'_, M> {
        self.opened.set(self.opened.get() + 1);
        self.open_memory(MemoryId::Request(self.opened.get()), memory)
    }

    /// Writes the data of a queued Memput into memory.
    fn scatter(
        &self,
        id: MemoryId,
        pieces: &[(u64, u32)],
        data: &Payload,
    ) -> std::result::Result<(), Box<Failure>> {
        let named: u64 = pieces.iter().map(|&(_, bytes)| u64::from(bytes)).sum();
        if named != data.len() {
            return Err(
                Failure::invalid(format!("pieces of {named} bytes with data of {}", data.len())).into()
            );
        }
        let memory = self.opened_memory(id)?;
        let mut data = data.reader();
        for &(offset, bytes) in pieces {
            let bytes = u64::from(bytes);
            check_part(&memory, offset, bytes)?;
            memory.place(offset, &data.part(bytes));
        }
        Ok(())
    }

    /// Concatenates the data of a queued Memget.
    fn gather(&self, id: MemoryId, pieces: &[(u64, u32)]) -> std::result::Result<Payload, Box<Failure>> {
        let named: u64 = pieces.iter().map(|&(_, bytes)| u64::from(bytes)).sum();
        check_memget(named)?;
        let (memory, mut data) = (self.opened_memory(id)?, Payload::empty());
        for &(offset, bytes) in pieces {
            let bytes = u64::from(bytes);
            check_part(&memory, offset, bytes)?;
            data.push(&memory.get(offset, bytes));
        }
        Ok(data)
    }

    /// Returns the open memory of that name, if it contains the requested bytes.
    fn memory(&self, id: MemoryId, offset: u64, bytes: u64) -> std::result::Result<Memory, Box<Failure>> {
        let memory = self.opened_memory(id)?;
        check_part(&memory, offset, bytes)?;
        Ok(memory)
    }

    /// Returns the open memory of that name.
    fn opened_memory(&self, id: MemoryId) -> std::result::Result<Memory, Box<Failure>> {
        let memory = self.memories.borrow().get(&id).cloned();
        memory.ok_or_else(|| Failure::invalid(format!("{id:?} is not open")).into())
    }
}

fn check_part(memory: &Memory, offset: u64, bytes: u64) -> std::result::Result<(), Box<Failure>> {
    if memory.holds(offset, bytes) {
        return Ok(());
    }
    let length = memory.len();
    Err(Failure::invalid(format!("{bytes} bytes at {offset} of a memory of {length}")).into())
}

fn check_memget(bytes: u64) -> std::result::Result<(), Box<Failure>> {
    if bytes <= Message::PAYLOAD_BYTES_MAX {
        Ok(())
    } else {
        Err(Failure::invalid(format!("a Memget of {bytes} bytes is too long")).into())
    }
}
