"""Ensures that one agent at a time writes to a PostgreSQL database, even if processes freeze and resume.

Three mechanisms, because none of them is sufficient alone:

- A session-level advisory lock on a connection that does nothing else. The server releases it as soon as the process
  dies or unlocks it, so that another agent takes over at once. But the server also releases it when the network or the
  server itself fails, while writes use other connections: the lock decides who may start, not who has stopped. And a
  frozen process keeps it.
- A heartbeat, which waiting agents watch with their own clocks. If neither heartbeat nor session have changed for
  `leader_lease`, a waiting agent terminates the session.
- An epoch, a number that grows with every takeover. Each writing transaction locks the epoch's row FOR SHARE and checks
  that it is still the epoch in which the agent started; a takeover updates that row. So a takeover waits for
  transactions in progress, and later ones of an older epoch are refused.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import AsyncIterator, Callable
from typing import Any, NamedTuple

import asyncpg  # type: ignore[import-untyped]

from tocsin.model.errors import StoreLocked, StoreUnavailable
from tocsin.sql.pool import Activity
from tocsin.stores.postgresql.driver import Connection
from tocsin.stores.postgresql.errors import TRANSLATED, translate_error
from tocsin.stores.postgresql.hosts import Hosts
from tocsin.stores.service_calls.database import Claimant
from tocsin.stores.service_calls.settings import SqlSettings
from tocsin.tasks import end_tasks

#: "Tocsin" as a number. An advisory lock applies to one database; other databases of the server are not affected.
LOCK_KEY = 0x546F6373696E

_TRY = "SELECT pg_try_advisory_lock($1)"
_HOLDER = """
SELECT a.pid, coalesce(host(a.client_addr), 'local') AS host, a.application_name
FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid JOIN pg_database d ON d.oid = l.database
WHERE l.locktype = 'advisory' AND l.granted AND d.datname = current_database() AND l.objsubid = 1
AND (l.classid::bigint << 32) + l.objid::bigint = $1
"""
_END_HOLDER = f"SELECT pg_terminate_backend(holder.pid) FROM ({_HOLDER}) AS holder WHERE holder.pid = $2"
_LEADER = "SELECT l.epoch, l.node, h.beats FROM agent_leader l, agent_heartbeat h"
_BEAT = "UPDATE agent_heartbeat SET beats = beats + 1 WHERE EXISTS (SELECT 1 FROM agent_leader WHERE epoch = $1)"
_CLAIM = (
    "UPDATE agent_leader SET epoch = epoch + 1, node = $1, incarnation = $2, since = clock_timestamp() RETURNING epoch"
)
_FENCE = "SELECT epoch FROM agent_leader WHERE id = 1 FOR SHARE"


class Holder(NamedTuple):
    """The agent that holds the database, as waiting agents see it. `node` is empty if unknown, `pid` is 0 if nobody
    holds it."""

    pid: int = 0
    node: str = ""
    place: str = "which just ended"
    epoch: int = 0
    beats: int = 0

    def __str__(self) -> str:
        return f"node {self.node}, {self.place}" if self.node else self.place


class Watch:
    """Measures for how long a holder has shown no sign of life. It expects one observation per `interval_s`.

    A longer pause between two observations counts as two intervals: this process may have been frozen, and on a machine
    that was suspended the holder was frozen too.
    """

    def __init__(self, interval_s: float, now_s: Callable[[], float] = time.monotonic) -> None:
        self._pause_max_s = 2 * interval_s
        self._now_s = now_s
        self._seen = Holder()
        self._checked_s = 0.0
        self._silent_s = 0.0

    def silent_s(self, holder: Holder) -> float:
        """Records an observation. Returns for how many seconds the holder has not changed."""
        now_s = self._now_s()
        if holder != self._seen or not holder.beats:
            self._seen, self._silent_s = holder, 0.0
        else:
            self._silent_s += min(now_s - self._checked_s, self._pause_max_s)
        self._checked_s = now_s
        return self._silent_s


class LeaderLock:
    """One agent's side of the lock. Call `acquire`, then `claim` in its own transaction, `begin` once that is
    committed, and `fence` in each writing transaction.

    If the lock's session ends, `check` raises, so that nothing new begins, and the lock is acquired again. If no other
    agent has claimed the database since, this agent continues. Otherwise leadership is lost: `lost` returns, and
    nothing is written any more.
    """

    def __init__(
        self, hosts: Hosts, parameters: dict[str, str], name: str, claimant: Claimant, settings: SqlSettings
    ) -> None:
        """`parameters` are the session's, `name` is the database's, for messages."""
        self._hosts = hosts
        self._parameters = parameters
        self._name = name
        self._claimant = claimant
        self._settings = settings
        self._connection: Any = None
        self._session_ended = asyncio.Event()
        self._over = asyncio.Event()
        self._why_over = ""
        self._keeper: asyncio.Task[None] | None = None
        self._last_error = ""
        self.epoch = 0

    @property
    def lock_held(self) -> bool:
        """Whether this agent holds the lock, as far as it knows."""
        return self._connection is not None and not self._connection.is_closed() and not self._over.is_set()

    def check(self) -> None:
        """Raises StoreUnavailable unless this agent holds the lock."""
        if self._over.is_set():
            raise StoreUnavailable(f"{self._name}: {self._why_over}")
        if not self.lock_held:
            raise StoreUnavailable(
                f"{self._name}: the agent's lock was lost and is being reacquired {self._last_error}"
            )

    async def lost(self) -> str:
        """Returns the reason once leadership is lost."""
        await self._over.wait()
        return self._why_over

    # ------------------------------------------------------------------ taking it

    async def acquire(self, wait_s: float, standing_by: Callable[[str], None] | None = None) -> None:
        """Acquires the lock; waits for another agent to release it or to stop its heartbeat. Raises StoreLocked after
        `wait_s`, or StoreUnavailable. `standing_by` is called with the node that holds the lock, at first and whenever
        that changes."""
        deadline_s = time.monotonic() + wait_s
        async with self._session() as connection:
            await self._wait_for_lock(connection, deadline_s, standing_by)
            self._hold(connection)
        self._keeper = asyncio.create_task(self._keep(), name="agent-database-lock")

    async def _wait_for_lock(
        self, connection: Any, deadline_s: float, standing_by: Callable[[str], None] | None
    ) -> None:
        settings, watch, reported = self._settings, Watch(self._settings.leader_renew_interval_s), None
        check_at_s = -math.inf
        while not await connection.fetchval(_TRY, LOCK_KEY):
            now_s = time.monotonic()
            if now_s >= check_at_s or now_s >= deadline_s:
                check_at_s = now_s + settings.leader_renew_interval_s
                holder = await self._holder(connection)
                if now_s >= deadline_s:
                    raise StoreLocked(
                        f"{self._name} is in use by another agent ({holder}); stop that one or choose another database"
                    )
                if standing_by is not None and holder.pid and str(holder) != reported:
                    reported = str(holder)
                    standing_by(holder.node or holder.place)
                if watch.silent_s(holder) >= settings.leader_lease_s:
                    await connection.execute(_END_HOLDER, LOCK_KEY, holder.pid)
            await asyncio.sleep(settings.leader_retry_interval_s)

    async def _holder(self, connection: Any) -> Holder:
        found = await connection.fetchrow(_HOLDER, LOCK_KEY)
        if found is None:
            return Holder()
        holder = Holder(found[0], place=f"{found[2]} at {found[1]}, server process {found[0]}")
        leader = await self._read_leader(connection)
        return holder if leader is None else holder._replace(epoch=leader[0], node=leader[1], beats=leader[2] + 1)

    @staticmethod
    async def _read_leader(connection: Any) -> Any:
        """Epoch, node and heartbeat. None for a database whose first agent has yet to create the tables."""
        try:
            return await connection.fetchrow(_LEADER)
        except asyncpg.UndefinedTableError:
            return None

    @contextlib.asynccontextmanager
    async def _session(self) -> AsyncIterator[Any]:
        """A new session for the lock, which ends at once if it is not held afterwards."""
        connection: Any = None
        try:
            # Each of its short statements has the connection's time, too: a server that has vanished answers neither.
            patience_s = self._settings.connect_timeout_s
            connection = await self._hosts.connect(
                patience_s, server_settings=self._parameters, command_timeout=patience_s
            )
            yield connection
        except (*TRANSLATED, OSError, TimeoutError) as error:
            raise translate_error(error, self._name, Activity.CONNECTING) from error
        finally:
            if connection is not None and connection is not self._connection:
                connection.terminate()

    def _hold(self, connection: Any) -> None:
        self._session_ended.clear()
        connection.add_termination_listener(lambda _: self._session_ended.set())
        self._connection, self._last_error = connection, ""

    async def claim(self, connection: Connection) -> int:
        """Starts the next epoch for this agent; waits for the transactions of the current one. The caller commits."""
        epoch: int = await connection.fetchval(_CLAIM, *self._claimant)
        return epoch

    def begin(self, epoch: int) -> None:
        """This agent owns the epoch from now on. Call it after the commit of `claim`: until then a heartbeat would not
        find the epoch and would take it for another agent's."""
        self.epoch = epoch

    async def fence(self, connection: Connection) -> None:
        """Holds the epoch until the transaction ends. Raises StoreUnavailable if another agent has started a newer one."""
        if await connection.fetchval(_FENCE) != self.epoch:
            self._end("another node has taken over the agent")
            self.check()

    # ------------------------------------------------------------------ keeping it

    async def _keep(self) -> None:
        """Sends heartbeats, and reacquires the lock when its session has ended."""
        while not self._over.is_set():
            if await self._beat():
                with contextlib.suppress(TimeoutError):
                    # Not `wait_for`, which loses a cancellation if the session ends at the same moment.
                    async with asyncio.timeout(self._settings.leader_renew_interval_s):
                        await self._session_ended.wait()
                continue
            self._drop()
            try:
                await self._reacquire()
                alive = await self._beat()
            except Exception as error:  # noqa: BLE001 -- `check` reports it, and the next try may succeed
                self._last_error, alive = f"({error})", False
            if not alive:
                # Also for a session that was opened, but can't write.
                self._drop()
                await asyncio.sleep(self._settings.leader_retry_interval_s)

    async def _beat(self) -> bool:
        """Sends a heartbeat. Returns whether the session is alive."""
        if not self.lock_held:
            return False
        # The answer is about this epoch: another one may have begun when it arrives.
        epoch = self.epoch
        try:
            beat = await self._connection.execute(_BEAT, epoch)
        except asyncpg.UndefinedTableError:
            # The migration that creates the table has not run yet.
            return True
        except Exception as error:  # noqa: BLE001 -- another session may work
            self._last_error = f"({error})"
            return False
        if beat == "UPDATE 0" and epoch:
            self._end("another node has taken over the agent")
        return True

    async def _reacquire(self) -> None:
        async with self._session() as connection:
            taken = await connection.fetchval(_TRY, LOCK_KEY)
            # Without an epoch there is nothing to lose yet: the claim starts the next one, whatever the row contains.
            epoch = self.epoch
            leader = await self._read_leader(connection)
            if epoch and leader is not None and leader[0] != epoch:
                self._end(f"node {leader[1]} has taken over the agent")
            if not taken:
                raise StoreLocked(f"another agent holds it: {await self._holder(connection)}")
            if not self._over.is_set():
                self._hold(connection)

    def _end(self, reason: str) -> None:
        if not self._over.is_set():
            self._why_over = reason
            self._over.set()

    # ------------------------------------------------------------------ giving it up

    async def release(self) -> None:
        """Releases the lock. Idempotent."""
        keeper, self._keeper = self._keeper, None
        try:
            if keeper is not None:
                await end_tasks(keeper)
        finally:
            self._drop()

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.terminate()
