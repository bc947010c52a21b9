//! Completion with the Tab key in bash.

use std::net::TcpListener;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::common::{Store, starfish, succeed};

/// Script that completes a line as bash does when the user presses Tab, after bash has split the line at
/// `COMP_WORDBREAKS`.
const TAB: &str = r#"source <("$1" completions bash starfish); shift
COMP_LINE=$1; shift
COMP_WORDS=("$@"); COMP_WORDS[0]=starfish; COMP_CWORD=$(($# - 1))
compopt() { :; }
_starfish_complete_starfish
printf '%s\n' "${COMPREPLY[@]}""#;

/// Returns bash's completions of the last of these words. A part of a line that begins a word is written with a leading
/// blank.
fn completions(mut command: Command, words: &[&str]) -> Vec<String> {
    let program = env!("CARGO_BIN_EXE_starfish");
    let directory = std::path::Path::new(program).parent().expect("a directory");
    command.env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", directory.display()));
    command.args(["-c", TAB, "bash", program, &format!("starfish{}", words.concat()), "starfish"]);
    command.args(words.iter().map(|word| word.trim_start()));
    String::from_utf8(succeed(command)).expect("text").lines().map(str::to_owned).collect()
}

/// Returns a bash that has the environment of a command of the program.
fn bash(like: &Command) -> Command {
    let mut bash = Command::new("bash");
    for (name, value) in like.get_envs() {
        match value {
            Some(value) => bash.env(name, value),
            None => bash.env_remove(name),
        };
    }
    bash.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    bash.current_dir(like.get_current_dir().unwrap_or(std::path::Path::new(".")));
    bash
}

#[test]
fn bash_completes_commands_options_and_values() {
    let completions = |words: &[&str]| completions(bash(&starfish([""; 0])), words);
    assert_eq!(completions(&[" sim"]), ["simulate"]);
    assert_eq!(completions(&[" simulate", " --meth"]), ["--method"]);
    assert_eq!(completions(&[" simulate", " --method", " two"]), ["two-phase"]);
    // Bash keeps the text before the character at which it has split the word.
    assert_eq!(completions(&[" simulate", " --method", "=", "two"]), ["two-phase"]);
    assert_eq!(completions(&[" simulate", " --method", "=", "traditional,two"]), ["traditional,two-phase"]);
    assert_eq!(completions(&[" simulate", " --pattern", " wcc"]), ["wcc"]);
    let all = completions(&[" "]);
    assert!(all.contains(&"put".to_owned()) && !all.iter().any(|word| word.starts_with('-')), "{all:?}");
}

#[test]
fn names_of_files_are_completed_from_the_agents() {
    let store = Store::start(&[1]);
    store.make_file("local", 10);
    store.run(&["mkdir", "results"]);
    for name in ["results/one", "results/two words", "other"] {
        store.run(&["put", "local", name]);
    }
    let of_store = || bash(&store.command(&[]));
    assert_eq!(completions(of_store(), &[" get", " results/"]), ["results/one", "results/two\\ words"]);
    assert_eq!(completions(of_store(), &[" cat", " other", " results/o"]), ["results/one"]);
    assert_eq!(completions(of_store(), &[" get", " results/two\\ w"]), ["results/two\\ words"]);
    assert_eq!(completions(of_store(), &[" put", " loc"]), ["local"]);
    // The command line names the agents.
    let (host, port) = store.agents[0].address.split_once(':').expect("HOST:PORT");
    let host = format!(" {host}");
    let words = [" stat", " --agents", &host, ":", port, " ot"];
    assert_eq!(completions(bash(&starfish([""; 0])), &words), ["other"]);
}

#[test]
fn completion_does_not_wait_for_silent_agents() {
    // The fake agent accepts connections and sends nothing.
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let mut command = bash(&starfish([""; 0]));
    command.env("STARFISH_AGENTS", silent.local_addr().expect("an address").to_string());
    let start = Instant::now();
    assert_eq!(completions(command, &[" get", " x"]), [""]);
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
}
