//! Commands of clients, anything but block requests: their memory, and how many are served at a time.
//!
//! ```text
//!  request --> enter: a share of the memory --> turn: a share of those served --> served --> answer leaves
//!                  \--> refused                 as a request, not yet a future
//! ```
//!
//! - A command that waits for its turn is the request alone. The future that serves it, ten times as large, is made at
//!   its turn, and its answer, a message's header at most, belongs to the turn until it has left.
//! - A command that waits for other clients, to meet them for instance, has no turn: that could be for as long as they
//!   like. Its future is small, and counted with its request.

use machine::{Condition, NodeId};

use super::account::Account;
use super::shares::{Share, Shares};
use crate::error::Failure;
use crate::protocol::Request;

/// Memory in bytes of the commands of each client in any case, and of all clients beyond that.
const MEMORY: (u64, u64) = (128 << 10, 32 << 20);

/// The bytes that a command is counted for without its header: its task, and the future of one that has no turn.
const COMMAND_BYTES: u64 = 4096;

/// The bytes that a byte of a header stands for when it is decoded, at most: a number of one byte is one of eight, and
/// small things come in larger ones.
const DECODED: u64 = 16;

/// Commands served at a time: of each client in any case, and of all clients beyond that. With its future and an answer
/// that fills a header each has less than 100 KiB.
const SERVED: (u64, u64) = (1, 512);

/// The commands of all clients.
pub(super) struct Commands {
    memory: Shares,
    served: Shares,
    /// Woken when a command has been served, or a client is gone.
    changed: Condition,
}

/// A command's turn, until it is dropped.
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

    /// Takes memory for a command of a client, if it may have one more.
    pub(super) fn enter(&self, client: NodeId, header_bytes: u64) -> Option<Share> {
        self.memory.try_take(client, COMMAND_BYTES + DECODED * header_bytes)
    }

    /// Waits until a command of a client may be served, behind its earlier ones. Fails if the client is gone before.
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

    /// Notes that a client is gone: its commands that wait for their turn give up.
    pub(super) fn client_gone(&self) {
        self.changed.wake_all();
    }
}

/// Whether a command may wait for other clients, or for nothing: it has no turn.
pub(super) fn needs_no_turn(command: &Request) -> bool {
    matches!(
        command,
        Request::Join { .. }
            | Request::Gather { .. }
            | Request::Meet { .. }
            | Request::Leave { .. }
            | Request::FormTeam { .. }
            | Request::Collective(_)
            | Request::MoveListed(_)
            | Request::MoveSelected(_)
            | Request::Lock { change: None, .. }
            | Request::Promote { .. }
    )
}
