"""The limits of flows and namespaces on this node: which timers may fire now, and which wait for a turn.

A timer is subject to at most two rules: that of its flow key, and the limits of its namespace. Each has its home at the
owner of some shard (`flow_home`); if that is this node, the rule's accounts decide at once, otherwise grants do, which are
requested from it (`flow_exchange`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING

from tocsin.model.flow import PAUSED_FOR_GOOD, Flow, FlowRules
from tocsin.model.ids import namespace_hash
from tocsin.model.namespace import Namespace
from tocsin.ports.forward import Obstacle
from tocsin.timers.engine.call_flows import CallQueue
from tocsin.timers.engine.context import Context
from tocsin.timers.engine.flow_accounts import Account, Usage
from tocsin.timers.engine.flow_home import WAITING_US, Home, RuleAccounts
from tocsin.timers.engine.flow_states import KeyState, RuleState, Taken
from tocsin.timers.engine.flow_tokens import RuleName
from tocsin.timers.engine.rows import FLOW_REASON

if TYPE_CHECKING:
    from tocsin.timers.engine.dispatcher import Dispatcher
    from tocsin.timers.engine.shard import Shard

#: The shortest time after which a closed gate is checked again.
_CHECK_US_MIN = 200
#: How often the end of a pause is checked, which the wall clock decides, and whether a new home grants.
_PAUSE_CHECK_US, _HOME_CHECK_US = 1_000_000, 20_000
#: Accounts of idle keys that are checked in one sweep for being forgettable.
_SWEPT_AT_ONCE = 2_000
_NO_RULES = FlowRules(())


class FlowControl:
    """The rules on this node. `begin` and `end` bracket an attempt."""

    def __init__(self, context: Context, dispatcher: Dispatcher, total_shards: int) -> None:
        self._context = context
        self._own = context.incarnation
        self._total_shards = total_shards
        self._dispatcher = dispatcher
        #: By namespace and match, as in `RuleName`: to make one for each look-up would cost more than the look-up.
        self.rules: dict[tuple[str, str], RuleState] = {}
        # The keys of the namespaces' own limits, by namespace: once made, they stay.
        self._namespace_keys: dict[str, KeyState] = {}
        #: The rules by the shards that determine their homes.
        self.at_shard: dict[int, dict[RuleName, RuleState]] = {}
        #: The homes that are here, by shard.
        self.homes: dict[int, Home] = {}
        #: Called when a home elsewhere has something to learn of the rule, or to grant.
        self.request: Callable[[RuleState], None] = lambda rule: None
        #: Called when other nodes may be granted more by a home that is here.
        self.notify: Callable[[Home], None] = lambda home: None
        #: Called when a home that is here needs the reports of other nodes.
        self.begin_home: Callable[[Home], object] = lambda home: home.begin(set(), 0, 0)
        #: The time of the limits when the dispatcher last found that timers may fire: what each attempt goes by. The clock is
        #: a moment ahead of it, so it lets no more begin than is allowed.
        self.asked_at_us = 0
        self._lives = count(1)
        # What may have opened and is served in the next turn of the event loop.
        self._woken: dict[KeyState | RuleState, None] = {}
        self._turn: asyncio.Handle | None = None
        # When closed gates are checked again, by boot time.
        self._alarms: list[tuple[int, int, KeyState | RuleState]] = []
        self._alarm_numbers = count()
        self._alarm: asyncio.TimerHandle | None = None
        # The rules by which the keys that wait now were found.
        self._found_by: dict[str, tuple[FlowRules, bool]] = {}
        context.rules_changed = self._rules_changed

    # ------------------------------------------------------------------ rules

    def of(self, namespace: str, key: str, known: Namespace | None) -> KeyState | None:
        """What limits attempts of this flow key, or of none, in a namespace that this node has as `known`; None: nothing.
        Timers and service calls are alike."""
        limited = known is not None and known.limits is not None
        if not limited and not key:
            return None
        outer = (self._namespace_keys.get(namespace) or self._new_namespace_key(namespace)) if limited else None
        rules = self._context.flows.get(namespace) if key else None
        flow = None if rules is None else rules.find(key)
        if flow is None:
            return outer
        rule = self.rules.get((namespace, flow.match)) or self._rule(RuleName(namespace, flow.match), flow)
        state = rule.keys.get(key) or self._new_key(rule, key)
        state.namespace_key = outer
        return state

    def _new_namespace_key(self, namespace: str) -> KeyState:
        """The only key of the namespace's own limits, which this node did not know."""
        rule = self.rule(RuleName(namespace, ""))
        assert rule is not None
        state = self._namespace_keys[namespace] = rule.keys.get("") or self._new_key(rule, "")
        return state

    def _namespace_rule(self, namespace: str) -> Flow:
        """The limits of the namespace itself, as a rule with a single, empty key."""
        known = self._context.namespaces.get(namespace)
        return Flow(namespace, "", 0, 0, per_key=None if known is None else known.limits)

    def rule(self, name: RuleName) -> RuleState | None:
        """The rule, if this node knows it."""
        rule = self.rules.get(name)
        if rule is not None:
            return rule
        namespace, match = name
        rules = self._context.flows.get(namespace, _NO_RULES)
        flow = rules.get(match) if match else self._namespace_rule(namespace)
        return None if flow is None else self._rule(name, flow)

    def _new_key(self, rule: RuleState, key: str) -> KeyState:
        state = rule.keys[key] = KeyState(rule, key, next(self._lives))
        if rule.accounts is not None:
            account = state.account = rule.accounts.key(key, self.asked_at_us)
            account.local = state
        return state

    def _rule(self, name: RuleName, flow: Flow) -> RuleState:
        """A rule that this node did not know."""
        shard_id = namespace_hash(f"{name.namespace}/{name.match}") % self._total_shards
        rule = self.rules[name] = RuleState(name, flow, shard_id, Usage(next(self._lives)))
        self.at_shard.setdefault(shard_id, {})[name] = rule
        self._link(rule)
        return rule

    def _link(self, rule: RuleState) -> None:
        """Connects the rule to its accounts if its home is here."""
        home = self.homes.get(rule.shard_id)
        if home is rule.home and (home is None or rule.accounts is not None):
            return
        rule.home, rule.accounts = home, None
        if home is not None:
            rule.accounts = self.accounts_of(home, rule)
        for state in rule.keys.values():
            self._link_key(state)

    def accounts_of(self, home: Home, rule: RuleState) -> RuleAccounts:
        """The rule's accounts at this home, which is here."""
        self.begin_home(home)
        accounts = home.rules.get(rule.name)
        if accounts is None:
            return home.begin_rule(rule.name, rule.flow, rule.usage, self._context.flow_time_us())
        accounts.total.local = rule.usage
        return accounts

    def _link_key(self, state: KeyState) -> None:
        accounts = state.rule.accounts
        state.account, state.granted = None, 0
        if accounts is not None:
            state.account = accounts.key(state.key, self._context.flow_time_us())
            state.account.local = state
            state.account.closed_until = max(state.account.closed_until, state.closed_until)
            state.changed, state.sent = False, 0

    def settle(self, state: KeyState) -> None:
        """Forgets a key that has nothing here, and its turns if nothing waits for them."""
        outer, rule = state.namespace_key, state.rule
        if not state.queues:
            if rule.blocked:
                rule.blocked.pop(state, None)
            if outer is not None and (outer.blocked or outer.rule.blocked):
                outer.rule.blocked.pop(state, None)
                outer.blocked.pop(state, None)
                self.settle(outer)
        # The one of a namespace's limits stays: keys whose timers wait for something else refer to it.
        if state.key and state.is_idle and rule.keys.get(state.key) is state:
            del rule.keys[state.key]
            if state.account is not None:
                state.account.local = None

    def _rules_changed(self) -> None:
        """Applies the rules as they are known now. Timers that wait are dispatched again where they may be subject to other
        rules than before."""
        if not self.rules:
            return
        now_us, namespaces = self._context.flow_time_us(), set()
        for rule in list(self.rules.values()):
            namespace, match = rule.name
            rules = self._context.flows.get(namespace, _NO_RULES)
            flow = rules.get(match) if match else self._namespace_rule(namespace)
            if flow is None:
                # It limits nothing any more; its attempts in flight end as they began.
                flow = Flow(namespace, match, 0, 0)
            if rule.flow != flow:
                rule.apply(flow)
                namespaces.add(namespace)
                if rule.accounts is not None:
                    rule.accounts.change(flow, now_us)
        for namespace in {rule.name.namespace for rule in self.rules.values()}:
            found_by = self._rules_of(namespace)
            former = self._found_by.get(namespace)
            if former is not None and (former[0].all(), former[1]) != (found_by[0].all(), found_by[1]):
                namespaces.add(namespace)
            self._found_by[namespace] = found_by
        for rule in [each for each in self.rules.values() if each.name.namespace in namespaces]:
            self._dispatch_again(rule)

    def _rules_of(self, namespace: str) -> tuple[FlowRules, bool]:
        known = self._context.namespaces.get(namespace)
        return self._context.flows.get(namespace, _NO_RULES), known is not None and known.limits is not None

    def _forget_rule(self, rule: RuleState) -> None:
        del self.rules[rule.name]
        del self.at_shard[rule.shard_id][rule.name]
        if rule.home is not None:
            rule.home.rules.pop(rule.name, None)

    def _dispatch_again(self, rule: RuleState) -> None:
        """Returns what waits for the rule's keys to its windows, which dispatch it as if it had just become due."""
        shards: dict[Shard, None] = {}
        for state in list(rule.keys.values()):
            for queue in list(state.queues.values()):
                if isinstance(queue, CallQueue):
                    queue.put_back()
                    continue
                shards[queue.shard] = None
                self._dispatcher.put_back(queue)
            state.blocked.clear()
            self.settle(state)
        rule.blocked.clear()
        for shard in shards:
            shard.changed()

    # ------------------------------------------------------------------ gates

    def is_open(self, state: KeyState, *, in_turn: bool = False) -> bool:
        """Whether an attempt may begin. If not, the key is woken when that may have changed. Where others wait for what the
        key shares with them, it waits for its turn, unless this is it."""
        outer = state.namespace_key
        return self._lets(state, state, in_turn) and (outer is None or self._lets(outer, state, in_turn))

    def _lets(self, gate: KeyState, state: KeyState, in_turn: bool) -> bool:
        """Whether one of the two rules lets an attempt of the key begin."""
        rule, account, boot_us = gate.rule, gate.account, self.asked_at_us
        if rule.flow.paused and self._is_paused(rule, state):
            return False
        if account is None:
            # The home is elsewhere, or nowhere at the moment.
            if gate.granted > 0 and gate.closed_until <= boot_us and self._context.flow_time_us() < gate.granted_until:
                return True
            if gate is not state:
                gate.block(state)
            if gate.closed_until > boot_us:
                # Its home is not asked before, so nothing else wakes it then.
                self.plan(gate, gate.closed_until)
            self.request(rule)
            return False
        home, accounts = rule.home, rule.accounts
        assert home is not None
        assert accounts is not None
        if not home.grants_from_now_on and not home.grants(boot_us):
            rule.blocked[state] = None
            self.plan(rule, boot_us + _HOME_CHECK_US)
            return False
        if not in_turn and gate is not state and gate.blocked:
            gate.block(state)
            self.wake(gate)
            return False
        if not account.lets(self._own, boot_us):
            self._await(gate, account, boot_us)
            if gate is not state:
                gate.block(state)
            return False
        if not in_turn and rule.blocked:
            rule.blocked[state] = None
            self.wake(rule)
            return False
        total = accounts.total
        if total.limits is not None and not total.lets(self._own, boot_us):
            self._await(rule, total, boot_us)
            rule.blocked[state] = None
            return False
        return True

    def _is_paused(self, rule: RuleState, state: KeyState) -> bool:
        now_us = self._context.clock.now_us()
        until_us = rule.flow.closed_until(now_us)
        if until_us is None:
            return False
        rule.blocked[state] = None
        self.plan(rule, self._context.flow_time_us() + min(until_us - now_us, _PAUSE_CHECK_US))
        return True

    def begin(self, state: KeyState) -> Taken:
        """Takes a slot and a token of each rule; `is_open` was true just now."""
        outer = state.namespace_key
        taken = (state,) if outer is None else (state, outer)
        for each in taken:
            rule, account = each.rule, each.account
            each.in_use += 1
            each.begun += 1
            rule.usage.in_use += 1
            rule.usage.begun += 1
            if account is None:
                each.granted -= 1
                self._note(each)
            else:
                assert rule.accounts is not None
                account.begin(self._own, self.asked_at_us)
                total = rule.accounts.total
                if total.limits is not None or total.waiting:
                    total.begin(self._own, self.asked_at_us)
        return taken

    def end(self, taken: Taken) -> None:
        """Frees the slots of an attempt that has ended."""
        for each in taken:
            rule, account = each.rule, each.account
            accounts = rule.accounts
            each.in_use -= 1
            rule.usage.in_use -= 1
            if account is None or accounts is None:
                self._note(each)
            elif account.waiting or accounts.total.waiting:
                self._notify(rule, account)
            if rule.blocked:
                self.wake(rule)
            if each.queues or each.blocked:
                self.wake(each)
            elif each.key and not each.in_use:
                self.settle(each)

    def _notify(self, rule: RuleState, account: Account) -> None:
        """Has other nodes notified that wait for what has become free, and whose turn it is."""
        assert rule.home is not None
        assert rule.accounts is not None
        boot_us = self._context.flow_time_us()
        rule.home.to_notify.update(account.in_turn(boot_us), rule.accounts.total.in_turn(boot_us))
        if rule.home.to_notify:
            self.notify(rule.home)

    def close_for(self, taken: Taken, for_us: int) -> None:
        """Closes the flow key for this many microseconds, because its receiver has asked for that."""
        until_us = self._context.flow_time_us() + for_us
        for each in taken:
            if each.rule.flow.close_on_retry_after and until_us > each.closed_until:
                each.closed_until = until_us
                self.plan(each, until_us)
                if each.account is None:
                    self._note(each)
                else:
                    each.account.closed_until = max(each.account.closed_until, until_us)

    def _note(self, state: KeyState) -> None:
        state.changed = state.rule.changed = True
        self.request(state.rule)

    # ------------------------------------------------------------------ turns

    def wake(self, opened: KeyState | RuleState) -> None:
        """Has what waits for it served in the next turn of the event loop."""
        self._woken[opened] = None
        if self._turn is None:
            self._turn = asyncio.get_running_loop().call_soon(self._take_turn)

    def wake_all(self) -> None:
        """Has everything that waits served."""
        for rule in self.rules.values():
            if rule.blocked:
                self.wake(rule)
            for state in rule.keys.values():
                if state.queues or state.blocked:
                    self.wake(state)

    def _take_turn(self) -> None:
        self._turn = None
        woken, self._woken = self._woken, {}
        left, boot_us = self._context.limits.dispatch_rows_per_turn, self._context.flow_time_us()
        for opened in woken:
            if left <= 0:
                self.wake(opened)
                continue
            left -= self._serve_blocked(opened, left)
            if isinstance(opened, KeyState):
                if opened.granted and boot_us >= opened.granted_until:
                    # Not used: it returns with the next report.
                    opened.granted = 0
                    self._note(opened)
                elif opened.granted:
                    # It was woken for something that was planned before.
                    self.plan(opened, opened.granted_until)
                left -= self._dispatcher.serve_flow(opened, left)
                if left <= 0 and opened.queues:
                    # Rows may have gone to their destinations: nothing that ends brings the next ones.
                    self.wake(opened)
                self.settle(opened)

    def _serve_blocked(self, gate: KeyState | RuleState, most: int) -> int:
        """Serves the keys that wait for this gate, a row of each in turn, while it is open; how many rows."""
        served = 0
        blocked = gate.blocked
        for _ in range(len(blocked) + most):
            if not blocked or not self._has_free(gate):
                break
            if served >= most:
                self.wake(gate)
                break
            state = next(iter(blocked))
            del blocked[state]
            fired = self._dispatcher.serve_flow(state, 1, in_turn=True)
            served += fired
            if fired and state.queues:
                # The last of those that wait, unless it waits for something else now.
                blocked.setdefault(state)
        return served

    def _has_free(self, gate: KeyState | RuleState) -> bool:
        """Whether the gate itself is open. If only time opens it, it is checked again then."""
        boot_us = self._context.flow_time_us()
        if isinstance(gate, KeyState):
            if gate.account is None:
                return gate.granted > 0 and boot_us < gate.granted_until
            return self._frees(gate, gate.account, boot_us)
        if gate.flow.paused and gate.flow.closed_until(self._context.clock.now_us()) is not None:
            self.plan(gate, boot_us + _PAUSE_CHECK_US)
            return False
        if gate.accounts is None:
            return True
        if gate.home is not None and not gate.home.grants(boot_us):
            self.plan(gate, boot_us + _HOME_CHECK_US)
            return False
        return self._frees(gate, gate.accounts.total, boot_us)

    def _frees(self, gate: KeyState | RuleState, account: Account, boot_us: int) -> bool:
        if account.lets(self._own, boot_us):
            return True
        self._await(gate, account, boot_us)
        return False

    def _await(self, gate: KeyState | RuleState, account: Account, boot_us: int) -> None:
        """This node waits for what the account of the gate lacks. If only time brings it, the gate is checked again then."""
        account.wait(self._own, boot_us + WAITING_US, had_turn=False)
        wait_us = account.again_in_us(boot_us)
        if wait_us:
            self.plan(gate, boot_us + wait_us)

    def plan(self, gate: KeyState | RuleState, boot_us: int) -> None:
        """Has the gate checked again at that boot time."""
        if gate.alarm_at and gate.alarm_at <= boot_us:
            return
        gate.alarm_at = boot_us
        heappush(self._alarms, (boot_us, next(self._alarm_numbers), gate))
        if self._alarms[0][2] is gate:
            self._set_alarm()

    def _set_alarm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if self._alarms:
            wait_us = max(self._alarms[0][0] - self._context.flow_time_us(), _CHECK_US_MIN)
            self._alarm = asyncio.get_running_loop().call_later(wait_us / 1e6, self._on_alarm)

    def _on_alarm(self) -> None:
        self._alarm = None
        boot_us = self._context.flow_time_us()
        while self._alarms and self._alarms[0][0] <= boot_us:
            at, _, gate = heappop(self._alarms)
            if gate.alarm_at == at:
                gate.alarm_at = 0
                self.wake(gate)
        self._set_alarm()

    # ------------------------------------------------------------------ a clock that is set forward

    def clock_moved(self) -> None:
        """The wall clock, and with it the time of the limits, was set forward: what has opened is served."""
        self._on_alarm()

    def opens_in_us(self, suspended: Iterable[str]) -> int | None:
        """In how many microseconds the limits let something of what waits begin that they do not let begin now, if nothing
        of it is in flight; 0: at once; None: not by themselves. `suspended` has reasons for which timers are suspended."""
        keys = [each for rule in self.rules.values() for each in rule.keys.values()]
        states = [each for each in keys if (each.queues or each.blocked) and not each.waits_for_order]
        openings = [self._opens_in_us(each) for each in states]
        for reason in suspended:
            if reason.startswith(FLOW_REASON):
                known = self.known(*reason.removeprefix(FLOW_REASON).split("/", 1))
                # One that is open has no room in memory: what waits there comes first.
                openings.append((None if known is None else self._opens_in_us(known)) or None)
        return min((each for each in openings if each is not None), default=None)

    def _opens_in_us(self, state: KeyState) -> int | None:
        now_us, flow_us, wait_us = self._context.clock.now_us(), self._context.flow_time_us(), 0
        for each in (state,) if state.namespace_key is None else (state, state.namespace_key):
            until_us = each.rule.flow.closed_until(now_us)
            if until_us == PAUSED_FOR_GOOD:
                return None
            wait_us = max(wait_us, 0 if until_us is None else until_us - now_us)
            if each.account is not None and each.rule.accounts is not None:
                accounts = (each.account, each.rule.accounts.total)
                wait_us = max(wait_us, *(account.again_in_us(flow_us) for account in accounts))
        return wait_us

    # ------------------------------------------------------------------ homes

    def grant(self, state: KeyState, count: int, until_us: int) -> None:
        """A home elsewhere grants so many attempts, until this boot time."""
        state.granted, state.granted_until = count, until_us
        if count:
            self.plan(state, until_us)
            self.wake(state)
            self.wake(state.rule)

    def own(self, shard: Shard) -> None:
        """The shard is this node's from now on, and so are the homes of the rules that are there."""
        window, now_us = shard.window, self._context.flow_time_us()
        assert window is not None
        self.homes[shard.shard_id] = Home(shard.shard_id, window.epoch, now_us, window.queue.tokens)
        self.relink(shard.shard_id)

    def disown(self, shard_id: int) -> None:
        """The shard is no longer this node's."""
        if self.homes.pop(shard_id, None) is not None:
            self.relink(shard_id)

    def relink(self, shard_id: int) -> None:
        """The home of the rules at this shard has changed."""
        for rule in list(self.at_shard.get(shard_id, {}).values()):
            self._link(rule)
            self.wake_rule(rule)
            # Nothing is reported to a home that is here: keys whose attempts ended while it was unknown have nothing left.
            for state in list(rule.keys.values()):
                self.settle(state)

    def wake_rule(self, rule: RuleState) -> None:
        """Has all that waits for the rule served, and reported if its home is elsewhere."""
        for state in list(rule.keys.values()):
            if state.account is None and state.in_use:
                state.changed = rule.changed = True
            if state.queues or state.blocked:
                self.wake(state)
        if rule.blocked:
            self.wake(rule)
        if rule.accounts is None and rule.keys:
            self.request(rule)

    def sweep(self) -> None:
        """Call it periodically: forgets accounts of idle keys, and rules that are gone."""
        boot_us = self._context.flow_time_us()
        for rule in [each for each in self.rules.values() if each.name.match and not each.keys]:
            if self._context.flows.get(rule.name.namespace, _NO_RULES).get(rule.name.match) is None:
                self._forget_rule(rule)
        for home in self.homes.values():
            for accounts in home.rules.values():
                accounts.forget_idle(boot_us, _SWEPT_AT_ONCE)

    def close(self) -> None:
        """Cancels what is planned."""
        for handle in (self._alarm, self._turn):
            if handle is not None:
                handle.cancel()

    # ------------------------------------------------------------------ shown

    def known(self, namespace: str, key: str) -> KeyState | None:
        """The key of a flow, or an empty one for the namespace's own limits, if it has something here."""
        if not key:
            rule = self.rules.get(RuleName(namespace, ""))
        else:
            flow = self._context.flows.get(namespace, _NO_RULES).find(key)
            rule = None if flow is None else self.rules.get(RuleName(namespace, flow.match))
        return None if rule is None else rule.keys.get(key)

    def obstacle(self, namespace: str, flow_key: str) -> tuple[Obstacle, str] | None:
        """Why the limits keep an attempt of this flow key from beginning now, and the key of the flow, empty for the limits
        of the namespace; None if they do not."""
        known = self._context.namespaces.get(namespace)
        keys = [flow_key] if flow_key else []
        if known is not None and known.limits is not None:
            keys.append("")
        for key in keys:
            flow = self._context.flows.get(namespace, _NO_RULES).find(key) if key else None
            if flow is not None and flow.closed_until(self._context.clock.now_us()) is not None:
                return Obstacle.PAUSED_FLOW, key
            state = self.known(namespace, key)
            if state is not None and (state.queues or state.blocked or self.room(namespace, key) == 0):
                return Obstacle.FLOW, key
        return None

    def room(self, namespace: str, key: str) -> int | None:
        """How many of the key's timers may begin at once, as far as is known; None: any number, nothing of it is here."""
        flow = self._context.flows.get(namespace, _NO_RULES).find(key) if key else None
        if flow is not None and flow.closed_until(self._context.clock.now_us()) is not None:
            return 0
        state = self.known(namespace, key)
        if state is None:
            return None
        if state.account is None or state.rule.accounts is None:
            # One has to ask.
            return 0 if state.has_timers else 1
        boot_us = self._context.flow_time_us()
        return min(state.account.free(boot_us), state.rule.accounts.total.free(boot_us))
