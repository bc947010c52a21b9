"""Agents on loopback for benchmarks, each a process with one disk, which end with the program that started them."""

import os
import pathlib
import random
import subprocess

MIB = 1 << 20
TICKS = os.sysconf("SC_CLK_TCK")


class Agents:
    """Agents on the directories of their disks. The environment names them for all programs that are started."""

    def __init__(self, programs, directory, count):
        self.programs, self.directory, self.count, self.running = pathlib.Path(programs), directory, count, []

    def start(self, *more):
        """Start them, or start them anew, with more options."""
        self.stop()
        # A key of their own: the user's key is left alone.
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
        """End them; what they have accepted is written first."""
        for agent in self.running:
            agent.stdin.close()
            agent.wait()
        self.running = []

    def processor_s(self):
        """Seconds that processors have worked for them."""
        return sum(processor_s(agent.pid) for agent in self.running)


def processor_s(process):
    """Seconds that processors have worked for a process that runs."""
    with open(f"/proc/{process}/stat") as stat:
        # After the name, which may contain anything, fields 14 and 15 of proc(5).
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def drawn_file(path, mib):
    """Make a file of so many MiB that nothing compresses, the same each time."""
    drawn = random.Random(0)
    with open(path, "wb") as file:
        for _ in range(mib):
            file.write(drawn.randbytes(MIB))
