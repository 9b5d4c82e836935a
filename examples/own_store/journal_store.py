"""A store in one file, to learn from: a journal of the calls that change something, over the memory store.

A call is durable when it is in the file. Opening the store makes the calls of the file again, in the same order.
"""

from __future__ import annotations

import fcntl
import inspect
import os
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, get_type_hints

import msgspec

from tocsin.model.errors import DefiniteFailure, OutcomeUnknown, StoreCorrupted, StoreLocked, StoreUnavailable
from tocsin.stores.memory import MemoryStore

#: The methods of the port that change something.
WRITES = (
    "claim", "release", "heartbeat", "forget_member", "apply", "purge_history", "trim_runs",
    "remove_failures", "forget", "put_record", "delete_records",
)  # fmt: skip


class _Entry(msgspec.Struct):
    """A call in the journal: one line of JSON. Bytes are base64."""

    call: str
    arguments: dict[str, msgspec.Raw]


class JournalStore(MemoryStore):
    """Timers in the file at `path`, for one process. A write waits for the disk, and everything else waits for it."""

    def __init__(self, path: Path) -> None:
        super().__init__(exclusive=True)
        self._path = path
        self._file: int | None = None

    async def open(self, total_shards: int | None) -> int:
        """Locks the file, creates it if it is missing, makes its calls again, and fixes the number of shards."""
        if self._file is None:
            MemoryStore.__init__(self, exclusive=True)
            self._file = self._locked()
            try:
                for call, arguments in self._entries():
                    await getattr(MemoryStore, call)(self, **arguments)
            except BaseException:
                await self.close()
                raise
        try:
            return await self._write("open", total_shards=total_shards)
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Releases the file. Closing again does nothing."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _locked(self) -> int:
        file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(file)
            raise StoreLocked(f"{self._path} is open in another process; stop it, or use another file") from error
        return file

    def _entries(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """The calls of the file. A last line without its end was never acknowledged: the process died while it wrote it."""
        assert self._file is not None
        whole, _, torn = self._path.read_bytes().rpartition(b"\n")
        if torn:
            os.ftruncate(self._file, os.fstat(self._file).st_size - len(torn))
        for number, line in enumerate(whole.splitlines(), 1):
            try:
                entry = msgspec.json.decode(line, type=_Entry)
                types = get_type_hints(getattr(MemoryStore, entry.call))
                values = {name: msgspec.json.decode(raw, type=types[name]) for name, raw in entry.arguments.items()}
            except (msgspec.DecodeError, AttributeError, KeyError) as error:
                raise StoreCorrupted(
                    f"{self._path}: line {number} can't be read ({error}); restore a backup"
                ) from error
            yield entry.call, values

    async def _write(self, call: str, **arguments: Any) -> Any:
        """Makes the call in memory, and returns its result when the call is in the file, synced."""
        if self._file is None:
            raise StoreUnavailable(f"{self._path} is not open")
        try:
            line = msgspec.json.encode({"call": call, "arguments": arguments}) + b"\n"
        except (UnicodeError, ValueError, OverflowError) as error:
            raise DefiniteFailure(f"{self._path}: {call} has a value that can't be written: {error}") from error
        # First in memory, where a call that breaks a rule raises and changes nothing.
        result = await getattr(MemoryStore, call)(self, **arguments)
        try:
            if os.write(self._file, line) < len(line):
                raise OSError("the disk is full")
            os.fsync(self._file)
        except OSError as error:
            # What is in the file is unknown until it is read again.
            await self.close()
            raise OutcomeUnknown(f"{self._path}: {error}; open the store again") from error
        return result


def _journaled(call: str) -> Callable[..., Awaitable[Any]]:
    names = inspect.signature(getattr(MemoryStore, call))

    async def method(self: JournalStore, *values: Any, **named: Any) -> Any:
        bound = names.bind(self, *values, **named)
        return await self._write(call, **dict(list(bound.arguments.items())[1:]))

    return method


for each in WRITES:
    setattr(JournalStore, each, _journaled(each))
