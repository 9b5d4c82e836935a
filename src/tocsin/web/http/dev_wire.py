"""The structs of the operations that only `tocsin dev` has."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from tocsin.ports.clock import AdvanceMode
from tocsin.web.http.wire import RequestStruct, ResponseStruct


class AdvanceClock(RequestStruct):
    """How far the clock is to be moved: exactly one of `by`, a duration, and `to`, an instant."""

    by: str | UnsetType = UNSET
    to: str | UnsetType = UNSET
    mode: AdvanceMode = AdvanceMode.STEP


class GetClock(RequestStruct):
    """A request without fields."""


class DevClock(ResponseStruct):
    """The instant that the clock shows, and how far it is ahead of the machine's, as a duration."""

    now: str
    offset: str


class AdvancedClock(DevClock):
    """The same, with the number of instants at which it halted because something was due."""

    steps: int
