"""Machines: descriptions in which every value has a source."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypedDict, cast

from starfish import _native


class _Facts(TypedDict):
    title: str
    compute_nodes: int
    io_nodes: int
    disks_per_io_node: int
    disk_model: str
    clock_hz: int
    network: str
    link_bytes_per_s: int | None
    bus_bytes_per_s: int | None


@dataclass(frozen=True, slots=True, repr=False)
class Machine:
    """A machine that can be simulated.

    Create a machine with `Machine.load`, or from a text: ``Machine("mine", text)``. A machine is a value:
    machines with the same name and text are equal, and a machine can be pickled and sent to another computer.

    Raises:
        InvalidError: The text is not a valid description; the message contains the line and the remedy.
    """

    name: str
    """Name of the machine in tables and messages."""

    text: str
    """The description in TOML, as ``starfish machines NAME`` prints it."""

    def __post_init__(self) -> None:
        self._facts()

    @classmethod
    def load(cls, name_or_path: str, overrides: Mapping[str, object] | None = None) -> Machine:
        """Load a built-in machine (see `Machine.names`), or the TOML file at a path that ends in ``.toml``.

        Args:
            name_or_path: For example ``"starfish-1996"`` or ``"mine.toml"``.
            overrides: Values to replace, by their dotted keys, with units as in the file: ``{"nodes.io": 4,
                "disks.model": "streaming-20", "network.link_bandwidth": "400e6 B/s"}``.

        Raises:
            InvalidError: The machine or a key does not exist, or a value is invalid.
            FileError: The file cannot be read.
        """
        text = _native.machine_text(name_or_path)
        return cls(name_or_path, _native.replace_values(text, _file(name_or_path), pairs(overrides)))

    @staticmethod
    def names() -> list[str]:
        """Return the names of the built-in machines."""
        return _native.machine_names()

    def replace(self, overrides: Mapping[str, object]) -> Machine:
        """Return this machine with some values replaced, as in `Machine.load`."""
        return Machine(self.name, _native.replace_values(self.text, _file(self.name), pairs(overrides)))

    def __getitem__(self, key: str) -> Any:
        """Return the value at a dotted key as written: ``machine["processor.clock"]`` is ``"50 MHz"``.

        Raises:
            KeyError: The value does not exist.
        """
        found = self._at(key)
        return found["value"] if isinstance(found, dict) and "value" in found else found

    def source(self, key: str) -> str | None:
        """Return the source of the value at a dotted key; ``None`` if the description states none.

        Raises:
            KeyError: The value does not exist.
        """
        found = self._at(key)
        return found.get("source") if isinstance(found, dict) else None

    @property
    def title(self) -> str:
        """Title of the machine in the description."""
        return self._facts()["title"]

    @property
    def compute_nodes(self) -> int:
        """Number of nodes that run the application."""
        return self._facts()["compute_nodes"]

    @property
    def io_nodes(self) -> int:
        """Number of nodes with disks."""
        return self._facts()["io_nodes"]

    @property
    def disks(self) -> int:
        """Number of disks of all I/O nodes together."""
        return self.io_nodes * self._facts()["disks_per_io_node"]

    @property
    def disk_model(self) -> str:
        """Name or path of the description of the disks; ``"memory"`` if disk accesses take no time."""
        return self._facts()["disk_model"]

    @property
    def clock_hz(self) -> int:
        """Cycles per second of the processor of each node."""
        return self._facts()["clock_hz"]

    @property
    def network(self) -> str:
        """Kind of the network between the nodes: ``"torus"``, ``"switch"`` or ``"constant"``."""
        return self._facts()["network"]

    @property
    def link_bytes_per_s(self) -> int | None:
        """Bandwidth of a network link in each direction, in bytes per second; ``None`` if unlimited."""
        return self._facts()["link_bytes_per_s"]

    @property
    def bus_bytes_per_s(self) -> int | None:
        """Bandwidth of a bus between disks and I/O node, in bytes per second; ``None`` if unlimited."""
        return self._facts()["bus_bytes_per_s"]

    def __repr__(self) -> str:
        """Return a description in one line."""
        return (
            f"<Machine {self.name}: {self.compute_nodes} compute nodes, {self.io_nodes} I/O nodes, "
            f"{self.disks} disks ({self.disk_model}), {self.network}>"
        )

    def _facts(self) -> _Facts:
        return _facts(self.text, self.name)

    def _at(self, key: str) -> Any:
        here: Any = tomllib.loads(self.text)
        for step in key.split("."):
            if not isinstance(here, dict) or step not in here:
                raise KeyError(key)
            here = here[step]
        return here


@lru_cache(maxsize=64)
def _facts(text: str, name: str) -> _Facts:
    return cast(_Facts, _native.machine_facts(text, _file(name)))


def _file(name: str) -> str:
    """Return the name of the file of this machine for messages."""
    return name if name.endswith(".toml") else f"{name}.toml"


def pairs(overrides: Mapping[str, object] | None) -> list[tuple[str, str]]:
    """Return the overrides as pairs of key and text; booleans as in TOML."""

    def written(value: object) -> str:
        return str(value).lower() if isinstance(value, bool) else str(value)

    return [(key, written(value)) for key, value in (overrides or {}).items()]
