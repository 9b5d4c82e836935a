"""The file that declares what is on a server: its structs, from which its JSON Schema is made, and how it is read and
written. It has the fields of the API's requests."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from tocsin.cli.command import WrongUsage
from tocsin.http_client.target import InvalidUrl, parse_url
from tocsin.model.credential_type import SECRET_OF
from tocsin.model.errors import FieldError, InvalidInput, TocsinError
from tocsin.model.namespace import DEFAULT_NAMESPACE
from tocsin.model.subjects import SubjectTargets
from tocsin.model.validation import InputLimits, InputRules
from tocsin.web.http import constraints as limits
from tocsin.web.http.administration import NamespaceFields
from tocsin.web.http.calendars import CalendarFields, CalendarName
from tocsin.web.http.constraints import bad_fields
from tocsin.web.http.credentials import CredentialFields, CredentialName
from tocsin.web.http.declared_wire import ManagedBy
from tocsin.web.http.flows import FlowFields, FlowMatch
from tocsin.web.http.monitor_wire import MonitorFields, MonitorId
from tocsin.web.http.reading import JsonReader
from tocsin.web.http.schedule_wire import DefinitionFields, ScheduleId
from tocsin.web.http.wire import CallbackUrl, NamespaceName, RequestStruct, about

Json = dict[str, Any]

_OF_ENTRY = Annotated[NamespaceName, about("Its namespace. Default: the file's `namespace`.")]
_PAUSED = about("Whether it is paused. Without this field it stays as it is.")


class DeclaredNamespace(NamespaceFields, kw_only=True):
    """A namespace. What is absent has its default, but for `numShards`, `retention` and `paused`, which stay as they are.
    Signing secrets are no part of a file: `tocsin namespaces rotate-secret` creates them."""

    name: NamespaceName
    paused: Annotated[bool | UnsetType, _PAUSED] = UNSET


class DeclaredFlow(FlowFields, kw_only=True):
    """A rule of flows; it has at least one of `perKey`, `total`, `callbackBatch` and a true `closeOnRetryAfter`."""

    namespace: _OF_ENTRY | UnsetType = UNSET
    match: FlowMatch
    paused: Annotated[bool | UnsetType, _PAUSED] = UNSET


class DeclaredCalendar(CalendarFields, kw_only=True):
    """A calendar; it has at least one of `dates`, `ranges` and `weekdays`. What is absent has its default."""

    namespace: _OF_ENTRY | UnsetType = UNSET
    name: CalendarName


class DeclaredCredential(CredentialFields, kw_only=True):
    """A credential, without its secret, which a repository is no place for. What is absent has its default."""

    namespace: _OF_ENTRY | UnsetType = UNSET
    name: CredentialName
    secret_from: Annotated[
        str | UnsetType,
        about(
            "The environment variable that has its secret when the file is applied: the password, token, client secret "
            "or private key. Where it is not set, the stored secret stays.",
            "BILLING_TOKEN",
        ),
        limits.Constraint({"minLength": 1, "maxLength": 200, "pattern": "^[A-Za-z_][A-Za-z0-9_]*$"}),
    ] = UNSET


class DeclaredSchedule(DefinitionFields[UnsetType], kw_only=True):
    """A schedule; it has exactly one of `cron` and `every`, and at most one of `payload` and `body`. What is absent has its
    default."""

    namespace: _OF_ENTRY | UnsetType = UNSET
    id: Annotated[ScheduleId, limits.NEW_ID]
    callback_url: CallbackUrl
    paused: Annotated[bool | UnsetType, _PAUSED] = UNSET


class DeclaredMonitor(MonitorFields, kw_only=True):
    """A monitor; it has exactly one of `cron`, `every` and `schedule`. What is absent has its default. The ping URL of a new
    one is no part of a file: `tocsin monitors rotate` shows one."""

    namespace: _OF_ENTRY | UnsetType = UNSET
    id: MonitorId
    paused: Annotated[bool | UnsetType, _PAUSED] = UNSET


class Declaration(RequestStruct, kw_only=True):
    """What a server has, as far as this file declares it."""

    managed_by: (
        Annotated[
            ManagedBy,
            about(
                "The file's name on the server. What is applied carries it: another file does not change that, and "
                "`tocsin apply --prune` deletes what carries it and is no longer in the file.",
                "shop",
            ),
        ]
        | UnsetType
    ) = UNSET
    namespace: (
        Annotated[
            NamespaceName,
            about(
                "The namespace of flows, calendars, credentials, schedules and monitors that name none. Default: default."
            ),
        ]
        | UnsetType
    ) = UNSET
    namespaces: list[DeclaredNamespace] | UnsetType = UNSET
    flows: list[DeclaredFlow] | UnsetType = UNSET
    calendars: list[DeclaredCalendar] | UnsetType = UNSET
    credentials: list[DeclaredCredential] | UnsetType = UNSET
    schedules: list[DeclaredSchedule] | UnsetType = UNSET
    monitors: list[DeclaredMonitor] | UnsetType = UNSET


class _Outline(RequestStruct, kw_only=True):
    """A declaration whose entries are not decoded yet, so that one report has what is wrong with each."""

    managed_by: str | UnsetType = UNSET
    namespace: str | UnsetType = UNSET
    namespaces: list[msgspec.Raw] = msgspec.field(default_factory=list)
    flows: list[msgspec.Raw] = msgspec.field(default_factory=list)
    calendars: list[msgspec.Raw] = msgspec.field(default_factory=list)
    credentials: list[msgspec.Raw] = msgspec.field(default_factory=list)
    schedules: list[msgspec.Raw] = msgspec.field(default_factory=list)
    monitors: list[msgspec.Raw] = msgspec.field(default_factory=list)


class Entry(NamedTuple):
    """An entry of the file: its path in it, such as `schedules[3]`, what it states, decoded and as JSON."""

    path: str
    sent: Any
    fields: Json


class Document(NamedTuple):
    """A file: its name on the server, None if it has none, and its entries by the name of their list."""

    managed_by: str | None
    namespace: str
    entries: Mapping[str, Sequence[Entry]]


#: Errors that are printed.
ERRORS_SHOWN_MAX = 20
#: Whatever a server may be set to accept; it refuses what it does not.
_ANY_US = 2**62


class _AnySubject(SubjectTargets):
    """Which subjects a namespace may name is known to the server alone."""

    def refusal(self, url: str, namespace: str) -> str | None:
        return super().refusal(url, "")


RULES = InputRules(
    InputLimits(
        payload_bytes_max=2**31,
        payload_depth_max=10_000,
        callback_timeout_max_us=_ANY_US,
        attempts_max=2**31,
        retry_duration_max_us=_ANY_US,
        execute_past_max_us=_ANY_US,
        execute_ahead_max_us=_ANY_US,
        retention_max_us=_ANY_US,
    ),
    lambda url: None,
    headers_sent_max=2**31,
    header_bytes_sent_max=2**31,
    subjects=_AnySubject(),
)


def destination_of(url: str) -> str:
    """Scheme, host and port of a URL; `invalid:` for one that can't be called."""
    try:
        return parse_url(url).origin.destination
    except InvalidUrl:
        return "invalid:"


def secret_from(sent: DeclaredCredential) -> dict[str, str]:
    """The field with the credential's secret, if the environment has it."""
    field = SECRET_OF.get(sent.type)
    secret = "" if sent.secret_from is UNSET else os.environ.get(sent.secret_from, "")
    return {} if field is None or not secret else {field: secret}


_LISTS: dict[str, type[msgspec.Struct]] = {
    "namespaces": DeclaredNamespace,
    "flows": DeclaredFlow,
    "calendars": DeclaredCalendar,
    "credentials": DeclaredCredential,
    "schedules": DeclaredSchedule,
    "monitors": DeclaredMonitor,
}
#: Fields at the top that are for other programs: what YAML's anchors are defined under, and the schema of an editor.
_IGNORED, _IGNORED_PREFIX = "$schema", "x-"


def read(text: str, source: str) -> Document:
    """The file's contents, JSON or YAML. Raises WrongUsage with all that is wrong with it."""
    try:
        outline = JsonReader(_Outline).read(_json(text, source))
    except TocsinError as error:
        raise invalid(source, error) from None
    namespace = DEFAULT_NAMESPACE if outline.namespace is UNSET else outline.namespace
    declared = Declaration(managed_by=outline.managed_by, namespace=outline.namespace)
    errors, entries = bad_fields(declared, RULES), {}
    for name, struct in _LISTS.items():
        reader: JsonReader[Any] = JsonReader(struct)
        entries[name] = list[Entry]()
        for position, raw in enumerate(getattr(outline, name)):
            path = f"{name}[{position}]"
            try:
                sent = reader.read(raw, path)
            except InvalidInput as error:
                errors += error.errors
                continue
            fields = {field: msgspec.Raw(value) for field, value in _members(raw).items()}
            if struct is not DeclaredNamespace and sent.namespace is UNSET:
                sent.namespace = namespace
            entries[name].append(Entry(path, sent, fields))
    if errors:
        raise invalid(source, InvalidInput(*errors))
    return Document(None if outline.managed_by is UNSET else outline.managed_by, namespace, entries)


def _members(raw: msgspec.Raw) -> dict[str, msgspec.Raw]:
    # Not decoded further: a payload keeps every digit.
    return msgspec.json.decode(raw, type=dict[str, msgspec.Raw])


def in_lines(errors: Sequence[FieldError]) -> list[str]:
    """A line for each error, up to a number."""
    lines = [f"  {error.path}: {error.reason}" if error.path else f"  {error.reason}" for error in errors]
    if len(lines) > ERRORS_SHOWN_MAX:
        lines = [*lines[:ERRORS_SHOWN_MAX], f"  … and {len(lines) - ERRORS_SHOWN_MAX:,} more"]
    return lines


def invalid(source: str, error: TocsinError) -> WrongUsage:
    """The refusal of a file because of its contents."""
    if isinstance(error, InvalidInput):
        return WrongUsage("\n".join([f"{source} is no valid declaration:", *in_lines(error.errors)]))
    return WrongUsage(f"{source} is no valid declaration: {error}")


def _json(text: str, source: str) -> bytes:
    """The text as JSON, without what is for other programs."""
    if text.lstrip().startswith("{"):
        try:
            members = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
            _refuse_twice(text, source)
            return msgspec.json.encode({name: members[name] for name in members if not _is_ignored(name)})
        except msgspec.DecodeError:
            # YAML's mappings may begin like JSON's.
            if Path(source).suffix == ".json":
                raise WrongUsage(f"{source} is no valid declaration: it is not JSON") from None
    from tocsin.cli.declared.yaml_text import load

    found = load(text, source)
    if not isinstance(found, dict):
        raise WrongUsage(
            f"{source} is no valid declaration: it must be a mapping with schedules, monitors, calendars, credentials, flows "
            "or namespaces"
        )
    try:
        return json.dumps({name: found[name] for name in found if not _is_ignored(name)}, ensure_ascii=False).encode()
    except TypeError as error:
        # By a tag of YAML, such as !!binary.
        raise WrongUsage(f"{source} is no valid declaration: it has a value that JSON does not have: {error}") from None


def _refuse_twice(text: str, source: str) -> None:
    """Refuses a name that is twice in one object, as of YAML: decoders take the last one, and `--prune` would delete what the
    first one has."""

    def once(members: list[tuple[str, object]]) -> None:
        names = [name for name, _ in members]
        if len(set(names)) < len(names):
            name = next(name for position, name in enumerate(names) if name in names[:position])
            raise WrongUsage(f"{source} is no valid declaration: {name!r} is there twice")

    # What else is wrong is refused where it is decoded.
    with contextlib.suppress(json.JSONDecodeError, RecursionError):
        json.loads(text, object_pairs_hook=once, parse_int=str, parse_float=str)


def _is_ignored(name: object) -> bool:
    return name == _IGNORED or (isinstance(name, str) and name.startswith(_IGNORED_PREFIX))


def write(declared: Json, *, as_json: bool) -> str:
    """The text of a file that declares this."""
    if as_json:
        return msgspec.json.format(msgspec.json.encode(declared), indent=2).decode() + "\n"
    from tocsin.cli.declared.yaml_text import dump

    return dump(json.loads(msgspec.json.encode(declared)))


def schema() -> bytes:
    """The JSON Schema of the file."""
    return (Path(__file__).parent / "schema.json").read_bytes()
