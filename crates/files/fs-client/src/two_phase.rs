//! Two-phase I/O (del Rosario, Bordawekar and Choudhary 1993): the compute nodes read or write the file in a
//! distribution that is efficient for the disks, and exchange the data among themselves.
//!
//! ```text
//!  read    each member reads one contiguous part | barrier | puts every piece of it where it belongs
//!  write   each member gets every piece of a contiguous part | barrier | writes that part
//! ```
//!
//! The contiguous parts are the *conforming* distribution: one block of records for each member. If the view is already
//! conforming, the members exchange no data. Each part is read or written by a single file request. All members enter
//! the same barriers, even after a failure: a member that has failed sends its failure with the next barrier, and all
//! members get it when they leave that barrier.

use layout::{Dimension, Extent, Piece, View};
use machine::{Machine, Memory, Payload};

use super::file::FlushScope;
use super::group_operation::{BarrierMembers, ExchangeMembers};
use super::{File, Group};
use crate::error::Result;
use crate::exchange::{Exchange, ExchangeGroup, Own};
use crate::protocol::{Direction, MemoryId};
use crate::settings::{TwoPhaseExchange, TwoPhaseFlush};

impl<M: Machine> File<M> {
    /// Does this member's work between the first and the last barrier. `id` is the number of the open memory.
    pub(super) async fn two_phase(
        &self,
        direction: Direction,
        group: &Group,
        view: &View,
        memory: &Memory,
        id: MemoryId,
        queued: bool,
    ) -> Result<()> {
        let conforming = conforming(view)?;
        let part = part(&conforming, group.rank as u32);
        if conforming.agrees_with(view) {
            let moved = self.transfer_part(direction, part, memory).await;
            return self.settle(direction, group, moved).await;
        }
        let staged = memory.another(part.bytes);
        let block_bytes = self.striping().block_bytes();
        let how = self.client.inner.settings.two_phase_exchange;
        let exchanging = ExchangeGroup {
            memory: id,
            members: group.members.to_vec(),
            own: Some(Own { memory: memory.clone(), exchange: how }),
            dimensions: 0,
            queue_buffers: queued.then_some(2 * group.members.len() as u64),
            queue_bytes: block_bytes,
        };
        let exchange = Exchange::new(self.client.inner.endpoint.clone(), exchanging);
        // In one-by-one mode a piece must not wait for the other pieces of its block, so one step covers the whole
        // part.
        let step = match how {
            TwoPhaseExchange::OneByOne if !queued => part.bytes.max(1),
            TwoPhaseExchange::OneByOne | TwoPhaseExchange::AllAtOnce => block_bytes,
        };
        let steps = (0..part.bytes).step_by(step as usize);
        let steps = steps.map(|at| Extent::new(part.offset + at, step).clip(part.end()));
        let pieces = |step| cut(view.pieces(step), block_bytes);
        match direction {
            Direction::Read => {
                let read = self.transfer_part(direction, part, &staged).await;
                group.enter_barrier_after(&self.client, read).await?;
                let _span = self.notes().span("exchange", || [("bytes", part.bytes)]);
                let mut put = Ok(());
                for step in steps {
                    let data = |piece: &Piece| staged.get(piece.file_offset - part.offset, piece.bytes);
                    put = exchange.put(pieces(step), data).await;
                    if put.is_err() {
                        break;
                    }
                }
                // Do this even after a failure: queued messages may still be in flight.
                put.and(exchange.finish().await)
            }
            Direction::Write => {
                let mut got = Ok(());
                let exchanging = self.notes().span("exchange", || [("bytes", part.bytes)]);
                for step in steps {
                    let place =
                        |piece: &Piece, data: &Payload| staged.place(piece.file_offset - part.offset, data);
                    got = exchange.get(pieces(step), place).await;
                    if got.is_err() {
                        break;
                    }
                }
                drop(exchanging);
                group.enter_barrier_after(&self.client, got).await?;
                let written = self.transfer_part(direction, part, &staged).await;
                self.settle(direction, group, written).await
            }
        }
    }

    async fn transfer_part(&self, direction: Direction, part: Extent, memory: &Memory) -> Result<()> {
        match direction {
            Direction::Read => self.read(part.offset, part.bytes, memory, 0).await.map(drop),
            Direction::Write => self.write(part.offset, part.bytes, memory, 0).await,
        }
    }

    /// Flushes the data of all members to stable storage after all members have written.
    ///
    /// Lost writes are reported to the member that made them.
    pub(super) async fn settle(
        &self,
        direction: Direction,
        company: &impl ExchangeMembers<M>,
        moved: Result<()>,
    ) -> Result<()> {
        if direction == Direction::Read {
            return moved;
        }
        company.enter_barrier_after(&self.client, moved).await?;
        match self.client.inner.settings.two_phase_flush {
            TwoPhaseFlush::First if company.rank() > 0 => Ok(()),
            TwoPhaseFlush::First => self.flush_of(FlushScope::Team(company.members())).await,
            TwoPhaseFlush::Each => self.flush().await,
        }
    }
}

/// Splits the pieces into pieces of at most one block.
fn cut(pieces: impl Iterator<Item = Piece>, block_bytes: u64) -> impl Iterator<Item = Piece> {
    pieces.flat_map(move |piece| {
        let starts = (0..piece.bytes).step_by(block_bytes as usize);
        starts.map(move |at| Piece {
            memory_offset: piece.memory_offset + at,
            file_offset: piece.file_offset + at,
            bytes: block_bytes.min(piece.bytes - at),
            ..piece
        })
    })
}

/// Returns the view in which each node has one contiguous part of the records.
fn conforming(view: &View) -> Result<View> {
    let records = view.file_bytes() / view.record_bytes();
    let nodes = view.nodes();
    Ok(View::new(view.record_bytes(), &[Dimension::block(records, nodes)], nodes)?)
}

/// Returns the contiguous part of a node. The part may be empty if there are fewer records than nodes.
fn part(conforming: &View, node: u32) -> Extent {
    conforming
        .chunks(node)
        .next()
        .map_or(Extent::new(0, 0), |chunk| Extent::new(chunk.file_offset, chunk.bytes))
}
