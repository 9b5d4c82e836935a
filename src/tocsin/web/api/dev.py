"""The API of `tocsin dev`: besides what every server has, the operations on its clock. No other server knows their paths,
and no document lists them."""

from __future__ import annotations

from functools import partial

from msgspec import UNSET, UnsetType

from tocsin.model.access import Role
from tocsin.model.errors import FieldError, InvalidInput
from tocsin.model.instants import format_duration, format_instant, parse_duration
from tocsin.ports.clock import AdvanceMode, ClockMover
from tocsin.web.api.app import Api
from tocsin.web.api.operation import Operation, Reach
from tocsin.web.api.request import ApiRequest
from tocsin.web.api.routes import Route
from tocsin.web.http.errors import Response
from tocsin.web.http.instants import parse_instant
from tocsin.web.http.wire import RequestStruct, ResponseStruct

#: The header with the instant that the clock shows.
NOW_HEADER = b"tocsin-now"

_operation = partial(Operation, role=Role.ADMIN, reach=Reach.SERVICE)


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


class DevHandlers:
    """Reads and moves the clock."""

    def __init__(self, clock: ClockMover) -> None:
        self._clock = clock

    @_operation("getClock", "/api/v1/dev/clock/get", body_optional=True)
    async def get(self, request: ApiRequest, sent: GetClock) -> DevClock:
        """What the clock shows."""
        reading = self._clock.read()
        return DevClock(format_instant(reading.now_us), format_duration(reading.offset_us))

    @_operation("advanceClock", "/api/v1/dev/clock/advance")
    async def advance(self, request: ApiRequest, sent: AdvanceClock) -> AdvancedClock:
        """Moves the clock forward. The response is sent when it is there; in mode `step` all that fell due on the way has
        been done by then."""
        by_us, to_us = _how_far(sent)
        reading, steps = await self._clock.advance(sent.mode, by_us=by_us, to_us=to_us)
        return AdvancedClock(format_instant(reading.now_us), format_duration(reading.offset_us), steps)


class DevApi(Api):
    """The API of a server whose clock can be moved. Each answer has what the clock shows, for clients that print how far away
    an instant is."""

    def response(self, route: Route, request: ApiRequest, result: object) -> Response:
        response = super().response(route, request, result)
        response.headers.append((NOW_HEADER, format_instant(self._clock.now_us()).encode()))
        return response


def _how_far(sent: AdvanceClock) -> tuple[int | None, int | None]:
    """The duration by which, or the instant to which, in microseconds."""
    if (sent.by is UNSET) == (sent.to is UNSET):
        raise InvalidInput(FieldError("", "send exactly one of by, such as 3d, and to, such as 2027-01-31T12:00:00Z"))
    try:
        if isinstance(sent.by, str):
            return parse_duration(sent.by), None
        return None, parse_instant(str(sent.to))
    except ValueError as error:
        raise InvalidInput(FieldError("to" if sent.by is UNSET else "by", str(error))) from None
