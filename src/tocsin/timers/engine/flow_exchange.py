"""What nodes exchange about flows: a node reports to homes elsewhere, which grant; and homes here take reports (ADR 99)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence
from itertools import count
from typing import Any

from tocsin.model.errors import Unavailable
from tocsin.ports.flows import FlowAnswer, FlowPeers, FlowReport, HomePlace, KeyReport, RuleReport
from tocsin.timers.engine.context import Context
from tocsin.timers.engine.flow_control import FlowControl
from tocsin.timers.engine.flow_home import ASK_AGAIN_US, Home
from tocsin.timers.engine.flow_states import KeyState, RuleState
from tocsin.timers.engine.flow_tokens import RuleName
from tocsin.timers.engine.membership import Membership
from tocsin.timers.engine.placement import ObservedPlacement

#: How long a grant is valid, from the moment at which its request was sent.
GRANT_VALID_US = 1_000_000
#: How long a report waits for others to the same node, and for what else changes.
_COLLECT_S = 0.002
#: How long after a report that was not answered the next one follows, and how often a new home asks a silent node.
_REPEAT_S = 0.1
#: How long a report waits while something that was granted is not used yet: it may need something of another home, too.
_HOLD_S = 0.02
#: Attempts of one key that one report asks for, and keys for which it does.
_WANTED_MAX, _WANTED_KEYS_MAX = 256, 500


class _Target:
    """A home elsewhere: the shard's owner in an epoch. `number` and `sent_at` are those of the latest report to it."""

    __slots__ = ("again", "epoch", "incarnation", "number", "sent_at", "shard_id")

    def __init__(self, shard_id: int, incarnation: bytes, epoch: int) -> None:
        self.shard_id = shard_id
        self.incarnation = incarnation
        self.epoch = epoch
        self.number = 0
        self.sent_at = 0
        #: The next report, if it is planned for later.
        self.again: asyncio.TimerHandle | None = None


class FlowExchange:
    """Connects this node's flows with those of the other nodes; implements the port LocalFlows."""

    def __init__(
        self,
        context: Context,
        flows: FlowControl,
        placement: ObservedPlacement,
        spawn: Callable[[Coroutine[Any, Any, None]], object],
        may_grant: Callable[[], bool],
    ) -> None:
        self._context = context
        self._flows = flows
        self._placement = placement
        self._membership: Membership = placement.membership
        self._spawn = spawn
        self._may_grant = may_grant
        #: The other nodes, once they can be reached.
        self.peers: FlowPeers | None = None
        self._numbers = count(1)
        self._targets: dict[int, _Target] = {}
        # Later owners than the placement knows, by shard: they have asked.
        self._learned: dict[int, tuple[bytes, int]] = {}
        # Reports that are collected, by node.
        self._collected: dict[bytes, dict[_Target, None]] = {}
        self._collecting: dict[bytes, asyncio.TimerHandle] = {}
        # Homes that may grant more to other nodes, which are notified in the next turn of the event loop.
        self._freed: dict[Home, None] = {}
        flows.request, flows.notify, flows.begin_home = self.request, self._notify, self._begin_home
        placement.watch(self._placement_changed)

    # ------------------------------------------------------------------ homes elsewhere

    def _target(self, shard_id: int) -> _Target | None:
        """The shard's home, unless it is here, or unknown."""
        owner = self._placement.owner(shard_id)
        found = None if owner is None else (owner.incarnation, owner.epoch)
        learned = self._learned.get(shard_id)
        if learned is not None:
            if found is None or found[1] < learned[1]:
                found = learned
            else:
                del self._learned[shard_id]
        if found is None or found[0] == self._context.incarnation:
            return None
        target = self._targets.get(shard_id)
        if target is None or (target.incarnation, target.epoch) != found:
            if target is not None and target.again is not None:
                target.again.cancel()
            target = self._targets[shard_id] = _Target(shard_id, *found)
            # What another home has granted is void, and what was asked of it will not be answered.
            for rule in self._rules_at(shard_id):
                for state in rule.keys.values():
                    state.granted = 0
                    state.changed = state.changed or state.in_use > 0
                    rule.changed = rule.changed or state.changed
                self._flows.wake_rule(rule)
        return target

    def _rules_at(self, shard_id: int) -> Iterable[RuleState]:
        return self._flows.at_shard.get(shard_id, {}).values()

    def request(self, rule: RuleState) -> None:
        """Reports to the rule's home soon, because something has changed, or is wanted."""
        target = self._target(rule.shard_id)
        if target is None or target in self._collected.get(target.incarnation, ()):
            return
        if target.again is not None and not rule.changed:
            # Nothing is granted before that.
            return
        if rule.unused > 0:
            # The report would void what may be used at any moment.
            self._plan(target, _HOLD_S)
        else:
            self._collect(target)

    def _collect(self, target: _Target) -> None:
        if target.again is not None:
            target.again.cancel()
            target.again = None
        self._collected.setdefault(target.incarnation, {})[target] = None
        if target.incarnation not in self._collecting:
            self._collecting[target.incarnation] = asyncio.get_running_loop().call_later(
                _COLLECT_S, self._send, target.incarnation
            )

    def _send(self, incarnation: bytes) -> None:
        del self._collecting[incarnation]
        targets = [each for each in self._collected.pop(incarnation) if self._target(each.shard_id) is each]
        reports = [self._report(each) for each in targets]
        if reports:
            self._spawn(self._exchange(incarnation, targets, reports))

    def _report(self, target: _Target, *, asks: bool = True) -> FlowReport:
        """The whole state of the rules whose home is there. With `asks`, it states what is wanted, too."""
        target.number, target.sent_at = next(self._numbers), self._context.flow_time_us()
        rules, left = [], _WANTED_KEYS_MAX if asks else 0
        for rule in self._rules_at(target.shard_id):
            keys, rule.changed = [], False
            for state in list(rule.keys.values()):
                wanted = self._wanted(state, target.sent_at) if left > 0 else 0
                if wanted:
                    left -= 1
                    # The last of the keys: otherwise those behind the first would never be asked for.
                    rule.keys[state.key] = rule.keys.pop(state.key)
                if not (wanted or state.in_use or state.changed or state.sent or state.granted):
                    continue
                closed_us = max(state.closed_until - target.sent_at, 0)
                keys.append(KeyReport(state.key, state.life, state.in_use, state.begun, wanted, closed_us))
                # A later report voids what earlier ones were granted.
                state.changed, state.sent, state.granted = False, target.number, 0
            if keys:
                usage = rule.usage
                rules.append(RuleReport(*rule.name, usage.life, usage.in_use, usage.begun, keys))
        return FlowReport(self._context.incarnation, target.shard_id, target.epoch, target.number, rules)

    def _wanted(self, state: KeyState, boot_us: int) -> int:
        if state.closed_until > boot_us or state.rule.flow.closed_until(self._context.clock.now_us()) is not None:
            return 0
        if state.waits_for_order:
            return 0
        wanted = state.waiting
        for other in state.blocked:
            wanted += other.waiting
            if wanted >= _WANTED_MAX:
                break
        return min(wanted, _WANTED_MAX)

    async def _exchange(self, incarnation: bytes, targets: list[_Target], reports: list[FlowReport]) -> None:
        answers: list[FlowAnswer] = []
        try:
            if self.peers is not None:
                answers = await self.peers.report_flows(incarnation, reports)
        except Unavailable:
            # The next reports have all that these had.
            pass
        by_number = {answer.number: answer for answer in answers}
        for target, report in zip(targets, reports, strict=True):
            if self._targets.get(target.shard_id) is not target or target.number != report.number:
                # Overtaken: the answer is void.
                continue
            answer = by_number.get(report.number)
            if answer is None or not answer.known:
                if answer is not None:
                    self._placement.refresh()
                self._plan(target, _REPEAT_S)
            else:
                self._take(target, answer)

    def _take(self, target: _Target, answer: FlowAnswer) -> None:
        rules, again_us, unwanted = self._flows.at_shard.get(target.shard_id, {}), 0, False
        for rule in rules.values():
            for state in list(rule.keys.values()):
                if state.sent == answer.number:
                    state.sent = 0
                    self._flows.settle(state)
        for grant in answer.grants:
            named = rules.get(RuleName(grant.namespace, grant.match))
            key = None if named is None else named.keys.get(grant.key)
            if not grant.count:
                again_us = min(again_us or ASK_AGAIN_US, grant.again_us or ASK_AGAIN_US)
            elif key is not None:
                self._flows.grant(key, grant.count, target.sent_at + GRANT_VALID_US)
            else:
                unwanted = True
        if again_us:
            self._plan(target, again_us / 1e6)
        # What is granted to a key that has nothing here any more counts as used until the next report.
        if unwanted or any(rule.changed for rule in rules.values()):
            self._collect(target)

    def _plan(self, target: _Target, delay_s: float) -> None:
        """Reports again after that time, or sooner if something changes."""
        if target.again is None and target not in self._collected.get(target.incarnation, ()):
            target.again = asyncio.get_running_loop().call_later(max(delay_s, _COLLECT_S), self._again, target)

    def _again(self, target: _Target) -> None:
        target.again = None
        if self._targets.get(target.shard_id) is target and any(rule.keys for rule in self._rules_at(target.shard_id)):
            self._collect(target)

    # ------------------------------------------------------------------ changes of owners

    def _placement_changed(self) -> None:
        boot_us = self._context.flow_time_us()
        for home in self._flows.homes.values():
            for node in [each for each in home.nodes | home.awaited(boot_us) if not self._membership.alive(each)]:
                home.forget(node)
                self._wake(home)
        for shard_id, rules in self._flows.at_shard.items():
            if rules and shard_id not in self._flows.homes:
                # Others than before are woken.
                self._target(shard_id)

    # ------------------------------------------------------------------ homes here

    def _begin_home(self, home: Home) -> None:
        alive = {each.incarnation for each in self._membership.members() if self._membership.alive(each.incarnation)}
        others = set() if self._context.store.capabilities.exclusive else alive - {self._context.incarnation}
        if home.begin(others, self._context.flow_time_us(), self._context.limits.member_timeout_us):
            self._spawn(self._ask(home))

    async def _ask(self, home: Home) -> None:
        """Asks the other nodes until each has reported or is presumed dead."""
        while (awaited := home.awaited(self._context.flow_time_us())) and self._is_here(home):
            await asyncio.gather(*(self._ask_one(home, each) for each in sorted(awaited)))
            if home.awaited(self._context.flow_time_us()):
                await asyncio.sleep(_REPEAT_S)
        self._wake(home)

    async def _ask_one(self, home: Home, incarnation: bytes) -> None:
        if self.peers is None:
            return
        try:
            reports = await self.peers.ask_flows(incarnation, [(home.shard_id, home.epoch)])
        except Unavailable:
            return
        for report in reports:
            if self._is_here(home) and (report.shard_id, report.epoch) == (home.shard_id, home.epoch):
                self._know(home, report)
                home.report(report, self._context.flow_time_us(), may_grant=False)

    def _is_here(self, home: Home) -> bool:
        return self._flows.homes.get(home.shard_id) is home

    def _know(self, home: Home, report: FlowReport) -> None:
        """Sees to it that the home has accounts of the rules of the report, as far as this node knows them."""
        for each in report.rules:
            name = RuleName(each.namespace, each.match)
            if name not in home.rules and (rule := self._flows.rule(name)) is not None:
                self._flows.accounts_of(home, rule)

    def _wake(self, home: Home) -> None:
        for rule in self._rules_at(home.shard_id):
            if rule.home is home:
                self._flows.wake_rule(rule)

    def _notify(self, home: Home) -> None:
        if not self._freed:
            asyncio.get_running_loop().call_soon(self._notify_now)
        self._freed[home] = None

    def _notify_now(self) -> None:
        freed, self._freed = self._freed, {}
        by_node: dict[bytes, list[int]] = {}
        for home in freed:
            for node in sorted(home.to_notify - {self._context.incarnation}):
                by_node.setdefault(node, []).append(home.shard_id)
            home.to_notify.clear()
        if self.peers is not None:
            for node, shard_ids in by_node.items():
                self.peers.flows_are_free(node, shard_ids)

    # ------------------------------------------------------------------ the port LocalFlows

    def reported(self, reports: Sequence[FlowReport]) -> list[FlowAnswer]:
        """Takes the reports of another node to homes on this node."""
        may_grant = self._may_grant()
        return [self._reported(report, may_grant=may_grant) for report in reports]

    def _reported(self, report: FlowReport, *, may_grant: bool) -> FlowAnswer:
        home = self._flows.homes.get(report.shard_id)
        if home is None or home.epoch != report.epoch:
            return FlowAnswer(report.shard_id, report.epoch, report.number, [], known=False)
        self._begin_home(home)
        self._know(home, report)
        answer = home.report(report, self._context.flow_time_us(), may_grant=may_grant)
        for each in report.rules:
            rule = self._flows.rules.get(RuleName(each.namespace, each.match))
            if rule is not None and rule.home is home:
                if rule.blocked:
                    self._flows.wake(rule)
                for key in each.keys:
                    state = rule.keys.get(key.key)
                    if state is not None and (state.queues or state.blocked):
                        self._flows.wake(state)
        home.to_notify.discard(report.incarnation)
        if home.to_notify:
            self._notify(home)
        return answer

    def asked(self, incarnation: bytes, homes: Sequence[HomePlace]) -> list[FlowReport]:
        """This node's reports to homes on the node that asks. From now on it reports only to these; what former homes have
        granted is void."""
        reports = []
        for shard_id, epoch in homes:
            here, owner = self._flows.homes.get(shard_id), self._placement.owner(shard_id)
            if here is not None and here.epoch < epoch:
                # The claim has been lost.
                self._flows.disown(shard_id)
                self._placement.refresh()
            elif here is not None or (owner is not None and owner.epoch > epoch):
                continue
            if self._learned.get(shard_id, (b"", 0))[1] < epoch:
                self._learned[shard_id] = (incarnation, epoch)
            target = self._target(shard_id)
            if target is not None and (target.incarnation, target.epoch) == (incarnation, epoch):
                reports.append(self._report(target, asks=False))
                for rule in self._rules_at(shard_id):
                    self._flows.wake_rule(rule)
        return reports

    def freed(self, shard_ids: Sequence[int]) -> None:
        """Homes of these shards may grant more than before."""
        for shard_id in shard_ids:
            target = self._targets.get(shard_id)
            if target is not None and self._target(shard_id) is target:
                self._collect(target)
