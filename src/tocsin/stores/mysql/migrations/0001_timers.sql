-- Shard rows (row_type 1), live timers (2) and suspended timers (3) share one table, which InnoDB clusters by the primary
-- key, in firing order. A shard row has instant 0 and an empty uuid, which no timer has; hence varbinary, because binary
-- would pad it with zeros. MariaDB's uuid type would sort differently. Instants are microseconds since 1970: datetime
-- begins in the year 1000 and has no time zone, timestamp ends in 2038.
--
-- Every definition commits by itself, so each statement can run again after an interrupted migration.
CREATE TABLE IF NOT EXISTS timers (
  shard_id int NOT NULL,
  row_type tinyint NOT NULL,
  timer_execute_at bigint NOT NULL,
  timer_uuid varbinary(16) NOT NULL,
  shard_version bigint,
  shard_owner varbinary(64),
  -- Incremented by each batch, so that a fence changes the row instead of only matching it.
  shard_batches bigint,
  timer_generation binary(32),
  timer_namespace text,
  timer_id text,
  -- NULL without tags, else each tag between two U+001F characters.
  timer_tags text,
  -- JSON text as the engine wrote it, as bytes, so that a record that is not valid text is kept unchanged.
  timer_record longblob,
  timer_parked_reason text,
  -- A row lacks nothing that reads of whole pages rely on, whoever writes it. TiDB takes the clause, but enforces it only with
  -- tidb_enable_check_constraint.
  CHECK (
    row_type = 1
    OR (timer_generation IS NOT NULL AND timer_namespace IS NOT NULL AND timer_id IS NOT NULL AND timer_record IS NOT NULL)
  ),
  PRIMARY KEY (shard_id, row_type, timer_execute_at, timer_uuid),
  -- A uuid has one row, live or suspended, whatever its instant.
  UNIQUE KEY timers_by_uuid (shard_id, timer_uuid)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Finished timers, clustered in the order of lists.
CREATE TABLE IF NOT EXISTS history (
  shard_id int NOT NULL,
  timer_execute_at bigint NOT NULL,
  timer_uuid binary(16) NOT NULL,
  timer_generation binary(32) NOT NULL,
  timer_finished_at bigint NOT NULL,
  timer_expires_at bigint NOT NULL,
  timer_namespace text NOT NULL,
  timer_id text NOT NULL,
  timer_tags text,
  timer_record longblob NOT NULL,
  timer_status varchar(16) NOT NULL,
  PRIMARY KEY (shard_id, timer_execute_at, timer_uuid, timer_generation),
  UNIQUE KEY history_by_uuid (shard_id, timer_uuid, timer_generation),
  KEY history_by_expiry (timer_expires_at)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS members (
  member_incarnation varbinary(64) PRIMARY KEY,
  member_node text NOT NULL,
  member_address text NOT NULL,
  member_counter bigint NOT NULL
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS namespaces (
  namespace_name varchar(255) PRIMARY KEY,
  namespace_record longtext NOT NULL
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS api_keys (
  key_id varchar(255) PRIMARY KEY,
  key_record longtext NOT NULL
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
