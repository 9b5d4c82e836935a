"""The runs that receivers have seen, and the check that each one which ended durably is found afterwards."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass

from tocsin.model.failure import FAILED
from tocsin.model.run import Run, RunStatus, decode_run, run_of
from tocsin.model.timer import decode_record
from tocsin.stores.memory import MemoryStore

from .durable import ended_rows


@dataclass(slots=True)
class Write:
    """A client's request, which may be sent several times. `traceable`: it ends a run under the firing that receivers know. A
    plain create does not, because it reads nothing, nor does an update that leaves the instant, after which the same run has
    another firing."""

    token: int
    traceable: bool
    tries: int = 0
    acknowledged: bool = False


@dataclass(slots=True)
class _Firing:
    """The token of its latest run, the attempts of that, and the tokens of all of its runs."""

    token: int
    attempt: int
    tokens: set[int]


class RunLedger:
    """What receivers and clients know of runs. A firing is named as in `webhook-id`."""

    def __init__(self, root: dict[int, int], broken: Callable[[str, str], None]) -> None:
        self._root = root
        self._broken = broken
        self._writes: dict[bytes, list[Write]] = {}
        self._firings: dict[bytes, dict[str, _Firing]] = {}
        #: The token of which an answer of the receiver made this one, by rescheduling the timer.
        self.parent: dict[int, int] = {}

    def asked(self, uuid: bytes, token: int, *, traceable: bool) -> Write:
        """Records a client's request."""
        write = Write(token, traceable)
        self._writes.setdefault(uuid, []).append(write)
        return write

    def called(self, uuid: bytes, token: int, message_id: str, attempt: int) -> None:
        """Records a call of a receiver."""
        firing = self._firings.setdefault(uuid, {}).setdefault(
            message_id.rpartition("_")[2], _Firing(token, 0, {token})
        )
        if token not in firing.tokens:
            # A replay continues the firing. It may have been asked for before the run that it repeats had its token.
            firing.tokens.add(token)
            firing.token, firing.attempt = token, 0
        firing.attempt = max(firing.attempt, attempt)

    def check(self, store: MemoryStore) -> None:
        """Checks that the store has the runs, and that what it reports of them is true."""
        for uuid, firings in self._firings.items():
            found = {run.firing: run for run in _stored_runs(store, uuid)}
            rescheduled = {run.firing for run in found.values() if run.status is RunStatus.RESCHEDULED}
            before = {firings[name].token for name in rescheduled if name in firings}
            for name, firing in firings.items():
                what = f"{uuid.hex()[:6]} token {firing.token} firing {name}"
                parent = self.parent.get(firing.token)
                if parent is not None and parent not in before:
                    self._broken("NO RUN", f"{what}: no run of token {parent}, which its receiver rescheduled")
                # A second attempt proves that the first one was durable.
                if firing.attempt > 1 and name not in found and self._was_moved(uuid, firing.token):
                    self._broken("NO RUN", f"{what}: attempt {firing.attempt} was made")
            children = set(self.parent.values())
            for name in rescheduled:
                if name in firings and firings[name].token not in children:
                    self._broken("UNTRUE", f"{uuid.hex()[:6]} firing {name} was never rescheduled")

    def _was_moved(self, uuid: bytes, token: int) -> bool:
        """Whether the next acknowledged write gave the timer of that token another instant, and no request before it may
        have hidden the firing."""
        for write in self._writes.get(uuid, ()):
            if write.token < self._root[token]:
                continue
            if write.token == self._root[token]:
                # Its own write. Written twice, it may have begun two firings.
                if write.tries > 1 and not write.traceable:
                    return False
                continue
            if not write.traceable or write.acknowledged:
                return write.traceable
        return False


def _stored_runs(store: MemoryStore, uuid: bytes) -> Iterable[Run]:
    for shard in store._shards.values():
        for ended in shard.history.get(uuid, {}).values():
            yield run_of(decode_record(ended.record), ended.status)
        for row in shard.runs.get(uuid, {}).values():
            yield decode_run(row.record)


def check_failures(
    store: MemoryStore, unlisted: str, replayed: Container[bytes], broken: Callable[[str, str], None]
) -> None:
    """Checks that each stored end that failed is listed as a failure, and no other end. Those of the namespace `unlisted`,
    which keeps no history, are not; nor one that a later run replays. Of timers that clients wanted to replay, a replay that
    was overwritten may have left no run."""
    for shard in store._shards.values():
        history = list(ended_rows(shard))
        failed = {(row.uuid, row.generation): row.status in FAILED and row.namespace != unlisted for row in history}
        for row in [row for rows in shard.runs.values() for row in rows.values()]:
            failed[row.uuid, row.generation] = decode_run(row.record).status in (RunStatus.FAILED, RunStatus.EXPIRED)
        replays: dict[tuple[bytes, str], bytes] = {}
        for row in history:
            if (timer := decode_record(row.record)).replay:
                firing = (row.uuid, timer.firing)
                replays[firing] = max(row.generation, replays.get(firing, b""))
        for row in history:
            if row.generation < replays.get((row.uuid, decode_record(row.record).firing), b""):
                failed[row.uuid, row.generation] = False
        for identity, has_failed in failed.items():
            if has_failed and identity[0] in replayed:
                continue
            if has_failed != (identity in shard.failures):
                broken("FAILURES", f"{identity[0].hex()[:6]} has failed: {has_failed}, is listed: {not has_failed}")
