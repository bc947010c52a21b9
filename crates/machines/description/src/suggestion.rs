//! Which of the known words was probably meant by an unknown one.

/// How alike two words are, from 0 to 1, for one to be taken for the other.
const ALIKE: f64 = 0.75;

/// The complaint that there is no `word`, with the known one that is most like it, if one is, and all of them.
pub fn unknown(what: &str, word: &str, known: &[&str]) -> String {
    if known.is_empty() {
        return format!("unknown {what} {word:?}: there are none here");
    }
    let all = known.join(", ");
    match nearest(word, known) {
        Some(nearest) => format!("unknown {what} {word:?}, did you mean {nearest}? Expected one of {all}"),
        None => format!("unknown {what} {word:?}, expected one of {all}"),
    }
}

/// The known word that is most like `word`; none if none is like it. Hyphens and underscores are alike.
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
    fn the_nearest_word_is_named_if_there_is_one() {
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
