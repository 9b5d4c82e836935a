"""Names that settings had in earlier versions, for errors that explain what became of them."""

from __future__ import annotations

from tocsin.settings.names import env_name

#: By the former name of a setting: its name now.
RENAMED = {
    "agent.retry_after_max": "retry_after_max",
    "agent_sql.lock_lease": "agent_sql.leader_lease",
    "agent_sql.pool_max": "agent_sql.connections_max",
    "bus.nats_in_hand_max": "bus.nats_ack_pending_max",
    "bus.waiting_max": "bus.queue_max",
    "callbacks.body_bytes_max": "callbacks.response_body_bytes_max",
    "cluster.queue_max": "cluster.send_queue_max",
    "cluster.silence_max": "cluster.peer_timeout",
    "cluster.waiting_max": "cluster.waiting_writes_max",
    "mysql.acquire_timeout": "database.acquire_timeout",
    "mysql.connect_timeout": "database.connect_timeout",
    "mysql.loaders": "database.load_connections",
    "mysql.lock_timeout": "database.lock_timeout",
    "mysql.readers": "database.read_connections",
    "mysql.statement_timeout": "database.statement_timeout",
    "name_warning_interval": "duplicate_name_warning_interval",
    "postgresql.acquire_timeout": "database.acquire_timeout",
    "postgresql.connect_timeout": "database.connect_timeout",
    "postgresql.loaders": "database.load_connections",
    "postgresql.lock_timeout": "database.lock_timeout",
    "postgresql.readers": "database.read_connections",
    "postgresql.statement_timeout": "database.statement_timeout",
    "ui.figures_bucket": "ui.chart_interval",
    "ui.sign_ins_unread_max": "ui.session_stale_max",
    "unwritten_results_max": "uncommitted_results_max",
}

#: By the name of a setting that became a constant: its value.
CONSTANT = {
    "agent.command_timeout": "10s",
    "agent.idempotency_key_chars_max": "255",
    "agent.name_chars_max": "200",
    "agent.orchestration_batch_max": "1000",
    "agent.outbox_backoff_initial": "100ms",
    "agent.outbox_backoff_max": "30s",
    "agent.outbox_batch_max": "500",
    "agent.outbox_close_timeout": "1s",
    "agent.outbox_in_flight_max": "5000",
    "agent.outbox_mark_interval": "50ms",
    "agent.outbox_sweep_interval": "10s",
    "agent.page_max": "1000",
    "agent.polling_gather": "5ms",
    "agent.polling_in_flight_max": "2000",
    "agent.purge_batch_max": "1000",
    "agent.purge_interval": "1m",
    "agent.request_body_depth_max": "100",
    "agent.response_headers_max": "64",
    "agent.tag_chars_max": "64",
    "agent.tags_max": "16",
    "agent.watchdog_batch_max": "500",
    "agent_sql.cache_bytes": "64MiB",
    "agent_sql.conflicts_max": "10",
    "agent_sql.connect_timeout": "10s",
    "agent_sql.group_max": "64",
    "agent_sql.lock_check": "1s",
    "agent_sql.lock_retry": "200ms",
    "agent_sql.lock_timeout": "5s",
    "agent_sql.pool_timeout": "10s",
    "agent_sql.readers_max": "2",
    "agent_sql.takeover_pause": "5s",
    "agent_sql.transaction_idle": "3s",
    "agent_sql.wal_bytes_max": "256MiB",
    "agent_sql.wal_checkpoint_pages": "8000",
    "api.header_bytes_max": "32KiB",
    "api.headers_max": "100",
    "api.request_head_bytes_max": "64KiB",
    "attempt_log_max": "10",
    "backoff_multiplier_max": "100.0",
    "bad_rows_per_minute_max": "5",
    "batch_rows_max": "5000",
    "bus.backoff_initial": "200ms",
    "bus.backoff_max": "30s",
    "bus.dead_letters_max": "1000",
    "bus.ids_remembered_max": "50000",
    "bus.nats_close_timeout": "2s",
    "bus.nats_duplicate_window": "2m",
    "bus.nats_fetch_expires": "30s",
    "bus.nats_fetch_max": "500",
    "bus.nats_heartbeat": "5s",
    "bus.nats_ping_interval": "5s",
    "bus.nats_pings_outstanding_max": "2",
    "bus.nats_reconnect_initial": "100ms",
    "bus.nats_reconnect_max": "5s",
    "bus.nats_tick": "250ms",
    "bus.pause_max": "5s",
    "bus.requests_waiting_max": "2000",
    "callback_timeout_min": "1s",
    "callbacks.answer_headers_max": "128",
    "callbacks.answer_remembered_bytes_max": "1KiB",
    "callbacks.answers_remembered_max": "1024",
    "callbacks.connection_wait_max": "2s",
    "callbacks.deadline_interval": "10ms",
    "callbacks.dns_names_cached_max": "1024",
    "callbacks.dns_stale_max": "1h",
    "callbacks.header_bytes_max": "32KiB",
    "callbacks.idle_connections_max": "256",
    "callbacks.request_header_bytes_max": "8KiB",
    "callbacks.request_headers_max": "32",
    "callbacks.reuse_idle_max": "1s",
    "callbacks.targets_cached_max": "1024",
    "claim_backoff": "1s",
    "cluster.agent_retry_interval": "100ms",
    "cluster.agent_timeout": "30s",
    "cluster.agent_waiting_max": "1000",
    "cluster.answer_grace": "35s",
    "cluster.connect_timeout": "2s",
    "cluster.frame_bytes_max": "32MiB",
    "cluster.frame_fill_bytes": "256KiB",
    "cluster.frame_writes_max": "500",
    "cluster.in_flight_max": "10000",
    "cluster.reconnect_interval": "200ms",
    "cluster.report_timeout": "1s",
    "cluster.retry_interval": "50ms",
    "cluster.sessions_max": "256",
    "cluster.strangers_max": "64",
    "cluster.tick_interval": "500ms",
    "cluster.worker_pause": "1s",
    "cluster.worker_pause_max": "30s",
    "cluster.worker_ready_timeout": "1m",
    "commit_gather_max": "2ms",
    "commit_target": "15ms",
    "cursor_chars_max": "1024",
    "destination_in_flight_min": "4",
    "destination_waiting_max": "50000",
    "dispatch_rows_per_turn": "100",
    "exact_delete_after": "250ms",
    "header_name_chars_max": "128",
    "header_value_chars_max": "4096",
    "headers_max": "32",
    "id_chars_max": "255",
    "look_interval": "50ms",
    "member_forget": "1m",
    "mysql.answer_grace": "5s",
    "mysql.delete_rows_max": "10000",
    "mysql.read_bytes_max": "16MiB",
    "mysql.statement_bytes_max": "4MiB",
    "mysql.undone_retries_max": "5",
    "num_shards_max": "65536",
    "postgresql.answer_grace": "5s",
    "postgresql.read_bytes_max": "16MiB",
    "purge_rows": "2000",
    "refused_interval": "1m",
    "resume_rows": "1000",
    "shun": "1m",
    "sqlite.mmap_bytes": "0",
    "sqlite.read_cache_bytes": "8MiB",
    "sqlite.wal_checkpoint_pages": "20000",
    "store_retry_interval": "200ms",
    "tag_chars_max": "64",
    "tags_max": "16",
    "ui.export_page_timers": "500",
    "ui.figures_ask_interval": "1s",
    "ui.figures_buckets": "360",
    "ui.figures_destinations_max": "100",
    "ui.figures_ended_nodes_max": "64",
    "ui.figures_message_bytes": "16KiB",
    "ui.form_read_timeout": "30s",
    "ui.list_rows": "50",
    "ui.list_rows_max": "500",
    "ui.list_rows_shown_max": "10000",
    "ui.live_interval": "1s",
    "ui.sign_in_timeout": "2s",
    "ui.sign_ins_cached_max": "10000",
    "ui.sign_ins_per_key_max": "1000",
    "ui.tenant_pulses_max": "10000",
    "ui.tenants_remembered": "180d",
    "ui.tenants_remembered_max": "8",
    "ui.trace_entries_max": "500",
    "url_chars_max": "2048",
    "url_verdicts_max": "4096",
}

#: Settings of features that no longer exist.
REMOVED = frozenset({"api.batch_items_per_turn", "ui.sign_out_timeout", "ui.sign_outs_max", "ui.sign_outs_unread_max"})


def _in_file(setting: str) -> str:
    return setting


def _in_environment(setting: str) -> str:
    return env_name(setting.replace(".", "_"))


#: By each way to write a former setting: the setting, and the way.
_WRITTEN = {
    write(setting): (setting, write)
    for setting in (*RENAMED, *CONSTANT, *REMOVED)
    for write in (_in_file, _in_environment)
}


def fate_of(name: str) -> str | None:
    """What became of a former setting, as the rest of a sentence that begins with its name. A new name is written in the
    same way as the former one: as a key of the file or a variable. None if there never was such a setting.
    """
    if name not in _WRITTEN:
        return None
    setting, write = _WRITTEN[name]
    if setting in RENAMED:
        return f"was renamed; use {write(RENAMED[setting])}"
    if setting in CONSTANT:
        return f"is no longer a setting but a constant, {CONSTANT[setting]}; remove it"
    return "is no longer a setting; remove it"
