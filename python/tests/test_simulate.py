"""The function simulate: its table, and the arguments that it rejects."""

import threading
import time
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

import starfish

# The columns of `starfish simulate --format csv`.
CLI_COLUMNS = (
    "machine,method,layout,pattern,record_bytes,trials,"
    "throughput_mib_s,cv,disk_movements,events,virtual_s,wall_s"
)


def simulate(*args: Any, **kwargs: Any) -> pd.DataFrame:
    """Simulate a small file."""
    return starfish.simulate(*args, **{"file_size": "1 MiB", "trials": 2, **kwargs})


def without_wall(table: pd.DataFrame) -> pd.DataFrame:
    return table.drop(columns="wall_s")


def test_options_apply_only_to_their_methods() -> None:
    table = simulate("wb", method=["traditional", "disk-directed"], memget_writes=True, presort=True)
    assert list(table["memget_writes"]) == [True, False]
    assert list(table["presort"]) == [False, True]
    with pytest.raises(starfish.InvalidError, match="memget_writes: only the traditional and the two-phase"):
        simulate("wb", method="disk-directed", memget_writes=True)


def test_the_table_has_a_row_for_each_combination() -> None:
    table = simulate(["rb", "wcc"], method="all", record=[4096, "8 KiB"], layout="all")
    expected = [
        (layout, record, pattern, method)
        for layout in ("contiguous", "random")
        for record in (4096, 8192)
        for pattern in ("rb", "wcc")
        for method in table["method"].unique()
    ]
    columns = ["layout", "record_bytes", "pattern", "method"]
    assert list(table[columns].itertuples(index=False, name=None)) == expected
    assert {"traditional", "disk-directed"} <= set(table["method"])


def test_the_table_has_the_columns_of_the_command_and_the_choices() -> None:
    table = simulate("rbb", method="disk-directed", presort=True, grid=(4, 4), shape="16x8", phantom=True)
    assert list(table.columns)[:3] == ["pattern", "method", "record_bytes"]
    assert set([*table.columns[:11], table.columns[-1]]) == set(CLI_COLUMNS.split(","))
    with pd.option_context("display.width", 80):
        assert "throughput_mib_s" in str(table)
    with pytest.raises(starfish.InvalidError, match="overrides="):
        starfish.simulate("rb", set={"nodes.io": 4})  # type: ignore[call-arg]
    row = table.iloc[0]
    assert (row["trials"], row["seed"], row["file_bytes"]) == (2, 1, 1 << 20)
    assert (row["shape"], row["grid"], row["presort"]) == ("16x8", "4x4", True)
    assert row["throughput_mib_s"] == pytest.approx(1 / row["virtual_s"], rel=0.02)
    assert table.dtypes["throughput_mib_s"] == "float64"
    assert table.dtypes["events"] == "int64"


def test_the_throughput_is_near_the_published_value() -> None:
    table = starfish.simulate("rb", method="disk-directed", trials=2)
    assert table["throughput_mib_s"][0] == pytest.approx(31.3, rel=0.03)


def test_equal_seeds_return_equal_tables_on_any_number_of_threads() -> None:
    first, second = (simulate("rb", layout="random", threads=threads) for threads in (1, 3))
    pd.testing.assert_frame_equal(without_wall(first), without_wall(second))
    other = simulate("rb", layout="random", seed=2)
    assert set(first["digest"]).isdisjoint(other["digest"])


def test_options_reach_the_file_system() -> None:
    def digest(**options: Any) -> str:
        return str(simulate("wcc", method="traditional", trials=1, **options)["digest"][0])

    plain = digest()
    assert digest(outstanding=1) != plain
    assert digest(scheduling="fcfs") != plain
    assert digest(thread_per_request=True) != plain
    assert digest(record=64) != plain
    assert digest(overrides={"nodes.io": 4}) != plain
    assert digest(machine=starfish.Machine.load("starfish-1996", {"nodes.io": 4})) != plain
    assert digest(phantom=True) == plain
    assert digest(outstanding=None, block="8 KiB") == plain
    assert digest(page_cache="1 MiB") not in (plain, digest(page_cache="64 KiB"))


def test_the_window_of_a_page_cache_can_be_chosen() -> None:
    def seconds(**options: Any) -> float:
        return float(
            simulate("rn", method="traditional", trials=1, page_cache="1 MiB", **options)["virtual_s"][0]
        )

    assert seconds(window=16) < 0.5 * seconds(window="none")
    assert seconds(window="adaptive") == seconds()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"pattern": "rq"}, "no pattern is called 'rq'"),
        ({"pattern": []}, "pattern: expected at least one"),
        (
            {"record": 7},
            "traditional rb with records of 7 bytes: a file of 1048576 bytes is not a whole number of 7-byte records",
        ),
        ({"record": 0}, "record: expected a whole number of at least 1, not 0"),
        ({"record": "8 parsec"}, 'record: "8 parsec": expected a whole number of bytes'),
        ({"file_size": 2**64}, "file_size: expected a whole number"),
        ({"method": "psychic"}, 'method: no method "psychic": traditional'),
        ({"layout": "diagonal"}, 'layout: no layout "diagonal": contiguous, packed or random'),
        ({"method": "traditional", "presort": True}, "only the disk-directed method can presort"),
        ({"machine": "cray"}, "starfish-1996"),
        ({"overrides": {"nodes.oi": 4}}, "unknown key"),
        ({"pattern": "rbb", "shape": (3, 3)}, "make rows x columns"),
        ({"shape": "wide"}, "shape: "),
        ({"shape": (1, 2, 3)}, "shape: "),
        ({"page_cash": 0}, 'unknown key "page_cash", did you mean page_cache?'),
        ({"block": 0.5}, "block: expected a whole number of bytes"),
        ({"method": "two-phase", "page_cache": "1 MiB"}, "page_cache: only the traditional method"),
        ({"method": "traditional", "window": 4}, "set page_cache, too"),
        ({"trials": 0}, "trials: expected a whole number of at least 1, not 0"),
        ({"trials": 2.5}, "trials: expected a whole number of at least 1, not 2.5"),
        ({"seed": -1}, "seed: expected a whole number of at least 0, not -1"),
        ({"outstanding": 0}, "outstanding: "),
        ({"threads": 0}, "threads: "),
        ({"scheduling": "lifo"}, 'scheduling: no scheduling "lifo": expected one of fcfs, cyclic-scan'),
        ({"queued": "often"}, 'queued: expected never, always or small-records, not "often"'),
    ],
)
def test_invalid_arguments_are_rejected_before_a_run(arguments: dict[str, Any], expected: str) -> None:
    def forbidden(done: int, total: int) -> None:
        raise AssertionError("nothing may run")

    with pytest.raises(starfish.InvalidError) as error:
        simulate(**arguments, progress=forbidden)
    assert expected in str(error.value)
    assert isinstance(error.value, ValueError)


def test_progress_is_reported_to_a_function() -> None:
    reports: list[tuple[int, int]] = []
    simulate(
        "rb", method="traditional", trials=10, progress=lambda done, total: reports.append((done, total))
    )
    assert reports == sorted(reports)
    assert reports[-1] == (10, 10)


def test_an_error_of_the_progress_function_ends_the_run() -> None:
    def stop(done: int, total: int) -> None:
        raise LookupError("enough")

    start = time.monotonic()
    with pytest.raises(LookupError, match="enough"):
        simulate("all", trials=10_000, progress=stop)
    assert time.monotonic() - start < 5


def test_progress_is_shown_by_tqdm(capsys: pytest.CaptureFixture[str]) -> None:
    simulate("rb", method="traditional", trials=4, progress=True)
    assert "4/4" in capsys.readouterr().err


def test_progress_is_a_line_without_tqdm(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "tqdm.auto", None)
    simulate("rb", method="traditional", trials=4, progress=True)
    assert capsys.readouterr().err.endswith("simulating: 4 of 4 trials\n")


def test_progress_is_not_shown_by_default(capsys: pytest.CaptureFixture[str]) -> None:
    simulate("rb")
    assert capsys.readouterr() == ("", "")


def test_other_threads_run_during_a_simulation() -> None:
    results: list[pd.DataFrame] = []
    work: Callable[[], None] = lambda: results.append(simulate("all", threads=1))  # noqa: E731
    thread = threading.Thread(target=work)
    thread.start()
    ticks = 0
    while thread.is_alive():
        time.sleep(0.001)
        ticks += 1
    assert len(results) == 1
    assert ticks > 20, "the interpreter lock was held"
