"""What a kind of declared objects is: how its objects are read from a server, compared and written."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import msgspec

from tocsin.cli.client import Client
from tocsin.cli.declared.document import Entry
from tocsin.model.errors import FieldError
from tocsin.model.redaction import REDACTED

#: The fields of an object, by their names in the API, each as JSON: a payload keeps every digit.
Fields = dict[str, msgspec.Raw]
#: What names an object within its kind: a namespace's name, or a namespace and an id.
Key = tuple[str, ...]
#: Fields that differ: the present value and the wanted one, None where there is none.
Differences = dict[str, tuple[msgspec.Raw | None, msgspec.Raw | None]]

PAGE_ROWS = 1_000
#: Fields that the server keeps as the very text that was sent; and fields that it shows as they are.
TEXTS = ("payload", "body")
_FREE_FORM = frozenset({*TEXTS, "description"})
#: Fields that name other objects.
NAMED = {"only", "skip", "credential"}
YES, NO = msgspec.Raw(b"true"), msgspec.Raw(b"false")
_encode = msgspec.json.encode


class Stored(NamedTuple):
    """An object of the server: what a file could declare of it, who manages it, and the version that a change expects."""

    key: Key
    fields: Fields
    managed_by: str | None
    version: int
    #: Why it can be neither changed nor deleted now, if that is so.
    held: str | None = None
    #: What it has without stating it: an entry may state it.
    implied: Mapping[str, msgspec.Raw] = MappingProxyType({})


class Change(NamedTuple):
    """A difference between a file and a server. `stored` is None for what is to be created, `entry` for what is to be
    deleted. `fields` are those that differ, each with the present value and the wanted one."""

    kind: Kind
    key: Key
    entry: Entry | None
    stored: Stored | None
    fields: Differences

    @property
    def action(self) -> str:
        """create, change or delete."""
        return "delete" if self.entry is None else "create" if self.stored is None else "change"

    @property
    def title(self) -> str:
        """What changes, such as `schedule billing/nightly-report`."""
        return f"{self.kind.title} {'/'.join(self.key)}"

    @property
    def pauses(self) -> bool | None:
        """Whether it is to be paused or resumed; None if it is neither."""
        before, after = self.fields.get("paused", (None, None))
        if after is None or (before or NO) == after:
            return None
        return after == YES

    @property
    def defines(self) -> bool:
        """Whether more changes than that it is paused."""
        return self.stored is None or bool(self.fields.keys() - {"paused"})

    @property
    def expected_version(self) -> int:
        """The version that the object must have."""
        return 0 if self.stored is None else self.stored.version


class Page(msgspec.Struct):
    """A page of any of the lists."""

    namespaces: list[Fields] = []
    flows: list[Fields] = []
    calendars: list[Fields] = []
    credentials: list[Fields] = []
    schedules: list[Fields] = []
    monitors: list[Fields] = []
    cursor: str | None = msgspec.field(default=None, name="nextCursor")


class Kind(ABC):
    """A kind of objects."""

    #: The objects' name in a sentence, and that of their list, in a file and in the API.
    title: ClassVar[str]
    plural: ClassVar[str]
    #: The fields that name an object, in the order of its key.
    key_fields: ClassVar[tuple[str, ...]]
    #: Fields that stay as they are if the file leaves them out, because their default is the server's, or because operators
    #: change them.
    kept: ClassVar[frozenset[str]] = frozenset({"paused"})
    #: Creates and deletes of this kind in flight at once.
    in_flight: ClassVar[int] = 1
    struct: ClassVar[type[msgspec.Struct]]

    def key_of(self, sent: Any) -> Key:
        """What names the entry's object."""
        return tuple(getattr(sent, name) for name in self.key_fields)

    @abstractmethod
    def wanted(self, sent: Any) -> Fields:
        """The fields as the server would show them, its defaults included. Raises InvalidInput with all bad fields."""

    def stored(self, client: Client, namespaces: Collection[str]) -> Iterable[Stored]:
        """The objects of these namespaces."""
        for namespace in namespaces:
            yield from self._listed(client, {"namespace": namespace})

    def managed(self, client: Client, namespaces: Collection[str], managed_by: str) -> Iterable[Stored]:
        """Those of these namespaces that carry the name, as far as their deletion needs it."""
        return (each for each in self.stored(client, namespaces) if each.managed_by == managed_by)

    def _listed(self, client: Client, scope: Mapping[str, str]) -> Iterator[Stored]:
        for page in pages(client, f"/{self.plural}/list", {**scope, "limit": PAGE_ROWS}):
            yield from map(self._stored, getattr(page, self.plural))

    def _stored(self, shown: Fields) -> Stored:
        """An object as a list shows it."""
        return stored_object(tuple(decoded(shown[name]) for name in self.key_fields), self._picked(shown), shown)

    def is_unchanged(self, client: Client, entry: Entry, wanted: Fields, stored: Stored | None) -> bool:
        """Whether nothing has to be written for an entry that is not in the server's lists, or as these show it. They have
        neither secrets nor what has ended, so the server may have to be asked."""
        return stored is not None

    def secrets(self, entry: Entry, wanted: Fields) -> list[str]:
        """The entry's fields with secrets, which responses don't show."""
        mark = REDACTED.encode()
        names = (name for name in entry.fields if name in wanted and name not in _FREE_FORM)
        return [name for name in names if mark in bytes(wanted[name])]

    def forbidden(self, change: Change) -> FieldError | None:
        """Why the change can't be made."""
        return None

    def put(self, client: Client, change: Change, managed_by: str | None) -> None:
        """Creates or changes the object, if it still has its version. Raises ServerRefused."""
        assert change.entry is not None
        name = dict(zip(self.key_fields, change.key, strict=True))
        if change.defines:
            fields = {field: value for field, value in change.entry.fields.items() if field != "paused"}
            marked = {} if managed_by is None else {"managedBy": managed_by}
            request = fields | name | marked | {"expectedVersion": change.expected_version}
            client.post(f"/{self.plural}/put", request)
        if change.pauses is not None:
            client.post(f"/{self.plural}/{'pause' if change.pauses else 'resume'}", name)

    def delete(self, client: Client, stored: Stored) -> None:
        """Deletes the object, if it still has its version. Raises ServerRefused."""
        name = dict(zip(self.key_fields, stored.key, strict=True))
        client.post(f"/{self.plural}/delete", {**name, "expectedVersion": stored.version})

    def pulled(self, stored: Stored) -> Fields:
        """The entry that declares the object: without what is as by default, and without a number of shards, since servers
        differ in how many they have."""
        shown = self.unusual(stored.fields) | dict(stored.implied)
        shown.pop("numShards", None)
        names = self.struct.__struct_encode_fields__
        return {name: encoded(part) for name, part in zip(self.key_fields, stored.key, strict=True)} | {
            name: shown[name] for name in names if name in shown
        }

    def unusual(self, fields: Fields) -> Fields:
        """Those that are not as by default."""
        return {name: value for name, value in fields.items() if value != self._usual.get(name)}

    @property
    @abstractmethod
    def _usual(self) -> Fields:
        """The fields that an entry may leave out, with their defaults."""

    def _picked(self, shown: Mapping[str, msgspec.Raw]) -> Fields:
        """Of an object as the server shows it, what a file declares."""
        names = self.struct.__struct_encode_fields__
        return {name: shown[name] for name in names if name in shown and name not in self.key_fields}


def differences(kind: Kind, wanted: Fields, stored: Stored) -> Differences:
    """The fields that differ, with the stored value and the wanted one."""
    present = stored.fields
    names = [*wanted, *(name for name in present if name not in wanted and name not in kind.kept)]
    found = {name: (present.get(name, stored.implied.get(name)), wanted.get(name)) for name in names}
    return {name: both for name, both in found.items() if not _is_same(*both)}


def _is_same(one: msgspec.Raw | None, other: msgspec.Raw | None) -> bool:
    if one is None or other is None:
        return one is other
    return bytes(one) == bytes(other) or _ordered(one) == _ordered(other)


def _ordered(value: msgspec.Raw) -> str:
    """The same text for all JSON that means the same."""
    return json.dumps(json.loads(bytes(value)), sort_keys=True)


def pages(client: Client, path: str, body: Mapping[str, Any]) -> Iterator[Page]:
    while True:
        page: Page = client.post_for(Page, path, body)
        yield page
        if not page.cursor:
            return
        body = {**body, "cursor": page.cursor}


def stored_object(key: Key, fields: Fields, shown: Fields, held: str | None = None) -> Stored:
    mark = shown.get("managedBy")
    return Stored(key, fields, None if mark is None else decoded(mark), int(decoded(shown["version"])), held)


def why_held(shown: Fields) -> str | None:
    if "deleting" in shown:
        return f"is being deleted by job {decoded(shown['deleting'])}; wait until that has ended"
    if "damaged" in shown:
        return "can't be read, because its stored record is damaged; restore it from a backup"
    return None


def members(answer: msgspec.Struct) -> Fields:
    return members_of(_encode(answer))


def members_of(raw: Any) -> Fields:
    return {} if raw is None else msgspec.json.decode(raw, type=Fields)


def encoded(value: Any) -> msgspec.Raw:
    return msgspec.Raw(_encode(value))


def decoded(raw: msgspec.Raw) -> Any:
    return msgspec.json.decode(raw)
