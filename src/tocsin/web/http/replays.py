"""The HTTP request to fire finished timers again."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, UnsetType

from tocsin.web.http import constraints as limits
from tocsin.web.http.wire import Delay, ExecuteAt, NamespaceName, RequestStruct, about

#: Timers of one replay, as many as of a batch.
REPLAYED_MAX = 1_000


class ReplayTimers(RequestStruct):
    """Finished timers to fire again, at once unless `executeAt` or `delay` is given. Send at most one of these."""

    namespace: NamespaceName
    ids: Annotated[
        list[str],
        about("Ids of timers.", ["order-17-reminder"]),
        limits.Constraint({"minItems": 1, **limits.unique(REPLAYED_MAX, limits.ID.schema).schema}),
    ]
    execute_at: ExecuteAt | UnsetType = UNSET
    delay: Delay | UnsetType = UNSET
    set_url: Annotated[
        str | UnsetType,
        about(
            "The http or https URL to call from now on, instead of each timer's own.",
            "https://shop.example/hooks/reminder",
        ),
        limits.CALLBACK_URL,
    ] = UNSET
    set_headers: Annotated[
        dict[str, str] | None | UnsetType,
        about(
            "Additional headers of the callback from now on, instead of each timer's own; null: none. The value "
            "[redacted] keeps the timer's stored value."
        ),
        limits.HEADERS,
    ] = UNSET
