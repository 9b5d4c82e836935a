"""Writes forwarded to other nodes, and namespaces that all nodes know (rules 19 to 23)."""

from __future__ import annotations

from .mutation import mutation
from .mutation_operators import always, drop, leave_out, never, replace, rewrite

WRITES = "tocsin.timers.writing:Writes."
LINK = "tocsin.cluster.link:PeerLink."
SESSION = "tocsin.cluster.session:PeerSession."
_FORWARDED = "tests/unit/test_forwarded_writes.py::"
_SENDING = "tests/unit/test_cluster_sending.py::"
_LINK = "tests/unit/test_cluster_link.py::"
_NODES = "tests/unit/test_cluster_nodes.py::"
_NAMESPACES = "tests/unit/test_namespace_reads.py::"


MUTATIONS = [
    mutation(
        "a forwarded write is accepted in any epoch",
        19,
        never(WRITES + "accept", "window.epoch"),
        caught_by=_FORWARDED + "test_forwarded_write_is_accepted_only_in_its_epoch",
    ),
    mutation(
        "a request that was sent is sent again elsewhere",
        20,
        drop(LINK + "_gone", "self._in_doubt += ..."),
        rewrite(
            LINK + "_gone",
            "self._in_flight.clear()",
            to="""
            sent_before, self._in_flight = self._in_flight, {}
            for sent in sent_before.values():
                sent.completion.refuse(ShardMoved("gone"))
            """,
        ),
        caught_by=_LINK + "test_an_unknown_outcome_is_reported_when_the_deadline_has_passed",
    ),
    mutation(
        "an unknown outcome is reported too early",
        20,
        drop(LINK + "_gone", "self._in_doubt += ..."),
        rewrite(
            LINK + "_gone",
            "self._in_flight.clear()",
            to="""
            sent_before, self._in_flight = self._in_flight, {}
            self._refuse_unknown(list(sent_before.values()))
            """,
        ),
        caught_by=_LINK + "test_an_unknown_outcome_is_reported_when_the_deadline_has_passed",
    ),
    mutation(
        "a leaving node disowns the last write that it accepted",
        20,
        replace(SESSION + "leave", "self._last_id", by="self._last_id - 1"),
        caught_by=_SENDING + "test_writes_taken_by_a_leaving_owner_are_in_doubt_until_decided",
    ),
    mutation(
        "the last write that a leaving node accepted is sent again",
        20,
        replace(LINK + "_left", "number > last_id", by="number >= last_id", in_="unread = ..."),
        caught_by=_SENDING + "test_writes_taken_by_a_leaving_owner_are_in_doubt_until_decided",
    ),
    mutation(
        "forwarded writes have no age",
        21,
        leave_out(SESSION + "_take", "message_age_max_us"),
        replace(SESSION + "_take", "issued + message.elapsed_us", by="self._received_at"),
        caught_by=_LINK + "test_an_old_unread_write_is_refused",
    ),
    mutation(
        "the age of a message does not count",
        21,
        leave_out(SESSION + "_take", "message_age_max_us"),
        caught_by=_LINK + "test_an_old_unread_write_is_refused",
    ),
    mutation(
        "a forwarded write is accepted after its deadline",
        21,
        never(WRITES + "accept", "write.deadline_us"),
        caught_by=_FORWARDED + "test_late_or_misdirected_forwarded_write_is_refused",
    ),
    mutation(
        "a former connection stays valid",
        22,
        drop("tocsin.cluster.cluster:Cluster.arrived", "former.void"),
        caught_by=_NODES + "test_a_new_connection_voids_only_the_former_one_of_the_same_node",
    ),
    mutation(
        "repeated writes are applied twice",
        22,
        never(SESSION + "_take", "self._last_id"),
        caught_by=_LINK + "test_a_write_is_accepted_once_and_only_in_the_epoch_that_it_names",
    ),
    mutation(
        "a write is accepted before its namespace is read",
        23,
        always(SESSION + "_take", "knows_namespace"),
        caught_by=_LINK + "test_a_write_in_an_unknown_namespace_is_accepted_once_the_owner_has_read_it",
    ),
    mutation(
        "a change of a namespace is acknowledged at once",
        23,
        drop("tocsin.timers.namespaces:Namespaces._change_everywhere", "until_known_everywhere"),
    ),
    mutation(
        "a node confirms namespaces that it has not read",
        23,
        drop(SESSION + "_refresh", "refresh_namespaces"),
        caught_by=_LINK + "test_a_node_confirms_once_it_has_read_the_namespaces",
    ),
    mutation(
        "an earlier read of the namespaces overwrites a later one",
        23,
        replace(
            "tocsin.timers.engine.context:Context._is_later", "self._learned_from.get(name, 0) < number", by="True"
        ),
        caught_by=_NAMESPACES + "test_read_that_began_earlier_does_not_undo_a_later_read",
    ),
    mutation(
        "namespaces count as read in a version of which a part was left out",
        23,
        always("tocsin.timers.engine.context:Context.read_namespaces", "number == self._learned"),
        caught_by=_NAMESPACES + "test_read_that_is_overtaken_does_not_hide_a_change",
    ),
    mutation(
        "namespaces are not read again after a change",
        23,
        always("tocsin.timers.engine.context:Context.read_namespaces", "version == self._namespaces_version"),
        caught_by=_NAMESPACES + "test_read_that_began_earlier_does_not_undo_a_later_read",
    ),
    mutation(
        "a deferred timer fires in a paused namespace",
        23,
        leave_out(
            "tocsin.timers.engine.dispatcher:Dispatcher._may_fire_still", "namespace is not None", "namespace.held"
        ),
    ),
    mutation(
        "a namespace is written whatever its version",
        0,
        leave_out("tocsin.stores.memory:MemoryStore.put_record", "stored.version"),
        caught_by=_NAMESPACES + "test_concurrent_changes_on_two_nodes_both_apply",
    ),
]
