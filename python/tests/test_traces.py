"""Traces that are exported for Perfetto, read by Perfetto's own schema and added up by its rules.

Its trace processor would be the other reader, but the package downloads it when it runs.
"""

import csv
import io
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pandas as pd
import pytest
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as perfetto

# The program, where `make test-rust` leaves it.
TARGET = Path(sys.executable).parents[3]
PROGRAM = TARGET / "debug" / "starfish"

pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason=f"{PROGRAM} is not built: make test-rust")

Totals = dict[str, tuple[int, int]]


def trace() -> bytes:
    """Return a trace as the Perfetto SDK writes them: two threads, slices in slices, names given once."""
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


def starfish(*arguments: str | Path) -> str:
    return subprocess.run([PROGRAM, "trace", *arguments], check=True, capture_output=True, text=True).stdout


def totals_of_slices(trace: bytes) -> Totals:
    """Return how many slices of each name there are and how long they are in all, as Perfetto counts."""
    packets = perfetto.Trace.FromString(trace).packet
    names = {name.iid: name.name for packet in packets for name in packet.interned_data.event_names}
    events = [packet for packet in packets if packet.HasField("track_event")]
    open_slices = defaultdict(list)
    totals: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for packet in sorted(events, key=lambda packet: packet.timestamp):
        event = packet.track_event
        if event.type == perfetto.TrackEvent.TYPE_SLICE_BEGIN:
            open_slices[event.track_uuid].append((names[event.name_iid], packet.timestamp))
        elif event.type == perfetto.TrackEvent.TYPE_SLICE_END:
            name, begin = open_slices[event.track_uuid].pop()
            count, total = totals[name]
            totals[name] = (count + 1, total + packet.timestamp - begin)
    assert not any(open_slices.values())
    return dict(totals)


def totals_of_summary(file: Path) -> Totals:
    rows = csv.DictReader(io.StringIO(starfish("summary", file, "--by", "state", "--format", "csv")))
    return {row["state"]: (int(row["count"]), int(row["total_ns"])) for row in rows}


def test_totals_are_those_of_perfetto(tmp_path: Path) -> None:
    recorded = tmp_path / "recorded.pftrace"
    recorded.write_bytes(trace())
    expected = totals_of_slices(trace())
    assert expected["draw"] == (200, 200 * 400 + 2 * sum(range(100)))
    starfish("import", recorded)
    assert totals_of_summary(tmp_path / "recorded.tlv") == expected
    exported = tmp_path / "exported.pftrace"
    starfish("export", tmp_path / "recorded.tlv", "--to", "perfetto", "-o", exported)
    assert totals_of_slices(exported.read_bytes()) == expected


def test_a_parquet_file_has_what_the_csv_file_has(tmp_path: Path) -> None:
    recorded = tmp_path / "recorded.pftrace"
    recorded.write_bytes(trace())
    table = tmp_path / "spans.parquet"
    starfish("export", recorded, "--to", "parquet", "-o", table)
    rows = pd.read_parquet(table).to_dict("records")
    text = csv.DictReader(io.StringIO(starfish("export", recorded, "--to", "csv", "-o", "-")))
    assert [{str(name): str(value) for name, value in row.items()} for row in rows] == list(text)
    assert len(rows) == 400
