"""What can be chosen for `starfish.simulate`: made from crates/experiment/src/fields.rs."""

from __future__ import annotations

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
    """Move statements about bytes instead of bytes, as ``contents`` can say too: for files larger than
    memory. Default: false."""

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
    """Size of each compute node's write cache, data and directory together; write-cached only.
    Default: 1 MiB."""

    directory_fraction: Sides | None
    """The part of the write cache that is kept for its directory: 24 bytes for each write;
    write-cached only. Default: 0.1."""
