"""What the first API key changes: a server without keys may call private addresses, one with keys only those that its
settings allow."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import NamedTuple

from tocsin.http_client.egress import EgressPolicy
from tocsin.http_client.target import parse_url
from tocsin.model.errors import RecordUndecodable
from tocsin.model.timer import decode_record
from tocsin.ports.forward import REFUSED
from tocsin.ports.store import KEY_MAX, KEY_MIN, Store, StoredRow
from tocsin.server.peers import loopback
from tocsin.service_calls.engine_timers import NAMESPACE
from tocsin.settings import Settings

#: Touched timers that are counted, and stored ones that are examined for it: enough to decide by, in a few seconds.
COUNTED_MAX, EXAMINED_MAX = 10_000, 200_000
#: Rows of one page.
_PAGE_ROWS = 1_000
#: Hosts that are named.
_HOSTS_SHOWN = 3


class Touched(NamedTuple):
    """The pending timers and schedules that the first key suspends: how many were found, the destinations of the first few,
    and whether there may be more."""

    found: int
    hosts: tuple[str, ...]
    more: bool


async def touched_by_first_key(store: Store, shards: int, settings: Settings) -> Touched:
    """Which pending timers the settings forbid to call once there is a key, by the texts of their URLs: an address or
    localhost is recognised, the name of another host isn't resolved. Raises StoreError."""
    count, hosts, examined = 0, dict[str, None](), 0
    reachable = any(not loopback(host) for host in (settings.host, *settings.origin_hosts()))
    if reachable or settings.egress.allow_private is not None:
        # The key changes nothing about what is called.
        return Touched(0, (), more=False)
    policy = EgressPolicy(allow=settings.egress.allow)
    async for row in _pending(store, shards):
        examined += 1
        if count >= COUNTED_MAX or examined > EXAMINED_MAX:
            return Touched(count, tuple(hosts), more=True)
        # One that is refused already is no different with a key.
        if row.namespace == NAMESPACE or row.suspended == REFUSED:
            continue
        try:
            url = decode_record(row.record).url
        except RecordUndecodable:
            continue
        if policy.check_url(url) is not None:
            count += 1
            if len(hosts) < _HOSTS_SHOWN:
                hosts[parse_url(url).origin.destination] = None
    return Touched(count, tuple(hosts), more=False)


async def _pending(store: Store, shards: int) -> AsyncIterator[StoredRow]:
    """The live rows of each shard, then its suspended ones, which wait for a namespace or a destination."""
    for shard_id in range(shards):
        for suspended in (False, True):
            after = KEY_MIN
            while after < KEY_MAX:
                page = await (
                    store.load_suspended(shard_id, after, _PAGE_ROWS)
                    if suspended
                    else store.load(shard_id, after, KEY_MAX, _PAGE_ROWS)
                )
                for row in page.rows:
                    yield row
                after = page.complete_to
