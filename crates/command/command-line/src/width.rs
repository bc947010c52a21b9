//! How wide what is printed may be.

use std::env;

use clap::Command;
use console::Term;

/// Lines of help are no longer than this: longer ones are hard to read.
const HELP_MAX: usize = 110;

/// As wide as help is where nobody knows how wide it may be.
const HELP_ELSEWHERE: usize = 100;

/// The columns of the terminal that standard output is, if it is one: as many as COLUMNS says, or as it has.
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

/// The command with help that fits into the terminal.
pub fn fitted(command: Command) -> Command {
    let columns = of_terminal().or_else(of_environment).unwrap_or(HELP_ELSEWHERE);
    within(command, columns.min(HELP_MAX))
}

/// The command with its help wrapped to a number of columns. clap leaves the text at the end of help as it is.
fn within(command: Command, columns: usize) -> Command {
    let command = match command.get_after_help().map(ToString::to_string) {
        Some(text) => command.after_help(wrapped(&text, columns)),
        None => command,
    };
    command.term_width(columns).mut_subcommands(|command| within(command, columns))
}

/// The text wrapped to a number of columns. A line that begins with blanks is continued with four more.
fn wrapped(text: &str, columns: usize) -> String {
    let lines = text.lines().map(|line| {
        let indent = line.len() - line.trim_start().len();
        let continued = if indent > 0 { indent + 4 } else { 0 };
        fill(line, columns, continued)
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// What stands between an example and what it does.
const APART: &str = "   ";

/// The line, broken at blanks, with `continued` blanks before each further piece.
fn fill(line: &str, columns: usize, continued: usize) -> String {
    let mut pieces = vec![];
    let (mut rest, mut indent) = (line.to_owned(), 0);
    while rest.chars().count() > columns {
        // With the blank at which it may be broken. What begins with more blanks than fit has none.
        let end = rest.char_indices().nth(columns + 1).map_or(rest.len(), |(at, _)| at);
        let begin = rest.len() - rest.trim_start().len();
        let fitting = rest.get(begin..end).unwrap_or_default();
        // What is set apart by blanks goes on as a whole.
        let blank =
            fitting.find(APART).or_else(|| fitting.rfind(' ')).filter(|at| *at > 0).map(|at| begin + at);
        // A word that is too long stays whole.
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
    fn what_fits_stays_and_what_does_not_is_broken_at_blanks() {
        let text = "Examples:\n  starfish put big.dat    spread it over all disks\nA longword.";
        assert_eq!(wrapped(text, 100), text);
        let narrow = "Examples:\n  starfish put big.dat\n      spread it over all disks\nA longword.";
        assert_eq!(wrapped(text, 33), narrow);
        assert_eq!(wrapped("a longword b", 4), "a\nlongword\nb");
        assert_eq!(wrapped("  grün bleibt grün", 10), "  grün\n      bleibt\n      grün");
    }

    /// However narrow a terminal is: no word is lost.
    #[test]
    fn what_fits_nowhere_is_printed_all_the_same() {
        let text = format!("{}set apart, für alle  Größen\n  a   b c", " ".repeat(40));
        for columns in 0..80 {
            let narrow = wrapped(&text, columns);
            assert!(narrow.split_whitespace().eq(text.split_whitespace()), "{columns}: {narrow}");
        }
    }

    #[test]
    fn no_line_of_help_is_wider_than_asked_for() {
        let option = Arg::new("option").long("option").help("word ".repeat(50));
        let inner =
            Command::new("inner").about("word ".repeat(60)).arg(option).after_help("  word".repeat(30));
        let mut command = within(Command::new("outer").subcommand(inner), 40);
        let inner = command.find_subcommand_mut("inner").expect("it is there");
        let help = inner.render_long_help().to_string();
        assert!(help.lines().count() > 15, "{help}");
        assert!(help.lines().all(|line| line.chars().count() <= 40), "{help}");
    }
}
