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
    """Size of a block, which is the unit of disk requests and of striping. Default: 8 KiB."""

    shape: Sides | None
    """Rows and columns of the matrix in the file, in records. Default: as square as possible."""

    grid: Sides | None
    """Rows and columns of the grid of compute nodes. Default: as square as possible."""

    contents: str | None
    """Contents of files: real bytes, or phantoms, which take no memory and are not checked. Default:
    real."""

    phantom: bool | None
    """Use phantom data, which take no memory and are not checked: for files larger than memory.
    Default: false."""

    outstanding: int | None
    """Requests that each compute node has in flight to each disk (the reports' K); traditional only.
    Default: 4."""

    scheduling: str | None
    """The order in which a disk serves queued requests; traditional only. Default: cyclic-scan."""

    thread_per_request: bool | None
    """Start a thread for each request, instead of using a pool; traditional only. Default: false."""

    prefetch: int | None
    """Blocks that an I/O node prefetches after each read; traditional only. Default: 1."""

    memget_writes: bool | None
    """Let I/O nodes fetch the data of a write (Memget), instead of receiving them with the request;
    not disk-directed. Default: false."""

    queued: str | None
    """Queueing of Memputs and Memgets, so that several for one node share a message. Default:
    small-records."""

    presort: bool | None
    """Sort each disk's blocks by position first; disk-directed only. Default: false."""

    page_cache: Size | None
    """Size of the page cache of each compute node; 0: no page cache; traditional only. Default: 0 B."""

    window: int | str | None
    """Number of pages that a page cache prefetches, including the current one. Default: adaptive."""

    write_cache: Size | None
    """Size of each compute node's write cache, including its directory; write-cached only. Default: 1
    MiB; in the configuration of agents, 16 MiB."""

    directory_fraction: str | None
    """Part of the write cache reserved for its directory, which needs 24 bytes for each write; shared:
    no reserved part; write-cached only. Default: 0.1; in the configuration of agents, shared."""

    flush_at: str | None
    """Divide the write cache into halves, and flush a half in the background when this part of it is
    full; write-cached only. Default: one cache, which blocks writes while it is flushed; in the
    configuration of agents, 1."""

    flush_after: str | None
    """Flush the write cache when its oldest write has this age; write-cached only. Default: no limit;
    in the configuration of agents, 30 s."""

    buffers: int | None
    """Buffers of an I/O node for each disk in a collective operation; disk-directed and write-cached
    only. Default: 2."""

    calls: bool | None
    """All nodes access their parts of the file in one collective call, then sync, as an MPI program on
    agents does; nodes then have the configuration of agents and their clients. Default: false."""


class MergeOptions(TypedDict, total=False):
    """What can be chosen of jobs that share disks, each a value or several; ``None`` is the same as nothing."""

    kind: str | Sequence[str] | None
    """Work of each job: merge its runs; copy one of two disks to the other; interleave one run of each
    disk except the one it writes to. Default: merge."""

    policy: int | Sequence[int] | None
    """Placement of the runs of merges: 1 separate disks for writing, 2 all disks except that of the
    output, 3 as 2 but shifted so that each job reads where it writes, 4 all disks. Default: 2."""

    jobs: int | Sequence[int] | None
    """Number of concurrent jobs, each on a separate compute node and writing to a separate disk.
    Default: 5."""

    disks: int | Sequence[int] | None
    """Number of shared disks. Default: 5."""

    runs: int | Sequence[int] | None
    """Input runs of each merge. Default: 20."""

    run_blocks: int | Sequence[int] | None
    """Blocks of an input run. Default: 1000."""

    block: Size | Sequence[Size] | None
    """Size of a block. Default: 4 KiB."""

    read_blocks: int | Sequence[int] | None
    """Number of blocks read at once: a batch (b_r). Default: 12."""

    write_blocks: int | Sequence[int] | None
    """Number of blocks written at once (b_w). Default: 40."""

    scheduling: str | Sequence[str] | None
    """The order in which a disk serves requests. Default: fcfs."""

    buffer_blocks: int | str | Sequence[int | str] | None
    """Number of buffer blocks for all merges together. Each has an equal portion, for requested and
    unused input and for output that is not on its disk. Default: unlimited."""

    on_demand: bool | Sequence[bool] | None
    """Request the next batch of a run when the last block of the previous batch is used, instead of
    its first. Default: false."""

    work: str | Sequence[str] | None
    """Processor time that a merge needs for each block. Default: 0 ms."""

    stagger: str | Sequence[str] | None
    """Time by which each job begins later than the previous one. Default: 0 ms."""

    contents: str | Sequence[str] | None
    """Contents of files: real bytes, or phantoms, which take no memory and are not checked. Default:
    phantom."""
