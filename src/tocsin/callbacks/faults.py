"""What keeps a request on this machine, told from what is the receiver's fault."""

from __future__ import annotations

import errno
import os
import socket

from tocsin.model.answer import NotSent

#: Codes of NotSent.
NO_CONNECTION_SLOT = "NO_CONNECTION_SLOT"
RESOLVER_FULL = "RESOLVER_FULL"
NO_DESCRIPTOR = "NO_DESCRIPTOR"
NO_MEMORY = "NO_MEMORY"
NO_LOCAL_PORT = "NO_LOCAL_PORT"
PROCESS_STALLED = "PROCESS_STALLED"

_CODES = {
    errno.EMFILE: NO_DESCRIPTOR,
    errno.ENFILE: NO_DESCRIPTOR,
    errno.ENOBUFS: NO_MEMORY,
    errno.ENOMEM: NO_MEMORY,
    errno.EADDRNOTAVAIL: NO_LOCAL_PORT,
}


class ResolverFull(OSError):
    """As many names are being resolved as may be."""


def local_fault(error: OSError, ip: str | None = None) -> NotSent | None:
    """The outcome when the error is a shortage of this machine, None when it says something about the other side.

    `ip` is the address that was connected to: without any address of its own in that family, a machine reports the same
    error as without a free port, but for good.
    """
    if isinstance(error, ResolverFull):
        return NotSent(RESOLVER_FULL, str(error))
    code = _CODES.get(error.errno or 0)
    if code is None or (code == NO_LOCAL_PORT and ip is not None and not _has_source(ip)):
        return None
    return NotSent(code, error.strerror or str(error))


def check_descriptors() -> None:
    """Raises OSError when the process can't open anything more. For libraries that report that as something else."""
    os.close(os.open(os.devnull, os.O_RDONLY))


def _has_source(ip: str) -> bool:
    """Whether this machine has an address from which it could send to `ip`. Nothing is sent."""
    family = socket.AF_INET6 if ":" in ip else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((ip, 9))
    except OSError as error:
        return error.errno != errno.EADDRNOTAVAIL
    return True
