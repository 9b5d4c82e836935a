# Made from _async/monitors.py by unasync.py; edit that.
"""Monitors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from types import TracebackType
from typing import Any, TypeVar

from tocsin_client._sync.pages import Pages
from tocsin_client._sync.part import Part
from tocsin_client._core import flows, running
from tocsin_client._core.steps import Steps
from tocsin_client._generated.models import (
    DeleteMonitor,
    Hook,
    ListMonitors,
    Monitor,
    MonitorAnswer,
    MonitorHistory,
    MonitorName,
    MonitorPage,
    MonitorPeriod,
    MonitorPeriods,
    MonitorPut,
    MonitorRotated,
    MonitorState,
    PingEvent,
    PingMonitor,
    PutMonitor,
)
from tocsin_client._values import UNSET, Duration, Unset

Returned = TypeVar("Returned")


class Monitors(Part):
    """They know when jobs should report, and notify when one does not."""

    def put(
        self,
        namespace: str,
        id: str,
        *,
        cron: str | Unset = UNSET,
        time_zone: str | Unset = UNSET,
        every: Duration | Unset = UNSET,
        schedule: str | Unset = UNSET,
        grace: Duration | Unset = UNSET,
        repeat: Duration | Unset = UNSET,
        on_late: Hook | Mapping[str, Any] | Unset = UNSET,
        on_recovery: Hook | Mapping[str, Any] | Unset = UNSET,
        tags: Sequence[str] | Unset = UNSET,
        description: str | Unset = UNSET,
        managed_by: str | Unset = UNSET,
        expected_version: int | Unset = UNSET,
        dry_run: bool | Unset = UNSET,
    ) -> MonitorPut:
        """Creates the monitor, or replaces its definition; give one of `cron`, `every` and `schedule`. Its `ping_url` is in
        the answer that creates it, and never shown again; that of a schedule has none. So a lost answer is not followed by
        a retry, which would have none: TransportError with `maybe_done`; `rotate` makes a new one. With `dry_run` nothing is
        written. VersionConflict: it has not the expected version; 0: there must be none."""
        wanted = PutMonitor(
            namespace=namespace,
            id=id,
            cron=cron,
            time_zone=time_zone,
            every=every,
            schedule=schedule,
            grace=grace,
            repeat=repeat,
            on_late=on_late,
            on_recovery=on_recovery,
            tags=tags,
            description=description,
            managed_by=managed_by,
            expected_version=expected_version,
            dry_run=dry_run,
        )
        # That of a schedule has no URL to lose.
        safe = dry_run is True or (schedule is not UNSET and expected_version is UNSET)
        return self._run(self._ask("putMonitor", MonitorPut.from_json, wanted.to_json(), safe=safe))

    def get(self, namespace: str, id: str) -> Monitor:
        """The monitor. MonitorNotFound: there is none."""
        return self._run(self._named("getMonitor", namespace, id))

    def list(
        self,
        namespace: str,
        *,
        state: MonitorState | Unset = UNSET,
        tag: str | Unset = UNSET,
        managed_by: str | Unset = UNSET,
        id_prefix: str | Unset = UNSET,
        limit: int | Unset = UNSET,
    ) -> Pages[Monitor]:
        """The monitors of the namespace, or of all that the key has access to (`*`); `limit` is the size of a page."""

        def fetch(cursor: str | None) -> Steps[tuple[list[Monitor], str | None]]:
            query = ListMonitors(
                namespace=namespace,
                state=state,
                tag=tag,
                managed_by=managed_by,
                id_prefix=id_prefix,
                limit=limit,
                cursor=UNSET if cursor is None else cursor,
            )
            page = yield from self._ask("listMonitors", MonitorPage.from_json, query.to_json())
            return page.monitors, page.next_cursor

        return Pages(self._runner, fetch)

    def pause(self, namespace: str, id: str) -> Monitor:
        """Expects nothing until it is resumed. MonitorNotFound: there is none."""
        return self._run(self._named("pauseMonitor", namespace, id))

    def resume(self, namespace: str, id: str) -> Monitor:
        """Expects reports again, from the next instant on. MonitorNotFound: there is none."""
        return self._run(self._named("resumeMonitor", namespace, id))

    def rotate(self, namespace: str, id: str) -> MonitorRotated:
        """Replaces the ping URL: the former one is refused from the answer on. MonitorNotFound: there is none."""
        name = MonitorName(namespace=namespace, id=id)
        return self._run(self._ask("rotateMonitor", MonitorRotated.from_json, name.to_json()))

    def delete(self, namespace: str, id: str, *, expected_version: int | Unset = UNSET) -> None:
        """Deletes the monitor with its history. MonitorNotFound: there is none. VersionConflict: it has not the expected
        version."""
        wanted = DeleteMonitor(namespace=namespace, id=id, expected_version=expected_version)
        self._run(flows.delete_monitor(self._session, wanted, self._options))

    def ping(
        self,
        namespace: str,
        id: str,
        event: PingEvent = "success",
        *,
        exit_code: int | Unset = UNSET,
        body: str | Unset = UNSET,
    ) -> Monitor:
        """Reports that the job has begun (`start`), succeeded or failed; `body` is kept, such as the end of a log.
        MonitorNotFound: there is none."""
        wanted = PingMonitor(namespace=namespace, id=id, event=event, exit_code=exit_code, body=body)
        return (self._run(self._ask("pingMonitor", MonitorAnswer.from_json, wanted.to_json()))).monitor

    def history(self, namespace: str, id: str, *, limit: int | Unset = UNSET) -> Pages[MonitorPeriod]:
        """The monitor's periods, newest first; `limit` is the size of a page."""

        def fetch(cursor: str | None) -> Steps[tuple[list[MonitorPeriod], str | None]]:
            after = UNSET if cursor is None else cursor
            query = MonitorHistory(namespace=namespace, id=id, limit=limit, cursor=after)
            page = yield from self._ask("monitorHistory", MonitorPeriods.from_json, query.to_json())
            return page.periods, page.next_cursor

        return Pages(self._runner, fetch)

    def run(self, id: str, *, namespace: str = "default") -> MonitoredRun:
        """Reports the beginning and the end of a `with` statement, or that it was left by an error. A report that can't be
        sent is logged, and changes nothing else."""
        return MonitoredRun(self, namespace, id)

    def watch(
        self, id: str, *, namespace: str = "default"
    ) -> Callable[[Callable[..., Returned]], Callable[..., Returned]]:
        """Decorates a function of which each call is reported, as `run` does."""

        def decorate(job: Callable[..., Returned]) -> Callable[..., Returned]:
            @wraps(job)
            def call(*args: Any, **kwargs: Any) -> Returned:
                with self.run(id, namespace=namespace):
                    return job(*args, **kwargs)

            return call

        return decorate

    def _report(self, ping: PingMonitor) -> None:
        try:
            self._run(running.report(self._session, self._options, MonitorAnswer.from_json, ping))
        except Exception as error:  # noqa: BLE001 (also of a hook, or of an HTTP client that was given)
            running.not_delivered(ping, error)

    def _named(self, operation: str, namespace: str, id: str) -> Steps[Monitor]:
        name = MonitorName(namespace=namespace, id=id)

        def read(answer: Mapping[str, Any]) -> Monitor:
            return MonitorAnswer.from_json(answer).monitor

        return self._ask(operation, read, name.to_json())


class MonitoredRun:
    """A run of a monitored job."""

    def __init__(self, monitors: Monitors, namespace: str, id: str) -> None:
        self._monitors, self._namespace, self._id = monitors, namespace, id

    def __enter__(self) -> MonitoredRun:
        self._monitors._report(PingMonitor(namespace=self._namespace, id=self._id, event="start"))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._monitors._report(running.ending(self._namespace, self._id, error))
