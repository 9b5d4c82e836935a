"""NATS subjects as targets of timers: `nats://orders.created`. What a namespace may publish is a setting."""

from __future__ import annotations

import re
from collections.abc import Iterable

from tocsin.model.namespace import NAME

SCHEME = "nats://"
#: Longer subjects are legal in NATS, but nobody needs them.
SUBJECT_CHARS_MAX = 255
#: The same of sinks, to whose subjects the types of events are added.
SINK_CHARS_MAX = SUBJECT_CHARS_MAX - 40
_SUBJECT = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")


def is_subject_url(url: str) -> bool:
    """Whether the URL names a NATS subject, valid or not."""
    return url[: len(SCHEME)].lower() == SCHEME


def subject_of(url: str) -> str:
    """The subject that the URL names."""
    return url[len(SCHEME) :]


def parse_target(entry: str) -> tuple[str, str]:
    """Namespace and subject of an entry `namespace=subject`. Raises ValueError."""
    namespace, _, subject = entry.partition("=")
    if not NAME.match(namespace) or not _is_subject(subject):
        raise ValueError(f"{entry!r} is not a namespace and a subject; write it as shop=orders")
    return namespace, subject


class SubjectTargets:
    """Which subjects the timers of a namespace may be published to: each that an entry `namespace=subject` names, and all
    below it. Subjects have letters, digits, `_` and `-` in tokens between dots: neither wildcards, nor `$JS` and the like."""

    def __init__(self, entries: Iterable[str] = ()) -> None:
        self._subjects: dict[str, list[str]] = {}
        for entry in entries:
            namespace, subject = parse_target(entry)
            self._subjects.setdefault(namespace, []).append(subject)

    def refusal(self, url: str, namespace: str) -> str | None:
        """Why the namespace's timers are not published to the URL's subject, phrased to follow the field's name; None if
        they are. Without a `namespace`, only the form is judged."""
        subject = subject_of(url)
        if not _is_subject(subject):
            return (
                f"is not a NATS subject; write nats:// and at most {SUBJECT_CHARS_MAX} characters: tokens of A-Z a-z 0-9 _ - "
                "with dots between them"
            )
        if not namespace or any(_is_below(subject, each) for each in self._subjects.get(namespace, ())):
            return None
        return (
            f"names a NATS subject to which timers of {namespace} are not published; nats_targets lists those that are"
        )


def _is_subject(text: str) -> bool:
    return len(text) <= SUBJECT_CHARS_MAX and _SUBJECT.fullmatch(text) is not None


def _is_below(subject: str, prefix: str) -> bool:
    return subject == prefix or subject.startswith(f"{prefix}.")
