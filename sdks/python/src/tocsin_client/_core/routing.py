"""Which node owns a timer. A wrong answer costs time, never correctness: any node forwards."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from tocsin_client._core.answers import read_answer
from tocsin_client._core.ids import shard_of
from tocsin_client._core.steps import Outcome, Reply, Steps
from tocsin_client._error_bases import ApiError, ServerError, TransportError
from tocsin_client._forks import renew_after_fork

if TYPE_CHECKING:
    from tocsin_client._core.session import Call

_log = logging.getLogger("tocsin_client")

RENEWED_EVERY_S = 30.0
RENEWAL_JITTER = 0.2
#: After a sign that the map is wrong it is read again, at most this often.
RENEWALS_APART_S = 1.0
#: So long a node that failed gets no requests.
AVOIDED_FOR_S = 5.0


class Place(NamedTuple):
    """The timer that a request writes."""

    namespace: str
    timer_id: str


@dataclass(frozen=True)
class OwnerMap:
    """The shards' owners, as a node sees them: a base URL for each shard, None where only the given URL serves."""

    total_shards: int
    urls: tuple[str | None, ...]
    num_shards: Mapping[str, int]


Read: TypeAlias = "Callable[[Call], Steps[Reply | ApiError | TransportError]]"


class Router:
    """Reads the map when a write needs it, and forgets it as soon as something contradicts it."""

    def __init__(self, base: str, monotonic: Callable[[], float], uniform: Callable[[], float]) -> None:
        self._base = base
        self._monotonic = monotonic
        self._uniform = uniform
        self._map: OwnerMap | None = None
        self._etag: str | None = None
        #: When the map is read next; 0: before the first write.
        self._due = 0.0
        self._read_at = float("-inf")
        self._reading = False
        self._avoided: dict[str, float] = {}
        self.enabled: bool = True
        renew_after_fork(self)

    def renew_in_child(self) -> None:
        """Who was reading the map reads on in the parent."""
        self._reading = False

    def base_for(self, place: Place, read: Read) -> Steps[str]:
        """The URL of the node to send this write to."""
        if self.enabled and not self._reading and self._monotonic() >= self._due:
            self._reading = True
            try:
                yield from self._renew(read)
            finally:
                self._reading = False
        return self.url_of(place)

    def url_of(self, place: Place) -> str:
        """By the present map: the owner's URL, or the client's own where no owner is known or it failed recently."""
        if not self.enabled or self._map is None or place.namespace not in self._map.num_shards:
            return self._base
        shard = shard_of(*place, self._map.num_shards[place.namespace], self._map.total_shards)
        url = self._map.urls[shard]
        if url is None or self._avoided.get(url, float("-inf")) > self._monotonic():
            return self._base
        return url

    def observe(self, base: str, outcome: Outcome) -> None:
        """What became of a write that was sent to this node."""
        if isinstance(outcome, Reply):
            failed = outcome.status == 503
            stale = failed or outcome.headers.get("tocsin-forwarded") == "1"
        else:
            failed = stale = True
        if failed and base != self._base:
            self._avoided[base] = self._monotonic() + AVOIDED_FOR_S
        if stale and (base != self._base or isinstance(outcome, Reply)):
            self._due = min(self._due, max(self._monotonic(), self._read_at + RENEWALS_APART_S))

    def check(self, place: Place, shard_id: int) -> None:
        """Switches routing off if the server stores timers elsewhere than this version reckons."""
        if not self.enabled or self._map is None or place.namespace not in self._map.num_shards:
            return
        if shard_of(*place, self._map.num_shards[place.namespace], self._map.total_shards) != shard_id:
            self._disable("the server stores timers in other shards than this version expects")

    def _disable(self, reason: str) -> None:
        self.enabled = False
        _log.warning("owner routing is off: %s; all requests go to %s", reason, self._base)

    def _renew(self, read: Read) -> Steps[None]:
        from tocsin_client._core.session import Call

        self._read_at = self._monotonic()
        condition = {} if self._etag is None else {"if-none-match": self._etag}
        view = yield from read(Call("getCluster", query={"view": "owners"}, headers=condition))
        names = yield from read(Call("listNamespaces", body={}))
        spread = 1 + RENEWAL_JITTER * (2 * self._uniform() - 1)
        self._due = self._monotonic() + RENEWED_EVERY_S * spread
        if isinstance(view, ApiError) and view.status in (400, 403, 404):
            self._disable(f"the owners of shards can't be read: {view}")
        elif not isinstance(view, Reply) or not isinstance(names, Reply):
            self._due = self._monotonic() + RENEWALS_APART_S
        else:
            try:
                numbers = read_answer(names, _num_shards)
                if view.status == 304 and self._map is not None:
                    self._map = OwnerMap(self._map.total_shards, self._map.urls, numbers)
                else:
                    self._map = read_answer(view, lambda owners: _map_of(owners, numbers))
                    self._etag = view.headers.get("etag")
            except ServerError as foreign:
                self._disable(f"the owners of shards can't be read: {foreign}")


def _num_shards(answer: Mapping[str, Any]) -> dict[str, int]:
    return {each["name"]: each["numShards"] for each in answer["namespaces"]}


def _map_of(view: Mapping[str, Any], num_shards: Mapping[str, int]) -> OwnerMap:
    """Nodes that are dead, leaving or skewed, or whose URL is not theirs alone, are asked through the client's own URL.
    ValueError: an owner is not among the nodes, or shards are missing."""
    given = [node.get("apiUrl") for node in view["nodes"]]
    urls = [
        url.rstrip("/")
        if url and given.count(url) == 1 and node["alive"] and not node["leaving"] and not node["skewed"]
        else None
        for url, node in zip(given, view["nodes"], strict=True)
    ]
    total_shards, owners = view["totalShards"], view["owners"]
    if len(owners) != total_shards or not all(owner is None or 0 <= owner < len(urls) for owner in owners):
        raise ValueError("the owners are not those of all shards")
    return OwnerMap(total_shards, tuple(None if owner is None else urls[owner] for owner in owners), num_shards)
