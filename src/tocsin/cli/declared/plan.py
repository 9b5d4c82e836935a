"""What has to change on a server so that it has what a file declares, and how that is done."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import msgspec

from tocsin.cli.client import Client, ServerRefused
from tocsin.cli.command import Failure, Refused, Unreachable
from tocsin.cli.declared.document import Document, Entry
from tocsin.cli.declared.kind import Change, Differences, Fields, Key, Kind, Stored, differences
from tocsin.cli.declared.kinds import KINDS
from tocsin.model.errors import FieldError, InvalidInput

#: Questions about single entries in flight at once.
_ASKED_AT_ONCE = 16
#: Statuses that have nothing to do with the entry that a question was about: the key, and the server's load.
_NOT_OF_THE_ENTRY = frozenset({401, 403, 429, 503})
#: What the server answers if somebody else has changed the object since it was read.
_OVERTAKEN = frozenset(
    {
        "VERSION_CONFLICT",
        "NAMESPACE_EXISTS",
        "SCHEDULE_NOT_FOUND",
        "FLOW_NOT_FOUND",
        "CALENDAR_NOT_FOUND",
        "CREDENTIAL_NOT_FOUND",
        "MONITOR_NOT_FOUND",
    }
)


@dataclass
class Plan:
    """The changes in the order in which they are made, and how many objects are as the file declares them. `errors` are those
    of the file, `refused` is what stands in the way on the server: with any of them, nothing is changed."""

    changes: list[Change] = field(default_factory=list)
    unchanged: int = 0
    errors: list[FieldError] = field(default_factory=list)
    refused: list[FieldError] = field(default_factory=list)

    def count(self, action: str) -> int:
        """How many changes create, change or delete."""
        return sum(change.action == action for change in self.changes)


def plan(client: Client, document: Document, *, prune: bool, take_over: bool) -> Plan:
    """Reads what the server has, and compares. Raises ServerRefused, Unreachable."""
    made = Plan()
    entries = {kind: _entries(kind, document.entries[kind.plural], made.errors) for kind in KINDS}
    if made.errors:
        return made
    known = _by_key(KINDS[0].stored(client, ()))
    existing = [name for (name,), each in known.items() if each.held is None]
    deletes: list[Change] = []
    for kind in KINDS:
        wanted = entries[kind]
        named = {key[0] for key in wanted}
        stored = known if kind is KINDS[0] else _by_key(kind.stored(client, sorted(named & set(existing))))
        _compare(client, kind, wanted, stored, document.managed_by, take_over, made)
        if prune and document.managed_by is not None:
            gone = (each for each in kind.managed(client, existing, document.managed_by) if each.key not in wanted)
            deletes = [Change(kind, each.key, None, each, {}) for each in gone if each.held is None] + deletes
    pruned = {each.key for each in deletes if each.kind is KINDS[0]}
    _refuse_unknown_namespaces(entries, known.keys() - pruned, made.refused)
    made.changes += deletes
    return made


def _entries(kind: Kind, declared: Sequence[Entry], errors: list[FieldError]) -> dict[Key, tuple[Entry, Fields]]:
    """The entries by what they name, with their fields as the server would show them."""
    found: dict[Key, tuple[Entry, Fields]] = {}
    for entry in declared:
        key = kind.key_of(entry.sent)
        try:
            fields = kind.wanted(entry.sent)
        except InvalidInput as error:
            errors += [FieldError(f"{entry.path}.{bad.path}".rstrip("."), bad.reason) for bad in error.errors]
            continue
        if key in found:
            errors.append(
                FieldError(entry.path, f"declares {kind.title} {'/'.join(key)} once more; leave one of them out")
            )
        found[key] = entry, fields
    return found


def _by_key(stored: Iterable[Stored]) -> dict[Key, Stored]:
    return {each.key: each for each in stored}


def _compare(
    client: Client,
    kind: Kind,
    wanted: Mapping[Key, tuple[Entry, Fields]],
    stored: Mapping[Key, Stored],
    managed_by: str | None,
    take_over: bool,
    made: Plan,
) -> None:
    alike: list[Key] = []
    for key, (entry, fields) in wanted.items():
        present = stored.get(key)
        if present is not None and (refused := _refusal(present, managed_by, take_over)) is not None:
            made.refused.append(FieldError(entry.path, f"{kind.title} {'/'.join(key)} {refused}"))
            continue
        differing = {} if present is None else differences(kind, fields, present)
        if present is not None and managed_by not in (None, present.managed_by):
            differing["managedBy"] = (_text(present.managed_by), _text(managed_by))
        change = Change(kind, key, entry, present, differing)
        if (reason := kind.forbidden(change)) is not None:
            made.refused.append(FieldError(f"{entry.path}.{reason.path}", reason.reason))
        elif differing:
            made.changes.append(change)
        else:
            alike.append(key)
    with ThreadPoolExecutor(_ASKED_AT_ONCE, thread_name_prefix="tocsin-plan") as threads:
        answers = [threads.submit(kind.is_unchanged, client, *wanted[key], stored.get(key)) for key in alike]
        for key, answer in zip(alike, answers, strict=True):
            try:
                unchanged = answer.result()
            except ServerRefused as refusal:
                if refusal.status in _NOT_OF_THE_ENTRY:
                    raise
                made.refused += _refusals(wanted[key][0].path, refusal)
                continue
            if unchanged:
                made.unchanged += 1
            else:
                (entry, fields), present = wanted[key], stored.get(key)
                names = kind.unusual(fields) if present is None else kind.secrets(entry, fields)
                shown = {} if present is None else present.fields
                both: Differences = {name: (shown.get(name), fields[name]) for name in names}
                made.changes.append(Change(kind, key, entry, present, both))


def _refusals(path: str, refusal: ServerRefused) -> list[FieldError]:
    """What the server has against an entry."""
    if not refusal.errors:
        return [FieldError(path, str(refusal))]
    return [FieldError(f"{path}.{field}".rstrip("."), reason) for field, reason in refusal.errors]


def _refusal(present: Stored, managed_by: str | None, take_over: bool) -> str | None:
    """Why the file may not declare what is there."""
    if present.held is not None:
        return present.held
    if present.managed_by in (None, managed_by) or take_over:
        return None
    return (
        f"is managed by {present.managed_by!r}; change it in that file, or remove it there and give --take-over to manage it "
        "by this one"
    )


def _refuse_unknown_namespaces(
    entries: Mapping[Kind, Mapping[Key, tuple[Entry, Fields]]], known: Set[Key], refused: list[FieldError]
) -> None:
    declared = entries[KINDS[0]]
    for kind in KINDS[1:]:
        for key, (entry, _) in entries[kind].items():
            if key[:1] not in known and key[:1] not in declared:
                reason = f"there is no namespace {key[0]!r}, or it would be deleted; declare it, or name another"
                refused.append(FieldError(f"{entry.path}.namespace", reason))


def _text(value: str | None) -> msgspec.Raw | None:
    return None if value is None else msgspec.Raw(msgspec.json.encode(value))


@dataclass
class Outcome:
    """What has become of a plan: the changes that were made, and why others were not. `stopped_by`: the server was no longer
    reached, so that the rest was not tried."""

    done: list[Change] = field(default_factory=list)
    refused: list[tuple[Change, str]] = field(default_factory=list)
    stopped_by: Failure | None = None


def carry_out(
    client: Client, made: Plan, managed_by: str | None, advance: Callable[[int], None] = lambda changes: None
) -> Outcome:
    """Makes the changes, each on condition that its object is as it was read. One that is refused keeps no other from being
    made."""
    outcome = Outcome()

    def make(change: Change) -> None:
        if change.entry is not None:
            change.kind.put(client, change, managed_by)
        elif change.stored is not None:
            change.kind.delete(client, change.stored)

    for together in _together(made.changes):
        with ThreadPoolExecutor(together[0].kind.in_flight, thread_name_prefix="tocsin-apply") as threads:
            begun = [(change, threads.submit(make, change)) for change in together]
            for change, result in begun:
                try:
                    result.result()
                    outcome.done.append(change)
                except Refused as refusal:
                    outcome.refused.append((change, _reason(refusal)))
                except Unreachable as failure:
                    outcome.stopped_by = failure
                    for _, waiting in begun:
                        waiting.cancel()
                    return outcome
                advance(1)
    return outcome


def _together(changes: Sequence[Change]) -> Iterator[list[Change]]:
    """The changes in parts of one kind and direction, which may be made in any order."""
    part: list[Change] = []
    for change in changes:
        same = part and (part[0].kind, part[0].entry is None) == (change.kind, change.entry is None)
        if part and not same:
            yield part
            part = []
        part.append(change)
    if part:
        yield part


def _reason(refusal: Refused) -> str:
    if isinstance(refusal, ServerRefused) and refusal.code in _OVERTAKEN:
        return f"{refusal}\n  Somebody else has changed it since it was read. That stands; run apply again, for a new plan."
    return str(refusal)
