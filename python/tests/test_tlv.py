"""Recording of Python's threads."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import starfish
from starfish import tlv

SORT = tlv.State("sort", category="work", colour=tlv.BLUE)
MERGE = tlv.State("merge")
QUEUE = tlv.Counter("queue", unit="items")

# First bytes of a trace. A trace contains names and texts unencoded.
BEGINNING = b"\x89TLV\r\n\x1a\n"


def test_threads_states_arguments_counters_and_flows_are_recorded(tmp_path: Path) -> None:
    def work() -> None:
        with SORT, MERGE:
            tlv.tell(items=1000, share=0.5, file="numbers äöü")
        tlv.flow_in(flow)

    file = tmp_path / "x.tlv"
    with tlv.recording("program", file) as path:
        assert path == file
        flow = tlv.new_flow()
        assert flow != tlv.new_flow()
        tlv.flow_out(flow)
        QUEUE.set(3)
        QUEUE.set(0.5)
        thread = threading.Thread(target=work, name="the worker")
        thread.start()
        thread.join()
        tlv.name_thread("the first")
    trace = file.read_bytes()
    assert trace.startswith(BEGINNING)
    for text in [
        "program",
        "sort",
        "work",
        "merge",
        "queue",
        "the worker",
        "the first",
        "items",
        "numbers äöü",
    ]:
        assert text.encode() in trace, text


def test_a_state_decorates_functions_and_ends_on_an_exception(tmp_path: Path) -> None:
    @SORT
    def fail(depth: int) -> None:
        if depth == 0:
            raise KeyError("out")
        fail(depth - 1)

    with tlv.recording("program", tmp_path / "x.tlv"), pytest.raises(KeyError):
        fail(10)
    # The trace has eleven begins, eleven ends and the declarations.
    assert len((tmp_path / "x.tlv").read_bytes()) > 22 * 3


def test_invalid_calls_raise_errors(tmp_path: Path) -> None:
    with pytest.raises(starfish.InvalidError, match="no recording is in progress"):
        tlv.finish()
    with pytest.raises(starfish.FileError, match="nowhere"):
        tlv.start("program", tmp_path / "nowhere" / "x.tlv")
    with pytest.raises(starfish.InvalidError, match="no name"):
        tlv.State("")
    with tlv.recording("program", tmp_path / "x.tlv"), pytest.raises(starfish.InvalidError, match="already"):
        tlv.start("program", tmp_path / "y.tlv")


def test_calls_without_a_recording_do_nothing() -> None:
    with SORT:
        tlv.tell(items=1)
        QUEUE.set(1)
        tlv.name_thread("nobody")
        tlv.flow_out(tlv.new_flow())


def test_the_environment_switches_off_and_names_the_file(tmp_path: Path) -> None:
    program = "from starfish import tlv\nwith tlv.recording('x'), tlv.State('sort'): pass"

    def traces(**variables: str) -> list[str]:
        environment = {**os.environ, **variables}
        subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env=environment, check=True)
        return sorted(path.name for path in tmp_path.iterdir())

    assert traces(TLV="off") == []
    assert traces(TLV_FILE="mine.tlv") == ["mine.tlv"]
    assert traces() == ["mine.tlv", "x.tlv"]


def test_a_forked_process_has_a_separate_recording(tmp_path: Path) -> None:
    program = """
import os
from starfish import tlv

IN_CHILD = tlv.State("in the child")
with tlv.recording("x"):
    child = os.fork()
    if child == 0:
        with IN_CHILD:
            pass
        with tlv.recording("x"), tlv.State("recorded again"):
            pass
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
print(child)
"""
    # The program is in a file, because a trace contains the command line, and so would contain the program.
    (tmp_path / "program.py").write_text(program)
    command = [sys.executable, "program.py"]
    output = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)
    parent, child = tmp_path / "x.tlv", tmp_path / f"x.{output.stdout.strip()}.tlv"
    assert b"recorded again" in child.read_bytes()
    assert b"recorded again" not in parent.read_bytes()


@pytest.mark.parametrize("name", [name for name in tlv.__all__ if not name.isupper()])
def test_every_name_is_documented(name: str) -> None:
    assert getattr(tlv, name).__doc__, name
