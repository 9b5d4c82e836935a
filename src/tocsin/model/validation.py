"""Validation of clients' input: checks on decoded values, each against a named limit.

A check returns the reason why a value is refused, or None. A reason follows the field's name in a sentence ("id *is empty;
…*") and states how to correct the value. Nothing here raises: callers collect all bad fields of a request.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

from tocsin.model.errors import FieldError
from tocsin.model.instants import US_PER_DAY, US_PER_SECOND, format_duration, format_instant
from tocsin.model.namespace import NAME
from tocsin.model.retry import RetryPolicy
from tocsin.model.sealed_text import has_sealed
from tocsin.model.setting import Topic, setting
from tocsin.model.subjects import SINK_CHARS_MAX, SubjectTargets, is_subject_url, subject_of
from tocsin.model.visible import JOINERS, hidden_in, named

METHODS = ("POST", "GET", "PUT", "PATCH", "DELETE", "HEAD")

#: Headers that Tocsin sets itself, or that control the connection.
_RESERVED_HEADERS = frozenset(
    {
        "accept-encoding", "connection", "content-encoding", "content-length", "expect", "host", "keep-alive",
        "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
    }
)  # fmt: skip

#: How the names of further headers begin that Tocsin sets itself, because receivers rely on them, or that are commands to a
#: NATS server: one of them empties a stream.
_RESERVED_PREFIXES = ("tocsin-", "webhook-", "nats-")

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e]*\Z")
#: RFC 9110 section 8.3.1. Parameters may be any visible ASCII with spaces inside.
_MEDIA_TYPE = re.compile(
    r"[!#$%&'*+.^_`|~0-9A-Za-z-]+/[!#$%&'*+.^_`|~0-9A-Za-z-]+(?: *; *[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?)?\Z"
)
#: Would be taken for a secret that the server has encrypted, and sent decrypted.
LOOKS_SEALED = "has the form of an encrypted secret of Tocsin's store (tsl1.…); send the secret itself"
_URL_CHARACTERS = re.compile(r"[\x21-\x7e]+\Z")
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[{]}"))
_LEVELS = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)


#: Characters of a raw body's content type: more than any registered one has with its parameters.
CONTENT_TYPE_CHARS_MAX = 255


def folded(name: str) -> str:
    """The same for all names of headers that a receiver may not distinguish: by case, or, behind WSGI or CGI, an underscore
    from a hyphen."""
    return name.lower().replace("_", "-")


def is_reserved_header(name: str) -> bool:
    """Whether timers and service calls may not have a header of that name."""
    name = folded(name)
    return name in _RESERVED_HEADERS or name.startswith(_RESERVED_PREFIXES)


@dataclass(frozen=True, slots=True)
class InputLimits:
    """Limits on what clients send. Lengths in characters (code points), sizes in bytes, durations in microseconds."""

    payload_bytes_max: int = setting(
        100 * 1024,
        "Bytes of a timer's payload, in a request or in a response that reschedules. Higher values take more memory; "
        "keep `api.request_bytes_max`, `callbacks.response_body_bytes_max` and `ui.form_bytes_max` above them.",
    )
    payload_depth_max: int = setting(
        100,
        "Nesting depth of arrays and objects in a timer's payload. It protects the programs that parse the payload "
        "later. Higher values accept payloads that such programs may refuse.",
    )
    callback_timeout_max_us: int = setting(
        60_000_000,
        "Longest `callbackTimeoutSeconds` of a timer; must be shorter than `drain_timeout`. With higher values a "
        "receiver that hangs occupies a slot for longer.",
    )
    attempts_max: int = setting(
        1_000,
        "Highest `maxAttempts` of a retry policy. Lower values bound the load of retries.",
    )
    retry_duration_max_us: int = setting(
        366 * US_PER_DAY,
        "Longest interval between attempts, and longest `maxAttemptsDuration`, of a retry policy. Lower values refuse "
        "policies that would retry for very long.",
    )
    execute_past_max_us: int = setting(
        3_653 * US_PER_DAY,
        "How far in the past `executeAt` may lie; such a timer is due at once. An earlier instant is refused as a "
        "mistake. The default, ten years, allows imports of old timers.",
        least=0,
    )
    execute_ahead_max_us: int = setting(
        100 * 366 * US_PER_DAY,
        "How far in the future an instant may lie, in a request or in a response that reschedules. Lower values catch "
        "instants in the wrong unit.",
    )
    list_rows_max: int = setting(
        1_000,
        "Highest `limit` of a list request. Higher values allow larger responses, each of which takes more memory.",
    )
    retention_max_us: int = setting(
        3_653 * US_PER_DAY,
        "Longest `retention` that a namespace can ask for its finished timers. Lower values bound the disk space that "
        "a namespace can ask for.",
        topic=Topic.RETENTION,
    )

    # Constants. Operators have no reason to change them; tests inject smaller ones.

    #: Characters of a timer's id.
    id_chars_max: int = 255
    #: Characters of a callback URL.
    url_chars_max: int = 2_048
    #: A timer's own headers.
    headers_max: int = 32
    #: Characters of the name of a timer's header.
    header_name_chars_max: int = 128
    #: Characters of the value of a timer's header.
    header_value_chars_max: int = 4_096
    #: Tags of a timer.
    tags_max: int = 16
    #: Characters of a timer's tag.
    tag_chars_max: int = 64
    #: Shortest `callbackTimeoutSeconds` of a timer.
    callback_timeout_min_us: int = 1_000_000
    #: Shortest `expireAfter` of a timer: a busy or restarting node may be late by less than a second at any time.
    expire_after_min_us: int = 1_000_000
    #: Highest `backoffMultiplier` of a retry policy.
    backoff_multiplier_max: float = 100.0
    #: Highest `numShards` of a namespace.
    num_shards_max: int = 65_536
    #: Characters of a list's cursor in a request; no cursor of the server is longer.
    cursor_chars_max: int = 1_024
    #: Callback URLs whose egress verdict is kept in memory.
    url_verdicts_max: int = 4_096


class InputRules:
    """The checks, under given limits.

    `check_target` is the static part of the egress policy: the reason why a text is no URL, or one that may not be called, or
    None. Its verdicts are cached by URL until `forget_targets`, so it must depend on nothing else. `headers_sent_max` and
    `header_bytes_sent_max` limit a timer's own headers in a callback's request. `subjects` are those of NATS that timers may
    name; None where they name none.
    """

    def __init__(
        self,
        limits: InputLimits,
        check_target: Callable[[str], str | None],
        *,
        headers_sent_max: int = 32,
        header_bytes_sent_max: int = 8 * 1024,
        subjects: SubjectTargets | None = None,
    ) -> None:
        self.limits = limits
        self._headers_max = min(limits.headers_max, headers_sent_max)
        self._header_bytes_max = header_bytes_sent_max
        self._check_target = check_target
        self._subjects = subjects
        self._url_verdict = lru_cache(maxsize=limits.url_verdicts_max)(self._judge_url)
        #: What forgets verdicts on URLs that are kept anywhere.
        self.verdicts: list[Callable[[], object]] = [self._url_verdict.cache_clear]

    def forget_targets(self) -> None:
        """Clears the cached verdicts on URLs, after a change of the policy."""
        for forget in self.verdicts:
            forget()

    def timer_id(self, text: str) -> str | None:
        """The id of a timer that may exist: 1 to `id_chars_max` characters, none of them a control character."""
        return text_reason(text, self.limits.id_chars_max)

    def new_timer_id(self, text: str) -> str | None:
        """The id of a timer that is created: like `timer_id`, and without invisible characters."""
        return new_text_reason(text, self.limits.id_chars_max)

    def namespace(self, text: str) -> str | None:
        """A namespace's name."""
        if NAME.match(text):
            return None
        return "is not a valid namespace name; use 1 to 255 of A-Z a-z 0-9 . _ : -"

    def callback_url(self, url: str, namespace: str = "") -> str | None:
        """A callback URL of the namespace: a URL of HTTP, or a NATS subject."""
        if self._subjects is not None and is_subject_url(url):
            return self._subjects.refusal(url, namespace)
        return self.url(url)

    def event_sink(self, url: str, namespace: str) -> str | None:
        """The sink of a namespace: a NATS subject below which its events are published."""
        if not is_subject_url(url):
            return "is not a NATS subject; write nats:// and a subject, such as nats://shop.events"
        if self._subjects is None:
            return (
                "names a NATS subject, and the server has no nats_url; set it and nats_targets, or leave the sink out"
            )
        if len(subject_of(url)) > SINK_CHARS_MAX:
            return f"is too long; types of events are added to its subject, which can have {SINK_CHARS_MAX} characters"
        return self._subjects.refusal(url, namespace)

    def url(self, url: str) -> str | None:
        """A URL of HTTP: absolute, http or https, and allowed by the egress policy."""
        if len(url) > self.limits.url_chars_max:
            return f"is {len(url)} characters long; at most {self.limits.url_chars_max} are accepted"
        return self._url_verdict(url)

    def _judge_url(self, url: str) -> str | None:
        if not url:
            return "is empty; give an absolute URL such as https://example.com/hook"
        if has_sealed(url):
            return LOOKS_SEALED
        if not _URL_CHARACTERS.match(url):
            return "has spaces, control characters or characters beyond ASCII; percent-encode them"
        return self._check_target(url)

    def method(self, method: str) -> str | None:
        """The HTTP method of the callback, in upper case."""
        if method in METHODS:
            return None
        return f"is not a supported method; use one of {', '.join(METHODS)}"

    def payload(self, text: bytes) -> str | None:
        """The size and nesting depth of a payload's JSON text as sent. The decoder has checked that it is JSON."""
        limits = self.limits
        if len(text) > limits.payload_bytes_max:
            return f"is {len(text)} bytes long; at most {limits.payload_bytes_max} are accepted"
        if is_deeper_than(text, limits.payload_depth_max):
            return f"is nested too deeply; at most {limits.payload_depth_max} levels are accepted"
        return None

    def raw_size(self, size: int) -> str | None:
        """The size of a raw body in bytes, as it is sent."""
        if size <= self.limits.payload_bytes_max:
            return None
        return f"is {size} bytes long as sent; at most {self.limits.payload_bytes_max} are accepted"

    def content_type(self, text: str) -> str | None:
        """The content type of a raw body."""
        if len(text) <= CONTENT_TYPE_CHARS_MAX and _MEDIA_TYPE.match(text):
            return None
        return (
            f"is not a media type of at most {CONTENT_TYPE_CHARS_MAX} characters; write it like text/plain or "
            "application/xml; charset=utf-8"
        )

    def headers(self, headers: dict[str, str], path: str) -> list[FieldError]:
        """A timer's own headers of the callback."""
        limits = self.limits
        if len(headers) > self._headers_max:
            # Checking each one would spend time on hostile input.
            return [FieldError(path, f"has {len(headers)} entries; at most {self._headers_max} are accepted")]
        errors = []
        names: set[str] = set()
        for name, value in headers.items():
            reason = self._header_reason(name, value)
            if reason is None and folded(name) in names:
                reason = "is a duplicate: header names differ neither by case nor by _ for -, so give each once"
            names.add(folded(name))
            if reason is not None:
                errors.append(FieldError(f"{path}.{name[: limits.header_name_chars_max]}", reason))
        total = sum(len(name) + len(value) for name, value in headers.items())
        if total > self._header_bytes_max and not errors:
            errors.append(
                FieldError(path, f"has {total} bytes in total; at most {self._header_bytes_max} are accepted")
            )
        return errors

    def _header_reason(self, name: str, value: str) -> str | None:
        limits = self.limits
        if len(name) > limits.header_name_chars_max or not _HEADER_NAME.match(name):
            return f"is not a header name; use 1 to {limits.header_name_chars_max} letters, digits and hyphens"
        if is_reserved_header(name):
            return "is a reserved header, which only Tocsin itself may set; leave it out"
        if len(value) > limits.header_value_chars_max:
            return f"has a value of {len(value)} characters; at most {limits.header_value_chars_max} are accepted"
        if not _HEADER_VALUE.match(value):
            return "has a value with control characters, line breaks or characters beyond ASCII; remove or encode them"
        if value != value.strip():
            return "has a value with leading or trailing white space; remove it"
        return f"has a value that {LOOKS_SEALED}" if has_sealed(value) else None

    def new_tags(self, tags: list[str], path: str) -> list[FieldError]:
        """The tags of a timer that is created or changed."""
        return self._tags(tags, path, new_text_reason)

    def tags(self, tags: list[str], path: str) -> list[FieldError]:
        """Tags that an existing timer may have."""
        return self._tags(tags, path, text_reason)

    def _tags(self, tags: list[str], path: str, judge: Callable[[str, int], str | None]) -> list[FieldError]:
        limits = self.limits
        if len(tags) > limits.tags_max:
            return [FieldError(path, f"has {len(tags)} entries; at most {limits.tags_max} are accepted")]
        errors = []
        seen: set[str] = set()
        for position, tag in enumerate(tags):
            reason = judge(tag, limits.tag_chars_max)
            if reason is None and tag in seen:
                reason = "is a duplicate; give each tag once"
            seen.add(tag)
            if reason is not None:
                errors.append(FieldError(f"{path}[{position}]", reason))
        return errors

    def callback_timeout(self, timeout_us: float) -> str | None:
        """How long one attempt may take."""
        low, high = self.limits.callback_timeout_min_us, self.limits.callback_timeout_max_us
        if low <= timeout_us <= high:
            return None
        return f"is out of range; give {low / 1e6:g} to {high / 1e6:g} seconds"

    def instant(self, instant_us: int, now_us: int) -> str | None:
        """The instant at which a timer is due."""
        earliest, latest = now_us - self.limits.execute_past_max_us, now_us + self.limits.execute_ahead_max_us
        if instant_us < earliest:
            shown = earliest + -earliest % US_PER_SECOND
            return f"is too far in the past; the earliest instant accepted now is {format_instant(shown)}"
        if instant_us > latest:
            shown = latest - latest % US_PER_SECOND
            return f"is too far ahead; the latest instant accepted now is {format_instant(shown)}"
        return None

    def delay(self, delay_us: int) -> str | None:
        """The time from now until a timer is due."""
        if delay_us <= self.limits.execute_ahead_max_us:
            return None
        return f"is too long; at most {format_duration(self.limits.execute_ahead_max_us)} is accepted"

    def expire_after(self, expire_after_us: int) -> str | None:
        """How long after its instant an attempt of a timer may begin."""
        low, high = self.limits.expire_after_min_us, self.limits.execute_ahead_max_us
        if low <= expire_after_us <= high:
            return None
        return f"is out of range; give {format_duration(low)} to {format_duration(high)}"

    def retry(self, policy: RetryPolicy, path: str) -> list[FieldError]:
        """The ranges of a retry policy's members, and that its intervals fit together."""
        limits, errors = self.limits, []

        def refuse(field: str, reason: str) -> None:
            errors.append(FieldError(f"{path}.{field}", reason))

        if not 1 <= policy.max_attempts <= limits.attempts_max:
            refuse("maxAttempts", f"is out of range; give 1 to {limits.attempts_max}, the first attempt included")
        if not 1 <= policy.backoff_multiplier <= limits.backoff_multiplier_max:
            refuse("backoffMultiplier", f"is out of range; give 1 to {limits.backoff_multiplier_max:g}")
        longest = limits.retry_duration_max_us
        for field, duration_us in (
            ("maxAttemptsDuration", policy.max_duration_us),
            ("initialInterval", policy.initial_interval_us),
            ("maxInterval", policy.max_interval_us),
        ):
            if duration_us is not None and not 0 < duration_us <= longest:
                refuse(field, f"must be greater than zero and at most {format_duration(longest)}")
        if policy.max_interval_us < policy.initial_interval_us:
            initial = format_duration(policy.initial_interval_us)
            refuse("maxInterval", f"is shorter than initialInterval; give at least {initial}")
        return errors

    def num_shards(self, num_shards: int) -> str | None:
        """The number of shards of a namespace. The service checks it against the store's number of shards."""
        if 1 <= num_shards <= self.limits.num_shards_max:
            return None
        return f"is out of range; give 1 to {self.limits.num_shards_max}"

    def retention(self, retention_us: int) -> str | None:
        """How long finished timers stay visible."""
        if retention_us <= self.limits.retention_max_us:
            return None
        return f"is too long; at most {format_duration(self.limits.retention_max_us)} is accepted"

    def secret(self, secret: str) -> str | None:
        """A Standard Webhooks secret: `whsec_` and the base64 of 24 to 64 random bytes."""
        try:
            size = len(base64.b64decode(secret.removeprefix("whsec_"), validate=True))
        except (binascii.Error, ValueError):
            size = 0
        if secret.startswith("whsec_") and 24 <= size <= 64:
            return None
        return "is not a signing secret; write whsec_ and the base64 of 24 to 64 random bytes"

    def list_limit(self, limit: int) -> str | None:
        """Timers on one page."""
        if 1 <= limit <= self.limits.list_rows_max:
            return None
        return f"is out of range; give 1 to {self.limits.list_rows_max}"

    def cursor(self, cursor: str) -> str | None:
        """The form of a cursor. The service checks that a list returned it."""
        return text_reason(cursor, self.limits.cursor_chars_max)


def is_deeper_than(json_text: bytes, depth_max: int) -> bool:
    """Whether well-formed JSON has more than `depth_max` nested levels of arrays and objects."""
    # Each level has two brackets.
    if len(json_text) <= 2 * depth_max:
        return False
    if json_text.count(b"[") + json_text.count(b"{") <= depth_max:
        return False
    brackets = _STRING.sub(b"", json_text).translate(None, _NOT_BRACKETS)
    return max(accumulate(map(_LEVELS.__getitem__, brackets)), default=0) > depth_max


def text_reason(text: str, chars_max: int) -> str | None:
    """The reason why a text is refused: it must have 1 to `chars_max` characters, none of them a control character."""
    if not text:
        return f"is empty; give 1 to {chars_max} characters"
    if len(text) > chars_max:
        return f"is {len(text)} characters long; at most {chars_max} are accepted"
    # isprintable() is fast, but also false for some others, such as unassigned characters, so only its True is conclusive.
    if not text.isprintable() and _CONTROL.search(text):
        return "has control characters; remove them"
    return None


def new_text_reason(text: str, chars_max: int, keep: str = "") -> str | None:
    """The reason why a new text is refused: like `text_reason`, and without invisible characters other than `keep`."""
    if text.isascii() and text.isprintable() and 0 < len(text) <= chars_max:
        return None
    reason = text_reason(text, chars_max)
    if reason is None and (letter := hidden_in(text, keep)) is not None:
        return f"has the invisible character {named(letter)}; remove it"
    return reason


def new_name_reason(text: str, chars_max: int) -> str | None:
    """The reason why a new display name is refused: like `new_text_reason`, with joiners allowed between letters or emoji."""
    reason = new_text_reason(text, chars_max, JOINERS)
    if reason is None and not text.strip(JOINERS):
        return "has only invisible characters; use at least one visible character"
    return reason
