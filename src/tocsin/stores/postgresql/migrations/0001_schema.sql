-- Shard rows (row_type 1), live timers (2) and suspended timers (3) share one table. A shard row has instant 0 and the zero
-- uuid. Instants are microseconds since 1970: timestamptz covers only 4713 BC to 294276, and the client would create a
-- datetime object for each row.
--
-- The table is a queue: rows are deleted soon after they were inserted. So vacuum starts by the number of dead rows and not by
-- a share of a large table, runs without pauses, and never truncates the file, which would need an exclusive lock. The free
-- tenth of each page is for updating the shard rows in place.
CREATE TABLE timers (
  timer_execute_at bigint NOT NULL,
  timer_uuid uuid NOT NULL,
  shard_id integer NOT NULL,
  row_type smallint NOT NULL CHECK (row_type IN (1, 2, 3)),
  shard_version bigint,
  shard_owner bytea,
  timer_generation bytea CHECK (octet_length(timer_generation) = 32),
  timer_namespace text,
  timer_id text,
  -- NULL without tags, else each tag between two U+001F characters, for strpos().
  timer_tags text,
  -- JSON text as the engine wrote it, as bytes, so that a record that is not valid text is kept unchanged.
  timer_record bytea,
  timer_suspended_reason text,
  CHECK ((row_type = 1) = (timer_id IS NULL)),
  -- A row lacks nothing that reads of whole pages rely on, whoever writes it.
  CHECK (
    row_type = 1
    OR (timer_generation IS NOT NULL AND timer_namespace IS NOT NULL AND timer_record IS NOT NULL)
  ),
  PRIMARY KEY (shard_id, row_type, timer_execute_at, timer_uuid)
) WITH (
  fillfactor = 90,
  autovacuum_vacuum_scale_factor = 0.02,
  autovacuum_vacuum_threshold = 20000,
  autovacuum_vacuum_insert_scale_factor = 0.2,
  autovacuum_vacuum_cost_delay = 0,
  autovacuum_analyze_scale_factor = 0.2,
  vacuum_truncate = off
);

-- A uuid has one row, live or suspended, whatever its instant. Only statements with this condition can use the index: with the
-- statistics of an empty queue, the planner takes any index that begins with the shard for equally good.
CREATE UNIQUE INDEX timers_by_uuid ON timers (shard_id, timer_uuid) WHERE timer_id IS NOT NULL;

-- Only the shard rows, so that a fence never scans dead timers.
CREATE UNIQUE INDEX timers_shards ON timers (shard_id) WHERE row_type = 1;

-- Finished timers.
CREATE TABLE history (
  timer_execute_at bigint NOT NULL,
  timer_finished_at bigint NOT NULL,
  timer_expires_at bigint NOT NULL,
  timer_uuid uuid NOT NULL,
  shard_id integer NOT NULL,
  timer_generation bytea NOT NULL CHECK (octet_length(timer_generation) = 32),
  timer_namespace text NOT NULL,
  timer_id text NOT NULL,
  timer_tags text,
  timer_record bytea NOT NULL,
  timer_status text NOT NULL CHECK (timer_status IN ('completed', 'failed', 'canceled', 'expired')),
  PRIMARY KEY (shard_id, timer_uuid, timer_generation)
) WITH (
  autovacuum_vacuum_scale_factor = 0.05,
  autovacuum_vacuum_threshold = 20000,
  autovacuum_vacuum_cost_delay = 0,
  vacuum_truncate = off
);

CREATE INDEX history_by_instant ON history (shard_id, timer_execute_at, timer_uuid);
CREATE INDEX history_by_expiry ON history (timer_expires_at);

CREATE TABLE members (
  member_incarnation bytea PRIMARY KEY,
  member_node text NOT NULL,
  member_address text NOT NULL,
  member_counter bigint NOT NULL
) WITH (fillfactor = 50);

-- Applies the parts of several shards, in one round trip and one transaction. Returns the shards whose fence held; the parts of
-- others have no effect. Each statement sees the effects of the ones before it, because the function is VOLATILE.
CREATE FUNCTION apply_batch(
  fence_shards integer[], fence_versions bigint[], fence_owners bytea[],
  range_shards integer[], from_instants bigint[], from_uuids uuid[], to_instants bigint[], to_uuids uuid[],
  delete_shards integer[], delete_uuids uuid[],
  shards integer[], instants bigint[], uuids uuid[], generations bytea[], namespaces text[], ids text[], tags text[],
  records bytea[], suspended_reasons text[],
  old_shards integer[], old_instants bigint[], old_uuids uuid[], old_generations bytea[], old_namespaces text[],
  old_ids text[], old_tags text[], old_records bytea[], old_statuses text[], old_finished bigint[], old_expiries bigint[]
) RETURNS integer[] LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  held integer[];
BEGIN
  -- The first statement, and a write: a concurrent claim waits for this transaction, or this one finds another epoch.
  WITH fenced AS (
    UPDATE timers AS t SET shard_version = t.shard_version
    FROM unnest(fence_shards, fence_versions, fence_owners) AS f (shard, version, owner)
    WHERE t.row_type = 1 AND t.shard_id = f.shard AND t.shard_version = f.version AND t.shard_owner = f.owner
    RETURNING t.shard_id
  )
  SELECT coalesce(array_agg(fenced.shard_id), '{}') INTO held FROM fenced;

  IF cardinality(range_shards) > 0 THEN
    DELETE FROM timers AS t
    USING unnest(range_shards, from_instants, from_uuids, to_instants, to_uuids)
      AS r (shard, from_instant, from_uuid, to_instant, to_uuid)
    WHERE r.shard = ANY (held) AND t.shard_id = r.shard AND t.row_type = 2
      AND (t.timer_execute_at, t.timer_uuid) >= (r.from_instant, r.from_uuid)
      AND (t.timer_execute_at, t.timer_uuid) <= (r.to_instant, r.to_uuid);
  END IF;

  IF cardinality(delete_shards) > 0 THEN
    DELETE FROM timers AS t USING unnest(delete_shards, delete_uuids) AS d (shard, uuid)
    WHERE d.shard = ANY (held) AND t.shard_id = d.shard AND t.timer_uuid = d.uuid AND t.timer_id IS NOT NULL;
  END IF;

  IF cardinality(shards) > 0 THEN
    INSERT INTO timers AS t (
      shard_id, row_type, timer_execute_at, timer_uuid, timer_generation, timer_namespace, timer_id, timer_tags,
      timer_record, timer_suspended_reason
    )
    SELECT
      u.shard, CASE WHEN u.suspended_reason IS NULL THEN 2 ELSE 3 END, u.instant, u.uuid, u.generation, u.namespace, u.id,
      u.tags, u.record, u.suspended_reason
    FROM unnest(shards, instants, uuids, generations, namespaces, ids, tags, records, suspended_reasons)
      AS u (shard, instant, uuid, generation, namespace, id, tags, record, suspended_reason)
    WHERE u.shard = ANY (held)
    ON CONFLICT (shard_id, timer_uuid) WHERE timer_id IS NOT NULL DO UPDATE SET
      row_type = excluded.row_type, timer_execute_at = excluded.timer_execute_at,
      timer_generation = excluded.timer_generation, timer_namespace = excluded.timer_namespace,
      timer_id = excluded.timer_id, timer_tags = excluded.timer_tags, timer_record = excluded.timer_record,
      timer_suspended_reason = excluded.timer_suspended_reason;
  END IF;

  IF cardinality(old_shards) > 0 THEN
    INSERT INTO history (
      shard_id, timer_execute_at, timer_uuid, timer_generation, timer_namespace, timer_id, timer_tags, timer_record,
      timer_status, timer_finished_at, timer_expires_at
    )
    SELECT o.*
    FROM unnest(
      old_shards, old_instants, old_uuids, old_generations, old_namespaces, old_ids, old_tags, old_records, old_statuses,
      old_finished, old_expiries
    ) AS o (shard, instant, uuid, generation, namespace, id, tags, record, status, finished, expires)
    WHERE o.shard = ANY (held)
    ON CONFLICT (shard_id, timer_uuid, timer_generation) DO UPDATE SET
      timer_execute_at = excluded.timer_execute_at, timer_namespace = excluded.timer_namespace,
      timer_id = excluded.timer_id, timer_tags = excluded.timer_tags, timer_record = excluded.timer_record,
      timer_status = excluded.timer_status, timer_finished_at = excluded.timer_finished_at,
      timer_expires_at = excluded.timer_expires_at;
  END IF;

  RETURN held;
END
$$;

-- Claims a shard conditionally; returns the new epoch, or NULL. The member's row is locked, so that its counter can't move
-- between the comparison and the commit. When several nodes make a shard's first claim at the same time, one succeeds and the
-- others get NULL, whichever of the two unique indexes on the shard's row detects the conflict first.
CREATE FUNCTION claim_shard(shard integer, expected bigint, claimant bytea, standing bytea, standing_counter bigint)
RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  IF standing IS NOT NULL THEN
    PERFORM 1 FROM members WHERE member_incarnation = standing AND member_counter = standing_counter FOR SHARE;
    IF NOT FOUND THEN
      RETURN NULL;
    END IF;
  END IF;
  IF expected = 0 THEN
    INSERT INTO timers (shard_id, row_type, timer_execute_at, timer_uuid, shard_version, shard_owner)
    VALUES (shard, 1, 0, '00000000-0000-0000-0000-000000000000', 1, claimant)
    ON CONFLICT DO NOTHING;
  ELSE
    UPDATE timers SET shard_version = shard_version + 1, shard_owner = claimant
    WHERE row_type = 1 AND shard_id = shard AND shard_version = expected;
  END IF;
  RETURN CASE WHEN FOUND THEN expected + 1 END;
END
$$;

-- What people configure, and what they did: namespaces, API keys (of which only hashes are stored), secrets that all nodes share,
-- sign-ins to the web pages (likewise hashes) and the audit trail. The row of a kind without a key has the kind's version, which
-- each write changes.
CREATE TABLE records (
  record_kind text COLLATE "C" NOT NULL,
  record_key text COLLATE "C" NOT NULL,
  record_value text NOT NULL,
  record_version bigint NOT NULL,
  PRIMARY KEY (record_kind, record_key)
);

-- Runs that ended while their timers went on. Most rows are read never or once, and deleted in bulk when they expire.
CREATE TABLE runs (
  run_expires_at bigint NOT NULL,
  run_uuid uuid NOT NULL,
  shard_id integer NOT NULL,
  run_generation bytea NOT NULL CHECK (octet_length(run_generation) = 32),
  -- JSON text as the engine wrote it, as bytes, so that a record that is not valid text is kept unchanged.
  run_record bytea NOT NULL,
  PRIMARY KEY (shard_id, run_uuid, run_generation)
) WITH (
  autovacuum_vacuum_scale_factor = 0.05,
  autovacuum_vacuum_threshold = 20000,
  autovacuum_vacuum_cost_delay = 0,
  vacuum_truncate = off
);

CREATE INDEX runs_by_expiry ON runs (run_expires_at);

-- Ends that failed and that nobody has dealt with. Their details are in history and runs, under the same uuid and generation.
CREATE TABLE failures (
  failure_at bigint NOT NULL,
  failure_execute_at bigint NOT NULL,
  failure_expires_at bigint NOT NULL,
  failure_uuid uuid NOT NULL,
  shard_id integer NOT NULL,
  failure_generation bytea NOT NULL CHECK (octet_length(failure_generation) = 32),
  failure_namespace text NOT NULL,
  failure_timer_id text NOT NULL,
  -- Destination and error, with U+001F between them.
  failure_cause text NOT NULL,
  PRIMARY KEY (shard_id, failure_uuid, failure_generation)
) WITH (
  autovacuum_vacuum_scale_factor = 0.05,
  autovacuum_vacuum_threshold = 20000,
  autovacuum_vacuum_cost_delay = 0,
  vacuum_truncate = off
);

CREATE INDEX failures_by_instant ON failures (shard_id, failure_at, failure_uuid, failure_generation);

CREATE INDEX failures_by_expiry ON failures (failure_expires_at);

-- Schedules are timers of a namespace's name followed by "/schedule". They are listed by name and id, in the order of bytes,
-- which no new version of the system's C library changes.
CREATE INDEX timers_schedules ON timers (timer_namespace COLLATE "C", timer_id COLLATE "C")
  WHERE right(timer_namespace, 9) = '/schedule';

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
  timer_suspended_reason AS suspended_because,
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
WHERE row_type IN (2, 3) AND strpos(timer_namespace, '/') = 0;

CREATE VIEW readable_history AS
SELECT
  split_part(timer_namespace, '/', 1) AS namespace,
  timer_id AS id,
  CASE split_part(timer_namespace, '/', 2)
    WHEN '' THEN 'timer' WHEN 'notify' THEN 'notification' ELSE split_part(timer_namespace, '/', 2)
  END AS kind,
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
CROSS JOIN LATERAL (SELECT readable_record(timer_record) AS record OFFSET 0) AS r
-- What flows have used is no timer's.
WHERE right(timer_namespace, 5) <> '/flow';

CREATE VIEW readable_schedules AS
SELECT
  left(timer_namespace, -9) AS namespace,
  timer_id AS id,
  CASE
    WHEN record #>> '{schedule,state,paused}' IS NOT NULL THEN 'paused'
    WHEN row_type = 3 THEN 'suspended'
    ELSE 'active'
  END AS state,
  coalesce(record #>> '{schedule,state,paused}', timer_suspended_reason) AS because,
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

CREATE VIEW readable_failures AS
SELECT
  CASE WHEN right(failure_namespace, 9) = '/schedule'
    THEN left(failure_namespace, -9)
    ELSE failure_namespace
  END AS namespace,
  failure_timer_id AS id,
  CASE WHEN right(failure_namespace, 9) = '/schedule' THEN 'occurrence' ELSE 'timer' END AS kind,
  split_part(failure_cause, chr(31), 1) AS destination,
  split_part(failure_cause, chr(31), 2) AS error,
  readable_instant(failure_at) AS failed_at,
  readable_instant(failure_execute_at) AS execute_at,
  readable_instant(failure_expires_at) AS kept_until,
  shard_id AS shard
FROM failures;

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
