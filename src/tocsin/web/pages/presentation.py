"""Presentation of values: instants, durations, relative times, counts, and the states of timers."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from typing import TypeVar
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from tocsin.model.explanation import Explanation, TimerState, WaitsFor
from tocsin.model.failure import failure_of, split_failure
from tocsin.model.failure_groups import FailedKind, GroupKey
from tocsin.model.instants import US_PER_DAY, US_PER_SECOND, format_duration, format_instant
from tocsin.model.redaction import redact_url
from tocsin.model.timer import LoggedAttempt, RawBody, Status, Timer
from tocsin.model.validation import is_deeper_than
from tocsin.model.visible import visible
from tocsin.timers.service import TimerView
from tocsin.web.http.instants import parse_instant

T = TypeVar("T")

#: Payloads and bodies up to this size and depth are indented; others are shown as sent. The output grows with the depth,
#: because each level indents all lines within it.
PRETTY_BYTES_MAX = 32 * 1024
PRETTY_DEPTH_MAX = 20
#: A string with an escape in JSON.
_ESCAPED = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)+"')
#: What is kept in texts of several lines.
WHITESPACE = "\t\r\n"
#: An instant within a text.
_INSTANT = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z)")
#: Rows in one part of a list, which a browser lays out as a whole: as many as it can paint within a frame.
PART_ROWS = 25

#: Lengths of ids for which the id column of a list has a width in the style sheet; longer ids are truncated.
ID_WIDTHS = (16, 24, 36, 48, 64, 96)

_UNITS = (
    (365 * US_PER_DAY, "y"),
    (US_PER_DAY, "d"),
    (3_600 * US_PER_SECOND, "h"),
    (60 * US_PER_SECOND, "min"),
    (US_PER_SECOND, "s"),
)
#: Units of durations that pages write in another way than the API.
_WRITTEN = {"m": "min", "us": "µs"}
#: Path segments that browsers remove when they normalize a path, even percent-encoded.
_STEPS = frozenset({"", ".", ".."})


@dataclass(frozen=True, slots=True)
class State:
    """A state as shown on the pages: a word, the name of its colour and shape, and what it waits for, if that is known."""

    word: str
    tone: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    """An entry of the timeline of a timer or call. `attempt` is set for attempts of timers; `ahead` marks entries in the
    future."""

    at: int
    title: str
    tone: str
    note: str = ""
    ahead: bool = False
    attempt: LoggedAttempt | None = None


#: How the reason of a timer begins that is suspended because its namespace is paused.
_BY_NAMESPACE = "namespace:"
_FINISHED = {
    Status.COMPLETED: State("completed", "done"),
    Status.FAILED: State("failed", "failed"),
    Status.CANCELED: State("canceled", "canceled"),
    Status.EXPIRED: State("expired", "expired"),
}


_DOING = {
    TimerState.FIRING: State("firing", "firing"),
    TimerState.WRITING: State("storing", "waiting"),
    TimerState.WAITING: State("waiting", "waiting"),
    TimerState.BLOCKED: State("waiting", "waiting"),
    TimerState.PAUSED: State("paused", "suspended"),
    TimerState.SUSPENDED: State("suspended", "suspended"),
    TimerState.UNKNOWN: State("unknown", "due", "for an answer of its node"),
}
#: What a due timer waits for.
_WAITS = {
    WaitsFor.DESTINATION: "for its destination",
    WaitsFor.NAMESPACE: "for its namespace",
    WaitsFor.NODE: "for its node",
    WaitsFor.FLOW: "for its flow",
    WaitsFor.WRITE: "for the database",
    WaitsFor.LEASE: "for the database",
    WaitsFor.CLOCK: "for its node's clock",
    WaitsFor.OWNER: "for a node that owns its shard",
    WaitsFor.CREATE: "to be created again",
    WaitsFor.EGRESS: "for egress.allow",
    WaitsFor.CREDENTIAL: "for its credential",
    WaitsFor.SECRET: "for the key of a secret",
}


def doing(explanation: Explanation | None) -> State | None:
    """The state of what is due, and what it waits for; None if it is not due, or nobody was asked."""
    state = None if explanation is None else _DOING.get(explanation.state)
    if explanation is None or state is None or explanation.waits_for is None:
        return state
    # That a paused timer waits for its namespace is all that its word means.
    return state if state.word == "paused" else replace(state, note=_WAITS.get(explanation.waits_for, ""))


#: What a due timer does without an attempt in flight, or one whose result is being stored.
_WAITING = frozenset(
    {TimerState.WAITING, TimerState.BLOCKED, TimerState.PAUSED, TimerState.SUSPENDED, TimerState.UNKNOWN}
)


def is_waiting(view: TimerView) -> bool:
    """Whether a timer is due and, as far as its node answered, no attempt is in flight. Its explanation is needed."""
    return view.explanation is not None and view.explanation.state in _WAITING


def tabs_of(view: TimerView, now_us: int) -> str:
    """The tabs that list the timer, and `due` or `next` for a pending one."""
    if view.timer.status is not Status.PENDING:
        return view.timer.status.value
    if not view.is_due(now_us):
        return "pending next"
    return "pending due waiting" if is_waiting(view) else "pending due"


def state_of(view: TimerView, now_us: int, *, paused: bool) -> State:
    """The state of a timer at an instant. `paused`: its namespace is. One whose instant has passed is due unless it has its
    explanation: only the owner of its shard knows its in-flight attempts."""
    timer = view.timer
    if timer.status is not Status.PENDING:
        return _FINISHED[timer.status]
    if (known := doing(view.explanation)) is not None:
        return known
    if paused and (view.suspended or _BY_NAMESPACE).startswith(_BY_NAMESPACE):
        return State("paused", "suspended")
    if view.suspended is not None:
        return State("suspended", "suspended")
    if view.next_attempt_at is not None and view.next_attempt_at <= now_us:
        return State("due", "due")
    if timer.attempts:
        return State("retrying", "retrying")
    return State("pending", "pending")


def parted(rows: Sequence[T]) -> list[Sequence[T]]:
    """The rows of a list in parts of at most PART_ROWS; one empty part without rows."""
    return [rows[start : start + PART_ROWS] for start in range(0, len(rows), PART_ROWS)] or [rows]


def id_width(ids: Iterable[str]) -> int:
    """The least of ID_WIDTHS that the longest id fits into, or the greatest one."""
    longest = max(map(len, ids), default=0)
    return next((room for room in ID_WIDTHS if longest <= room), ID_WIDTHS[-1])


def utc(instant_us: int) -> str:
    """An instant in UTC, to the second, for browsers without scripts."""
    return format_instant(instant_us - instant_us % US_PER_SECOND).replace("T", " ").replace("Z", " UTC")


def rfc3339(instant_us: int) -> str:
    """An instant in the format of RFC 3339, at full precision."""
    return format_instant(instant_us)


def span(duration_us: int, units: int = 2) -> str:
    """A duration in its one or two greatest units, such as `2 h 5 min`; below a second in milliseconds."""
    if duration_us < US_PER_SECOND:
        return f"{duration_us / 1_000:.0f} ms"
    for (size, unit), (next_size, next_unit) in pairwise(_UNITS):
        if duration_us >= size:
            whole, rest = divmod(duration_us, size)
            second = rest // next_size
            return f"{whole} {unit} {second} {next_unit}" if second and whole < 10 and units > 1 else f"{whole} {unit}"
    return f"{duration_us // US_PER_SECOND} s"


def at_most(duration_us: float) -> str:
    """A bound on durations, like `span`, and not less than the bound."""
    sizes = [size for size, _ in _UNITS]
    whole = next((place for place, size in enumerate(sizes) if duration_us >= size), len(sizes))
    if whole == len(sizes):
        return f"{math.ceil(duration_us / 1_000)} ms"
    shown = sizes[min(whole + (duration_us < 10 * sizes[whole]), len(sizes) - 1)]
    return span(math.ceil(duration_us / shown) * shown)


def whole_span(duration_us: int) -> str:
    """A duration in full, such as `1 h 30 min`, whose units stay with their numbers: one that somebody has set."""
    pieces = re.findall(r"(\d+)(\D+)", format_duration(duration_us))
    return " ".join(f"{amount}\u00a0{_WRITTEN.get(unit, unit)}" for amount, unit in pieces)


def clock(at: datetime) -> str:
    """What a clock shows: `09:00`, with seconds only if there are some."""
    return f"{at:%H:%M:%S}" if at.second else f"{at:%H:%M}"


def relative(instant_us: int, now_us: int, units: int = 2) -> str:
    """An instant relative to now, in its one or two greatest units: `in 5 min`, `2 h ago`, `now`."""
    distance_us = instant_us - now_us
    if abs(distance_us) < US_PER_SECOND:
        return "now"
    return f"in {span(distance_us, units)}" if distance_us > 0 else f"{span(-distance_us, units)} ago"


def milliseconds(duration_us: float) -> str:
    """A latency in milliseconds or seconds, with more precision for shorter ones."""
    value = duration_us / 1_000
    if value >= 10_000:
        return f"{value / 1_000:.1f} s"
    return f"{value:.0f} ms" if value >= 10 else f"{value:.1f} ms"


def count(number: float) -> str:
    """A number with commas between thousands."""
    return f"{number:,.0f}"


def sentence(error: Exception) -> str:
    """An error's text as a sentence."""
    return f"{initial(str(error))}."


def initial(text: str) -> str:
    """A text with its first letter in upper case."""
    return f"{text[:1].upper()}{text[1:]}"


def instants_in(text: str) -> list[tuple[str, int | None]]:
    """The text in pieces, each with its instant in microseconds if it is one in the format of RFC 3339."""
    pieces: list[tuple[str, int | None]] = []
    for piece in _INSTANT.split(text):
        try:
            pieces.append((piece, parse_instant(piece) if _INSTANT.fullmatch(piece) else None))
        except ValueError:
            pieces.append((piece, None))
    return [each for each in pieces if each[0]]


def failures_path(key: GroupKey) -> str:
    """The page of a group of failures of one namespace, or of one tenant."""
    pages = "/failures" if key.tenant is None else "/failures/calls"
    return f"{pages}/group?{urlencode({name: value for name, value in key._asdict().items() if value is not None})}"


def failures_like(timer: Timer) -> str:
    """The page of the group to which a failed timer belongs."""
    destination, error = split_failure(failure_of(timer))
    return failures_path(GroupKey(timer.namespace, destination, error, FailedKind.TIMER))


def timer_path(namespace: str, timer_id: str) -> str:
    """The path of a timer's page."""
    return path_below("/timers", namespace, timer_id)


def path_below(pages: str, namespace: str, name: str) -> str:
    """The path of the page of what has this id. An id that browsers would remove from a path goes into the query."""
    base = f"{pages}/{quote(namespace, safe='')}/"
    if name in _STEPS:
        return f"{base}?id={quote(name, safe='')}"
    return base + quote(name, safe="")


def with_query(path: str, query: Mapping[str, str]) -> str:
    """A path of `path_below` with further parameters."""
    return f"{path}{'&' if '?' in path else '?'}{urlencode(query)}"


def host_of(destination: str) -> str:
    """The host of a destination, without its scheme."""
    return destination.partition("://")[2] or destination


def host_and_path(sent_url: str) -> tuple[str, str]:
    """The host and the rest of a URL, with secrets redacted."""
    url = redact_url(sent_url)
    try:
        parts = urlsplit(url)
    except ValueError:
        return url, ""
    rest = parts.path + (f"?{parts.query}" if parts.query else "")
    return parts.netloc, rest if rest != "/" else ""


def version(view: TimerView) -> str:
    """A version that changes whenever the timer's row does."""
    timer = view.timer
    return (
        f"{timer.updated_at:x}.{view.next_attempt_at or 0:x}.{timer.attempts:x}.{timer.status[0]}{view.suspended or ''}"
    )


def row_key(view: TimerView) -> str:
    """What names a timer's row in lists: `namespace/id` while it is pending, `namespace@version/id` for a run that has ended,
    because a timer may have several of these. Neither a namespace's name nor a version has these characters."""
    timer = view.timer
    ended = "" if timer.status is Status.PENDING else f"@{version(view)}"
    return f"{timer.namespace}{ended}/{timer.id}"


def shown_version(view: TimerView, *, paused: bool) -> str:
    """A version that also changes when the namespace of a pending timer is paused or resumed, and with what a due one does or
    waits for. A run that has ended keeps its own."""
    suspends = paused and view.timer.status is Status.PENDING
    return f"{version(view)}{version_of_doing(view.explanation)}{'p' if suspends else ''}"


def version_of_doing(explanation: Explanation | None) -> str:
    """A version that changes with what `doing` returns."""
    return (
        "" if explanation is None else f".{explanation.state}{explanation.waits_for or ''}{explanation.attempt or ''}"
    )


def pretty_json(text: bytes) -> str:
    """A payload, indented, with its numbers and keys exactly as sent; not indented if it is not JSON, too long or nested too
    deeply. Invisible characters are shown as escapes, with which JSON has the same value."""
    plain = text.decode(errors="replace")
    if len(text) > PRETTY_BYTES_MAX or is_deeper_than(text, PRETTY_DEPTH_MAX):
        return visible(plain, keep=WHITESPACE)
    try:
        indented = msgspec.json.format(plain, indent=2)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return visible(plain, keep=WHITESPACE)
    # Escapes become characters, if these are visible.
    return visible(_ESCAPED.sub(_unescaped, indented), keep=WHITESPACE)


def _unescaped(found: re.Match[str]) -> str:
    return json.dumps(json.loads(found[0]), ensure_ascii=False)


def raw_body(body: RawBody) -> tuple[str, str]:
    """A raw body as text, and a description of its content type, size and encoding."""
    size = f"{body.content_type}, {len(body.sent()):,} bytes"
    if body.base64 is not msgspec.UNSET:
        return body.base64, f"{size}, shown as base64"
    text = bytes(body.json).decode() if body.json is not msgspec.UNSET else body.text
    assert text is not msgspec.UNSET
    # Line breaks are kept; other invisible characters are shown as escapes.
    return visible(text, keep="\n"), size
