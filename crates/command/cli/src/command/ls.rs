//! `starfish ls`: lists files.

use std::collections::BTreeMap;
use std::ffi::OsString;

use clap::{ArgAction, Args};
use command_line::TextTable;
use command_line::failure::Result;
use namespace::{Inode, InodeKind};
use nix::unistd::{Gid, Group, Uid, User};
use node::Size;
use serde::Serialize;
use transfer::globs;
use transfer::namespace::{FoundPath, Namespace, for_programs, kind_name, letter, shown, split};

use crate::options::agents::AgentsArgs;
use crate::output::date;
use crate::output::row_format::RowFormat;

/// List files on the agents.
///
/// Lists the named directories, or the root. The names of directories end with /. With -l, permissions, user, group,
/// size and time are shown, as by ls. Only the metadata server has to answer. `starfish stat` shows where the stripes
/// of a file are.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
// -h selects the format of sizes, as in ls.
#[command(disable_help_flag = true)]
pub(crate) struct Arguments {
    /// Paths of files or directories, or patterns of paths [default: the root].
    #[arg(value_name = "NAME")]
    names: Vec<OsString>,

    /// List permissions, users, sizes and times as well.
    #[arg(short, long)]
    long: bool,

    /// With -l, show sizes in units: 4.2 MiB.
    #[arg(short, long, requires = "long")]
    human_readable: bool,

    /// Also list names that begin with a dot.
    #[arg(short, long)]
    all: bool,

    /// Also list the contents of subdirectories, each file by its path.
    #[arg(short = 'R', long)]
    recursive: bool,

    /// Output format. CSV and JSON contain everything that -l shows, and have paths as names.
    #[arg(long, value_enum, default_value_t = RowFormat::Table)]
    format: RowFormat,

    #[command(flatten)]
    agents: AgentsArgs,

    /// Print help.
    #[arg(long, action = ArgAction::Help)]
    help: Option<bool>,
}

const EXAMPLES: &str = "\
Examples:
  starfish ls --agents node1:7117,node2:7117
  starfish ls -lh
  starfish ls -R results 'old/*.dat'
  starfish ls -R --format json | jq '.[] | select(.size > 1e9).path'";

/// Runs the command.
pub(crate) fn run(arguments: Arguments) -> Result<()> {
    let Arguments { names, long, human_readable, all, recursive, format, agents, help: _ } = arguments;
    let (listing, outcome) = agents.cluster()?.run_with_present(move |connection| async move {
        let shown = Shown { long, sizes: SizeStyle::of(human_readable), all, recursive };
        list(&Namespace::of(&connection).await?, &names, shown).await
    })?;
    format.print(&listing.rows(), |_| listing.lines())?;
    outcome
}

/// Format of sizes.
#[derive(Clone, Copy)]
enum SizeStyle {
    /// Number of bytes.
    Bytes,
    /// Rounded, with a unit.
    Rounded,
}

impl SizeStyle {
    fn of(human_readable: bool) -> SizeStyle {
        if human_readable { SizeStyle::Rounded } else { SizeStyle::Bytes }
    }

    fn text(self, bytes: u64) -> String {
        match self {
            SizeStyle::Bytes => bytes.to_string(),
            SizeStyle::Rounded => Size(bytes).rounded(),
        }
    }
}

/// Selection of columns and names.
#[derive(Clone, Copy)]
struct Shown {
    /// Show permissions, users, sizes and times.
    long: bool,
    /// Format of sizes.
    sizes: SizeStyle,
    /// Show names that begin with a dot.
    all: bool,
    /// Show the contents of subdirectories.
    recursive: bool,
}

/// Files and directories to list, with the format.
struct Listing {
    files: Vec<FoundPath>,
    /// Directories, each with the entries to list.
    directories: Vec<(FoundPath, Vec<FoundPath>)>,
    show: Shown,
}

/// Row for CSV and JSON.
#[derive(Serialize)]
struct PathRow {
    path: String,
    kind: &'static str,
    /// Size in bytes; for a directory, the number of its entries.
    size: u64,
    mode: String,
    user: String,
    group: String,
    modified: String,
}

/// Looks up these paths, by default the root, and lists directories. Also returns the outcome: the first
/// failure, if any.
async fn list(namespace: &Namespace, names: &[OsString], show: Shown) -> Result<(Listing, Result<()>)> {
    let (mut files, mut directories, mut outcome) = (Vec::new(), Vec::new(), Ok(()));
    if names.is_empty() {
        directories.push(FoundPath { path: Vec::new(), ..namespace.look(b"/").await? });
    }
    for name in names {
        match globs::found(namespace, name, !show.long).await {
            Ok(found) => {
                let (inner, outer): (Vec<_>, Vec<_>) =
                    found.into_iter().partition(|found| found.inode.is_directory());
                directories.extend(inner);
                files.extend(outer);
            }
            Err(failure) => failure.join(&mut outcome),
        }
    }
    let mut listing = Listing { files, directories: Vec::new(), show };
    for directory in directories {
        let found = match show.recursive {
            true => namespace.walk(&directory).await?,
            false => namespace.entries(&directory).await?,
        };
        let mut found: Vec<FoundPath> =
            found.into_iter().filter(|found| show.is_meant(&directory, found)).collect();
        found.sort_by(|one, other| one.path.cmp(&other.path));
        listing.directories.push((directory, found));
    }
    Ok((listing, outcome))
}

impl Listing {
    /// Formats the listing as text.
    fn lines(&self) -> Vec<String> {
        let mut lines = self.show.lines(&self.files, Naming::Path);
        let is_one = self.directories.len() == 1 && self.files.is_empty();
        let naming = if self.show.recursive { Naming::Path } else { Naming::Last };
        for (directory, found) in &self.directories {
            if !is_one && !self.show.recursive {
                lines.extend((!lines.is_empty()).then(String::new));
                lines.push(format!("{}:", shown(&directory.path)));
            }
            lines.extend(self.show.lines(found, naming));
        }
        lines
    }

    /// Returns the rows for CSV and JSON.
    fn rows(&self) -> Vec<PathRow> {
        let mut users = Users::default();
        let all = self.files.iter().chain(self.directories.iter().flat_map(|(_, found)| found));
        let row = |FoundPath { path, inode }: &FoundPath| PathRow {
            path: for_programs(path),
            kind: kind_name(&inode.kind),
            size: inode.size,
            mode: format!("{:04o}", inode.mode),
            user: users.user(inode.uid),
            group: users.group(inode.gid),
            modified: date::for_programs(inode.modified),
        };
        all.map(row).collect()
    }
}

/// Form of a name in a line.
#[derive(Clone, Copy)]
enum Naming {
    /// Whole path.
    Path,
    /// Last part of the path.
    Last,
}

impl Shown {
    /// Returns true if an entry of a directory must be listed.
    fn is_meant(self, directory: &FoundPath, found: &FoundPath) -> bool {
        let rest = found.path.strip_prefix(&*directory.path).unwrap_or(&found.path);
        self.all || !rest.split(|&byte| byte == b'/').any(|name| name.starts_with(b"."))
    }

    fn lines(self, found: &[FoundPath], naming: Naming) -> Vec<String> {
        let mut users = Users::default();
        let mut table = TextTable::new(3);
        let mut names = Vec::new();
        for FoundPath { path, inode } in found {
            let name = match naming {
                Naming::Path => path,
                Naming::Last => split(path).1,
            };
            names.push(format!("{}{}", shown(name), self.end(&inode.kind)));
            if self.long {
                let changed = date::of_unix(inode.modified);
                // For a directory, print a dash: its size is its number of entries, not a size in bytes.
                let size = if inode.is_directory() { "-".into() } else { self.sizes.text(inode.size) };
                table.row([permissions(inode), users.user(inode.uid), users.group(inode.gid), size, changed]);
            }
        }
        if !self.long {
            return names;
        }
        table.whole_lines().iter().zip(names).map(|(line, name)| format!("{line}  {name}")).collect()
    }

    /// Returns the suffix of a name.
    fn end(self, kind: &InodeKind) -> String {
        match kind {
            InodeKind::Directory { .. } => "/".into(),
            InodeKind::Link { target } if self.long => format!(" -> {}", shown(target)),
            _ => String::new(),
        }
    }
}

/// Formats type and permissions as `ls -l` does.
fn permissions(inode: &Inode) -> String {
    let mut text = letter(&inode.kind).to_string();
    for who in (0..3).rev() {
        let bits = inode.mode >> (3 * who);
        let special = inode.mode >> (9 + who) & 1 == 1;
        let mark = if who == 0 { 't' } else { 's' };
        text.push(if bits & 4 != 0 { 'r' } else { '-' });
        text.push(if bits & 2 != 0 { 'w' } else { '-' });
        text.push(match (special, bits & 1 != 0) {
            (false, false) => '-',
            (false, true) => 'x',
            (true, true) => mark,
            (true, false) => mark.to_ascii_uppercase(),
        });
    }
    text
}

/// Names of users and groups on this computer.
#[derive(Default)]
struct Users {
    users: BTreeMap<u32, String>,
    groups: BTreeMap<u32, String>,
}

impl Users {
    fn user(&mut self, number: u32) -> String {
        let name = || User::from_uid(Uid::from_raw(number)).ok().flatten().map(|user| user.name);
        self.users.entry(number).or_insert_with(|| name().unwrap_or_else(|| number.to_string())).clone()
    }

    fn group(&mut self, number: u32) -> String {
        let name = || Group::from_gid(Gid::from_raw(number)).ok().flatten().map(|group| group.name);
        self.groups.entry(number).or_insert_with(|| name().unwrap_or_else(|| number.to_string())).clone()
    }
}

#[cfg(test)]
mod tests {
    use namespace::FileNumber;

    use super::*;

    #[test]
    fn permissions_are_shown_in_the_format_of_ls() {
        let of = |mode| {
            let kind = InodeKind::Directory { parent: FileNumber::ROOT };
            let (number, size) = (FileNumber(7), 0);
            permissions(&Inode {
                number,
                kind,
                mode,
                uid: 0,
                gid: 0,
                links: 2,
                size,
                accessed: 0,
                modified: 0,
                changed: 0,
                made: 0,
                version: 1,
                stored_stripes: 0,
                unwritten: 0,
                reserved: 0,
            })
        };
        assert_eq!(of(0o755), "drwxr-xr-x");
        assert_eq!(of(0o1777), "drwxrwxrwt");
        assert_eq!(of(0o4640), "drwSr-----");
    }
}
