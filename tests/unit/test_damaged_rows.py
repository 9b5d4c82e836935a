"""What a node does with rows and namespaces that are damaged, and with timers for which its store has no room."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import msgspec
import pytest
from tests.support.damage import GARBAGE, damage
from tests.unit.test_forwarded_writes import OWN, Node, timer

from tocsin.administration import (
    API_KEYS,
    AUDIT,
    NAMESPACES,
    SIGN_INS,
    add_sign_in,
    api_keys,
    audit,
    delete_api_key,
    purge_audit,
    put_api_key,
    put_audit,
    sign_in,
)
from tocsin.model.access import ApiKey, Role, SignIn
from tocsin.model.audit import AuditEntry, AuditQuery
from tocsin.model.condition import Condition, OnConflict
from tocsin.model.errors import (
    ConfigError,
    InvalidInput,
    PayloadTooLarge,
    TimerExists,
    TimerNotFound,
    TimerNotPending,
    Unavailable,
)
from tocsin.model.ids import schedule_uuid, timer_uuid
from tocsin.model.namespace import DamagedNamespace
from tocsin.model.run import Run, RunStatus, encode_run
from tocsin.model.schedule import Definition, ScheduleStatus
from tocsin.model.timer import Changes, RawBody, Status, damaged_record, decode_record, encode_record
from tocsin.ports.observer import Event, NamespaceDamaged, RecordDamaged, TimerSuspended
from tocsin.ports.store import Capabilities, HistoryRow, RunRow, ShardBatch, StoredRow
from tocsin.server.stores import check_payload_limit
from tocsin.settings.load import load_settings
from tocsin.stores.memory import MemoryStore
from tocsin.telemetry.clock import SystemClock
from tocsin.timers.engine.rows import OpKind, WriteOp
from tocsin.timers.history import runs_page
from tocsin.timers.listing import ListRequest
from tocsin.timers.schedules import ScheduleListRequest, Schedules
from tocsin.web.http.schedules import schedule_answer

ROW_BYTES_MAX = 40_000
RESERVE_BYTES = 32 * 1024


@pytest.fixture
async def store() -> MemoryStore:
    store = MemoryStore(SystemClock())
    store.capabilities = replace(store.capabilities, row_bytes_max=ROW_BYTES_MAX)
    await store.open(1)
    return store


@pytest.fixture
async def node(store: MemoryStore) -> AsyncIterator[Node]:
    made = Node(store)
    await made.service.namespaces.ensure_default()
    await made.supervisor.start()
    await made.owned.wait()
    yield made
    await made.supervisor.close()


async def stored(store: MemoryStore, name: str) -> StoredRow:
    uuid = timer_uuid("default", name)
    row = (await store.fetch(0, [uuid]))[uuid].live
    assert row is not None
    return row


@pytest.mark.parametrize("names_lost", [False, True])
async def test_damaged_timer_is_shown_with_the_reason_and_can_be_deleted(
    node: Node, store: MemoryStore, names_lost: bool
) -> None:
    for name in ("hurt", "sound"):
        await node.service.create(timer(name))
    row = await stored(store, "hurt")
    await damage(store, row._replace(namespace="", timer_id="") if names_lost else row)
    view = await node.service.get("default", "hurt")
    assert (view.timer.id, view.timer.status) == ("hurt", Status.PENDING)
    assert "can't be read" in str(view.timer.last_error)
    with pytest.raises(TimerNotPending, match="can't be read"):
        await node.service.update("default", "hurt", Changes(tags=("a",)))
    with pytest.raises(TimerExists, match="'hurt' exists, and its stored record can't be read"):
        await node.service.create(timer("hurt"), Condition(OnConflict.KEEP))
    await node.service.delete("default", "hurt")
    if names_lost:
        with pytest.raises(TimerNotFound):
            await node.service.get("default", "hurt")
    else:
        assert (await node.service.get("default", "hurt")).timer.status is Status.CANCELED
    listed, _ = await node.service.list(ListRequest("default", frozenset({Status.PENDING})))
    assert [each.timer.id for each in listed] == ["sound"]


async def test_timer_damaged_while_its_namespace_is_paused_stays_suspended_unchanged(
    node: Node, store: MemoryStore
) -> None:
    events: list[Event] = []
    node.context.observe = events.append
    await node.service.create(timer("hurt"))
    row = (await stored(store, "hurt"))._replace(suspended="namespace:default")
    (shard,) = await store.shards()
    await store.apply([ShardBatch(0, shard.epoch, OWN, upserts=[row])])
    await damage(store, row)
    node.supervisor.shards[0].accept(WriteOp(OpKind.RESUME, row.uuid, "default", expected=row.generation))
    # Its answer comes from a later batch than the resumption.
    await node.service.create(timer("other"))
    kept = await stored(store, "hurt")
    assert (kept.record, kept.key) == (GARBAGE, row.key)
    assert str(kept.suspended).startswith("bad_record: ")
    assert [each.reason for each in events if isinstance(each, TimerSuspended)] == [kept.suspended]


async def test_damaged_run_is_shown_with_the_reason_among_the_others() -> None:
    sound = RunRow(b"u" * 16, b"\2" * 32, encode_run(Run(7, RunStatus.SUPERSEDED)), 0)
    hurt = RunRow(b"u" * 16, b"\1" * 32, damaged_record(KeyError("r"), b""), 0)

    async def live() -> None:
        return None

    async def ends(before: bytes | None, limit: int, _: int) -> list[HistoryRow | RunRow]:
        return [each for each in (sound, hurt) if before is None or each.generation < before][:limit]

    page = await runs_page(live, ends, 10, None)
    assert [run.status for run in page.runs] == [RunStatus.SUPERSEDED, RunStatus.FAILED]
    assert "can't be read" in str(page.runs[1].attempts[0].error)


async def test_damaged_namespace_is_reported_once_and_refuses_its_operations_until_it_is_restored(
    node: Node, store: MemoryStore
) -> None:
    events: list[Event] = []
    node.context.observe = events.append
    sound = await node.service.namespaces.create("hurt")
    await node.service.create(timer("t", "hurt"))
    (intact,) = await store.records(NAMESPACES, "default", limit=1)
    await damage(store, sound)
    for _ in range(2):
        await node.supervisor.lease.read_namespaces()
    assert [each.namespace for each in events if isinstance(each, NamespaceDamaged)] == ["hurt"]
    with pytest.raises(Unavailable, match="'hurt' is damaged"):
        await node.service.create(timer("t", "hurt"))
    with pytest.raises(Unavailable, match="'hurt' is damaged"):
        await node.service.namespaces.update("hurt", paused=False)
    await node.service.create(timer("t"))
    known = node.context.namespaces["hurt"]
    assert isinstance(known, DamagedNamespace)
    assert known.paused
    store._records[NAMESPACES, "hurt"] = intact
    await node.supervisor.lease.read_namespaces()
    assert (await node.service.get("hurt", "t")).timer.id == "t"


async def test_timer_for_which_the_store_has_no_room_is_refused_with_its_largest_field(node: Node) -> None:
    fits = msgspec.Raw(b'"' + b"x" * 6_000 + b'"')
    too_large = msgspec.Raw(b'"' + b"x" * (ROW_BYTES_MAX - RESERVE_BYTES) + b'"')

    def with_payload(payload: msgspec.Raw) -> msgspec.Struct:
        return msgspec.structs.replace(timer("t"), payload=payload)

    await node.service.create(with_payload(fits))  # type: ignore[arg-type]
    for refused, field in (
        (node.service.create(with_payload(too_large)), "payload"),  # type: ignore[arg-type]
        (node.service.update("default", "t", Changes(payload=too_large)), "payload"),
        (node.service.update("default", "t", Changes(body=RawBody("a/b", text="x" * 8_000))), "body"),
        (node.service.update("default", "t", Changes(headers={"a": "x" * 1_000, "b": "x" * 1_000})), "payload"),
    ):
        with pytest.raises(PayloadTooLarge) as caught:
            await refused
        assert [error.path for error in caught.value.errors] == [field]
    assert (await node.service.get("default", "t")).timer.payload == fits


def test_payload_limit_above_what_the_store_holds_is_refused_at_the_start() -> None:
    capabilities = Capabilities(row_bytes_max=ROW_BYTES_MAX)
    check_payload_limit(load_settings({"payload_bytes_max": ROW_BYTES_MAX - RESERVE_BYTES}), capabilities)
    with pytest.raises(ConfigError, match=f"payload_bytes_max: .* at most {ROW_BYTES_MAX - RESERVE_BYTES}"):
        check_payload_limit(load_settings({"payload_bytes_max": ROW_BYTES_MAX - RESERVE_BYTES + 1}), capabilities)


async def test_damaged_records_are_left_out_and_reported() -> None:
    store, events = MemoryStore(), list[Event]()
    now_us = 5_000_000
    for number in range(3):
        await put_api_key(store, ApiKey(f"k{number}", str(number), Role.READ))
        await put_audit(store, AuditEntry(number, bytes(16), "sign_in", "k0", "", "api", "", "n"))
        await add_sign_in(store, SignIn("k0", f"h{number}", number, 2 * now_us), 0, 9)
    hurt = [(API_KEYS, "k1"), (AUDIT, f"{1:016x}{bytes(16).hex()}"), (SIGN_INS, "k0/h1")]
    for place in hurt:
        store._records[place] = store._records[place]._replace(value='{"at":')
    assert [each.key_id for each in await api_keys(store, events.append)] == ["k0", "k2"]
    assert [each.at for each in (await audit(store, AuditQuery(limit=2), events.append)).entries] == [2, 0]
    found = [await sign_in(store, "k0", f"h{number}", events.append) for number in range(3)]
    assert [each is not None for each in found] == [True, False, True]
    assert [(each.kind, each.key) for each in events if isinstance(each, RecordDamaged)] == hurt
    # A key's sign-ins and old entries are removed, damaged or not.
    await delete_api_key(store, "k0")
    await purge_audit(store, now_us, "", 9)
    assert await store.records(SIGN_INS, limit=9) == await store.records(AUDIT, limit=9) == []


@pytest.mark.parametrize("definition", [Definition(cron="0 9 * * *", time_zone="Etc/Nowhere"), Definition(cron="noon")])
async def test_a_schedule_whose_rule_is_unknown_here_is_listed_without_instants(
    node: Node, store: MemoryStore, definition: Definition
) -> None:
    """As a node with another database of time zones has stored it."""
    schedules = Schedules(node.service)
    for name in ("odd", "sound"):
        await schedules.create(timer(name), Definition(cron="0 9 * * *"))
    uuid = schedule_uuid("default", "odd")
    row = store._shards[0].live[uuid]
    changed = decode_record(row.record)
    assert changed.schedule is not None
    changed.schedule = msgspec.structs.replace(changed.schedule, definition=definition)
    store._shards[0].live[uuid] = row._replace(record=encode_record(changed))
    request = ScheduleListRequest("default")
    soonest = await schedules.soonest(request, 10)
    assert soonest is not None
    for views in (soonest[0], (await schedules.list(request))[0]):
        assert {view.timer.id: len(view.next_instants) for view in views} == {"odd": 0, "sound": 3}
    odd = await schedules.get("default", "odd")
    assert odd.status is ScheduleStatus.ACTIVE
    assert schedule_answer(odd).next_instants == []
    with pytest.raises(InvalidInput, match="can't be read"):
        schedules.instants_of(odd)
    await schedules.delete("default", "odd")
