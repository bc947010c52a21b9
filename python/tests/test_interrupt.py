"""Ctrl-C during a run or a call: it ends soon, and later calls work."""

import signal
import subprocess
import sys
import time

import pytest

# Python installs its handler only if SIGINT is not ignored at its start, as it is for background processes.
PROGRAM = """
import signal
import starfish

signal.signal(signal.SIGINT, signal.default_int_handler)

def ready(done, total):
    if done >= {ready_at}:
        print("ready", flush=True)

try:
    {call}, progress=ready)
except KeyboardInterrupt:
    print("interrupted", flush=True)
table = starfish.simulate("rb", trials=1, file_size="1 MiB")
print("works", len(table), flush=True)
"""

MANY_TRIALS = "starfish.simulate('all', trials=10_000, threads=2"
ONE_LONG_TRIAL = (
    "starfish.simulate('rc', method='traditional', record=8, trials=1, file_size='256 MiB', phantom=True"
)
A_PLAN = """starfish.run(starfish.Plan('name="p"\\npatterns="all"\\ntrials=1000\\nmethod="disk-directed"')"""


@pytest.mark.parametrize(("call", "ready_at"), [(MANY_TRIALS, 1), (ONE_LONG_TRIAL, 0), (A_PLAN, 1)])
def test_an_interrupt_ends_a_run_soon(call: str, ready_at: int) -> None:
    command = [sys.executable, "-P", "-c", PROGRAM.format(call=call, ready_at=ready_at)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        start = time.monotonic()
        process.send_signal(signal.SIGINT)
        rest = [line for line in process.stdout if line != "ready\n"]
        seconds = time.monotonic() - start
    assert rest[0] == "interrupted\n"
    assert rest[1].startswith("works ")
    assert process.returncode == 0
    assert seconds < 30, "an interrupted run ends within seconds; a complete run takes minutes"


FILES = """
import signal, sys, starfish

signal.signal(signal.SIGINT, signal.default_int_handler)
agent, what = sys.argv[1:]
url = f"starfish://{agent}/file"
with starfish.open(url, "wb") as file:
    file.write(bytes(8 << 20))

def look():
    return starfish.open(url, "r+b")

file = starfish.open(url, "wb") if what == "replace" else look()
print("ready", flush=True)
sys.stdin.readline()
try:
    if what == "read":
        file.read()
    elif what == "write":
        file.write(b"1" * 1000)
        file.sync()
    else:
        file.write(b"1" * 1000)
        file.close()
except KeyboardInterrupt:
    print("interrupted", flush=True)
sys.stdin.readline()
with look() as file:
    print("works", len(file.read()), flush=True)
"""


# An interrupted replacement discards the new file, which waits for the agent again, so it needs a second
# interrupt.
@pytest.mark.parametrize(("what", "interrupts"), [("read", 1), ("write", 1), ("close", 1), ("replace", 2)])
def test_an_interrupt_ends_a_call_that_waits_for_an_agent(
    what: str, interrupts: int, own_agent: tuple[subprocess.Popen[str], str]
) -> None:
    agent, address = own_agent
    command = [sys.executable, "-P", "-c", FILES, address, what]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdin
        assert process.stdout
        try:
            assert process.stdout.readline() == "ready\n"
            agent.send_signal(signal.SIGSTOP)
            begun = time.monotonic()
            process.stdin.write("\n")
            process.stdin.flush()
            for _ in range(interrupts):
                time.sleep(0.3)
                process.send_signal(signal.SIGINT)
            assert process.stdout.readline() == "interrupted\n"
            seconds = time.monotonic() - begun
        finally:
            agent.send_signal(signal.SIGCONT)
        said, _ = process.communicate("\n", timeout=60)
    assert said == f"works {8 << 20}\n"
    assert seconds < 3, "the call did not wait until the agent was declared dead"
