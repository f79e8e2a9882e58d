"""A folder whose every path hangs the process that looks there, in the kernel, where no signal reaches it.

A FUSE file system that answers the kernel's greeting and nothing after it: the caller sleeps uninterruptibly (state D),
as in a driver that lost its device. Closing the connection wakes all of them.
"""

from __future__ import annotations

import os
import select
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from . import namespaces
from .node import Node

# struct fuse_in_header (40 bytes) starts with len, opcode, unique; struct fuse_out_header is len, error, unique.
_IN_HEADER = struct.Struct("=IIQ")
_OUT_HEADER = struct.Struct("=IiQ")
_INIT = 26
# struct fuse_init_out: major, minor, max_readahead, flags, max_background, congestion_threshold, max_write, and zeros.
_INIT_OUT = struct.pack("=IIIIHHI", 7, 31, 0, 0, 16, 12, 4096) + bytes(40)


@contextmanager
def stuck_folder(node: Node, folder: str) -> Iterator[None]:
    """Make such a folder on a node for as long as the block lasts."""
    connection = os.open("/dev/fuse", os.O_RDWR)
    stop = threading.Event()
    reader = threading.Thread(target=_take, args=(connection, stop))
    try:
        node.sh(f"mkdir -p {folder}")
        options = f"fd={connection},rootmode=40000,user_id=0,group_id=0,allow_other"
        mount = ["mount", "-i", "-t", "fuse", "-o", options, "stuck", folder]
        namespaces.run(namespaces.enter(node.pid, mount, rooted=True), pass_fds=(connection,))
        greeting = os.read(connection, 1 << 20)
        _, opcode, unique = _IN_HEADER.unpack_from(greeting)
        assert opcode == _INIT
        os.write(connection, _OUT_HEADER.pack(_OUT_HEADER.size + len(_INIT_OUT), 0, unique) + _INIT_OUT)
        reader.start()
        yield
    finally:
        stop.set()
        if reader.ident:
            reader.join()
        os.close(connection)


def _take(connection: int, stop: threading.Event) -> None:
    """Take requests and answer none: only one that was taken can no longer be called back by a signal."""
    while not stop.is_set():
        if select.select([connection], [], [], 0.05)[0]:
            os.read(connection, 1 << 20)
