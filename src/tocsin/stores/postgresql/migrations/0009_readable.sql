-- Views for people who read the database by hand; Tocsin never reads them. Instants are timestamptz, NULL outside the years
-- 1 to 9999; payloads are JSON where they are JSON. What a record that can't be decoded would supply is NULL. Headers and
-- idempotency keys are left out.

-- The record as JSON, or NULL. The text json, and not jsonb, keeps numbers and order as they were sent.
CREATE FUNCTION readable_record(record bytea) RETURNS json LANGUAGE plpgsql STABLE STRICT AS $$
BEGIN
  RETURN convert_from(record, 'UTF8')::json;
EXCEPTION WHEN data_exception OR program_limit_exceeded THEN
  RETURN NULL;
END
$$;

-- Whole hours and the rest are added, because an interval multiplied by more than 2^53 microseconds would be rounded, and
-- days would follow the session's time zone.
CREATE FUNCTION readable_instant(microseconds bigint) RETURNS timestamptz LANGUAGE sql STABLE STRICT AS $$
  SELECT CASE WHEN microseconds BETWEEN -62135596800000000 AND 253402300799999999 THEN
    timestamptz '1970-01-01 00:00:00+00' + microseconds / 3600000000 * interval '1 hour'
    + microseconds % 3600000000 * interval '1 microsecond'
  END
$$;

CREATE VIEW readable_timers AS
SELECT
  timer_namespace AS namespace,
  timer_id AS id,
  CASE row_type WHEN 2 THEN 'pending' ELSE 'suspended' END AS state,
  timer_parked_reason AS suspended_because,
  readable_instant((record #>> '{execute_at}')::bigint) AS execute_at,
  readable_instant(timer_execute_at) AS next_attempt_at,
  coalesce((record #>> '{attempts}')::bigint, 0) AS attempts,
  record #>> '{last_error}' AS last_error,
  coalesce(record #>> '{method}', 'POST') AS method,
  record #>> '{url}' AS url,
  replace(btrim(timer_tags, chr(31)), chr(31), ', ') AS tags,
  coalesce(
    (record #> '{payload}')::text,
    (record #> '{body,json}')::text,
    record #>> '{body,text}',
    record #>> '{body,base64}'
  ) AS payload,
  readable_instant((record #>> '{created_at}')::bigint) AS created_at,
  readable_instant((record #>> '{updated_at}')::bigint) AS updated_at,
  timer_uuid AS uuid,
  shard_id AS shard
FROM timers
CROSS JOIN LATERAL (SELECT readable_record(timer_record) AS record OFFSET 0) AS r
WHERE row_type IN (2, 3) AND right(timer_namespace, 9) <> '/schedule';

CREATE VIEW readable_history AS
SELECT
  CASE WHEN right(timer_namespace, 9) = '/schedule' THEN left(timer_namespace, -9) ELSE timer_namespace END AS namespace,
  timer_id AS id,
  CASE WHEN right(timer_namespace, 9) = '/schedule' THEN 'schedule' ELSE 'timer' END AS kind,
  timer_status AS status,
  readable_instant((record #>> '{execute_at}')::bigint) AS execute_at,
  readable_instant(timer_finished_at) AS finished_at,
  coalesce((record #>> '{attempts}')::bigint, 0) AS attempts,
  record #>> '{last_error}' AS last_error,
  coalesce(record #>> '{method}', 'POST') AS method,
  record #>> '{url}' AS url,
  replace(btrim(timer_tags, chr(31)), chr(31), ', ') AS tags,
  coalesce(
    (record #> '{payload}')::text,
    (record #> '{body,json}')::text,
    record #>> '{body,text}',
    record #>> '{body,base64}'
  ) AS payload,
  readable_instant((record #>> '{created_at}')::bigint) AS created_at,
  readable_instant(timer_expires_at) AS kept_until,
  timer_uuid AS uuid,
  shard_id AS shard
FROM history
CROSS JOIN LATERAL (SELECT readable_record(timer_record) AS record OFFSET 0) AS r;

CREATE VIEW readable_schedules AS
SELECT
  left(timer_namespace, -9) AS namespace,
  timer_id AS id,
  CASE
    WHEN record #>> '{schedule,state,paused}' IS NOT NULL THEN 'paused'
    WHEN row_type = 3 THEN 'suspended'
    ELSE 'active'
  END AS state,
  coalesce(record #>> '{schedule,state,paused}', timer_parked_reason) AS because,
  record #>> '{schedule,definition,cron}' AS cron,
  (record #>> '{schedule,definition,every_us}')::bigint / 1e6 AS every_seconds,
  coalesce(record #>> '{schedule,definition,time_zone}', 'UTC') AS time_zone,
  readable_instant(timer_execute_at) AS next_attempt_at,
  coalesce((record #>> '{schedule,state,occurrences}')::bigint, 0) AS occurrences,
  coalesce((record #>> '{schedule,state,failures}')::bigint, 0) AS failures_in_a_row,
  record #>> '{schedule,state,last,outcome}' AS last_outcome,
  readable_instant((record #>> '{schedule,state,last,finished_at}')::bigint) AS last_finished_at,
  coalesce((record #>> '{attempts}')::bigint, 0) AS attempts,
  record #>> '{last_error}' AS last_error,
  coalesce(record #>> '{method}', 'POST') AS method,
  record #>> '{url}' AS url,
  replace(btrim(timer_tags, chr(31)), chr(31), ', ') AS tags,
  coalesce(
    (record #> '{payload}')::text,
    (record #> '{body,json}')::text,
    record #>> '{body,text}',
    record #>> '{body,base64}'
  ) AS payload,
  readable_instant((record #>> '{created_at}')::bigint) AS created_at,
  readable_instant((record #>> '{updated_at}')::bigint) AS updated_at,
  timer_uuid AS uuid,
  shard_id AS shard
FROM timers
CROSS JOIN LATERAL (SELECT readable_record(timer_record) AS record OFFSET 0) AS r
WHERE row_type IN (2, 3) AND right(timer_namespace, 9) = '/schedule';

CREATE VIEW readable_shards AS
SELECT
  shard_id AS shard,
  shard_version AS epoch,
  CASE WHEN shard_owner IS NULL THEN 'released' ELSE 'owned' END AS state,
  member_node AS node,
  split_part(member_address, '#', 1) AS address,
  encode(shard_owner, 'hex') AS owner
FROM timers LEFT JOIN members ON member_incarnation = shard_owner
WHERE row_type = 1;
