//! Code that several tests use. It runs real processes of the program on loopback, which end with the test.

mod client;
mod processes;
mod watched;

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::LazyLock;

use tempfile::TempDir;

pub(crate) use client::client;
pub(crate) use processes::{finish, finish_with_input, heeding, wait};
pub(crate) use watched::{ask, watched};

/// Returns a command of the program that ignores the user's environment. Its configuration directory cannot exist, even
/// for root.
pub(crate) fn starfish<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Command {
    let mut command = heeding(env!("CARGO_BIN_EXE_starfish"));
    command.args(arguments).env_remove("STARFISH_AGENTS").env("XDG_CONFIG_HOME", "/proc/nonexistent");
    command.env("STARFISH_KEY_FILE", key_file());
    command
        .env("XDG_STATE_HOME", "/proc/nonexistent")
        .env("STARFISH_LOG", "warn")
        .env_remove("JOURNAL_STREAM");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Returns the default key file of all agents and programs in tests.
pub(crate) fn key_file() -> &'static Path {
    static FILE: LazyLock<PathBuf> = LazyLock::new(|| {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("key");
        node::key::make(&path, true).expect("room for a key");
        path
    });
    &FILE
}

/// Copies the environment variables that are set for one command to another command.
pub(crate) fn give_environment_of(other: &Command, command: &mut Command) {
    for (name, value) in other.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
}

/// Runs a command that must succeed, and returns its output.
pub(crate) fn succeed(command: Command) -> Vec<u8> {
    let output = finish(command);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{}: {errors}", output.status);
    output.stdout
}

/// Runs the benchmark with this name.
pub(crate) fn bench(name: &str, arguments: &[&str]) -> Output {
    finish(starfish([&["bench", name, "--progress", "never"], arguments].concat()))
}

/// Returns the output of a program, which must have succeeded.
pub(crate) fn text(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).expect("it is text")
}

/// Runs a command that must fail with this exit code, and returns its standard error.
pub(crate) fn fail(command: Command, code: i32) -> String {
    let output = finish(command);
    let errors = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(code), "{errors}");
    assert!(errors.starts_with("starfish: ") || code == 2, "{errors}");
    errors
}

/// Agent process with its disks.
pub(crate) struct Agent {
    pub(crate) address: String,
    pub(crate) roots: Vec<PathBuf>,
    pub(crate) child: Child,
}

impl Agent {
    /// Starts an agent with these disks at any free port.
    pub(crate) fn start(roots: Vec<PathBuf>, options: &[&str]) -> Agent {
        Agent::start_at("127.0.0.1:0", roots, options)
    }

    /// Starts an agent at this address.
    pub(crate) fn start_at(address: &str, roots: Vec<PathBuf>, options: &[&str]) -> Agent {
        Agent::start_by(starfish([""; 0]), address, roots, options)
    }

    /// Starts an agent at this address. The command is the program, or executes the program.
    pub(crate) fn start_by(
        mut command: Command,
        address: &str,
        roots: Vec<PathBuf>,
        options: &[&str],
    ) -> Agent {
        command.args(["agent", "--listen", address, "--until-input-ends", "--create", "--root"]);
        command.args(&roots).args(options);
        command.env("STARFISH_KEY_FILE", key_file());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().expect("the program");
        let mut line = String::new();
        let output = child.stdout.take().expect("piped");
        BufReader::new(output).read_line(&mut line).expect("text");
        let address = line.strip_prefix("listening on ").and_then(|rest| rest.split_once(", "));
        let (address, disks) = address.unwrap_or_else(|| panic!("an agent said {line:?}"));
        let plural = if roots.len() == 1 { "1 disk: ".into() } else { format!("{} disks: ", roots.len()) };
        assert!(disks.starts_with(&plural), "{disks}");
        Agent { address: address.to_owned(), roots, child }
    }

    /// Sends the agent the signal with this name.
    pub(crate) fn signal(&self, name: &str) {
        signal(&self.child, name);
    }
}

/// Sends a process the signal with this name.
pub(crate) fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args(["-s", name, &child.id().to_string()]).status();
    assert!(sent.expect("a kill command").success());
}

impl Drop for Agent {
    fn drop(&mut self) {
        // The test may already have ended the agent.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Agents with fast disks, and a directory for the test.
pub(crate) struct Store {
    pub(crate) agents: Vec<Agent>,
    pub(crate) directory: TempDir,
}

impl Store {
    /// Starts one agent for each number, with this number of disks.
    pub(crate) fn start(disks: &[usize]) -> Store {
        Store::start_with(disks, &[])
    }

    /// Starts one agent for each number, with this number of disks and these options.
    pub(crate) fn start_with(disks: &[usize], options: &[&str]) -> Store {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let agent = |(index, &count): (usize, &usize)| {
            let root = |disk| directory.path().join(format!("agent{index}disk{disk}"));
            Agent::start((0..count).map(root).collect(), options)
        };
        let agents = disks.iter().enumerate().map(agent).collect();
        Store { agents, directory }
    }

    /// Restarts an agent under a resource limit, written as for `ulimit`. A limit of the file size has the effect of a
    /// full disk.
    pub(crate) fn restart_limited(&mut self, index: usize, limit: &str) {
        self.agents[index].signal("TERM");
        assert!(wait(&mut self.agents[index].child).success());
        let (address, roots) = (self.agents[index].address.clone(), self.agents[index].roots.clone());
        let mut shell = Command::new("sh");
        let script = format!("trap '' XFSZ; ulimit {limit}; exec \"$0\" \"$@\"");
        shell.args(["-c", &script, env!("CARGO_BIN_EXE_starfish")]);
        self.agents[index] = Agent::start_by(shell, &address, roots, &[]);
    }

    /// Ends all agents cleanly and restarts them, so that their caches are empty.
    pub(crate) fn restart(&mut self, options: &[&str]) {
        for agent in &mut self.agents {
            agent.signal("TERM");
            assert!(wait(&mut agent.child).success());
            *agent = Agent::start_at(&agent.address, agent.roots.clone(), options);
        }
    }

    /// Returns a command that uses the agents.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let addresses: Vec<&str> = self.agents.iter().map(|agent| agent.address.as_str()).collect();
        let mut command = starfish(arguments);
        command.env("STARFISH_AGENTS", addresses.join(",")).current_dir(self.directory.path());
        command
    }

    /// Returns the usual settings of a session with the agents.
    pub(crate) fn settings(&self) -> node::Settings {
        let addresses = self.agents.iter().map(|agent| agent.address.as_str());
        let mut settings = node::Settings::new(node::agents::named(addresses).expect("addresses"));
        settings.key = Some(key_file().to_owned());
        settings
    }

    /// Runs a command, which must succeed, and returns the text that it printed.
    pub(crate) fn run(&self, arguments: &[&str]) -> String {
        String::from_utf8(succeed(self.command(arguments))).expect("text")
    }

    /// Runs a command, which must fail with exit code 1, and returns its standard error.
    pub(crate) fn run_failing(&self, arguments: &[&str]) -> String {
        fail(self.command(arguments), 1)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Makes a local file of `bytes` bytes, and returns the hash of its contents.
    pub(crate) fn make_file(&self, name: &str, bytes: usize) -> blake3::Hash {
        let contents = contents(bytes);
        std::fs::write(self.path(name), &contents).expect("a file");
        blake3::hash(&contents)
    }

    /// Returns the number of a file, which is part of the names of its stripes.
    pub(crate) fn number(&self, path: &str) -> u64 {
        let stat = self.run(&["stat", path]);
        let line = stat.lines().find_map(|line| line.strip_prefix("number    ")).expect("a number");
        u64::from_str_radix(line, 16).expect("hexadecimal")
    }

    /// Returns where a stripe is: the index of its agent, and its path.
    pub(crate) fn stripe(&self, path: &str, stripe: usize) -> (usize, PathBuf) {
        let stat = self.run(&["stat", path]);
        let (_, rows) = stat.split_once("\nstripe ").expect("a table of stripes");
        let row: Vec<&str> =
            rows.lines().nth(stripe + 1).expect("it has that stripe").split_whitespace().collect();
        let agent = self.agents.iter().position(|agent| agent.address == row[1]).expect("one of the agents");
        let root = &self.agents[agent].roots[row[2].parse::<usize>().expect("the index of a disk")];
        (agent, root.join(format!("%2F{:016x}.begun", self.number(path))))
    }

    /// Returns the stripe files on all disks.
    pub(crate) fn stripe_files(&self) -> Vec<PathBuf> {
        let roots = self.agents.iter().flat_map(|agent| &agent.roots);
        let mut files: Vec<PathBuf> = roots.flat_map(|root| stripe_files(root)).collect();
        files.sort();
        files
    }
}

/// Returns the stripe files on a disk, including those of older versions.
pub(crate) fn stripe_files(root: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root).expect("a disk's directory");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let ends = ["begun", "new", "stripe"];
    let is_stripe = |path: &PathBuf| path.extension().is_some_and(|end| ends.iter().any(|one| end == *one));
    // Every disk of a set has this file as a mark.
    let is_mark = |path: &PathBuf| path.ends_with("%2F0000000000000001.begun");
    paths.filter(|path| is_stripe(path) && !is_mark(path)).collect()
}

/// Returns `bytes` pseudo-random bytes.
pub(crate) fn contents(bytes: usize) -> Vec<u8> {
    let mut contents = vec![0; bytes];
    blake3::Hasher::new().update(&bytes.to_le_bytes()).finalize_xof().fill(&mut contents);
    contents
}

/// Returns the hash of a local file.
pub(crate) fn hash(path: &Path) -> blake3::Hash {
    blake3::hash(&std::fs::read(path).expect("a file"))
}

/// Runs a command with this standard input. The command must succeed.
pub(crate) fn succeed_with_input(command: Command, input: Vec<u8>) -> Vec<u8> {
    let output = finish_with_input(command, input);
    assert!(output.status.success(), "{}", output.status);
    output.stdout
}
