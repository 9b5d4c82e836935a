"""Files and folders that nobody but the user of this process can read: timers, keys and service calls are in them."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

#: What nobody else may do.
OTHERS = 0o077
_FOLDER_MODE, _FILE_MODE = 0o700, 0o600
#: What SQLite puts beside a database; it gives them the database's own mode.
_BESIDE = ("", "-wal", "-shm", "-journal")
#: The names of databases and locks in a data folder.
_OURS = re.compile(r"(?:tocsin|agent)\.db(?:-wal|-shm|-journal|\.lock)?\Z|tocsin\.lock\Z")


def make_folder(folder: Path) -> None:
    """Makes the folder where it is missing. Raises OSError."""
    folder.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)


def make_database(path: Path) -> None:
    """Makes an empty file where there is none, and takes one that is there, and what is beside it, from others. Raises
    OSError for a file that can't be made."""
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _FILE_MODE))
    for suffix in _BESIDE:
        _tighten(path.with_name(path.name + suffix), _FILE_MODE)


def tighten_folder(folder: Path) -> list[Path]:
    """Takes a data folder of before from others, if nothing else is in it; which of the files in it others can still read.

    A folder that holds somebody's other files, such as the working directory, stays as it is: the files are what counts.
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
