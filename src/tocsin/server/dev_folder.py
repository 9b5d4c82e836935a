"""The data folder of `tocsin dev`: marked by the file that holds how far its clock is ahead, so that no server goes by
another clock with the same timers."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from tocsin.model.errors import ConfigError, StoreUnavailable
from tocsin.private_files import make_folder
from tocsin.server.peers import loopback
from tocsin.settings import Settings

#: The file that marks the folder, and its name while it is being written.
MARK = "dev-clock.json"
_WRITTEN = MARK + ".new"


class _Mark(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """The content of the file."""

    offset_us: int


class DevFolder:
    """The marked folder, and how far its clock is ahead of the machine's, in microseconds."""

    def __init__(self, folder: Path, offset_us: int) -> None:
        self.folder = folder
        self.offset_us = offset_us

    def keep(self, offset_us: int) -> None:
        """Makes the offset durable, at once and as a whole. Raises StoreUnavailable."""
        written = self.folder / _WRITTEN
        try:
            with os.fdopen(os.open(written, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb") as file:
                file.write(msgspec.json.encode(_Mark(offset_us)) + b"\n")
                file.flush()
                os.fsync(file.fileno())
            written.replace(self.folder / MARK)
        except OSError as error:
            raise StoreUnavailable(f"{self.folder / MARK} can't be written: {error.strerror}") from error
        self.offset_us = offset_us


def open_dev_folder(settings: Settings) -> DevFolder:
    """The data folder, created and marked if there are no data in it. Raises ConfigError for the folder of another server,
    and for settings with which the clock must not be moved; StoreUnavailable, OSError."""
    _check(settings)
    folder = settings.data_dir
    mark = folder / MARK
    try:
        found = msgspec.json.decode(mark.read_bytes(), type=_Mark)
    except FileNotFoundError:
        pass
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"data_dir: {mark} can't be read ({error}); remove the folder {folder}, or give another with --data-dir"
        ) from error
    else:
        return DevFolder(folder, found.offset_us)
    if any((folder / name).exists() for name in ("tocsin.db", "agent.db")):
        raise ConfigError(
            f"data_dir: {folder} has the data of `tocsin serve`, whose timers must not fire by a clock that is moved; give "
            "`tocsin dev` another folder with --data-dir"
        )
    make_folder(folder)
    opened = DevFolder(folder, 0)
    opened.keep(0)
    return opened


def refuse_dev_folder(settings: Settings) -> None:
    """Raises ConfigError if the settings name data in a folder of `tocsin dev`."""
    for field, folder in _folders(settings):
        if (folder / MARK).exists():
            raise ConfigError(
                f"{field}: {folder} belongs to `tocsin dev`, whose clock may be ahead; run "
                f"`tocsin dev --data-dir {folder}`, or give `tocsin serve` another folder"
            )


def _folders(settings: Settings) -> list[tuple[str, Path]]:
    """The folders of databases that are files, each with the setting that names it."""
    folders = [("data_dir", settings.data_dir)]
    for field, url in (("store", settings.store), ("agent.database", settings.agent_database)):
        if url is not None and url.startswith("sqlite:///"):
            folders.append((field, Path(url.removeprefix("sqlite:///")).parent))
    return folders


def _check(settings: Settings) -> None:
    """Raises ConfigError for settings that let others share what goes by the moved clock."""
    wrong = []
    if any(not loopback(host) for host in (settings.host, *settings.origin_hosts())):
        wrong.append(
            "host: `tocsin dev` listens on this machine only; leave out --host, and ui.origins of other machines"
        )
    if settings.store is not None:
        wrong.append("store: `tocsin dev` keeps timers in its own folder; leave out TOCSIN_STORE and `store`")
    if settings.agent_database is not None:
        wrong.append(
            "agent.database: `tocsin dev` keeps service calls in its own folder; leave out TOCSIN_AGENT_DATABASE and "
            "`agent.database`"
        )
    if settings.broker is not None:
        wrong.append("agent.broker: `tocsin dev` needs no broker; leave out TOCSIN_BROKER and `agent.broker`")
    if settings.workers > 1:
        wrong.append("workers: `tocsin dev` is one process; leave out TOCSIN_WORKERS and `workers`")
    if wrong:
        raise ConfigError("\n".join(wrong))
