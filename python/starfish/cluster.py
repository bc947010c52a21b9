"""Running a plan on a Dask cluster: workers run its shards, and this process merges the outcomes."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from distributed import Future, KilledWorker, as_completed

from starfish import _native
from starfish.errors import InvalidError, SimulationError
from starfish.shards import Plan, Shard, all_of, shards_of, texts

if TYPE_CHECKING:
    from distributed import Client

    from starfish.progress import Report

_Outcome = tuple[str, str | None]
"""The outcomes of the trials of a shard, and a report of failed trials, if any."""

SHARDS_PER_THREAD = 4
"""With more shards the load is balanced a little better, and a worker that dies loses less; each shard costs
a few milliseconds."""


def run(
    client: Client,
    plans: tuple[Plan, ...],
    journal: str | None,
    shards: int | None,
    report: Report | None,
) -> list[str]:
    """Run the trials of plans that the journal lacks, and return the outcomes of all trials, in parts."""
    if client.asynchronous:
        raise InvalidError("client: expected a synchronous client")
    everything = _native.missing_trials(texts(plans), None)
    missing = _native.missing_trials(texts(plans), journal)
    pending = _submit(client, shards_of(plans, missing, _shard_count(client) if shards is None else shards))
    parts, failures = [], []
    done = len(everything) - len(missing)
    if report is not None:
        report(done, len(everything))
    try:
        for future in as_completed(list(pending)):
            part, failed = _result(future)
            parts.append(part)
            if journal is not None:
                _native.append_to_journal(journal, part)
            if failed is not None:
                failures.append(failed)
            done += len(pending[future].trials)
            if report is not None:
                report(done, len(everything))
    except BaseException:
        client.cancel(list(pending))
        raise
    if failures:
        raise SimulationError("\n".join(failures))
    if journal is not None:
        # The journal is complete now, so this call runs no trials and only returns their outcomes.
        return [all_of(_native.run_trials(texts(plans), None, journal, 1, None))]
    return parts


def _shard_count(client: Client) -> int:
    threads: dict[str, int] = client.nthreads()
    return SHARDS_PER_THREAD * max(1, sum(threads.values()))


def _submit(client: Client, shards: list[Shard]) -> dict[Future[_Outcome], Shard]:
    # Equal shards have equal names, so that concurrent runs of the same plan share the work.
    return {client.submit(_run_shard, shard, key=f"starfish-{_hash(shard)}"): shard for shard in shards}


def _run_shard(shard: Shard) -> _Outcome:
    """Run a shard on one thread of a worker; other threads of the worker run other shards."""
    return _native.run_trials(texts(shard.plans), list(shard.trials), None, 1, None)


def _result(future: Future[_Outcome]) -> _Outcome:
    try:
        return future.result()
    except KilledWorker as error:
        return "", f"workers died repeatedly while running this shard: {error}"


def _hash(shard: Shard) -> str:
    return hashlib.sha256(repr((shard.trials, texts(shard.plans))).encode()).hexdigest()[:32]
