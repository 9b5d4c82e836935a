"""Rules 1 to 10 dropped or changed in the source: fence, batches, claims, lease, window, loads, generations."""

from __future__ import annotations

from .mutation import Mutation, one

WINDOW = "engine/window.py"
SHARD = "engine/shard.py"
MEMORY = "stores/memory.py"
SUPERVISOR = "engine/supervisor.py"
_RARE = "tests/simulation/test_rare_orders.py::"
_WINDOW = "tests/unit/test_window.py::"
_SUPERVISOR = "tests/unit/test_supervisor.py::"
_FENCE = "return shard if shard is not None and (shard.epoch, shard.owner) == (epoch, owner) else None"


MUTATIONS = [
    one("fence missing", 1, MEMORY, _FENCE, "return shard"),
    Mutation(
        "fence only reads",
        1,
        [
            (
                MEMORY,
                _FENCE,
                'former = getattr(shard, "former", None)\n'
                "        return shard if shard and (epoch, owner) in ((shard.epoch, shard.owner), former) "
                "else None",
            ),
            (
                MEMORY,
                "        shard.epoch += 1\n",
                "        shard.former = (shard.epoch, shard.owner)\n        shard.epoch += 1\n",
            ),
        ],
    ),
    one("unknown outcome ignored", 3, SHARD, 'self.lose("unknown_outcome")', "pass"),
    one(
        "unknown outcome re-read without a new claim",
        3,
        "engine/supervisor.py",
        "state.epoch > shard.last_epoch:",
        "state.epoch >= shard.last_epoch:",
    ),
    one(
        "commit does not enter the window",
        8,
        WINDOW,
        "if stays is not None and stays.key <= self.horizon:",
        "if stays is not None and False:",
    ),
    one(
        "commit enters beyond the horizon",
        8,
        WINDOW,
        "if stays is not None and stays.key <= self.horizon:",
        "if stays is not None:",
    ),
    one(
        "commit does not leave the old place",
        8,
        WINDOW,
        "            self._remove(uuid)\n            self.held.pop(uuid, None)",
        "            if row is None or row.key <= self.horizon:\n                self._remove(uuid)\n"
        "            self.held.pop(uuid, None)",
    ),
    one(
        "commit brings back what has moved on",
        8,
        WINDOW,
        "if row is not None and self._known(row):",
        "if row is not None and False:",
    ),
    one(
        "a commit's predecessors stay",
        8,
        WINDOW,
        "                self._forget_former(row)\n",
        "",
        _WINDOW + "test_what_a_load_brought_before_the_commits_answer_leaves_no_predecessor",
    ),
    one(
        "what overruled stays after the commit",
        10,
        WINDOW,
        "                self._forget_client_op(op.uuid)\n                self._reinstate(op.uuid, boot_us)\n"
        "            elif op.kind is OpKind.SUSPEND",
        "                self._forget_client_op(op.uuid)\n                if op.uuid not in batch.final:\n"
        "                    self._reinstate(op.uuid, boot_us)\n            elif op.kind is OpKind.SUSPEND",
        _WINDOW + "test_an_answer_overruled_by_the_write_that_made_its_row_decides_after_the_commit",
    ),
    one(
        "write does not overrule load",
        9,
        WINDOW,
        "            if uuid in self._overruled:\n                continue\n            if self._known(row):",
        "            if self._known(row):",
    ),
    one(
        "write overrules load only below its end",
        9,
        WINDOW,
        "            if self._load is not None:\n                self._overruled[uuid] = stays\n",
        "            if self._load is not None and stays is not None and stays.key <= self._load.up_to:\n"
        "                self._overruled[uuid] = stays\n",
    ),
    one(
        "load brings what is in flight",
        9,
        WINDOW,
        "            if self._known(row):\n                for flight",
        "            if False:\n                for flight",
    ),
    one("answers decide whatever the generation", 10, WINDOW, "        if flight.superseded:\n", "        if False:\n"),
    one(
        "generation counted per timer",
        10,
        WINDOW,
        "        op.generation = generation(self.epoch, self.incarnation, self._sequence)\n",
        "        last = self._present(op.uuid)\n"
        "        count = int.from_bytes(last.generation[-8:], 'big') + 1 if last is not None else 1\n"
        "        op.generation = generation(1, bytes(16), count)\n",
    ),
    one(
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
    one(
        "claim loads from now",
        7,
        SHARD,
        "        self._adrift = []\n        self._fetched",
        '        self.window.horizon = (context.clock.now_us() - 1_000_000, b"")\n'
        "        self._adrift = []\n        self._fetched",
    ),
    one(
        "page end inferred from the row count",
        9,
        "engine/loader.py",
        "if window.loaded(request, rows, page.complete_to):",
        "short = len(rows) < max(self._page_rows(window), 1) or not rows\n"
        "        if window.loaded(request, rows, request.up_to if short else page.complete_to):",
    ),
    one(
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
    one(
        "an update keeps the firing",
        10,
        WINDOW,
        "        timer.firing = self._firing(op)\n        instant",
        "        if op.changes.execute_at is not msgspec.UNSET:\n"
        "            timer.firing = self._firing(op)\n        instant",
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
    one(
        "rings before the lapsed lease is verified",
        6,
        "engine/supervisor.py",
        "        if not self._verified or done >= context.namespaces_until:\n            await self._verify()\n",
        "",
        _SUPERVISOR + "test_after_the_lease_had_lapsed_it_rings_for_nothing_that_others_took",
    ),
    one("one bad row blocks the batch", 5, "engine/committer.py", "shard.refuse_first(op, error)", "pass"),
    one(
        "what the store refused is forgotten",
        5,
        WINDOW,
        "            self._refused.append((boot_us, op))\n",
        "            pass\n",
        _WINDOW + "test_a_retry_that_the_store_refuses_neither_rings_nor_is_forgotten",
    ),
    one(
        "a store that claims without comparing the counter",
        6,
        MEMORY,
        "            if member is None or member.counter != standing_still[1]:\n",
        "            if member is None:\n",
        _RARE + "test_who_wakes_just_before_it_is_claimed_from_keeps_its_shard",
    ),
    one(
        "a claim that names no counter",
        6,
        SUPERVISOR,
        "owner=context.incarnation, standing_still=standing\n",
        "owner=context.incarnation, standing_still=None\n",
        _RARE + "test_who_wakes_just_before_it_is_claimed_from_keeps_its_shard",
    ),
    one(
        "lease counted from the answer",
        6,
        SUPERVISOR,
        "        self._last_ok = sent\n",
        "        self._last_ok = done\n",
        _RARE + "test_the_lease_counts_from_when_the_heartbeat_was_sent",
    ),
]
