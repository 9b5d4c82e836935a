"""What a run of a monitored job reports."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from tocsin_client._core import flows
from tocsin_client._core.session import Options, Session
from tocsin_client._core.steps import Steps
from tocsin_client._generated.models import PingMonitor

_LOG = logging.getLogger("tocsin_client.monitors")
#: Characters of an error that are reported.
_ERROR_CHARS_MAX = 2_000
#: How long a server that is not reached delays a job, before it and after it.
_TIMEOUT_S = 5.0


def report(
    session: Session,
    options: Options,
    read: Callable[[Mapping[str, Any]], Any],
    ping: PingMonitor,
) -> Steps[None]:
    """Sends a report, within a few seconds."""
    limited = replace(options, timeout_s=min(options.timeout_s, _TIMEOUT_S))
    yield from flows.ask(session, "pingMonitor", read, ping.to_json(), options=limited)


def not_delivered(ping: PingMonitor, error: Exception) -> None:
    """Logs that a report was not sent, whatever prevented it: the job goes on."""
    _LOG.warning("report %s to monitor %s/%s not delivered: %r", ping.event, ping.namespace, ping.id, error)


def ending(namespace: str, monitor_id: str, error: BaseException | None) -> PingMonitor:
    """The report of a job that has ended, with its error if it failed. `sys.exit` counts as it does for a process."""
    if error is None or (isinstance(error, SystemExit) and error.code is None):
        return PingMonitor(namespace=namespace, id=monitor_id, event="success")
    if isinstance(error, SystemExit) and isinstance(error.code, int):
        code = error.code & 0xFF  # what the system keeps of it
        return PingMonitor(namespace=namespace, id=monitor_id, event="fail" if code else "success", exit_code=code)
    words = f"{type(error).__name__}: {error}"[:_ERROR_CHARS_MAX]
    # Names of files may have what is not text: `os.fsdecode` keeps it as lone surrogates, which no request can contain.
    words = words.encode(errors="replace").decode()
    return PingMonitor(namespace=namespace, id=monitor_id, event="fail", body=words)
