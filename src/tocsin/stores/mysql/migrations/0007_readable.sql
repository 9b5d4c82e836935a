-- Views for people who read the database by hand; Tocsin never reads them. Instants are datetime(6) in UTC; uuids are text,
-- payloads JSON where they are JSON. What a record that can't be decoded would supply is NULL. Headers and idempotency keys
-- are left out. They read with the rights of whoever asks, so that they work wherever a backup is restored. OR REPLACE would
-- require the right to drop them.
CREATE SQL SECURITY INVOKER VIEW readable_timers AS
SELECT
  timer_namespace AS namespace,
  timer_id AS id,
  CASE row_type WHEN 2 THEN 'pending' ELSE 'suspended' END AS state,
  timer_parked_reason AS suspended_because,
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
  WHERE row_type IN (2, 3) AND RIGHT(timer_namespace, 9) <> '/schedule'
) AS r;

CREATE SQL SECURITY INVOKER VIEW readable_history AS
SELECT
  CASE WHEN RIGHT(timer_namespace, 9) = '/schedule'
    THEN LEFT(timer_namespace, CHAR_LENGTH(timer_namespace) - 9)
    ELSE timer_namespace
  END AS namespace,
  timer_id AS id,
  CASE WHEN RIGHT(timer_namespace, 9) = '/schedule' THEN 'schedule' ELSE 'timer' END AS kind,
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
  coalesce(JSON_UNQUOTE(JSON_EXTRACT(record, '$.schedule.state.paused')), timer_parked_reason) AS because,
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
