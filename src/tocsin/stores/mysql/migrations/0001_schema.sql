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
  timer_suspended_reason text,
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

-- What people configure, and what they did: namespaces, API keys (of which only hashes are stored), secrets that all nodes share,
-- sign-ins to the web pages (likewise hashes) and the audit trail. The row of a kind without a key has the kind's version, which
-- each write changes.
CREATE TABLE IF NOT EXISTS records (
  record_kind varchar(100) NOT NULL,
  record_key varchar(400) NOT NULL,
  record_version bigint NOT NULL,
  record_value longtext NOT NULL,
  PRIMARY KEY (record_kind, record_key)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Runs that ended while their timers went on, clustered by timer, in their order.
CREATE TABLE IF NOT EXISTS runs (
  shard_id int NOT NULL,
  run_uuid binary(16) NOT NULL,
  run_generation binary(32) NOT NULL,
  run_expires_at bigint NOT NULL,
  -- JSON text as the engine wrote it, as bytes, so that a record that is not valid text is kept unchanged.
  run_record longblob NOT NULL,
  PRIMARY KEY (shard_id, run_uuid, run_generation),
  KEY runs_by_expiry (run_expires_at)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Ends that failed and that nobody has dealt with. Their details are in history and runs, under the same uuid and generation.
CREATE TABLE IF NOT EXISTS failures (
  shard_id int NOT NULL,
  failure_uuid binary(16) NOT NULL,
  failure_generation binary(32) NOT NULL,
  failure_at bigint NOT NULL,
  failure_execute_at bigint NOT NULL,
  failure_expires_at bigint NOT NULL,
  failure_namespace text NOT NULL,
  failure_timer_id text NOT NULL,
  -- Destination and error, with U+001F between them.
  failure_cause text NOT NULL,
  PRIMARY KEY (shard_id, failure_uuid, failure_generation),
  KEY failures_by_instant (shard_id, failure_at, failure_uuid, failure_generation),
  KEY failures_by_expiry (failure_expires_at)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Schedules are timers of a namespace's name followed by "/schedule". No index can have them alone, so this table has their
-- ids in order. Its rows are hints: a list reads what the timers' rows are, and one without a timer's row is ignored.
CREATE TABLE IF NOT EXISTS schedules (
  schedule_namespace varbinary(264) NOT NULL,
  schedule_id varbinary(1020) NOT NULL,
  schedule_shard int NOT NULL,
  schedule_uuid binary(16) NOT NULL,
  PRIMARY KEY (schedule_namespace, schedule_id)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

-- Views for people who read the database by hand; Tocsin never reads them. Instants are datetime(6) in UTC; uuids are text,
-- payloads JSON where they are JSON. What a record that can't be decoded would supply is NULL. Headers and idempotency keys
-- are left out. They read with the rights of whoever asks, so that they work wherever a backup is restored. OR REPLACE would
-- require the right to drop them.
CREATE SQL SECURITY INVOKER VIEW readable_timers AS
SELECT
  timer_namespace AS namespace,
  timer_id AS id,
  CASE row_type WHEN 2 THEN 'pending' ELSE 'suspended' END AS state,
  timer_suspended_reason AS suspended_because,
  TIMESTAMPADD(
    MICROSECOND, CAST(JSON_UNQUOTE(JSON_EXTRACT(record, '$.execute_at')) AS SIGNED),
    TIMESTAMP '1970-01-01 00:00:00'
  ) AS execute_at,
  TIMESTAMPADD(MICROSECOND, timer_execute_at, TIMESTAMP '1970-01-01 00:00:00') AS next_attempt_at,
  coalesce(CAST(JSON_UNQUOTE(JSON_EXTRACT(record, '$.attempts')) AS SIGNED), 0) AS attempts,
  JSON_UNQUOTE(JSON_EXTRACT(record, '$.last_error')) AS last_error,
  coalesce(JSON_UNQUOTE(JSON_EXTRACT(record, '$.method')), 'POST') AS method,
  JSON_UNQUOTE(JSON_EXTRACT(record, '$.url')) AS url,
  REPLACE(TRIM(BOTH CHAR(31 USING utf8mb4) FROM timer_tags), CHAR(31 USING utf8mb4), ', ') AS tags,
  coalesce(
    CAST(JSON_EXTRACT(record, '$.payload') AS CHAR),
    CAST(JSON_EXTRACT(record, '$.body.json') AS CHAR),
    JSON_UNQUOTE(JSON_EXTRACT(record, '$.body.text')),
    JSON_UNQUOTE(JSON_EXTRACT(record, '$.body.base64'))
  ) AS payload,
  TIMESTAMPADD(
    MICROSECOND, CAST(JSON_UNQUOTE(JSON_EXTRACT(record, '$.created_at')) AS SIGNED),
    TIMESTAMP '1970-01-01 00:00:00'
  ) AS created_at,
  TIMESTAMPADD(
    MICROSECOND, CAST(JSON_UNQUOTE(JSON_EXTRACT(record, '$.updated_at')) AS SIGNED),
    TIMESTAMP '1970-01-01 00:00:00'
  ) AS updated_at,
  INSERT(INSERT(INSERT(INSERT(LOWER(HEX(timer_uuid)), 9, 0, '-'), 14, 0, '-'), 19, 0, '-'), 24, 0, '-') AS uuid,
  shard_id AS shard
FROM (
  SELECT *,
    CASE WHEN JSON_VALID(CONVERT(timer_record USING utf8mb4)) THEN CONVERT(timer_record USING utf8mb4) END AS record
  FROM timers
  WHERE row_type IN (2, 3) AND LOCATE('/', timer_namespace) = 0
) AS r;

CREATE SQL SECURITY INVOKER VIEW readable_history AS
SELECT
  SUBSTRING_INDEX(timer_namespace, '/', 1) AS namespace,
  timer_id AS id,
  CASE
    WHEN RIGHT(timer_namespace, 9) = '/schedule' THEN 'schedule'
    WHEN RIGHT(timer_namespace, 7) = '/notify' THEN 'notification'
    ELSE 'timer'
  END AS kind,
  timer_status AS status,
  TIMESTAMPADD(
    MICROSECOND, CAST(JSON_UNQUOTE(JSON_EXTRACT(record, '$.execute_at')) AS SIGNED),
    TIMESTAMP '1970-01-01 00:00:00'
  ) AS execute_at,
  TIMESTAMPADD(MICROSECOND, timer_finished_at, TIMESTAMP '1970-01-01 00:00:00') AS finished_at,
  coalesce(CAST(JSON_UNQUOTE(JSON_EXTRACT(record, '$.attempts')) AS SIGNED), 0) AS attempts,
  JSON_UNQUOTE(JSON_EXTRACT(record, '$.last_error')) AS last_error,
  coalesce(JSON_UNQUOTE(JSON_EXTRACT(record, '$.method')), 'POST') AS method,
  JSON_UNQUOTE(JSON_EXTRACT(record, '$.url')) AS url,
  REPLACE(TRIM(BOTH CHAR(31 USING utf8mb4) FROM timer_tags), CHAR(31 USING utf8mb4), ', ') AS tags,
  coalesce(
    CAST(JSON_EXTRACT(record, '$.payload') AS CHAR),
    CAST(JSON_EXTRACT(record, '$.body.json') AS CHAR),
    JSON_UNQUOTE(JSON_EXTRACT(record, '$.body.text')),
    JSON_UNQUOTE(JSON_EXTRACT(record, '$.body.base64'))
  ) AS payload,
  TIMESTAMPADD(
    MICROSECOND, CAST(JSON_UNQUOTE(JSON_EXTRACT(record, '$.created_at')) AS SIGNED),
    TIMESTAMP '1970-01-01 00:00:00'
  ) AS created_at,
  TIMESTAMPADD(MICROSECOND, timer_expires_at, TIMESTAMP '1970-01-01 00:00:00') AS kept_until,
  INSERT(INSERT(INSERT(INSERT(LOWER(HEX(timer_uuid)), 9, 0, '-'), 14, 0, '-'), 19, 0, '-'), 24, 0, '-') AS uuid,
  shard_id AS shard
FROM (
  SELECT *,
    CASE WHEN JSON_VALID(CONVERT(timer_record USING utf8mb4)) THEN CONVERT(timer_record USING utf8mb4) END AS record
  FROM history
  -- What flows have used is no timer's.
  WHERE RIGHT(timer_namespace, 5) <> '/flow'
) AS r;

CREATE SQL SECURITY INVOKER VIEW readable_schedules AS
SELECT
  LEFT(timer_namespace, CHAR_LENGTH(timer_namespace) - 9) AS namespace,
  timer_id AS id,
  CASE
    WHEN JSON_UNQUOTE(JSON_EXTRACT(record, '$.schedule.state.paused')) IS NOT NULL THEN 'paused'
    WHEN row_type = 3 THEN 'suspended'
    ELSE 'active'
  END AS state,
  coalesce(JSON_UNQUOTE(JSON_EXTRACT(record, '$.schedule.state.paused')), timer_suspended_reason) AS because,
  JSON_UNQUOTE(JSON_EXTRACT(record, '$.schedule.definition.cron')) AS cron,
  CAST(JSON_UNQUOTE(JSON_EXTRACT(record, '$.schedule.definition.every_us')) AS SIGNED) / 1000000 AS every_seconds,
  coalesce(JSON_UNQUOTE(JSON_EXTRACT(record, '$.schedule.definition.time_zone')), 'UTC') AS time_zone,
  TIMESTAMPADD(MICROSECOND, timer_execute_at, TIMESTAMP '1970-01-01 00:00:00') AS next_attempt_at,
  coalesce(CAST(JSON_UNQUOTE(JSON_EXTRACT(record, '$.schedule.state.occurrences')) AS SIGNED), 0) AS occurrences,
  coalesce(CAST(JSON_UNQUOTE(JSON_EXTRACT(record, '$.schedule.state.failures')) AS SIGNED), 0) AS failures_in_a_row,
  JSON_UNQUOTE(JSON_EXTRACT(record, '$.schedule.state.last.outcome')) AS last_outcome,
  TIMESTAMPADD(
    MICROSECOND, CAST(JSON_UNQUOTE(JSON_EXTRACT(record, '$.schedule.state.last.finished_at')) AS SIGNED),
    TIMESTAMP '1970-01-01 00:00:00'
  ) AS last_finished_at,
  coalesce(CAST(JSON_UNQUOTE(JSON_EXTRACT(record, '$.attempts')) AS SIGNED), 0) AS attempts,
  JSON_UNQUOTE(JSON_EXTRACT(record, '$.last_error')) AS last_error,
  coalesce(JSON_UNQUOTE(JSON_EXTRACT(record, '$.method')), 'POST') AS method,
  JSON_UNQUOTE(JSON_EXTRACT(record, '$.url')) AS url,
  REPLACE(TRIM(BOTH CHAR(31 USING utf8mb4) FROM timer_tags), CHAR(31 USING utf8mb4), ', ') AS tags,
  coalesce(
    CAST(JSON_EXTRACT(record, '$.payload') AS CHAR),
    CAST(JSON_EXTRACT(record, '$.body.json') AS CHAR),
    JSON_UNQUOTE(JSON_EXTRACT(record, '$.body.text')),
    JSON_UNQUOTE(JSON_EXTRACT(record, '$.body.base64'))
  ) AS payload,
  TIMESTAMPADD(
    MICROSECOND, CAST(JSON_UNQUOTE(JSON_EXTRACT(record, '$.created_at')) AS SIGNED),
    TIMESTAMP '1970-01-01 00:00:00'
  ) AS created_at,
  TIMESTAMPADD(
    MICROSECOND, CAST(JSON_UNQUOTE(JSON_EXTRACT(record, '$.updated_at')) AS SIGNED),
    TIMESTAMP '1970-01-01 00:00:00'
  ) AS updated_at,
  INSERT(INSERT(INSERT(INSERT(LOWER(HEX(timer_uuid)), 9, 0, '-'), 14, 0, '-'), 19, 0, '-'), 24, 0, '-') AS uuid,
  shard_id AS shard
FROM (
  SELECT *,
    CASE WHEN JSON_VALID(CONVERT(timer_record USING utf8mb4)) THEN CONVERT(timer_record USING utf8mb4) END AS record
  FROM timers
  WHERE row_type IN (2, 3) AND RIGHT(timer_namespace, 9) = '/schedule'
) AS r;

CREATE SQL SECURITY INVOKER VIEW readable_failures AS
SELECT
  CASE WHEN RIGHT(failure_namespace, 9) = '/schedule'
    THEN LEFT(failure_namespace, CHAR_LENGTH(failure_namespace) - 9)
    ELSE failure_namespace
  END AS namespace,
  failure_timer_id AS id,
  CASE WHEN RIGHT(failure_namespace, 9) = '/schedule' THEN 'occurrence' ELSE 'timer' END AS kind,
  SUBSTRING_INDEX(failure_cause, CHAR(31 USING utf8mb4), 1) AS destination,
  SUBSTRING_INDEX(failure_cause, CHAR(31 USING utf8mb4), -1) AS error,
  TIMESTAMPADD(MICROSECOND, failure_at, TIMESTAMP '1970-01-01 00:00:00') AS failed_at,
  TIMESTAMPADD(MICROSECOND, failure_execute_at, TIMESTAMP '1970-01-01 00:00:00') AS execute_at,
  TIMESTAMPADD(MICROSECOND, failure_expires_at, TIMESTAMP '1970-01-01 00:00:00') AS kept_until,
  shard_id AS shard
FROM failures;

CREATE SQL SECURITY INVOKER VIEW readable_shards AS
SELECT
  shard_id AS shard,
  shard_version AS epoch,
  CASE WHEN shard_owner IS NULL THEN 'released' ELSE 'owned' END AS state,
  member_node AS node,
  SUBSTRING_INDEX(member_address, '#', 1) AS address,
  LOWER(HEX(shard_owner)) AS owner
FROM timers LEFT JOIN members ON member_incarnation = shard_owner
WHERE row_type = 1;
