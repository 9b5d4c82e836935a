"""Heads of requests on the direct path. A client sends nearly the same head with every request, so that one which came before
need not be parsed and checked again."""

from __future__ import annotations

from tocsin.web.api.routes import Route
from tocsin.web.http.errors import Headers
from tocsin.web.http.hosts import headers_by_name

#: The end of a head.
HEAD_END = b"\r\n\r\n"
#: Heads kept: a few for each client library and key, since a head contains the body's length. The oldest one is dropped.
HEADS_MAX = 1_024
#: Bytes of a head that is kept.
HEAD_BYTES_MAX = 1_024
#: Headers that differ from request to request. A head with one of them would not come again.
_PER_REQUEST = frozenset({b"idempotency-key", b"traceparent", b"tracestate", b"x-correlation-id", b"x-request-id"})


class Head:
    """The head of a complete request on the direct path: its route, all headers as they were sent, and one of each name.
    `accepted`: what depends on the head alone has been checked. The key's validity does not: it may end at any time."""

    __slots__ = ("accepted", "body_bytes", "headers", "route", "sent")

    def __init__(self, route: Route, sent: Headers, body_bytes: int) -> None:
        self.route = route
        self.sent = sent
        self.headers = headers_by_name(sent)
        self.body_bytes = body_bytes
        self.accepted = False


class KnownHeads:
    """The heads of earlier requests, by their exact bytes. The parser is deterministic: between two requests of a connection,
    the same bytes mean the same request."""

    def __init__(self) -> None:
        self._heads: dict[bytes, Head] = {}

    def __len__(self) -> int:
        return len(self._heads)

    def find(self, data: bytes) -> Head | None:
        """The head of `data`, if it is known and `data` is exactly one request."""
        end = data.find(HEAD_END) + len(HEAD_END)
        head = self._heads.get(data[:end])
        return head if head is not None and len(data) == end + head.body_bytes else None

    def learn(self, data: bytes, head: Head) -> None:
        """Keeps the head, which was parsed from `data`, if it was accepted and may come again."""
        end = data.find(HEAD_END) + len(HEAD_END)
        if (
            head.accepted
            and end <= HEAD_BYTES_MAX
            and len(data) == end + head.body_bytes
            and _PER_REQUEST.isdisjoint(head.headers)
        ):
            if len(self._heads) >= HEADS_MAX:
                del self._heads[next(iter(self._heads))]
            self._heads[data[:end]] = head
