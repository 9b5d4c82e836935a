"""Structured logs: configuration, and the observer that turns events into lines."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
import structlog

from tocsin.model.setting import setting
from tocsin.ports.event import AnyEvent, LineLimit
from tocsin.rate_limit import RateLimit

#: Shards that a line about suppressed ones has at most.
SUPPRESSED_SHARDS_MAX = 32
#: Values that a line has of a field with many, such as the timers of a batch.
LOGGED_VALUES_MAX = 5
#: Fields of the standard library's log records that are logged.
_EXTRA_FIELDS = ("method", "path", "correlation_id")


@dataclass(frozen=True, slots=True)
class LogOptions:
    """What is logged, and how."""

    level: str = setting(
        "info",
        "Lowest severity that is logged: `debug`, `info`, `warning` or `error`.",
        choices=("debug", "info", "warning", "error"),
    )
    format: str = setting(
        "auto",
        "Format of log lines: `console`, `json`, or `auto`, which is console on a terminal and JSON elsewhere.",
        choices=("auto", "console", "json"),
    )


def configure_logging(options: LogOptions) -> None:
    """Sends structlog and the standard library's loggers to stderr, as JSON lines or for a console."""
    as_json = options.format == "json" or (options.format == "auto" and not sys.stderr.isatty())
    threshold = logging.getLevelNamesMapping()[options.level.upper()]
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="timestamp"),
    ]
    last: list[Any] = (
        [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
        if as_json
        else [structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())]
    )
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, structlog.stdlib.ExtraAdder(_EXTRA_FIELDS)],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *last],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(threshold)
    # They log each request, the first two with its content.
    for name in ("botocore", "aiobotocore", "mcp"):
        logging.getLogger(name).setLevel(logging.WARNING)
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):
        logging.getLogger(name).handlers[:] = []
        logging.getLogger(name).propagate = True


class EventLog:
    """An observer that logs one line per significant event, as the event declares it. `name` is the logger's."""

    def __init__(self, now_s: Callable[[], float], name: str = "tocsin.engine") -> None:
        self._logger = structlog.get_logger(name)
        self._debug = logging.getLogger().isEnabledFor(logging.DEBUG)
        self._now_s = now_s
        #: By the event's type, or its limit if others share it, and by what is limited alone.
        self._limits: dict[tuple[object, object], _Limited] = {}

    def __call__(self, event: AnyEvent) -> None:
        """Logs the event."""
        level = event.severity()
        if level <= logging.DEBUG:
            if self._debug:
                self._logger.debug(event.sentence(), **_fields(event))
            return
        more: dict[str, Any] = {}
        if (limit := event.line_limit) is not None:
            limited = self._limited(event, limit)
            suppressed = limited.rate.grant()
            if suppressed is None:
                limited.suppress(event)
                return
            more = limited.report(suppressed)
        self._logger.log(level, event.sentence(), **_fields(event), **more)

    def _limited(self, event: AnyEvent, limit: LineLimit) -> _Limited:
        key = limit if limit.shared else type(event), limit.each and getattr(event, limit.each)
        found = self._limits.get(key)
        if found is None:
            rate = RateLimit(limit.lines, limit.window_s, self._now_s)
            found = self._limits[key] = _Limited(rate, set() if limit.shards else None)
        return found


@dataclass(frozen=True, slots=True)
class _Limited:
    """Lines under one limit, and the shards of those that were suppressed; None: not collected."""

    rate: RateLimit
    shards: set[int] | None

    def suppress(self, event: AnyEvent) -> None:
        """Remembers the shard of a suppressed line."""
        shard_id: int | None = getattr(event, "shard_id", None)
        if self.shards is not None and shard_id is not None and len(self.shards) < SUPPRESSED_SHARDS_MAX:
            self.shards.add(shard_id)

    def report(self, suppressed: int) -> dict[str, Any]:
        """The fields of a line before which others were suppressed."""
        fields: dict[str, Any] = {"suppressed": suppressed} if suppressed else {}
        if self.shards:
            fields["suppressed_shards"] = sorted(self.shards)
            self.shards.clear()
        return fields


def _fields(event: AnyEvent) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name, value in zip(event.__struct_encode_fields__, msgspec.structs.astuple(event), strict=True):
        if value is None or name in event.unlogged:
            continue
        fields[name] = value.hex() if isinstance(value, bytes) else value
        if isinstance(value, tuple) and len(value) > LOGGED_VALUES_MAX:
            fields[name], fields[f"{name}_total"] = value[:LOGGED_VALUES_MAX], len(value)
    return fields
