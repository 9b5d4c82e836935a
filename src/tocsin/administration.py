"""Namespaces, flows, calendars, credentials, paused destinations, API keys, secrets, sign-ins and the audit trail as records:
how each is encoded, and under which key. (Those of statistics and outages: `tocsin.statistics.records`.)

A record that can't be decoded stops no reader of the others: it is left out and reported as `RecordDamaged`. Only a namespace
is returned all the same, as a DamagedNamespace, because its timers must be held. All functions raise StoreError.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from itertools import count
from typing import Generic, NamedTuple, TypeVar

import msgspec

from tocsin.model.access import ApiKey, SignIn
from tocsin.model.audit import AuditEntries, AuditEntry, AuditQuery
from tocsin.model.calendar import Calendar
from tocsin.model.credential import Credential, SigningKey
from tocsin.model.destination import DestinationPause
from tocsin.model.errors import StoreCorrupted, StoreUnavailable
from tocsin.model.flow import Flow
from tocsin.model.namespace import Namespace, damaged_namespace
from tocsin.model.timer import UNUSABLE
from tocsin.ports.observer import Event, Observer, RecordDamaged
from tocsin.ports.records import DELETED_AT_ONCE_MAX, RECORD_KEY_END, Record, Records

T = TypeVar("T")
S = TypeVar("S", Flow, Calendar, Credential)

NAMESPACES, API_KEYS, SECRETS, SIGN_INS, AUDIT = "namespace", "api_key", "secret", "sign_in", "audit"
KEY_USES, TENANT_LABELS = "key_use", "tenant_label"
FLOWS = "flow"
CALENDARS = "calendar"
CREDENTIALS = "credential"
SIGNING_KEYS = "signing_key"
DESTINATION_PAUSES = "destination_pause"
#: The keys under which secrets of the store are encrypted, by their ids.
SEAL_KEYS = "seal_key"
#: Records that one read returns.
_PAGE = 500
#: The same of calendars and credentials, which may have 150 KB each.
_CALENDARS_PAGE = 10
#: Attempts to replace a record that others may change at the same time.
_PUTS_MAX = 5
#: Entries of the audit trail that one search reads: failed sign-ins may have filled it with what a filter leaves out.
_AUDIT_SCAN_MAX = 20_000

_encoder = msgspec.json.Encoder()
_namespace_decoder = msgspec.json.Decoder(Namespace)
_signing_key_decoder = msgspec.json.Decoder(SigningKey)
_pause_decoder = msgspec.json.Decoder(DestinationPause)
_key_decoder = msgspec.json.Decoder(ApiKey)
_sign_in_decoder = msgspec.json.Decoder(SignIn)
_label_decoder = msgspec.json.Decoder(str)
_audit_decoder = msgspec.json.Decoder(AuditEntry)


def unobserved(event: Event) -> None:
    """Ignores the event."""


def encoded(value: object) -> str:
    """The value as a record has it."""
    return _encoder.encode(value).decode()


def decoded(decoder: msgspec.json.Decoder[T], kind: str, found: Iterable[Record], observe: Observer) -> list[T]:
    """The values of the records that can be decoded."""
    values = []
    for record in found:
        try:
            values.append(decoder.decode(record.value))
        except UNUSABLE as error:
            observe(RecordDamaged(kind, record.key, str(error) or type(error).__name__))
    return values


async def every(
    records: Records, kind: str, after: str = "", before: str = RECORD_KEY_END, page_max: int | None = None
) -> AsyncIterator[Record]:
    """The records with after < key < before, in pages of `page_max`."""
    if page_max is None:
        page_max = _CALENDARS_PAGE if kind in (CALENDARS, CREDENTIALS) else _PAGE
    while True:
        page = await records.records(kind, after, before, limit=page_max)
        for record in page:
            yield record
        if len(page) < page_max:
            return
        after = page[-1].key


async def every_value(records: Records, kind: str, decoder: msgspec.json.Decoder[T], observe: Observer) -> list[T]:
    """The values of all records of the kind that can be decoded, by key."""
    return decoded(decoder, kind, [record async for record in every(records, kind)], observe)


async def delete_all(records: Records, kind: str, keys: Sequence[str]) -> None:
    """Removes the records, as many at once as one call may name."""
    for first in range(0, len(keys), DELETED_AT_ONCE_MAX):
        await records.delete_records(kind, keys[first : first + DELETED_AT_ONCE_MAX])


async def delete_range(records: Records, kind: str, after: str = "", before: str = RECORD_KEY_END) -> None:
    """Removes the records with after < key < before."""
    await delete_all(records, kind, [each.key async for each in every(records, kind, after, before)])


def key_below(scope: str, name: str) -> str:
    """The key of what has this name in a scope, such as a namespace, whose name has no slash."""
    return f"{scope}/{name}"


def below(scope: str) -> tuple[str, str]:
    """What the keys of all that is in a scope are between."""
    # "0" follows "/".
    return f"{scope}/", f"{scope}0"


# -- namespaces


async def namespaces(records: Records) -> list[Namespace]:
    """All namespaces, by name."""
    return [_namespace(record) async for record in every(records, NAMESPACES)]


def _namespace(record: Record) -> Namespace:
    try:
        namespace = _namespace_decoder.decode(record.value)
    except UNUSABLE as error:
        return damaged_namespace(record.key, str(error) or type(error).__name__)
    if namespace.name != record.key or namespace.num_shards < 1:
        return damaged_namespace(record.key, "the record is not this namespace's")
    return msgspec.structs.replace(namespace, version=record.version)


async def put_namespace(records: Records, namespace: Namespace, *, create: bool) -> bool:
    """With `create`, inserts the namespace, whose version is 1; False when it already exists. Otherwise replaces the stored
    one if its version is one less; False when it is not, because another change came first."""
    expected = None if create else namespace.version - 1
    return await records.put_record(NAMESPACES, namespace.name, encoded(namespace), expected)


# -- keys of encrypted secrets


class SealKey(msgspec.Struct, frozen=True, omit_defaults=True):
    """A key that the store needs, by its id, since when; and of one that another has replaced, how many rows that wait still
    needed it at `checked_at`, and how many service calls and tenants at `calls_checked_at`. Instants are microseconds."""

    id: str
    since: int = 0
    waiting: int | None = None
    checked_at: int | None = None
    calls_waiting: int | None = None
    calls_checked_at: int | None = None


_seal_key_decoder = msgspec.json.Decoder(SealKey)


async def seal_keys(records: Records) -> list[SealKey]:
    """The keys under which secrets may be encrypted."""
    found = [record async for record in every(records, SEAL_KEYS)]
    # One whose record is damaged is needed all the same.
    known = {key.id: key for key in decoded(_seal_key_decoder, SEAL_KEYS, found, unobserved)}
    return [known.get(record.key) or SealKey(record.key) for record in found]


async def note_seal_key(records: Records, key: SealKey) -> None:
    """Notes, before it encrypts anything, that the key is needed from now on."""
    await records.put_record(SEAL_KEYS, key.id, encoded(key), None)


async def note_seal_use(records: Records, name: str, **found: int) -> None:
    """Notes what a pass has found of a former key, as fields of SealKey: unless it has been forgotten, or another pass writes
    at the same time; the next one notes it then."""
    stored = await records.record(SEAL_KEYS, name)
    if stored is not None:
        (key,) = decoded(_seal_key_decoder, SEAL_KEYS, [stored], unobserved) or [SealKey(name)]
        await records.put_record(SEAL_KEYS, name, encoded(msgspec.structs.replace(key, **found)), stored.version)


# -- what namespaces have many of: rules of flows, calendars and credentials, each with a name and a version


class ScopedKind(NamedTuple, Generic[S]):
    """The records of one kind of them, each under its namespace and name, so that those of a namespace are a range."""

    name: str
    decoder: msgspec.json.Decoder[S]

    def read(self, record: Record, observe: Observer) -> S | None:
        """What a record has; None if it can't be decoded, or is not what its key names."""
        for value in decoded(self.decoder, self.name, [record], observe):
            if key_below(value.namespace, name_of(value)) == record.key:
                return msgspec.structs.replace(value, version=record.version)
        return None

    async def put(self, records: Records, value: S) -> bool:
        """With a version of 1, inserts it; False when there is one of its name. Otherwise replaces the stored one if its
        version is one less; False when it is not, because another change came first."""
        key, expected = key_below(value.namespace, name_of(value)), value.version - 1 or None
        return await records.put_record(self.name, key, encoded(value), expected)

    async def take(self, records: Records, namespace: str, name: str, version: int) -> bool:
        """Gives the one of that name its next version, so that nobody who has read it before changes it; False, and nothing
        is written, if it has not this version."""
        key = key_below(namespace, name)
        stored = await records.record(self.name, key)
        if stored is None or stored.version != version:
            return False
        return await records.put_record(self.name, key, stored.value, version)

    async def delete(self, records: Records, namespace: str, name: str) -> bool:
        """Removes the one of that name; False when there was none."""
        return await records.delete_records(self.name, [key_below(namespace, name)])


FLOW_RECORDS = ScopedKind(FLOWS, msgspec.json.Decoder(Flow))
CALENDAR_RECORDS = ScopedKind(CALENDARS, msgspec.json.Decoder(Calendar))
CREDENTIAL_RECORDS = ScopedKind(CREDENTIALS, msgspec.json.Decoder(Credential))


def name_of(value: Flow | Calendar | Credential) -> str:
    """The name of one of them in its namespace."""
    return value.match if isinstance(value, Flow) else value.name


async def delete_scoped(records: Records, namespace: str) -> None:
    """Removes all of them that a namespace has."""
    for kind in (FLOWS, CALENDARS, CREDENTIALS):
        await delete_range(records, kind, *below(namespace))


async def flows(records: Records, observe: Observer = unobserved) -> list[Flow]:
    """All rules of all namespaces, by namespace and match. One that can't be decoded holds its flow: without limits, it could
    begin too much."""
    found = []
    async for record in every(records, FLOWS):
        namespace, _, match = record.key.partition("/")
        held = Flow(namespace, match, created_at=0, updated_at=0, paused=True, version=record.version)
        found.append(FLOW_RECORDS.read(record, observe) or held)
    return found


async def calendars(
    records: Records,
    known: Mapping[tuple[str, int], Calendar],
    bounded: Callable[[Awaitable[list[Record]]], Awaitable[list[Record]]],
    observe: Observer = unobserved,
) -> dict[tuple[str, int], Calendar]:
    """All calendars, by key and the hash of what is stored, which spares decoding those that are `known`; in the order of
    namespaces and names. One that can't be decoded is left out: what names it waits, as if it were missing. `bounded` limits
    the duration of a read."""
    found: dict[tuple[str, int], Calendar] = {}
    after = ""
    while True:
        page = await bounded(records.records(CALENDARS, after, RECORD_KEY_END, limit=_CALENDARS_PAGE))
        for record in page:
            place = (record.key, hash((record.value, record.version)))
            calendar = known.get(place) or CALENDAR_RECORDS.read(record, observe)
            if calendar is not None:
                found[place] = calendar
            # To decode one takes milliseconds.
            await asyncio.sleep(0)
        if len(page) < _CALENDARS_PAGE:
            return found
        after = page[-1].key


async def credentials(records: Records, observe: Observer = unobserved) -> list[Credential]:
    """All credentials of all namespaces, by namespace and name. One that can't be decoded is left out: what names it waits,
    as if it were missing."""
    read = [CREDENTIAL_RECORDS.read(record, observe) async for record in every(records, CREDENTIALS)]
    return [credential for credential in read if credential is not None]


# -- keys that sign JWTs, by their numbers


async def signing_keys(records: Records, observe: Observer = unobserved) -> list[SigningKey]:
    """The keys, by number. One that can't be decoded is left out."""
    return await every_value(records, SIGNING_KEYS, _signing_key_decoder, observe)


async def put_signing_key(records: Records, key: SigningKey) -> bool:
    """Stores the key; False if its number is taken."""
    return await records.put_record(SIGNING_KEYS, f"{key.number:08}", encoded(key), None)


async def delete_signing_key(records: Records, number: int) -> bool:
    """Removes the key of that number; False when there was none."""
    return await records.delete_records(SIGNING_KEYS, [f"{number:08}"])


# -- paused destinations


async def destination_pauses(records: Records, observe: Observer = unobserved) -> list[DestinationPause]:
    """The destinations that are paused, by name. One whose record can't be decoded is paused, too."""
    found = []
    async for record in every(records, DESTINATION_PAUSES):
        pause = next(iter(decoded(_pause_decoder, DESTINATION_PAUSES, [record], observe)), None)
        found.append(DestinationPause(record.key, 0 if pause is None else pause.paused_at))
    return found


async def put_destination_pause(records: Records, pause: DestinationPause) -> bool:
    """Pauses the destination; False if it is paused."""
    return await records.put_record(DESTINATION_PAUSES, pause.name, encoded(pause), None)


async def delete_destination_pause(records: Records, name: str) -> bool:
    """Ends the pause; False if there was none."""
    return await records.delete_records(DESTINATION_PAUSES, [name])


# -- API keys


async def api_keys(records: Records, observe: Observer = unobserved) -> list[ApiKey]:
    """All API keys, by key_id."""
    return await every_value(records, API_KEYS, _key_decoder, observe)


async def put_api_key(records: Records, key: ApiKey) -> bool:
    """Inserts the key, unless there is one with its `key_id`: ids are random, or follow from the key's secret. Whether it is
    this one that is stored."""
    value = encoded(key)
    if await records.put_record(API_KEYS, key.key_id, value, None):
        return True
    # A database may have repeated the write by itself.
    stored = await records.record(API_KEYS, key.key_id)
    return stored is not None and stored.value == value


async def limit_api_key(records: Records, key_id: str, namespace: str) -> bool:
    """Takes the namespace from a key that is limited to it and others; False if the key is gone, or limited to others alone,
    or to this one alone: without a limit it could access everything."""
    for _ in range(_PUTS_MAX):
        stored = await records.record(API_KEYS, key_id)
        found = [] if stored is None else decoded(_key_decoder, API_KEYS, [stored], unobserved)
        if stored is None or not found or namespace not in found[0].namespaces:
            return False
        left = tuple(each for each in found[0].namespaces if each != namespace)
        if not left and not found[0].tenants:
            return False
        limited = msgspec.structs.replace(found[0], namespaces=left)
        if await records.put_record(API_KEYS, key_id, encoded(limited), stored.version):
            return True
    raise StoreUnavailable("others change this key all the time")


async def delete_api_key(records: Records, key_id: str) -> bool:
    """Removes the key, then its last use and its sign-ins, which are invalid without it; False when there was no such key."""
    removed = await records.delete_records(API_KEYS, [key_id])
    await records.delete_records(KEY_USES, [key_id])
    await delete_range(records, SIGN_INS, *below(key_id))
    return removed


async def key_uses(records: Records) -> dict[str, int]:
    """When API keys were used last, in microseconds, by their ids. Damaged records are left out."""
    found = [record async for record in every(records, KEY_USES)]
    return {record.key: int(record.value) for record in found if record.value.isdecimal()}


async def put_key_use(records: Records, key_id: str, at: int, interval_us: int) -> int:
    """Stores that the key was used at `at`, unless a use within the interval before it, or a later one, is stored. Returns
    the stored use."""
    stored = await records.record(KEY_USES, key_id)
    if stored is not None and stored.value.isdecimal() and at - int(stored.value) < interval_us:
        return int(stored.value)
    # If another write came first, that was another node's, of a use at nearly the same time.
    await records.put_record(KEY_USES, key_id, str(at), None if stored is None else stored.version)
    return at


# -- secrets


async def shared_secret(records: Records, name: str, fresh: str) -> str:
    """The secret of that name that all nodes of this store share: the stored one, or else `fresh`, which is then stored.
    Concurrent callers all get the same one."""
    secret = await stored_secret(records, name)
    if secret is None:
        await records.put_record(SECRETS, name, fresh, None)
        secret = await stored_secret(records, name)
    if secret is None:
        raise StoreUnavailable(f"the secret {name} was removed meanwhile")
    return secret


async def stored_secret(records: Records, name: str) -> str | None:
    """The secret of that name that all nodes of this store share; None if there is none yet."""
    record = await records.record(SECRETS, name)
    if record is not None and not record.value:
        raise StoreCorrupted(f"the secret {name} is damaged; restore it from a backup")
    return None if record is None else record.value


# -- sign-ins, each under its API key, so that those of one key are a range


def _sign_ins(found: Iterable[Record], observe: Observer) -> list[SignIn]:
    return [
        msgspec.structs.replace(each, version=record.version)
        for record in found
        for each in decoded(_sign_in_decoder, SIGN_INS, [record], observe)
    ]


async def sign_in(records: Records, key_id: str, token_hash: str, observe: Observer = unobserved) -> SignIn | None:
    """The stored sign-in, also an expired one."""
    record = await records.record(SIGN_INS, key_below(key_id, token_hash))
    found = [] if record is None else _sign_ins([record], observe)
    return found[0] if found else None


async def sign_ins_of(records: Records, key_id: str, observe: Observer = unobserved) -> dict[str, SignIn]:
    """The stored sign-ins of an API key, also expired ones, by the hash of their token."""
    found = [record async for record in every(records, SIGN_INS, *below(key_id))]
    return {each.token_hash: each for each in _sign_ins(found, observe)}


async def add_sign_in(records: Records, fresh: SignIn, now_us: int, keep: int, observe: Observer = unobserved) -> None:
    """Stores a sign-in. Of the same key's others, removes those that have expired, and all but the `keep` - 1 last seen."""
    found = await sign_ins_of(records, fresh.key_id, observe)
    newest = sorted(found.values(), key=lambda each: each.seen_at, reverse=True)
    gone = [each for place, each in enumerate(newest) if place >= keep - 1 or each.expires_at <= now_us]
    await records.put_record(SIGN_INS, key_below(fresh.key_id, fresh.token_hash), encoded(fresh), None)
    await delete_all(records, SIGN_INS, [key_below(each.key_id, each.token_hash) for each in gone])


async def touch_sign_in(records: Records, seen: SignIn) -> bool:
    """Stores the last use of a sign-in; False if it has ended, or another node has stored a use."""
    return await records.put_record(SIGN_INS, key_below(seen.key_id, seen.token_hash), encoded(seen), seen.version)


async def delete_sign_in(records: Records, key_id: str, token_hash: str) -> bool:
    """Removes the sign-in. False when there was none."""
    return await records.delete_records(SIGN_INS, [key_below(key_id, token_hash)])


async def purge_sign_ins(records: Records, now_us: int, after: str, limit: int) -> str:
    """Removes the expired ones among the `limit` sign-ins behind the key `after`; returns where to go on, "" at the end."""
    page = await records.records(SIGN_INS, after, limit=limit)
    gone = [each for each in _sign_ins(page, unobserved) if each.expires_at <= now_us]
    await delete_all(records, SIGN_INS, [key_below(each.key_id, each.token_hash) for each in gone])
    return page[-1].key if len(page) == limit else ""


# -- labels of tenants


async def tenant_labels(records: Records, limit: int) -> dict[str, str]:
    """The labels by tenant, of the first `limit` labelled ones. A damaged record is left out."""
    found = await records.records(TENANT_LABELS, limit=limit)
    labels = {record.key: decoded(_label_decoder, TENANT_LABELS, [record], unobserved) for record in found}
    return {tenant: texts[0] for tenant, texts in labels.items() if texts}


async def put_tenant_label(records: Records, tenant_id: str, label: str) -> None:
    """Stores the label; an empty one removes it. Of concurrent writers the last one wins."""
    if not label:
        await records.delete_records(TENANT_LABELS, [tenant_id])
        return
    for _ in range(_PUTS_MAX):
        stored = await records.record(TENANT_LABELS, tenant_id)
        if await records.put_record(
            TENANT_LABELS, tenant_id, encoded(label), None if stored is None else stored.version
        ):
            return
    raise StoreUnavailable("others change this tenant's label all the time")


# -- the audit trail, in the order of instants


def _audit_key(at: int, entry_id: bytes = b"") -> str:
    """Without an id: sorts before the entries of that instant. No entry is older than 1970."""
    return f"{max(at, 0):016x}{entry_id.hex()}"


async def put_audit(records: Records, entry: AuditEntry) -> None:
    """Stores an entry. Storing the same entry again changes nothing."""
    await records.put_record(AUDIT, _audit_key(*entry.place), encoded(entry), None)


async def audit(records: Records, query: AuditQuery, observe: Observer = unobserved) -> AuditEntries:
    """At most `limit` entries by (at, entry_id), descending. Filters what it reads, a bounded part of the trail at a time."""
    after = "" if query.after is None else _audit_key(query.after)
    before = RECORD_KEY_END if query.before is None else _audit_key(query.before)
    if query.cursor is not None:
        before = min(before, _audit_key(*query.cursor))
    page_max = _PAGE if query.is_filter else min(query.limit, _PAGE)
    found: list[AuditEntry] = []
    last: AuditEntry | None = None
    for read in count(1):
        page = await records.records(AUDIT, after, before, limit=page_max, descending=True)
        for entry in decoded(_audit_decoder, AUDIT, page, observe):
            last = entry
            if query.matches(entry):
                found.append(entry)
                if len(found) == query.limit:
                    return AuditEntries(found, entry.place)
        if len(page) < page_max:
            break
        if last is not None and read * page_max >= _AUDIT_SCAN_MAX:
            return AuditEntries(found, last.place)
        before = page[-1].key
    return AuditEntries(found, None)


async def purge_audit(records: Records, before_us: int, after: str, limit: int) -> list[str]:
    """Removes up to `limit` entries with at < before_us behind the key `after`, oldest first; returns their keys. To go on
    behind them spares databases in which deleted rows stay for a while, such as Cassandra, from reading these again."""
    old = [record.key for record in await records.records(AUDIT, after, _audit_key(before_us), limit=limit)]
    await delete_all(records, AUDIT, old)
    return old
