//! Completion by Tab: a shell calls the program with the line so far, and the program says how it could go on.
//!
//! What a shell is told once ([`registration`]) only says how to ask; so the values are those of the program that is
//! installed, and of the file system that there is.

use std::ffi::OsStr;

use clap::Command;
use clap_complete::CompleteEnv;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter};
use clap_complete::env::{Elvish, EnvCompleter, Fish, Powershell, Shells, Zsh};

use crate::bash::Bash;

/// The environment variable by which a shell asks, and says which shell it is.
const VARIABLE: &str = "STARFISH_COMPLETE";

const ADAPTERS: Shells<'static> = Shells(&[&Bash, &Elvish, &Fish, &Powershell, &Zsh]);

/// The shells that can ask.
pub const SHELLS: [&str; 5] = ["bash", "elvish", "fish", "powershell", "zsh"];

/// The values that an option can have.
pub type Values = ArgValueCompleter;

/// If a shell asks, answers and ends the program.
///
/// Nothing may have been printed before. An error would be printed into the line that the user is typing, so there is
/// none: there are no values then.
pub fn complete(command: impl Fn() -> Command) {
    let answer = CompleteEnv::with_factory(command).var(VARIABLE).shells(ADAPTERS);
    let directory = std::env::current_dir().ok();
    if answer.try_complete(std::env::args_os(), directory.as_deref()).unwrap_or(true) {
        std::process::exit(0);
    }
}

/// What a shell has to be told for it to ask the program called `name`; nothing if it is not one of [`SHELLS`].
pub fn registration(shell: &str, name: &str) -> Option<String> {
    let mut text = Vec::new();
    let adapter: &dyn EnvCompleter = ADAPTERS.completer(shell)?;
    adapter.write_registration(VARIABLE, name, name, name, &mut text).ok()?;
    let text = String::from_utf8(text).ok()?;
    // zsh reads it when Tab is pressed for the first time, and expects values already then.
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

/// These values and no others.
pub fn fixed(values: impl IntoIterator<Item = impl Into<String>>) -> Values {
    let values: Vec<String> = values.into_iter().map(Into::into).collect();
    Values::new(move |typed: &OsStr| matching(&values, typed))
}

/// These values, or a file whose name ends with `ending`.
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

/// Those of the values that begin with what is typed.
pub(crate) fn matching(values: &[String], typed: &OsStr) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy();
    values.iter().filter(|value| value.starts_with(&*typed)).map(CompletionCandidate::new).collect()
}
