"""Converts between the wire structs of schedules and the model."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from tocsin.model.access import ApiKey
from tocsin.model.errors import FieldError, InvalidInput
from tocsin.model.instants import format_duration, format_instant, parse_duration
from tocsin.model.occurrences import Excluded, check
from tocsin.model.recurrence import EVERY_MIN_US
from tocsin.model.redaction import redact_headers, redact_url
from tocsin.model.run import Run, RunStatus, source_of
from tocsin.model.schedule import REPLAYS_MAX, Definition, DefinitionChanges, LastOccurrence, ScheduleStatus
from tocsin.model.schedule_words import cron_sentence, every_sentence
from tocsin.model.timer import Changes, Timer
from tocsin.timers.history import RunPage
from tocsin.timers.schedules import ScheduleListRequest, ScheduleView
from tocsin.web.http import schedule_wire as wire
from tocsin.web.http.access import listed_in
from tocsin.web.http.constraints import ROWS_DEFAULT, bad_fields, refuse_bad_fields
from tocsin.web.http.convert import (
    RequestParser,
    attempt_answer,
    new_timer,
    raw_body_answer,
    retry_answer,
    seconds_answer,
    set_hooks,
)
from tocsin.web.http.instants import optional_instant, parse_instant, read, read_instant
from tocsin.web.http.optional import or_absent, or_default, or_none

_NO_CHANGES = (Changes(), DefinitionChanges())


class ScheduleParser:
    """Turns requests about schedules into domain values. Every method raises InvalidInput with all bad fields."""

    def __init__(self, parser: RequestParser) -> None:
        self._parser = parser
        self._rules = parser.rules

    def new(self, sent: wire.CreateSchedule, now_us: int, traceparent: str | None) -> tuple[Timer, Definition]:
        """The schedule to create: what it sends, and when."""
        errors = bad_fields(sent, self._rules)
        changes = self._definition_changes(sent, errors)
        definition = changes.apply(Definition())
        errors += _check(sent, definition, now_us)
        call = self._parser.call(sent, UNSET, errors)
        if errors:
            raise self._parser.refusal(errors, call)
        return new_timer(sent.namespace, sent.id, now_us, call, now_us, traceparent), definition

    def changes(self, sent: wire.UpdateSchedule) -> tuple[Changes, DefinitionChanges]:
        """The requested changes. Whether they fit the stored definition is known only where that is."""
        errors = bad_fields(sent, self._rules)
        if sent.cron is not UNSET and sent.every is not UNSET:
            errors.append(FieldError("every", "conflicts with cron; send only one of them"))
        definition = self._definition_changes(sent, errors)
        call = self._parser.call(sent, UNSET, errors)
        if not errors and (call, definition) == _NO_CHANGES:
            errors.append(FieldError("", "the request changes nothing; send a field besides namespace and scheduleId"))
        if errors:
            raise self._parser.refusal(errors, call)
        return call, definition

    def name(self, sent: wire.ScheduleName) -> tuple[str, str]:
        """The schedule's namespace and id."""
        refuse_bad_fields(sent, self._rules)
        return sent.namespace, sent.schedule_id

    def deletion(self, sent: wire.DeleteSchedule) -> tuple[str, str, int | None]:
        """The schedule's namespace and id, and the version that is expected of it."""
        return *self.name(sent), expected_version(sent)

    def backfill(self, sent: wire.BackfillSchedule) -> tuple[int, int]:
        """The range of instants to fire once more: from the first on, before the second."""
        errors = bad_fields(sent, self._rules)
        after, before = read_instant("after", sent.after, errors), read_instant("before", sent.before, errors)
        if errors:
            raise InvalidInput(*errors)
        assert after is not None
        assert before is not None
        return after, before

    def replay(self, sent: wire.ReplaySchedule) -> list[int]:
        """The instants of the occurrences to replay."""
        errors = bad_fields(sent, self._rules)
        if not 1 <= len(sent.instants) <= REPLAYS_MAX:
            errors.append(FieldError("instants", f"has {len(sent.instants)} entries; send 1 to {REPLAYS_MAX}"))
            raise InvalidInput(*errors)
        instants = [read_instant(f"instants[{at}]", each, errors) for at, each in enumerate(sent.instants)]
        if errors:
            raise InvalidInput(*errors)
        return [each for each in instants if each is not None]

    def list_request(self, sent: wire.ListSchedules, key: ApiKey | None) -> ScheduleListRequest:
        """The list that is requested with the key."""
        refuse_bad_fields(sent, self._rules)
        limit, cursor = _page(sent)
        wanted = [] if sent.status is UNSET else [sent.status] if isinstance(sent.status, str) else sent.status
        scope = listed_in(key, sent.namespace)
        return ScheduleListRequest(
            scope,
            frozenset(map(ScheduleStatus, wanted)),
            cursor=cursor,
            limit=limit,
            managed_by=or_none(sent.managed_by),
        )

    def history_request(self, sent: wire.ScheduleHistory) -> tuple[str, str, int, str | None]:
        """The schedule's namespace and id, and the limit and cursor of the page of its occurrences."""
        return *self.name(sent), *_page(sent)

    def preview(self, sent: wire.PreviewSchedule, now_us: int) -> tuple[tuple[str, str] | Definition, int]:
        """The named schedule or the given definition, and how many instants are wanted."""
        errors = bad_fields(sent, self._rules)
        count = wire.PREVIEW_DEFAULT if sent.count is UNSET else sent.count
        definition = self._definition_changes(sent, errors)
        if sent.schedule_id is not UNSET:
            if definition != DefinitionChanges():
                errors.append(
                    FieldError("scheduleId", "conflicts with the other fields; send only namespace and count")
                )
            if sent.namespace is UNSET:
                errors.append(FieldError("namespace", "is missing; send that of the schedule"))
        elif definition == DefinitionChanges() and sent.namespace is not UNSET:
            errors.append(FieldError("scheduleId", "is missing; send that of the schedule, or leave out namespace"))
        else:
            wanted = definition.apply(Definition())
            errors += _check(sent, wanted, now_us)
            if wanted.calendars and sent.namespace is UNSET:
                errors.append(FieldError("namespace", "is missing; send that of the calendars"))
        if errors:
            raise InvalidInput(*errors)
        if sent.schedule_id is UNSET or sent.namespace is UNSET:
            return definition.apply(Definition()), count
        return (sent.namespace, sent.schedule_id), count

    def skip(self, sent: wire.SkipSchedule) -> int:
        """The instant to skip, or not to."""
        errors = bad_fields(sent, self._rules)
        instant = read_instant("instant", sent.instant, errors)
        if errors or instant is None:
            raise InvalidInput(*errors)
        return instant

    def _definition_changes(
        self, sent: wire.CreateSchedule | wire.UpdateSchedule | wire.PreviewSchedule, errors: list[FieldError]
    ) -> DefinitionChanges:
        """The fields of the definition that are sent."""
        found = len(errors)
        instant, duration = partial(_read, parse_instant, errors), partial(_read, parse_duration, errors)
        rule = DefinitionChanges(
            sent.cron,
            sent.time_zone,
            duration("every", sent.every),
            instant("anchor", sent.anchor),
            instant("startAt", sent.start_at),
            instant("endAt", sent.end_at),
            only=_names(sent.only),
            skip=_names(sent.skip),
            on_skipped=sent.on_skipped,
        )
        if len(errors) > found and rule.every_us is UNSET and sent.every is not UNSET:
            # Without it, the definition would seem to lack a rule.
            rule = msgspec.structs.replace(rule, every_us=EVERY_MIN_US)
        if isinstance(sent, wire.PreviewSchedule):
            return rule
        return msgspec.structs.replace(
            rule,
            occurrences_max=sent.max_occurrences,
            jitter_us=duration("jitter", sent.jitter),
            catch_up=sent.catch_up,
            catch_up_window_us=duration("catchUpWindow", sent.catch_up_window),
            pause_after_failures=sent.pause_after_failures,
            managed_by=sent.managed_by,
        )


def expected_version(sent: wire.CreateSchedule | wire.UpdateSchedule | wire.DeleteSchedule) -> int | None:
    """The version that is expected of the schedule, if any is."""
    return or_none(sent.expected_version)


def _names(sent: list[str] | UnsetType) -> tuple[str, ...] | UnsetType:
    return UNSET if isinstance(sent, UnsetType) else tuple(sent)


def _page(sent: wire.ListSchedules | wire.ScheduleHistory) -> tuple[int, str | None]:
    return or_default(sent.limit, ROWS_DEFAULT), or_none(sent.cursor)


def _check(sent: wire.CreateSchedule | wire.PreviewSchedule, definition: Definition, now_us: int) -> list[FieldError]:
    errors = check(definition, now_us)
    if sent.cron is UNSET and sent.time_zone is not UNSET:
        errors.append(FieldError("timeZone", "applies only to cron; leave it out with every"))
    return errors


def _read(parse: Callable[[str], int], errors: list[FieldError], path: str, text: str | UnsetType | None) -> Any:
    """The instant or duration in a text, in microseconds. UNSET and None are returned unchanged; UNSET stands for a text that
    can't be read, which is reported."""
    if not isinstance(text, str):
        return text
    found = len(errors)
    value = read(parse, path, text, errors)
    return value if len(errors) == found else UNSET


def sentence(definition: Definition) -> str:
    """When a definition runs, in words; its expression itself if that can't be read here."""
    if definition.cron is not None:
        try:
            words = cron_sentence(definition.cron, definition.time_zone)
        except ValueError:
            words = f"{definition.cron}, {definition.time_zone}"
    else:
        assert definition.every_us is not None
        words = every_sentence(definition.every_us)
    only = f"; only on {' or '.join(definition.only)}" if definition.only else ""
    skipped = f"; not on {' or '.join(definition.skip)}" if definition.skip else ""
    return words + only + skipped


def schedule_answer(view: ScheduleView) -> wire.Schedule:
    """The schedule as clients of every role see it: without the secrets in its URL and headers."""
    timer, definition = view.timer, view.definition
    live = view.status is not ScheduleStatus.ENDED
    answer = wire.Schedule(
        namespace=timer.namespace,
        id=timer.id,
        schedule_uuid=str(UUID(bytes=view.uuid)),
        shard_id=view.shard_id,
        status=view.status,
        sentence=sentence(definition),
        next_instants=[format_instant(instant) for instant in view.next_instants],
        counts=view.counts,
        missed=view.missed,
        triggers_waiting=view.triggers,
        backfills_waiting=view.backfills,
        replays_waiting=view.replays,
        catch_up=definition.catch_up,
        jitter=format_duration(definition.jitter_us),
        pause_after_failures=definition.pause_after_failures,
        only=list(definition.only),
        skip=list(definition.skip),
        on_skipped=definition.on_skipped,
        skipped_instants=[format_instant(each) for each in view.skips],
        callback_url=redact_url(timer.url),
        method=timer.method,
        headers=redact_headers(timer.headers) if timer.headers else {},
        callback_timeout_seconds=seconds_answer(timer.timeout_us),
        tags=list(timer.tags),
        created_at=format_instant(timer.created_at),
        updated_at=format_instant(view.updated_at),
        version=view.version,
        cron=or_absent(definition.cron),
        time_zone=UNSET if definition.cron is None else definition.time_zone,
        every=_optional_duration(definition.every_us),
        anchor=optional_instant(definition.anchor),
        start_at=optional_instant(definition.start_at),
        end_at=optional_instant(definition.end_at),
        max_occurrences=or_absent(definition.occurrences_max),
        catch_up_window=_optional_duration(definition.catch_up_window_us),
        expire_after=_optional_duration(timer.expire_after_us),
        description=or_absent(timer.description),
        flow_key=timer.flow_key or UNSET,
        credential=timer.credential or UNSET,
        payload=timer.payload if timer.body is None else UNSET,
        body=UNSET if timer.body is None else raw_body_answer(timer.body),
        retry_policy=UNSET if timer.retry is None else retry_answer(timer.retry),
        paused_reason=or_absent(view.paused),
        occurrence_at=optional_instant(view.occurrence_at),
        attempts=timer.attempts if live else UNSET,
        next_attempt_at=optional_instant(view.next_attempt_at),
        last_error=or_absent(timer.last_error),
        last_occurrence=UNSET if view.last_occurrence is None else _occurrence_answer(view.last_occurrence),
        suspended=or_absent(view.suspended),
        managed_by=or_absent(definition.managed_by),
    )
    set_hooks(answer, timer.hooks)
    return answer


def excluded_answer(excluded: Excluded) -> wire.ExcludedInstant:
    """An excluded instant as clients see it."""
    calendar = excluded.calendar or UNSET
    return wire.ExcludedInstant(format_instant(excluded.instant), wire.ExclusionReason(excluded.reason), calendar)


def history_answer(page: RunPage) -> wire.OccurrencePage:
    """The page of occurrences as clients see it."""
    return wire.OccurrencePage([_run_answer(run) for run in page.runs], or_absent(page.cursor))


def _run_answer(run: Run) -> wire.OccurrenceRun:
    return wire.OccurrenceRun(
        run.firing,
        format_instant(run.execute_at),
        run.status,
        run.made,
        [attempt_answer(attempt) for attempt in run.attempts],
        [
            wire.MissedRange(each.reason, each.instants, format_instant(each.first_at), format_instant(each.last_at))
            for each in run.missed
        ],
        UNSET if run.status is RunStatus.MISSED else source_of(run),
    )


def _occurrence_answer(last: LastOccurrence) -> wire.Occurrence:
    return wire.Occurrence(
        format_instant(last.instant), last.source, last.outcome, format_instant(last.finished_at), last.attempts
    )


def _optional_duration(duration_us: int | None) -> str | UnsetType:
    return UNSET if duration_us is None else format_duration(duration_us)
