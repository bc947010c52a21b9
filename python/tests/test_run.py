"""Runs of plans: whole, resumed after an interrupt, and in shards."""

import itertools
import os
import pickle
import sys
from pathlib import Path

import pandas as pd
import pytest

import starfish
from starfish import Plan

TEXT = """
name = "small"
title = "Both ways of reading, with more and less outstanding"
trials = 2
seed = 7
patterns = ["rb", "wcc"]
records = ["8192 B"]
file_size = "1 MiB"
layout = "random"

[[variant]]
name = "traditional"
method = "traditional"

[[variant]]
name = "disk-directed"
method = "disk-directed"

[vary]
set = { "nodes.io" = [4, 16] }
"""

CELLS = 2 * 2 * 2


@pytest.fixture
def plan() -> Plan:
    return Plan(TEXT)


def test_a_plan_has_attributes_and_can_be_pickled(plan: Plan, tmp_path: Path) -> None:
    assert (plan.name, plan.trials, plan.seed, plan.cells) == ("small", 2, 7, CELLS)
    assert plan.title.startswith("Both ways")
    assert repr(plan) == "<Plan small: 8 cells, 2 trials of each>"
    file = tmp_path / "small.toml"
    file.write_text(TEXT)
    assert Plan.load(file) == Plan(TEXT, str(file))
    assert pickle.loads(pickle.dumps(plan)) == plan


def test_the_table_has_a_row_for_each_cell_or_trial(plan: Plan) -> None:
    cells = starfish.run(plan)
    assert len(cells) == CELLS
    assert [*cells.columns[:3], cells.columns[-1]] == ["plan", "variant", "pattern", "throughput_mib_s"]
    assert list(cells["pattern"]) == ["rb"] * 4 + ["wcc"] * 4
    assert cells.dtypes["throughput_mib_s"] == "float64"
    assert cells.dtypes["record_bytes"] == "int64"
    assert cells.dtypes["presort"] == "bool"
    assert set(cells["nodes_io"]) == {4, 16}
    assert cells["shape"].isna().all()
    trials = starfish.run(plan, rows="trials")
    assert len(trials) == 2 * CELLS
    keys = ["variant", "varied", "pattern"]
    means = trials.groupby(keys)["throughput_mib_s"].mean()
    assert cells.set_index(keys)["throughput_mib_s"].sort_index().to_dict() == pytest.approx(means.to_dict())


def test_run_agrees_with_simulate(plan: Plan) -> None:
    ran = starfish.run(plan).query("io_nodes == 4 and pattern == 'rb'")
    simulated = starfish.simulate(
        "rb",
        overrides={"nodes.io": 4},
        method=["traditional", "disk-directed"],
        layout="random",
        file_size="1 MiB",
        trials=2,
        seed=7,
    )
    assert list(ran["digest"]) == list(simulated["digest"])
    assert list(ran["throughput_mib_s"]) == pytest.approx(list(simulated["throughput_mib_s"]))


def test_the_table_does_not_depend_on_the_number_of_threads(plan: Plan) -> None:
    pd.testing.assert_frame_equal(starfish.run(plan, threads=1), starfish.run(plan, threads=3))


def test_several_plans_are_one_table_and_share_trials(plan: Plan, tmp_path: Path) -> None:
    other = tmp_path / "other.toml"
    other.write_text(TEXT.replace('"small"', '"other"').replace('"wcc"', '"wb"'))
    reports: list[tuple[int, int]] = []
    table = starfish.run([plan, other], progress=lambda done, total: reports.append((done, total)))
    assert list(table["plan"]) == ["small"] * CELLS + ["other"] * CELLS
    assert reports[-1] == (24, 24), "the trials of rb, which both plans have, are run once"


def test_trials_in_the_journal_are_not_run_again(plan: Plan, tmp_path: Path) -> None:
    journal = tmp_path / "journal"

    def stop_after_some(done: int, total: int) -> None:
        if done >= 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        starfish.run(plan, journal=journal, threads=1, progress=stop_after_some)
    kept = journal.read_text().count("\n")
    assert kept >= 3
    reports: list[int] = []
    table = starfish.run(plan, journal=journal, progress=lambda done, total: reports.append(done))
    assert reports[0] >= kept
    pd.testing.assert_frame_equal(table, starfish.run(plan))
    assert journal.read_text().count("\n") == 2 * CELLS
    pd.testing.assert_frame_equal(starfish.merge(plan, [journal.read_text()]), table)


def test_a_file_that_is_no_journal_is_rejected_and_unchanged(plan: Plan, tmp_path: Path) -> None:
    machine = tmp_path / "nvme.toml"
    machine.write_text('name = "nvme"\n')
    with pytest.raises(starfish.InvalidError, match="not that of a journal of trials"):
        starfish.run(plan, journal=machine)
    assert machine.read_text() == 'name = "nvme"\n'


def test_a_client_without_dask_is_rejected_with_a_remedy(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "starfish.cluster", raising=False)
    monkeypatch.delattr(starfish, "cluster", raising=False)
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(starfish.InvalidError, match="pip install dask distributed"):
        starfish.run(plan, client=object())  # type: ignore[arg-type]


@pytest.mark.parametrize("count", [1, 3, 16, 100])
def test_shards_can_be_merged_in_any_order_and_more_than_once(plan: Plan, count: int) -> None:
    shards = starfish.split(plan, count)
    assert len(shards) == min(count, 2 * CELLS)
    keys = list(itertools.chain.from_iterable(shard.trials for shard in shards))
    assert len(set(keys)) == len(keys) == 2 * CELLS
    parts = [pickle.loads(pickle.dumps(shard)).run() for shard in reversed(shards)]
    again = shards[0].run(threads=1)
    pd.testing.assert_frame_equal(starfish.merge(plan, [again, *parts]), starfish.run(plan))


def test_missing_shards_are_reported(plan: Plan) -> None:
    first, *_ = starfish.split(plan, 4)
    with pytest.raises(starfish.InvalidError, match="12 trials are missing"):
        starfish.merge(plan, [first.run()])


def test_keys_that_one_plan_varies_are_missing_for_the_other(plan: Plan) -> None:
    other = Plan(TEXT.replace("small", "other").replace('"nodes.io" = [4, 16]', '"nodes.compute" = [4]'))
    table = starfish.run([plan, other], rows="trials")
    assert list(table["nodes_io"].dropna().unique()) == [4, 16]
    assert list(table["nodes_io"].isna()) == list(table["plan"] == "other")
    assert str(table.dtypes["nodes_io"]) == "Int64"


def test_invalid_outcomes_of_shards_are_rejected(plan: Plan) -> None:
    part = starfish.split(plan, 1)[0].run()
    with pytest.raises(starfish.InvalidError, match="different versions of Starfish"):
        starfish.merge(plan, [part.replace('"program":"', '"program":"1.')])
    with pytest.raises(starfish.InvalidError, match="not the outcome of a shard"):
        starfish.merge(plan, ["what?"])
    changed = part.replace('"events":', '"events":1')
    with pytest.raises(starfish.SimulationError, match="two different results of trial"):
        starfish.merge(plan, [part, changed])


def test_a_shard_of_another_plan_is_rejected(plan: Plan) -> None:
    shard = starfish.split(plan, 2)[0]
    other = starfish.Shard((Plan(TEXT.replace("seed = 7", "seed = 8")),), shard.trials)
    with pytest.raises(starfish.InvalidError, match="the plan differs from the one that was split"):
        other.run()


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('name = "small"', "", "name is missing"),
        ("trials = 2", "trials = 0", "plan.toml:4: "),
        ("trials = 2", "trails = 2", 'plan.toml:4: unknown key "trails"'),
        ('"wcc"', '"wqq"', "plan.toml:6: "),
        ('"8192 B"', '"7 B"', "7-byte records"),
        ("[vary]", "[vary", "plan.toml:"),
        ('"nodes.io"', '"nodes.oi"', "oi"),
        ('"1 MiB"', '"1 MiB"\nmachine = "cray"', "cray"),
    ],
)
def test_an_invalid_plan_is_rejected_with_the_reason(old: str, new: str, expected: str) -> None:
    assert old in TEXT
    with pytest.raises(starfish.InvalidError) as error:
        Plan(TEXT.replace(old, new, 1))
    assert expected in str(error.value)


def test_unreadable_files_raise_file_errors_or_invalid_errors(plan: Plan, tmp_path: Path) -> None:
    with pytest.raises(starfish.FileError, match="none.toml: No such file"):
        starfish.run(tmp_path / "none.toml")
    with pytest.raises(starfish.FileError, match="Is a directory"):
        starfish.run(plan, journal=tmp_path)
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(starfish.InvalidError, match=r"binary.toml: expected text in UTF-8"):
        starfish.run(tmp_path / "binary.toml")


def test_invalid_arguments_are_rejected(plan: Plan) -> None:
    with pytest.raises(starfish.InvalidError, match="plan: expected at least one"):
        starfish.run([])
    with pytest.raises(starfish.InvalidError, match="rows: 'columns' is neither"):
        starfish.run(plan, rows="columns")  # type: ignore[arg-type]
    with pytest.raises(starfish.InvalidError, match="shards: "):
        starfish.split(plan, 0)


def test_a_table_survives_parquet(plan: Plan, tmp_path: Path) -> None:
    table = starfish.run(plan)
    table.to_parquet(tmp_path / "table.parquet")
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "table.parquet"), table)
    assert os.path.getsize(tmp_path / "table.parquet") > 0
