"""Machines: their properties, and the arguments that they reject."""

import pickle
from pathlib import Path

import pytest

import starfish
from starfish import Machine


def test_a_machine_has_attributes() -> None:
    machine = Machine.load("starfish-1996")
    assert machine.title == "STARFISH 3.0 (1996)"
    assert (machine.compute_nodes, machine.io_nodes, machine.disks) == (16, 16, 16)
    assert machine.disk_model == "hp97560"
    assert machine.clock_hz == 50_000_000
    assert machine.network == "torus"
    assert machine.link_bytes_per_s == 200_000_000
    assert machine.bus_bytes_per_s == 10_000_000
    assert repr(machine) == (
        "<Machine starfish-1996: 16 compute nodes, 16 I/O nodes, 16 disks (hp97560), torus>"
    )


def test_every_built_in_machine_can_be_loaded() -> None:
    assert "starfish-1996" in Machine.names()
    for name in Machine.names():
        assert Machine.load(name).name == name


def test_values_are_returned_as_written_with_their_source() -> None:
    machine = Machine.load("starfish-1996")
    assert machine["processor.clock"] == "50 MHz"
    assert machine["nodes.io"] == 16
    assert machine["network.kind"] == "torus"
    assert machine.source("nodes.io") == "Table 1: 16 I/O processors"
    assert machine.source("network.kind") is None
    for key in ("nodes.oi", "nodes.io.more", ""):
        with pytest.raises(KeyError):
            machine[key]


def test_values_can_be_replaced() -> None:
    machine = Machine.load("starfish-1996", {"nodes.io": 4, "disks.per_io_node": 2})
    assert (machine.io_nodes, machine.disks) == (4, 8)
    assert machine.source("nodes.io") == "override"
    faster = machine.replace({"disks.model": "streaming-20", "disks.wait_for_disk_buffer": False})
    assert (faster.io_nodes, faster.disk_model) == (4, "streaming-20")
    assert faster["disks.wait_for_disk_buffer"] is False
    assert machine.disk_model == "hp97560", "the original machine is unchanged"


def test_machines_compare_and_pickle_by_value() -> None:
    machine = Machine.load("starfish-1996", {"nodes.io": 4})
    assert machine == Machine.load("starfish-1996").replace({"nodes.io": 4})
    assert machine != Machine.load("starfish-1996")
    assert pickle.loads(pickle.dumps(machine)) == machine


def test_a_machine_can_be_loaded_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(Machine.load("starfish-1996", {"nodes.compute": 8}).text)
    assert Machine.load(str(file)).compute_nodes == 8


@pytest.mark.parametrize(
    ("name", "overrides", "expected"),
    [
        (
            "cray",
            {},
            'no machine has the name "cray": expected a path ending in .toml or one of starfish-1996',
        ),
        ("starfish-1996", {"nodes.oi": 4}, 'nodes.oi=4: unknown key "oi", expected one of compute, io'),
        ("starfish-1996", {"nodes.io": 0}, "expected from 1 to 65536 nodes"),
        ("starfish-1996", {"nodes.io": -1}, "nodes.io=-1: "),
        ("starfish-1996", {"nodes.io": None}, "nodes.io=None: "),
        ("starfish-1996", {"processor.clock": "50 parsec"}, 'a frequency above zero such as "50 MHz"'),
        ("starfish-1996", {"disks.model": "floppy"}, "floppy"),
        ("starfish-1996", {"": 1}, "unknown key"),
    ],
)
def test_invalid_names_and_overrides_are_rejected_with_the_reason(
    name: str, overrides: dict[str, object], expected: str
) -> None:
    with pytest.raises(starfish.InvalidError) as error:
        Machine.load(name, overrides)
    assert expected in str(error.value)
    assert isinstance(error.value, ValueError)


def test_an_invalid_text_is_rejected_with_its_line() -> None:
    text = Machine.load("starfish-1996").text.replace("columns        =", "colums         =")
    line = 1 + text[: text.index("colums")].count("\n")
    with pytest.raises(starfish.InvalidError, match="^mine.toml:[0-9]+: .*colums"):
        Machine("mine.toml", text)
    with pytest.raises(starfish.InvalidError, match=f"^mine.toml:{line + 1}: duplicate key"):
        Machine("mine.toml", text.replace("colums", "rows"))


def test_a_missing_file_is_an_os_error(tmp_path: Path) -> None:
    missing = str(tmp_path / "none.toml")
    with pytest.raises(starfish.FileError, match="none.toml: No such file"):
        Machine.load(missing)
    with pytest.raises(OSError, match="none.toml"):
        Machine.load(missing)
