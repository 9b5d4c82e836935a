"""Each rule of the engine, dropped or changed in the source: what the simulation must notice.

A mutation is a list of (file under src/tocsin, exact text that occurs once, what stands there instead).
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).parents[2] / "src" / "tocsin"

WINDOW = "engine/window.py"
SHARD = "engine/shard.py"
MEMORY = "stores/memory.py"
LINK = "cluster/link.py"
SESSION = "cluster/session.py"
SUPERVISOR = "engine/supervisor.py"
DISPATCHER = "engine/dispatcher.py"
ATTEMPTS = "engine/attempts.py"

_RARE = "tests/simulation/test_rare_orders.py::"
_FORWARDED = "tests/unit/test_forwarded_writes.py::"
_SENDING = "tests/unit/test_cluster_sending.py::"
_WINDOW = "tests/unit/test_window.py::"
_LINK = "tests/unit/test_cluster_link.py::"
_NODES = "tests/unit/test_cluster_nodes.py::"
_LATENESS = "tests/simulation/test_lateness.py::"
_SUPERVISOR = "tests/unit/test_supervisor.py::"
_NAMESPACES = "tests/unit/test_namespace_reads.py::"


class Mutation(NamedTuple):
    """`rule` is the engine's rule by number; 0: of the store, or of how timers end. `tests` are pytest nodes that notice it, for what seeds find
    late or never; they come first. `proofs` are the programs that may notice it, each with the number of its seeds where that
    isn't the hunt's."""

    name: str
    rule: int
    edits: list[tuple[str, str, str]]
    proofs: tuple[tuple[str, int], ...] = (("tests.properties", 4_000), ("tests.simulation", 0))
    tests: tuple[str, ...] = ()


def _one(name: str, rule: int, file: str, old: str, new: str, *tests: str) -> Mutation:
    return Mutation(name, rule, [(file, old, new)], tests=tests)


_FENCE = "return shard if shard is not None and (shard.version, shard.owner) == (version, owner) else None"
_MARK_HEAPS = "for heap in (self._order, self._aside):"

MUTATIONS = [
    _one("fence missing", 1, MEMORY, _FENCE, "return shard"),
    Mutation(
        "fence only reads",
        1,
        [
            (
                MEMORY,
                _FENCE,
                'former = getattr(shard, "former", None)\n'
                "        return shard if shard and (version, owner) in ((shard.version, shard.owner), former) "
                "else None",
            ),
            (
                MEMORY,
                "        shard.version += 1\n",
                "        shard.former = (shard.version, shard.owner)\n        shard.version += 1\n",
            ),
        ],
    ),
    _one("unknown outcome ignored", 3, SHARD, 'self.lose("unknown_outcome")', "pass"),
    _one(
        "unknown outcome re-read without a new claim",
        3,
        "engine/supervisor.py",
        "state.version > shard.last_version:",
        "state.version >= shard.last_version:",
    ),
    _one(
        "commit does not enter the window",
        8,
        WINDOW,
        "if stays is not None and stays.key <= self.horizon:",
        "if stays is not None and False:",
    ),
    _one(
        "commit enters beyond the horizon",
        8,
        WINDOW,
        "if stays is not None and stays.key <= self.horizon:",
        "if stays is not None:",
    ),
    _one(
        "commit does not leave the old place",
        8,
        WINDOW,
        "            self._remove(uuid)\n            self.held.pop(uuid, None)",
        "            if row is None or row.key <= self.horizon:\n                self._remove(uuid)\n"
        "            self.held.pop(uuid, None)",
    ),
    _one(
        "commit brings back what has moved on",
        8,
        WINDOW,
        "if row is not None and self._known(row):",
        "if row is not None and False:",
    ),
    _one(
        "a commit's predecessors stay",
        8,
        WINDOW,
        "                self._forget_former(row)\n",
        "",
        _WINDOW + "test_what_a_load_brought_before_the_commits_answer_leaves_no_predecessor",
    ),
    _one(
        "what overruled stays after the commit",
        10,
        WINDOW,
        "                self._forget_client_op(op.uuid)\n                self._reinstate(op.uuid, boot_us)\n"
        "            elif op.kind is Kind.PARK",
        "                self._forget_client_op(op.uuid)\n                if op.uuid not in batch.final:\n"
        "                    self._reinstate(op.uuid, boot_us)\n            elif op.kind is Kind.PARK",
        _WINDOW + "test_an_answer_overruled_by_the_write_that_made_its_row_decides_after_the_commit",
    ),
    _one(
        "write does not overrule load",
        9,
        WINDOW,
        "            if uuid in self._overruled:\n                continue\n            if self._known(row):",
        "            if self._known(row):",
    ),
    _one(
        "write overrules load only below its end",
        9,
        WINDOW,
        "            if self._load is not None:\n                self._overruled[uuid] = stays\n",
        "            if self._load is not None and stays is not None and stays.key <= self._load.up_to:\n"
        "                self._overruled[uuid] = stays\n",
    ),
    _one(
        "load brings what is in flight",
        9,
        WINDOW,
        "            if self._known(row):\n                for flight",
        "            if False:\n                for flight",
    ),
    Mutation(
        "truncation leaves the load",
        13,
        [
            (
                WINDOW,
                "        self._load = None\n        self._overruled = {}\n"
                "        self._order = self._compacted(self._order)\n",
                "        self._order = self._compacted(self._order)\n",
            ),
        ],
    ),
    _one(
        "truncation leaves the horizon",
        13,
        WINDOW,
        "        self.horizon = min(self.horizon, key_before(keys[keep]))\n",
        "",
    ),
    _one("mark above the window", 11, WINDOW, _MARK_HEAPS, "for heap in (self._aside,):"),
    _one("mark above what is set aside", 11, WINDOW, _MARK_HEAPS, "for heap in (self._order,):"),
    _one("mark above flights", 11, WINDOW, "                limit = min(limit, key)\n", ""),
    _one("mark above held", 11, WINDOW, "            limit = min(limit, held.row.key)\n", "            pass\n"),
    _one("mark above retrying", 11, WINDOW, "                limit = min(limit, row.key)\n", "                pass\n"),
    _one(
        "mark above the batch's upserts",
        11,
        WINDOW,
        "                limit = (upsert.execute_at, upsert.uuid)\n",
        "                pass\n",
    ),
    _one(
        "mark above the horizon",
        11,
        WINDOW,
        "if entry.row.key < limit and entry.row.key <= self.horizon:",
        "if entry.row.key < limit:",
    ),
    Mutation(
        "mark is the horizon when empty, keys clamped above it",
        11,
        [
            (
                WINDOW,
                "        batch.store.delete_to = mark\n",
                "        if self.range_delete and limit == KEY_MAX and self.finished and self.horizon > KEY_MIN:\n"
                "            mark = self.horizon\n"
                "        batch.store.delete_to = mark\n"
                "        self.floor = max(getattr(self, 'floor', KEY_MIN), mark or KEY_MIN)\n",
            ),
            (
                WINDOW,
                "return self._write(batch, Row((op.timer.execute_at, uuid), op.generation, op.timer, 0))",
                "floor = getattr(self, 'floor', KEY_MIN)[0] + 1\n"
                "            return self._write(batch, Row((max(op.timer.execute_at, floor), uuid), "
                "op.generation, op.timer, 0))",
            ),
        ],
    ),
    _one(
        "answers decide whatever the generation", 10, WINDOW, "        if flight.superseded:\n", "        if False:\n"
    ),
    _one(
        "generation counted per timer",
        10,
        WINDOW,
        "        op.generation = generation(self.version, self.incarnation, self._sequence)\n",
        "        last = self._present(op.uuid)\n"
        "        count = int.from_bytes(last.generation[-8:], 'big') + 1 if last is not None else 1\n"
        "        op.generation = generation(1, bytes(16), count)\n",
    ),
    Mutation(
        "retry in a later batch than its end",
        18,
        [
            (
                WINDOW,
                "            if uuid in batch.final or answered is None or answered.generation != op.expected:\n"
                "                return None\n",
                "            if op.reason is None:\n"
                "                op.reason = 'later'\n                batch.final[uuid] = None\n"
                "                return None\n",
            ),
            (
                WINDOW,
                "            elif op.kind is Kind.PARK:\n                self._parking.pop(op.uuid, None)\n"
                "        for op in results",
                "            elif op.kind is Kind.PARK:\n                self._parking.pop(op.uuid, None)\n"
                "            elif op.kind is Kind.RETRY and op.uuid in batch.final and batch.final[op.uuid] is None:\n"
                "                self.pending.append(op)\n        for op in results",
            ),
        ],
    ),
    _one(
        "batches not disjoint",
        4,
        WINDOW,
        "if key[1] not in batch.final and (mark is None or key > mark):",
        "if mark is None or key > mark:",
    ),
    Mutation(
        "bisected rewrites leave the finished",
        5,
        [
            (
                WINDOW,
                "            for uuid in (*batch.final, *sorted(batch.relied_on)):\n"
                "                if uuid in self.finished:\n",
                "            for uuid in ():\n                if uuid in self.finished:\n",
            ),
        ],
    ),
    _one(
        "claim loads from now",
        7,
        SHARD,
        "        self._adrift = []\n        self._fetched",
        '        self.window.horizon = (context.clock.now_us() - 1_000_000, b"")\n'
        "        self._adrift = []\n        self._fetched",
    ),
    _one(
        "page end inferred from the row count",
        9,
        "engine/loader.py",
        "if window.loaded(request, rows, page.complete_to):",
        "short = len(rows) < max(self._page_rows(window), 1) or not rows\n"
        "        if window.loaded(request, rows, request.up_to if short else page.complete_to):",
    ),
    _one(
        "load from a stale snapshot",
        9,
        MEMORY,
        "return Loaded([], up_to) if shard is None else _page(shard, shard.keys, after, up_to, limit)",
        "if shard is None:\n            return Loaded([], up_to)\n"
        "        import copy\n\n        now = copy.copy(shard)\n"
        "        now.live, now.keys = dict(shard.live), list(shard.keys)\n"
        "        old, shard.old = getattr(shard, 'old', now), now\n"
        "        return _page(old, old.keys, after, up_to, limit)",
    ),
    _one(
        "instants stored in seconds",
        0,
        MEMORY,
        "        for row in rows:\n            self.remove(row.uuid)\n",
        "        rows = [row._replace(execute_at=row.execute_at // 1_000_000 * 1_000_000) for row in rows]\n"
        "        for row in rows:\n            self.remove(row.uuid)\n",
    ),
    Mutation(
        "uuids ordered otherwise",
        0,
        [
            (
                MEMORY,
                "        end = bisect_right(self.keys, key)\n        for _, uuid in self.keys[:end]:\n"
                "            del self.live[uuid]\n"
                "        del self.keys[:end]\n",
                "        for found in [k for k in self.keys if (k[0], k[1][::-1]) <= (key[0], key[1][::-1])]:\n"
                "            del self.live[found[1]]\n            self.keys.remove(found)\n",
            ),
            (
                MEMORY,
                "    begin, end = bisect_right(keys, after), bisect_right(keys, up_to)\n",
                "    order = lambda k: (k[0], k[1][::-1])\n    keys = sorted(keys, key=order)\n"
                "    begin = bisect_right(keys, order(after), key=order)\n"
                "    end = bisect_right(keys, order(up_to), key=order)\n",
            ),
        ],
    ),
    Mutation(
        "delete in flight allows a retry",
        10,
        [
            (
                WINDOW,
                "            for flight in self.flights.get(uuid, ()):\n"
                "                flight.superseded = True\n        elif",
                "        elif",
            ),
            (
                WINDOW,
                "            if uuid in batch.final or answered is None or answered.generation != op.expected:\n"
                "                return None\n",
                "",
            ),
            (
                WINDOW,
                "flight = Flight(row, superseded=uuid in self._client_ops)",
                "flight = Flight(row, superseded=False)",
            ),
        ],
    ),
    _one(
        "retry overwrites what came before it",
        18,
        WINDOW,
        "            if uuid in batch.final or answered is None or answered.generation != op.expected:\n"
        "                return None\n",
        "",
    ),
    Mutation(
        "delete resolved when accepted",
        17,
        [
            (
                WINDOW,
                "        if op.kind <= Kind.HAND_OVER:\n            uuid = op.uuid\n",
                "        if op.kind is Kind.DELETE:\n            seen = self._present(op.uuid)\n"
                "            op.expected = seen.generation if seen is not None else b''\n"
                "        if op.kind <= Kind.HAND_OVER:\n            uuid = op.uuid\n",
            ),
            (
                WINDOW,
                "        if kind is Kind.DELETE:\n            assert present is not None\n",
                "        if kind is Kind.DELETE:\n            assert present is not None\n"
                "            if op.expected and present.generation != op.expected:\n                return None\n",
            ),
        ],
    ),
    _one(
        "delete answered when accepted",
        16,
        WINDOW,
        "        self.pending.append(op)\n\n    def _firing",
        "        self.pending.append(op)\n        if op.kind is Kind.DELETE and op.reply is not None:\n"
        "            op.reply(None)\n            op.reply = None\n\n    def _firing",
    ),
    _one(
        "an update keeps the firing",
        10,
        WINDOW,
        "        timer.firing = self._firing(op)\n        instant",
        "        if op.changes.execute_at is not msgspec.UNSET:\n"
        "            timer.firing = self._firing(op)\n        instant",
    ),
    _one(
        "result of a handed over attempt forgotten",
        25,
        "engine/dispatcher.py",
        "            self.results.bring(shard.shard_id, flight, conclusion)\n",
        "            pass\n",
        _RARE + "test_the_result_of_an_attempt_that_was_handed_over_is_brought_to_the_new_owner",
    ),
    _one(
        "result applied to whatever there is",
        25,
        WINDOW,
        "        if present is None or present.generation != op.expected:\n            return None\n        if kind is Kind.CONCLUDE",
        "        if present is None or present.generation != op.expected and kind is not Kind.CONCLUDE:\n"
        "            return None\n        if kind is Kind.CONCLUDE",
        _WINDOW + "test_a_result_of_an_attempt_handed_over_decides_nothing_once_the_timer_was_changed",
    ),
    _one(
        "409 before the end is durable",
        16,
        WINDOW,
        "            batch.relied_on.add(uuid)\n",
        "",
        _WINDOW + "test_not_pending_is_said_only_with_the_delete_of_what_has_finished",
    ),
    Mutation(
        "no lease",
        6,
        [
            (
                "engine/dispatcher.py",
                "        self._lease_until = lease_until\n",
                "        self._lease_until = lease_until + 10**15\n",
            ),
        ],
    ),
    _one(
        "rings before the lapsed lease is verified",
        6,
        "engine/supervisor.py",
        "        if not self._verified or done >= context.namespaces_until:\n            await self._verify()\n",
        "",
        _SUPERVISOR + "test_after_the_lease_had_lapsed_it_rings_for_nothing_that_others_took",
    ),
    _one(
        "early by a millisecond",
        12,
        WINDOW,
        "if key is None or key[0] > now_us:",
        "if key is None or key[0] > now_us + 1_000:",
    ),
    _one(
        "clock skew unnoticed",
        12,
        "engine/supervisor.py",
        "off = abs(offset) - round_trip // 2 > limits.clock_skew_max_us",
        "off = False",
    ),
    _one(
        "clock jump unnoticed",
        12,
        "engine/dispatcher.py",
        "if abs(drift) > self._context.limits.clock_skew_max_us:",
        "if False:",
    ),
    _one("parked timers forgotten", 14, "engine/parking.py", "suspended.found | suspended.lately", "suspended.found"),
    _one(
        "what waits for a hung host fills the window",
        14,
        "engine/admission.py",
        "\nDEFERRED_PART = 4\n",
        "\nDEFERRED_PART = 1\n",
        _LATENESS + "test_healthy_timers_are_on_time_beside_a_hung_host",
    ),
    _one(
        "a request that was not sent counts",
        24,
        "engine/dispatcher.py",
        "        if isinstance(outcome, NotSent):\n",
        "        if False:\n",
        _LATENESS + "test_what_was_not_sent_is_sent_in_a_moment_and_counts_for_nothing",
    ),
    _one(
        "a timer that was not sent is forgotten",
        24,
        WINDOW,
        "if self._end_flight(flight) and not flight.stale and flight.row.key <= self.horizon:",
        "if self._end_flight(flight) and False:",
        _LATENESS + "test_what_was_not_sent_is_sent_in_a_moment_and_counts_for_nothing",
    ),
    _one(
        "what was not sent comes back although it was overruled",
        24,
        WINDOW,
        "if self._end_flight(flight) and not flight.stale and flight.row.key <= self.horizon:",
        "if self._end_flight(flight) and flight.row.key <= self.horizon:",
    ),
    _one("one bad row blocks the batch", 5, "engine/committer.py", "shard.refuse_first(op, error)", "pass"),
    _one(
        "undecodable rows taken for finished",
        15,
        WINDOW,
        "                self.held[uuid] = Held(row, None)\n                continue\n            self._add(row)",
        "                self.finished[uuid] = Finished(row, row.timer, 0)\n                continue\n"
        "            self._add(row)",
    ),
    _one(
        "what the store refused is forgotten",
        5,
        WINDOW,
        "            self._refused.append((boot_us, op))\n",
        "            pass\n",
        _WINDOW + "test_a_retry_that_the_store_refuses_neither_rings_nor_is_forgotten",
    ),
    _one(
        "forwarded write taken in any version",
        19,
        "service.py",
        "version not in (None, window.version):",
        "False:",
        _FORWARDED + "test_a_forwarded_write_is_taken_in_the_version_that_it_names_and_in_no_other",
    ),
    _one(
        "what was sent is sent again elsewhere",
        20,
        LINK,
        "        self._doubtful += self._in_flight.values()\n        self._in_flight.clear()\n",
        "        sent_before, self._in_flight = self._in_flight, {}\n        for sent in sent_before.values():\n"
        '            sent.settle(ShardMoved("gone"))\n',
        _LINK + "test_an_unknown_outcome_is_told_when_the_deadline_has_passed",
    ),
    _one(
        "an unknown outcome told too early",
        20,
        LINK,
        "        self._doubtful += self._in_flight.values()\n        self._in_flight.clear()\n",
        "        sent_before, self._in_flight = self._in_flight, {}\n"
        "        self._tell_unknown(list(sent_before.values()))\n",
        _LINK + "test_an_unknown_outcome_is_told_when_the_deadline_has_passed",
    ),
    _one("a batch under way passes for undone", 20, SHARD, 'ShardUnavailable("whether', 'ShardMoved("whether'),
    Mutation(
        "forwarded writes are not dated",
        21,
        [
            (
                SESSION,
                "if issued is None or self._heard_at - issued - message.elapsed_us > self._limits.message_age_max_us:",
                "if issued is None:",
            ),
            (SESSION, "issued + message.elapsed_us + op.budget_us", "self._heard_at + op.budget_us"),
        ],
        tests=(_LINK + "test_a_write_that_lay_unread_is_as_old_as_it_is",),
    ),
    _one(
        "a former connection still counts",
        22,
        "cluster/cluster.py",
        "former.void()",
        "pass",
        _NODES + "test_a_new_connection_makes_the_former_void_and_no_other",
    ),
    _one(
        "repeated writes are done twice",
        22,
        SESSION,
        "if op.id <= self._last_id:",
        "if False:",
        _LINK + "test_a_write_counts_once_and_in_the_version_that_it_names",
    ),
    _one(
        "a write is taken before its namespace is read",
        23,
        SESSION,
        "if self._local.knows_namespace(op.namespace, op.namespace_version):",
        "if True:",
        _LINK + "test_a_write_of_a_namespace_that_the_owner_knows_less_of_is_accepted_once_it_has_read_it",
    ),
    _one("a change of a namespace is acknowledged at once", 23, "service.py", "await until_known_everywhere(", "("),
    _one(
        "a node confirms what it has not read",
        23,
        SESSION,
        "            await self._local.refresh_namespaces()\n        except TocsinError:",
        "            pass\n        except TocsinError:",
        _LINK + "test_a_node_confirms_once_it_has_read_the_namespaces",
    ),
    _one(
        "a claim is used before the namespaces are read",
        23,
        SUPERVISOR,
        "        try:\n            await self._context.bounded(self._context.refresh_namespaces())\n",
        "        try:\n            pass\n",
    ),
    Mutation(
        "who stood still goes by the namespaces that it knew",
        23,
        [
            (
                SUPERVISOR,
                "self.dispatcher.renew(min(lease_until, self._context.namespaces_until))",
                "self.dispatcher.renew(lease_until)",
            ),
            (
                SUPERVISOR,
                "        await self._context.bounded(self._context.refresh_namespaces())\n        self._renew()\n",
                "        self._renew()\n",
            ),
        ],
    ),
    _one(
        "an earlier reading of the namespaces overrules a later one",
        23,
        "engine/context.py",
        "if self._learned_from.get(namespace.name, 0) < number:",
        "if True:",
        _NAMESPACES + "test_a_reading_of_before_does_not_undo_a_later_one",
    ),
    _one(
        "what waits for a destination is called in a paused namespace",
        23,
        "engine/dispatcher.py",
        "if row.key[0] <= now and not (namespace is not None and namespace.paused):",
        "if row.key[0] <= now:",
    ),
    _one(
        "a namespace is written whatever its version",
        0,
        MEMORY,
        "stored is None or stored.version != namespace.version - 1:",
        "stored is None:",
        _NAMESPACES + "test_changes_at_two_nodes_at_once_both_count",
    ),
    _one(
        "a store that claims without comparing the counter",
        6,
        MEMORY,
        "            if member is None or member.counter != standing_still[1]:\n",
        "            if member is None:\n",
        _RARE + "test_who_wakes_just_before_it_is_claimed_from_keeps_its_shard",
    ),
    _one(
        "a claim that names no counter",
        6,
        SUPERVISOR,
        "owner=context.incarnation, standing_still=standing\n",
        "owner=context.incarnation, standing_still=None\n",
        _RARE + "test_who_wakes_just_before_it_is_claimed_from_keeps_its_shard",
    ),
    _one(
        "lease counted from the answer",
        6,
        SUPERVISOR,
        "        self._last_ok = sent\n",
        "        self._last_ok = done\n",
        _RARE + "test_the_lease_counts_from_when_the_heartbeat_was_sent",
    ),
    _one(
        "what waits is called although the clock went back",
        12,
        DISPATCHER,
        "if row.key[0] <= now and not (namespace is not None and namespace.paused):",
        "if not (namespace is not None and namespace.paused):",
        _RARE + "test_what_waits_while_the_clock_is_set_back_is_not_called_early",
    ),
    _one(
        "what was read for a batch outlives the claim",
        17,
        SHARD,
        "        self._adrift = []\n        self._fetched = ([], {})\n        self._last",
        "        self._adrift = []\n        self._last",
        _RARE + "test_what_was_read_under_a_former_claim_answers_nobody",
    ),
    _one(
        "what is being read for a batch outlives the claim",
        17,
        SHARD,
        "(uuids, found) if self.window is window else ([], {})",
        "(uuids, found)",
        _RARE + "test_what_was_read_under_a_former_claim_answers_nobody",
    ),
    _one(
        "a forwarded write is taken after its time",
        21,
        "service.py",
        '        if write.deadline_us <= self._context.clock.boottime_us():\n            raise RequestExpired("the time budget ran out before it could be',
        '        if False:\n            raise RequestExpired("the time budget ran out before it could be',
        _FORWARDED + "test_a_forwarded_write_is_refused_when_it_is_late_or_there_is_no_such_shard",
    ),
    _one(
        "a write that waited is written after its time",
        21,
        WINDOW,
        "            if op.deadline_us is not None and op.deadline_us <= boot_us:\n                self.pending",
        "            if False:\n                self.pending",
    ),
    _one(
        "the age of a message does not count",
        21,
        SESSION,
        "if issued is None or self._heard_at - issued - message.elapsed_us > self._limits.message_age_max_us:",
        "if issued is None:",
        _LINK + "test_a_write_that_lay_unread_is_as_old_as_it_is",
    ),
    _one(
        "who leaves disowns the last write that it took",
        20,
        SESSION,
        "encode(Bye(self._last_id))",
        "encode(Bye(self._last_id - 1))",
        _SENDING + "test_of_an_owner_that_leaves_what_it_had_taken_is_in_doubt_until_it_is_decided",
    ),
    _one(
        "the last write that one who left had taken is sent again",
        20,
        LINK,
        "[number for number in self._in_flight if number > last_id]",
        "[number for number in self._in_flight if number >= last_id]",
        _SENDING + "test_of_an_owner_that_leaves_what_it_had_taken_is_in_doubt_until_it_is_decided",
    ),
    _one(
        "a failed attempt completes its timer",
        0,
        ATTEMPTS,
        "after.executed_at = Status.FAILED, now_us",
        "after.executed_at = Status.COMPLETED, now_us",
    ),
    _one("a failed attempt is the last one", 0, ATTEMPTS, "    if not verdict.final:\n", "    if False:\n"),
    _one(
        "one attempt fewer than the policy allows",
        0,
        "model/retry.py",
        "if attempts_made >= policy.max_attempts:",
        "if attempts_made >= policy.max_attempts - 1:",
    ),
    _one(
        "destinations are remembered for ever",
        0,
        "engine/admission.py",
        "            self.destinations.pop(destination.name, None)\n            return\n",
        "            return\n",
    ),
    _one(
        "attempts of former claims are remembered for ever",
        0,
        SHARD,
        "            self._adrift.remove(flight)\n",
        "            pass\n",
    ),
]


def misfits(mutation: Mutation) -> list[str]:
    """Edits whose text does not occur exactly once in today's source, and tests that there are not."""
    found = [
        f"{mutation.name}: {(SOURCE / file).read_text().count(old)} times in {file}: {old!r}"
        for file, old, _ in mutation.edits
        if (SOURCE / file).read_text().count(old) != 1
    ]
    for node in mutation.tests:
        file, _, test = node.partition("::")
        path = SOURCE.parents[1] / file
        texts = [path, *(SOURCE / "testing").glob("store_conformance*.py")] if path.is_file() else []
        if not any(f"def {test.rpartition('::')[2]}(" in text.read_text() for text in texts):
            found.append(f"{mutation.name}: no test {node}")
    return found


def apply(mutation: Mutation, source: Path) -> None:
    """Edits a copy of the package."""
    for file, old, new in mutation.edits:
        path = source / file
        path.write_text(path.read_text().replace(old, new, 1))
