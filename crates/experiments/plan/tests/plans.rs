//! Tests of rejected plans, whose errors name the line and the valid values; of valid plans; and of random input.

use plan::{CELLS_MAX, Kind, Plan, Quantity};
use proptest::prelude::*;

fn parse(text: &str) -> Result<Plan, String> {
    Plan::parse(text, "folder/p.toml").map_err(|error| error.to_string())
}

fn labels(text: &str) -> Vec<String> {
    let plan = parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    plan.cells.iter().map(plan::PlannedCell::label).collect()
}

/// Parses a plan of one pattern, with one variant for each method.
fn of_methods(methods: &[&str], more: &str) -> Result<Plan, String> {
    let variant = |method: &&str| format!("[[variant]]\nname = \"{method}\"\nmethod = \"{method}\"\n");
    let variants: String = methods.iter().map(variant).collect();
    parse(&format!("name = \"x\"\npatterns = [\"wb\"]\n{more}{variants}"))
}

#[test]
fn settings_without_effect_on_any_cell_are_rejected() {
    for (setting, methods, why) in [
        ("outstanding = 2", &["disk-directed"][..], "disk-directed I/O makes no block requests"),
        ("prefetch = 2", &["disk-directed"], "disk-directed I/O makes no block requests"),
        (
            "write_cache = \"2 MiB\"",
            &["traditional", "two-phase"],
            "only the write-cached method has a write",
        ),
        ("grid = \"4x4\"", &["traditional"], "no selected pattern is a matrix"),
    ] {
        let error = of_methods(methods, &format!("{setting}\n")).expect_err("refused");
        let (key, _) = setting.split_once(' ').expect("a key");
        let expected = format!("folder/p.toml:3: {key}: it has no effect: {why}");
        assert!(error.starts_with(&expected) && error.lines().count() == 1, "{error}");
    }
    // Settings that have no effect on the pattern.
    for (setting, patterns, why) in [
        ("prefetch = [0, 1, 8]", "wb", "no data are read"),
        ("queued = [\"never\", \"always\"]", "rb", "the traditional method makes no Memputs"),
        ("memget_writes = [false, true]", "rb", "no data are written"),
    ] {
        let plan = |patterns: &str| {
            let head = "name = \"x\"\nmethod = \"traditional\"\n";
            parse(&format!("{head}patterns = [{patterns}]\n[vary]\n{setting}\n"))
        };
        let error = plan(&format!("\"{patterns}\"")).expect_err("refused");
        assert!(
            error.contains("p.toml:5: ") && error.contains(&format!("it has no effect: {why}")),
            "{error}"
        );
        let of_both = plan("\"rb\", \"wb\"").map(|plan| plan.cells.len());
        assert_eq!(of_both.is_ok(), !setting.starts_with("queued"), "{of_both:?}");
    }
    // Settings that equal the default are allowed even without effect.
    of_methods(&["disk-directed"], "outstanding = 4\nprefetch = 1\n").expect("it is so anyway");
    // A setting that has an effect on one variant may be at the top, and may vary.
    of_methods(&["disk-directed", "traditional"], "outstanding = 2\n").expect("one of them heeds it");
    let vary = |method| {
        format!("name = \"x\"\nmethod = \"{method}\"\npatterns = [\"rb\"]\n[vary]\noutstanding = [1, 2]\n")
    };
    assert!(parse(&vary("traditional")).is_ok());
    let error = parse(&vary("disk-directed")).expect_err("refused");
    assert!(error.starts_with("folder/p.toml:5: outstanding: it has no effect"), "{error}");
    // A setting in a variant must have an effect on this variant.
    let cells = of_methods(&["traditional", "disk-directed"], "").map(|plan| plan.cells.len());
    assert_eq!(cells, Ok(2));
    let text = "name = \"x\"\npatterns = [\"rb\"]\n[[variant]]\nname = \"a\"\nmethod = \"traditional\"\n\
                [[variant]]\nname = \"b\"\nmethod = \"disk-directed\"\noutstanding = 2\n";
    let error = parse(text).expect_err("refused");
    assert!(error.starts_with("folder/p.toml:9: outstanding: it has no effect"), "{error}");
}

/// Three valid lines.
const HEAD: &str = "name = \"x\"\nmethod = \"traditional\"\npatterns = [\"rb\"]\n";

#[test]
fn mistakes_are_reported_with_their_line_and_valid_values() {
    let variant = "[[variant]]\nname = \"a\"\n";
    let cases: &[(&str, usize, &str)] = &[
        ("", 1, "the name is missing"),
        ("name = \"x\"\nname = \"y\"\n", 2, "duplicate key"),
        ("name = \n", 1, "value"),
        ("name = \"x\"\n", 1, "the patterns are missing: expected \"all\""),
        ("name = 7\npatterns = \"all\"\n", 1, "expected a text in quotes, not 7"),
        ("name = \"x\"\npatterns = \"all\"\n", 1, "the method is missing: expected one of traditional"),
        (
            &format!("{HEAD}pattern = \"rb\"\n"),
            4,
            "unknown key \"pattern\", did you mean patterns? Expected one of name",
        ),
        (&format!("{HEAD}method2 = 1\n"), 4, "unknown key \"method2\""),
        ("name = \"x\"\nmethod = \"psychic\"\npatterns = \"all\"\n", 2, "no method \"psychic\": traditional"),
        ("name = \"x\"\nmethod = \"traditional\"\npatterns = \"rb\"\n", 3, "expected \"all\", \"reads\""),
        (
            "name = \"x\"\nmethod = \"traditional\"\npatterns = []\n",
            3,
            "the list is empty: expected patterns, at least one",
        ),
        (
            "name = \"x\"\nmethod = \"traditional\"\npatterns = [\n\"rb\",\n\"xb\"]\n",
            5,
            "begins with r (read) or w (write)",
        ),
        ("name = \"x\"\nmethod = \"traditional\"\npatterns = [\"rb\", \"rb\"]\n", 3, "rb is listed twice"),
        (&format!("{HEAD}trials = 0\n"), 4, "expected a whole number from 1 to 1000, not 0"),
        (&format!("{HEAD}trials = -1\n"), 4, "expected a whole number from 1 to 1000, not -1"),
        (&format!("{HEAD}trials = 2.5\n"), 4, "expected a whole number from 1 to 1000, not 2.5"),
        (&format!("{HEAD}records = []\n"), 4, "the list is empty"),
        (&format!("{HEAD}records = [81.92]\n"), 4, "expected a whole number of bytes such as"),
        (&format!("{HEAD}records = [\"8 bit\"]\n"), 4, "expected a whole number of bytes such as"),
        (&format!("{HEAD}records = [\"0 B\"]\n"), 4, "expected from 1 to"),
        (&format!("{HEAD}records = [0]\n"), 4, "expected from 1 to"),
        (&format!("{HEAD}file-sise = 8192\n"), 4, "did you mean file_size?"),
        (&format!("{HEAD}records = [\"8 KiB\", \"8192 B\"]\n"), 4, "8192 B is listed twice"),
        (
            &format!("{HEAD}records = [\"8 KiB\",\n\"7 B\"]\n"),
            5,
            "traditional/rb/7: a file of 10485760 bytes",
        ),
        (&format!("{HEAD}block = \"1000 B\"\n"), 4, "sectors have 512: make it a multiple"),
        (&format!("{HEAD}file_size = \"32 GiB\"\n"), 4, "make the file smaller, or use more disks"),
        (
            "name = \"x\"\nmethod = \"traditional\"\npatterns = [\"rb\",\n\"rcb\"]\nshape = \"3x3\"\n",
            4,
            "traditional/rcb/8192",
        ),
        (&format!("{HEAD}shape = \"big\"\n"), 4, "big"),
        (&format!("{HEAD}layout = \"spiral\"\n"), 4, "no layout \"spiral\": contiguous, packed or random"),
        (&format!("{HEAD}contents = \"lies\"\n"), 4, "expected real or phantom"),
        (&format!("{HEAD}scheduling = \"lifo\"\n"), 4, "expected one of fcfs, cyclic-scan"),
        (&format!("{HEAD}outstanding = 0\n"), 4, "expected a whole number from 1 to 65536"),
        (&format!("{HEAD}thread_per_request = \"yes\"\n"), 4, "expected true or false, not \"yes\""),
        (&format!("{HEAD}queued = \"sometimes\"\n"), 4, "expected never, always or small-records"),
        (&format!("{HEAD}presort = true\n"), 4, "only the disk-directed method can presort"),
        (&format!("{HEAD}page_cache = \"much\"\n"), 4, "expected a whole number of bytes such as"),
        (&format!("{HEAD}window = \"wide\"\n"), 4, "no window \"wide\": expected a number of pages"),
        (&format!("{HEAD}window = 4\n"), 4, "set page_cache, too"),
        (&format!("{HEAD}page_cash = 4\n"), 4, "did you mean page_cache?"),
        (&format!("{HEAD}machine = \"cray\"\n"), 4, "no machine has the name \"cray\""),
        (&format!("{HEAD}machine = \"cray.toml\"\n"), 4, "folder/cray.toml"),
        (&format!("{HEAD}set = {{ \"nodes.disks\" = 8 }}\n"), 4, "unknown key \"disks\", expected one of"),
        (&format!("{HEAD}set = {{ nodes.io = 0 }}\n"), 4, "expected from 1 to"),
        (&format!("{HEAD}set = 3\n"), 4, "expected a table, not 3"),
        (
            &format!("{HEAD}[vary]\nset = {{ \"nodes.io\" = [0], \"nodes.oi\" = [3] }}\n"),
            5,
            "unknown key \"oi\"",
        ),
        (&format!("{HEAD}variant = []\n"), 4, "the list is empty"),
        (&format!("{HEAD}variant = 1\n"), 4, "expected a list of [[variant]]"),
        (&format!("{HEAD}[[variant]]\nmethod = \"traditional\"\n"), 4, "the variant's name is missing"),
        (&format!("{HEAD}{variant}{variant}"), 7, "a variant \"a\" already exists"),
        (
            &format!("{HEAD}{variant}speed = 1\n"),
            6,
            "unknown key \"speed\", expected one of name, set, machine",
        ),
        (&format!("{HEAD}[[variant]]\nname = \"a/b\"\n"), 5, "expected a name without /"),
        (
            &format!("{HEAD}{variant}[[variant]]\nname = \"b\"\nmethod = \"two-phase\"\npresort = true\n"),
            9,
            "only the disk-directed",
        ),
        ("name = \"\"\npatterns = \"all\"\n", 1, "it is empty: expected a text"),
        (&format!("{HEAD}[vary]\n"), 4, "nothing varies: expected lists of values"),
        (&format!("{HEAD}[vary]\nset = {{}}\n"), 5, "nothing varies: expected lists of values"),
        (&format!("{HEAD}[vary]\noutstanding = []\n"), 5, "the list is empty"),
        (&format!("{HEAD}[vary]\noutstanding = 3\n"), 5, "expected a list of values, not 3"),
        (&format!("{HEAD}[vary]\noutstanding = [1, 0]\n"), 5, "expected a whole number from 1"),
        (&format!("{HEAD}[vary]\noutstanding = [1, 1]\n"), 5, "1 is listed twice"),
        (&format!("{HEAD}[vary]\nspeed = [1]\n"), 5, "unknown key \"speed\""),
        (
            &format!("{HEAD}outstanding = 2\n[vary]\noutstanding = [1]\n"),
            6,
            "outstanding is both in [vary] and set",
        ),
        (&format!("{HEAD}[vary]\nset = {{ \"nodes.io\" = [8, 0] }}\n"), 5, "expected from 1 to"),
        (
            &format!("{HEAD}[vary.set]\n\"disks.per_io_node\" = [1]\n\"nodes.io\" = [8,\n0]\n"),
            7,
            "expected from 1 to",
        ),
        (
            &format!("{HEAD}presort = true\n[[variant]]\nname = \"a\"\nblock = \"1000 B\"\n"),
            4,
            "only the disk-directed",
        ),
        (
            &format!("{HEAD}[[variant]]\nname = \"a\"\n[vary]\noutstanding = [1]\npresort = [false, true]\n"),
            8,
            "only the disk-directed",
        ),
        (&format!("{HEAD}[table]\nnumber = 2\n"), 4, "system is missing"),
        (
            &format!("{HEAD}[table]\nnumber = 2\nsystem = \"x\"\nvalue = \"speed\"\n"),
            7,
            "throughput or movements",
        ),
        (&format!("{HEAD}[table]\nnumber = 2\ncolour = 2\n"), 6, "unknown key \"colour\""),
        (&format!("{HEAD}[table]\n[figure]\n"), 5, "not both"),
    ];
    for (text, line, expected) in cases {
        let error = parse(text).err().unwrap_or_else(|| panic!("accepted:\n{text}"));
        let place = format!("folder/p.toml:{line}: ");
        let is_reported =
            error.lines().any(|reported| reported.starts_with(&place) && reported.contains(expected));
        assert!(is_reported, "{error}, expected line {line} and {expected:?}, of\n{text}");
    }
}

#[test]
fn all_mistakes_are_reported_together_in_order() {
    let lines = |text: &str, expected: &[&str]| {
        let error = parse(text).expect_err("a refusal");
        let reported: Vec<&str> = error.lines().collect();
        assert_eq!(reported.len(), expected.len(), "{error}");
        for (reported, expected) in reported.iter().zip(expected) {
            let (line, part) = expected.split_once(' ').expect("a line and a part");
            assert!(
                reported.starts_with(&format!("folder/p.toml:{line}: ")) && reported.contains(part),
                "{error}"
            );
        }
    };
    let text = "name = \"x\"\ntrials = 0\npatterns = [\"rb\", \"xx\"]\nmethod = \"psychic\"\nspeed = 3\n\
        records = [\"8 bit\"]\n[vary]\noutstanding = [1, 0]\n[[variant]]\nblock = 0\n";
    lines(
        text,
        &[
            "2 expected a whole number from 1 to 1000, not 0",
            "3 begins with r (read) or w (write)",
            "4 no method \"psychic\"",
            "5 unknown key \"speed\"",
            "6 expected a whole number of bytes",
            "8 expected a whole number from 1 to 65536, not 0",
            "9 the variant's name is missing",
            "10 expected from 1 to",
        ],
    );
    // If several combinations have the same mistake, it is reported once for each place.
    let text = "name = \"x\"\npatterns = [\"rb\", \"wb\"]\nrecords = [8192,\n7]\n\
        [[variant]]\nname = \"a\"\nmethod = \"traditional\"\npresort = true\n\
        [[variant]]\nname = \"b\"\nmethod = \"two-phase\"\npresort = true\n\
        [[variant]]\nname = \"c\"\nmethod = \"traditional\"\n";
    lines(text, &["4 c/rb/7", "8 only the disk-directed", "12 only the disk-directed"]);
}

#[test]
fn mistakes_beyond_the_limit_are_counted() {
    let error = parse(&(0..30).map(|key| format!("wrong{key} = 1\n")).collect::<String>()).unwrap_err();
    assert!(error.ends_with("and 12 more mistakes after these"), "{error}");
}

#[test]
fn too_long_plans_and_too_many_cells_are_rejected() {
    let long = format!("{HEAD}# {}\n", "x".repeat(description::SIZE_LIMIT));
    assert!(parse(&long).unwrap_err().contains("bytes of plan"));
    let seeds: Vec<String> = (1..=CELLS_MAX + 1).map(|number| number.to_string()).collect();
    let many = format!("{HEAD}[vary]\noutstanding = [{}]\n", seeds.join(","));
    let error = parse(&many).unwrap_err();
    assert!(error.starts_with("folder/p.toml:5: ") && error.contains("make several plans"), "{error}");
}

#[test]
fn every_combination_is_a_cell_and_variants_are_adjacent() {
    let text = "name = \"x\"\npatterns = [\"rb\", \"wcc\"]\nrecords = [\"8 B\", \"8 KiB\"]\n\
        [[variant]]\nname = \"t\"\nmethod = \"traditional\"\n[[variant]]\nname = \"d\"\nmethod = \"disk-directed\"\n";
    let expected =
        ["t/rb/8", "d/rb/8", "t/wcc/8", "d/wcc/8", "t/rb/8192", "d/rb/8192", "t/wcc/8192", "d/wcc/8192"];
    assert_eq!(labels(text), expected);
    let varied = format!("{HEAD}[vary]\noutstanding = [1, 4]\nset = {{ \"nodes.io\" = [8, 16] }}\n");
    let expected = ["1,nodes.io=8", "1,nodes.io=16", "4,nodes.io=8", "4,nodes.io=16"];
    let expected = expected.map(|varied| format!("traditional,outstanding={varied}/rb/8192"));
    assert_eq!(labels(&varied), expected);
    let plan = parse(&varied).expect("it is valid");
    let experiment = &plan.cells[1].case;
    assert_eq!((experiment.options.outstanding, experiment.machine.nodes.io.value), (1, 16));
    assert_eq!((plan.trials, plan.seed, plan.published), (5, 1, None));
}

#[test]
fn the_window_of_a_page_cache_can_be_varied() {
    let text = format!("{HEAD}page_cache = \"1 MiB\"\n[vary]\nwindow = [1, 16, \"adaptive\"]\n");
    let plan = parse(&text).expect("a plan");
    let chosen = |cell: &plan::PlannedCell| (cell.case.options.page_cache_bytes, cell.label());
    let expected =
        ["1", "16", "adaptive"].map(|window| (1 << 20, format!("traditional,window={window}/rb/8192")));
    assert_eq!(plan.cells.iter().map(chosen).collect::<Vec<_>>(), expected);
}

#[test]
fn keys_and_sizes_may_be_spelt_as_in_options() {
    let head = "name = \"x\"\npatterns = [\"wb\"]\nmethod = \"traditional\"\n";
    let one = format!(
        "{head}records = [64, \"8k\"]\nfile-size = \"1.5MiB\"\nphantom = true\nthread-per-request = true\n\
         [vary]\nmemget-writes = [true, false]\n"
    );
    let other = format!(
        "{head}records = [\"64 B\", \"8 KiB\"]\nfile_size = 1572864\ncontents = \"phantom\"\n\
         thread_per_request = true\n[vary]\nmemget_writes = [true, false]\n"
    );
    let [one, other] = [one, other].map(|text| parse(&text).expect("a plan"));
    assert_eq!(format!("{:?}", one.cells), format!("{:?}", other.cells));
    assert_eq!(one.cells.len(), 4);
    let twice = format!("{head}block = 8192\n[vary]\nmemget_writes = [true]\nmemget-writes = [true]\n");
    assert!(parse(&twice).expect_err("a refusal").contains("memget_writes"));
    let twice = format!("{head}file-size = 8192\nfile_size = \"1 MiB\"\n");
    assert!(parse(&twice).expect_err("a refusal").contains("file_size"));
}

#[test]
fn a_variant_overrides_the_keys_at_the_top() {
    let text = "name = \"x\"\npatterns = [\"rb\"]\nmethod = \"traditional\"\noutstanding = 2\nset = { nodes.io = 8 }\n\
        seed = 7\ntrials = 2\ntitle = \"t\"\n[table]\nnumber = 3\nsystem = \"tpfs-moves\"\nvalue = \"movements\"\n\
        [[variant]]\nname = \"a\"\n[[variant]]\nname = \"b\"\noutstanding = 3\nset = { \"nodes.io\" = 4 }\n";
    let plan = parse(text).expect("it is valid");
    let chosen = |cell: &plan::PlannedCell| {
        (cell.case.options.outstanding, cell.case.machine.nodes.io.value, cell.case.seed)
    };
    assert_eq!(plan.cells.iter().map(chosen).collect::<Vec<_>>(), [(2, 8, 7), (3, 4, 7)]);
    let published = plan.published.expect("it has a number");
    assert_eq!((published.kind, published.number), (Kind::Table, 3));
    assert_eq!((published.system.as_str(), published.quantity), ("tpfs-moves", Quantity::Movements));
}

#[test]
fn groups_of_patterns_omit_those_that_the_reports_omit() {
    let text = |patterns: &str, records: &str| {
        format!("name = \"x\"\nmethod = \"traditional\"\npatterns = {patterns}\nrecords = {records}\n")
    };
    let both = "[\"8 B\", \"8192 B\"]";
    assert_eq!(labels(&text("\"all\"", both)).len(), 19 + 16);
    assert_eq!(labels(&text("\"reads\"", both)).len(), 10 + 8);
    assert_eq!(labels(&text("\"writes\"", both)).len(), 9 + 8);
    assert_eq!(labels(&text("\"all\"", "[\"8 B\"]")).len(), 19);
    assert_eq!(labels(&text("[\"rn\", \"rb\"]", both)).len(), 4);
}

/// Generates valid and invalid lines of plans, so that random input is read beyond the first line.
fn line() -> impl Strategy<Value = String> {
    let keys = [
        "name",
        "title",
        "trials",
        "seed",
        "patterns",
        "records",
        "table",
        "figure",
        "vary",
        "variant",
        "set",
        "machine",
        "method",
        "layout",
        "file_size",
        "block",
        "shape",
        "grid",
        "outstanding",
        "presort",
        "queued",
        "number",
        "system",
        "value",
        "\"nodes.io\"",
        "\"\"",
        "x",
    ];
    let values = [
        "1",
        "0",
        "-5",
        "16",
        "99999999999999999999",
        "1.5",
        "nan",
        "true",
        "\"\"",
        "\"rb\"",
        "\"all\"",
        "[]",
        "[\"rb\", \"wcc\"]",
        "[1, 2]",
        "[[1], {}]",
        "{}",
        "{ nodes.io = 8 }",
        "{ \"nodes.io\" = [8, 16] }",
        "\"traditional\"",
        "\"disk-directed\"",
        "\"two-phase\"",
        "\"8 B\"",
        "[\"8 B\", \"8 KiB\"]",
        "\"1 TiB\"",
        "\"3x5\"",
        "\"40x32\"",
        "\"16777216x0\"",
        "1979-05-27",
        "\"random\"",
        "\"golden\"",
        "\"cluster-switch\"",
        "\"/dev/null.toml\"",
        "'''\n'''",
    ];
    let heads = ["[vary]", "[[variant]]", "[table]", "[figure]", "[set]", "[vary.set]", "[", "name = \"x\""];
    prop_oneof![
        6 => (prop::sample::select(keys.to_vec()), prop::sample::select(values.to_vec()))
            .prop_map(|(key, value)| format!("{key} = {value}")),
        1 => prop::sample::select(heads.to_vec()).prop_map(str::to_owned),
        1 => "\\PC{0,20}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn garbage_never_panics_and_errors_name_the_file(lines in prop::collection::vec(line(), 0..12)) {
        let text = lines.join("\n");
        for text in [text.clone(), format!("{HEAD}{text}")] {
            if let Err(error) = parse(&text) {
                prop_assert!(error.starts_with("folder/p.toml:"), "{}", error);
            }
        }
    }

    #[test]
    fn random_characters_never_panic(text in "\\PC{0,200}") {
        let _ = parse(&text);
    }
}
