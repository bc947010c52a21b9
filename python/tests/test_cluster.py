"""Plans on a Dask cluster of two processes: the table is the same as locally, even if workers die."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from distributed import Client, LocalCluster

import starfish
from starfish import Plan, _native

PLAN = Plan("""
name = "sweep"
trials = 3
patterns = ["rb", "rbb", "wcc"]
records = ["8192 B"]
file_size = "2 MiB"
layout = "random"

[[variant]]
name = "traditional"
method = "traditional"

[[variant]]
name = "disk-directed"
method = "disk-directed"
""")

TRIALS = 3 * 3 * 2

# When workers die, distributed leaves files and sockets to the garbage collector, which warns.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        dashboard_address=None,
        silence_logs=50,
    ) as cluster:
        yield cluster


@pytest.fixture
def client(cluster: LocalCluster) -> Iterator[Client]:
    with Client(cluster) as client:
        client.wait_for_workers(2, timeout=60)
        yield client


@pytest.fixture(scope="module")
def plain() -> pd.DataFrame:
    return starfish.run(PLAN)


def workers(client: Client) -> dict[str, int]:
    """Return the address and the process ID of each worker."""
    return dict(client.run(os.getpid))


def test_a_cluster_returns_the_same_table(client: Client, plain: pd.DataFrame, tmp_path: Path) -> None:
    assert len(workers(client)) == 2
    reports: list[tuple[int, int]] = []
    table = starfish.run(PLAN, client=client, progress=lambda done, total: reports.append((done, total)))
    pd.testing.assert_frame_equal(table, plain)
    assert reports == sorted(reports)
    assert (reports[0], reports[-1]) == ((0, TRIALS), (TRIALS, TRIALS))
    assert len(reports) > 2

    # With a journal, finished trials are not repeated, on the cluster or locally.
    journal = tmp_path / "journal"
    table = starfish.run(PLAN, client=client, journal=journal, rows="trials")
    pd.testing.assert_frame_equal(table, starfish.run(PLAN, rows="trials", journal=journal))
    assert journal.read_text().count("\n") == TRIALS
    reports.clear()
    starfish.run(
        PLAN,
        client=client,
        journal=journal,
        progress=lambda done, total: reports.append((done, total)),
    )
    assert reports == [(TRIALS, TRIALS)]


def test_failures_on_a_cluster_are_raised_as_locally(client: Client) -> None:
    def stop(done: int, total: int) -> None:
        if done > 0:
            raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        starfish.run(PLAN, client=client, progress=stop)
    shard = starfish.split(PLAN, 2)[0]
    other = starfish.Shard((Plan(PLAN.text.replace("trials = 3", "seed = 3")),), shard.trials)
    with pytest.raises(starfish.InvalidError, match="the plan differs from the one that was split"):
        client.submit(other.run, threads=1).result()
    with pytest.raises(starfish.InvalidError, match="shards: expected a whole number"):
        starfish.run(PLAN, client=client, shards=-1)


def test_all_but_the_failed_trial_are_in_the_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_trials = _native.run_trials
    unlucky = _native.missing_trials([(PLAN.text, PLAN.file)], None)[0]

    def fail_once(texts: Any, keys: Any, *rest: Any) -> tuple[str, str | None]:
        if unlucky not in keys:
            return run_trials(texts, keys, *rest)
        part, _ = run_trials(texts, [key for key in keys if key != unlucky], *rest)
        return part, "rb, trial 0: something happened"

    journal = tmp_path / "journal"
    monkeypatch.setattr(_native, "run_trials", fail_once)
    # The workers are threads of this process, so that the patched function runs in them.
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None) as threads,
        Client(threads) as client,
        pytest.raises(starfish.SimulationError, match="trial 0: something happened"),
    ):
        starfish.run(PLAN, client=client, journal=journal, shards=2)
    assert journal.read_text().count("\n") == TRIALS - 1


def test_a_repeated_shard_and_a_killed_worker_do_not_change_the_table(
    client: Client, plain: pd.DataFrame
) -> None:
    # Each of the two workers runs the same shard.
    shards = starfish.split(PLAN, 6)
    twice = [
        client.submit(shards[0].run, workers=[worker], pure=False, threads=1) for worker in workers(client)
    ]
    first, second = client.gather(twice)
    assert starfish.merge(PLAN, [first, second, *(shard.run() for shard in shards[1:])]).equals(plain)

    # Kill a worker during a run.
    killed: list[int] = []

    def kill_one(done: int, total: int) -> None:
        if done > 0 and not killed:
            killed.append(min(workers(client).values()))
            os.kill(killed[0], signal.SIGKILL)

    table = starfish.run(PLAN, client=client, shards=TRIALS, progress=kill_one)
    assert killed
    pd.testing.assert_frame_equal(table, plain)


# This test must be the last one, because it leaves only one worker.
def test_a_retired_worker_does_not_change_the_table(client: Client, plain: pd.DataFrame) -> None:
    retired: list[str] = []

    def retire_one(done: int, total: int) -> None:
        if done > 0 and not retired:
            retired.append(min(workers(client)))
            client.retire_workers(retired)

    table = starfish.run(PLAN, client=client, shards=TRIALS, progress=retire_one)
    assert retired
    pd.testing.assert_frame_equal(table, plain)
