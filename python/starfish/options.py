"""What can be chosen for `simulate` and `simulate_merges`: made from the tables of crates/experiments/experiment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

Size = int | str
"""A number of bytes, or a text such as ``"64 KiB"`` or ``"1.5 MiB"``, powers of two; ``"10 MB"`` is ten million."""

Sides = str | tuple[int, int]
"""Rows and columns: ``(40, 32)`` or ``"40x32"``."""


class Options(TypedDict, total=False):
    """What can be chosen besides what is compared; ``None`` is the same as nothing."""

    file_size: Size | None
    """Size of the file. Default: 10 MiB."""

    block: Size | None
    """Size of a block: of a disk request, and of the stripe unit. Default: 8 KiB."""

    shape: Sides | None
    """Rows and columns of the matrix in the file, in records. Without this: as square as can be."""

    grid: Sides | None
    """Rows and columns of the grid of compute nodes. Without this: as square as can be."""

    contents: str | None
    """Whether bytes are moved, or only statements about bytes: for files larger than memory. Default:
    real."""

    phantom: bool | None
    """Move statements about bytes instead of bytes: for files larger than memory. Default: false."""

    outstanding: int | None
    """Requests that each compute node has in flight to each disk (the reports' K); traditional only.
    Default: 4."""

    scheduling: str | None
    """The order in which a disk serves queued requests; traditional only. Default: cyclic-scan."""

    thread_per_request: bool | None
    """Start a thread for each request, instead of having a pool; traditional only. Default: false."""

    prefetch: int | None
    """Blocks that an I/O node prefetches after each read; traditional only. Default: 1."""

    memget_writes: bool | None
    """I/O nodes fetch the data of a write (Memget), instead of receiving them with the request; not
    disk-directed. Default: false."""

    queued: str | None
    """Which Memputs and Memgets are queued, to go with others to the same node. Default:
    small-records."""

    presort: bool | None
    """Sort each disk's blocks by position first; disk-directed only. Default: false."""

    page_cache: Size | None
    """Size of a page cache at each compute node, through which it then accesses the file; 0 for none;
    traditional only. Default: 0 B."""

    window: int | str | None
    """Pages that a page cache brings in ahead of their use, the one in use among them. Without this:
    adaptive, as many as pay off."""

    write_cache: Size | None
    """Size of each compute node's write cache, data and directory together; write-cached only. Without
    this: 1 MiB, and 16 MiB of nodes that work as those of agents."""

    directory_fraction: str | None
    """The part of the write cache reserved for its directory, 24 bytes for each write; or shared, for
    data and directory as they come; write-cached only. Without this: 0.1, and shared for nodes that
    work as those of agents."""

    flush_at: str | None
    """Divide the write cache into halves, and flush a half in the background when this part of it is
    full; write-cached only. Without this: one cache that is flushed when full while writes wait,
    and 1 for nodes that work as those of agents."""

    flush_after: str | None
    """Flush the write cache when a write is this old; write-cached only. Without this: never for its
    age, and after 30 s for nodes that work as those of agents."""

    buffers: int | None
    """Buffers of an I/O node for each disk in a collective operation; disk-directed and write-cached
    only. Default: 2."""

    calls: bool | None
    """Each node makes one call for all that it has of the file, with the others, as programs of MPI on
    agents do, and syncs what it has written; nodes work as agents and their clients do. Default:
    false."""


class MergeOptions(TypedDict, total=False):
    """What can be chosen of jobs that share disks, each a value or several; ``None`` is the same as nothing."""

    kind: str | Sequence[str] | None
    """What each job does: merge its runs; copy one disk to the other, of two; interleave a run of
    every disk but the one it writes to. Default: merge."""

    policy: int | Sequence[int] | None
    """Where the runs of merges lie: 1 with disks for writing alone, 2 on all disks but that of the
    output, 3 as 2 but shifted so that each job reads where it writes, 4 on all disks. Default: 2."""

    jobs: int | Sequence[int] | None
    """How many jobs there are at once, each on a compute node of its own and writing to a disk of its
    own. Default: 5."""

    disks: int | Sequence[int] | None
    """How many disks they share. Default: 5."""

    runs: int | Sequence[int] | None
    """Input runs of each merge. Default: 20."""

    run_blocks: int | Sequence[int] | None
    """Blocks of an input run. Default: 1000."""

    block: Size | Sequence[Size] | None
    """Size of a block. Default: 4 KiB."""

    read_blocks: int | Sequence[int] | None
    """Blocks that are read at once: a batch (b_r). Default: 12."""

    write_blocks: int | Sequence[int] | None
    """Blocks that are written at once (b_w). Default: 40."""

    scheduling: str | Sequence[str] | None
    """The order in which a disk serves requests. Default: fcfs."""

    buffer_blocks: int | str | Sequence[int | str] | None
    """Blocks of buffers for all merges together, of which each has an equal portion: for what it has
    asked for and not used, and for what it has made and is not at its disk. Default: unlimited."""

    on_demand: bool | Sequence[bool] | None
    """A merge asks for the next batch of a run when the last block of the one before is used, and not
    when the first is. Default: false."""

    work: str | Sequence[str] | None
    """What a merge works on each block. Default: 0 ms."""

    stagger: str | Sequence[str] | None
    """How much later than the one before each job begins. Default: 0 ms."""

    contents: str | Sequence[str] | None
    """Whether bytes are moved, or only statements about bytes. Default: phantom."""
