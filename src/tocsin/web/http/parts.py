"""What the API and the pages of a node are made of alike."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from typing import Any

from tocsin.model.validation import InputRules
from tocsin.ports.audit import AuditExport, AuditLog, NoAudit
from tocsin.ports.clock import Clock
from tocsin.ports.credentials import PublishedKeys
from tocsin.ports.inbox import NodeInbox
from tocsin.ports.records import Records
from tocsin.statistics.reading import StatisticsReader
from tocsin.timers.jobs import Jobs
from tocsin.timers.service import TimerService
from tocsin.web.http.access import AuthFailures, Keyring
from tocsin.web.http.errors import Headers
from tocsin.web.http.hosts import Hosts, Proxies

Scope = MutableMapping[str, Any]
#: Another node's response: status, headers, body. None: no node serves the path.
Relayed = tuple[int, Headers, bytes] | None
#: Relays a request (method, target as sent, headers, body, client address) to the node that serves it. Raises Unavailable.
Relay = Callable[[str, bytes, Headers, bytes, str], Awaitable[Relayed]]

#: Headers that the relaying node sends itself.
_REPLACED = (b"x-correlation-id", b"x-forwarded-proto")


async def relay_request(
    relay: Relay, scope: Scope, body: bytes, correlation_id: str, client: str, *, secure: bool = False
) -> Relayed:
    """The response of the node that serves a request, which gets it as it was sent, with the correlation id. `secure`: the
    client uses https, as this node knows it; the other node, to which no proxy connects, learns it by X-Forwarded-Proto.
    Raises Unavailable."""
    headers = [(name, value) for name, value in scope["headers"] if name not in _REPLACED]
    headers.append((b"x-correlation-id", correlation_id.encode()))
    if secure:
        headers.append((b"x-forwarded-proto", b"https"))
    target, query = scope.get("raw_path") or scope["path"].encode(), scope["query_string"]
    return await relay(scope["method"], target + (b"?" + query if query else b""), headers, body, client)


@dataclass(frozen=True, slots=True, kw_only=True)
class WebParts:
    """The use cases, the rules for what requests ask for, and who may ask. `hosts` are the hosts for which requests without a
    key are accepted. `statistics` has the numbers of all nodes. `records` has the labels of tenants; None: there are none.
    `relay` sends requests that need the service agent to the node that runs it; None: there is no other node, or no agent.
    `base_url` is where clients reach the API, if it is known. `seals`: secrets are encrypted before they are stored.
    `notices` are what people should know of a node that is ready. `inbox` None: there is none. `export` gets what requests
    change of timers, schedules and service calls, if something does. `signing_keys` are those of JWTs for receivers; None:
    there are none."""

    service: TimerService
    rules: InputRules
    clock: Clock
    keys: Keyring
    hosts: Hosts
    statistics: StatisticsReader
    jobs: Jobs
    proxies: Proxies = field(default_factory=Proxies)
    auth_failures: AuthFailures = field(default_factory=AuthFailures)
    audit: AuditLog = field(default_factory=NoAudit)
    records: Records | None = None
    relay: Relay | None = None
    base_url: str | None = None
    seals: bool = False
    notices: Callable[[], list[str]] = list
    inbox: NodeInbox | None = None
    export: AuditExport | None = None
    signing_keys: PublishedKeys | None = None
