//! Widths of printed text.

use std::env;

use clap::Command;
use console::Term;

/// Maximum width of help texts, because longer lines are hard to read.
const HELP_MAX: usize = 110;

/// Width of help texts without a terminal and without COLUMNS.
const HELP_ELSEWHERE: usize = 100;

/// Returns the width of the terminal on standard output: COLUMNS, or else the terminal's own. Returns `None` without a
/// terminal.
pub fn of_terminal() -> Option<usize> {
    let terminal = Term::stdout();
    if !terminal.is_term() {
        return None;
    }
    let has = || terminal.size_checked().map(|(_, columns)| usize::from(columns));
    of_environment().or_else(has).filter(|columns| *columns > 0)
}

fn of_environment() -> Option<usize> {
    env::var("COLUMNS").ok()?.parse().ok().filter(|columns| *columns > 0)
}

/// Returns the command with help that fits into the terminal.
pub fn fitted(command: Command) -> Command {
    let columns = of_terminal().or_else(of_environment).unwrap_or(HELP_ELSEWHERE);
    within(command, columns.min(HELP_MAX))
}

/// Returns the command with its help wrapped to `columns`. clap does not wrap the text after the options.
fn within(command: Command, columns: usize) -> Command {
    let command = match command.get_after_help().map(ToString::to_string) {
        Some(text) => command.after_help(wrapped(&text, columns)),
        None => command,
    };
    command.term_width(columns).mut_subcommands(|command| within(command, columns))
}

/// Returns the text wrapped to `columns`. Continuations of an indented line are indented by four more blanks.
fn wrapped(text: &str, columns: usize) -> String {
    let lines = text.lines().map(|line| {
        let indent = line.len() - line.trim_start().len();
        let continued = if indent > 0 { indent + 4 } else { 0 };
        fill(line, columns, continued)
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Separator between an example and its explanation.
const APART: &str = "   ";

/// Breaks the line at blanks, with `continued` blanks before each further piece.
fn fill(line: &str, columns: usize, continued: usize) -> String {
    let mut pieces = vec![];
    let (mut rest, mut indent) = (line.to_owned(), 0);
    while rest.chars().count() > columns {
        // Include one more character, because the line may break at a blank there. A line that is indented by more than
        // `columns` has no such blank.
        let end = rest.char_indices().nth(columns + 1).map_or(rest.len(), |(at, _)| at);
        let begin = rest.len() - rest.trim_start().len();
        let fitting = rest.get(begin..end).unwrap_or_default();
        // An explanation that is separated by blanks moves to the next line as a whole.
        let blank =
            fitting.find(APART).or_else(|| fitting.rfind(' ')).filter(|at| *at > 0).map(|at| begin + at);
        // Do not break a word that is too long.
        let blank = blank.or_else(|| rest[begin..].find(' ').map(|at| begin + at));
        let Some(at) = blank else { break };
        indent = continued;
        let next = format!("{}{}", " ".repeat(indent), rest[at..].trim_start());
        pieces.push(rest[..at].trim_end().to_owned());
        rest = next;
    }
    if rest.len() > indent || pieces.is_empty() {
        pieces.push(rest);
    }
    pieces.join("\n")
}

#[cfg(test)]
mod tests {
    use clap::Arg;

    use super::*;

    #[test]
    fn only_lines_that_are_too_long_are_broken_at_blanks() {
        let text = "Examples:\n  starfish put big.dat    spread it over all disks\nA longword.";
        assert_eq!(wrapped(text, 100), text);
        let narrow = "Examples:\n  starfish put big.dat\n      spread it over all disks\nA longword.";
        assert_eq!(wrapped(text, 33), narrow);
        assert_eq!(wrapped("a longword b", 4), "a\nlongword\nb");
        assert_eq!(wrapped("  grün bleibt grün", 10), "  grün\n      bleibt\n      grün");
    }

    /// No word is lost in a terminal of any width.
    #[test]
    fn wrapping_loses_no_word_at_any_width() {
        let text = format!("{}set apart, für alle  Größen\n  a   b c", " ".repeat(40));
        for columns in 0..80 {
            let narrow = wrapped(&text, columns);
            assert!(narrow.split_whitespace().eq(text.split_whitespace()), "{columns}: {narrow}");
        }
    }

    #[test]
    fn no_line_of_help_exceeds_the_width() {
        let option = Arg::new("option").long("option").help("word ".repeat(50));
        let inner =
            Command::new("inner").about("word ".repeat(60)).arg(option).after_help("  word".repeat(30));
        let mut command = within(Command::new("outer").subcommand(inner), 40);
        let inner = command.find_subcommand_mut("inner").expect("it exists");
        let help = inner.render_long_help().to_string();
        assert!(help.lines().count() > 15, "{help}");
        assert!(help.lines().all(|line| line.chars().count() <= 40), "{help}");
    }
}
