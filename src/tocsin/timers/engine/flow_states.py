"""What a node has of a flow's rule and of its keys."""

from __future__ import annotations

from tocsin.model.flow import Flow
from tocsin.timers.engine.destination import NO_QUEUES, Place
from tocsin.timers.engine.flow_accounts import Account, Usage
from tocsin.timers.engine.flow_home import Home, RuleAccounts
from tocsin.timers.engine.flow_tokens import RuleName
from tocsin.timers.engine.rows import FLOW_REASON

#: The queue of service calls at a key (`call_flows`); those of timers have their shards.
CALLS = ("service calls", "")


class RuleState:
    """A rule on this node. `home` is set while that is here, with the rule's `accounts`."""

    __slots__ = (
        "accounts",
        "alarm_at",
        "blocked",
        "changed",
        "flow",
        "home",
        "keys",
        "name",
        "ordered",
        "shard_id",
        "unused",
        "usage",
    )

    def __init__(self, name: RuleName, flow: Flow, shard_id: int, usage: Usage) -> None:
        self.name = name
        self.apply(flow)
        #: The shard whose owner is the rule's home.
        self.shard_id = shard_id
        self.usage = usage
        self.home: Home | None = None
        self.accounts: RuleAccounts | None = None
        self.keys: dict[str, KeyState] = {}
        #: Keys that wait for what all keys of the rule have together, in the order of their turns.
        self.blocked: dict[KeyState, None] = {}
        #: Whether a key has something to report, and how many grants of all keys are not used: so that nobody has to look
        #: through thousands of keys for each timer.
        self.changed = False
        self.unused = 0
        #: Boot time at which the rule is checked again; 0: not planned.
        self.alarm_at = 0

    def apply(self, flow: Flow) -> None:
        """Goes on with another version of the rule."""
        self.flow = flow
        #: Whether the timers of each key begin in order: asked for each attempt.
        self.ordered = flow.ordered


#: What most keys have of others. Never written to, as in `flow_accounts`.
_NOTHING_BLOCKED: dict[KeyState, None] = {}


class KeyState(Place):
    """A key of a rule that has something on this node: attempts in flight, timers that wait, grants, or something that its
    home does not know yet."""

    __slots__ = (
        "_granted", "account", "alarm_at", "begun", "blocked", "changed", "closed_until", "granted_until", "in_use", "key",
        "life", "namespace_key", "rule", "sent",
    )  # fmt: skip

    def __init__(self, rule: RuleState, key: str, life: int) -> None:
        # What the base class does: this is called for each attempt of a key that has nothing else here.
        self.queues = NO_QUEUES
        self.waiting = 0
        self.rule = rule
        self.key = key
        #: As of a `Usage`.
        self.life = life
        self.in_use = 0
        self.begun = 0
        #: At its home, if that is here.
        self.account: Account | None = None
        #: The key of the namespace's own limits, if it has any and this is not it.
        self.namespace_key: KeyState | None = None
        #: Keys of other rules that wait for this one, in the order of their turns.
        self.blocked = _NOTHING_BLOCKED
        # Grants of a home elsewhere, and until when they are valid (boot time).
        self._granted = 0
        self.granted_until = 0
        #: Boot time until which a receiver has asked for no more.
        self.closed_until = 0
        self.alarm_at = 0
        #: Whether there is something to report since the last report; and the number of that, until it is answered.
        self.changed = False
        self.sent = 0

    def block(self, state: KeyState) -> None:
        """A key of another rule waits for this one, behind those that do so already."""
        if self.blocked is _NOTHING_BLOCKED:
            self.blocked = {}
        self.blocked[state] = None

    @property
    def granted(self) -> int:
        """Grants of a home elsewhere that are not used, valid until `granted_until`."""
        return self._granted

    @granted.setter
    def granted(self, count: int) -> None:
        self.rule.unused += count - self._granted
        self._granted = count

    @property
    def reason(self) -> str:
        return f"{FLOW_REASON}{self.rule.name.namespace}/{self.key}"

    def is_closed(self, flow_time_us: int) -> bool:
        """Whether a receiver has asked for no more until later, as far as this node knows."""
        account = self.account
        return (self.closed_until if account is None else account.closed_until) > flow_time_us

    @property
    def has_timers(self) -> bool:
        """Whether timers wait for it, and not only service calls."""
        return len(self.queues) > (CALLS in self.queues)

    @property
    def waits_for_order(self) -> bool:
        """Whether it is ordered, and the first of its timers that waits here is not the one whose turn it is."""
        return self.rule.ordered and any(
            queue.shard.order.holds_back(self) for place, queue in self.queues.items() if place != CALLS
        )

    @property
    def has_to_ask(self) -> bool:
        outer = self.namespace_key
        return not self.has_timers and (self.account is None or (outer is not None and outer.account is None))

    @property
    def is_idle(self) -> bool:
        """Whether nothing refers to it."""
        return not (
            self.in_use or self.queues or self.blocked or self._granted or self.changed or self.sent or self.alarm_at
        )


#: What an attempt has taken: a slot and a token of each of these.
Taken = tuple[KeyState, ...]
