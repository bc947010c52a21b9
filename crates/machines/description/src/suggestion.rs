//! Suggests the known word that the writer of an unknown word probably meant.

/// Minimum similarity of two words for a suggestion, from 0 to 1.
const ALIKE: f64 = 0.75;

/// Returns the message that `word` is unknown, with the most similar known word, if any, and the list of known words.
pub fn unknown(what: &str, word: &str, known: &[&str]) -> String {
    if known.is_empty() {
        return format!("unknown {what} {word:?}: none are allowed here");
    }
    let all = known.join(", ");
    match nearest(word, known) {
        Some(nearest) => format!("unknown {what} {word:?}, did you mean {nearest}? Expected one of {all}"),
        None => format!("unknown {what} {word:?}, expected one of {all}"),
    }
}

/// Returns the known word most similar to `word`, or `None` if none is similar. Hyphens and underscores count as equal.
fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let word = word.to_lowercase().replace('-', "_");
    let likeness = |known: &&str| strsim::jaro_winkler(&word, &known.replace('-', "_"));
    let best = known.iter().copied().max_by(|one, other| likeness(one).total_cmp(&likeness(other)))?;
    (likeness(&best) >= ALIKE).then_some(best)
}

#[cfg(test)]
mod tests {
    use super::unknown;

    #[test]
    fn the_error_suggests_a_similar_word_if_there_is_one() {
        let known = ["compute", "io", "file_size", "patterns"];
        for (word, meant) in
            [("oi", ""), ("compte", "compute"), ("filesize", "file_size"), ("pattern", "patterns")]
        {
            let complaint = unknown("key", word, &known);
            assert_eq!(complaint.contains("did you mean"), !meant.is_empty(), "{complaint}");
            assert!(complaint.contains(&format!("did you mean {meant}?")) || meant.is_empty(), "{complaint}");
            assert!(complaint.ends_with("xpected one of compute, io, file_size, patterns"), "{complaint}");
        }
    }
}
