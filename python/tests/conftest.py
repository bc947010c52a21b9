"""Fixtures for the tests of striped files: agents on this computer."""

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from starfish.fsspec import StarfishFileSystem

ROOT = Path(__file__).resolve().parent.parent.parent
# The `starfish` program, which runs the agents for the tests.
PROGRAM = os.environ.get("STARFISH", str(ROOT / "target" / "debug" / "starfish"))


def start(disk: Path) -> tuple[subprocess.Popen[str], str]:
    """Start an agent on a free port, which runs until its input is closed; return its process and address."""
    command = [
        PROGRAM,
        "agent",
        "--listen",
        "127.0.0.1:0",
        "--until-input-ends",
        "--create",
        "--root",
        str(disk),
    ]
    agent = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert agent.stdout
    said = agent.stdout.readline()
    address = re.match(r"listening on ([^,]*),", said)
    assert address, said
    return agent, address[1]


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Append a skipped test to the list that `make test` prints at the end."""
    skipped = os.environ.get("STARFISH_SKIPPED")
    if skipped and report.skipped and isinstance(report.longrepr, tuple):
        with Path(skipped).open("a") as listed:
            listed.write(f"{report.longrepr[2].removeprefix('Skipped: ')}\t{report.nodeid}\n")


@pytest.fixture(scope="session")
def program() -> str:
    """Return the path of the `starfish` program."""
    return PROGRAM


@pytest.fixture(scope="session", autouse=True)
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Set a new key for agents and programs, and hide the agents of the user."""
    key = tmp_path_factory.mktemp("key") / "key"
    subprocess.run([PROGRAM, "key", "new", "--key", key], check=True, stdout=subprocess.DEVNULL)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STARFISH_KEY_FILE", str(key))
        patch.delenv("STARFISH_AGENTS", raising=False)
        yield


@pytest.fixture
def own_agent(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start an agent for one test only."""
    agent, address = start(tmp_path)
    yield agent, address
    agent.communicate(timeout=30)


@pytest.fixture(scope="session")
def agents(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start three agents; return their addresses as in a URL, separated by commas."""
    started = [start(tmp_path_factory.mktemp("disk")) for _ in range(3)]
    yield ",".join(address for _, address in started)
    for agent, _ in started:
        agent.communicate(timeout=30)


@pytest.fixture(scope="session")
def striped(agents: str) -> StarfishFileSystem:
    """Return the file system of these agents."""
    return StarfishFileSystem(agents)


@pytest.fixture
def folder(striped: StarfishFileSystem, request: pytest.FixtureRequest) -> str:
    """Make an empty directory for one test only."""
    path = f"/{re.sub(r'[^a-z0-9_]', '-', request.node.name.lower())}"
    striped.makedirs(path)
    return path
