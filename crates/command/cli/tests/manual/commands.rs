//! Runs the commands on the pages of the manual and compares the printed output with the output on the pages.
//!
//! Format of a page:
//!
//! - A block of the language `console` shows commands after `$ `, with `> ` before the further lines of a command.
//!   After a command, the block shows its standard output and standard error. `...` stands for any text, or for any
//!   lines. A command without output on the page must print nothing. A command may fail only if the page shows this:
//!   `COMMAND || echo "exit code $?"`.
//! - A block of `toml` or `c` whose first line is a comment with a file name creates that file.
//! - Commands of other computers have a prompt with the name of the computer, `node1$ `, and are not run.
//! - `make` only pretends to run, except `make install-c`, which installs the files that the tests have built.
//!
//! All commands of a page run in one shell, with their own directory and HOME. Agents that still run at the end are
//! stopped.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use tempfile::TempDir;

use crate::page::{Step, is_shown, steps};
use crate::root;

/// Time limit of a command, sufficient on a busy computer with an unoptimised program.
const LIMIT: Duration = Duration::from_secs(100);

macro_rules! pages {
    ($($name:ident: $path:literal,)*) => {
        /// Pages with commands.
        const PAGES: &[&str] = &[$($path),*];

        $(#[test]
        fn $name() {
            check($path);
        })*
    };
}

pages! {
    the_readme: "README.md",
    the_front_page: "docs/manual/index.md",
    first_steps: "docs/manual/first-steps.md",
    choosing_storage: "docs/manual/choosing-storage.md",
    using_your_disks: "docs/manual/using-your-disks.md",
    names: "docs/manual/names.md",
    writing_programs: "docs/manual/writing-programs.md",
    recording_programs: "docs/manual/recording-programs.md",
    write_caches: "docs/manual/write-caches.md",
    replaying: "docs/manual/replaying.md",
    placement: "docs/manual/placement.md",
    viewer: "docs/manual/viewer.md",
    studying: "docs/manual/studying.md",
    methods: "docs/manual/methods.md",
    patterns: "docs/manual/patterns.md",
    plans: "docs/manual/plans.md",
    machines: "docs/manual/machines.md",
    traces: "docs/manual/traces.md",
    operation: "docs/manual/operation.md",
}

#[test]
fn every_page_with_commands_is_run() {
    let folder = fs::read_dir(root().join("docs/manual")).expect("the manual");
    for entry in folder {
        let name = entry.expect("a page").file_name().into_string().expect("a name");
        let path = format!("docs/manual/{name}");
        if !name.ends_with(".md") || PAGES.contains(&&*path) {
            continue;
        }
        let steps = steps(&fs::read_to_string(root().join(&path)).expect("a page"));
        assert_eq!(
            steps.map(|steps| steps.len()),
            Ok(0),
            "{path} has commands: add it to PAGES in this file"
        );
    }
}

fn check(path: &str) {
    let page = fs::read_to_string(root().join(path)).expect("a page");
    let steps = steps(&page).unwrap_or_else(|error| panic!("{path}: {error}"));
    assert!(!steps.is_empty(), "{path} has no commands");
    let mut shell = Shell::start();
    for step in steps {
        match step {
            Step::File { name, contents } => {
                fs::write(shell.directory.path().join(name), contents).expect("a file");
            }
            Step::Command { line, text, output } => {
                let (code, printed) = shell.run(&text);
                let text = printed.join("\n");
                assert_eq!(code, 0, "{path}:{line}: {text}\n{text}");
                assert!(is_shown(&output, &printed), "{path}:{line}: {text}\nprinted:\n{text}");
            }
        }
    }
}

/// Shell with its own directory.
struct Shell {
    child: Child,
    input: ChildStdin,
    output: Receiver<String>,
    directory: TempDir,
    home: TempDir,
}

/// Beginning of the line that the shell prints after a command, before the exit code.
const END: &str = "=== the end, with exit code ";

impl Shell {
    fn start() -> Shell {
        let (directory, home) =
            (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory"));
        let mut child = environment(Command::new("bash"), home.path())
            .args(["--noprofile", "--norc"])
            .current_dir(directory.path())
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("bash");
        let (sender, output) = channel();
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        std::thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| sender.send(line)));
        let mut input = child.stdin.take().expect("piped");
        let (root, libraries) = (root(), programs().join("deps"));
        let make = format!(
            "make() {{ command make --silent --dry-run --directory '{0}' \"$@\" > /dev/null || return; \
             if [[ $1 == install-c ]]; then for library in pdiol tlv; do \
             '{0}/packaging/install-library.sh' $library '{1}' ~/.local; done; fi; }}",
            root.display(),
            libraries.display()
        );
        // pkg-config may be missing, because only this test needs it; this function prints its result.
        let flags = "-I ~/.local/include -L ~/.local/lib -l${!#}";
        let pkg_config = format!("command -v pkg-config > /dev/null || pkg-config() {{ echo {flags}; }}");
        writeln!(input, "exec 2>&1\n{make}\n{pkg_config}").expect("a shell");
        Shell { child, input, output, directory, home }
    }

    /// Runs a command to completion, and returns its exit code and output.
    fn run(&mut self, command: &str) -> (i32, Vec<String>) {
        let script = self.home.path().join("command");
        fs::write(&script, format!("{command}\n")).expect("a script");
        writeln!(self.input, ". '{}' < /dev/null; printf '\\n{END}%s\\n' $?", script.display())
            .expect("a shell");
        let mut printed = Vec::new();
        loop {
            let line = self.output.recv_timeout(LIMIT);
            let line = line.unwrap_or_else(|_| panic!("no end of {command}, after\n{}", printed.join("\n")));
            if let Some(code) = line.strip_prefix(END) {
                // The last line is empty if the command ended its last line. Otherwise the empty line belongs to that
                // line.
                if printed.last().is_some_and(String::is_empty) {
                    printed.pop();
                }
                return (code.parse().expect("an exit code"), printed);
            }
            printed.push(line);
        }
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let mut down = environment(Command::new(env!("CARGO_BIN_EXE_starfish")), self.home.path());
        let _ = down.args(["agents", "down"]).stdout(Stdio::null()).stderr(Stdio::null()).status();
        // Processes that the shell has started in the background belong to its process group.
        let _ = Command::new("kill").args(["-s", "KILL", "--", &format!("-{}", self.child.id())]).status();
        let _ = self.child.wait();
    }
}

/// Sets an environment for a command in which it finds the programs, without the user's variables.
fn environment(mut command: Command, home: &Path) -> Command {
    let programs = programs().display().to_string();
    let path = std::env::var("PATH").unwrap_or_default();
    let links = env!("CARGO_TARGET_TMPDIR");
    command.env_clear().env("PATH", format!("{programs}:{links}:{path}")).env("HOME", home);
    command.env("LC_ALL", "C.UTF-8").env("TZ", "UTC");
    command
}

/// Returns the folder with the programs and the C libraries. If Cargo runs the tests of all crates, it builds the
/// libraries for them; if Cargo runs the tests of this crate alone, this function calls Cargo to build them.
fn programs() -> &'static Path {
    static FOUND: OnceLock<PathBuf> = OnceLock::new();
    FOUND.get_or_init(|| {
        let folder = Path::new(env!("CARGO_BIN_EXE_starfish")).parent().expect("a folder").to_owned();
        // An installation has one link for each application.
        for program in applications::commands() {
            let link = Path::new(env!("CARGO_TARGET_TMPDIR")).join(program.get_name());
            let _ = fs::remove_file(&link);
            symlink(env!("CARGO_BIN_EXE_starfish"), link).expect("a link");
        }
        let built = ["deps/liblibpdiol.so", "deps/liblibtlv.so"];
        if !built.iter().all(|file| folder.join(file).exists()) {
            let mut build = Command::new(env!("CARGO"));
            build.args(["build", "--locked", "--quiet"]);
            build.args(["libpdiol", "libtlv"].map(|package| format!("--package={package}")));
            assert!(build.status().expect("cargo").success(), "the programs cannot be built");
        }
        folder
    })
}
