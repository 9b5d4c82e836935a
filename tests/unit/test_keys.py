"""Creating, listing and revoking API keys: scope and validation."""

from __future__ import annotations

import asyncio

import pytest
from tests.support.cases import each

from tocsin import keys
from tocsin.administration import api_keys, put_api_key
from tocsin.keys import KEYS_MAX, SCOPE_MAX, ApiKeys, KeyRequest, admin_key, grant_refusal, make
from tocsin.model.access import ApiKey, Role, hash_key
from tocsin.model.audit import AuditAction
from tocsin.model.errors import InvalidInput, KeyNotFound, StoreUnavailable, TooManyKeys
from tocsin.server.access import Keyring
from tocsin.stores.memory import MemoryStore
from tocsin.telemetry.clock import SystemClock
from tocsin.web.api.scopes import OPERATION_NAMES

NOW = 1_801_396_800_000_000
DAY = 86_400_000_000
ONE, TWO = "01890a5d-ac96-774b-bcce-b302099a8057", "01890a5d-ac96-774b-bcce-b302099a8058"
READ, WRITE, ADMIN = Role.READ, Role.WRITE, Role.ADMIN
ANYWHERE: tuple[str, ...] = ()


def key(
    role: Role,
    namespaces: tuple[str, ...] = (),
    tenants: tuple[str, ...] = (),
    expires_at: int | None = None,
    operations: tuple[str, ...] = (),
    sources: tuple[str, ...] = (),
) -> ApiKey:
    return ApiKey("k", "h", role, namespaces, tenants, NOW, "", expires_at, operations, sources)


@each(
    "maker, made, why_not",
    [
        (key(ADMIN), key(ADMIN), None),
        (key(ADMIN), key(READ, ("a",)), None),
        (key(ADMIN), key(WRITE, (), (ONE,)), None),
        (key(WRITE), key(READ), "role admin"),
        (key(READ), key(READ), "role admin"),
        (key(WRITE, ("a",)), key(READ, ("a",)), "role admin"),
        (key(ADMIN, ("a", "b")), key(ADMIN, ("a",)), None),
        (key(ADMIN, ("a", "b")), key(READ, ("b", "a")), None),
        (key(ADMIN, ("a", "b")), key(READ), "limited to a, b"),
        (key(ADMIN, ("a",)), key(READ, ("a", "b")), "limited to a"),
        (key(ADMIN, ("a",)), key(READ, ("A",)), "limited to a"),
        (key(ADMIN, ("a",)), key(READ, (), (ONE,)), "limited to a"),
        (key(ADMIN, ("a",)), key(READ, ("a",), (ONE,)), "limited to a"),
        (key(ADMIN, (), (ONE,)), key(ADMIN, (), (ONE.upper(),)), None),
        (key(ADMIN, (), (ONE,)), key(READ, (), (TWO,)), f"limited to {ONE}"),
        (key(ADMIN, (), (ONE,)), key(READ, ("a",)), f"limited to {ONE}"),
        (key(ADMIN, ("a",), (ONE,)), key(WRITE, (), (ONE,)), None),
        (key(ADMIN, ("a",), (ONE,)), key(WRITE, ("a",), (ONE,)), None),
        (key(ADMIN, expires_at=NOW + DAY), key(READ), "expires at"),
        (key(ADMIN, expires_at=NOW + DAY), key(READ, expires_at=NOW + DAY + 1), "expires at"),
        (key(ADMIN, expires_at=NOW + DAY), key(READ, expires_at=NOW + DAY), None),
        (key(ADMIN), key(READ, expires_at=NOW + DAY), None),
        (key(ADMIN, operations=("keys/*", "timers/*")), key(READ), "limited to the operations keys/*, timers/*"),
        (
            key(ADMIN, operations=("keys/*", "timers/*")),
            key(READ, operations=("timers/get",)),
            "limited to the operations",
        ),
        (key(ADMIN, operations=("keys/*", "timers/*")), key(READ, operations=("timers/*",)), None),
        (key(ADMIN), key(READ, operations=("timers/get",)), None),
        (key(ADMIN, sources=("10.0.0.0/8", "2001:db8::/32")), key(READ), "limited to the sources 10.0.0.0/8"),
        (
            key(ADMIN, sources=("10.0.0.0/8",)),
            key(READ, sources=("10.1.0.0/16", "11.0.0.1/32")),
            "limited to the sources",
        ),
        (key(ADMIN, sources=("10.0.0.0/8",)), key(READ, sources=("8.0.0.0/6",)), "limited to the sources"),
        (key(ADMIN, sources=("10.0.0.0/8",)), key(READ, sources=("2001:db8::/48",)), "limited to the sources"),
        (
            key(ADMIN, sources=("10.0.0.0/8", "2001:db8::/32")),
            key(READ, sources=("2001:db8::/48", "10.0.0.1/32")),
            None,
        ),
        (key(ADMIN), key(READ, sources=("10.0.0.0/8",)), None),
    ],
)
def test_a_key_can_not_create_a_more_powerful_key(maker: ApiKey, made: ApiKey, why_not: str | None) -> None:
    reason = grant_refusal(made, maker)
    assert (reason is None) == (why_not is None), reason
    if why_not is not None:
        assert why_not in str(reason)


@each(
    "wanted, paths",
    [
        (KeyRequest(READ, ("no spaces", "a", "a")), ["namespaces[0]", "namespaces[2]"]),
        (KeyRequest(READ, (), ("acme", ONE)), ["tenants[0]"]),
        (KeyRequest(READ, tuple(f"n{n}" for n in range(SCOPE_MAX + 1))), ["namespaces"]),
        (KeyRequest(READ, name="a\u202eb"), ["name"]),
        (KeyRequest(READ, name="x" * 256), ["name"]),
        (KeyRequest(READ, expires_at=NOW), ["expiresAt"]),
        (KeyRequest(READ, expires_at=NOW + 101 * 365 * DAY), ["expiresAt"]),
        (
            KeyRequest(
                READ, operations=("timers/mend", "timer/*", "*", "write", "/*", "createTimer", "timers*", "read")
            ),
            [f"operations[{place}]" for place in range(7)],
        ),
        (
            KeyRequest(
                READ, sources=("10.0.0.1/8", "localhost", "", "10.0.0.0/33", "::ffff:10.0.0.0/104", "::1", "::1")
            ),
            [f"sources[{place}]" for place in (0, 1, 2, 3, 4, 6)],
        ),
        (KeyRequest(READ, ("",), ("x",), expires_at=0), ["namespaces[0]", "tenants[0]", "expiresAt"]),
    ],
)
def test_invalid_keys_are_refused_with_all_bad_fields(wanted: KeyRequest, paths: list[str]) -> None:
    with pytest.raises(InvalidInput) as refused:
        make(wanted, NOW, OPERATION_NAMES)
    assert [error.path for error in refused.value.errors] == paths


def test_operations_and_sources_are_part_of_the_key() -> None:
    operations = ("timers/create", "timers/*", "read", "calls/submit", "calls/*", "mcp", "metrics", "cluster")
    wanted = KeyRequest(READ, operations=operations, sources=("10.0.0.0/8", "192.0.2.7", "2001:db8::/32", "::1"))
    made, _ = make(wanted, NOW, OPERATION_NAMES)
    assert made.operations == operations
    assert made.sources == ("10.0.0.0/8", "192.0.2.7/32", "2001:db8::/32", "::1/128")


@each(
    "operations, operation, role, permitted",
    [
        ((), "timers/delete", WRITE, True),
        (("timers/create",), "timers/create", WRITE, True),
        (("timers/create",), "timers/delete", WRITE, False),
        (("timers/create",), "timers/batch/create", WRITE, False),
        (("timers/*",), "timers/batch/create", WRITE, True),
        (("timers/*",), "schedules/create", WRITE, False),
        (("time/*",), "timers/create", WRITE, False),
        (("timers/create", "read"), "schedules/list", READ, True),
        (("read",), "keys/list", ADMIN, False),
    ],
)
def test_a_key_may_use_its_operations(operations: tuple[str, ...], operation: str, role: Role, permitted: bool) -> None:
    assert key(ADMIN, operations=operations).permits(operation, role) is permitted


@each(
    "sources, address, counts",
    [
        ((), "", True),
        (("10.0.0.0/8",), "10.255.0.1", True),
        (("10.0.0.0/8",), "11.0.0.1", False),
        (("10.0.0.0/8",), "::ffff:10.0.0.1", True),
        (("10.0.0.0/8",), "::ffff:11.0.0.1", False),
        (("0.0.0.0/0",), "2001:db8::1", False),
        (("10.0.0.0/8", "2001:db8::/32"), "2001:db8:1::1", True),
        (("::1/128",), "::1", True),
        (("0.0.0.0/0", "::/0"), "", False),
        (("0.0.0.0/0", "::/0"), "testclient", False),
    ],
)
def test_a_key_counts_from_its_sources(sources: tuple[str, ...], address: str, counts: bool) -> None:
    assert key(ADMIN, sources=sources).comes_from(address) is counts


def test_only_the_hash_of_the_secret_is_stored() -> None:
    made, secret = make(KeyRequest(WRITE, ("a",), (ONE.upper(),), "billing", NOW + DAY), NOW, OPERATION_NAMES)
    assert made == ApiKey(made.key_id, hash_key(secret), WRITE, ("a",), (ONE,), NOW, "billing", NOW + DAY)
    assert secret.split("_", 2)[:2] == ["tk", made.key_id]


def test_only_keys_within_the_callers_scope_are_listed_and_revoked() -> None:
    async def run() -> None:
        store = MemoryStore()
        await store.open(1)
        trail: list[tuple[str, str]] = []
        changes = 0

        async def changed() -> None:
            nonlocal changes
            changes += 1

        async def record(action: str, key_id: str, details: object) -> None:
            trail.append((str(action), key_id))

        keys = ApiKeys(store, changed)
        for key_id, scope in {"all": (), "a": ("a",), "ab": ("a", "b"), "c": ("c",)}.items():
            first = await keys.add(ApiKey(key_id, key_id, ADMIN, scope, (), NOW), record)
            assert first == (key_id == "all")
        assert [one.key_id for one in await keys.seen_by(None)] == ["a", "ab", "all", "c"]
        assert [one.key_id for one in await keys.seen_by(key(ADMIN))] == ["a", "ab", "all", "c"]
        viewer = key(ADMIN, ("a", "b"))
        assert [one.key_id for one in await keys.seen_by(viewer)] == ["a", "ab"]
        limited = key(ADMIN, operations=("keys/*",), sources=("10.0.0.0/8",))
        assert [one.key_id for one in await keys.seen_by(limited)] == []
        within = ApiKey("w", "w", ADMIN, (), (), NOW, operations=("keys/*",), sources=("10.1.0.0/16",))
        await keys.add(within, record)
        assert [one.key_id for one in await keys.seen_by(limited)] == ["w"]
        await keys.revoke("w", limited, record)
        del trail[-2:]
        for beyond_reach in ("all", "c", "none", "w"):
            with pytest.raises(KeyNotFound):
                await keys.revoke(beyond_reach, viewer, record)
        await keys.revoke("a", viewer, record)
        assert {one.key_id for one in await api_keys(store)} == {"all", "ab", "c"}
        assert trail == [("key_created", name) for name in ("all", "a", "ab", "c")] + [("key_deleted", "a")]
        assert changes == 7

    asyncio.run(run())


def test_a_failed_audit_write_removes_the_new_key() -> None:
    async def run() -> None:
        store = MemoryStore()
        await store.open(1)

        async def record(action: object, key_id: str, details: object) -> None:
            raise StoreUnavailable("full")

        with pytest.raises(StoreUnavailable):
            await ApiKeys(store).add(key(ADMIN), record)
        assert await api_keys(store) == []

    asyncio.run(run())


def test_the_number_of_keys_is_limited() -> None:
    async def run() -> None:
        store = MemoryStore()
        await store.open(1)
        for number in range(KEYS_MAX):
            await put_api_key(store, ApiKey(str(number), str(number), READ))

        async def record(action: object, key_id: str, details: object) -> None: ...

        with pytest.raises(TooManyKeys, match="revoke"):
            await ApiKeys(store).add(key(READ), record)

    asyncio.run(run())


def test_the_first_admin_key_of_a_file_is_the_same_on_every_node() -> None:
    one, two = admin_key("s" * 32, NOW), admin_key("s" * 32, NOW)
    assert one == two
    assert (one.hash, one.role, one.namespaces, one.expires_at) == (hash_key("s" * 32), ADMIN, (), None)
    # The id is public.
    assert not one.hash.startswith(one.key_id)


class Meeting(MemoryStore):
    """A store to which two nodes write at the same time, after both have found no key. `repeats`: it repeats each write."""

    def __init__(self, nodes: int, *, repeats: bool) -> None:
        super().__init__()
        self._arrived, self._repeats = asyncio.Barrier(nodes), repeats

    async def put_record(self, kind: str, key: str, value: str, expected: int | None) -> bool:
        await self._arrived.wait()
        if self._repeats:
            await super().put_record(kind, key, value, expected)
        return await super().put_record(kind, key, value, expected)


@each("nodes, repeats", [(1, False), (1, True), (2, False), (2, True)])
async def test_nodes_that_start_together_record_the_admin_key_once(nodes: int, repeats: bool) -> None:
    store, recorded = Meeting(nodes, repeats=repeats), list[str]()
    await store.open(1)

    async def record(action: object, key_id: str, details: object) -> None:
        recorded.append(key_id)

    made = [admin_key("s" * 32, NOW + number) for number in range(nodes)]
    await asyncio.gather(*(ApiKeys(store).add(each_made, record) for each_made in made))
    assert recorded == [made[0].key_id]
    await store.close()


@each(
    "secret, why",
    [
        ("s" * 31, "32 to 256"),
        ("s" * 257, "32 to 256"),
        ("s" * 31 + " s", "without spaces"),
        ("é" * 32, "visible ASCII"),
    ],
)
def test_a_first_admin_key_that_could_be_guessed_or_is_no_header_is_refused(secret: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        admin_key(secret, NOW)


async def test_a_key_is_announced_before_its_end_but_not_for_most_of_its_life() -> None:
    store, now_us = MemoryStore(SystemClock()), NOW
    keyring = Keyring(store, published=True, expiry_notice_s=14 * 86_400.0, now_s=lambda: now_us / 1e6)
    for name, life_us in (("year", 365 * DAY), ("week", 7 * DAY), ("for good", None)):
        expires_at = None if life_us is None else NOW + life_us
        await put_api_key(store, ApiKey(name, name, READ, created_at=NOW, expires_at=expires_at))
    await keyring.refresh()
    counted = []
    for day in (0, 5, 6, 8, 350, 352):
        now_us = NOW + day * DAY
        counted.append(keyring.expiring)
    # The week's in its last quarter and from its end on, the year's in its last fortnight.
    assert counted == [0, 0, 1, 1, 1, 2]
    await store.close()


async def test_a_key_of_two_namespaces_that_are_deleted_at_once_is_revoked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each deletion has read it as limited to both. It must not have access to a new namespace of such a name."""
    store, recorded = MemoryStore(), list[str]()
    await store.open(1)
    both = ApiKey("k", hash_key("tk_k"), ADMIN, ("a", "b"))
    await put_api_key(store, both)

    async def record(action: AuditAction, subject: str, details: object) -> None:
        recorded.append(action.value)

    await ApiKeys(store).withdraw("a", record)
    outdated = [[both]]

    async def read(records: MemoryStore) -> list[ApiKey]:
        return outdated.pop() if outdated else await api_keys(records)

    monkeypatch.setattr(keys, "api_keys", read)
    await ApiKeys(store).withdraw("b", record)
    assert await api_keys(store) == []
    assert recorded == ["key_changed", "key_deleted"]
