"""Jobs that share disks: their plans, and the function simulate_merges."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import starfish
from starfish import Plan

TEXT = """
name = "races"
title = "Merges on five disks"
trials = 2
seed = 3
run_blocks = 50
runs = 8

[[variant]]
name = "a race"
policy = 2

[[variant]]
name = "a cure"
policy = 3

[vary]
jobs = [2, 5]
"""


def merges(**arguments: Any) -> pd.DataFrame:
    """Simulate small merges."""
    return starfish.simulate_merges(**{"run_blocks": 50, "runs": 8, "trials": 2, "seed": 3, **arguments})


@pytest.fixture
def plan() -> Plan:
    return Plan(TEXT)


def test_a_plan_of_merges_can_be_run(plan: Plan, tmp_path: Path) -> None:
    assert (plan.name, plan.trials, plan.seed, plan.cells) == ("races", 2, 3, 4)
    table = starfish.run(plan, journal=tmp_path / "journal")
    assert [*table.columns[:2], table.columns[-1]] == ["plan", "variant", "elapsed_s"]
    assert list(table["variant"]) == ["a race", "a race", "a cure", "a cure"]
    assert list(table["jobs"]) == [2, 5, 2, 5]
    assert (table["first_s"] <= table["elapsed_s"]).all()
    assert table.dtypes["buffer_blocks"] == "Int64"
    trials = starfish.run(plan, rows="trials")
    means = trials.groupby(["variant", "jobs"], sort=False)["elapsed_s"].mean()
    assert list(table["elapsed_s"]) == pytest.approx(list(means))
    assert (tmp_path / "journal").read_text().count("\n") == len(trials) == 8


def test_pickled_shards_of_merges_can_be_run_and_merged(plan: Plan) -> None:
    shards = starfish.split(plan, 3)
    parts = [pickle.loads(pickle.dumps(shard)).run() for shard in reversed(shards)]
    pd.testing.assert_frame_equal(starfish.merge(plan, parts), starfish.run(plan))


def test_plans_of_both_kinds_in_one_run_are_rejected(plan: Plan) -> None:
    other = Plan('name = "x"\nmethod = "traditional"\npatterns = ["rb"]', "x.toml")
    with pytest.raises(starfish.InvalidError, match="a plan of jobs that share disks.*separately"):
        starfish.run([plan, other])


def test_mistakes_in_a_plan_are_reported_with_their_line() -> None:
    with pytest.raises(starfish.InvalidError, match="plan.toml:3: .*polcy"):
        Plan('name = "x"\njobs = 2\npolcy = 3')


def test_the_table_has_a_row_for_each_combination(plan: Plan) -> None:
    table = merges(policy=[2, 3], jobs=(2, 5))
    assert [*table.columns[:4], table.columns[-1]] == ["kind", "policy", "jobs", "scheduling", "elapsed_s"]
    assert list(zip(table["policy"], table["jobs"], strict=True)) == [(2, 2), (2, 5), (3, 2), (3, 5)]
    ran = starfish.run(plan)
    assert list(table["digest"]) == list(ran["digest"])
    assert list(table["elapsed_s"]) == list(ran["elapsed_s"])
    assert not {"plan", "variant", "varied", "set"} & set(table.columns)


def test_arguments_may_be_of_numpy_and_pandas() -> None:
    table = merges(jobs=np.arange(1, 3), policy=pd.Series([3]), buffer_blocks=[2000, "unlimited"])
    assert list(table["jobs"]) == [1, 1, 2, 2]
    assert list(table["buffer_blocks"].fillna(0)) == [2000, 0, 2000, 0]
    assert len(merges(jobs=range(1, 4), rows="trials")) == 6


def test_options_and_the_machine_have_an_effect() -> None:
    usual = merges(jobs=2)["digest"][0]
    assert merges()["jobs"][0] == 5
    for changed in (
        {"policy": 3},
        {"scheduling": "round-robin"},
        {"on_demand": True},
        {"work": "1 ms"},
        {"overrides": {"disks.model": "hp97560"}},
        {"seed": 4},
    ):
        assert merges(jobs=2, **changed)["digest"][0] != usual, changed
    machine = starfish.Machine.load("shared-disks-1996")
    assert merges(jobs=2, machine=machine, policy=None)["digest"][0] == usual
    more = merges(jobs=2, overrides={"nodes.io": 7}).iloc[0]
    assert (more["compute_nodes"], more["io_nodes"], more["disks"]) == (2, 7, 5)


def test_the_table_does_not_depend_on_the_number_of_threads() -> None:
    pd.testing.assert_frame_equal(merges(jobs=[2, 3], threads=1), merges(jobs=[2, 3], threads=3))


def test_progress_is_reported() -> None:
    reports: list[tuple[int, int]] = []
    merges(jobs=[2, 3], progress=lambda done, total: reports.append((done, total)))
    assert reports[-1] == (4, 4)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"policy": 5}, "policy: expected a whole number from 1 to 4, not 5"),
        ({"polcy": 5}, 'unknown key "polcy", did you mean policy?'),
        ({"jobs": []}, "jobs: expected at least one value"),
        ({"jobs": 6}, "6 jobs need 6 disks"),
        ({"kind": "copies"}, "kind: "),
        ({"buffer_blocks": "many"}, "or unlimited"),
        ({"buffer_blocks": 100}, "may wait forever"),
        ({"work": "long"}, "work: expected"),
        ({"machine": "cray"}, "shared-disks-1996"),
        ({"overrides": {"nodes.oi": 4}}, "unknown key"),
        ({"trials": 0}, "trials: expected a whole number of at least 1, not 0"),
        ({"trials": 1001}, "trials: expected at most 1000"),
        ({"rows": "jobs"}, "rows: 'jobs' is neither"),
        ({"jobs": range(1, 200), "disks": range(1, 200)}, "at most 10000 combinations"),
    ],
)
def test_invalid_arguments_are_rejected_before_a_run(arguments: dict[str, Any], expected: str) -> None:
    def forbidden(done: int, total: int) -> None:
        raise AssertionError("nothing may run")

    with pytest.raises(starfish.InvalidError) as error:
        merges(**arguments, progress=forbidden)
    assert expected in str(error.value)
