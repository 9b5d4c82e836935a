"""Periods of monitors that have ended, and how they are stored."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from tocsin.model.json_record import JsonRecord


class PeriodStatus(StrEnum):
    """How a period ended. `late`: after its deadline; `missed`: without a report; `excused`: late, or without a report,
    while Tocsin could not take it."""

    ON_TIME = "onTime"
    LATE = "late"
    MISSED = "missed"
    FAILED = "failed"
    EXCUSED = "excused"


class Period(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A period that has ended, as it is kept. With `periods` it stands for several without a report, `expected_at` being the
    first. `body` is what the ping sent, without secrets."""

    expected_at: int
    deadline: int
    state: PeriodStatus
    started_at: int | None = None
    ended_at: int | None = None
    exit_code: int | None = None
    body: str | None = None
    note: str | None = None
    periods: int = 1


_stored = JsonRecord(Period)
encode_period, decode_period = _stored.encode, _stored.decode
