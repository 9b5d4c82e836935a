"""The preview of a schedule: when it runs, in words, and its next instants."""

from __future__ import annotations

from dataclasses import dataclass

from tocsin.model.schedule import Definition, instants
from tocsin.web.http.schedules import sentence
from tocsin.web.pages.schedules.presentation import ZonedInstant, zoned

#: Instants that a preview lists: enough to see a week.
_INSTANTS = 7


@dataclass(frozen=True, slots=True)
class Preview:
    """The next instants of a definition, with the time of `zone`. `ends`: there are no more."""

    words: str
    zone: str
    instants: list[ZonedInstant]
    ends: bool


def preview(definition: Definition, uuid: bytes, zone: str, created_at: int, now_us: int) -> Preview:
    """The preview of a valid definition; intervals without an anchor count from `created_at`."""
    wanted = min(_INSTANTS, definition.occurrences_max or _INSTANTS)
    found = list(instants(definition, uuid, now_us, wanted + 1, created_at=created_at))
    ends = len(found) <= wanted or definition.occurrences_max == wanted
    return Preview(sentence(definition), zone, zoned(found[:wanted], zone), ends)
