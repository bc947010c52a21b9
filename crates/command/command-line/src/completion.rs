//! Completion by Tab: a shell passes the line so far to the program, and the program prints possible continuations.
//!
//! The script that the shell loads ([`registration`]) only calls the program. So the values are always those of the
//! installed program and of the present file system.

use std::ffi::OsStr;

use clap::Command;
use clap_complete::CompleteEnv;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter};
use clap_complete::env::{Elvish, EnvCompleter, Fish, Powershell, Shells, Zsh};

use crate::bash::Bash;

/// Environment variable that marks a completion request and names the shell.
const VARIABLE: &str = "STARFISH_COMPLETE";

const ADAPTERS: Shells<'static> = Shells(&[&Bash, &Elvish, &Fish, &Powershell, &Zsh]);

/// Supported shells.
pub const SHELLS: [&str; 5] = ["bash", "elvish", "fish", "powershell", "zsh"];

/// Completer for the values of an option.
pub type Values = ArgValueCompleter;

/// Answers a completion request of a shell and ends the program. Without a request, returns.
///
/// The program must not have printed anything before. Errors yield no values, because an error message would appear in
/// the line that the user is typing.
pub fn complete(command: impl Fn() -> Command) {
    let answer = CompleteEnv::with_factory(command).var(VARIABLE).shells(ADAPTERS);
    let directory = std::env::current_dir().ok();
    if answer.try_complete(std::env::args_os(), directory.as_deref()).unwrap_or(true) {
        std::process::exit(0);
    }
}

/// Returns the script with which the shell requests completions from the program `name`. Returns `None` if the shell is
/// not one of [`SHELLS`].
pub fn registration(shell: &str, name: &str) -> Option<String> {
    let mut text = Vec::new();
    let adapter: &dyn EnvCompleter = ADAPTERS.completer(shell)?;
    adapter.write_registration(VARIABLE, name, name, name, &mut text).ok()?;
    let text = String::from_utf8(text).ok()?;
    // zsh loads the script at the first Tab, and expects this first call to return values.
    let first = if shell == "zsh" {
        format!(
            "if [[ $funcstack[1] == _{name} ]]; then _clap_dynamic_completer_{}; fi\n",
            name.replace('-', "_")
        )
    } else {
        String::new()
    };
    Some(text + &first)
}

/// Completes these values only.
pub fn fixed(values: impl IntoIterator<Item = impl Into<String>>) -> Values {
    let values: Vec<String> = values.into_iter().map(Into::into).collect();
    Values::new(move |typed: &OsStr| matching(&values, typed))
}

/// Completes these values, or a file whose name ends with `ending`.
pub fn or_path(values: impl IntoIterator<Item = impl Into<String>>, ending: &'static str) -> Values {
    let values: Vec<String> = values.into_iter().map(Into::into).collect();
    let files = PathCompleter::any()
        .filter(move |path| path.is_dir() || path.as_os_str().to_string_lossy().ends_with(ending));
    Values::new(move |typed: &OsStr| {
        let mut all = matching(&values, typed);
        all.extend(files.complete(typed));
        all
    })
}

/// Returns the values that begin with the typed text.
pub(crate) fn matching(values: &[String], typed: &OsStr) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy();
    values.iter().filter(|value| value.starts_with(&*typed)).map(CompletionCandidate::new).collect()
}
