"""Who may write to a PostgreSQL database: one agent at a time, whatever stands still or comes back.

Three things, because none is enough alone:

- An advisory lock of the session of a connection that does nothing else. The server drops it as soon as the process
  dies or lets go, so that another takes over at once. But the server also drops it when a network or the server itself
  fails, and writes go by other connections: it says who may begin, not who has ended. And a process that stands still
  keeps it.
- A heartbeat, which those who wait watch, by their own clocks. Whose heartbeat and session haven't changed for
  `lock_lease` has its session ended by one of them.
- A term, a number that grows with every change of hands. Each writing transaction locks its row FOR SHARE and looks
  whether the term is still the one it began in; a change of hands is an update of that row. So it waits for the
  transactions under way, and whatever comes after it under an older term is refused.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import asyncpg  # type: ignore[import-untyped]
from sqlalchemy import Connection, select, text, update

from tocsin.agent.adapters.sql.errors import DATABASE_ERRORS, postgresql_meaning
from tocsin.agent.adapters.sql.settings import SqlSettings
from tocsin.agent.adapters.sql.tables import agent_leader
from tocsin.model.errors import StoreLocked, StoreUnavailable

#: "Tocsin", as a number. Advisory locks are of one database; other databases of the server are free.
LOCK_KEY = 0x546F6373696E

_TRY = "SELECT pg_try_advisory_lock($1)"
_HOLDER = """
SELECT a.pid, coalesce(host(a.client_addr), 'local') AS host, a.application_name
FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid JOIN pg_database d ON d.oid = l.database
WHERE l.locktype = 'advisory' AND l.granted AND d.datname = current_database() AND l.objsubid = 1
AND (l.classid::bigint << 32) + l.objid::bigint = $1
"""
_END_HOLDER = f"SELECT pg_terminate_backend(holder.pid) FROM ({_HOLDER}) AS holder WHERE holder.pid = $2"
_LEADER = "SELECT l.term, l.node, h.beats FROM agent_leader l, agent_heartbeat h"
_BEAT = "UPDATE agent_heartbeat SET beats = beats + 1 WHERE EXISTS (SELECT 1 FROM agent_leader WHERE term = $1)"

_leader = agent_leader.c
_FENCE = select(_leader.term).where(_leader.id == 1).with_for_update(read=True)


class Claimant(NamedTuple):
    """Who wants a database: the node's name, for people, and its incarnation, for the other nodes."""

    node: str = ""
    incarnation: str = ""


class Holder(NamedTuple):
    """Who has it, as those who wait see it. `node` is empty when it isn't known, `pid` 0 when nobody has it."""

    pid: int = 0
    node: str = ""
    place: str = "which just ended"
    term: int = 0
    beats: int = 0

    def __str__(self) -> str:
        return f"node {self.node}, {self.place}" if self.node else self.place


class Watch:
    """For how long a holder has shown no sign of life, as far as it was looked at, which should be each `interval_s`.

    A longer pause between two looks counts for two of them: this process may have stood still itself, and on a machine
    that was suspended the holder did so, too.
    """

    def __init__(self, interval_s: float, now_s: Callable[[], float] = time.monotonic) -> None:
        self._pause_max_s = 2 * interval_s
        self._now_s = now_s
        self._seen = Holder()
        self._looked_s = 0.0
        self._still_s = 0.0

    def still_s(self, holder: Holder) -> float:
        """Takes in what was seen now; returns since when it is so."""
        now_s = self._now_s()
        if holder != self._seen or not holder.beats:
            self._seen, self._still_s = holder, 0.0
        else:
            self._still_s += min(now_s - self._looked_s, self._pause_max_s)
        self._looked_s = now_s
        return self._still_s


class LeaderLock:
    """One agent's side of it. `acquire`, then `claim` in a transaction of its own, `begin` once that is committed, then
    `fence` in each that writes.

    When the lock's session ends, `check` refuses, so that nothing new is begun, and the lock is tried for again: if
    nobody has claimed the database meanwhile, this agent goes on as if nothing had been. Otherwise it is over: `lost`
    returns, and nothing is written any more.
    """

    def __init__(self, connect: dict[str, Any], name: str, claimant: Claimant, settings: SqlSettings) -> None:
        self._connect_args = connect
        self._name = name
        self._claimant = claimant
        self._settings = settings
        self._connection: Any = None
        self._session_ended = asyncio.Event()
        self._over = asyncio.Event()
        self._why_over = ""
        self._keeper: asyncio.Task[None] | None = None
        self._trouble = ""
        self.term = 0

    @property
    def held(self) -> bool:
        """Whether the database is this agent's now, as far as that is known."""
        return self._connection is not None and not self._connection.is_closed() and not self._over.is_set()

    def check(self) -> None:
        """Raises StoreUnavailable while it isn't."""
        if self._over.is_set():
            raise StoreUnavailable(f"{self._name}: {self._why_over}")
        if not self.held:
            raise StoreUnavailable(f"{self._name}: the agent's lock was lost and is being taken again {self._trouble}")

    async def lost(self) -> str:
        """Returns why it is over, once it is."""
        await self._over.wait()
        return self._why_over

    # ------------------------------------------------------------------ taking it

    async def acquire(self, wait_s: float, standing_by: Callable[[str], None] | None = None) -> None:
        """Takes the lock, waiting for another to give it up or to stand still. Raises StoreLocked after that time, or
        StoreUnavailable. `standing_by` is told whose it is, at first and whenever that changes."""
        deadline_s = time.monotonic() + wait_s
        connection = await self._connect()
        try:
            await self._wait_for_lock(connection, deadline_s, standing_by)
        except BaseException as error:
            connection.terminate()
            if isinstance(error, DATABASE_ERRORS):
                raise postgresql_meaning(error, self._name) from error
            raise
        self._hold(connection)
        self._keeper = asyncio.create_task(self._keep(), name="agent-database-lock")

    async def _wait_for_lock(
        self, connection: Any, deadline_s: float, standing_by: Callable[[str], None] | None
    ) -> None:
        settings, watch, told = self._settings, Watch(self._settings.leader_renew_interval_s), None
        look_at_s = -math.inf
        while not await connection.fetchval(_TRY, LOCK_KEY):
            now_s = time.monotonic()
            if now_s >= look_at_s or now_s >= deadline_s:
                look_at_s = now_s + settings.leader_renew_interval_s
                holder = await self._holder(connection)
                if now_s >= deadline_s:
                    raise StoreLocked(
                        f"{self._name} is in use by another agent ({holder}); stop that one or choose another database"
                    )
                if standing_by is not None and holder.pid and str(holder) != told:
                    told = str(holder)
                    standing_by(holder.node or holder.place)
                if watch.still_s(holder) >= settings.leader_lease_s:
                    await connection.execute(_END_HOLDER, LOCK_KEY, holder.pid)
            await asyncio.sleep(settings.leader_retry_interval_s)

    async def _holder(self, connection: Any) -> Holder:
        found = await connection.fetchrow(_HOLDER, LOCK_KEY)
        if found is None:
            return Holder()
        holder = Holder(found[0], place=f"{found[2]} at {found[1]}, server process {found[0]}")
        leader = await self._read_leader(connection)
        return holder if leader is None else holder._replace(term=leader[0], node=leader[1], beats=leader[2] + 1)

    @staticmethod
    async def _read_leader(connection: Any) -> Any:
        """Term, node, heartbeat; None in a database that only older releases have used, whose agents have no heartbeat."""
        try:
            return await connection.fetchrow(_LEADER)
        except asyncpg.UndefinedTableError:
            return None

    async def _connect(self) -> Any:
        try:
            return await asyncpg.connect(**self._connect_args)
        except DATABASE_ERRORS as error:
            raise postgresql_meaning(error, self._name) from error

    def _hold(self, connection: Any) -> None:
        self._session_ended.clear()
        connection.add_termination_listener(lambda _: self._session_ended.set())
        self._connection, self._trouble = connection, ""

    def claim(self, connection: Connection) -> int:
        """Makes the next term this agent's, waiting for the transactions of the one before. To be committed."""
        made = connection.execute(
            update(agent_leader)
            .values(
                term=_leader.term + 1,
                node=self._claimant.node,
                incarnation=self._claimant.incarnation,
                since=text("clock_timestamp()"),
            )
            .returning(_leader.term)
        )
        return int(made.scalar_one())

    def begin(self, term: int) -> None:
        """The term is this agent's from now on. Not before the commit: a beat between the two, which doesn't find the term
        yet, would be taken for another's turn."""
        self.term = term

    def fence(self, connection: Connection) -> None:
        """Holds the term until the transaction ends. Raises StoreUnavailable when it is another's."""
        if connection.execute(_FENCE).scalar_one() != self.term:
            self._end("another node runs the agent on it now")
            self.check()

    # ------------------------------------------------------------------ keeping it

    async def _keep(self) -> None:
        """Shows that this process moves, and takes the lock again when its session has ended."""
        while not self._over.is_set():
            if await self._beat():
                with contextlib.suppress(TimeoutError):
                    # Not `wait_for`, which forgets that it was cancelled when the session ends in the same moment.
                    async with asyncio.timeout(self._settings.leader_renew_interval_s):
                        await self._session_ended.wait()
                continue
            self._drop()
            try:
                await self._take_again()
            except Exception as error:  # noqa: BLE001 -- whatever it is, who asks is told, and the next try may succeed
                self._trouble = f"({error})"
                await asyncio.sleep(self._settings.leader_retry_interval_s)

    async def _beat(self) -> bool:
        """Whether the session lives."""
        if not self.held:
            return False
        # The answer is about the term that was asked for: another may have begun when it comes.
        term = self.term
        try:
            beat = await self._connection.execute(_BEAT, term, timeout=self._settings.connect_timeout_s)
        except asyncpg.UndefinedTableError:
            # Before the migration that makes it.
            return True
        except Exception as error:  # noqa: BLE001 -- whatever it is, another session may be better off
            self._trouble = f"({error})"
            return False
        if beat == "UPDATE 0" and term:
            self._end("another node runs the agent on it now")
        return True

    async def _take_again(self) -> None:
        connection = await self._connect()
        try:
            taken = await connection.fetchval(_TRY, LOCK_KEY)
            # Without a term there is nothing to lose yet: whatever stands there, the claim will put the next in its place.
            term = self.term
            leader = await self._read_leader(connection)
            if term and leader is not None and leader[0] != term:
                self._end(f"node {leader[1]} runs the agent on it now")
            if not taken:
                raise StoreLocked(f"another has it: {await self._holder(connection)}")
        except BaseException as error:
            connection.terminate()
            if isinstance(error, DATABASE_ERRORS):
                raise postgresql_meaning(error, self._name) from error
            raise
        if self._over.is_set():
            connection.terminate()
        else:
            self._hold(connection)

    def _end(self, reason: str) -> None:
        if not self._over.is_set():
            self._why_over = reason
            self._over.set()

    # ------------------------------------------------------------------ giving it up

    async def release(self) -> None:
        """Gives it up. Idempotent."""
        keeper, self._keeper = self._keeper, None
        try:
            if keeper is not None:
                keeper.cancel()
                # Not awaited itself: its cancellation and the caller's would look the same.
                await asyncio.wait([keeper])
        finally:
            self._drop()

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.terminate()
