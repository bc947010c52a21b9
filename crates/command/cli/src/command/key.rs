//! `starfish key`: creates, shows and replaces the cluster key.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use node::key;
use real::Keys;

use command_line::failure::{Failure, Result};
use transfer::local;

use crate::options::agents::KeyArgs;

/// Create, show or replace the cluster key.
///
/// Agents and clients can connect only if they have the same key. By default the key also encrypts their messages. The
/// first agent of a user creates the key, so this command is needed only for several computers, or to replace a key.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

const EXAMPLES: &str = "\
Examples:
  starfish key new                        on one computer; then copy the file to the others:
  scp -p ~/.config/starfish/key node2:.config/starfish/key
  starfish key show                       the name of the key, to compare computers
  starfish key rotate                     begin to replace the key
  starfish key rotate --finish            remove the old key";

#[derive(Subcommand)]
enum Action {
    /// Create a key, unless it exists.
    New(NewArguments),
    /// Show the file, name and purpose of the key. The key itself is not shown.
    Show(ShowArguments),
    /// Replace the key by a new one, in two steps, without stopping all agents and clients.
    ///
    /// After the first step the file contains both keys. Copy it to all computers, in any order, and restart their
    /// agents, one after the other (`agents down` and `agents up` for a set). A node with both keys accepts nodes with
    /// either key. Then `--finish` removes the old key; copy the file and restart the agents once more.
    Rotate(RotateArguments),
}

#[derive(Args)]
struct NewArguments {
    /// Do not encrypt connections with this key. Checksums detect damaged messages, but any computer on the network can
    /// read and change messages. Only for private networks.
    #[arg(long)]
    clear: bool,

    #[command(flatten)]
    key: KeyArgs,
}

#[derive(Args)]
struct ShowArguments {
    #[command(flatten)]
    key: KeyArgs,
}

#[derive(Args)]
struct RotateArguments {
    /// Remove the key that the last `rotate` replaced.
    #[arg(long)]
    finish: bool,

    #[command(flatten)]
    key: KeyArgs,
}

/// Runs the command.
pub(crate) fn run(arguments: Arguments) -> Result<()> {
    match arguments.action {
        Action::New(NewArguments { clear, key: named }) => {
            let path = file(&named)?;
            if !key::make(&path, !clear)? {
                let failure = Failure::new(path.display().to_string(), "it already contains a key");
                return Err(failure.remedy(
                    "Keep it; replace it with `starfish key rotate`; or name another file with --key FILE.",
                ));
            }
            show(path)
        }
        Action::Show(ShowArguments { key: named }) => show(file(&named)?),
        Action::Rotate(RotateArguments { finish, key: named }) => {
            let path = file(&named)?;
            if finish {
                key::finish_rotation(&path)?
            } else {
                key::rotate(&path)?
            };
            show(path)
        }
    }
}

fn file(named: &KeyArgs) -> Result<PathBuf> {
    Ok(key::path(named.file())?)
}

fn show(path: PathBuf) -> Result<()> {
    let Keys { current, previous, encrypts } = key::read(&path)?;
    let mut lines =
        vec![format!("file         {}", path.display()), format!("key          {}", current.name())];
    lines.extend(previous.map(|previous| format!("previous     {}, also accepted", previous.name())));
    let connections = if encrypts { "encrypted" } else { "clear, with checksums" };
    lines.push(format!("connections  {connections}"));
    local::print(lines)
}
