"""Schedules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tocsin_client._async.pages import AsyncPages
from tocsin_client._async.part import Part
from tocsin_client._core import flows
from tocsin_client._core.steps import Steps
from tocsin_client._generated.models import (
    BackfillSchedule,
    CallbackMethod,
    CatchUp,
    CreateSchedule,
    DeleteSchedule,
    Hook,
    ListSchedules,
    OccurrencePage,
    OccurrenceRun,
    OnSkipped,
    Preview,
    PreviewSchedule,
    RawBody,
    ReplaySchedule,
    RetryPolicy,
    Schedule,
    ScheduleHistory,
    ScheduleName,
    SchedulePage,
    UpdateSchedule,
)
from tocsin_client._values import UNSET, Duration, Instant, JsonValue, Unset


class AsyncSchedules(Part):
    """Schedules: each calls a URL at the instants of a cron expression, or at intervals."""

    async def create(
        self,
        namespace: str,
        id: str,
        callback_url: str,
        *,
        cron: str | Unset = UNSET,
        time_zone: str | Unset = UNSET,
        every: Duration | Unset = UNSET,
        anchor: Instant | Unset = UNSET,
        start_at: Instant | Unset = UNSET,
        end_at: Instant | Unset = UNSET,
        max_occurrences: int | Unset = UNSET,
        jitter: Duration | Unset = UNSET,
        catch_up: CatchUp | Unset = UNSET,
        catch_up_window: Duration | Unset = UNSET,
        pause_after_failures: int | Unset = UNSET,
        only: Sequence[str] | Unset = UNSET,
        skip: Sequence[str] | Unset = UNSET,
        on_skipped: OnSkipped | Unset = UNSET,
        payload: JsonValue | Unset = UNSET,
        body: RawBody | Mapping[str, Any] | Unset = UNSET,
        method: CallbackMethod | Unset = UNSET,
        headers: Mapping[str, str] | Unset = UNSET,
        retry_policy: RetryPolicy | Mapping[str, Any] | Unset = UNSET,
        callback_timeout_seconds: float | Unset = UNSET,
        expire_after: Duration | Unset = UNSET,
        description: str | Unset = UNSET,
        flow_key: str | Unset = UNSET,
        credential: str | Unset = UNSET,
        on_failure: Hook | Mapping[str, Any] | Unset = UNSET,
        on_success: Hook | Mapping[str, Any] | Unset = UNSET,
        on_recovery: Hook | Mapping[str, Any] | Unset = UNSET,
        on_missed: Hook | Mapping[str, Any] | Unset = UNSET,
        on_paused: Hook | Mapping[str, Any] | Unset = UNSET,
        tags: Sequence[str] | Unset = UNSET,
        managed_by: str | Unset = UNSET,
        paused: bool | Unset = UNSET,
        expected_version: int | Unset = UNSET,
        dry_run: bool | Unset = UNSET,
    ) -> Schedule:
        """Creates a schedule, or changes the one with this id to this definition; an identical one writes nothing. Call it
        on each start of your program. Give one of `cron` and `every`. `paused`: a new one begins paused. VersionConflict: it
        has not the expected version; 0: there must be none."""
        schedule = CreateSchedule(
            namespace=namespace,
            id=id,
            callback_url=callback_url,
            cron=cron,
            time_zone=time_zone,
            every=every,
            anchor=anchor,
            start_at=start_at,
            end_at=end_at,
            max_occurrences=max_occurrences,
            jitter=jitter,
            catch_up=catch_up,
            catch_up_window=catch_up_window,
            pause_after_failures=pause_after_failures,
            only=only,
            skip=skip,
            on_skipped=on_skipped,
            payload=payload,
            body=body,
            method=method,
            headers=headers,
            retry_policy=retry_policy,
            callback_timeout_seconds=callback_timeout_seconds,
            expire_after=expire_after,
            description=description,
            flow_key=flow_key,
            credential=credential,
            on_failure=on_failure,
            on_success=on_success,
            on_recovery=on_recovery,
            on_missed=on_missed,
            on_paused=on_paused,
            tags=tags,
            managed_by=managed_by,
            paused=paused,
            expected_version=expected_version,
            dry_run=dry_run,
        )
        name = ScheduleName(namespace=namespace, schedule_id=id).to_json()
        return await self._run(self._put("createSchedule", Schedule.from_json, schedule.to_json(), "getSchedule", name))

    async def get(self, namespace: str, schedule_id: str) -> Schedule:
        """The schedule, also one that has ended and is retained. ScheduleNotFound: there is none."""
        return await self._run(self._named("getSchedule", namespace, schedule_id))

    async def update(
        self,
        namespace: str,
        schedule_id: str,
        *,
        callback_url: str | Unset = UNSET,
        cron: str | Unset = UNSET,
        time_zone: str | Unset = UNSET,
        every: Duration | Unset = UNSET,
        anchor: Instant | None | Unset = UNSET,
        start_at: Instant | None | Unset = UNSET,
        end_at: Instant | None | Unset = UNSET,
        max_occurrences: int | None | Unset = UNSET,
        jitter: Duration | Unset = UNSET,
        catch_up: CatchUp | Unset = UNSET,
        catch_up_window: Duration | None | Unset = UNSET,
        pause_after_failures: int | Unset = UNSET,
        only: Sequence[str] | Unset = UNSET,
        skip: Sequence[str] | Unset = UNSET,
        on_skipped: OnSkipped | Unset = UNSET,
        payload: JsonValue | Unset = UNSET,
        body: RawBody | Mapping[str, Any] | Unset = UNSET,
        method: CallbackMethod | Unset = UNSET,
        headers: Mapping[str, str] | None | Unset = UNSET,
        retry_policy: RetryPolicy | Mapping[str, Any] | None | Unset = UNSET,
        callback_timeout_seconds: float | Unset = UNSET,
        expire_after: Duration | None | Unset = UNSET,
        description: str | None | Unset = UNSET,
        flow_key: str | None | Unset = UNSET,
        credential: str | None | Unset = UNSET,
        on_failure: Hook | Mapping[str, Any] | None | Unset = UNSET,
        on_success: Hook | Mapping[str, Any] | None | Unset = UNSET,
        on_recovery: Hook | Mapping[str, Any] | None | Unset = UNSET,
        on_missed: Hook | Mapping[str, Any] | None | Unset = UNSET,
        on_paused: Hook | Mapping[str, Any] | None | Unset = UNSET,
        tags: Sequence[str] | Unset = UNSET,
        managed_by: str | None | Unset = UNSET,
        expected_version: int | Unset = UNSET,
    ) -> Schedule:
        """Changes the given fields; None removes those that allow it. ScheduleEnded: it has no more instants.
        VersionConflict: it has not the expected version."""
        change = UpdateSchedule(
            namespace=namespace,
            schedule_id=schedule_id,
            callback_url=callback_url,
            cron=cron,
            time_zone=time_zone,
            every=every,
            anchor=anchor,
            start_at=start_at,
            end_at=end_at,
            max_occurrences=max_occurrences,
            jitter=jitter,
            catch_up=catch_up,
            catch_up_window=catch_up_window,
            pause_after_failures=pause_after_failures,
            only=only,
            skip=skip,
            on_skipped=on_skipped,
            payload=payload,
            body=body,
            method=method,
            headers=headers,
            retry_policy=retry_policy,
            callback_timeout_seconds=callback_timeout_seconds,
            expire_after=expire_after,
            description=description,
            flow_key=flow_key,
            credential=credential,
            on_failure=on_failure,
            on_success=on_success,
            on_recovery=on_recovery,
            on_missed=on_missed,
            on_paused=on_paused,
            tags=tags,
            managed_by=managed_by,
            expected_version=expected_version,
        )
        return await self._run(flows.update_schedule(self._session, change, self._options))

    async def delete(self, namespace: str, schedule_id: str, *, expected_version: int | Unset = UNSET) -> None:
        """Ends the schedule. ScheduleEnded: it had ended before. VersionConflict: it has not the expected version."""
        wanted = DeleteSchedule(namespace=namespace, schedule_id=schedule_id, expected_version=expected_version)
        await self._run(flows.delete_schedule(self._session, wanted, self._options))

    def list(
        self, namespace: str, *, managed_by: str | Unset = UNSET, limit: int | Unset = UNSET
    ) -> AsyncPages[Schedule]:
        """All schedules of the namespace, or of all that the key has access to (`*`); `limit` is the size of a page."""

        def fetch(cursor: str | None) -> Steps[tuple[list[Schedule], str | None]]:
            query = ListSchedules(
                namespace=namespace, managed_by=managed_by, limit=limit, cursor=UNSET if cursor is None else cursor
            )
            page = yield from self._ask("listSchedules", SchedulePage.from_json, query.to_json())
            return page.schedules, page.next_cursor

        return AsyncPages(self._runner, fetch)

    async def pause(self, namespace: str, schedule_id: str) -> Schedule:
        """Skips all instants until it is resumed. An attempt in flight ends; none is retried."""
        return await self._run(self._named("pauseSchedule", namespace, schedule_id))

    async def resume(self, namespace: str, schedule_id: str) -> Schedule:
        """Goes on with the next instant."""
        return await self._run(self._named("resumeSchedule", namespace, schedule_id))

    async def trigger(self, namespace: str, schedule_id: str) -> Schedule:
        """Fires once, now. A lost answer is not followed by a retry, since that could fire twice: TransportError with
        `maybe_done`."""
        return await self._run(self._named("triggerSchedule", namespace, schedule_id, safe=False))

    async def backfill(self, namespace: str, schedule_id: str, *, after: Instant, before: Instant) -> Schedule:
        """Fires the instants of a time in the past. A lost answer is not followed by a retry, as in `trigger`."""
        range_ = BackfillSchedule(namespace=namespace, schedule_id=schedule_id, after=after, before=before)
        return await self._run(self._ask("backfillSchedule", Schedule.from_json, range_.to_json(), safe=False))

    async def replay(self, namespace: str, schedule_id: str, instants: Sequence[Instant]) -> Schedule:
        """Fires failed occurrences again, each under its own webhook-id. A lost answer is not followed by a retry, as in
        `trigger`."""
        wanted = ReplaySchedule(namespace=namespace, schedule_id=schedule_id, instants=instants)
        return await self._run(self._ask("replaySchedule", Schedule.from_json, wanted.to_json(), safe=False))

    async def preview(
        self,
        namespace: str | Unset = UNSET,
        schedule_id: str | Unset = UNSET,
        *,
        cron: str | Unset = UNSET,
        time_zone: str | Unset = UNSET,
        every: Duration | Unset = UNSET,
        anchor: Instant | Unset = UNSET,
        start_at: Instant | Unset = UNSET,
        end_at: Instant | Unset = UNSET,
        only: Sequence[str] | Unset = UNSET,
        skip: Sequence[str] | Unset = UNSET,
        on_skipped: OnSkipped | Unset = UNSET,
        count: int | Unset = UNSET,
    ) -> Preview:
        """The next instants of an existing schedule, or of a definition that is only tried."""
        query = PreviewSchedule(
            namespace=namespace,
            schedule_id=schedule_id,
            cron=cron,
            time_zone=time_zone,
            every=every,
            anchor=anchor,
            start_at=start_at,
            end_at=end_at,
            only=only,
            skip=skip,
            on_skipped=on_skipped,
            count=count,
        )
        return await self._run(self._ask("previewSchedule", Preview.from_json, query.to_json()))

    def history(self, namespace: str, schedule_id: str, *, limit: int | Unset = UNSET) -> AsyncPages[OccurrenceRun]:
        """The schedule's occurrences, newest first; `limit` is the size of a page."""

        def fetch(cursor: str | None) -> Steps[tuple[list[OccurrenceRun], str | None]]:
            after = UNSET if cursor is None else cursor
            query = ScheduleHistory(namespace=namespace, schedule_id=schedule_id, limit=limit, cursor=after)
            page = yield from self._ask("scheduleHistory", OccurrencePage.from_json, query.to_json())
            return page.occurrences, page.next_cursor

        return AsyncPages(self._runner, fetch)

    def _named(self, operation: str, namespace: str, schedule_id: str, *, safe: bool = True) -> Steps[Schedule]:
        name = ScheduleName(namespace=namespace, schedule_id=schedule_id)
        return self._ask(operation, Schedule.from_json, name.to_json(), safe=safe)
