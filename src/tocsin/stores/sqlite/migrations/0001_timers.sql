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
  timer_parked_reason TEXT,
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
  timer_status TEXT NOT NULL CHECK (timer_status IN ('completed', 'failed', 'canceled')),
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

CREATE TABLE namespaces (
  namespace_name TEXT PRIMARY KEY,
  namespace_record TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE api_keys (
  key_id TEXT PRIMARY KEY,
  key_record TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Numbers of the whole store, such as total_shards.
CREATE TABLE meta (
  meta_name TEXT PRIMARY KEY,
  meta_value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
