"""The store's rules and those from 11 on dropped or changed in the source: deletes, time, fairness, answers, nodes."""

from __future__ import annotations

from .mutation import Mutation, one

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
_NAMESPACES = "tests/unit/test_namespace_reads.py::"
_MARK_HEAPS = "for heap in (self._order, self._aside):"


MUTATIONS = [
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
    one(
        "truncation leaves the horizon",
        13,
        WINDOW,
        "        self.horizon = min(self.horizon, key_before(keys[keep]))\n",
        "",
    ),
    one("mark above the window", 11, WINDOW, _MARK_HEAPS, "for heap in (self._aside,):"),
    one("mark above what is set aside", 11, WINDOW, _MARK_HEAPS, "for heap in (self._order,):"),
    one("mark above flights", 11, WINDOW, "                limit = min(limit, key)\n", ""),
    one("mark above held", 11, WINDOW, "            limit = min(limit, held.row.key)\n", "            pass\n"),
    one("mark above retrying", 11, WINDOW, "                limit = min(limit, row.key)\n", "                pass\n"),
    one(
        "mark above the batch's upserts",
        11,
        WINDOW,
        "                limit = (upsert.execute_at, upsert.uuid)\n",
        "                pass\n",
    ),
    one(
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
                "            elif op.kind is OpKind.SUSPEND:\n                self._suspending.pop(op.uuid, None)\n"
                "        for op in results",
                "            elif op.kind is OpKind.SUSPEND:\n                self._suspending.pop(op.uuid, None)\n"
                "            elif op.kind is OpKind.RETRY and op.uuid in batch.final and batch.final[op.uuid] is None:\n"
                "                self.pending.append(op)\n        for op in results",
            ),
        ],
    ),
    one(
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
    one(
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
                "        if op.kind <= OpKind.HAND_OVER:\n            uuid = op.uuid\n",
                "        if op.kind is OpKind.DELETE:\n            seen = self._present(op.uuid)\n"
                "            op.expected = seen.generation if seen is not None else b''\n"
                "        if op.kind <= OpKind.HAND_OVER:\n            uuid = op.uuid\n",
            ),
            (
                WINDOW,
                "        if kind is OpKind.DELETE:\n            assert present is not None\n",
                "        if kind is OpKind.DELETE:\n            assert present is not None\n"
                "            if op.expected and present.generation != op.expected:\n                return None\n",
            ),
        ],
    ),
    one(
        "delete answered when accepted",
        16,
        WINDOW,
        "        self.pending.append(op)\n\n    def _firing",
        "        self.pending.append(op)\n        if op.kind is OpKind.DELETE and op.reply is not None:\n"
        "            op.reply(None)\n            op.reply = None\n\n    def _firing",
    ),
    one(
        "result of a handed over attempt forgotten",
        25,
        "engine/dispatcher.py",
        "            self.results.bring(shard.shard_id, flight, conclusion)\n",
        "            pass\n",
        _RARE + "test_the_result_of_an_attempt_that_was_handed_over_is_brought_to_the_new_owner",
    ),
    one(
        "result applied to whatever there is",
        25,
        WINDOW,
        "        if present is None or present.generation != op.expected:\n            return None\n        if kind is OpKind.CONCLUDE",
        "        if present is None or present.generation != op.expected and kind is not OpKind.CONCLUDE:\n"
        "            return None\n        if kind is OpKind.CONCLUDE",
        _WINDOW + "test_a_result_of_an_attempt_handed_over_decides_nothing_once_the_timer_was_changed",
    ),
    one(
        "409 before the end is durable",
        16,
        WINDOW,
        "            batch.relied_on.add(uuid)\n",
        "",
        _WINDOW + "test_not_pending_is_said_only_with_the_delete_of_what_has_finished",
    ),
    one(
        "early by a millisecond",
        12,
        WINDOW,
        "if key is None or key[0] > now_us:",
        "if key is None or key[0] > now_us + 1_000:",
    ),
    one(
        "clock skew unnoticed",
        12,
        "engine/supervisor.py",
        "off = abs(offset) - round_trip // 2 > limits.clock_skew_max_us",
        "off = False",
    ),
    one(
        "clock jump unnoticed",
        12,
        "engine/dispatcher.py",
        "if abs(drift) > self._context.limits.clock_skew_max_us:",
        "if False:",
    ),
    one(
        "suspended timers forgotten",
        14,
        "engine/suspension.py",
        "suspended.found | suspended.lately",
        "suspended.found",
    ),
    one(
        "what waits for a hung host fills the window",
        14,
        "engine/admission.py",
        "\nDEFERRED_PART = 4\n",
        "\nDEFERRED_PART = 1\n",
        _LATENESS + "test_healthy_timers_are_on_time_beside_a_hung_host",
    ),
    one(
        "a request that was not sent counts",
        24,
        "engine/dispatcher.py",
        "        if isinstance(outcome, NotSent):\n",
        "        if False:\n",
        _LATENESS + "test_what_was_not_sent_is_sent_in_a_moment_and_counts_for_nothing",
    ),
    one(
        "a timer that was not sent is forgotten",
        24,
        WINDOW,
        "if self._end_flight(flight) and not flight.stale and flight.row.key <= self.horizon:",
        "if self._end_flight(flight) and False:",
        _LATENESS + "test_what_was_not_sent_is_sent_in_a_moment_and_counts_for_nothing",
    ),
    one(
        "what was not sent comes back although it was overruled",
        24,
        WINDOW,
        "if self._end_flight(flight) and not flight.stale and flight.row.key <= self.horizon:",
        "if self._end_flight(flight) and flight.row.key <= self.horizon:",
    ),
    one(
        "undecodable rows taken for finished",
        15,
        WINDOW,
        "                self.held[uuid] = Held(row, None)\n                continue\n            self._add(row)",
        "                self.finished[uuid] = Finished(row, row.timer, 0)\n                continue\n"
        "            self._add(row)",
    ),
    one(
        "forwarded write taken in any epoch",
        19,
        "service.py",
        "epoch not in (None, window.epoch):",
        "False:",
        _FORWARDED + "test_a_forwarded_write_is_taken_in_the_version_that_it_names_and_in_no_other",
    ),
    one(
        "what was sent is sent again elsewhere",
        20,
        LINK,
        "        self._in_doubt += self._in_flight.values()\n        self._in_flight.clear()\n",
        "        sent_before, self._in_flight = self._in_flight, {}\n        for sent in sent_before.values():\n"
        '            sent.settle(ShardMoved("gone"))\n',
        _LINK + "test_an_unknown_outcome_is_reported_when_the_deadline_has_passed",
    ),
    one(
        "an unknown outcome told too early",
        20,
        LINK,
        "        self._in_doubt += self._in_flight.values()\n        self._in_flight.clear()\n",
        "        sent_before, self._in_flight = self._in_flight, {}\n"
        "        self._settle_unknown(list(sent_before.values()))\n",
        _LINK + "test_an_unknown_outcome_is_reported_when_the_deadline_has_passed",
    ),
    one("a batch under way passes for undone", 20, SHARD, 'ShardUnavailable("whether', 'ShardMoved("whether'),
    Mutation(
        "forwarded writes are not dated",
        21,
        [
            (
                SESSION,
                "if issued is None or self._received_at - issued - message.elapsed_us > self._limits.message_age_max_us:",
                "if issued is None:",
            ),
            (SESSION, "issued + message.elapsed_us + op.budget_us", "self._received_at + op.budget_us"),
        ],
        tests=(_LINK + "test_an_old_unread_write_is_refused",),
    ),
    one(
        "a former connection still counts",
        22,
        "cluster/cluster.py",
        "former.void()",
        "pass",
        _NODES + "test_a_new_connection_voids_only_the_former_one_of_the_same_node",
    ),
    one(
        "repeated writes are done twice",
        22,
        SESSION,
        "if op.id <= self._last_id:",
        "if False:",
        _LINK + "test_a_write_is_accepted_once_and_only_in_the_epoch_that_it_names",
    ),
    one(
        "a write is taken before its namespace is read",
        23,
        SESSION,
        "if self._local.knows_namespace(op.namespace, op.namespace_version):",
        "if True:",
        _LINK + "test_a_write_in_an_unknown_namespace_is_accepted_once_the_owner_has_read_it",
    ),
    one("a change of a namespace is acknowledged at once", 23, "service.py", "await until_known_everywhere(", "("),
    one(
        "a node confirms what it has not read",
        23,
        SESSION,
        "            await self._local.refresh_namespaces()\n        except TocsinError:",
        "            pass\n        except TocsinError:",
        _LINK + "test_a_node_confirms_once_it_has_read_the_namespaces",
    ),
    one(
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
    one(
        "an earlier reading of the namespaces overrules a later one",
        23,
        "engine/context.py",
        "if self._learned_from.get(namespace.name, 0) < number:",
        "if True:",
        _NAMESPACES + "test_a_reading_of_before_does_not_undo_a_later_one",
    ),
    one(
        "what waits for a destination is called in a paused namespace",
        23,
        "engine/dispatcher.py",
        "if row.key[0] <= now and not (namespace is not None and namespace.paused):",
        "if row.key[0] <= now:",
    ),
    one(
        "a namespace is written whatever its version",
        0,
        MEMORY,
        "stored is None or stored.version != namespace.version - 1:",
        "stored is None:",
        _NAMESPACES + "test_changes_at_two_nodes_at_once_both_count",
    ),
    one(
        "what waits is called although the clock went back",
        12,
        DISPATCHER,
        "if row.key[0] <= now and not (namespace is not None and namespace.paused):",
        "if not (namespace is not None and namespace.paused):",
        _RARE + "test_what_waits_while_the_clock_is_set_back_is_not_called_early",
    ),
    one(
        "what was read for a batch outlives the claim",
        17,
        SHARD,
        "        self._adrift = []\n        self._fetched = ([], {})\n        self._last",
        "        self._adrift = []\n        self._last",
        _RARE + "test_what_was_read_under_a_former_claim_answers_nobody",
    ),
    one(
        "what is being read for a batch outlives the claim",
        17,
        SHARD,
        "(uuids, found) if self.window is window else ([], {})",
        "(uuids, found)",
        _RARE + "test_what_was_read_under_a_former_claim_answers_nobody",
    ),
    one(
        "a forwarded write is taken after its time",
        21,
        "service.py",
        '        if write.deadline_us <= self._context.clock.boottime_us():\n            raise RequestExpired("the time budget ran out before it could be',
        '        if False:\n            raise RequestExpired("the time budget ran out before it could be',
        _FORWARDED + "test_a_forwarded_write_is_refused_when_it_is_late_or_there_is_no_such_shard",
    ),
    one(
        "a write that waited is written after its time",
        21,
        WINDOW,
        "            if op.deadline_us is not None and op.deadline_us <= boot_us:\n                self.pending",
        "            if False:\n                self.pending",
    ),
    one(
        "the age of a message does not count",
        21,
        SESSION,
        "if issued is None or self._received_at - issued - message.elapsed_us > self._limits.message_age_max_us:",
        "if issued is None:",
        _LINK + "test_an_old_unread_write_is_refused",
    ),
    one(
        "who leaves disowns the last write that it took",
        20,
        SESSION,
        "encode(Goodbye(self._last_id))",
        "encode(Bye(self._last_id - 1))",
        _SENDING + "test_writes_taken_by_a_leaving_owner_are_in_doubt_until_decided",
    ),
    one(
        "the last write that one who left had taken is sent again",
        20,
        LINK,
        "[number for number in self._in_flight if number > last_id]",
        "[number for number in self._in_flight if number >= last_id]",
        _SENDING + "test_writes_taken_by_a_leaving_owner_are_in_doubt_until_decided",
    ),
    one(
        "a failed attempt completes its timer",
        0,
        ATTEMPTS,
        "after.executed_at = Status.FAILED, now_us",
        "after.executed_at = Status.COMPLETED, now_us",
    ),
    one("a failed attempt is the last one", 0, ATTEMPTS, "    if not verdict.final:\n", "    if False:\n"),
    one(
        "one attempt fewer than the policy allows",
        0,
        "model/retry.py",
        "if attempts_made >= policy.max_attempts:",
        "if attempts_made >= policy.max_attempts - 1:",
    ),
    one(
        "destinations are remembered for ever",
        0,
        "engine/admission.py",
        "            del self.destinations[destination.name]\n            return\n",
        "            return\n",
    ),
    one(
        "a destination whose last waiting timer is gone is remembered for ever",
        0,
        "engine/dispatcher.py",
        "        # It may have been the last that waited for it.\n        self._admission.settle(queue.destination)\n",
        "",
        _RARE + "test_a_destination_is_forgotten_whose_last_waiting_timer_was_canceled",
    ),
    one(
        "heartbeats overtake one another",
        25,
        "engine/supervisor.py",
        "        async with self._beating:\n            await self._beat_now()\n",
        "        await self._beat_now()\n",
        _RARE + "test_a_slow_heartbeat_does_not_take_back_that_the_node_leaves",
    ),
    one(
        "attempts of former claims are remembered for ever",
        0,
        SHARD,
        "            self._adrift.remove(flight)\n",
        "            pass\n",
    ),
]
