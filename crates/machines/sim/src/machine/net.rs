//! Interface of a simulated node to its network: the stages of a message at its sender.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use description::Level;
use machine::{Delivery, Error, Message, NodeId, Result};

use crate::executor::WakerId;
use crate::network::{Injection, Network, Next};
use crate::trace::ProcessorActivity;
use crate::world::World;

/// Network interface of a simulated node.
#[derive(Clone)]
pub struct Net {
    world: Rc<World>,
    node: usize,
}

impl Net {
    pub(super) fn new(world: Rc<World>, node: usize) -> Self {
        Net { world, node }
    }
}

impl machine::Net for Net {
    // Inline this function, so that the future is built in its final place from parts in registers.
    #[inline(always)]
    fn send(&self, to: NodeId, message: Message) -> impl Future<Output = Result<()>> {
        let stage = match self.world.network.accept(self.node, to, message) {
            Ok(index) => Stage::Accepted { index },
            Err(error) => Stage::Refused(error),
        };
        Send { net: self, stage }
    }

    #[inline]
    fn receive(&self) -> impl Future<Output = Result<(NodeId, Delivery)>> {
        Receive { network: &self.world.network, node: self.node }
    }

    fn give_up(&self, peer: NodeId, why: &str) {
        self.world.network.give_up(&self.world.executor, self.node, peer, why);
    }

    fn close(&self) {
        self.world.network.close(&self.world.executor, self.node);
    }
}

/// Send of a message. The message is in the table from the call of `send` on.
struct Send<'a> {
    net: &'a Net,
    stage: Stage,
}

enum Stage {
    /// No work was done yet.
    Accepted {
        index: usize,
    },
    /// The send waits for the processor's work with this number.
    Charged {
        index: usize,
        work: u64,
    },
    /// The background message waits in the queue.
    Held {
        index: usize,
    },
    /// The message is in the fabric, but has not left its source completely.
    Leaving {
        departure: u64,
        scheduled: WakerId,
    },
    /// The send waits for the departure of the message, whose time is unknown, with this entry among the departures.
    Waiting {
        index: usize,
        departure: usize,
    },
    Refused(Box<Error>),
    Over,
}

impl Future for Send<'_> {
    type Output = Result<()>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        let Net { world, node } = self.net;
        let World { executor, processors, network, costs, .. } = &**world;
        match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Accepted { index } if costs.send_message == 0 => self.inject(index, context),
            Stage::Accepted { index } => {
                let work = processors.begin(executor, *node, costs.send_message, Level::Thread, context);
                if let Some(trace) = executor.trace() {
                    trace.ask(*node, work, ProcessorActivity::SendMessage(network.payload_bytes(index)));
                }
                self.stage = Stage::Charged { index, work };
                Poll::Pending
            }
            Stage::Charged { index, work } => {
                if processors.poll_work(*node, work, context).is_pending() {
                    self.stage = Stage::Charged { index, work };
                    return Poll::Pending;
                }
                if let Err(error) = network.check(index) {
                    network.discard(index);
                    return Poll::Ready(Err(error));
                }
                self.inject(index, context)
            }
            Stage::Held { index } => {
                self.stage = Stage::Held { index };
                let poll = self.inject(index, context);
                if !matches!(self.stage, Stage::Held { .. }) {
                    network.dequeue(index);
                }
                poll
            }
            Stage::Leaving { departure, scheduled } => {
                if executor.now() >= departure {
                    return Poll::Ready(Ok(()));
                }
                self.leave(departure, Some(scheduled), context)
            }
            Stage::Waiting { index, departure } => {
                if network.poll_departure(executor, departure, context.waker()) {
                    return Poll::Ready(Ok(()));
                }
                self.stage = Stage::Waiting { index, departure };
                Poll::Pending
            }
            Stage::Refused(error) => Poll::Ready(Err(error)),
            Stage::Over => panic!("a send polled after its end"),
        }
    }
}

impl Send<'_> {
    #[inline]
    fn inject(&mut self, index: usize, context: &Context<'_>) -> Poll<Result<()>> {
        let World { executor, network, .. } = &*self.net.world;
        match network.inject(executor, index) {
            Injection::Leaves(departure) if departure > executor.now() => {
                self.leave(departure, None, context)
            }
            Injection::Leaves(_) => {
                self.stage = Stage::Over;
                Poll::Ready(Ok(()))
            }
            Injection::Held { again } => {
                network.hold(executor, index, again, context.waker());
                self.stage = Stage::Held { index };
                Poll::Pending
            }
            Injection::Begun => {
                let departure = network.await_departure(index, context.waker());
                self.stage = Stage::Waiting { index, departure };
                Poll::Pending
            }
        }
    }

    fn leave(
        &mut self,
        departure: u64,
        scheduled: Option<WakerId>,
        context: &Context<'_>,
    ) -> Poll<Result<()>> {
        let waker = context.waker();
        if scheduled != Some(WakerId::of(waker)) {
            self.net.world.executor.schedule_wake(departure, waker);
        }
        self.stage = Stage::Leaving { departure, scheduled: WakerId::of(waker) };
        Poll::Pending
    }
}

impl Drop for Send<'_> {
    #[inline]
    fn drop(&mut self) {
        match self.stage {
            Stage::Accepted { index } | Stage::Charged { index, .. } => self.net.world.network.discard(index),
            Stage::Held { index } => {
                self.net.world.network.dequeue(index);
                self.net.world.network.discard(index);
            }
            Stage::Waiting { index, departure } => {
                self.net.world.network.forget_departure(index, departure);
            }
            Stage::Leaving { .. } | Stage::Refused(_) | Stage::Over => {}
        }
    }
}

struct Receive<'a> {
    network: &'a Network,
    node: usize,
}

impl Future for Receive<'_> {
    type Output = Result<(NodeId, Delivery)>;

    // Inline this function, so that the message is moved from the table directly to its place at the caller. Each
    // intermediate copy would read 64 bytes that were just written, and wait for the store buffer.
    #[inline(always)]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match self.network.next(self.node, context) {
            Next::Message(index) => Poll::Ready(Ok(self.network.take(index))),
            Next::Closed => Poll::Ready(Err(Error::Closed.into())),
            Next::NotYet => Poll::Pending,
        }
    }
}
