-- Shard rows (row_type 1), live timers (2) and suspended timers (3) share one table, clustered in firing order.
-- A shard row has instant 0 and an empty uuid, which no timer has. Instants are microseconds since 1970.
CREATE TABLE timers (
  shard_id INTEGER NOT NULL,
  row_type INTEGER NOT NULL CHECK (row_type IN (1, 2, 3)),
  timer_execute_at INTEGER NOT NULL,
  timer_uuid BLOB NOT NULL CHECK (length(timer_uuid) = CASE row_type WHEN 1 THEN 0 ELSE 16 END),
  shard_version INTEGER,
  shard_owner BLOB,
  timer_generation BLOB CHECK (length(timer_generation) = 32),
  timer_namespace TEXT,
  timer_id TEXT,
  -- NULL without tags, else each tag between two U+001F characters, for instr().
  timer_tags TEXT,
  -- JSON text as the engine wrote it; ANY, so that a record that is not valid text is kept unchanged.
  timer_record ANY,
  timer_suspended_reason TEXT,
  -- A row lacks nothing that reads of whole pages rely on, whoever writes it.
  CHECK (
    row_type = 1
    OR (timer_generation IS NOT NULL AND timer_namespace IS NOT NULL AND timer_id IS NOT NULL AND timer_record IS NOT NULL)
  ),
  PRIMARY KEY (shard_id, row_type, timer_execute_at, timer_uuid)
) STRICT, WITHOUT ROWID;

-- A uuid has one row, live or suspended, whatever its instant.
CREATE UNIQUE INDEX timers_by_uuid ON timers (shard_id, timer_uuid);

-- Finished timers.
CREATE TABLE history (
  shard_id INTEGER NOT NULL,
  timer_execute_at INTEGER NOT NULL,
  timer_uuid BLOB NOT NULL CHECK (length(timer_uuid) = 16),
  timer_generation BLOB NOT NULL CHECK (length(timer_generation) = 32),
  timer_namespace TEXT NOT NULL,
  timer_id TEXT NOT NULL,
  timer_tags TEXT,
  timer_record ANY NOT NULL,
  timer_status TEXT NOT NULL CHECK (timer_status IN ('completed', 'failed', 'canceled', 'expired')),
  timer_finished_at INTEGER NOT NULL,
  timer_expires_at INTEGER NOT NULL,
  PRIMARY KEY (shard_id, timer_execute_at, timer_uuid, timer_generation)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX history_by_uuid ON history (shard_id, timer_uuid, timer_generation);
CREATE INDEX history_by_expiry ON history (timer_expires_at);

CREATE TABLE members (
  member_incarnation BLOB PRIMARY KEY,
  member_node TEXT NOT NULL,
  member_address TEXT NOT NULL,
  member_counter INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Numbers of the whole store, such as total_shards.
CREATE TABLE meta (
  meta_name TEXT PRIMARY KEY,
  meta_value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What people configure, and what they did: namespaces, API keys (of which only hashes are stored), secrets that all nodes share,
-- sign-ins to the web pages (likewise hashes) and the audit trail. The row of a kind without a key has the kind's version, which
-- each write changes.
CREATE TABLE records (
  record_kind TEXT NOT NULL,
  record_key TEXT NOT NULL,
  record_value TEXT NOT NULL,
  record_version INTEGER NOT NULL,
  PRIMARY KEY (record_kind, record_key)
) STRICT, WITHOUT ROWID;

-- Runs that ended while their timers went on, clustered by timer, in their order.
CREATE TABLE runs (
  shard_id INTEGER NOT NULL,
  run_uuid BLOB NOT NULL CHECK (length(run_uuid) = 16),
  run_generation BLOB NOT NULL CHECK (length(run_generation) = 32),
  -- JSON text as the engine wrote it; ANY, so that a record that is not valid text is kept unchanged.
  run_record ANY NOT NULL,
  run_expires_at INTEGER NOT NULL,
  PRIMARY KEY (shard_id, run_uuid, run_generation)
) STRICT, WITHOUT ROWID;

CREATE INDEX runs_by_expiry ON runs (run_expires_at);

-- Ends that failed and that nobody has dealt with. Their details are in history and runs, under the same uuid and generation.
CREATE TABLE failures (
  shard_id INTEGER NOT NULL,
  failure_uuid BLOB NOT NULL CHECK (length(failure_uuid) = 16),
  failure_generation BLOB NOT NULL CHECK (length(failure_generation) = 32),
  failure_namespace TEXT NOT NULL,
  failure_timer_id TEXT NOT NULL,
  -- Destination and error, with U+001F between them.
  failure_cause TEXT NOT NULL,
  failure_at INTEGER NOT NULL,
  failure_execute_at INTEGER NOT NULL,
  failure_expires_at INTEGER NOT NULL,
  PRIMARY KEY (shard_id, failure_uuid, failure_generation)
) STRICT, WITHOUT ROWID;

CREATE INDEX failures_by_instant ON failures (shard_id, failure_at, failure_uuid, failure_generation);

CREATE INDEX failures_by_expiry ON failures (failure_expires_at);

-- Schedules are timers of a namespace's name followed by "/schedule". They are listed by their ids.
CREATE INDEX timers_schedules ON timers (timer_namespace, timer_id) WHERE substr(timer_namespace, -9) = '/schedule';

-- Views for people who read the database by hand; Tocsin never reads them. Instants are text in UTC with milliseconds, the
-- precision of SQLite's own functions; uuids are text, payloads JSON where they are JSON. What a record that can't be decoded
-- would supply is NULL. Headers and idempotency keys are left out. Nothing in them is newer than SQLite 3.31, because a program
-- that can't parse a view can't read the file.
CREATE VIEW readable_timers AS
SELECT
  timer_namespace AS namespace,
  timer_id AS id,
  CASE row_type WHEN 2 THEN 'pending' ELSE 'suspended' END AS state,
  timer_suspended_reason AS suspended_because,
  strftime('%Y-%m-%dT%H:%M:%fZ', json_extract(record, '$.execute_at') / 1e6, 'unixepoch') AS execute_at,
  strftime('%Y-%m-%dT%H:%M:%fZ', timer_execute_at / 1e6, 'unixepoch') AS next_attempt_at,
  coalesce(json_extract(record, '$.attempts'), 0) AS attempts,
  json_extract(record, '$.last_error') AS last_error,
  coalesce(json_extract(record, '$.method'), 'POST') AS method,
  json_extract(record, '$.url') AS url,
  replace(trim(timer_tags, char(31)), char(31), ', ') AS tags,
  coalesce(
    CASE WHEN json_type(record, '$.payload') IS NOT NULL THEN json_quote(json_extract(record, '$.payload')) END,
    CASE WHEN json_type(record, '$.body.json') IS NOT NULL THEN json_quote(json_extract(record, '$.body.json')) END,
    json_extract(record, '$.body.text'),
    json_extract(record, '$.body.base64')
  ) AS payload,
  strftime('%Y-%m-%dT%H:%M:%fZ', json_extract(record, '$.created_at') / 1e6, 'unixepoch') AS created_at,
  strftime('%Y-%m-%dT%H:%M:%fZ', json_extract(record, '$.updated_at') / 1e6, 'unixepoch') AS updated_at,
  substr(hex, 1, 8) || '-' || substr(hex, 9, 4) || '-' || substr(hex, 13, 4)
    || '-' || substr(hex, 17, 4) || '-' || substr(hex, 21) AS uuid,
  shard_id AS shard
FROM (
  SELECT *, lower(hex(timer_uuid)) AS hex,
    CASE WHEN json_valid(CAST(timer_record AS TEXT)) THEN CAST(timer_record AS TEXT) END AS record
  FROM timers
  WHERE row_type IN (2, 3) AND instr(timer_namespace, '/') = 0
);

CREATE VIEW readable_history AS
SELECT
  substr(timer_namespace, 1, instr(timer_namespace || '/', '/') - 1) AS namespace,
  timer_id AS id,
  CASE
    WHEN substr(timer_namespace, -9) = '/schedule' THEN 'schedule'
    WHEN substr(timer_namespace, -7) = '/notify' THEN 'notification'
    ELSE 'timer'
  END AS kind,
  timer_status AS status,
  strftime('%Y-%m-%dT%H:%M:%fZ', json_extract(record, '$.execute_at') / 1e6, 'unixepoch') AS execute_at,
  strftime('%Y-%m-%dT%H:%M:%fZ', timer_finished_at / 1e6, 'unixepoch') AS finished_at,
  coalesce(json_extract(record, '$.attempts'), 0) AS attempts,
  json_extract(record, '$.last_error') AS last_error,
  coalesce(json_extract(record, '$.method'), 'POST') AS method,
  json_extract(record, '$.url') AS url,
  replace(trim(timer_tags, char(31)), char(31), ', ') AS tags,
  coalesce(
    CASE WHEN json_type(record, '$.payload') IS NOT NULL THEN json_quote(json_extract(record, '$.payload')) END,
    CASE WHEN json_type(record, '$.body.json') IS NOT NULL THEN json_quote(json_extract(record, '$.body.json')) END,
    json_extract(record, '$.body.text'),
    json_extract(record, '$.body.base64')
  ) AS payload,
  strftime('%Y-%m-%dT%H:%M:%fZ', json_extract(record, '$.created_at') / 1e6, 'unixepoch') AS created_at,
  strftime('%Y-%m-%dT%H:%M:%fZ', timer_expires_at / 1e6, 'unixepoch') AS kept_until,
  substr(hex, 1, 8) || '-' || substr(hex, 9, 4) || '-' || substr(hex, 13, 4)
    || '-' || substr(hex, 17, 4) || '-' || substr(hex, 21) AS uuid,
  shard_id AS shard
FROM (
  SELECT *, lower(hex(timer_uuid)) AS hex,
    CASE WHEN json_valid(CAST(timer_record AS TEXT)) THEN CAST(timer_record AS TEXT) END AS record
  FROM history
  -- What flows have used is no timer's.
  WHERE substr(timer_namespace, -5) <> '/flow'
);

CREATE VIEW readable_schedules AS
SELECT
  substr(timer_namespace, 1, length(timer_namespace) - 9) AS namespace,
  timer_id AS id,
  CASE
    WHEN json_extract(record, '$.schedule.state.paused') IS NOT NULL THEN 'paused'
    WHEN row_type = 3 THEN 'suspended'
    ELSE 'active'
  END AS state,
  coalesce(json_extract(record, '$.schedule.state.paused'), timer_suspended_reason) AS because,
  json_extract(record, '$.schedule.definition.cron') AS cron,
  json_extract(record, '$.schedule.definition.every_us') / 1e6 AS every_seconds,
  coalesce(json_extract(record, '$.schedule.definition.time_zone'), 'UTC') AS time_zone,
  strftime('%Y-%m-%dT%H:%M:%fZ', timer_execute_at / 1e6, 'unixepoch') AS next_attempt_at,
  coalesce(json_extract(record, '$.schedule.state.occurrences'), 0) AS occurrences,
  coalesce(json_extract(record, '$.schedule.state.failures'), 0) AS failures_in_a_row,
  json_extract(record, '$.schedule.state.last.outcome') AS last_outcome,
  strftime('%Y-%m-%dT%H:%M:%fZ', json_extract(record, '$.schedule.state.last.finished_at')
    / 1e6, 'unixepoch') AS last_finished_at,
  coalesce(json_extract(record, '$.attempts'), 0) AS attempts,
  json_extract(record, '$.last_error') AS last_error,
  coalesce(json_extract(record, '$.method'), 'POST') AS method,
  json_extract(record, '$.url') AS url,
  replace(trim(timer_tags, char(31)), char(31), ', ') AS tags,
  coalesce(
    CASE WHEN json_type(record, '$.payload') IS NOT NULL THEN json_quote(json_extract(record, '$.payload')) END,
    CASE WHEN json_type(record, '$.body.json') IS NOT NULL THEN json_quote(json_extract(record, '$.body.json')) END,
    json_extract(record, '$.body.text'),
    json_extract(record, '$.body.base64')
  ) AS payload,
  strftime('%Y-%m-%dT%H:%M:%fZ', json_extract(record, '$.created_at') / 1e6, 'unixepoch') AS created_at,
  strftime('%Y-%m-%dT%H:%M:%fZ', json_extract(record, '$.updated_at') / 1e6, 'unixepoch') AS updated_at,
  substr(hex, 1, 8) || '-' || substr(hex, 9, 4) || '-' || substr(hex, 13, 4)
    || '-' || substr(hex, 17, 4) || '-' || substr(hex, 21) AS uuid,
  shard_id AS shard
FROM (
  SELECT *, lower(hex(timer_uuid)) AS hex,
    CASE WHEN json_valid(CAST(timer_record AS TEXT)) THEN CAST(timer_record AS TEXT) END AS record
  FROM timers
  WHERE row_type IN (2, 3) AND substr(timer_namespace, -9) = '/schedule'
);

CREATE VIEW readable_failures AS
SELECT
  CASE WHEN substr(failure_namespace, -9) = '/schedule'
    THEN substr(failure_namespace, 1, length(failure_namespace) - 9)
    ELSE failure_namespace
  END AS namespace,
  failure_timer_id AS id,
  CASE WHEN substr(failure_namespace, -9) = '/schedule' THEN 'occurrence' ELSE 'timer' END AS kind,
  substr(failure_cause, 1, instr(failure_cause, char(31)) - 1) AS destination,
  substr(failure_cause, instr(failure_cause, char(31)) + 1) AS error,
  strftime('%Y-%m-%dT%H:%M:%fZ', failure_at / 1e6, 'unixepoch') AS failed_at,
  strftime('%Y-%m-%dT%H:%M:%fZ', failure_execute_at / 1e6, 'unixepoch') AS execute_at,
  strftime('%Y-%m-%dT%H:%M:%fZ', failure_expires_at / 1e6, 'unixepoch') AS kept_until,
  shard_id AS shard
FROM failures;

CREATE VIEW readable_shards AS
SELECT
  shard_id AS shard,
  shard_version AS epoch,
  CASE WHEN shard_owner IS NULL THEN 'released' ELSE 'owned' END AS state,
  member_node AS node,
  CASE WHEN instr(member_address, '#')
    THEN substr(member_address, 1, instr(member_address, '#') - 1)
    ELSE member_address
  END AS address,
  lower(hex(shard_owner)) AS owner
FROM timers LEFT JOIN members ON member_incarnation = shard_owner
WHERE row_type = 1;
