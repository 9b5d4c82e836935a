"""Notifications in the simulation: each durable end is reported by a notification of the same batch, nothing else is, and
each notification is sent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from tocsin.model.hooks import Hook, Hooks
from tocsin.model.run import RunStatus, decode_run
from tocsin.model.timer import Status, Timer, decode_record
from tocsin.ports.http import Invocation
from tocsin.ports.store import NOTIFICATIONS_SUFFIX, HistoryRow, ShardBatch, StoredRow

from .durable import watch_durable

if TYPE_CHECKING:
    from .world import World

HOOK_HOST = "hooks"
_HOOK = Hook(f"http://{HOOK_HOST}/")
#: The hooks of namespaces.
HOOKS = Hooks(_HOOK, _HOOK, _HOOK, _HOOK, _HOOK)
_FAILED, _SUCCEEDED = "failed", "succeeded"
_VERBS = {
    Status.COMPLETED: _SUCCEEDED, Status.FAILED: _FAILED, Status.EXPIRED: _FAILED,
    RunStatus.COMPLETED: _SUCCEEDED, RunStatus.FAILED: _FAILED, RunStatus.EXPIRED: _FAILED,
}  # fmt: skip


class _Content(msgspec.Struct):
    type: str


_content = msgspec.json.Decoder(_Content)


class NotificationLedger:
    """What is durable of notifications, and which of them were sent."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._durable: dict[bytes, str] = {}
        self._sent: set[bytes] = set()

    def watch(self) -> None:
        """Has every durable transaction of the store checked."""
        watch_durable(self._world, self._written)

    def _written(self, batch: ShardBatch) -> None:
        ended = Counter(self._ends(batch))
        reported: Counter[tuple[str, str]] = Counter()
        for row in batch.upserts:
            if row.namespace.endswith(NOTIFICATIONS_SUFFIX) and row.uuid not in self._durable:
                timer = decode_record(row.record)
                assert timer.body is not None
                verb = _content.decode(timer.body.sent()).type.partition(".")[2]
                self._durable[row.uuid] = verb
                if verb in (_FAILED, _SUCCEEDED):
                    reported[row.timer_id, verb] += 1
        if ended != reported:
            self._world.broken("NOT REPORTED", f"ended {ended - reported}, reported {reported - ended}")

    def _ends(self, batch: ShardBatch) -> Iterator[tuple[str, str]]:
        """The ends in the batch, of subjects with hooks: id and verb."""
        wanted = self._world.notified_namespaces
        rows: list[StoredRow | HistoryRow] = [*batch.upserts, *batch.history]
        subjects = {row.uuid: row.timer_id for row in rows if row.namespace.partition("/")[0] in wanted}
        for row in batch.history:
            timer = decode_record(row.record)
            if self._is_subject(timer) and timer.schedule is None and timer.status is not Status.CANCELED:
                yield timer.id, _VERBS[timer.status]
        for run in batch.runs:
            decoded = decode_run(run.record)
            if decoded.status in _VERBS and run.uuid in subjects:
                yield subjects[run.uuid], _VERBS[decoded.status]

    def _is_subject(self, timer: Timer) -> bool:
        return timer.notifies is None and timer.namespace in self._world.notified_namespaces

    def called(self, invocation: Invocation, node: str) -> None:
        """Records a call of a hook."""
        uuid = bytes.fromhex(invocation.message_id.split("_")[1])
        self._world.record("NOTIFY", node, uuid.hex()[:6], invocation.message_id.rpartition("_")[2])
        if uuid not in self._durable:
            self._world.broken("UNTRUE", f"a hook is notified of what is not durable: {invocation.message_id}")
        self._sent.add(uuid)

    def check(self) -> None:
        """Checks at the end of a run that each notification was sent."""
        missing = self._durable.keys() - self._sent
        if missing:
            self._world.broken("NOT NOTIFIED", f"{len(missing)} of {len(self._durable)} notifications were never sent")
