//! Tests of machine descriptions: invalid values are rejected with their lines, and values can be overridden.

use description::{Description, Level, MachineDescription, Topology};
use machine::Work;

const STARFISH: &str = include_str!("../../../../machines/starfish-1996.toml");
const CLUSTER: &str = include_str!("../../../../machines/cluster-switch.toml");

fn assert_refused(text: &str, from: &str, to: &str, expected: &str) {
    assert_eq!(text.matches(from).count(), 1, "{from:?} must occur once");
    let line = 1 + text[..text.find(from).unwrap()].matches('\n').count();
    let error = MachineDescription::parse(&text.replace(from, to), "some.toml").expect_err("a refusal");
    let complaint = error.to_string();
    assert!(complaint.starts_with(&format!("some.toml:{line}: ")), "{complaint:?} should name line {line}");
    assert!(complaint.contains(expected), "{complaint:?} should contain {expected:?}");
}

#[test]
fn built_in_machines_are_valid() {
    for (name, _) in MachineDescription::BUILT_IN {
        MachineDescription::load(name).unwrap();
    }
}

#[test]
fn the_starfish_machine_equals_that_of_table_1() {
    let machine = MachineDescription::load("starfish-1996").unwrap();
    assert_eq!((machine.nodes.compute.value, machine.nodes.io.value), (16, 16));
    assert_eq!(machine.processor.clock.value.0, 50_000_000);
    let handler = machine.processor.cost.of(Work::HandleMemput { bytes: 8 });
    assert_eq!((handler.level, handler.cycles.value.0), (Level::Interrupt, 91));
    assert_eq!(handler.cycles_per_word.as_ref().unwrap().value.0, 1);
    let Topology::Torus(torus) = &machine.network.topology else { panic!("a torus") };
    assert_eq!((torus.columns.value, torus.rows.value), (6, 6));
    assert_eq!(machine.disk().unwrap().name(), "HP 97560");
}

#[test]
fn invalid_machines_are_rejected_with_the_line() {
    assert_refused(STARFISH, "compute = { value = 16,", "compute = { value = 0,", "expected from 1 to");
    assert_refused(
        STARFISH,
        "columns        = { value = 6,",
        "columns        = { value = 5,",
        "32 nodes from router 1",
    );
    assert_refused(STARFISH, "\"200e6 B/s\"", "\"0 B/s\"", "expected a rate above zero");
    assert_refused(STARFISH, "\"20 ns\"", "\"20 B\"", "expected a time");
    assert_refused(STARFISH, "\"hp97560\"", "\"hp97561\"", "no disk has the name");
    assert_refused(STARFISH, "build_request  ", "built_request  ", "unknown work \"built_request\"");
    assert_refused(STARFISH, "router_latency", "router_latencies", "unknown field");
    assert_refused(STARFISH, "\"compute-then-io\"", "\"anywhere\"", "unknown variant");
    assert_refused(
        STARFISH,
        "barrier       = { cycles",
        "barrier       = { cycles_per_word = { value = 1, source = \"x\" }, cycles",
        "does not work on words",
    );
    assert_refused(
        CLUSTER,
        "per_io_node = { value = 2,",
        "per_io_node = { value = 5,",
        "no more buses than the 4 disks",
    );
    let loopback = include_str!("../../../../machines/loopback.toml");
    assert_refused(
        loopback,
        "flush       = { value = \"2.5 ms\"",
        "flush = { value = \"1000 s\"",
        "at most 100",
    );
}

#[test]
fn missing_keys_are_named() {
    let complaint =
        |text: String| MachineDescription::parse(&text, "some.toml").expect_err("a refusal").to_string();
    let without =
        |start: &str| STARFISH.lines().filter(|line| !line.starts_with(start)).collect::<Vec<_>>().join("\n");
    assert!(complaint(without("barrier")).contains("the cost of barrier is missing"));
    assert!(complaint(without("columns")).contains("columns"));
    assert!(
        complaint(STARFISH.replace("kind           = \"torus\"", "kind = \"switch\"")).contains("latency")
    );
    assert!(complaint(without("io      = { value = 16,")).contains("missing field `io`"));
}

#[test]
fn an_invalid_number_is_reported_with_the_valid_range() {
    let bare = STARFISH.replace("{ value = 16, source = \"Table 1: 16 I/O processors\" }", "-4");
    let message = MachineDescription::parse(&bare, "some.toml").expect_err("a refusal").to_string();
    assert!(
        message.contains(", expected a table { value") && !message.contains("expected expected"),
        "{message}"
    );
    let with = |value| MachineDescription::load_with("starfish-1996", &[("nodes.io", value)]);
    let message = with("-1").expect_err("a refusal").to_string();
    assert!(message.ends_with("expected a whole number from 0 to 4294967295"), "{message}");
    // Mistakes in the text take precedence over mistakes in overrides.
    let empty = MachineDescription::parse_with("", "empty.toml", &[("nodes.io", "4")]);
    let message = empty.expect_err("a refusal").to_string();
    assert_eq!(message, "empty.toml:1: missing field `name`");
}

#[test]
fn any_value_can_be_overridden_and_is_checked() {
    let with = |key, value| MachineDescription::load_with("starfish-1996", &[(key, value)]);
    assert_eq!(with("nodes.compute", "8").unwrap().nodes.compute.value, 8);
    for rate in ["400e6 B/s", "\"400e6 B/s\""] {
        let machine = with("network.link_bandwidth", rate).unwrap();
        let Topology::Torus(torus) = machine.network.topology else { panic!("a torus") };
        assert_eq!(
            (torus.link_bandwidth.value.0, torus.link_bandwidth.source.as_str()),
            (400_000_000, "override")
        );
    }
    assert_eq!(with("name", "another").unwrap().name, "another");
    let cost = with("processor.cost.copy.cycles_per_word", "2").unwrap();
    let copy = cost.processor.cost.of(Work::Copy { bytes: 0 });
    assert_eq!(copy.cycles_per_word.as_ref().unwrap().value.0, 2);
    assert!(!with("disks.wait_for_disk_buffer", "false").unwrap().disks.wait_for_disk_buffer.value);
    let both = [("nodes.compute", "4"), ("nodes.io", "2")];
    assert_eq!(MachineDescription::load_with("golden", &both).unwrap().node_count(), 6);

    let complaint = |key, value| with(key, value).expect_err("a refusal").to_string();
    assert!(complaint("network.bandwidth", "1").contains("unknown key \"bandwidth\""));
    let misspelt = complaint("network.link_bandwith", "1");
    assert!(misspelt.contains("unknown key \"link_bandwith\", did you mean link_bandwidth?"), "{misspelt}");
    assert!(complaint("network.link_bandwidth", "fast").contains("expected a rate"));
    assert!(complaint("nodes.compute", "0").starts_with("nodes.compute=0: expected from 1"));
    assert!(complaint("nodes.compute.value.more", "1").contains("is a value"));
    assert!(complaint("nodes", "1").contains("expected a longer key"));
    let expected = "nodes.io=: expected a value such as 16, not nothing";
    assert_eq!(complaint("nodes.io", ""), expected);
    for value in ["\"", "many", "[4]", "true", "{ value = 4 }"] {
        let message = complaint("nodes.io", value);
        assert_eq!(message, format!("nodes.io={value}: expected a value such as 16, not {value}"));
    }
    assert_eq!(
        complaint("disks.model", ""),
        "disks.model=: expected a value such as \"hp97560\", not nothing"
    );
    assert!(complaint("disks.wait_for_disk_buffer", "1").contains("expected a value such as true, not 1"));
    assert!(complaint("nodes.compute", "1 }, io = { value = 2").starts_with("nodes.compute=1 }"));
}

#[test]
fn a_torus_grows_with_its_nodes_unless_its_size_is_specified() {
    let with = |overrides: &[(&str, &str)]| MachineDescription::load_with("starfish-1996", overrides);
    for (compute, size) in [("8", (6, 6)), ("19", (6, 6)), ("20", (7, 6)), ("32", (7, 7)), ("1000", (32, 32))]
    {
        let Topology::Torus(torus) = with(&[("nodes.compute", compute)]).unwrap().network.topology else {
            panic!("a torus")
        };
        assert_eq!((torus.columns.value, torus.rows.value), size, "{compute} compute nodes");
    }
    let given = [("nodes.compute", "32"), ("network.columns", "49"), ("network.rows", "1")];
    let Topology::Torus(torus) = with(&given).unwrap().network.topology else { panic!("a torus") };
    assert_eq!((torus.columns.value, torus.rows.value), (49, 1));

    let complaint = with(&[("network.rows", "6"), ("nodes.compute", "32")]).unwrap_err().to_string();
    for part in
        ["nodes.compute=32", "network.columns times network.rows to be 49 or more", "network.columns = 7"]
    {
        assert!(complaint.contains(part), "{complaint:?} should contain {part:?}");
    }
    let complaint = with(&[("nodes.compute", "65536")]).unwrap_err().to_string();
    assert!(complaint.starts_with("nodes.compute=65536: "), "{complaint}");
    let complaint = with(&[("nodes.io", "8"), ("nodes.compute", "0")]).unwrap_err().to_string();
    assert!(complaint.starts_with("nodes.compute=0: "), "{complaint}");
}
