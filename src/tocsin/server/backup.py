"""Backups of the SQLite databases of a server, and their restoration.

A backup is a folder with a copy of each database and, written last, a list of them. A folder without the list is not a whole
backup.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import random
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from tocsin import __version__
from tocsin.administration import NAMESPACES
from tocsin.model.errors import ConfigError, StoreCorrupted
from tocsin.model.instants import format_instant
from tocsin.model.job import JobState
from tocsin.private_files import make_folder, make_new, sync
from tocsin.server.dev_folder import MARK
from tocsin.server.transfer_mark import TRANSFER, TRANSFER_KEY, under_way
from tocsin.settings import Settings
from tocsin.sql.file_lock import FileLock
from tocsin.stores.sqlite.connection import no_space
from tocsin.stores.sqlite.files import BESIDE, begin_epochs, copy_database, delete_records, set_in_records
from tocsin.stores.sqlite.store import folder_lock
from tocsin.timers.jobs import JOBS

LIST = "backup.json"
TIMERS, CALLS = "tocsin.db", "agent.db"
_FORMAT = 1
#: By how much a restore raises the epochs of shards: beyond those that came after the backup, and another number each time,
#: since a firing's name has the epoch and must be new. Keys of events have room for epochs below 2**23.
_EPOCHS_MIN, _EPOCHS_MAX = 2**12, 2**16
_FILE_SCHEME = "sqlite:///"


class CopiedFile(msgspec.Struct, frozen=True):
    """A file of a backup."""

    name: str
    bytes: int
    sha256: str


class Backup(msgspec.Struct, frozen=True, rename="camel"):
    """The list of a backup. `tocsin` is the version that took it."""

    format: int
    created_at: str
    tocsin: str
    files: tuple[CopiedFile, ...]


def back_up(settings: Settings, folder: Path) -> Backup:
    """Copies the databases that are files, while the server may run. The folder has to be missing or empty, and is so
    again after a failure, unless another backup is made in it. Raises ConfigError, StoreError, OSError."""
    present = {name: path for name, path in database_files(settings).items() if path.is_file()}
    if not present:
        places = " or ".join(map(str, database_files(settings).values())) or "settings name no SQLite database"
        raise ConfigError(f"store: there is nothing to back up: no {places}. {elsewhere(settings)}".rstrip())
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise _not_empty(folder)
    new = not folder.exists()
    try:
        make_folder(folder)
        with _removed_on_failure() as made:
            return _filled(folder, present, settings.data_dir / MARK, made)
    except BaseException as error:
        if new:
            # Neither if another backup uses it.
            with contextlib.suppress(OSError):
                folder.rmdir()
        if isinstance(error, FileExistsError):
            raise _not_empty(folder) from error
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            raise no_space(folder) from error
        raise


def _not_empty(folder: Path) -> ConfigError:
    return ConfigError(f"{folder} is not an empty folder; name a new one for each backup")


def _filled(folder: Path, present: dict[str, Path], mark: Path, made: list[Path]) -> Backup:
    """Notes in `made` the files that it creates. Raises FileExistsError for one that another backup has created."""
    for name, path in present.items():
        _create(folder / name, made)
        copy_database(path, folder / name)
    if mark.is_file():
        _create(folder / MARK, made)
        shutil.copyfile(mark, folder / MARK)
        present[MARK] = mark
    files = tuple(_described(folder / name) for name in present)
    backup = Backup(_FORMAT, format_instant(time.time_ns() // 1_000), __version__, files)
    _create(folder / LIST, made)
    (folder / LIST).write_bytes(msgspec.json.format(msgspec.json.encode(backup)) + b"\n")
    sync(folder / LIST)
    sync(folder)
    return backup


def _create(path: Path, made: list[Path]) -> None:
    make_new(path)
    made.append(path)


def restore(settings: Settings, folder: Path, *, pause: bool) -> Backup:
    """Puts the files of a backup into place, all or none. With `pause`, all namespaces and running jobs are paused, so that
    nothing fires or is changed before it was checked. Raises ConfigError if data are there already, StoreLocked if a server
    runs, StoreCorrupted for a damaged backup, OSError."""
    backup = _read(folder)
    targets = _targets(settings, backup)
    with contextlib.ExitStack() as stack:
        for lock in _locks(targets):
            lock.acquire()
            stack.callback(lock.release)
        for path in _occupied(settings, targets):
            if path.exists():
                raise ConfigError(
                    f"{path} exists; a backup is restored only where no data are: move them away, or name another folder"
                )
        made = stack.enter_context(_removed_on_failure())
        for name, target in targets.items():
            new = target.with_name(target.name + ".restoring")
            # A restore that was killed may have left a journal, which SQLite would roll back into this copy.
            _remove(new)
            made.append(new)
            make_new(new)
            shutil.copyfile(folder / name, new)
            if name == TIMERS:
                # Without owners: the next start would report the server that ran when the copy was taken as interrupted.
                begin_epochs(new, random.randrange(_EPOCHS_MIN, _EPOCHS_MAX))
                # Of a transfer under traffic when the copy was taken: what it has copied was not logged in this one.
                delete_records(new, TRANSFER, TRANSFER_KEY, lambda value: under_way(value) is not None)
            if pause and name == TIMERS:
                # What fires for a namespace whose record is damaged waits anyway.
                set_in_records(new, NAMESPACES, "paused", True)
                set_in_records(new, JOBS, "state", JobState.PAUSED.value, instead_of=JobState.RUNNING.value)
            sync(new)
        # The timers last: without them a server would create an empty store, which is noticed at once.
        for name in sorted(targets, key=lambda name: name == TIMERS):
            target = targets[name]
            target.with_name(target.name + ".restoring").rename(target)
            made.append(target)
            sync(target.parent)
    return backup


def _occupied(settings: Settings, targets: dict[str, Path]) -> Iterator[Path]:
    """What must not be there: the data that a restore would replace, and the mark of a folder of `tocsin dev`, by whose clock
    the restored timers would fire."""
    for target in targets.values():
        yield from _with_beside(target)
        yield target.parent / MARK
    yield settings.data_dir / MARK


def elsewhere(settings: Settings) -> str:
    """What has to be backed up with the tools of its database server; empty if there is nothing."""
    places = []
    if _path_of(settings.store_url()) is None:
        places.append(f"the timers ({settings.store_url_redacted()})")
    if settings.has_agent() and _path_of(settings.agent_database_url()) is None:
        places.append("the service calls (agent.database)")
    if not places:
        return ""
    return (
        f"Back up {' and '.join(places)} with the tools of the database server; docs/how-to/backup.md has the commands."
    )


def database_files(settings: Settings) -> dict[str, Path]:
    """The databases that are files, by their names in a backup."""
    places = {TIMERS: _path_of(settings.store_url()), CALLS: _path_of(settings.agent_database_url())}
    return {name: path for name, path in places.items() if path is not None}


def _path_of(url: str) -> Path | None:
    return Path(url.removeprefix(_FILE_SCHEME)) if url.startswith(_FILE_SCHEME) else None


def _targets(settings: Settings, backup: Backup) -> dict[str, Path]:
    """Where each file of the backup belongs."""
    places = {**database_files(settings), MARK: settings.data_dir / MARK}
    for file in backup.files:
        if file.name not in places:
            setting = "store" if file.name == TIMERS else "agent.database"
            raise ConfigError(f"{setting}: the backup has {file.name}, but the setting names no SQLite file; set one")
    targets = {file.name: places[file.name] for file in backup.files}
    for target in targets.values():
        make_folder(target.parent)
    return targets


def _locks(targets: dict[str, Path]) -> Iterator[FileLock]:
    if TIMERS in targets:
        yield folder_lock(targets[TIMERS].parent)
    if CALLS in targets:
        from tocsin.stores.service_calls.sqlite import file_lock

        yield file_lock(targets[CALLS])


def _read(folder: Path) -> Backup:
    """The list of a backup whose files are as they were written."""
    try:
        backup = msgspec.json.decode((folder / LIST).read_bytes(), type=Backup)
    except FileNotFoundError:
        raise ConfigError(
            f"{folder} is not a whole backup: it has no {LIST}, which `tocsin backup` writes last"
        ) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise StoreCorrupted(f"{folder / LIST} can't be read ({error}); use another backup") from error
    if backup.format != _FORMAT:
        raise ConfigError(f"{folder} has the format {backup.format}; restore it with Tocsin {backup.tocsin} or newer")
    for file in backup.files:
        if not (folder / file.name).is_file() or _described(folder / file.name) != file:
            raise StoreCorrupted(f"{folder / file.name} is not as it was written; use another backup")
    return backup


def _described(path: Path) -> CopiedFile:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return CopiedFile(path.name, path.stat().st_size, digest)


def _with_beside(path: Path) -> Iterator[Path]:
    """The file, and those that SQLite keeps next to it."""
    yield path
    for suffix in BESIDE:
        yield path.with_name(path.name + suffix)


def _remove(path: Path) -> None:
    for each in _with_beside(path):
        each.unlink(missing_ok=True)


@contextlib.contextmanager
def _removed_on_failure() -> Iterator[list[Path]]:
    """A list of files that are removed if the block fails, with those that SQLite keeps next to them."""
    made: list[Path] = []
    try:
        yield made
    except BaseException:
        for path in made:
            _remove(path)
        raise
