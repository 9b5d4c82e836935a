"""The ledger of a run: acknowledged writes, observed calls, and the checks that they agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from enum import Enum

from tocsin.model.retry import RetryPolicy
from tocsin.model.timer import Status, Timer

#: The token of "no pending timer"; tokens of writes count from 1.
ABSENT = 0
#: The retry policy of timers without one of their own, in every namespace.
NAMESPACE_POLICY = RetryPolicy(max_attempts=1)


class Violation(AssertionError):
    """A guarantee was violated. `kind` is a stable word that identifies the violation across runs."""

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(f"{kind}: {detail}")
        self.kind = kind


class ReceiverAnswer(Enum):
    """The result of an attempt by the receiver's answer. No attempt follows `REFUSED`."""

    DONE = 1
    REFUSED = 2
    RESCHEDULED = 3
    FAILED = 4


def is_expired(timer: Timer) -> bool:
    """Whether a finished timer ended, by its status, because its time was over. Only one that failed may do so before that:
    its next attempt would have begun too late."""
    limit = timer.expires_at
    if limit is None or "EXPIRED: " not in (timer.last_error or ""):
        return False
    return timer.attempts > 0 or (timer.executed_at is not None and timer.executed_at > limit)


class Ledger:
    """Every write has a token, which its timer's payload carries; per timer, `possible` has the tokens of the states in
    which it may be: one after an acknowledgement, more while outcomes are unknown. A reschedule by the receiver makes a
    child token of the same root. `expired` returns the tokens of a timer's firings that, by its history, ended because their
    time was over."""

    def __init__(
        self, broken: Callable[[str, str], None], expired: Callable[[bytes], Iterable[int]] = lambda uuid: ()
    ) -> None:
        self._broken = broken
        self._expired = expired
        #: The `expire_after_us` of tokens that have one, and the last instant for their attempts, where it is known.
        self._expire_after: dict[int, int] = {}
        self._limits: dict[int, int] = {}
        self._attempted: set[int] = set()
        self._tokens = 0
        self.possible: dict[bytes, set[int]] = {}
        self.due: dict[int, int] = {}
        self.wanted: dict[int, int] = {}
        self.acknowledged_at: dict[int, int] = {}
        self.root: dict[int, int] = {}
        self.single: set[int] = set()
        self.settled: set[int] = set()
        self.fires: dict[int, int] = {}
        self.done: set[int] = set()
        self.duplicates = 0
        # The answers that the service received, by token, and how many attempts failed, by timer and by token.
        self._answers: dict[int, set[ReceiverAnswer]] = {}
        self._failures: dict[bytes, int] = {}
        self._failures_of: dict[int, int] = {}
        self.attempts_max: dict[int, int] = {}
        self._deletes: set[bytes] = set()
        self._refusals: Counter[bytes] = Counter()
        # Requests that were sent, by message id: one id for all attempts of a firing.
        self._sent: dict[bytes, int] = {}
        #: Timers of which an attempt began and could not be sent.
        self._unsent: set[bytes] = set()
        #: Tokens of replays, which continue a firing that has ended.
        self.replays: set[int] = set()
        #: Timers that clients wanted to replay.
        self.replayed_uuids: set[bytes] = set()
        #: Tokens of creates with an idempotency key, and the firings of each.
        self.keyed: set[int] = set()
        self._fired_as: dict[int, str] = {}
        #: Roots that an answer to a client has reported as finished.
        self.over: set[int] = set()
        #: Timers that were ever acknowledged.
        self.created: set[bytes] = set()
        self.early_us_max = 0
        #: Namespaces whose pause was acknowledged, and for which no resume was requested.
        self.paused: set[str] = set()
        #: The secrets of a namespace are numbered, 0: none. The latest one that was acknowledged, by namespace; and the one
        #: that was known where a write was taken, the earliest one of those of its tries, by root.
        self.secret: dict[str, int] = {}
        self.signed_since: dict[int, int] = {}

    def token(
        self, due: int, now: int, *, parent: int | None = None, single: bool = False, attempts_max: int = 0,
        expire_after_us: int | None = None, moves: bool = True,
    ) -> int:  # fmt: skip
        """A new token, made `now`: not to fire before `due`; `single` when one attempt, whatever its end, settles it, and
        `attempts_max` how many failed ones do (0: they don't, or it is not known). It expires `expire_after_us` after `due`,
        or at an unknown instant unless it `moves` the timer there; a child like its parent."""
        self._tokens += 1
        self.due[self._tokens] = due
        self.wanted[self._tokens] = max(due, now)
        self.root[self._tokens] = self.root[parent] if parent is not None else self._tokens
        if parent is not None:
            expire_after_us = self._expire_after.get(parent)
        if expire_after_us is not None:
            self._expire_after[self._tokens] = expire_after_us
            if moves:
                self._limits[self._tokens] = due + expire_after_us
        if single:
            self.single.add(self._tokens)
        if attempts_max:
            self.attempts_max[self._tokens] = attempts_max
        return self._tokens

    def states(self, uuid: bytes) -> set[int]:
        """The tokens of the timer's possible states."""
        return self.possible.setdefault(uuid, {ABSENT})

    def is_settled(self, token: int) -> bool:
        """Whether the service has received a final answer for the token."""
        return self.root[token] in self.settled

    def has_ended(self, uuid: bytes, token: int) -> bool:
        """Whether the token is settled, or its timer has expired. Of one whose writes the store refused twice the history may
        be lost, which is all that shows an expiry (rule 5)."""
        if token not in self._expire_after or self.is_settled(token):
            return self.is_settled(token)
        if self._refusals[uuid] > 1:
            return True
        self.settled.update(self.root[each] for each in self._expired(uuid))
        return self.is_settled(token)

    # ------------------------------------------------------------------ answers to clients

    def acknowledged(self, uuid: bytes, token: int, at: int = 0) -> None:
        """Records an acknowledgement: the write (or delete: ABSENT) is durable."""
        self.possible[uuid] = {token}
        self.acknowledged_at[token] = at

    def late_since(self, token: int) -> int | None:
        """The instant from which on the timer is late; None while no write was acknowledged."""
        promised = 0 if token != self.root[token] else self.acknowledged_at.get(token)
        return None if promised is None else max(self.wanted[token], promised)

    def gone(self, uuid: bytes, answer: str) -> None:
        """Records the answer that no pending timer exists, which must be true and stay true."""
        states = self.states(uuid)
        if not any(token == ABSENT or self.has_ended(uuid, token) for token in states):
            self._broken("LOST", f"{uuid.hex()[:6]} was answered {answer} in states {sorted(states)}")
        self.possible[uuid] = {ABSENT}

    def pending(self, uuid: bytes) -> None:
        """Records the answer that the timer has not finished, which was true a moment ago."""
        if self.states(uuid) == {ABSENT}:
            self._broken("UNTRUE", f"{uuid.hex()[:6]} was answered TIMER_PENDING after it was gone")

    def replayed(self, uuid: bytes, token: int) -> None:
        """Records that the token's write replayed the timer, which had to have finished."""
        if not any(state == ABSENT or self.has_ended(uuid, state) for state in self.states(uuid) - {token}):
            self._broken("LOST", f"{uuid.hex()[:6]} was replayed in states {sorted(self.states(uuid))}")

    def taken(self, token: int, secret: int) -> None:
        """Records that a node that knows this secret of its namespace accepts the write."""
        self.signed_since[token] = min(secret, self.signed_since.get(token, secret))

    # ------------------------------------------------------------------ calls of the receiver

    def called(self, namespace: str, token: int, secret: int, who: str) -> None:
        """Records the start of a call that is signed with that secret."""
        if namespace in self.paused:
            self._broken("PAUSED", f"{namespace} token {token} by {who} after an acknowledged pause")
        expected = max(self.secret.get(namespace, 0), self.signed_since.get(self.root[token], 0))
        if secret < expected:
            self._broken(
                "UNSIGNED", f"{namespace} token {token} by {who} with secret {secret}, {expected} was promised"
            )

    def record_firing(self, uuid: bytes, token: int, node_now: int, true_now: int, doubt_us: int, who: str) -> None:
        """Records a call of the receiver."""
        root = self.root[token]
        self.fires[root] = self.fires.get(root, 0) + 1
        what = f"{uuid.hex()[:6]} token {token} by {who}"
        if node_now < self.due[token]:
            self._broken("EARLY", f"{what}, {self.due[token] - node_now} us by its own clock")
        early = self.due[token] - true_now
        self.early_us_max = max(self.early_us_max, early)
        if early > doubt_us:
            self._broken("EARLY", f"{what}, {early} us before true time, {doubt_us} allowed")
        states = self.states(uuid)
        if not any(state != ABSENT and self.root[state] == root for state in states):
            self._broken("AFTER DELETE" if states == {ABSENT} else "SUPERSEDED", f"{what}, states {sorted(states)}")
        if token in self.done:
            self.duplicates += 1
        self._attempted.add(token)
        if token in self.single:
            self.settled.add(root)

    def begins(self, token: int, node_now: int) -> None:
        """Records that an attempt begins, by the node's clock."""
        limit = self._limits.get(token)
        if limit is not None and node_now > limit:
            self._broken("EXPIRED", f"token {token} fires {node_now - limit} us after its limit")

    def fired_as(self, token: int, message_id: str) -> None:
        """Records the call's id: all calls of a create with a key have the same one, however often the create was
        repeated."""
        if token in self.keyed and self._fired_as.setdefault(token, message_id) != message_id:
            self._broken("TWICE", f"token {token} fired as {self._fired_as[token]}, and as {message_id}")
        if self.root[token] in self.over:
            self._broken("OVER", f"token {token} fires after an answer that it has finished")

    def sent(self, uuid: bytes, attempt: int) -> None:
        """Records a sent request with its attempt number: attempts that were not sent don't count, so no number is
        skipped."""
        self._sent[uuid] = self._sent.get(uuid, 0) + 1
        if attempt > self._sent[uuid]:
            self._broken("COUNTED", f"{uuid.hex()[:6]}: attempt {attempt} is the {self._sent[uuid]}th that was sent")

    def not_sent(self, uuid: bytes) -> None:
        """Records an attempt that begins and will turn out not to have been sent."""
        self._unsent.add(uuid)

    def answered(self, uuid: bytes, token: int, answer: ReceiverAnswer) -> None:
        """Records that the service received the receiver's answer."""
        self._answers.setdefault(token, set()).add(answer)
        if answer in (ReceiverAnswer.FAILED, ReceiverAnswer.REFUSED):
            self._failures[uuid] = self._failures.get(uuid, 0) + 1
            self._failures_of[token] = self._failures_of.get(token, 0) + 1
        exhausted = 0 < self.attempts_max.get(token, 0) <= self._failures_of.get(token, 0)
        if answer in (ReceiverAnswer.DONE, ReceiverAnswer.REFUSED) or exhausted:
            self.settled.add(self.root[token])
        if answer is not ReceiverAnswer.FAILED:
            # Nothing of this token may fire again.
            self.done.add(token)

    def refused(self, uuid: bytes) -> None:
        """Records that the store refused a write of the timer alone."""
        self._refusals[uuid] += 1

    def delete_asked(self, uuid: bytes) -> None:
        """Records that a client requests the timer's deletion."""
        self._deletes.add(uuid)

    def finished_as(self, uuid: bytes, token: int, timer: Timer, *, faulty: bool) -> None:
        """Checks a finished timer's history. An update begins another firing and does not reset the number of attempts. In a
        `faulty` run an attempt may be forgotten, with the node that made it; and so may be that it was not sent, so that its
        timer fails instead of expiring."""
        what = f"{uuid.hex()[:6]} token {token} {timer.status} after {timer.attempts} attempts"
        answers, sent, failures = self._answers.get(token, set()), self._sent.get(uuid, 0), self._failures.get(uuid, 0)
        if timer.attempts > sent:
            self._broken("COUNTED", f"{what}, {sent} were sent")
        policy = timer.retry or NAMESPACE_POLICY
        begun = sent > 0 or (faulty and uuid in self._unsent)
        exhausted = ReceiverAnswer.FAILED in answers and policy.max_attempts <= timer.attempts <= failures
        true = {
            Status.COMPLETED: ReceiverAnswer.DONE in answers,
            Status.FAILED: ReceiverAnswer.REFUSED in answers or exhausted or (begun and is_expired(timer)),
            Status.CANCELED: uuid in self._deletes,
            Status.EXPIRED: is_expired(timer) and timer.attempts == 0 and (faulty or token not in self._attempted),
        }
        if not true.get(timer.status, False):
            self._broken("UNTRUE", f"{what} of {policy.max_attempts}, {failures} failed, answers {answers}")

    # ------------------------------------------------------------------ against the store

    def check(self, live: dict[bytes, int]) -> None:
        """Checks `live`, the token of every timer in the store: each acknowledged timer is there or has fired."""
        for uuid, states in self.possible.items():
            if any(token == ABSENT or self.has_ended(uuid, token) for token in states):
                continue
            present = live.get(uuid)
            roots = {self.root[token] for token in states}
            if present is None or self.root[present] not in roots:
                self._broken("LOST", f"{uuid.hex()[:6]} in states {sorted(states)}, stored: {present}")
                return

    def check_drained(self, live: dict[bytes, int]) -> None:
        """Checks that nothing is pending at the end of a healed run."""
        self.check(live)
        for uuid, token in live.items():
            states = self.states(uuid)
            expected = any(state != ABSENT and self.root[state] == self.root[token] for state in states)
            self._broken("STUCK" if expected else "LEAKED", f"{uuid.hex()[:6]} token {token}, states {sorted(states)}")
            return
