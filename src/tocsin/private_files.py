"""Private files and folders, readable only by the user of this process: they contain timers, keys and service calls."""

from __future__ import annotations

import contextlib
import os
import pwd
import re
from collections.abc import Iterator
from pathlib import Path

#: The permission bits of other users.
OTHERS = 0o077
_FOLDER_MODE, _FILE_MODE = 0o700, 0o600
#: Suffixes of the files that SQLite keeps next to a database, with the database's mode.
_BESIDE = ("", "-wal", "-shm", "-journal")
#: The names of databases, locks and the clock's file in a data folder.
_OURS = re.compile(
    r"(?:tocsin|agent)\.db(?:-wal|-shm|-journal|\.lock)?\Z|tocsin\.lock\Z|secrets\.key\Z|dev-clock\.json\Z"
)


#: The mask that was in force before `keep_files_private`; None before that.
_inherited: int | None = None


def keep_files_private() -> None:
    """From now on, files that this process creates are not for other users unless it permits that."""
    global _inherited
    _inherited = os.umask(OTHERS)


def inherited_umask() -> int:
    """The mask with which the process was started, for a program that it starts on behalf of its user; -1, which changes
    nothing, if it has not been replaced."""
    return -1 if _inherited is None else _inherited


def make_folder(folder: Path) -> None:
    """Creates the folder if it is missing. Raises OSError."""
    folder.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)


def other_owner(folder: Path) -> str | None:
    """The user to whom an existing folder belongs, if this process is root and they are not: files that root leaves there
    would be in the owner's way."""
    if os.geteuid() != 0 or not folder.is_dir():
        return None
    owner = folder.stat().st_uid
    if owner == 0:
        return None
    try:
        return pwd.getpwuid(owner).pw_name
    except KeyError:
        return str(owner)


def make_new(path: Path) -> None:
    """Creates an empty private file. Raises FileExistsError if there is one already, OSError."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _FILE_MODE))


def make_database(path: Path) -> None:
    """Creates an empty private file, or makes an existing one and SQLite's files next to it private. Raises OSError if the
    file can't be created."""
    with contextlib.suppress(FileExistsError):
        make_new(path)
    for suffix in _BESIDE:
        _tighten(path.with_name(path.name + suffix), _FILE_MODE)


def sync(path: Path) -> None:
    """Makes a file's content, or a folder's entries, durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def tighten_folder(folder: Path) -> list[Path]:
    """Makes the files of an existing data folder private, and the folder itself if nothing else is in it. Returns the files
    that other users can still read.

    A folder that holds other files, such as the working directory, keeps its mode: the data files are what matters.
    """
    if not folder.is_dir():
        return []
    names = {entry.name for entry in folder.iterdir()}
    ours = [folder / name for name in sorted(names) if _OURS.match(name)]
    for path in ours:
        _tighten(path, _FILE_MODE)
    if len(ours) == len(names):
        _tighten(folder, _FOLDER_MODE)
    return list(_open_to_others(ours))


def _tighten(path: Path, mode: int) -> None:
    # Another user's file can't be changed; `tighten_folder` returns it, and the server's log names it.
    with contextlib.suppress(OSError):
        if path.stat().st_mode & OTHERS:
            path.chmod(mode)


def _open_to_others(paths: list[Path]) -> Iterator[Path]:
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            if path.stat().st_mode & OTHERS:
                yield path
