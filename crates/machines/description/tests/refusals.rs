//! Tests of rejected descriptions: each error names the line.

use description::{Description, DiskDescription, Error, SIZE_LIMIT};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

const HP97560: &str = include_str!("../../../../machines/disks/hp97560.toml");
const DRAWN: &str = include_str!("../../../../machines/disks/drawn-3600.toml");
const STREAMING: &str = include_str!("../../../../machines/disks/streaming-20.toml");

/// Replaces the only `from` in `text` by `to`. Returns the error about the result, and the line of the change.
fn complaint(text: &str, from: &str, to: &str) -> (String, usize) {
    assert_eq!(text.matches(from).count(), 1, "{from:?} must occur once");
    let line = 1 + text[..text.find(from).unwrap()].matches('\n').count();
    let text = text.replace(from, to);
    let error = DiskDescription::parse(&text, "some.toml").expect_err("a refusal");
    (error.to_string(), line)
}

fn assert_refused(text: &str, from: &str, to: &str, expected: &str) {
    let (complaint, line) = complaint(text, from, to);
    assert!(complaint.starts_with(&format!("some.toml:{line}: ")), "{complaint:?} should name line {line}");
    assert!(complaint.contains(expected), "{complaint:?} should contain {expected:?}");
}

#[test]
fn built_in_descriptions_are_valid() {
    for (name, _) in DiskDescription::BUILT_IN {
        DiskDescription::load(name).unwrap();
    }
}

#[test]
fn a_path_is_read_from_the_file_system() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../machines/disks/hp97560.toml");
    assert_eq!(DiskDescription::load(path).unwrap().name(), "HP 97560");
    assert!(matches!(DiskDescription::load("absent.toml"), Err(Error::Unreadable { .. })));
}

#[test]
fn the_error_for_an_unknown_name_lists_the_known_ones() {
    let error = DiskDescription::load("hp97561").unwrap_err().to_string();
    assert!(error.contains("hp97561") && error.contains("hp97560, st318416w, streaming-20"), "{error}");
}

#[test]
fn malformed_descriptions_are_rejected() {
    let cases = [
        ("kind = \"mechanical\"", "kind = \"magnetic\"", "unknown variant `magnetic`"),
        ("short_base         =", "shirt_base         =", "unknown field `shirt_base`, expected one of"),
        ("value = \"128 KiB\"", "value = \"128 kb\"", "expected a whole number of bytes such as \"128 KiB\""),
        ("value = \"1.6 ms\"", "value = \"-1.6 ms\"", "expected a time such as"),
        ("value = \"1.6 ms\"", "value = 1.6", "expected a time such as"),
        ("value = 72,", "value = -72,", "integer `-72`"),
        ("value = 72,", "worth = 72,", "unknown field `worth`"),
        (
            "value = \"4002 rpm\", source = \"Ruemmler & Wilkes 1994\"",
            "value = \"4002 rpm\", source = \" \"",
            "the source is empty",
        ),
        (
            "{ value = \"4002 rpm\", source = \"Ruemmler & Wilkes 1994\" }",
            "\"4002 rpm\"",
            "expected a table { value",
        ),
        (
            "{ value = \"4002 rpm\", source = \"Ruemmler & Wilkes 1994\" }",
            "{ value = \"4002 rpm\" }",
            "rotation: missing field `source`",
        ),
        ("kind = \"mechanical\"", "kind = ", ""),
    ];
    for (from, to, expected) in cases {
        assert_refused(HP97560, from, to, expected);
    }
}

#[test]
fn impossible_values_are_rejected() {
    let cases = [
        ("value = \"1.6 ms\"", "value = \"2.5 ms\"", "head switch within the track skew"),
        ("value = 18,", "value = 17,", "cylinder skew of at least the 3.64ms"),
        ("value = 18,", "value = 72,", "expected less than the 72 sectors per track"),
        ("value = 1962,", "value = 0,", "expected a count from 1"),
        ("value = 0,", "value = 1962,", "expected less than the 1962 cylinders"),
        ("value = \"512 B\"", "value = \"0 B\"", "expected a sector of 1 to"),
        ("value = \"4002 rpm\"", "value = \"0 rpm\"", "whole rotation speed above zero"),
        ("value = \"4002 rpm\"", "value = \"4000000000 rpm\"", "slow enough"),
        ("value = \"3.24 ms\"", "value = \"101 s\"", "expected a time of at most 100s"),
    ];
    for (from, to, expected) in cases {
        assert_refused(HP97560, from, to, expected);
    }
    assert_refused(STREAMING, "value = \"20 MiB/s\"", "value = \"0 MiB/s\"", "expected a rate above zero");
    assert_refused(STREAMING, "value = \"17 GiB\"", "value = \"100 B\"", "from one sector");
    for (from, to, expected) in [
        ("value = \"320 KiB\"", "value = \"1000 B\"", "expected a cylinder of whole sectors of 512 bytes"),
        ("value = \"320 KiB\"", "value = \"0 B\"", "expected a cylinder of whole sectors"),
        ("value = 4096,", "value = 0,", "expected a count from 1"),
        ("value = 0,", "value = 4096,", "expected less than the 4096 cylinders"),
        ("value = \"8.33 ms\"", "value = \"101 s\"", "expected a time of at most 100s"),
        ("value = \"0.04 ms\"", "value = \"101 s\"", "expected a time of at most 100s"),
    ] {
        assert_refused(DRAWN, from, to, expected);
    }
    assert_refused(&DRAWN.replace("320 KiB", "1 PiB"), "value = 4096,", "value = 4097,", "a disk of at most");
}

#[test]
fn impossible_regions_are_rejected() {
    let regions = "value = [\n    \"1:4-646:3\",\n    \"654:0-1298:18\",\n    \"1308:0-1952:18\",\n]";
    let cases = [
        ("[]", "at least one region"),
        ("[\"1:4-646\"]", "expected tracks such as \"1:4-646:3\""),
        ("[\"5:0-4:18\"]", "expected 5:0-4:18 to start before its end"),
        ("[\"0:0-1962:0\"]", "expected 0:0-1962:0 to lie within"),
        ("[\"0:0-1:19\"]", "expected 0:0-1:19 to lie within"),
        ("[\"0:0-4:3\", \"4:3-5:0\"]", "expected 4:3-5:0 to start after"),
    ];
    for (value, expected) in cases {
        assert_refused(HP97560, regions, &format!("value = {value}"), expected);
    }
}

#[test]
fn a_too_long_text_is_rejected() {
    let text = "#".repeat(SIZE_LIMIT + 1);
    let error = DiskDescription::parse(&text, "endless.toml").unwrap_err().to_string();
    assert!(error.starts_with("endless.toml:1: expected at most"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(1996), ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_parsed_or_rejected_with_file_and_line(text in any::<String>()) {
        check_refusal(&text)?;
    }

    /// A valid description with an arbitrary part replaced tests deeper code than a random text.
    #[test]
    fn any_damage_is_parsed_or_rejected_with_file_and_line(
        start in 0..HP97560.len(),
        length in 0_usize..40,
        damage in "[ -~\n]{0,12}",
    ) {
        let end = (start + length).min(HP97560.len());
        check_refusal(&format!("{}{damage}{}", &HP97560[..start], &HP97560[end..]))?;
    }

    #[test]
    fn any_value_is_parsed_or_rejected_with_file_and_line(value in "[0-9.e-]{1,12} (ns|s|KiB|B|MiB/s|rpm)") {
        for old in ["512 B", "1.6 ms", "4002 rpm", "128 KiB"] {
            check_refusal(&HP97560.replace(old, &value))?;
        }
    }
}

fn check_refusal(text: &str) -> Result<(), TestCaseError> {
    if let Err(error) = DiskDescription::parse(text, "any.toml") {
        let message = error.to_string();
        let line =
            message.strip_prefix("any.toml:").and_then(|rest| rest.split(':').next()?.parse::<usize>().ok());
        prop_assert!(
            line.is_some_and(|line| line >= 1 && line <= 1 + text.matches('\n').count()),
            "{message}"
        );
    }
    Ok(())
}
