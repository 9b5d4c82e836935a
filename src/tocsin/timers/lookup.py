"""Finds timers and schedules by what people paste: an id or its beginning, a UUID, or the webhook-id of a callback."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence

from tocsin.model.ids import schedule_uuid, timer_uuid
from tocsin.model.timer import Status
from tocsin.timers.listing import IdListRequest, ListRequest, TimerView
from tocsin.timers.service import TimerService

#: Namespaces, the first by name, in which a timer or schedule is looked for by its id. In each, both cost one read by key.
NAMESPACES_MAX = 200
#: Namespaces in which schedules are looked for by the beginning of their ids. Each costs one read along their index.
PREFIX_NAMESPACES_MAX = 20
#: Pending timers, the first due, among which some are looked for by the beginning of their ids: no index has these.
PREFIX_ROWS_MAX = 5_000

_MESSAGE = re.compile(r"msg_([0-9a-f]{32})_")
_UUID = re.compile(r"([0-9a-f]{8})-([0-9a-f]{4})-([0-9a-f]{4})-([0-9a-f]{4})-([0-9a-f]{12})\Z")


def uuid_in(text: str) -> bytes | None:
    """The UUID of a timer or schedule that the text is, or that it contains as a webhook-id; None without one."""
    found = _MESSAGE.match(text) or _UUID.match(text.lower())
    return None if found is None else bytes.fromhex("".join(found.groups()))


async def look_up(service: TimerService, namespaces: Sequence[str], text: str, limit: int) -> list[TimerView]:
    """The timers and schedules in these namespaces that the text names, at most `limit`: first those with exactly this id or
    UUID, pending or finished; then live ones whose ids begin with it, as far as bounded reads find them. Raises
    Unavailable."""
    names, uuid = namespaces[:NAMESPACES_MAX], uuid_in(text)
    wanted = [(name, of(name, text)) for name in names for of in (timer_uuid, schedule_uuid)]
    if uuid is not None:
        # The text does not show whose it is.
        wanted += [(name, uuid) for name in names]
    exact = await service.get_by_uuids(wanted)
    pending = ListRequest(
        tuple(namespaces),
        frozenset({Status.PENDING}),
        id_prefix=text,
        limit=limit,
        reads_max=1,
        scan_rows_max=PREFIX_ROWS_MAX,
    )
    beginning = IdListRequest(text, limit, text, reads_max=1)
    (timers, _), *schedules = await asyncio.gather(
        service.list(pending),
        *(service.list_schedules(name, beginning, _unchanged) for name in names[:PREFIX_NAMESPACES_MAX]),
    )
    found = {view.uuid: view for view in [*exact, *timers, *(view for views, _ in schedules for view in views)]}
    return [*found.values()][:limit]


def _unchanged(view: TimerView) -> TimerView:
    return view
