"""Conversion of logs of Darshan to request logs."""

import importlib.util
import io
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import starfish
from starfish import darshan

HAS_DARSHAN = importlib.util.find_spec("darshan") is not None

NEEDS_DARSHAN = pytest.mark.skipif(
    not HAS_DARSHAN, reason="Darshan's own package is not installed: pip install darshan"
)


def example() -> Path:
    """Return the path of a log with extended tracing from Darshan's package."""
    spec = importlib.util.find_spec("darshan")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "tests" / "input" / "sample-dxt-simple.darshan"


def segments(*rows: tuple[int, int, float, float]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["offset", "length", "start_time", "end_time"])


def test_records_of_ranks_and_files_become_requests() -> None:
    records = [
        {
            "id": 7,
            "rank": 3,
            "write_segments": segments((0, 512, 0.5, 0.75)),
            "read_segments": pd.DataFrame(),
        },
        {"id": 8, "rank": 0, "write_segments": segments(), "read_segments": segments((8, 16, 0.25, 0.25))},
    ]
    rows = list(darshan._rows(records, {7: "/out/a b"}))
    assert rows == [(0.5, 3, "/out/a b", "write", 0, 512, 0.25), (0.25, 0, "8", "read", 8, 16, 0.0)]


def test_a_request_log_is_written_in_its_format() -> None:
    table = pd.DataFrame(
        [(0.5, 3, "/out/a b%", "write", 0, 512, 0.25), (1.0, 0, "-", "read", 8, 16, 0.0)],
        columns=["time", "node", "file", "operation", "offset", "bytes", "took"],
    )
    output = io.StringIO()
    darshan.write(table, output)
    head, names, first, second = output.getvalue().splitlines()
    assert (head, names) == (darshan.HEADER, "# time node file operation offset bytes took")
    assert first == "0.500000000 3 /out/a%20b%25 write 0 512 0.250000000"
    assert second == "1.000000000 0 %2D read 8 16 0.000000000"


def of_a_job(counted: int, *, is_partial: bool) -> pd.DataFrame:
    table = pd.DataFrame(
        [(0.5, 3, "x", "read", 0, 1, 0.0)] * 2,
        columns=["time", "node", "file", "operation", "offset", "bytes", "took"],
    )
    table.attrs = {"counted": counted, "is_partial": is_partial, "processes": 4, "collective": 7}
    return table


def test_an_incomplete_log_is_reported_with_both_counts() -> None:
    for counted, is_partial, part in [
        (2, False, ""),
        (0, False, ""),
        (1_000_000, True, "2 of 1000000 requests are recorded"),
        (3, False, "2 of 3 requests are recorded"),
        (2, True, "2 requests are recorded, and Darshan ran out of memory for more"),
    ]:
        table = of_a_job(counted, is_partial=is_partial)
        assert darshan.incomplete(table).startswith(part), counted
        assert bool(darshan.incomplete(table)) == bool(part)
        output = io.StringIO()
        darshan.write(table, output)
        lines = output.getvalue().splitlines()
        assert any(line.startswith(f"# incomplete: {part}") for line in lines) == bool(part)
        assert len(lines) == 4 + bool(part)


def test_remarks_name_processes_and_collective_calls() -> None:
    processes, collective = darshan._remarks("job.darshan", of_a_job(2, is_partial=False))
    assert processes == "job.darshan: the job had 4 processes, 1 of which made these requests"
    assert collective.startswith("job.darshan: the job made 7 collective calls of MPI-IO")


@pytest.mark.skipif(HAS_DARSHAN, reason="Darshan's own package is installed")
def test_a_missing_darshan_package_is_reported() -> None:
    with pytest.raises(starfish.InvalidError, match="pip install darshan"):
        darshan.requests("job.darshan")
    program = [sys.executable, "-m", "starfish.darshan", "job.darshan"]
    told = subprocess.run(program, capture_output=True, text=True, check=False)
    assert (told.returncode, told.stdout) == (1, "")
    assert "pip install darshan" in told.stderr


@NEEDS_DARSHAN
def test_a_log_of_darshan_is_read(tmp_path: Path) -> None:
    assert darshan.convert(example(), tmp_path / "job.log") == 2
    lines = (tmp_path / "job.log").read_text().splitlines()
    assert lines[0] == darshan.HEADER
    assert lines[-1].split(" ")[1:6] == [
        "0",
        "/yellow/usr/projects/eap/users/treddy/simple_dxt_mpi_io_darshan/test.out",
        "write",
        "0",
        "4000",
    ]


@NEEDS_DARSHAN
def test_a_log_that_darshan_marks_incomplete_causes_a_warning(
    tmp_path: Path,
) -> None:
    log = bytearray(example().read_bytes())
    # Set the flag of DXT_POSIX among the flags of modules that ran out of memory: the second bit of the
    # second byte.
    log[21] |= 2
    (tmp_path / "partial.darshan").write_bytes(log)
    with pytest.warns(starfish.IncompleteWarning, match="2 requests are recorded, and Darshan ran out"):
        table = darshan.requests(tmp_path / "partial.darshan")
    assert (len(table), table.attrs["counted"], table.attrs["processes"]) == (2, 2, 16)
    program = [sys.executable, "-m", "starfish.darshan", str(tmp_path / "partial.darshan")]
    told = subprocess.run(program, capture_output=True, text=True, check=False)
    assert told.returncode == 0
    assert "2 requests are recorded, and Darshan ran out of memory" in told.stderr
    assert "16 processes, 1 of which made these requests" in told.stderr
    assert told.stdout.splitlines()[1].startswith("# incomplete: 2 requests are recorded")


@NEEDS_DARSHAN
def test_the_error_for_a_log_without_requests_shows_its_counters() -> None:
    with pytest.raises(
        starfish.InvalidError, match=r"DXT_ENABLE_IO_TRACE=1\. It counts \d+ reads of \d+ bytes"
    ):
        darshan.requests(example().with_name("sample.darshan"))


@NEEDS_DARSHAN
def test_a_missing_darshan_log_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(starfish.FileError, match="none"):
        darshan.requests(tmp_path / "none.darshan")
