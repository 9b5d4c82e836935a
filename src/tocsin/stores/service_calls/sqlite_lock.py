"""The lock of a SQLite database: one agent at a time."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from tocsin.model.errors import StoreLocked, StoreUnavailable


class FileLock:
    """An advisory lock on a file beside the database. The kernel releases it with the process, so a crash leaves
    nothing to clean up. The file stays after a release: otherwise two processes could lock two files of the same name."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Acquires the lock without waiting. Raises StoreLocked with the holder's process id, or StoreUnavailable if
        the folder is not writable."""
        path = self._database.with_name(self._database.name + ".lock")
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StoreUnavailable(f"cannot write {path}: {error.strerror}") from error
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
            # The disk is full. The process id is only for people; the lock itself needs no space.
            return

    def release(self) -> None:
        """Releases the lock. Idempotent."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
