"""The kinds of objects that a file can declare: how each is read from a server, compared and written. One more kind is a
struct in `document`, a class here, and its place in `KINDS`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from msgspec import UNSET

from tocsin.cli.client import Client, ServerRefused
from tocsin.cli.command import Refused
from tocsin.cli.declared.document import (
    RULES,
    DeclaredCalendar,
    DeclaredCredential,
    DeclaredFlow,
    DeclaredMonitor,
    DeclaredNamespace,
    DeclaredSchedule,
    Entry,
    destination_of,
    secret_from,
)
from tocsin.cli.declared.kind import (
    NAMED,
    NO,
    TEXTS,
    YES,
    Change,
    Fields,
    Kind,
    Stored,
    decoded,
    encoded,
    members,
    members_of,
    pages,
    stored_object,
    why_held,
)
from tocsin.model.access import EVERY
from tocsin.model.credential import LIFETIME_US_DEFAULT
from tocsin.model.credential_type import SECRET_OF, ClientAuth
from tocsin.model.errors import FieldError
from tocsin.model.hooks import NO_HOOKS
from tocsin.model.instants import format_duration
from tocsin.model.monitor import Monitor, MonitorState, MonitorStatus
from tocsin.model.namespace import RESERVED_PREFIX, Answers, HistoryMode, Namespace
from tocsin.model.quota import NO_QUOTAS
from tocsin.model.schedule import ScheduleStatus
from tocsin.timers.monitors import MonitorView
from tocsin.timers.schedules import ScheduleView
from tocsin.web.http.calendars import calendar_answer, calendar_in
from tocsin.web.http.callback_batches import batch_answer
from tocsin.web.http.convert import RequestParser
from tocsin.web.http.credentials import credential_answer, credential_in
from tocsin.web.http.flows import limits_answer, rule_in
from tocsin.web.http.monitor_wire import PutMonitor
from tocsin.web.http.monitors import monitor_answer, monitor_in
from tocsin.web.http.namespaces import namespace_answer, settings_in
from tocsin.web.http.schedule_wire import CreateSchedule
from tocsin.web.http.schedules import ScheduleParser, schedule_answer


class Namespaces(Kind):
    """Namespaces. Their signing secrets are not declared: a repository is no place for them."""

    title, plural, key_fields, struct = "namespace", "namespaces", ("name",), DeclaredNamespace
    kept = Kind.kept | {"numShards", "retention"}

    def __init__(self) -> None:
        self._parser = RequestParser(RULES)

    def wanted(self, sent: DeclaredNamespace) -> Fields:
        settings = settings_in(sent, sent.name, self._parser)
        namespace = Namespace(
            sent.name,
            sent.num_shards or 1,
            0,
            0,
            sent.history or HistoryMode.ALL,
            settings.retention_us or 0,
            paused=sent.paused is True,
            answers=sent.answers or Answers.STANDARD,
            retry=settings.retry or None,
            hooks=NO_HOOKS.changed(settings.hooks),
            limits=settings.limits or None,
            quotas=NO_QUOTAS.changed(settings.quotas),
            callback_batch=settings.callback_batch or None,
            event_sink=settings.event_sink or None,
        )
        fields = self._picked(members(namespace_answer(namespace, 0)))
        absent = {"numShards": sent.num_shards, "retention": sent.retention, "paused": sent.paused}
        return {name: value for name, value in fields.items() if absent.get(name) is not UNSET}

    def stored(self, client: Client, namespaces: Collection[str]) -> Iterator[Stored]:
        for page in pages(client, "/namespaces/list", {}):
            for shown in page.namespaces:
                name = decoded(shown["name"])
                if not name.startswith(RESERVED_PREFIX):
                    yield stored_object((name,), self._picked(shown), shown, why_held(shown))

    def is_unchanged(self, client: Client, entry: Entry, wanted: Fields, stored: Stored | None) -> bool:
        if stored is None:
            return False
        hooks = {name: entry.fields[name] for name in self.secrets(entry, wanted)}
        if not hooks:
            return True
        return client.written("/namespaces/update", {"name": stored.key[0], **hooks, "dryRun": True})[1] != ""

    def forbidden(self, change: Change) -> FieldError | None:
        before, after = change.fields.get("numShards", (None, None))
        if change.stored is None or before is None or after is None:
            return None
        reason = f"can't be changed: the namespace has {decoded(before)}; leave it out, or declare another namespace"
        return FieldError("numShards", reason)

    def put(self, client: Client, change: Change, managed_by: str | None) -> None:
        assert change.entry is not None
        sent, marked = change.entry.fields, {} if managed_by is None else {"managedBy": managed_by}
        if change.stored is None:
            fields = {name: sent[name] for name in sent if name != "paused"}
            created = client.post("/namespaces/create", fields | marked)
            if change.pauses:
                expected = {"expectedVersion": created["version"]}
                client.post("/namespaces/update", {"name": change.key[0], "paused": True} | expected)
            return
        # What the server shows of a secret is the same for another one, so each is sent with any change.
        secrets = self.secrets(change.entry, self.wanted(change.entry.sent))
        names = [*change.fields, *(name for name in secrets if name not in change.fields)]
        fields = {name: sent.get(name, _UNDONE.get(name)) for name in names if name != "managedBy"}
        if "quotas" in fields:
            # In an update, those that are not sent stay.
            fields["quotas"] = _NO_QUOTAS | members_of(fields["quotas"])
        client.post(
            "/namespaces/update",
            {"name": change.key[0], "expectedVersion": change.expected_version, **fields, **marked},
        )

    def delete(self, client: Client, stored: Stored) -> None:
        client.post("/namespaces/delete", {"name": stored.key[0], "expectedVersion": stored.version})

    @cached_property
    def _usual(self) -> Fields:
        return self.wanted(DeclaredNamespace(name="any")) | {"paused": NO}


#: What an update sends for a field that is no longer in the file; null for others.
_UNDONE: dict[str, Any] = {"history": HistoryMode.ALL, "answers": Answers.STANDARD}
_NO_QUOTAS: dict[str, Any] = {"pending": None, "createsPerSecond": None, "payloadBytes": None}


class Flows(Kind):
    """Rules of flows."""

    title, plural, key_fields, struct = "flow", "flows", ("namespace", "match"), DeclaredFlow

    def wanted(self, sent: DeclaredFlow) -> Fields:
        per_key, total, closes, batch = rule_in(sent, RULES)
        shown = {
            "perKey": limits_answer(per_key),
            "total": limits_answer(total),
            "closeOnRetryAfter": closes,
            "callbackBatch": batch_answer(batch),
            "paused": sent.paused,
        }
        return {name: encoded(value) for name, value in shown.items() if value is not UNSET}

    @property
    def _usual(self) -> Fields:
        return {"closeOnRetryAfter": NO, "paused": NO}


class Calendars(Kind):
    """Calendars. Their lists have no dates, so each that a file may declare is read by itself."""

    title, plural, key_fields, struct = "calendar", "calendars", ("namespace", "name"), DeclaredCalendar

    def wanted(self, sent: DeclaredCalendar) -> Fields:
        assert sent.namespace is not UNSET
        return self._picked(members(calendar_answer(calendar_in(sent.namespace, sent.name, sent, RULES))))

    def stored(self, client: Client, namespaces: Collection[str]) -> Iterator[Stored]:
        for listed in super().stored(client, namespaces):
            name = dict(zip(self.key_fields, listed.key, strict=True))
            yield self._stored(client.post_for(Fields, "/calendars/get", name))

    def managed(self, client: Client, namespaces: Collection[str], managed_by: str) -> Iterator[Stored]:
        return (each for each in super().stored(client, namespaces) if each.managed_by == managed_by)

    @property
    def _usual(self) -> Fields:
        return {"timeZone": encoded("UTC"), **dict.fromkeys(("dates", "ranges", "weekdays"), encoded([]))}


class Credentials(Kind):
    """Credentials. Their secrets are not declared; an entry names the environment variable that has one."""

    title, plural, key_fields, struct = "credential", "credentials", ("namespace", "name"), DeclaredCredential

    def wanted(self, sent: DeclaredCredential) -> Fields:
        assert sent.namespace is not UNSET
        return self._picked(
            members(credential_answer(credential_in(sent.namespace, sent.name, sent, RULES, destination_of)))
        )

    def is_unchanged(self, client: Client, entry: Entry, wanted: Fields, stored: Stored | None) -> bool:
        if stored is None or not secret_from(entry.sent):
            return stored is not None
        return client.written("/credentials/put", {**self._request(entry), "dryRun": True})[1] != ""

    def put(self, client: Client, change: Change, managed_by: str | None) -> None:
        assert change.entry is not None
        marked = {} if managed_by is None else {"managedBy": managed_by}
        expected = {"expectedVersion": change.expected_version}
        try:
            client.post("/credentials/put", self._request(change.entry) | marked | expected)
        except ServerRefused as refusal:
            sent, field = change.entry.sent, SECRET_OF.get(change.entry.sent.type)
            if field not in dict(refusal.errors) or secret_from(sent):
                raise
            # The file has no such field: it names a variable.
            mend = (
                "name the variable that has it in secretFrom"
                if sent.secret_from is UNSET
                else f"set {sent.secret_from}"
            )
            raise Refused(
                f"{refusal}\n  The environment has no secret for it: {mend}, and run apply again."
            ) from refusal

    def _request(self, entry: Entry) -> dict[str, Any]:
        fields = {name: value for name, value in entry.fields.items() if name != "secretFrom"}
        return {**fields, "namespace": entry.sent.namespace, **secret_from(entry.sent)}

    @property
    def _usual(self) -> Fields:
        return {
            "hosts": encoded([]),
            "clientAuthentication": encoded(ClientAuth.BASIC),
            "lifetime": encoded(format_duration(LIFETIME_US_DEFAULT)),
        }


class _OfEveryNamespace(Kind):
    """What the server lists of all namespaces at once, by who manages it."""

    in_flight = 16

    def managed(self, client: Client, namespaces: Collection[str], managed_by: str) -> Iterator[Stored]:
        return self._listed(client, {"namespace": EVERY, "managedBy": managed_by})


class Schedules(_OfEveryNamespace):
    """Schedules."""

    title, plural, key_fields, struct = "schedule", "schedules", ("namespace", "id"), DeclaredSchedule

    def __init__(self) -> None:
        self._parser = ScheduleParser(RequestParser(RULES))

    def wanted(self, sent: DeclaredSchedule) -> Fields:
        given: dict[str, Any] = {name: getattr(sent, name, UNSET) for name in CreateSchedule.__struct_fields__}
        # As of 1970: a file may declare what has ended since.
        timer, definition = self._parser.new(CreateSchedule(**given), 0, None)
        view = ScheduleView(
            timer, bytes(16), 0, definition, ScheduleStatus.ACTIVE, 0, 0, None, [], None, None, None, {}, {}, 0, 0, 0
        )
        fields = self._picked(members(schedule_answer(view)))
        return fields if sent.paused is UNSET else fields | {"paused": YES if sent.paused else NO}

    def _listed(self, client: Client, scope: Mapping[str, str]) -> Iterator[Stored]:
        return (each for each in super()._listed(client, scope) if not each.key[0].startswith(RESERVED_PREFIX))

    def _stored(self, shown: Fields) -> Stored:
        stored = super()._stored(shown)
        stored.fields["paused"] = YES if decoded(shown["status"]) == ScheduleStatus.PAUSED else NO
        # From which an interval counts anyway: pulled, it keeps its beat on another server.
        implied = {"anchor": shown["createdAt"]} if "every" in shown and "anchor" not in shown else {}
        return stored._replace(implied=implied)

    def is_unchanged(self, client: Client, entry: Entry, wanted: Fields, stored: Stored | None) -> bool:
        sent: DeclaredSchedule = entry.sent
        if stored is None and sent.end_at is UNSET and sent.max_occurrences is UNSET:
            return False
        if stored is not None and not self.secrets(entry, wanted):
            return True
        # Their meaning is the same, their text may not be.
        alike = {} if stored is None else {name: stored.fields[name] for name in TEXTS if name in stored.fields}
        try:
            return client.written("/schedules/create", {**self._request(entry), **alike, "dryRun": True})[1] != ""
        except ServerRefused as refusal:
            # Lists have no ended schedules, and one whose last instant has passed is not created again.
            ended = refusal.code == "SCHEDULE_ENDED" or {path for path, _ in refusal.errors} == {"endAt"}
            if stored is None and ended:
                return True
            if refusal.code == "NAMESPACE_NOT_FOUND" or self._names_new_ones(refusal):
                return False
            raise

    @staticmethod
    def _names_new_ones(refusal: ServerRefused) -> bool:
        """Whether all that the server has against an entry are missing calendars and credentials, which the file may
        declare."""
        return bool(refusal.errors) and {path.rpartition(".")[2] for path, _ in refusal.errors} <= NAMED

    def put(self, client: Client, change: Change, managed_by: str | None) -> None:
        assert change.entry is not None
        begins_paused = change.stored is None and change.entry.sent.paused is True
        if change.defines:
            marked = {} if managed_by is None else {"managedBy": managed_by}
            request = self._request(change.entry) | marked | ({"paused": True} if begins_paused else {})
            client.post("/schedules/create", request | {"expectedVersion": change.expected_version})
        if change.pauses is not None and not begins_paused:
            namespace, schedule_id = change.key
            operation = "/schedules/pause" if change.pauses else "/schedules/resume"
            client.post(operation, {"namespace": namespace, "scheduleId": schedule_id})

    def delete(self, client: Client, stored: Stored) -> None:
        namespace, schedule_id = stored.key
        expected = {"expectedVersion": stored.version}
        client.post("/schedules/delete", {"namespace": namespace, "scheduleId": schedule_id} | expected)

    def _request(self, entry: Entry) -> dict[str, Any]:
        return {
            **{name: entry.fields[name] for name in entry.fields if name != "paused"},
            "namespace": entry.sent.namespace,
        }

    @cached_property
    def _usual(self) -> Fields:
        usual = self.wanted(DeclaredSchedule(namespace="any", id="any", callback_url="http://any", cron="@daily"))
        return {name: usual[name] for name in usual if name not in ("cron", "callbackUrl")} | {"paused": NO}


class Monitors(_OfEveryNamespace):
    """Monitors."""

    title, plural, key_fields, struct = "monitor", "monitors", ("namespace", "id"), DeclaredMonitor

    def __init__(self) -> None:
        self._parser = RequestParser(RULES)

    def wanted(self, sent: DeclaredMonitor) -> Fields:
        given: dict[str, Any] = {name: getattr(sent, name, UNSET) for name in PutMonitor.__struct_fields__}
        timer, definition = monitor_in(PutMonitor(**given), self._parser, 0)
        view = MonitorView(timer, Monitor(definition, MonitorState("")), bytes(16), 0)
        fields = self._picked(members(monitor_answer(view, 0)))
        return fields if sent.paused is UNSET else fields | {"paused": YES if sent.paused else NO}

    def _stored(self, shown: Fields) -> Stored:
        stored = super()._stored(shown)
        stored.fields["paused"] = YES if decoded(shown["state"]) == MonitorStatus.PAUSED else NO
        return stored

    def is_unchanged(self, client: Client, entry: Entry, wanted: Fields, stored: Stored | None) -> bool:
        if stored is None or not self.secrets(entry, wanted):
            return stored is not None
        request = {name: entry.fields[name] for name in entry.fields if name != "paused"}
        try:
            tried = client.post("/monitors/put", request | {"namespace": entry.sent.namespace, "dryRun": True})
        except ServerRefused as refusal:
            if {path for path, _ in refusal.errors} == {"schedule"}:
                # The file may declare the schedule that it is to watch.
                return False
            raise
        return bool(tried["monitor"]["version"] == stored.version)

    @cached_property
    def _usual(self) -> Fields:
        usual = self.wanted(DeclaredMonitor(namespace="any", id="any", cron="@daily"))
        return {name: usual[name] for name in usual if name != "cron"} | {"paused": NO}


#: All kinds, in the order in which they are created; deletes go the other way.
KINDS: Sequence[Kind] = (Namespaces(), Flows(), Calendars(), Credentials(), Schedules(), Monitors())
