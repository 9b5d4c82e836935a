"""What a run of a monitored job reports."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from tocsin_client._core import flows
from tocsin_client._core.session import Options, Session
from tocsin_client._core.steps import Steps
from tocsin_client._error_bases import TocsinError
from tocsin_client._generated.models import PingMonitor

_LOG = logging.getLogger("tocsin_client.monitors")
#: Characters of an error that are reported.
_ERROR_CHARS_MAX = 2_000


def report(
    session: Session,
    options: Options,
    read: Callable[[Mapping[str, Any]], Any],
    ping: PingMonitor,
) -> Steps[None]:
    """Sends a report. One that can't be sent is logged: the job goes on."""
    try:
        yield from flows.ask(session, "pingMonitor", read, ping.to_json(), options=options)
    except TocsinError as error:
        _LOG.warning("report %s to monitor %s/%s not delivered: %s", ping.event, ping.namespace, ping.id, error)


def ending(namespace: str, monitor_id: str, error: BaseException | None) -> PingMonitor:
    """The report of a job that has ended, with its error if it failed."""
    if error is None:
        return PingMonitor(namespace=namespace, id=monitor_id, event="success")
    words = f"{type(error).__name__}: {error}"[:_ERROR_CHARS_MAX]
    return PingMonitor(namespace=namespace, id=monitor_id, event="fail", body=words)
