"""Backups of SQLite databases, and their restoration: what else is in the folders, and what a killed restore has left."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest

from tocsin.administration import encoded
from tocsin.model.errors import ConfigError, StoreCorrupted
from tocsin.model.job import Job, JobAction, JobKind, JobState, RowFilter
from tocsin.ports.store import ShardState
from tocsin.server import backup
from tocsin.server.backup import back_up, restore
from tocsin.server.transfer_mark import TRANSFER, TransferMark, put_mark
from tocsin.settings import Settings, load_settings
from tocsin.stores.sqlite.store import SqliteStore
from tocsin.testing.store_conformance_base import ALICE, claimed, put, row
from tocsin.timers.jobs import JOBS, every_job

DATABASE = "tocsin.db"


def settings_of(folder: Path) -> Settings:
    return load_settings({"data_dir": folder})


async def filled(folder: Path, rows: int = 1) -> Settings:
    """The settings of a folder with a database with so many timers, in a shard that ALICE owns in epoch 1."""
    folder.mkdir()
    store = SqliteStore(folder / DATABASE)
    await store.open(4)
    await claimed(store)
    await put(store, *(row(number, record=b"x" * 1_000) for number in range(rows)))
    await store.close()
    return settings_of(folder)


async def shards_of(folder: Path) -> list[ShardState]:
    store = SqliteStore(folder / DATABASE)
    await store.open(None)
    found = await store.shards()
    await store.close()
    return found


async def test_a_restored_shard_gets_no_epoch_that_it_had_after_the_backup(tmp_path: Path) -> None:
    """Otherwise the name of a new firing, which epoch and sequence make, could be one that a receiver knows."""
    settings = await filled(tmp_path / "data")
    back_up(settings, tmp_path / "kept")
    store = SqliteStore(tmp_path / "data" / DATABASE)
    await store.open(None)
    assert await store.claim(0, expected_epoch=1, owner=ALICE) == 2
    await store.close()
    raised = set()
    for name in ("one", "other"):
        restore(settings_of(tmp_path / name), tmp_path / "kept", pause=False)
        shards = await shards_of(tmp_path / name)
        assert {state.owner for state in shards} == {None}
        # Also of one that had no claim yet.
        assert min(state.epoch for state in shards) > 1_000
        # The keys of events have room for so many.
        assert max(state.epoch for state in shards) < 2**17
        raised.add(shards[0].epoch)
    assert len(raised) == 2


async def test_a_restore_is_not_harmed_by_what_a_killed_one_left(tmp_path: Path) -> None:
    killed, settings = await filled(tmp_path / "killed", 500), await filled(tmp_path / "data", 3)
    back_up(killed, tmp_path / "other")
    back_up(settings, tmp_path / "kept")
    target = tmp_path / "restored"
    target.mkdir()
    leave_hot_journal(tmp_path / "other" / DATABASE, target / (DATABASE + ".restoring"), tmp_path / "scratch.db")
    restore(settings_of(target), tmp_path / "kept", pause=True)
    assert {path.name for path in target.iterdir() if ".restoring" in path.name} == set()
    connection = apsw.Connection(str(target / DATABASE))
    assert connection.pragma("integrity_check") == "ok"
    (counted,) = connection.execute("SELECT count(*) FROM timers WHERE row_type <> 1")
    assert counted == (3,)
    connection.close()


def leave_hot_journal(database: Path, target: Path, scratch: Path) -> None:
    """Copies the database to a place, with the journal of a transaction that a crash has cut off."""
    shutil.copyfile(database, scratch)
    connection = apsw.Connection(str(scratch))
    connection.pragma("journal_mode", "delete")
    # Pages that were changed are written before the transaction ends, and the journal before them.
    connection.pragma("cache_size", 1)
    connection.execute("BEGIN; UPDATE timers SET timer_record = zeroblob(2000) WHERE row_type <> 1")
    for suffix in ("", "-journal"):
        shutil.copyfile(f"{scratch}{suffix}", f"{target}{suffix}")
    connection.close()


async def test_a_failed_restore_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = await filled(tmp_path / "data")
    back_up(settings, tmp_path / "kept")

    def fail(path: Path, raised: int) -> None:
        path.with_name(path.name + "-journal").touch()
        raise OSError("no")

    monkeypatch.setattr(backup, "begin_epochs", fail)
    target = tmp_path / "restored"
    with pytest.raises(OSError, match="no"):
        restore(settings_of(target), tmp_path / "kept", pause=False)
    assert [path.name for path in target.iterdir() if ".restoring" in path.name] == []


async def test_of_two_backups_into_one_folder_the_second_removes_nothing_of_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = await filled(tmp_path / "data")
    kept, copy = tmp_path / "kept", backup.copy_database
    refused: list[str] = []

    def copy_while_another_begins(source: Path, target: Path) -> None:
        monkeypatch.setattr(backup, "copy_database", copy)
        # The other one has found the folder empty, too.
        monkeypatch.setattr(Path, "iterdir", lambda path: iter(()))
        with pytest.raises(ConfigError, match="is not an empty folder") as error:
            back_up(settings, kept)
        refused.append(str(error.value))
        monkeypatch.undo()
        copy(source, target)

    monkeypatch.setattr(backup, "copy_database", copy_while_another_begins)
    back_up(settings, kept)
    assert len(refused) == 1
    restore(settings_of(tmp_path / "restored"), kept, pause=False)


async def test_of_a_damaged_database_there_is_no_backup(tmp_path: Path) -> None:
    settings = await filled(tmp_path / "data", rows=500)
    with (tmp_path / "data" / DATABASE).open("r+b") as file:
        file.seek((tmp_path / "data" / DATABASE).stat().st_size // 2)
        file.write(b"\xff" * 20_000)
    with pytest.raises(StoreCorrupted, match=r"is damaged .*restore an earlier backup"):
        back_up(settings, tmp_path / "kept")
    assert not (tmp_path / "kept").exists()


async def test_a_failed_backup_removes_the_folder_that_it_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = await filled(tmp_path / "data")

    def fail(source: Path, target: Path) -> None:
        raise OSError("no")

    monkeypatch.setattr(backup, "copy_database", fail)
    with pytest.raises(OSError, match="no"):
        back_up(settings, tmp_path / "kept")
    assert not (tmp_path / "kept").exists()


async def test_a_backup_is_not_restored_into_a_folder_with_the_clock_of_tocsin_dev(tmp_path: Path) -> None:
    back_up(await filled(tmp_path / "data"), tmp_path / "kept")
    target = tmp_path / "restored"
    target.mkdir()
    (target / "dev-clock.json").write_text('{"offsetUs":86400000000}')
    with pytest.raises(ConfigError, match=r"dev-clock\.json exists"):
        restore(settings_of(target), tmp_path / "kept", pause=False)
    assert not (target / DATABASE).exists()


async def test_a_restore_that_pauses_holds_the_jobs_that_ran_and_no_others(tmp_path: Path) -> None:
    settings = await filled(tmp_path / "data")
    store = SqliteStore(tmp_path / "data" / DATABASE)
    await store.open(None)
    jobs = {
        state.value: Job(
            state.value, "a", JobKind.TIMERS, JobAction.CANCEL, RowFilter(1, tags=("running",)), 1, 1, state
        )
        for state in JobState
    }
    for job in jobs.values():
        assert await store.put_record(JOBS, job.id, encoded(job), None)
    assert await store.put_record(JOBS, "damaged", "{", None)
    await store.close()
    back_up(settings, tmp_path / "kept")
    for pause in (False, True):
        restore(settings_of(tmp_path / f"to-{pause}"), tmp_path / "kept", pause=pause)
        store = SqliteStore(tmp_path / f"to-{pause}" / DATABASE)
        await store.open(None)
        found = {job.id: job for job in await every_job(store, lambda event: None)}
        await store.close()
        running = found.pop("running")
        assert running.state is (JobState.PAUSED if pause else JobState.RUNNING)
        # As any change by somebody.
        assert running.version == (2 if pause else 1)
        assert msgspec.structs.replace(running, state=JobState.RUNNING, version=0) == jobs["running"]
        assert {each: job.state.value for each, job in found.items()} == {each: each for each in found}
        assert len(found) == len(JobState) - 1


@pytest.mark.parametrize(("phase", "kept"), [("copying", False), ("paused", False), ("moved", True)])
async def test_a_restored_store_is_no_part_of_a_transfer_that_went_on(tmp_path: Path, phase: Any, kept: bool) -> None:
    """The servers would log their changes, and remove no history, for a target that nobody fills any more."""
    settings = await filled(tmp_path / "data")
    store = SqliteStore(tmp_path / "data" / DATABASE)
    await store.open(None)
    await put_mark(store, TransferMark("source", "ab" * 16, "b", 1, phase=phase))
    await store.put_record(TRANSFER, "logging/00", "{}", None)
    await store.close()
    back_up(settings, tmp_path / "kept")
    restore(settings_of(tmp_path / "to"), tmp_path / "kept", pause=False)
    store = SqliteStore(tmp_path / "to" / DATABASE)
    await store.open(None)
    assert len(await store.records(TRANSFER, limit=10)) == (2 if kept else 0)
    await store.close()
