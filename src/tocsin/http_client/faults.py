"""Distinguishes local shortages, because of which a request was not sent, from faults of the receiver."""

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
    """The limit of concurrent name lookups is reached."""


def local_fault(error: OSError, ip: str | None = None) -> NotSent | None:
    """The outcome if the error is a shortage on this machine; None if it concerns the receiver.

    `ip` is the address of the connection. A machine without an address in that family reports the same error as a machine
    without a free port, but permanently; that is not a shortage.
    """
    if isinstance(error, ResolverFull):
        return NotSent(RESOLVER_FULL, str(error))
    code = _CODES.get(error.errno or 0)
    if code is None or (code == NO_LOCAL_PORT and ip is not None and not _has_source(ip)):
        return None
    return NotSent(code, error.strerror or str(error))


def check_descriptors() -> None:
    """Raises OSError if no file descriptor is free. For use with libraries that report this as another error."""
    os.close(os.open(os.devnull, os.O_RDONLY))


def _has_source(ip: str) -> bool:
    """Whether this machine has a source address for `ip`. Sends nothing."""
    family = socket.AF_INET6 if ":" in ip else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((ip, 9))
    except OSError as error:
        return error.errno != errno.EADDRNOTAVAIL
    return True
