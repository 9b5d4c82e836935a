"""The lock of a data folder, which admits one node at a time."""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path

from tocsin.model.errors import StoreLocked, StoreUnavailable

LOCK_FILE = "tocsin.lock"


class FolderLock:
    """An advisory lock that the kernel releases when the process ends, so that a crash leaves nothing to clean up.

    The file stays in the folder after a release: if it were removed, two processes could lock two files of the same name.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Takes the lock without waiting. Raises StoreLocked, which names the folder and the process that holds the lock, or
        StoreUnavailable if the folder can't be written."""
        path = self._folder / LOCK_FILE
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StoreUnavailable(f"the data folder {self._folder} can't be used: {error.strerror}") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip() or "unknown"
            os.close(descriptor)
            raise StoreLocked(
                f"the data folder {self._folder} is in use by another Tocsin (process {holder}); "
                f"stop it, or use another folder"
            ) from None
        try:
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        except OSError as error:
            # A full disk must not keep the node from starting: the lock itself needs no space.
            with contextlib.suppress(OSError):
                os.ftruncate(descriptor, 0)
            if error.errno is None:
                os.close(descriptor)
                raise
        self._descriptor = descriptor

    def release(self) -> None:
        """Releases the lock. Idempotent."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
