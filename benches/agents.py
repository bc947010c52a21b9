"""Agents on loopback for benchmarks: each is a process with one disk, and ends with the program that started
it."""

import os
import pathlib
import random
import subprocess

MIB = 1 << 20
TICKS = os.sysconf("SC_CLK_TCK")


class Agents:
    """Agents with one disk directory each. `start` sets the environment variables with which programs find
    them."""

    def __init__(self, programs, directory, count):
        self.programs, self.directory, self.count, self.running = pathlib.Path(programs), directory, count, []

    def start(self, *more):
        """Start or restart the agents, with further options."""
        self.stop()
        # Use a new key, so that the key of the user stays unused.
        key = self.directory / "key"
        if not key.exists():
            subprocess.run([self.programs / "starfish", "key", "new", "--key", key], check=True, stdout=subprocess.DEVNULL)
        os.environ["STARFISH_KEY_FILE"] = str(key)
        addresses = []
        for number in range(self.count):
            command = [self.programs / "starfish", "agent", "--until-input-ends", "--listen", "127.0.0.1:0", "--create"]
            command += ["--root", self.directory / f"disk{number}", *more]
            agent = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
            )
            self.running.append(agent)
            addresses.append(agent.stdout.readline().removeprefix("listening on ").split(",")[0])
        os.environ["STARFISH_AGENTS"] = ",".join(addresses)

    def stop(self):
        """Stop the agents, after they have written all accepted data."""
        for agent in self.running:
            agent.stdin.close()
            agent.wait()
        self.running = []

    def processor_s(self):
        """Return the processor time of all agents in seconds."""
        return sum(processor_s(agent.pid) for agent in self.running)


def processor_s(process):
    """Return the processor time of a running process in seconds."""
    with open(f"/proc/{process}/stat") as stat:
        # Fields 14 and 15 of proc(5), counted after the name, which may contain blanks.
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def drawn_file(path, mib):
    """Make a file of `mib` MiB of incompressible data, the same in each run."""
    drawn = random.Random(0)
    with open(path, "wb") as file:
        for _ in range(mib):
            file.write(drawn.randbytes(MIB))
