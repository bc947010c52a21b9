//! Counts bad habits of language, which make readers stop, in comments and documents.
//!
//! The file `language.csv` records a count for each crate, each document and all decision records together. A count may
//! only fall: if a change raises a count, reword its text. `STARFISH_LANGUAGE=write cargo test -p tidy` records the
//! current counts.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::{Text, Tree};

/// Habits, each with the phrases that show it, in lower case.
const HABITS: [(&str, &[&str]); 10] = [
    // A relative clause in place of a noun.
    ("what", &["what"]),
    ("how", &["how many", "how much", "how long", "how far", "how often", "how large"]),
    ("whether", &["whether"]),
    // Messages are sent, reported, returned or logged.
    ("tell", &["tell", "tells", "told", "telling", "hear", "hears", "heard"]),
    // Clients, nodes, callers and users have names.
    ("nobody", &["nobody", "somebody", "whoever", "anybody", "everybody"]),
    ("none", &["is none", "are none", "there is nobody", "there is no one"]),
    ("anew", &["anew", "so many", "as many as", "but for", "meanwhile", "the like"]),
    (
        "goes on",
        &[
            "goes on",
            "go on",
            "going on",
            "is gone",
            "are gone",
            "lets go",
            "let go",
            "takes in",
            "take in",
            "gives way",
            "give way",
            "gives up",
            "give up",
            "under way",
            "at hand",
        ],
    ),
    ("of its own", &["of its own", "of their own", "of one's own", "by itself", "for itself"]),
    ("comes to", &["comes to", "come to", "has come", "have come", "came of", "to its end"]),
];

/// The habit of doc comments that begin with a word of [`OPENINGS`] instead of a verb or a noun.
const OPENING: &str = "opening";

/// Bad first words of a doc comment; good ones are "Returns ..." or "Number of ...".
const OPENINGS: [&str; 10] =
    ["what", "how", "whether", "where", "when", "why", "which", "who", "that", "whoever"];

/// The habit of sentences of more than [`SENTENCE_WORDS_MAX`] words.
const LONG: &str = "long sentence";

const SENTENCE_WORDS_MAX: usize = 35;

/// Number of occurrences of a habit, by area and habit. An area is a crate, a document, or all decision records.
pub type HabitCounts = BTreeMap<(String, &'static str), usize>;

/// Occurrences of a habit in a paragraph.
struct Found {
    area: String,
    habit: &'static str,
    count: usize,
    /// File, and first line of the paragraph.
    place: String,
}

/// Counts the habits in all comments and documents.
pub fn counts(tree: &Tree) -> HabitCounts {
    let mut counts = HabitCounts::new();
    for Found { area, habit, count, .. } in find(tree) {
        *counts.entry((area, habit)).or_default() += count;
    }
    counts
}

/// Returns the habits in all comments and documents, paragraph by paragraph.
fn find(tree: &Tree) -> Vec<Found> {
    let mut found = Vec::new();
    for text in tree.texts() {
        let Some(area) = area(&text.path) else { continue };
        for paragraph in paragraphs(text) {
            let place = format!("{}:{}", text.path, paragraph.line);
            let mut add = |habit, count| {
                if count > 0 {
                    found.push(Found { area: area.clone(), habit, count, place: place.clone() });
                }
            };
            let words = words(&paragraph.text);
            for (habit, phrases) in HABITS {
                add(habit, phrases.iter().map(|phrase| occurrences(phrase, &words)).sum());
            }
            let opens_badly = words.first().is_some_and(|word| OPENINGS.contains(&&**word));
            add(OPENING, usize::from(paragraph.opens_doc && opens_badly));
            let long = sentences(&paragraph.text).into_iter().filter(|&words| words > SENTENCE_WORDS_MAX);
            add(LONG, long.count());
        }
    }
    found
}

/// Writes counts as CSV with a heading, in the order of areas and habits.
pub fn to_csv(counts: &HabitCounts) -> String {
    let mut csv = String::from("area,habit,count\n");
    for ((area, habit), count) in counts {
        writeln!(csv, "{area},{habit},{count}").expect("memory");
    }
    csv
}

/// Complains about each count that is higher than the count in `recorded`, a CSV text.
pub fn language_gets_no_worse(tree: &Tree, recorded: &str) -> Vec<String> {
    let limits: BTreeMap<&str, usize> = recorded
        .lines()
        .filter_map(|line| line.rsplit_once(','))
        .filter_map(|(key, count)| Some((key, count.parse().ok()?)))
        .collect();
    let limit = |area: &str, habit: &str| limits.get(&*format!("{area},{habit}")).copied().unwrap_or(0);
    let mut by_habit = BTreeMap::<_, Vec<Found>>::new();
    for found in find(tree) {
        by_habit.entry((found.area.clone(), found.habit)).or_default().push(found);
    }
    let worse = by_habit.into_iter().filter_map(|((area, habit), found)| {
        let (limit, count) = (limit(&area, habit), found.iter().map(|found| found.count).sum::<usize>());
        (count > limit).then(|| {
            let places: Vec<&str> = found.iter().map(|found| &*found.place).collect();
            format!(
                "{area}: habit \"{habit}\" {count} times, {limit} at most, in {}: see \"English\" in CONTRIBUTING.md",
                places.join(", ")
            )
        })
    });
    worse.collect()
}

/// Returns the area of a file; `None` if its language is not counted.
fn area(path: &str) -> Option<String> {
    let parts: Vec<&str> = path.split('/').collect();
    match parts[..] {
        ["crates", folder, name, ..] if path.ends_with(".rs") => Some(format!("crates/{folder}/{name}")),
        ["docs", "adr", ..] if path.ends_with(".md") => Some("docs/adr".to_owned()),
        [_] | ["docs", ..] if path.ends_with(".md") => Some(path.to_owned()),
        _ => None,
    }
}

/// A paragraph of prose.
#[derive(Debug, PartialEq, Eq)]
struct Paragraph {
    text: String,
    /// Number of its first line.
    line: usize,
    /// True if it is the first one of a doc comment.
    opens_doc: bool,
}

/// Returns the paragraphs of a file's comments, or of a document, without code and tables.
fn paragraphs(text: &Text) -> Vec<Paragraph> {
    let is_source = text.path.ends_with(".rs");
    let (mut all, mut is_code, mut in_comment, mut is_open) = (Vec::<Paragraph>::new(), false, false, false);
    for (number, line) in (1..).zip(text.text.lines()) {
        let line = line.trim();
        let prose = if is_source { line.strip_prefix("//") } else { Some(line) };
        let Some(prose) = prose else {
            (is_code, in_comment, is_open) = (false, false, false);
            continue;
        };
        let is_doc = is_source && prose.starts_with(['/', '!']);
        let prose = if is_source { prose.trim_start_matches(['/', '!']).trim() } else { prose };
        let opens_doc = is_doc && !in_comment;
        in_comment = true;
        if prose.starts_with("```") {
            (is_code, is_open) = (!is_code, false);
        } else if is_code || prose.is_empty() || prose.starts_with('|') {
            is_open = false;
        } else if let Some(last) = all.last_mut().filter(|_| is_open && !prose.starts_with("- ")) {
            last.text.push(' ');
            last.text.push_str(prose);
        } else {
            all.push(Paragraph { text: prose.to_owned(), line: number, opens_doc });
            is_open = true;
        }
    }
    all
}

/// Returns the words of a text, in lower case.
fn words(text: &str) -> Vec<String> {
    let is_part = |character: char| character.is_alphanumeric() || character == '\'';
    let words = text.split(|character| !is_part(character)).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

/// Returns the number of times that a phrase occurs.
fn occurrences(phrase: &str, words: &[String]) -> usize {
    let phrase: Vec<&str> = phrase.split(' ').collect();
    words
        .windows(phrase.len())
        .filter(|window| window.iter().zip(&phrase).all(|(one, other)| one == other))
        .count()
}

/// Returns the number of words of each sentence.
fn sentences(text: &str) -> Vec<usize> {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.split_inclusive(|word| word.ends_with(['.', '!', '?'])).map(<[_]>::len).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "//! Reads files.\n//!\n//! ```text\n//! what is drawn\n//! ```\n\n/// What was written\n/// to it.\n\
                          fn f() {\n    // It is told to nobody.\n    let what = 1;\n}\n\n/// Number of files.\nfn g() {}\n";

    #[test]
    fn habits_are_counted_in_comments_and_not_in_code() {
        let tree = Tree::of(&[("crates/a/b/src/lib.rs", SOURCE)]);
        let counts = to_csv(&counts(&tree));
        let of = |habit| format!("crates/a/b,{habit},1\n");
        assert_eq!(
            counts,
            format!("area,habit,count\n{}{}{}{}", of("nobody"), of("opening"), of("tell"), of("what"))
        );
    }

    #[test]
    fn a_rising_count_is_found_and_a_falling_one_is_accepted() {
        let tree = Tree::of(&[("README.md", "What is told.\n\n| what |\n")]);
        assert!(
            language_gets_no_worse(&tree, "area,habit,count\nREADME.md,tell,1\nREADME.md,what,7\n")
                .is_empty()
        );
        let worse = language_gets_no_worse(&tree, "area,habit,count\nREADME.md,what,1\n");
        assert_eq!(worse.len(), 1);
        assert!(worse[0].starts_with("README.md: habit \"tell\" 1 times, 0 at most"), "{worse:?}");
    }

    #[test]
    fn long_sentences_are_counted() {
        assert_eq!(sentences("One two. Three: four; five? Six `a.b` seven"), [2, 3, 3]);
        let long = "word ".repeat(40);
        let tree = Tree::of(&[("docs/a.md", &*long), ("docs/adr/0001-a.md", &*long)]);
        assert_eq!(
            to_csv(&counts(&tree)),
            "area,habit,count\ndocs/a.md,long sentence,1\ndocs/adr,long sentence,1\n"
        );
    }
}
