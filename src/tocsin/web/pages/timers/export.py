"""The filtered list as a file, streamed page by page from the store, so that memory use does not depend on its size."""

from __future__ import annotations

import asyncio
import csv
import io
import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace

import msgspec
from starlette.responses import Response, StreamingResponse

from tocsin.model.instants import format_instant
from tocsin.timers.service import ListRequest, TimerView
from tocsin.web.http import wire
from tocsin.web.http.convert import timer_answer
from tocsin.web.pages.context import RequestContext
from tocsin.web.pages.site import Part, Site, route
from tocsin.web.pages.timers.listing import ListFunction, TimerList

#: The columns, and the attributes of a timer as the API answers it: all but the attempts, which are many.
_COLUMNS = {
    field.encode_name: field.name for field in msgspec.structs.fields(wire.Timer) if field.name != "attempt_log"
}
#: Rows, and bytes of payloads, that are written before the event loop serves other tasks; at least one row.
_ROWS_PER_TURN = 50
_PAYLOAD_BYTES_PER_TURN = 512 * 1024
#: Bytes of records that an export has in memory while its client doesn't read, in addition to what is unsent.
_PAGE_BYTES_MAX = 1024 * 1024
#: Spreadsheets interpret cells that begin with these characters as formulas, which an id could inject.
_FORMULA = re.compile(r"[=+\-@\t\r]")


class TimerExport(Part):
    """CSV and JSON exports of a list."""

    def __init__(self, site: Site, lists: TimerList) -> None:
        super().__init__(site)
        self._lists = lists

    @route("GET", "/timers/export.csv")
    async def csv(self, context: RequestContext) -> Response:
        """One line per timer, after a header line."""
        return await self._file(context, "csv", "text/csv; charset=utf-8")

    @route("GET", "/timers/export.json")
    async def json(self, context: RequestContext) -> Response:
        """An array of timers in the format of the API."""
        return await self._file(context, "json", "application/json")

    async def _file(self, context: RequestContext, kind: str, media_type: str) -> Response:
        filters = replace(await self._lists.filters(context), cursor="", rows=self._limits.export_page_timers)
        request = replace(self._lists.request(context, filters), bytes_max=_PAGE_BYTES_MAX)
        lists = self._lists.lists_of(filters)
        # The first page is read before the response starts, so that an error can still set its status.
        views, cursor = await lists(request)
        body = (_csv if kind == "csv" else _json)(self._all(lists, request, views, cursor))
        name = f"timers-{filters.scope}-{format_instant(context.now_us)[:19].replace(':', '')}.{kind}"
        headers = {"content-disposition": f'attachment; filename="{name}"'}
        return StreamingResponse(body, media_type=media_type, headers=headers)

    async def _all(
        self, lists: ListFunction, request: ListRequest, views: list[TimerView], cursor: str | None
    ) -> AsyncIterator[list[TimerView]]:
        while True:
            for some in _turns(views):
                yield some
                await asyncio.sleep(0)
            if cursor is None:
                return
            # As many rows as have room if they are as large as these: reading more would be in vain.
            size = sum(map(_payload_chars, views))
            fitting = max(1, len(views) * _PAGE_BYTES_MAX // size) if size else request.limit
            views, cursor = await lists(replace(request, cursor=cursor, limit=min(request.limit, fitting)))


def _turns(views: list[TimerView]) -> Iterator[list[TimerView]]:
    """The rows in chunks; the event loop serves other tasks between them."""
    part: list[TimerView] = []
    left = _PAYLOAD_BYTES_PER_TURN
    for view in views:
        part.append(view)
        left -= _payload_chars(view)
        if left <= 0 or len(part) == _ROWS_PER_TURN:
            yield part
            part, left = [], _PAYLOAD_BYTES_PER_TURN
    if part:
        yield part


def _payload_chars(view: TimerView) -> int:
    return len(view.timer.payload) if view.timer.body is None else view.timer.body.form_chars


async def _json(pages: AsyncIterator[list[TimerView]]) -> AsyncIterator[bytes]:
    before = b"["
    async for views in pages:
        if views:
            yield before + b",\n".join(msgspec.json.encode(timer_answer(view)) for view in views)
            before = b",\n"
    yield b"[]\n" if before == b"[" else b"]\n"


async def _csv(pages: AsyncIterator[list[TimerView]]) -> AsyncIterator[bytes]:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(_COLUMNS)
    async for views in pages:
        answers = map(timer_answer, views)
        writer.writerows([cell(getattr(answer, name)) for name in _COLUMNS.values()] for answer in answers)
        yield text.getvalue().encode()
        text.seek(0)
        text.truncate()
    yield text.getvalue().encode()


def cell(value: object) -> object:
    """A cell as `tocsin timers import` reads it."""
    if value is msgspec.UNSET:
        return ""
    if isinstance(value, list):
        value = ";".join(value)
    elif isinstance(value, msgspec.Struct | msgspec.Raw | dict):
        value = msgspec.json.encode(value).decode() if value else ""
    if isinstance(value, str) and _FORMULA.match(value):
        return f"'{value}"
    return value
