//! Limits the commands of clients, which are all requests except block requests: their memory, and the number of
//! commands that are served at a time.
//!
//! ```text
//!  request --> enter: a share of the memory --> turn: a share of those served --> served --> answer leaves
//!                  \--> refused                 as a request, not yet a future
//! ```
//!
//! - A command that waits for its turn is stored only as the request. The future that serves it, which is ten times as
//!   large, is created when its turn comes. The turn lasts until the answer, which is at most one message header, has
//!   been sent.
//! - A command that waits for other clients, for example at a barrier, needs no turn, since it could hold the turn
//!   indefinitely. Its future is small, and the memory of the future is counted with the request.

use machine::{Condition, NodeId};

use super::client_account::Account;
use super::client_quotas::{Share, Shares};
use crate::error::Failure;
use crate::protocol::Request;

/// Memory in bytes for commands: the guaranteed amount of each client, and the amount for all clients beyond that.
const MEMORY: (u64, u64) = (128 << 10, 32 << 20);

/// Bytes counted for a command in addition to its header: its task, and the future of a command without a
/// turn.
const COMMAND_BYTES: u64 = 4096;

/// Maximum number of bytes in memory for each byte of an encoded header: a number encoded in one byte needs eight bytes
/// in memory, and small items become fields of larger types.
const DECODED: u64 = 16;

/// Number of commands that are served at a time: the guaranteed number of each client, and the number for all clients
/// beyond that. A command, with its future and an answer that fills a header, needs less than 100 KiB.
const SERVED: (u64, u64) = (1, 512);

pub(super) struct Commands {
    memory: Shares,
    served: Shares,
    /// Woken when a command has been served, or a client has disconnected.
    changed: Condition,
}

/// A command's turn. Dropping the value ends the turn.
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

    /// Reserves memory for a command of a client, unless the client has reached its limit.
    pub(super) fn enter(&self, client: NodeId, header_bytes: u64) -> Option<Share> {
        self.memory.try_take(client, COMMAND_BYTES + DECODED * header_bytes)
    }

    /// Waits until a command of a client can be served, after the client's earlier commands. Fails if the client
    /// disconnects before.
    pub(super) async fn turn(
        &self,
        client: NodeId,
        account: &Account,
    ) -> Result<CommandTurn<'_>, Box<Failure>> {
        let _first = account.first_command.take().await;
        loop {
            machine::sometimes!("a client disconnects while its command waits", if account.is_over());
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

/// True if a command needs no turn: commands that can wait for other clients, and commands that never wait.
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
