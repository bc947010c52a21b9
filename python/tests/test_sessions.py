"""Connections: callers with equal options share a connection, and do not wait for other connections."""

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from starfish import sessions
from starfish.sessions import SessionOptions, in_thread

SLOW, FAST = SessionOptions(("slow",)), SessionOptions(("fast",))


class Agents:
    """Substitute for connections: the agent "slow" answers only after the event `answer` is set."""

    def __init__(self) -> None:
        self.answer = threading.Event()
        self.outcome: BaseException | None = None
        self.asked: list[str] = []

    def __call__(self, agents: list[str], *_: Any) -> object:
        """Return a connection to these agents, or raise `outcome`."""
        self.asked.extend(agents)
        if agents == ["slow"]:
            self.answer.wait(10)
            if self.outcome is not None:
                raise self.outcome
        return object()


@pytest.fixture
def connecting(monkeypatch: pytest.MonkeyPatch) -> Iterator[Agents]:
    here, made = sessions._Here(), Agents()
    monkeypatch.setattr(sessions, "_here", here)
    monkeypatch.setattr("starfish._native.FileSession", made)
    yield made
    made.answer.set()


def test_threads_that_wait_for_one_connection_share_its_outcome(connecting: Agents) -> None:
    connecting.outcome = ConnectionRefusedError("nobody")

    def outcome(_: int) -> object:
        try:
            return SLOW.session()
        except ConnectionRefusedError as error:
            return str(error)

    with ThreadPoolExecutor(20) as threads:
        outcomes = threads.map(outcome, range(20))
        while not connecting.asked:
            time.sleep(0.01)
        time.sleep(0.2)
        connecting.answer.set()
        assert list(outcomes) == ["nobody"] * 20
    assert len(connecting.asked) < 20, "each caller made its own attempt"
    connecting.outcome = None
    assert SLOW.session() is SLOW.session(), "a later call connects again"


def test_an_interrupt_is_raised_only_in_the_interrupted_thread(connecting: Agents) -> None:
    connecting.outcome = KeyboardInterrupt()
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(SLOW.session)
        while not connecting.asked:
            time.sleep(0.01)
        second = threads.submit(SLOW.session)
        time.sleep(0.2)
        waiting, connecting.answer = connecting.answer, threading.Event()
        waiting.set()
        with pytest.raises(KeyboardInterrupt):
            first.result(10)
        connecting.outcome = None
        connecting.answer.set()
        assert second.result(10) is SLOW.session()


def test_a_slow_connection_does_not_block_others_or_the_event_loop(connecting: Agents) -> None:
    async def work() -> None:
        slow = asyncio.create_task(in_thread(SLOW.session))
        while not connecting.asked:
            await asyncio.sleep(0.01)
        assert await asyncio.wait_for(in_thread(FAST.session), 5) is FAST.session()
        assert not slow.done()
        connecting.answer.set()
        await slow

    asyncio.run(work())


def test_every_connection_is_finished_at_exit(connecting: Agents, capfd: pytest.CaptureFixture[str]) -> None:
    program = """
from starfish import sessions, _native
class Session:
    def __init__(self, agents, *_): self.name = agents[0]
    def finish(self):
        print(self.name, flush=True)
        raise OSError(f"{self.name} has lost something")
_native.FileSession = Session
for name in ("one", "two"):
    sessions.SessionOptions((name,)).session()
"""
    subprocess.run([sys.executable, "-c", program], check=True)
    out, said = capfd.readouterr()
    assert sorted(out.split()) == ["one", "two"]
    assert "one has lost something" in said
    assert "two has lost something" in said
