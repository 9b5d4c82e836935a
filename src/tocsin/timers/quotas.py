"""Quotas of namespaces, where requests arrive: what this node admits, and what all nodes have used."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from itertools import islice
from typing import NamedTuple

import msgspec

from tocsin.model.errors import QuotaExceeded
from tocsin.model.quota import Quota
from tocsin.model.timer import RawBody, Timer
from tocsin.ports.forward import NodeReport
from tocsin.ports.quotas import QuotaRefused, QuotaUse
from tocsin.timers.engine.context import Context
from tocsin.timers.engine.quota_accounts import QuotaAccount

#: When to repeat a request whose payload is too large for the quota: it has to be another one, or the quota. So long that no
#: client waits for it.
_PAYLOAD_RETRY_AFTER_S = 3_600.0
#: Namespaces of which a node reports its use. Of further ones each node knows its own only.
_REPORTED_MAX = 10_000

Reports = Callable[[], Awaitable[Mapping[bytes, NodeReport]]]


class TotalUse(NamedTuple):
    """What the nodes that have answered have of a namespace together, as in `QuotaUse`. `complete`: these are all."""

    pending: int | None
    counted_at: int
    creates_per_second: float
    complete: bool


class QuotaGate:
    """Admits what clients create, where their requests arrive. Ask it only while the context has accounts."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def refusal(self, timer: Timer) -> QuotaExceeded | None:
        """Why the timer or schedule is not created; None if it is, and then it counts. How many timers are pending is checked
        by the owner of its shard."""
        account = self._context.quotas.get(timer.namespace)
        if account is None:
            return None
        refused = _payload_refusal(account, timer.payload, timer.body)
        if refused is not None:
            self._context.observe(QuotaRefused(timer.namespace, Quota.PAYLOAD_BYTES))
            return refused
        refused = account.refuse_create(self._context.clock.boottime_us())
        if refused is not None:
            self._context.observe(QuotaRefused(timer.namespace, Quota.CREATES_PER_SECOND))
        return refused

    def check_create(self, timer: Timer) -> None:
        """Raises QuotaExceeded."""
        if (refused := self.refusal(timer)) is not None:
            raise refused

    def check_payload(
        self, namespace: str, payload: msgspec.Raw | msgspec.UnsetType, body: RawBody | msgspec.UnsetType
    ) -> None:
        """Checks what an update sends. Raises QuotaExceeded."""
        account = self._context.quotas.get(namespace)
        if account is None:
            return
        sent = b"" if payload is msgspec.UNSET else payload
        refused = _payload_refusal(account, sent, None if body is msgspec.UNSET else body)
        if refused is not None:
            self._context.observe(QuotaRefused(namespace, Quota.PAYLOAD_BYTES))
            raise refused


def _payload_refusal(account: QuotaAccount, payload: msgspec.Raw | bytes, body: RawBody | None) -> QuotaExceeded | None:
    quota = account.quotas.payload_bytes
    if quota is None:
        return None
    size = len(bytes(payload)) if body is None else len(body.sent())
    if size <= quota:
        return None
    return QuotaExceeded(
        f"the {'payload' if body is None else 'body'} has {size} bytes; the quota {Quota.PAYLOAD_BYTES} of namespace "
        f"{account.namespace.name!r} allows {quota}; nothing was written; send less, or have the quota raised "
        "(namespaces/update)",
        retry_after_s=_PAYLOAD_RETRY_AFTER_S,
    )


def reported_use(context: Context) -> dict[str, QuotaUse]:
    """What this node has of namespaces with quotas, for its report."""
    boot_us = context.clock.boottime_us()
    return {name: account.use(boot_us) for name, account in islice(context.quotas.items(), _REPORTED_MAX)}


async def use_of(context: Context, name: str, reports: Reports, nodes: int) -> TotalUse | None:
    """What all nodes that answer in time have of a namespace, with `nodes` other living ones; None if it has no quotas."""
    account = context.quotas.get(name)
    if account is None:
        return None
    others = [report.quotas[name] for report in (await reports()).values() if name in report.quotas]
    return _together([account.use(context.clock.boottime_us()), *others], complete=len(others) >= nodes)


def _together(uses: list[QuotaUse], *, complete: bool) -> TotalUse:
    pending = [use.pending for use in uses]
    known = [each for each in pending if each is not None]
    return TotalUse(
        sum(known) if len(known) == len(pending) else None,
        min((use.counted_at for use in uses if use.counted_at), default=0),
        sum(use.creates_per_second for use in uses),
        complete,
    )


async def exchange_quotas(context: Context, reports: Reports, nodes: Callable[[], int]) -> None:
    """Has this node know, every few seconds, what the other living nodes, of which there are `nodes`, have of the quotas.
    Never returns."""
    while True:
        await asyncio.sleep(context.limits.quota_exchange_interval_us / 1e6)
        if context.quotas:
            take_over(context, await reports(), nodes())


def take_over(context: Context, reports: Mapping[bytes, NodeReport], nodes: int) -> None:
    """Takes over what the other living nodes report. What one has not counted yet counts as nothing."""
    for name, account in context.quotas.items():
        uses = [report.quotas[name] for report in reports.values() if name in report.quotas]
        pending = sum(use.pending or 0 for use in uses)
        account.others = QuotaUse(pending, 0, sum(use.creates_per_second for use in uses))
        account.nodes = 1 + nodes
