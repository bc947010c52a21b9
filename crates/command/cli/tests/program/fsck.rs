//! `starfish fsck` with real agents finds and locates any damage of stripes. `get --skip-damaged` copies the readable
//! parts of a file.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::common::{Store, contents, finish};
use crate::killing::setting;
use serde_json::Value;

/// Environment variable with the number of bits to flip. The default is 40.
const FLIPS_VARIABLE: &str = "STARFISH_FSCK_FLIPS";

const UNIT: u64 = 4096;
const BLOCK: u64 = 64 * 1024;

/// Returns the position of a byte of a stripe in the stripe's file. The header has 12 KiB, and before each MiB of data
/// there are 8 KiB of checksums.
fn in_file(offset: u64) -> u64 {
    const MIB: u64 = 1 << 20;
    12 * 1024 + offset / MIB * (MIB + 8192) + 8192 + offset % MIB
}

fn change(path: &Path, at: u64, change: impl Fn(u8) -> u8) {
    let file = OpenOptions::new().read(true).write(true).open(path).expect("a stripe");
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).expect("the file is that long");
    file.write_all_at(&[change(byte[0])], at).expect("room");
}

/// Returns the JSON report of `fsck`, and true if there are no findings.
fn fsck(store: &Store, arguments: &[&str]) -> (Value, bool) {
    let output = finish(store.command(&[&["fsck", "--format", "json"], arguments].concat()));
    let errors = String::from_utf8(output.stderr).expect("text");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{errors}"));
    let is_well = report["findings"] == Value::Array(Vec::new());
    assert_eq!(output.status.code(), Some(if is_well { 0 } else { 1 }), "{errors}");
    (report, is_well)
}

/// Returns the file, kind and stripe of each finding.
fn findings(report: &Value) -> Vec<(String, String, Option<u64>)> {
    let rows = report["findings"].as_array().expect("an array").iter();
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    rows.map(|row| (text(&row["file"]), text(&row["kind"]), row["stripe"].as_u64())).collect()
}

/// Small generator of pseudo-random numbers.
struct Draw(u64);

impl Draw {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

#[test]
fn every_flipped_bit_is_found_and_intact_data_are_saved() {
    let flips = setting(FLIPS_VARIABLE, 40);
    // Half of the checksummed units remain intact.
    let bytes = (flips * 2 * UNIT).max(6 << 20) + 777;
    let mut store = Store::start(&[1, 1, 2]);
    store.make_file("file", bytes as usize);
    store.make_file("other", 1 << 20);
    for name in ["file", "other"] {
        store.run(&["put", name, "--block", "64KiB"]);
    }
    let (report, is_well) = fsck(&store, &[]);
    assert!(is_well && report["files"] == 2 && report["bytes"] == bytes + (1 << 20), "{report}");

    let stripes: Vec<_> = (0..4).map(|stripe| store.stripe("file", stripe)).collect();
    let (mut draw, mut expected) = (Draw(1), BTreeSet::new());
    while (expected.len() as u64) < flips {
        let (stripe, offset) = (draw.below(4), draw.below(bytes / 4 / BLOCK * BLOCK));
        if expected.insert((stripe, offset / UNIT)) {
            change(&stripes[stripe as usize].1, in_file(offset), |byte| byte ^ 1 << draw_bit(offset));
        }
    }
    let (report, _) = fsck(&store, &[]);
    let (mut found, mut lost) = (BTreeSet::new(), BTreeSet::new());
    for row in report["findings"].as_array().expect("an array") {
        assert!(row["file"] == "/file" && row["kind"] == "damaged", "{row}");
        let number = |value: &Value| value.as_u64().expect("a number");
        let (stripe, disk) = (number(&row["stripe"]), number(&row["disk"]));
        let (agent, path) = &stripes[stripe as usize];
        let agent = &store.agents[*agent];
        assert!(row["agent"] == *agent.address && path.starts_with(&agent.roots[disk as usize]), "{row}");
        for part in row["damaged"].as_array().expect("an array") {
            for at in (number(&part[0])..number(&part[0]) + number(&part[1])).step_by(UNIT as usize) {
                assert_eq!(stripe, at / BLOCK % 4);
                found.insert((stripe, (at / BLOCK / 4 * BLOCK + at % BLOCK) / UNIT));
                lost.insert(at / UNIT);
            }
        }
    }
    assert_eq!(found, expected);

    // The agents' caches still contain the original data.
    store.restart(&[]);
    let output = finish(store.command(&["get", "file", "rest", "--skip-damaged"]));
    let stderr = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains(&format!("{} bytes could not be read", flips * UNIT)), "{stderr}");
    let mut rest = contents(bytes as usize);
    for unit in lost {
        let (start, end) = (unit * UNIT, (unit + 1) * UNIT);
        rest[start as usize..end as usize].fill(0);
    }
    assert!(fs::read(store.path("rest")).expect("a file") == rest);
    store.run(&["get", "other", "whole", "--skip-damaged"]);
    assert!(fs::read(store.path("whole")).expect("a file") == contents(1 << 20));
}

fn draw_bit(offset: u64) -> u64 {
    offset % 8
}

#[test]
fn cut_swapped_foreign_and_missing_stripes_are_found() {
    let mut store = Store::start(&[1, 1, 1, 1]);
    let bytes = 1 << 20;
    store.make_file("file", bytes);
    for name in ["cut", "swapped", "taken", "missing", "foreign", "mixed", "whole"] {
        store.run(&["put", "file", name, "--block", "64KiB"]);
    }
    let stripe = |name: &str, index| store.stripe(name, index).1;
    let cut = OpenOptions::new().write(true).open(stripe("cut", 0)).expect("a stripe");
    cut.set_len(in_file(2 * BLOCK)).expect("a file");
    let [swapped, taken] = ["swapped", "taken"].map(|name| stripe(name, 1));
    fs::rename(&swapped, store.path("aside")).expect("one file system");
    fs::rename(&taken, &swapped).expect("one file system");
    fs::rename(store.path("aside"), &taken).expect("one file system");
    fs::remove_file(stripe("missing", 2)).expect("it exists");
    fs::copy(stripe("foreign", 2), stripe("foreign", 3)).expect("room");
    // Exchange two units of a stripe.
    let mixed = OpenOptions::new().read(true).write(true).open(stripe("mixed", 0)).expect("a stripe");
    let mut units = [[0; UNIT as usize]; 2];
    for (unit, at) in units.iter_mut().zip([0, 5 * UNIT]) {
        mixed.read_exact_at(unit, in_file(at)).expect("the file is that long");
    }
    for (unit, at) in units.iter().zip([5 * UNIT, 0]) {
        mixed.write_all_at(unit, in_file(at)).expect("room");
    }
    store.restart(&[]);

    let (report, _) = fsck(&store, &[]);
    assert_eq!(report["files"], 7);
    let damaged = |file: &str| {
        let mut rows = report["findings"].as_array().expect("an array").iter();
        rows.find(|row| row["file"] == file).expect("a finding")["damaged"].clone()
    };
    // The last two of the four blocks in the stripe.
    assert_eq!(damaged("/cut"), serde_json::json!([[8 * BLOCK, BLOCK], [12 * BLOCK, BLOCK]]));
    assert_eq!(damaged("/mixed"), serde_json::json!([[0, UNIT], [5 * UNIT, UNIT]]));
    let text = finish(store.command(&["fsck", "mixed", "missing"]));
    let text = String::from_utf8(text.stdout).expect("text");
    for part in ["bytes 0 to 4095, 20480 to 24575", "it is missing on its disk", "2 files"] {
        assert!(text.contains(part), "{text}");
    }
    let rows = finish(store.command(&["fsck", "mixed", "missing", "--format", "csv"]));
    let (rows, notes) = (String::from_utf8(rows.stdout), String::from_utf8_lossy(&rows.stderr).into_owned());
    let rows = rows.expect("text");
    let mut lines: Vec<&str> = rows.lines().collect();
    lines.sort_unstable();
    assert_eq!((lines.len(), lines[0]), (3, "file,kind,stripe,agent,disk,damaged,text"), "{rows}");
    assert!(lines[1].starts_with("missing,missing,2,,,,"), "{rows}");
    assert!(lines[2].contains(",0,0+4096 20480+4096,"), "{rows}");
    assert!(notes.contains("2 files, "), "{notes}");
    // In a copy, a missing stripe becomes a hole.
    let saved = finish(store.command(&["get", "missing", "--skip-damaged"]));
    assert_eq!(saved.status.code(), Some(1));
    let mut rest = contents(bytes);
    (0..4).for_each(|row| rest[(row * 4 + 2) * BLOCK as usize..][..BLOCK as usize].fill(0));
    assert!(fs::read(store.path("missing")).expect("a file") == rest);

    assert!(store.run(&["fsck", "whole"]).contains("1 file, 1.0 MiB read back in"));
    assert!(store.run_failing(&["fsck", "nothing"]).contains("not all files and disks could be checked"));
    let begun = Instant::now();
    store.run(&["fsck", "whole", "--rate", "2MiB"]);
    assert!(begun.elapsed() > Duration::from_millis(450), "{:?}", begun.elapsed());

    let finding = |file: &str, kind: &str, stripe| (file.to_owned(), kind.to_owned(), stripe);
    let mut found = findings(&report);
    found.sort();
    let expected = [
        finding("/cut", "damaged", Some(0)),
        finding("/foreign", "foreign", Some(2)),
        finding("/foreign", "missing", Some(3)),
        finding("/missing", "missing", Some(2)),
        finding("/mixed", "damaged", Some(0)),
        finding("/swapped", "damaged", None),
        finding("/swapped", "missing", Some(1)),
        finding("/taken", "damaged", None),
        finding("/taken", "missing", Some(1)),
    ];
    assert_eq!(found, expected);
}

/// If a file is damaged, its intact stripes are not reported as missing.
#[test]
fn a_file_has_the_same_findings_alone_and_among_all() {
    let mut store = Store::start(&[1, 1]);
    store.make_file("file", 1 << 20);
    store.run(&["put", "file"]);
    fs::File::create(store.stripe("file", 1).1).expect("a stripe file");
    store.restart(&[]);
    let found = |names: &[&str]| {
        let (report, _) = fsck(&store, names);
        findings(&report).into_iter().map(|(_, kind, stripe)| (kind, stripe)).collect::<BTreeSet<_>>()
    };
    let all = found(&[]);
    assert!(!all.contains(&("missing".to_owned(), Some(0))), "{all:?}");
    assert_eq!(found(&["file"]), all);
}
