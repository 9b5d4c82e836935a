"""The lock of a database in files: one process at a time."""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path

from tocsin.model.errors import StoreLocked, StoreUnavailable


class FileLock:
    """An advisory lock on a file next to the database. The kernel releases it with the process, so that a crash leaves
    nothing to clean up. The file stays after a release: if it were removed, two processes could lock two files of the same
    name.

    `subject` is what is locked, `holder` what kind of process holds it, and `mend` what to do about it, for messages.
    """

    def __init__(self, path: Path, *, subject: str, holder: str, mend: str) -> None:
        self._path = path
        self._subject = subject
        self._holder = holder
        self._mend = mend
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Takes the lock without waiting. Raises StoreLocked with the holder's process id, or StoreUnavailable if the folder
        can't be written."""
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise unwritable(self._path, error) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            process = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip() or "unknown"
            os.close(descriptor)
            raise StoreLocked(
                f"{self._subject} is in use by another {self._holder} (process {process}); {self._mend}"
            ) from None
        self._descriptor = descriptor
        # The process id is only for people. On a full disk it is missing; the lock itself needs no space.
        with contextlib.suppress(OSError):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        """Releases the lock. Idempotent."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def unwritable(path: Path, error: OSError) -> StoreUnavailable:
    """The error where a file or folder of a database can't be made or opened, with what to do about it."""
    return StoreUnavailable(
        f"{path}: {error.strerror}; permit the server's user to write there, or name another place in the settings"
    )


def lock_holder(path: Path) -> int | None:
    """The process that holds the lock of this file, as far as can be seen from here: one that has it open. Takes no lock,
    since a server that starts at this moment would find it."""
    try:
        process = int(path.read_text("ascii"))
    except (OSError, ValueError):
        return None
    try:
        opened = list(Path(f"/proc/{process}/fd").iterdir())
    except FileNotFoundError:
        return None
    except PermissionError:
        # Another user's process, of that number.
        return process
    for each in opened:
        with contextlib.suppress(OSError):
            if each.samefile(path):
                return process
    return None
