"""One shard's timers in memory under one claim: the transitions of `timers/engine/window.py` and `assembly.py`, in short."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from .rules import Mutant
from .store import Page
from .values import EVENT_MAX, KEY_MAX, KEY_MIN, Attempt, Batch, Event, EventKey, Key, Kind, Outcome, Row, Write

#: Reads a timer's row, and whether a finished run of it is kept.
Fetch = Callable[[int], tuple[Row | None, bool]]


class Load:
    """A load of (after, up_to]. `changed` has the uuids that were committed since it was announced."""

    def __init__(self, after: Key, up_to: Key) -> None:
        self.after = after
        self.up_to = up_to
        self.changed: dict[int, Row | None] = {}
        self.page: Page | None = None


class Window:
    """All transitions of one shard's timers; no I/O and no clock."""

    def __init__(
        self,
        epoch: int,
        incarnation: int,
        mutant: Mutant | None,
        range_delete: bool,
        orphaned: Iterable[Attempt] = (),
        *,
        reports: bool = False,
    ) -> None:
        self.epoch = epoch
        self.incarnation = incarnation
        self.range_delete = range_delete
        #: Every durable row up to here is in `rows`, in flight, awaiting, retrying or finished.
        self.horizon = KEY_MIN
        self.rows: dict[int, Row] = {}
        self.attempts: list[Attempt] = []
        self.finished: dict[int, Row] = {}
        #: Rows whose attempt has ended after a client's write was accepted, which decides; with those results.
        self.awaiting: dict[int, Row] = {}
        self.results: dict[int, int | None] = {}
        self.retrying: dict[int, Row] = {}
        self.pending: list[Write] = []
        self.load: Load | None = None
        self._clients: Counter[int] = Counter()
        self._sequence = 0
        self._watermark = KEY_MIN
        self._mutant = mutant
        #: Up to where events were read, and up to where they are known to be durable: those of former owners are.
        self.events_read: EventKey = (0, 0)
        self.events_durable: EventKey = EVENT_MAX if mutant is Mutant.EVENT_READ_BEFORE_DURABLE else (epoch, 0)
        #: The event that the sink has not acknowledged yet; those that it has, until a batch deletes them.
        self.sent: Event | None = None
        self.published: list[EventKey] = []
        self._reports = reports
        self._events = 0
        # What a mutant writes with the next batch.
        self._unwritten: list[Event | None] = []
        for attempt in orphaned:
            attempt.superseded = attempt.stale = True
            self.attempts.append(attempt)

    # ------------------------------------------------------------------ acceptance and attempts

    def accept(self, op: Write) -> None:
        """Queues a write for the next batch. A client's write overrules the attempts that are under way."""
        self._sequence += 1
        op.generation = (self.epoch, self.incarnation, self._sequence)
        if op.by_client:
            self._clients[op.uuid] += 1
            self._supersede(op.uuid, stale=False)
            if self._mutant is Mutant.ACCEPTANCE_CHANGES_WINDOW:
                self.rows.pop(op.uuid, None)
        self.pending.append(op)

    def _supersede(self, uuid: int, *, stale: bool) -> None:
        for attempt in self.attempts:
            if attempt.row.key[1] == uuid:
                attempt.superseded, attempt.stale = True, attempt.stale or stale

    def next_due(self, now: int) -> Row | None:
        """The first row whose instant has come."""
        if not self.rows:
            return None
        row = min(self.rows.values(), key=lambda each: each.key)
        early = self._mutant is Mutant.FIRES_EARLY
        return row if row.key[0] - early <= now else None

    def dispatch(self, row: Row) -> Attempt:
        """The row leaves the window for its attempt."""
        uuid = row.key[1]
        del self.rows[uuid]
        attempt = Attempt(row, self.epoch, superseded=self._clients[uuid] > 0)
        self.attempts.append(attempt)
        return attempt

    def answered(self, attempt: Attempt, retry_at: int | None) -> None:
        """Takes an attempt's result: the timer is done, or retried."""
        self.attempts.remove(attempt)
        if not attempt.superseded or self._mutant is Mutant.RESULTS_ALWAYS_COUNT:
            self._conclude(attempt.row, retry_at)
        elif not attempt.stale:
            uuid = attempt.row.key[1]
            self.awaiting[uuid], self.results[uuid] = attempt.row, retry_at

    def not_sent(self, attempt: Attempt) -> None:
        """The attempt did not begin: its row is due as before, if it is still the durable one."""
        self.attempts.remove(attempt)
        kept = self._mutant is not Mutant.ITEM_NOT_SENT_IS_FORGOTTEN
        if not attempt.stale and attempt.row.key <= self.horizon and kept:
            self.rows[attempt.row.key[1]] = attempt.row

    def _conclude(self, row: Row, retry_at: int | None) -> None:
        uuid = row.key[1]
        if retry_at is None:
            self.finished[uuid] = row
        else:
            self.retrying[uuid] = row
            self.accept(Write(Kind.RETRY, uuid, row.spec, retry_at, expected=row.generation))

    # ------------------------------------------------------------------ batches

    def assemble(self, fetch: Fetch, *, exact: bool) -> Batch | None:
        """The next batch, of all that is pending and finished; None if there is nothing. `exact`: finished rows beyond the
        watermark are deleted by uuid."""
        if not (self.pending or self.finished or self.published):
            return None
        ops, self.pending = self.pending, []
        final = self._final_states(ops, fetch)
        watermark = self._delete_watermark(final) if self.range_delete else None
        by_uuid = exact or not self.range_delete
        finished: list[Row] = []
        deletes: list[tuple[int, Key | None]] = []
        for uuid, row in self.finished.items():
            in_range = watermark is not None and row.key <= watermark
            if in_range or by_uuid or uuid in final:
                finished.append(row)
            beside = uuid not in final or self._mutant is Mutant.FINISHED_DELETED_BESIDE_NEW_STATE
            if by_uuid and not in_range and beside:
                deletes.append((uuid, None))
        deletes += self._deletes(ops, final)
        above = KEY_MIN
        if self._mutant is Mutant.RANGE_FROM_WATERMARK:
            above = self._watermark
            self._watermark = max(above, watermark or above)
        events, (published, self.published) = self._report(finished), (self.published, [])
        return Batch(self.epoch, self.incarnation, ops, final, finished, deletes, above, watermark, events, published)

    def _report(self, finished: list[Row]) -> list[Event | None]:
        events: list[Event | None] = []
        for row in finished if self._reports else ():
            self._events += 1
            events.append(Event((self.epoch, self._events), row.spec))
            if self._mutant is Mutant.EVENT_WRITTEN_TWICE:
                self._events += 1
                events.append(Event((self.epoch, self._events), row.spec))
        if self._mutant is Mutant.EVENT_WRITTEN_LATER:
            events, self._unwritten = self._unwritten, events
        return events

    def _final_states(self, ops: list[Write], fetch: Fetch) -> dict[int, Row | None]:
        """One state for each uuid: the last write decides, but a result decides nothing against a client's write."""
        final: dict[int, Row | None] = {}
        for op in ops:
            if op.kind is Kind.REPLAY and not self._has_finished(op.uuid, final, fetch):
                op.refused = True
                continue
            if op.kind is Kind.RETRY and self._mutant is not Mutant.RESULTS_ALWAYS_COUNT:
                retried = self.retrying.get(op.uuid)
                if op.uuid in final or retried is None or retried.generation != op.expected:
                    continue
            final[op.uuid] = None if op.kind is Kind.DELETE else Row((op.at, op.uuid), op.generation, op.spec)
        if self._mutant is Mutant.RETRY_IN_TWO_BATCHES:
            for op in ops[:]:
                if op.kind is Kind.RETRY and final.get(op.uuid) is not None:
                    ops.remove(op)
                    self.pending.append(Write(Kind.UPSERT, op.uuid, op.spec, op.at, op.generation))
                    self._clients[op.uuid] += 1
                    final[op.uuid] = None
        return final

    def _has_finished(self, uuid: int, final: dict[int, Row | None], fetch: Fetch) -> bool:
        """Whether a replay finds the timer finished: in memory, where its delete may not be durable yet, or in the store."""
        if uuid in final:
            return False
        if uuid in self.finished:
            return True
        live, ended = fetch(uuid)
        if self._mutant is Mutant.REPLAY_GOES_BY_HISTORY:
            return ended
        if self._mutant is Mutant.REPLAY_GOES_BY_MEMORY:
            live = None
        return ended and live is None and self.present(uuid) is None

    def _deletes(self, ops: list[Write], final: dict[int, Row | None]) -> list[tuple[int, Key | None]]:
        keys = {op.uuid: op.former_key for op in ops if self._mutant is Mutant.DELETE_BY_FORMER_KEY}
        return [(uuid, keys.get(uuid)) for uuid, row in final.items() if row is None]

    def _delete_watermark(self, final: dict[int, Row | None]) -> Key | None:
        """The greatest finished key up to the horizon and below every unfinished one."""
        unfinished = [row.key for uuid, row in self.retrying.items() if uuid not in final]
        if self._mutant is not Mutant.WATERMARK_IGNORES_WINDOW:
            unfinished += [row.key for row in self.rows.values()]
        if self._mutant is not Mutant.WATERMARK_IGNORES_ATTEMPTS:
            unfinished += [attempt.row.key for attempt in self.attempts]
        unfinished += [row.key for row in self.awaiting.values()]
        if self._mutant is not Mutant.WATERMARK_COVERS_UPSERTS:
            unfinished += [row.key for row in final.values() if row is not None]
        limit = min(unfinished, default=KEY_MAX)
        horizon = KEY_MAX if self._mutant is Mutant.WATERMARK_BEYOND_HORIZON else self.horizon
        done = (row.key for row in self.finished.values())
        return max((key for key in done if key < limit and key <= horizon), default=None)

    def committed(self, batch: Batch) -> None:
        """The batch is durable: each of its uuids leaves its old place and enters the new one."""
        self.events_durable = max(self.events_durable, *(event.key for event in batch.events if event), (0, 0))
        for row in batch.finished:
            uuid = row.key[1]
            if self.finished.get(uuid) is row:
                del self.finished[uuid]
            if self.load is not None:
                self.load.changed[uuid] = None
        for uuid, final in batch.final.items():
            self._enter(uuid, final)
        for op in batch.ops:
            if op.by_client:
                self._clients[op.uuid] -= 1
                self._reinstate(op.uuid)
                op.answer(Outcome.REFUSED if op.refused else Outcome.DURABLE)

    def _enter(self, uuid: int, row: Row | None) -> None:
        if row is not None and self._knows(row):
            # A load returned it before the commit was confirmed, and it has moved on since.
            self._forget_former(row)
            return
        beyond = row is not None and row.key > self.horizon
        if not (beyond and self._mutant is Mutant.COMMIT_DOES_NOT_LEAVE):
            self.rows.pop(uuid, None)
        self.awaiting.pop(uuid, None)
        self.results.pop(uuid, None)
        self.retrying.pop(uuid, None)
        self._supersede(uuid, stale=True)
        if row is not None and not beyond and self._mutant is not Mutant.COMMIT_DOES_NOT_ENTER:
            self.rows[uuid] = row
        ignored = self._mutant is Mutant.LOAD_IGNORES_COMMITS_BEYOND
        if self.load is not None and not (ignored and row is not None and row.key > self.load.up_to):
            self.load.changed[uuid] = row

    def _forget_former(self, row: Row) -> None:
        uuid = row.key[1]
        for attempt in self.attempts:
            if attempt.row.key[1] == uuid and attempt.row.generation != row.generation:
                attempt.superseded = attempt.stale = True
        if (awaiting := self.awaiting.get(uuid)) is not None and awaiting.generation != row.generation:
            del self.awaiting[uuid], self.results[uuid]
        if (retried := self.retrying.get(uuid)) is not None and retried.generation != row.generation:
            del self.retrying[uuid]

    def refuse(self, op: Write) -> None:
        """A client's write will certainly not be written: results that it overruled decide again."""
        self.pending.remove(op)
        self._clients[op.uuid] -= 1
        self._reinstate(op.uuid)
        op.answer(Outcome.REFUSED)

    def _reinstate(self, uuid: int) -> None:
        if self._clients[uuid]:
            return
        for attempt in self.attempts:
            if attempt.row.key[1] == uuid and not attempt.stale:
                attempt.superseded = False
        if uuid in self.awaiting:
            self._conclude(self.awaiting.pop(uuid), self.results.pop(uuid))

    # ------------------------------------------------------------------ loads

    def announce_load(self, up_to: Key) -> None:
        """From now on, commits override what the load will read."""
        if self.load is None and up_to > self.horizon:
            self.load = Load(self.horizon, up_to)

    def loaded(self) -> None:
        """Merges the page that was read."""
        load, self.load = self.load, None
        assert load is not None and load.page is not None
        rows, complete_to = load.page
        changed = {} if self._mutant is Mutant.LOAD_IGNORES_COMMITS else load.changed
        for row in rows:
            uuid = row.key[1]
            if uuid in changed or uuid in self.rows:
                continue
            if self._knows(row) and self._mutant is not Mutant.LOAD_IGNORES_ATTEMPTS:
                self._adopt(row)
            else:
                self._forget_former(row)
                self.rows[uuid] = row
        for uuid, committed in changed.items():
            if committed is not None and load.after < committed.key <= complete_to:
                self.rows[uuid] = committed
        self.horizon = complete_to

    def _knows(self, row: Row) -> bool:
        """Whether this very generation is in flight, awaits a write, is retried, or has finished."""
        kept = (places.get(row.key[1]) for places in (self.awaiting, self.retrying, self.finished))
        held = [*(each for each in kept if each is not None), *(attempt.row for attempt in self.attempts)]
        return any((each.spec, each.generation) == (row.spec, row.generation) for each in held)

    def _adopt(self, row: Row) -> None:
        """An attempt of a former claim turns out to be of the durable row: its result decides."""
        for attempt in self.attempts:
            if attempt.row.generation == row.generation and attempt.row.spec == row.spec:
                attempt.stale, attempt.superseded = False, self._clients[row.key[1]] > 0

    def truncate(self, keep: int) -> None:
        """Drops all but the first rows, for lack of memory. The horizon shrinks, and a load under way is void."""
        keys = sorted(row.key for row in self.rows.values())
        for key in keys[keep:]:
            del self.rows[key[1]]
        instant, uuid = keys[keep]
        if self._mutant is not Mutant.TRUNCATION_KEEPS_HORIZON:
            self.horizon = min(self.horizon, (instant, uuid - 1))
        if self._mutant is not Mutant.LOAD_SURVIVES_TRUNCATION:
            self.load = None

    # ------------------------------------------------------------------ events

    def acknowledged(self, event: Event) -> None:
        """The sink has the event: the next batch deletes it, and the next one may go."""
        if self.sent == event:
            self.sent = None
            if self._mutant is not Mutant.EVENT_NEVER_DELETED:
                self.published.append(event.key)

    # ------------------------------------------------------------------ states

    @property
    def idle(self) -> bool:
        """Whether nothing is in flight or to be written."""
        return not (self.pending or self.finished or self.awaiting or any(not each.stale for each in self.attempts))

    def present(self, uuid: int) -> Row | None:
        """The uuid's durable row, if memory has it."""
        for places in (self.rows, self.finished, self.awaiting, self.retrying):
            if uuid in places:
                return places[uuid]
        return next((each.row for each in self.attempts if each.row.key[1] == uuid and not each.stale), None)
