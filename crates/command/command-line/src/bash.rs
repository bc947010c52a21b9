//! Completion in bash.
//!
//! Bash also splits the line at `:` and `=`, which occur in `pfs:NAME`, HOST:PORT and `--option=VALUE`. So the function
//! joins these words for the program. From each answer it removes the text before the last such character, because bash
//! replaces only the text after it. Options are offered only if the user has typed a dash, or if no other value is
//! possible.

use std::ffi::OsString;
use std::io::{Error, Write};
use std::path::Path;

use clap::Command;
use clap_complete::engine::complete;
use clap_complete::env::EnvCompleter;

/// Adapter for bash, from version 4.4 on.
#[derive(Debug)]
pub(crate) struct Bash;

/// Script that registers the completion in bash. The capitalised words are placeholders for each program.
const SCRIPT: &str = r#"_starfish_complete_IDENTIFIER() {
    local rest=$COMP_LINE cuts=${COMP_WORDBREAKS//[^:=]/} words=() word typed before i
    for ((i = 0; i <= COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if ((i == 0)) || [[ $rest == [[:blank:]]* || -z $rest ]]; then
            words+=("$word")
        else
            words[-1]+=$word
        fi
        while [[ $rest == [[:blank:]]* ]]; do rest=${rest:1}; done
        rest=${rest#"$word"}
    done
    typed=${words[-1]}
    before=
    if [[ -n $cuts && $typed == *[$cuts]* ]]; then
        before=${typed%"${typed##*[$cuts]}"}
    fi
    if [[ $typed == \~* ]]; then
        compopt -o default
        return
    fi
    mapfile -t COMPREPLY < <(VARIABLE=bash COMPLETER -- "${words[@]}" 2> /dev/null)
    if [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *[:=/,] ]]; then
        compopt -o nospace
    fi
    COMPREPLY=("${COMPREPLY[@]#"$before"}")
}
complete -o nosort -F _starfish_complete_IDENTIFIER PROGRAM
"#;

impl EnvCompleter for Bash {
    fn name(&self) -> &'static str {
        "bash"
    }

    fn is(&self, name: &str) -> bool {
        name == "bash"
    }

    fn write_registration(
        &self,
        variable: &str,
        name: &str,
        program: &str,
        completer: &str,
        output: &mut dyn Write,
    ) -> Result<(), Error> {
        let script = SCRIPT.replace("IDENTIFIER", &name.replace('-', "_"));
        let script = script.replace("PROGRAM", program).replace("COMPLETER", completer);
        output.write_all(script.replace("VARIABLE", variable).as_bytes())
    }

    fn write_complete(
        &self,
        command: &mut Command,
        words: Vec<OsString>,
        directory: Option<&Path>,
        output: &mut dyn Write,
    ) -> Result<(), Error> {
        let words: Vec<OsString> =
            words.iter().map(|word| unquoted(&word.to_string_lossy()).into()).collect();
        let last = words.len().saturating_sub(1);
        let is_dash = words.last().is_some_and(|word| word.to_string_lossy().starts_with('-'));
        let all = complete(command, words, last, directory)?;
        let all: Vec<_> =
            all.iter().map(|candidate| candidate.get_value().to_string_lossy().into_owned()).collect();
        let is_option = |value: &String| value.starts_with('-');
        let only_options = is_dash || all.iter().all(is_option);
        let offered = all.iter().filter(|value| only_options || !is_option(value));
        // Quote, because a name may contain blanks or special characters of bash.
        offered.map(|value| quoted(value)).try_for_each(|value| writeln!(output, "{value}"))
    }
}

/// Returns the word without bash's backslashes.
fn unquoted(word: &str) -> String {
    let mut letters = word.chars();
    std::iter::from_fn(|| {
        letters.next().and_then(|letter| if letter == '\\' { letters.next() } else { Some(letter) })
    })
    .collect()
}

/// Returns the value quoted for bash.
fn quoted(value: &str) -> String {
    let plain = |letter: char| letter.is_alphanumeric() || "-_./:=,+@%~".contains(letter);
    let mut text = String::new();
    for letter in value.chars().filter(|letter| !letter.is_control()) {
        if !plain(letter) {
            text.push('\\');
        }
        text.push(letter);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_characters_of_bash_are_quoted() {
        for (value, written) in
            [("a/b-1.dat", "a/b-1.dat"), ("pfs:x y", "pfs:x\\ y"), ("a$(b)", "a\\$\\(b\\)")]
        {
            assert_eq!(quoted(value), written);
            assert_eq!(unquoted(written), value);
        }
        assert_eq!(quoted("a\nb\x1b[1m"), "ab\\[1m");
    }
}
