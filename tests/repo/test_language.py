"""The words of the project: those of the field, not a vocabulary of its own."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from .test_tidy import TEXTS, read

#: Words that once had a meaning of their own here, each with the field's word. They count as parts of identifiers, too.
WORDS = {
    "parked": "suspended",
    "park": "suspend",
    "parking": "suspension",
    "adrift": "orphaned",
    "ring": "fire, call, invoke",
    "rings": "fires, calls, invokes",
    "ringing": "firing",
    "rang": "fired, called",
    "rung": "fired, called",
    "intake": "request parser",
    "visit": "request context, page view",
    "visits": "request contexts, walks over",
    "visitor": "principal, user",
    "shun": "back off",
    "shunned": "backing off",
    "stranger": "unauthenticated peer",
    "strangers": "unauthenticated peers",
    "poke": "schedule, wake",
    "pump": "dispatch",
    "tell": "notify, report, distinguish",
    "told": "notified, reported",
    "tells": "notifies, reports, indicates",
    "say": "report, state, mean",
    "says": "reports, states, means",
    "said": "reported, stated, meant",
    "hear": "receive, learn",
    "hears": "receives, learns",
    "heard": "received, learned",
    "octet": "byte",
    "octets": "bytes",
    "nought": "zero",
    "anew": "again, starts over",
    "figures": "statistics, numbers",
    "gathered": "collected",
    "pulse": "change counter",
    "pulses": "change counters",
}
#: The same, where a phrase is meant.
PHRASES = {
    r"\bset(s|ting)? aside\b": "deferred, suspended",
    r"(?<!\bin[ _-])\bflights?\b": "in-flight attempt",
    r"\b(fail(s|ed)?|answered|ended) for good\b": "failed, finished",
    r"\bfor ever\b": "without end",
    r"\b99 of 100\b": "p99",
    r"\bgreat account\b": "end-to-end ledger check",
    r"\bmeaning_of\b": "translate_error",
}


class Kept(NamedTuple):
    """A use that stays: that word in files whose path begins so, and why."""

    path: str
    word: str
    reason: str


_MEDIA_TYPE = "the media type application/octet-stream, or SQL's octet_length"

KEPT = (
    Kept("src/tocsin/stores/", "octet", _MEDIA_TYPE),
    Kept("src/tocsin/", "octet", _MEDIA_TYPE),
    Kept("docs/reference/", "octet", _MEDIA_TYPE),
    Kept("scripts/openapi/", "octet", _MEDIA_TYPE),
    Kept("sdks/", "octet", _MEDIA_TYPE),
    Kept("integrations/", "octet", _MEDIA_TYPE),
    Kept("tests/", "octet", _MEDIA_TYPE),
    Kept("src/tocsin/model/ids.py", "ring", "the hash ring of shards"),
)

_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_PHRASES = {phrase: re.compile(phrase, re.IGNORECASE) for phrase in PHRASES}
#: The first words of the README.
_SLOGAN = re.compile(r"tell it when; it fires", re.IGNORECASE)
_THIS = Path("tests/repo/test_language.py")


def found(path: Path) -> Counter[str]:
    """How often each word occurs in the file, except where it is kept."""
    text = _SLOGAN.sub("", read(path))
    counts = Counter(part.lower() for part in _PARTS.findall(text) if part.lower() in WORDS)
    counts.update({phrase: len(pattern.findall(text)) for phrase, pattern in _PHRASES.items()})
    for kept in KEPT:
        if str(path).startswith(kept.path):
            del counts[kept.word]
    return +counts


def test_the_fields_words_are_used() -> None:
    wrong = [
        f"{path}: {word!r} {count} times; write {WORDS.get(word) or PHRASES[word]}"
        for path in TEXTS
        if path != _THIS and path.suffix not in {".lock", ".txt", ".json"}
        for word, count in found(path).items()
    ]
    assert wrong == []


def test_every_exception_is_still_needed() -> None:
    for kept in KEPT:
        paths = [path for path in TEXTS if str(path).startswith(kept.path)]
        assert any(kept.word in map(str.lower, _PARTS.findall(read(path))) for path in paths), kept
