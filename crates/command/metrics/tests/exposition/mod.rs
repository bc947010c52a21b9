//! Parser of OpenMetrics text, which checks all rules of the specification and shares no code with the writer.

use std::collections::BTreeMap;

/// Parsed family.
#[derive(Debug, Default)]
pub(crate) struct Family {
    pub(crate) kind: String,
    pub(crate) help: String,
    pub(crate) unit: String,
    /// Name, labels and value of each sample, in order.
    pub(crate) samples: Vec<(Series, f64)>,
}

/// Labels with their values.
pub(crate) type Labels = Vec<(String, String)>;

/// Name of a series, and its labels.
pub(crate) type Series = (String, Labels);

/// Suffixes of series names, for each kind of metric.
const ENDS: [(&str, &[&str]); 4] = [
    ("counter", &["_total"]),
    ("gauge", &[""]),
    ("histogram", &["_bucket", "_sum", "_count"]),
    ("info", &["_info"]),
];

/// Parses a text. Returns the families by name. Panics with the line if the text is not OpenMetrics.
pub(crate) fn parse(text: &str) -> BTreeMap<String, Family> {
    let body = text.strip_suffix("# EOF\n").expect("the text ends with # EOF");
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    let mut current = String::new();
    for line in body.lines() {
        if let Some(comment) = line.strip_prefix("# ") {
            let mut words = comment.splitn(3, ' ');
            let mut word = || words.next().unwrap_or_else(|| panic!("{line}: a word is missing"));
            let (what, name, value) = (word(), word(), word());
            if name != current {
                assert!(!families.contains_key(name), "{line}: the family appears twice");
                current = name.to_owned();
            }
            let family = families.entry(current.clone()).or_default();
            assert!(family.samples.is_empty(), "{line}: the line follows the samples of its family");
            let field = match what {
                "HELP" => &mut family.help,
                "TYPE" => &mut family.kind,
                "UNIT" => &mut family.unit,
                _ => panic!("{line}: neither HELP, TYPE nor UNIT"),
            };
            assert!(field.is_empty(), "{line}: repeated");
            *field = value.to_owned();
            continue;
        }
        let (name, labels, value) = sample(line);
        let family =
            families.get_mut(&current).unwrap_or_else(|| panic!("{line}: the sample belongs to no family"));
        let ends = ENDS
            .iter()
            .find(|(kind, _)| *kind == family.kind)
            .unwrap_or_else(|| panic!("{line}: the family has no known kind"))
            .1;
        let end = name
            .strip_prefix(&*current)
            .unwrap_or_else(|| panic!("{line}: the sample is inside family {current}, but has another name"));
        assert!(ends.contains(&end), "{line}: the name of a {} must end with one of {ends:?}", family.kind);
        let series = (name, labels);
        assert!(family.samples.iter().all(|(other, _)| *other != series), "{line}: repeated");
        family.samples.push((series, value));
    }
    for (name, family) in &families {
        check(name, family);
    }
    families
}

fn is_name(name: &str) -> bool {
    let good = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    !name.is_empty() && name.bytes().all(good) && !name.as_bytes()[0].is_ascii_digit()
}

/// Parses a line into name, labels and value.
fn sample(line: &str) -> (String, Labels, f64) {
    let end = line.find(['{', ' ']).unwrap_or_else(|| panic!("{line}: the number is missing"));
    let (name, mut rest) = line.split_at(end);
    assert!(is_name(name), "{line}: {name} is not a valid name");
    let mut labels = Vec::new();
    if let Some(inner) = rest.strip_prefix('{') {
        rest = inner;
        while !rest.starts_with('}') {
            let (label, after) =
                rest.split_once("=\"").unwrap_or_else(|| panic!("{line}: a label has no value"));
            assert!(is_name(label), "{line}: {label} is not a valid name");
            let (value, after) =
                quoted(after).unwrap_or_else(|| panic!("{line}: the closing quotation mark is missing"));
            assert!(labels.iter().all(|(other, _)| other != label), "{line}: label {label} appears twice");
            labels.push((label.to_owned(), value));
            assert!(after.starts_with([',', '}']), "{line}: expected a comma or a brace after a label");
            rest = after.strip_prefix(',').unwrap_or(after);
        }
        rest = &rest[1..];
    }
    let number = rest.strip_prefix(' ').unwrap_or_else(|| panic!("{line}: the blank is missing"));
    (name.to_owned(), labels, number.parse().unwrap_or_else(|_| panic!("{line}: {number} is not a number")))
}

/// Splits a text at its closing quotation mark; returns the unescaped value and the rest.
fn quoted(text: &str) -> Option<(String, &str)> {
    let (mut value, mut characters) = (String::new(), text.char_indices());
    loop {
        match characters.next()? {
            (at, '"') => return Some((value, &text[at + 1..])),
            (_, '\\') => match characters.next()?.1 {
                'n' => value.push('\n'),
                escaped @ ('\\' | '"') => value.push(escaped),
                _ => return None,
            },
            (_, character) => value.push(character),
        }
    }
}

/// Checks the rules for a family of its kind.
fn check(name: &str, family: &Family) {
    assert!(!family.help.is_empty() && !family.kind.is_empty(), "{name}: HELP or TYPE is missing");
    assert!(
        family.unit.is_empty() || name.ends_with(&format!("_{}", family.unit)),
        "{name}: {}",
        family.unit
    );
    for unit in ["seconds", "bytes"] {
        assert!(
            !name.ends_with(&format!("_{unit}")) || family.unit == unit,
            "{name}: the UNIT line is missing"
        );
    }
    let values = || family.samples.iter().map(|(_, value)| *value);
    match &*family.kind {
        "counter" => assert!(values().all(|value| value >= 0.0 && value.is_finite()), "{name}"),
        "info" => assert!(values().all(|value| value == 1.0), "{name}"),
        "histogram" => check_histogram(name, family),
        _ => {}
    }
}

/// Checks that buckets are ordered and cumulative, and that the last bucket equals the count.
fn check_histogram(name: &str, family: &Family) {
    let mut steps: BTreeMap<Labels, Vec<(f64, f64)>> = BTreeMap::new();
    let (mut counts, mut sums) = (BTreeMap::new(), BTreeMap::new());
    for ((series, labels), value) in &family.samples {
        let (le, others): (Vec<_>, Vec<_>) = labels.iter().cloned().partition(|(label, _)| label == "le");
        match (&series[name.len()..], &le[..]) {
            ("_bucket", [(_, bound)]) => {
                let bound = if bound == "+Inf" { f64::INFINITY } else { bound.parse().expect("a bound") };
                steps.entry(others).or_default().push((bound, *value));
            }
            ("_count", []) => drop(counts.insert(others, *value)),
            ("_sum", []) => drop(sums.insert(others, *value)),
            _ => panic!("{series}: {labels:?}"),
        }
    }
    assert!(steps.keys().eq(counts.keys()) && steps.keys().eq(sums.keys()), "{name}");
    for (labels, steps) in steps {
        assert!(
            steps.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1),
            "{name} {labels:?}"
        );
        assert_eq!(*steps.last().expect("one"), (f64::INFINITY, counts[&labels]), "{name} {labels:?}");
    }
}

/// Returns the value of the series with these labels, if it exists.
pub(crate) fn value(families: &BTreeMap<String, Family>, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
    let mut samples = families.values().flat_map(|family| &family.samples);
    let found = samples.find(|((series, have), _)| {
        let wanted = |(label, value): &(String, String)| labels.contains(&(&**label, &**value));
        series == name && have.len() == labels.len() && have.iter().all(wanted)
    });
    found.map(|(_, value)| *value)
}
