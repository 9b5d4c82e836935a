"""Reads the dates of an iCalendar file, in a process of its own whose time and memory are limited: a small file may describe
more events than a machine can list, and anybody may have made it."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import suppress
from datetime import date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

#: The largest file, the most dates, and for how many years events that recur are expanded.
FILE_BYTES_MAX, DATES_MAX, YEARS = 1024 * 1024, 10_000, 10
#: What the process may take: seconds of a processor, seconds in all, and bytes of memory.
_CPU_S_MAX, _DURATION_S_MAX, _MEMORY_BYTES_MAX = 10, 60, 1024 * 1024 * 1024
_TOO_MUCH = (
    f"takes too long or too much memory to expand; leave out events that recur within a day, or have more than {DATES_MAX} "
    f"dates in {YEARS} years"
)


class BadCalendar(ValueError):
    """The file can't be imported. The text follows its name."""


def read_dates(content: bytes, zone: str, begin: date) -> list[str]:
    """The dates on which a file has events, from `begin` on for YEARS, as the clocks of the zone show them. Each date of an
    event counts that lasts longer; canceled events don't. Raises BadCalendar."""
    if len(content) > FILE_BYTES_MAX:
        raise BadCalendar(f"has {len(content)} bytes; at most {FILE_BYTES_MAX} are accepted: split the file")
    # -I: nothing of the environment or the current folder changes what the process imports.
    command = [sys.executable, "-I", "-m", "tocsin.cli.ical", zone, begin.isoformat(), str(_CPU_S_MAX)]
    try:
        ran = subprocess.run(command, input=content, capture_output=True, timeout=_DURATION_S_MAX, check=False)
    except subprocess.TimeoutExpired:
        raise BadCalendar(_TOO_MUCH) from None
    if ran.returncode:
        # The system has ended the process.
        raise BadCalendar(_TOO_MUCH)
    answer: dict[str, Any] = json.loads(ran.stdout)
    if "reason" in answer:
        raise BadCalendar(answer["reason"])
    return list(answer["dates"])


def main() -> None:
    """The process: reads the file from its standard input, and writes the dates, or why there are none, as JSON."""
    _limit(int(sys.argv[3]))
    zone, begin = ZoneInfo(sys.argv[1]), date.fromisoformat(sys.argv[2])
    answer: dict[str, Any]
    try:
        answer = {"dates": [each.isoformat() for each in sorted(_dates(sys.stdin.buffer.read(), zone, begin))]}
    except BadCalendar as error:
        answer = {"reason": str(error)}
    except (MemoryError, RecursionError):
        answer = {"reason": _TOO_MUCH}
    except Exception as error:  # noqa: BLE001  (the library raises what its parsers do; a file must not make a traceback)
        what = " ".join(str(error).split())[:200]
        answer = {"reason": f"can't be read as iCalendar ({type(error).__name__}: {what}); export it again"}
    sys.stdout.write(json.dumps(answer))


def _limit(cpu_s_max: int) -> None:
    # Other systems than Unix have no such limits, and only that of the duration.
    with suppress(ImportError):
        import resource

        resource.setrlimit(resource.RLIMIT_CPU, (cpu_s_max, cpu_s_max))
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES_MAX, _MEMORY_BYTES_MAX))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _dates(content: bytes, zone: ZoneInfo, begin: date) -> set[date]:
    import recurring_ical_events
    from icalendar import Calendar

    try:
        calendar = Calendar.from_ical(content)
    except ValueError as error:
        raise BadCalendar(f"is no iCalendar file ({' '.join(str(error).split())[:200]}); export it again") from None
    end = begin.replace(year=begin.year + YEARS)
    found: set[date] = set()
    year = begin
    while year < end:
        following = year.replace(year=year.year + 1)
        for event in recurring_ical_events.of(calendar).between(year, following):
            if str(event.get("STATUS", "")).upper() != "CANCELLED":
                found |= {day for day in _days(event, zone, begin, end) if begin <= day < end}
            if len(found) > DATES_MAX:
                raise BadCalendar(f"has more than {DATES_MAX} dates in {YEARS} years; split it by kinds of events")
        year = following
    if not found:
        raise BadCalendar(f"has no events from {begin} to {end}; choose another file")
    return found


def _days(event: Any, zone: ZoneInfo, begin: date, end: date) -> set[date]:
    """The dates of one event."""
    first, last = event.start, event.end
    if isinstance(first, datetime):
        first, last = _local(first, zone), _local(last, zone)
        # An event that ends at midnight has nothing of the date that begins then.
        until = last.date() if last.time() == time() and last > first else last.date() + timedelta(days=1)
        day = first.date()
    else:
        day, until = first, max(last, first + timedelta(days=1))
    day, until = max(day, begin), min(until, end)
    return {day + timedelta(days=number) for number in range((until - day).days)}


def _local(at: datetime, zone: ZoneInfo) -> datetime:
    return at.replace(tzinfo=zone) if at.tzinfo is None else at.astimezone(zone)


if __name__ == "__main__":
    main()
