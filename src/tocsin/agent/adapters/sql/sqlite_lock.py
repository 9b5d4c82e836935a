"""The lock of a SQLite database: one agent at a time."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from tocsin.model.errors import StoreLocked, StoreUnavailable


class FileLock:
    """An advisory lock on a file beside the database, which the kernel drops with the process: a crash leaves nothing to
    clean up. The file stays after a release, since two processes might otherwise lock two files of one name."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Takes the lock without waiting. Raises StoreLocked with the holder's process, or StoreUnavailable when the
        folder can't be written."""
        path = self._database.with_name(self._database.name + ".lock")
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StoreUnavailable(f"{path} can't be written: {error.strerror}") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip() or "unknown"
            os.close(descriptor)
            raise StoreLocked(
                f"{self._database} is in use by another agent (process {holder}); stop that one or choose another file"
            ) from None
        self._descriptor = descriptor
        self._write_holder(descriptor)

    @staticmethod
    def _write_holder(descriptor: int) -> None:
        try:
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        except OSError:
            # The disk is full. The number is only for people; the lock itself needs no space.
            return

    def release(self) -> None:
        """Gives it up. Idempotent."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
