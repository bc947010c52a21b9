//! Common code of the tests: agents on loopback, as threads of this process, and the programs as processes.

#![allow(dead_code, unused_imports, reason = "each test crate uses a part of it")]

#[path = "../../../../command/cli/tests/common/processes.rs"]
mod processes;

use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use node::OpenOptions;
pub(crate) use processes::{finish, finish_with_input, heeding, wait};
use test_agents::{Agents, make_directory, stripe_name};

/// Some agents with a disk each, and a directory for the test.
pub(crate) struct Home(Agents);

impl Home {
    /// Starts `count` agents.
    pub(crate) fn start(count: u64) -> Home {
        let home = Home(Agents::start(count));
        std::fs::create_dir(home.path("tmp")).expect("a directory");
        home
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path(name)
    }

    /// Returns a command for a program that uses the agents.
    pub(crate) fn command<S: AsRef<OsStr>>(
        &self,
        program: &str,
        arguments: impl IntoIterator<Item = S>,
    ) -> Command {
        let mut command = heeding(program);
        command.args(arguments).current_dir(self.path(""));
        command.env("STARFISH_AGENTS", self.0.names()).env("STARFISH_KEY_FILE", self.0.key_file());
        command.env("PATH", format!("{}:{}", links(), std::env::var("PATH").unwrap_or_default()));
        command.env("LC_ALL", "C").env("TMPDIR", self.path("tmp"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs a program until it exits.
    pub(crate) fn run(&self, program: &str, arguments: &[&str]) -> Output {
        finish(self.command(program, arguments))
    }

    /// Runs a program that must succeed, and returns its output.
    pub(crate) fn succeed(&self, program: &str, arguments: &[&str]) -> Vec<u8> {
        let Output { status, stdout, stderr } = self.run(program, arguments);
        assert!(status.success(), "{program} {arguments:?}: {status}: {}", String::from_utf8_lossy(&stderr));
        stdout
    }

    /// Runs a program that must fail with exit code 2, and returns its standard error.
    pub(crate) fn fail(&self, program: &str, arguments: &[&str]) -> String {
        let Output { status, stderr, .. } = self.run(program, arguments);
        let stderr = String::from_utf8(stderr).expect("text");
        assert_eq!(status.code(), Some(2), "{program} {arguments:?}: {stderr}");
        stderr
    }

    /// Creates an ordinary and a striped file of the same name.
    pub(crate) fn make(&self, name: &str, contents: &[u8]) {
        std::fs::write(self.path(name), contents).expect("a file");
        self.succeed(FS2PFS, &["--force", name]);
    }

    /// Creates a directory for striped files.
    pub(crate) fn make_striped_directory(&self, name: &str) {
        make_directory(&self.0.session(), name).expect("a directory");
    }

    /// Returns the block size of a striped file in bytes.
    pub(crate) fn block_bytes(&self, name: &str) -> u64 {
        self.0.session().stat(name).expect("it is there").block_bytes
    }

    /// Returns the number of disks of a striped file.
    pub(crate) fn disks(&self, name: &str) -> u32 {
        self.0.session().stat(name).expect("it is there").stripes
    }

    /// Returns the disks of a striped file.
    pub(crate) fn disks_of(&self, name: &str) -> Vec<usize> {
        let file = node::Session::open(&self.0.session(), name, OpenOptions::new().read(true));
        let stripe = stripe_name(file.and_then(|file| file.number()).expect("it is there"));
        let is_its = |path: &PathBuf| {
            path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(stripe.as_bytes()))
        };
        let stripes: Vec<PathBuf> = self.0.stripes().into_iter().filter(is_its).collect();
        let has_one = |disk: &usize| stripes.iter().any(|path| path.starts_with(&self.0.agents[*disk].disk));
        (0..self.0.agents.len()).filter(has_one).collect()
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).expect("a file")
    }

    /// Returns the addresses of the agents, as in STARFISH_AGENTS.
    pub(crate) fn agents(&self) -> String {
        self.0.names()
    }

    /// Returns the path of their key file, as in STARFISH_KEY_FILE.
    pub(crate) fn key_file(&self) -> String {
        self.0.key_file().to_str().expect("text").to_owned()
    }

    /// Returns the names of all striped files.
    pub(crate) fn striped(&self) -> Vec<String> {
        self.0.session().list().expect("names")
    }

    /// Returns the names in the directories for local and temporary files, without the agents' files.
    pub(crate) fn local(&self) -> Vec<String> {
        let names = |path: PathBuf| {
            let entries = std::fs::read_dir(path).expect("a directory");
            entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"))
        };
        let all = names(self.path("")).chain(names(self.path("tmp")));
        let key_file = self.0.key_file();
        let is_ours = |name: &String| !name.starts_with("disk") && name != "tmp" && !key_file.ends_with(name);
        let mut all: Vec<String> = all.filter(is_ours).collect();
        all.sort();
        all
    }
}

/// Returns a directory with a link for each program to the executable that has all their names.
fn links() -> &'static str {
    let directory = env!("CARGO_TARGET_TMPDIR");
    for program in [MYCAT, FS2PFS, PFS2FS, PFSGREP, PFSSORT, PFSBZIP2] {
        // Another test may have created the link.
        let _ = symlink(env!("CARGO_BIN_EXE_applications"), Path::new(directory).join(program));
    }
    directory
}

pub(crate) const MYCAT: &str = "mycat";
pub(crate) const FS2PFS: &str = "fs2pfs";
pub(crate) const PFS2FS: &str = "pfs2fs";
pub(crate) const PFSGREP: &str = "pfsgrep";
pub(crate) const PFSSORT: &str = "pfssort";
pub(crate) const PFSBZIP2: &str = "pfsbzip2";

/// Returns pseudo-random bytes that depend only on their number.
pub(crate) fn noise(bytes: usize) -> Vec<u8> {
    let mut state = bytes as u64 | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..bytes).map(|_| next()).collect()
}

/// Returns lines of words and numbers, of many lengths, some of them equal.
pub(crate) fn text(lines: usize) -> Vec<u8> {
    let noise = noise(lines * 4);
    let mut text = Vec::new();
    for part in noise.chunks(4) {
        let number = i32::from(part[0]) * 7 - 800;
        let words =
            ["sea", "star", "", "fish", "swarm"][usize::from(part[1]) % 5].repeat(usize::from(part[2]) % 9);
        writeln!(text, "{number}{} {words}", [".5", "", ".25"][usize::from(part[3]) % 3]).expect("memory");
    }
    text
}
