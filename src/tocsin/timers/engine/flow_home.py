"""The home of rules of flows: what the owner of a shard accounts for, for all nodes (ADR 99). Pure."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import islice

from tocsin.model.flow import Flow, FlowLimits
from tocsin.ports.flows import FlowAnswer, FlowGrant, FlowReport, KeyReport, RuleReport
from tocsin.timers.engine.flow_accounts import Account, Usage
from tocsin.timers.engine.flow_tokens import RuleName, TokenRows

#: After how long a node that was granted less than it wanted asks again if nothing has become free: it may want no more, and
#: a notification may be lost.
ASK_AGAIN_US = 500_000
#: How long a node counts as waiting without asking again.
WAITING_US = 2 * ASK_AGAIN_US
#: After how many new accounts as many are checked for being forgettable: the more accounts, the more at once.
_CHECKED_MIN, _CHECKED_MAX = 4, 64


class RuleAccounts:
    """The accounts of one rule: of each key that is in use, and of all together. None of a key is as good as a new one.
    Without `tokens`, slow rates are like others."""

    def __init__(
        self, flow: Flow, usage: Usage, since_us: int, tokens: TokenRows | None = None, now_us: int = 0
    ) -> None:
        self.flow = flow
        self.total = Account(flow.total, usage, since_us)
        self._since_us = since_us
        self._made_at_us = now_us
        self._tokens = tokens
        self._keys: dict[str, Account] = {}
        self._slow = self._is_slow(flow.per_key)
        if self._is_slow(flow.total):
            self._begin_slow("", self.total, now_us)
        # How many accounts are checked next, and after how many new ones.
        self._checked = self._new_until_check = _CHECKED_MIN

    def __len__(self) -> int:
        return len(self._keys)

    def change(self, flow: Flow, now_us: int) -> None:
        """Goes on with another version of the rule."""
        self.flow = flow
        self._slow = self._is_slow(flow.per_key)
        self._change("", self.total, flow.total, now_us)
        for key, account in self._keys.items():
            self._change(key, account, flow.per_key, now_us)

    def _change(self, key: str, account: Account, limits: FlowLimits | None, now_us: int) -> None:
        account.noted = self._note(key) if self._is_slow(limits) else None
        account.change(limits, now_us)

    def _is_slow(self, limits: FlowLimits | None) -> bool:
        return limits is not None and self._tokens is not None and limits.is_slow

    def _begin_slow(self, key: str, account: Account, now_us: int) -> None:
        """A new account of a slow rate. It has to be looked up, unless these accounts are so old that all tokens are there
        whatever was granted before: they would know of what was granted since."""
        assert self._tokens is not None
        account.noted = self._note(key)
        if not Account(account.limits, None, self._made_at_us).forgettable(now_us):
            account.ask()
            self._tokens.want((RuleName(self.flow.namespace, self.flow.match), key))

    def _note(self, key: str) -> Callable[[Account], None]:
        assert self._tokens is not None
        return partial(self._tokens.note, (RuleName(self.flow.namespace, self.flow.match), key))

    def looked_up(self, key: str) -> Account | None:
        """The account that was to be looked up, of all keys together if `key` is empty and the rule has others; None: it is
        not unknown any more."""
        account = self._keys.get(key) if key or not self.flow.match else self.total
        return account if account is not None and account.unknown else None

    def key(self, key: str, now_us: int) -> Account:
        """The key's account."""
        account = self._keys.get(key)
        if account is None:
            self._new_until_check -= 1
            if not self._new_until_check:
                self.forget_idle(now_us, self._checked)
                self._checked = min(_CHECKED_MIN + len(self._keys) // 16, _CHECKED_MAX)
                self._new_until_check = self._checked
            account = self._keys[key] = Account(self.flow.per_key, None, self._since_us)
            if self._slow:
                self._begin_slow(key, account, now_us)
        return account

    def known(self, key: str) -> Account | None:
        """The key's account, unless it is as good as a new one."""
        return self._keys.get(key)

    def forget_idle(self, now_us: int, most: int) -> None:
        """Forgets accounts that are as good as new ones, among those that have not been checked for longest."""
        keys = self._keys
        # Many at once: to find the first of a dict, Python passes over all that were deleted before it.
        for key, account in list(islice(keys.items(), most)):
            del keys[key]
            if account.local is not None or not account.forgettable(now_us):
                keys[key] = account


#: Accounts whose waiting nodes may get something since they were last notified, in a fixed order.
_Opened = dict[Account, None]


class Home:
    """The rules whose home is a shard of this node, in one epoch of the shard. `tokens`: what the shard keeps of slow
    rates."""

    def __init__(self, shard_id: int, epoch: int, claimed_at_us: int, tokens: TokenRows | None = None) -> None:
        self.shard_id = shard_id
        self.epoch = epoch
        self.claimed_at_us = claimed_at_us
        self.tokens = tokens
        self.rules: dict[RuleName, RuleAccounts] = {}
        self._awaited: set[bytes] | None = None
        self._awaited_until_us = 0
        #: Whether it was found to grant (`grants`): it does for the rest of its epoch.
        self.grants_from_now_on = False
        self._numbers: dict[bytes, int] = {}
        #: The other nodes of which it has a report that counts.
        self.nodes: set[bytes] = set()
        #: Nodes that wait for what has become free, and whose turn it is; the caller notifies them.
        self.to_notify: set[bytes] = set()
        # What each node has an account of.
        self._of_node: dict[bytes, dict[tuple[RuleName, str], None]] = {}

    def begin_rule(self, name: RuleName, flow: Flow, usage: Usage, now_us: int) -> RuleAccounts:
        """Accounts of a rule that has none yet."""
        accounts = self.rules[name] = RuleAccounts(flow, usage, self.claimed_at_us, self.tokens, now_us)
        return accounts

    # ------------------------------------------------------------------ the first reports

    def begin(self, others: set[bytes], now_us: int, patience_us: int) -> bool:
        """Begins to wait for the reports of the other living nodes, unless that has begun: attempts may be in flight that the
        former home had granted. After `patience_us`, the silent ones are presumed dead. Returns whether they have to be asked
        now."""
        if self._awaited is not None:
            return False
        self._awaited = others - self.nodes
        self._awaited_until_us = now_us + patience_us
        return bool(self._awaited)

    def awaited(self, now_us: int) -> set[bytes]:
        """The nodes whose reports it waits for, each of which it has to ask."""
        if self._awaited and now_us >= self._awaited_until_us:
            # They are presumed dead: they begin nothing, and what they left at receivers counts no more.
            self._awaited = set()
        return self._awaited or set()

    def grants(self, now_us: int) -> bool:
        """Whether it grants already."""
        if not self.grants_from_now_on:
            self.grants_from_now_on = self._awaited is not None and not self.awaited(now_us)
        return self.grants_from_now_on

    def forget(self, node: bytes) -> None:
        """The node is presumed dead. Its reports count again as soon as one comes."""
        if self._awaited:
            self._awaited.discard(node)
        self.nodes.discard(node)
        for name, key in self._of_node.pop(node, ()):
            self._forget_of(name, key, node)
        for accounts in self.rules.values():
            accounts.total.forget(node)

    def _forget_of(self, name: RuleName, key: str, node: bytes) -> None:
        accounts = self.rules.get(name)
        account = None if accounts is None else accounts.known(key)
        if account is not None:
            account.forget(node)

    # ------------------------------------------------------------------ reports

    def report(self, report: FlowReport, now_us: int, *, may_grant: bool) -> FlowAnswer:
        """Takes another node's report, and grants what it wants as far as there is something and the home `may_grant` now.
        One that a later one has overtaken changes nothing. A rule without accounts is unknown: nothing of it is granted."""
        node = report.incarnation
        answer = FlowAnswer(self.shard_id, self.epoch, report.number, [])
        if report.number <= self._numbers.get(node, 0):
            return answer
        self._numbers[node] = report.number
        self.nodes.add(node)
        opened = self._settle(report, now_us)
        if self._awaited:
            self._awaited.discard(node)
        may_grant = may_grant and self.grants(now_us)
        for rule in report.rules:
            accounts = self.rules.get(RuleName(rule.namespace, rule.match))
            for key in rule.keys:
                if key.wanted <= 0:
                    if accounts is not None:
                        _leave(accounts.key(key.key, now_us), node, opened)
                elif accounts is None or not may_grant:
                    answer.grants.append(_nothing(rule, key, ASK_AGAIN_US // 4))
                else:
                    answer.grants.append(_grant(accounts, rule, key, node, now_us, opened))
        for account in opened:
            self.to_notify.update(account.in_turn(now_us))
        return answer

    def _settle(self, report: FlowReport, now_us: int) -> _Opened:
        """Notes all that the node states, before any of it is granted. Returns the accounts of which that frees something."""
        node, had, has = (
            report.incarnation,
            self._of_node.pop(report.incarnation, {}),
            dict[tuple[RuleName, str], None](),
        )
        ruled, opened = set(), _Opened()
        for rule in report.rules:
            name = RuleName(rule.namespace, rule.match)
            accounts = self.rules.get(name)
            if accounts is None:
                continue
            ruled.add(name)
            if accounts.total.report(node, rule.life, rule.in_use, rule.begun, now_us):
                opened[accounts.total] = None
            for key in rule.keys:
                account = accounts.key(key.key, now_us)
                if account.report(node, key.life, key.in_use, key.begun, now_us):
                    opened[account] = None
                if key.closed_us:
                    account.closed_until = max(account.closed_until, now_us + key.closed_us)
                has[name, key.key] = None
        for name, key_name in had.keys() - has.keys():
            self._forget_of(name, key_name, node)
        for name, accounts in self.rules.items():
            if name not in ruled:
                accounts.total.forget(node)
        if has:
            self._of_node[node] = has
        return opened


def _leave(account: Account, node: bytes, opened: _Opened) -> None:
    """The node waits no more: if it did, it is the turn of the next one."""
    if account.has_all(node):
        opened[account] = None


def _grant(
    accounts: RuleAccounts, rule: RuleReport, key: KeyReport, node: bytes, now_us: int, opened: _Opened
) -> FlowGrant:
    """What the node is granted of the key: what is free, but nothing for which others have waited for longer."""
    account, total = accounts.key(key.key, now_us), accounts.total
    of_key, of_all = account.free_for(node, now_us), total.free_for(node, now_us)
    count = min(key.wanted, of_key, of_all)
    if count:
        account.grant(node, count, now_us)
        total.grant(node, count, now_us)
    if count < key.wanted:
        closed = account if of_key <= of_all else total
        closed.wait(node, now_us + WAITING_US, had_turn=count > 0)
    else:
        _leave(account, node, opened)
        _leave(total, node, opened)
    if count:
        return FlowGrant(rule.namespace, rule.match, key.key, count)
    again_us = max(account.again_in_us(now_us), total.again_in_us(now_us))
    return _nothing(rule, key, min(again_us or ASK_AGAIN_US, ASK_AGAIN_US))


def _nothing(rule: RuleReport, key: KeyReport, again_us: int) -> FlowGrant:
    return FlowGrant(rule.namespace, rule.match, key.key, 0, again_us)
