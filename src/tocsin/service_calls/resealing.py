"""After a rotation: what the agent has is encrypted again under the present key: tenants' signing secrets, and the requests
and notifications of calls that go on or can be retried, with their orders that wait.

An order in the outbox, which may be on its way, keeps the former key and counts as left until it is published: by the
embedded bus when it has begun or is in the table of orders that wait. What a broker has is not looked at.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from enum import Enum

import msgspec

from tocsin.model.hooks import NO_HOOKS, Hooks
from tocsin.model.sealed import headers_opened, headers_sealed, hooks_opened, hooks_sealed, url_opened, url_sealed
from tocsin.model.secrets import decode_secrets, encode_secrets
from tocsin.ports.agent_calls import Resealed
from tocsin.ports.bus import Envelope
from tocsin.ports.seals import SealBroken, Seals, opener, sealer
from tocsin.service_calls.messages import RequestSpec, StartExecution
from tocsin.service_calls.ports import SealedColumn, SealedText, SealedTexts

#: Rows that one read looks at, each with its request, and the pause behind it.
_PAGE_ROWS, _PAUSE_S = 200, 0.02

#: Seals or opens one text.
_Change = Callable[[str], str]


class _Outcome(Enum):
    """What became of a text: it was rewritten, waits for the next pass, or has nothing of a former key."""

    REWRITTEN, LEFT, NOTHING = range(3)


class CallResealing:
    """The port `SealedCalls`."""

    def __init__(self, texts: SealedTexts, seals: Seals) -> None:
        self._texts, self._seals = texts, seals

    async def reseal(self, former: Collection[str]) -> Resealed:
        left: Counter[str] = Counter()
        rewritten = 0
        for name in former:
            for place in SealedColumn:
                page = await self._texts.page(place, name, None, _PAGE_ROWS)
                while True:
                    for text in page.texts:
                        outcome = await self._rewrite(text)
                        rewritten += outcome is _Outcome.REWRITTEN
                        left[name] += outcome is _Outcome.LEFT
                    if page.after is None:
                        break
                    await asyncio.sleep(_PAUSE_S)
                    page = await self._texts.page(place, name, page.after, _PAGE_ROWS)
            left[name] += await self._unpublished(name)
        return Resealed(rewritten, left)

    async def _unpublished(self, name: str) -> int:
        """How many orders of the outbox mention the key and are still to be published."""
        orders, after = await self._texts.unpublished(name, 0, _PAGE_ROWS)
        while after is not None:
            await asyncio.sleep(_PAUSE_S)
            more, after = await self._texts.unpublished(name, after, _PAGE_ROWS)
            orders += more
        return orders

    async def _rewrite(self, text: SealedText) -> _Outcome:
        """Has the text stored under the present key, if it has anything of a former one."""
        tenant_id = text.key[0]
        try:
            fresh = _REWRITTEN[text.place](
                text.text, opener(self._seals, tenant_id, "tenant"), sealer(self._seals, tenant_id, "tenant")
            )
        except (SealBroken, msgspec.MsgspecError):
            return _Outcome.LEFT
        if fresh == text.text:
            # A body may look as if it had some. Nothing was written, which would have let others go on in between.
            await asyncio.sleep(0)
            return _Outcome.NOTHING
        return _Outcome.REWRITTEN if await self._texts.replace(text, fresh) else _Outcome.LEFT


def _signing(text: str, unseal: _Change, seal: _Change) -> str:
    return encode_secrets(decode_secrets(text).opened(unseal).opened(seal))


def _request(text: str, unseal: _Change, seal: _Change) -> str:
    return msgspec.json.encode(_spec(msgspec.json.decode(text, type=RequestSpec), unseal, seal)).decode()


def _spec(spec: RequestSpec, unseal: _Change, seal: _Change) -> RequestSpec:
    return msgspec.structs.replace(
        spec,
        url=url_sealed(url_opened(spec.url, unseal), seal),
        headers=headers_sealed(headers_opened(spec.headers, unseal) or {}, seal),
    )


def _hooks(text: str, unseal: _Change, seal: _Change) -> str:
    hooks = msgspec.structs.asdict(msgspec.json.decode(text, type=Hooks))
    return msgspec.json.encode(NO_HOOKS.changed(hooks_sealed(hooks_opened(hooks, unseal), seal))).decode()


def _order(text: str, unseal: _Change, seal: _Change) -> str:
    envelope = msgspec.json.decode(text, type=Envelope)
    order = msgspec.json.decode(envelope.payload, type=StartExecution)
    fresh = msgspec.structs.replace(order, request_spec=_spec(order.request_spec, unseal, seal))
    return msgspec.json.encode(
        msgspec.structs.replace(envelope, payload=msgspec.Raw(msgspec.json.encode(fresh)))
    ).decode()


_REWRITTEN: Mapping[SealedColumn, Callable[[str, _Change, _Change], str]] = {
    SealedColumn.SIGNING: _signing,
    SealedColumn.REQUEST: _request,
    SealedColumn.HOOKS: _hooks,
    SealedColumn.ORDER: _order,
}
