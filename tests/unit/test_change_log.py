"""What a node's store logs while it is transferred, or need not log."""

from __future__ import annotations

from tocsin.ports.records import Records
from tocsin.ports.store import Store
from tocsin.server.transfer_log import ChangeLog

READS = {
    "now", "facts", "shards", "members", "load", "fetch", "list", "list_schedules", "list_all_schedules", "runs", "ends",
    "failures", "record", "records", "records_versions",
}  # fmt: skip
#: They write what each store has of its own, and records, which the transfer copies all once more in the pause.
NOT_LOGGED = {"open", "close", "release", "heartbeat", "forget_member", "put_record", "delete_records"}


def test_each_method_of_a_store_that_changes_its_rows_is_logged() -> None:
    methods = {name for port in (Store, Records) for name in vars(port) if name[0] != "_" and name != "capabilities"}
    assert methods - READS - NOT_LOGGED <= vars(ChangeLog).keys()
    assert methods >= READS | NOT_LOGGED
