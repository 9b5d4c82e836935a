"""A node of the soak: `python -m tests.drills.soak.measured serve …` is `tocsin serve …`, and states the memory in use.

The resident memory of a process counts what its allocators have freed and keep, whole pages and parts of pages. How much that
is depends on the order of what was allocated: it creeps, without anything being kept, for longer than a soak runs. What is in
use does not: a leak of any kind is in it. Each measurement begins with a collection of garbage, which a node makes by itself
only now and then.
"""

from __future__ import annotations

import ctypes
import gc
import os
import re
import runpy
import socket
import sys
import tempfile
import threading

_IN_BLOCKS = re.compile(r"bytes in allocated blocks\s*=\s*([\d,]+)")


_MALLINFO = (
    "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"
)  # fmt: skip


class _Mallinfo(ctypes.Structure):
    """glibc's `struct mallinfo2`."""

    _fields_ = [(name, ctypes.c_size_t) for name in _MALLINFO]


def address_of(pid: int) -> str:
    """The abstract Unix socket that answers each connection with the number of bytes in use."""
    return f"\0tocsin-soak-{pid}"


def bytes_in_use() -> int:
    """What malloc and Python's allocator of small objects have given out and not got back."""
    libc = ctypes.CDLL(None)
    libc.mallinfo2.restype = _Mallinfo
    of_malloc = libc.mallinfo2()
    libc.fopen.restype = ctypes.c_void_p
    with tempfile.NamedTemporaryFile("r") as report:
        stream = ctypes.c_void_p(libc.fopen(report.name.encode(), b"w"))
        # The text is the only way to this number; Python has no function that returns it.
        ctypes.pythonapi._PyObject_DebugMallocStats(stream)
        libc.fclose(stream)
        found = _IN_BLOCKS.search(report.read())
    assert found is not None
    return int(of_malloc.uordblks) + int(of_malloc.hblkhd) + int(found[1].replace(",", ""))


def _answer(listening: socket.socket) -> None:
    while True:
        asking, _ = listening.accept()
        with asking:
            gc.collect()
            asking.sendall(b"%d\n" % bytes_in_use())


def main() -> None:
    """Runs the command line of Tocsin."""
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(address_of(os.getpid()))
    listening.listen()
    threading.Thread(target=_answer, args=(listening,), daemon=True).start()
    sys.argv[0] = "tocsin"
    runpy.run_module("tocsin", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
