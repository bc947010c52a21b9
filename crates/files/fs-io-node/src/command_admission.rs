//! Commands of clients, which are all requests except block requests: their memory, and the number served at
//! a time.
//!
//! ```text
//!  request --> enter: a share of the memory --> turn: a share of those served --> served --> answer leaves
//!                  \--> refused                 as a request, not yet a future
//! ```
//!
//! - A command that waits for its turn is stored as the request alone. The future that serves it, ten times
//!   as large, is created at its turn. Its answer, at most one message header, belongs to the turn until it
//!   has left.
//! - A command that waits for other clients, for example at a barrier, has no turn, since it might hold the
//!   turn indefinitely. Its future is small, and its memory is counted with its request.

use machine::{Condition, NodeId};

use super::client_account::Account;
use super::client_quotas::{Share, Shares};
use crate::error::Failure;
use crate::protocol::Request;

/// Memory in bytes for commands: of each client in any case, and of all clients beyond that.
const MEMORY: (u64, u64) = (128 << 10, 32 << 20);

/// Bytes counted for a command in addition to its header: its task, and the future of a command without a
/// turn.
const COMMAND_BYTES: u64 = 4096;

/// Limit of bytes in memory for each byte of an encoded header: a number of one byte becomes one of eight,
/// and small items become fields of larger types.
const DECODED: u64 = 16;

/// Limit of commands served at a time: of each client in any case, and of all clients beyond that. With its
/// future and an answer that fills a header each takes less than 100 KiB.
const SERVED: (u64, u64) = (1, 512);

pub(super) struct Commands {
    memory: Shares,
    served: Shares,
    /// Woken when a command has been served, or a client has disconnected.
    changed: Condition,
}

/// A command's turn, until this is dropped.
pub(super) struct CommandTurn<'a> {
    share: Option<Share>,
    changed: &'a Condition,
}

impl Drop for CommandTurn<'_> {
    fn drop(&mut self) {
        self.share.take();
        self.changed.wake_all();
    }
}

impl Commands {
    pub(super) fn new() -> Self {
        Commands {
            memory: Shares::new(MEMORY.0, MEMORY.1),
            served: Shares::new(SERVED.0, SERVED.1),
            changed: Condition::new(),
        }
    }

    /// Reserves memory for a command of a client, if the client may have one more.
    pub(super) fn enter(&self, client: NodeId, header_bytes: u64) -> Option<Share> {
        self.memory.try_take(client, COMMAND_BYTES + DECODED * header_bytes)
    }

    /// Waits until a command of a client may be served, after its earlier ones. Fails if the client
    /// disconnects before.
    pub(super) async fn turn(
        &self,
        client: NodeId,
        account: &Account,
    ) -> Result<CommandTurn<'_>, Box<Failure>> {
        let _first = account.first_command.take().await;
        loop {
            account.check()?;
            let share = self.served.try_take(client, 1);
            if share.is_some() {
                return Ok(CommandTurn { share, changed: &self.changed });
            }
            self.changed.wait().await;
        }
    }

    /// Wakes waiting commands, so that those of a disconnected client fail.
    pub(super) fn client_disconnected(&self) {
        self.changed.wake_all();
    }
}

/// True if a command needs no turn: it may wait for other clients, or waits for nothing.
pub(super) fn needs_no_turn(command: &Request) -> bool {
    matches!(
        command,
        Request::Join { .. }
            | Request::Gather { .. }
            | Request::EnterBarrier { .. }
            | Request::Leave { .. }
            | Request::FormTeam { .. }
            | Request::Collective(_)
            | Request::MoveListed(_)
            | Request::MoveSelected(_)
            | Request::Lock { change: None, .. }
            | Request::Promote { .. }
    )
}
