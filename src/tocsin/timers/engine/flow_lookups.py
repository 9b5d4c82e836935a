"""The lookups of tokens of slow rates, which a new home needs before it grants any (ADR 132)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from itertools import islice
from typing import Any

from tocsin.model.errors import StoreError
from tocsin.ports.observer import LoadFailed
from tocsin.ports.store import Found
from tocsin.timers.engine.context import Context
from tocsin.timers.engine.flow_control import FlowControl
from tocsin.timers.engine.flow_home import Home
from tocsin.timers.engine.flow_tokens import TokenPlace, TokenRows, restore, uuid_of
from tocsin.timers.engine.shard import Shard

#: Rows of one read.
_READ_MAX = 500
#: After how long a read that failed is repeated: each time twice as long as before, up to the longest.
_REPEAT_S_MIN, _REPEAT_S_MAX = 0.1, 5.0


class TokenLookups:
    """Looks up what accounts of slow rates have, for the homes on this node."""

    def __init__(
        self, context: Context, flows: FlowControl, spawn: Callable[[Coroutine[Any, Any, None]], object]
    ) -> None:
        self._context = context
        self._flows = flows
        self._spawn = spawn
        # The claims whose accounts are being looked up, by what they want.
        self._under_way: dict[TokenRows, None] = {}
        context.tokens_wanted = self._begin

    def _begin(self, shard: Shard) -> None:
        if shard.window is not None and (tokens := shard.window.queue.tokens) not in self._under_way:
            self._under_way[tokens] = None
            self._spawn(self._run(shard, tokens))

    async def _run(self, shard: Shard, tokens: TokenRows) -> None:
        """Looks up all that is wanted, and what is wanted meanwhile, until the claim ends."""
        context, pause_s = self._context, _REPEAT_S_MIN
        try:
            while tokens.wanted and shard.window is not None and shard.window.queue.tokens is tokens:
                places = list(islice(tokens.wanted, _READ_MAX))
                uuids = {place: uuid_of(place) for place in places}
                try:
                    found = await context.in_turn(context.store.fetch(shard.shard_id, list(uuids.values())))
                except StoreError as error:
                    context.observe(LoadFailed(shard.shard_id, f"reading tokens of flows failed: {error}"))
                    await asyncio.sleep(pause_s)
                    pause_s = min(2 * pause_s, _REPEAT_S_MAX)
                    continue
                pause_s = _REPEAT_S_MIN
                home = self._flows.homes.get(shard.shard_id)
                for place, uuid in uuids.items():
                    del tokens.wanted[place]
                    if home is not None and home.tokens is tokens:
                        self._found(home, tokens, place, found.get(uuid))
        finally:
            del self._under_way[tokens]

    def _found(self, home: Home, tokens: TokenRows, place: TokenPlace, found: Found | None) -> None:
        """Continues the account by what was found, and has served what waits for it."""
        context, flows, (name, key) = self._context, self._flows, place
        accounts = home.rules.get(name)
        if accounts is None or (account := accounts.looked_up(key)) is None:
            return
        boot_us = context.flow_time_us()
        restore(account, found, context.planning_us(), boot_us, tokens.earlier.pop(place, None))
        rule = flows.rules.get(name)
        if rule is not None and rule.home is home:
            state = rule.keys.get(key)
            if rule.blocked:
                flows.wake(rule)
            if state is not None and (state.queues or state.blocked):
                flows.wake(state)
        home.to_notify.update(account.in_turn(boot_us))
        if home.to_notify:
            flows.notify(home)
