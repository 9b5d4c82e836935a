


SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;


CREATE SCHEMA tocsin;



COMMENT ON SCHEMA tocsin IS 'Timers of Tocsin';



CREATE FUNCTION tocsin.apply_batch(fence_shards integer[], fence_versions bigint[], fence_owners bytea[], range_shards integer[], from_instants bigint[], from_uuids uuid[], to_instants bigint[], to_uuids uuid[], delete_shards integer[], delete_uuids uuid[], shards integer[], instants bigint[], uuids uuid[], generations bytea[], namespaces text[], ids text[], tags text[], records bytea[], parked_reasons text[], old_shards integer[], old_instants bigint[], old_uuids uuid[], old_generations bytea[], old_namespaces text[], old_ids text[], old_tags text[], old_records bytea[], old_statuses text[], old_finished bigint[], old_expiries bigint[]) RETURNS integer[]
    LANGUAGE plpgsql
    AS $$
DECLARE
  held integer[];
BEGIN
  -- First, and a write: whoever claims the shard meanwhile waits for this transaction, or this one finds another version.
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
      timer_record, timer_parked_reason
    )
    SELECT
      u.shard, CASE WHEN u.parked_reason IS NULL THEN 2 ELSE 3 END, u.instant, u.uuid, u.generation, u.namespace, u.id,
      u.tags, u.record, u.parked_reason
    FROM unnest(shards, instants, uuids, generations, namespaces, ids, tags, records, parked_reasons)
      AS u (shard, instant, uuid, generation, namespace, id, tags, record, parked_reason)
    WHERE u.shard = ANY (held)
    ON CONFLICT (shard_id, timer_uuid) WHERE timer_id IS NOT NULL DO UPDATE SET
      row_type = excluded.row_type, timer_execute_at = excluded.timer_execute_at,
      timer_generation = excluded.timer_generation, timer_namespace = excluded.timer_namespace,
      timer_id = excluded.timer_id, timer_tags = excluded.timer_tags, timer_record = excluded.timer_record,
      timer_parked_reason = excluded.timer_parked_reason;
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



CREATE FUNCTION tocsin.claim_shard(shard integer, expected bigint, claimant bytea, standing bytea, standing_counter bigint) RETURNS bigint
    LANGUAGE plpgsql
    AS $$
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


SET default_tablespace = '';

SET default_table_access_method = heap;


CREATE TABLE public.agent_heartbeat (
    id integer NOT NULL,
    beats bigint NOT NULL,
    CONSTRAINT ck_agent_heartbeat_only_one CHECK ((id = 1))
);



CREATE TABLE public.agent_identity (
    id integer NOT NULL,
    agent_id text NOT NULL COLLATE pg_catalog."C",
    CONSTRAINT ck_agent_identity_only_one CHECK ((id = 1))
);



CREATE TABLE public.agent_leader (
    id integer NOT NULL,
    term bigint NOT NULL,
    node text NOT NULL,
    incarnation text NOT NULL COLLATE pg_catalog."C",
    since timestamp with time zone,
    CONSTRAINT ck_agent_leader_only_one CHECK ((id = 1))
);



CREATE TABLE public.alembic_version (
    version_num character varying(32) NOT NULL
);



CREATE TABLE public.http_execution_log (
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    service_call_id text NOT NULL COLLATE pg_catalog."C",
    execution_id text NOT NULL COLLATE pg_catalog."C",
    started_at timestamp with time zone NOT NULL,
    finished_at timestamp with time zone,
    request_url text NOT NULL,
    request_method text NOT NULL COLLATE pg_catalog."C",
    request_headers text NOT NULL,
    request_body text,
    response_status text COLLATE pg_catalog."C",
    response_headers text,
    response_body text,
    error_message text,
    correlation_id text NOT NULL COLLATE pg_catalog."C",
    CONSTRAINT ck_http_execution_log_request_method CHECK ((request_method = ANY (ARRAY['GET'::text, 'HEAD'::text, 'POST'::text, 'PUT'::text, 'DELETE'::text, 'PATCH'::text, 'OPTIONS'::text])))
);



CREATE TABLE public.outbox (
    id bigint NOT NULL,
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    aggregate_id text NOT NULL COLLATE pg_catalog."C",
    event_type text NOT NULL COLLATE pg_catalog."C",
    event_payload text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    published_at timestamp with time zone,
    envelope_id text NOT NULL COLLATE pg_catalog."C",
    correlation_id text NOT NULL COLLATE pg_catalog."C",
    causation_id text COLLATE pg_catalog."C",
    timestamp_ms bigint NOT NULL,
    attempts bigint DEFAULT 0 NOT NULL,
    last_error text,
    parked_at timestamp with time zone
);



ALTER TABLE public.outbox ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.outbox_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);



CREATE TABLE public.service_call_tags (
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    service_call_id text NOT NULL COLLATE pg_catalog."C",
    tag text NOT NULL COLLATE pg_catalog."C",
    submitted_at timestamp with time zone NOT NULL
);



CREATE TABLE public.service_calls (
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    service_call_id text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL,
    status text NOT NULL COLLATE pg_catalog."C",
    submitted_at timestamp with time zone NOT NULL,
    due_at timestamp with time zone NOT NULL,
    started_at timestamp with time zone,
    finished_at timestamp with time zone,
    request_spec text NOT NULL,
    outcome_meta text,
    correlation_id text NOT NULL COLLATE pg_catalog."C",
    fingerprint text NOT NULL COLLATE pg_catalog."C",
    idempotency_key text COLLATE pg_catalog."C",
    execution_id text COLLATE pg_catalog."C",
    executions bigint DEFAULT 0 NOT NULL,
    watch_at timestamp with time zone,
    CONSTRAINT ck_service_calls_status CHECK ((status = ANY (ARRAY['Scheduled'::text, 'Running'::text, 'Succeeded'::text, 'Failed'::text])))
);



CREATE TABLE public.timer_schedules (
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    service_call_id text NOT NULL COLLATE pg_catalog."C",
    correlation_id text NOT NULL COLLATE pg_catalog."C",
    due_at timestamp with time zone NOT NULL,
    registered_at timestamp with time zone NOT NULL,
    reached_at timestamp with time zone,
    state text DEFAULT 'Scheduled'::text NOT NULL COLLATE pg_catalog."C",
    CONSTRAINT ck_timer_schedules_state CHECK ((state = ANY (ARRAY['Scheduled'::text, 'Reached'::text])))
);



CREATE TABLE tocsin.api_keys (
    key_id text NOT NULL,
    key_record text NOT NULL
);



CREATE TABLE tocsin.history (
    timer_execute_at bigint NOT NULL,
    timer_finished_at bigint NOT NULL,
    timer_expires_at bigint NOT NULL,
    timer_uuid uuid NOT NULL,
    shard_id integer NOT NULL,
    timer_generation bytea NOT NULL,
    timer_namespace text NOT NULL,
    timer_id text NOT NULL,
    timer_tags text,
    timer_record bytea NOT NULL,
    timer_status text NOT NULL,
    CONSTRAINT history_timer_generation_check CHECK ((octet_length(timer_generation) = 32)),
    CONSTRAINT history_timer_status_check CHECK ((timer_status = ANY (ARRAY['completed'::text, 'failed'::text, 'canceled'::text])))
)
WITH (autovacuum_vacuum_scale_factor='0.05', autovacuum_vacuum_threshold='20000', autovacuum_vacuum_cost_delay='0', vacuum_truncate=off);



CREATE TABLE tocsin.members (
    member_incarnation bytea NOT NULL,
    member_node text NOT NULL,
    member_address text NOT NULL,
    member_counter bigint NOT NULL
)
WITH (fillfactor='50');



CREATE TABLE tocsin.meta (
    meta_name text NOT NULL,
    meta_value bigint NOT NULL
);



CREATE TABLE tocsin.namespaces (
    namespace_name text NOT NULL,
    namespace_record text NOT NULL
);



CREATE TABLE tocsin.secrets (
    secret_name text NOT NULL,
    secret_value text NOT NULL
);



CREATE TABLE tocsin.sign_outs (
    sign_in_name text NOT NULL,
    sign_in_expires_at bigint NOT NULL
);



CREATE TABLE tocsin.timers (
    timer_execute_at bigint NOT NULL,
    timer_uuid uuid NOT NULL,
    shard_id integer NOT NULL,
    row_type smallint NOT NULL,
    shard_version bigint,
    shard_owner bytea,
    timer_generation bytea,
    timer_namespace text,
    timer_id text,
    timer_tags text,
    timer_record bytea,
    timer_parked_reason text,
    CONSTRAINT timers_check CHECK (((row_type = 1) = (timer_id IS NULL))),
    CONSTRAINT timers_row_type_check CHECK ((row_type = ANY (ARRAY[1, 2, 3]))),
    CONSTRAINT timers_timer_generation_check CHECK ((octet_length(timer_generation) = 32))
)
WITH (fillfactor='90', autovacuum_vacuum_scale_factor='0.02', autovacuum_vacuum_threshold='20000', autovacuum_vacuum_insert_scale_factor='0.2', autovacuum_vacuum_cost_delay='0', autovacuum_analyze_scale_factor='0.2', vacuum_truncate=off);



INSERT INTO public.agent_heartbeat VALUES (1, 2);



INSERT INTO public.agent_identity VALUES (1, '01a200f5-00cf-76e1-bc32-3dd3f0297497');



INSERT INTO public.agent_leader VALUES (1, 1, 'vm:43207', '5aed6d32a4a24f56aac437844eeabac8', '2026-11-22 01:53:06.301588+00');



INSERT INTO public.alembic_version VALUES ('0003');



INSERT INTO public.http_execution_log VALUES ('01975b2e-7c00-7000-8000-000000000001', '01a200f5-0252-712d-90bf-4e277a6db165', '01a200f5-0254-74de-aa98-8a8d2240e233', '2026-11-22 01:53:06.67421+00', '2026-11-22 01:53:06.72283+00', 'http://127.0.0.1:42995/hook', 'POST', '{"x-n":"1","x-correlation-id":"b1cff4f31bce6abe-16","content-type":"application/json"}', '{"status": 200}', '200', '{"content-length":"12"}', '{"ok": true}', NULL, 'b1cff4f31bce6abe-16');
INSERT INTO public.http_execution_log VALUES ('01975b2e-7c00-7000-8000-000000000001', '01a200f5-0272-7705-a55c-7549b36d5c33', '01a200f5-0274-7241-b49d-da9716355ffb', '2026-11-22 01:53:06.722049+00', '2026-11-22 01:53:06.774303+00', 'http://127.0.0.1:42995/hook', 'POST', '{"x-n":"1","x-correlation-id":"b1cff4f31bce6abe-17","content-type":"application/json"}', '{"status": 418}', '418', '{"content-length":"12"}', '{"ok": true}', 'HTTP_STATUS: HTTP 418', 'b1cff4f31bce6abe-17');



INSERT INTO public.outbox VALUES (1, '01975b2e-7c00-7000-8000-000000000001', '01a200f5-0252-712d-90bf-4e277a6db165', 'ServiceCallSubmitted', '{"serviceCallId":"01a200f5-0252-712d-90bf-4e277a6db165","name":"succeeded","method":"POST","url":"http://127.0.0.1:42995/hook","dueAtUs":1795312386644659,"tags":["starred"]}', '2026-11-22 01:53:06.649+00', '2026-11-22 01:53:06.723116+00', '01a200f5-0254-74de-aa98-8a8df4bd0240', 'b1cff4f31bce6abe-16', '01a200f5-0252-712d-90bf-4e28225fb972', 1795312386649, 0, NULL, NULL);
INSERT INTO public.outbox VALUES (2, '01975b2e-7c00-7000-8000-000000000001', '01a200f5-0252-712d-90bf-4e277a6db165', 'ServiceCallRunning', '{"serviceCallId":"01a200f5-0252-712d-90bf-4e277a6db165","executionId":"01a200f5-0254-74de-aa98-8a8d2240e233"}', '2026-11-22 01:53:06.649+00', '2026-11-22 01:53:06.723116+00', '01a200f5-0254-74de-aa98-8a8ebbfc15f1', 'b1cff4f31bce6abe-16', '01a200f5-0252-712d-90bf-4e28225fb972', 1795312386649, 0, NULL, NULL);
INSERT INTO public.outbox VALUES (3, '01975b2e-7c00-7000-8000-000000000001', '01a200f5-0252-712d-90bf-4e277a6db165', 'StartExecution', '{"serviceCallId":"01a200f5-0252-712d-90bf-4e277a6db165","executionId":"01a200f5-0254-74de-aa98-8a8d2240e233","requestSpec":{"method":"POST","url":"http://127.0.0.1:42995/hook","headers":{"x-n":"1"},"body":{"status": 200}}}', '2026-11-22 01:53:06.649+00', '2026-11-22 01:53:06.723116+00', '01a200f5-0254-74de-aa98-8a8fa2432df8', 'b1cff4f31bce6abe-16', '01a200f5-0252-712d-90bf-4e28225fb972', 1795312386649, 0, NULL, NULL);
INSERT INTO public.outbox VALUES (6, '01975b2e-7c00-7000-8000-000000000001', '01a200f5-0272-7705-a55c-7549b36d5c33', 'StartExecution', '{"serviceCallId":"01a200f5-0272-7705-a55c-7549b36d5c33","executionId":"01a200f5-0274-7241-b49d-da9716355ffb","requestSpec":{"method":"POST","url":"http://127.0.0.1:42995/hook","headers":{"x-n":"1"},"body":{"status": 418}}}', '2026-11-22 01:53:06.676+00', '2026-11-22 01:53:06.837334+00', '01a200f5-0274-7241-b49d-da98b886d603', 'b1cff4f31bce6abe-17', '01a200f5-0272-7705-a55c-7549e0332db4', 1795312386676, 0, NULL, NULL);
INSERT INTO public.outbox VALUES (10, '01975b2e-7c00-7000-8000-000000000001', '01a200f5-0252-712d-90bf-4e277a6db165', 'ExecutionStarted', '{"serviceCallId":"01a200f5-0252-712d-90bf-4e277a6db165","executionId":"01a200f5-0254-74de-aa98-8a8d2240e233","startedAtUs":1795312386674210}', '2026-11-22 01:53:06.674+00', '2026-11-22 01:53:06.837334+00', '01a200f5-0272-7705-a55c-7549ae88d938', 'b1cff4f31bce6abe-16', '01a200f5-0254-74de-aa98-8a8fa2432df8', 1795312386674, 0, NULL, NULL);
INSERT INTO public.outbox VALUES (11, '01975b2e-7c00-7000-8000-000000000001', '01a200f5-0252-712d-90bf-4e277a6db165', 'ExecutionSucceeded', '{"serviceCallId":"01a200f5-0252-712d-90bf-4e277a6db165","executionId":"01a200f5-0254-74de-aa98-8a8d2240e233","finishedAtUs":1795312386722830,"responseMeta":{"status":200,"headers":{"content-length":"12"},"bodySnippet":"{\"ok\": true}","latencyMs":0.885}}', '2026-11-22 01:53:06.722+00', '2026-11-22 01:53:06.837334+00', '01a200f5-02a2-74a8-8905-634d1fbbb00f', 'b1cff4f31bce6abe-16', '01a200f5-0254-74de-aa98-8a8fa2432df8', 1795312386722, 0, NULL, NULL);
INSERT INTO public.outbox VALUES (12, '01975b2e-7c00-7000-8000-000000000001', '01a200f5-0252-712d-90bf-4e277a6db165', 'ServiceCallSucceeded', '{"serviceCallId":"01a200f5-0252-712d-90bf-4e277a6db165","responseMeta":{"status":200,"headers":{"content-length":"12"},"bodySnippet":"{\"ok\": true}","latencyMs":0.885}}', '2026-11-22 01:53:06.757+00', '2026-11-22 01:53:06.837334+00', '01a200f5-02c3-726d-b247-791f960b0c56', 'b1cff4f31bce6abe-16', '01a200f5-02a2-74a8-8905-634d1fbbb00f', 1795312386757, 0, NULL, NULL);
INSERT INTO public.outbox VALUES (13, '01975b2e-7c00-7000-8000-000000000001', '01a200f5-0272-7705-a55c-7549b36d5c33', 'ExecutionStarted', '{"serviceCallId":"01a200f5-0272-7705-a55c-7549b36d5c33","executionId":"01a200f5-0274-7241-b49d-da9716355ffb","startedAtUs":1795312386722049}', '2026-11-22 01:53:06.722+00', '2026-11-22 01:53:06.837334+00', '01a200f5-02a2-74a8-8905-634cf20067be', 'b1cff4f31bce6abe-17', '01a200f5-0274-7241-b49d-da98b886d603', 1795312386722, 0, NULL, NULL);
INSERT INTO public.outbox VALUES (14, '01975b2e-7c00-7000-8000-000000000001', '01a200f5-0272-7705-a55c-7549b36d5c33', 'ExecutionFailed', '{"serviceCallId":"01a200f5-0272-7705-a55c-7549b36d5c33","executionId":"01a200f5-0274-7241-b49d-da9716355ffb","finishedAtUs":1795312386774303,"errorMeta":{"kind":"HTTP_STATUS","message":"HTTP 418","latencyMs":0.934},"responseMeta":{"status":418,"headers":{"content-length":"12"},"bodySnippet":"{\"ok\": true}","latencyMs":0.934}}', '2026-11-22 01:53:06.774+00', '2026-11-22 01:53:06.837334+00', '01a200f5-02d6-725a-af35-95d90d09993f', 'b1cff4f31bce6abe-17', '01a200f5-0274-7241-b49d-da98b886d603', 1795312386774, 0, NULL, NULL);
INSERT INTO public.outbox VALUES (15, '01975b2e-7c00-7000-8000-000000000001', '01a200f5-0272-7705-a55c-7549b36d5c33', 'ServiceCallFailed', '{"serviceCallId":"01a200f5-0272-7705-a55c-7549b36d5c33","errorMeta":{"kind":"HTTP_STATUS","message":"HTTP 418","latencyMs":0.934},"responseMeta":{"status":418,"headers":{"content-length":"12"},"bodySnippet":"{\"ok\": true}","latencyMs":0.934}}', '2026-11-22 01:53:06.782+00', '2026-11-22 01:53:06.837334+00', '01a200f5-02dd-76ef-a7f2-8412a64268f3', 'b1cff4f31bce6abe-17', '01a200f5-02d6-725a-af35-95d90d09993f', 1795312386782, 0, NULL, NULL);
INSERT INTO public.outbox VALUES (4, '01975b2e-7c00-7000-8000-000000000001', '01a200f5-0272-7705-a55c-7549b36d5c33', 'ServiceCallSubmitted', '{"serviceCallId":"01a200f5-0272-7705-a55c-7549b36d5c33","name":"refused","method":"POST","url":"http://127.0.0.1:42995/hook","dueAtUs":1795312386676004}', '2026-11-22 01:53:06.676+00', '2026-11-22 01:53:06.723116+00', '01a200f5-0274-7241-b49d-da975dfc7d6f', 'b1cff4f31bce6abe-17', '01a200f5-0272-7705-a55c-7549e0332db4', 1795312386676, 0, NULL, NULL);
INSERT INTO public.outbox VALUES (5, '01975b2e-7c00-7000-8000-000000000001', '01a200f5-0272-7705-a55c-7549b36d5c33', 'ServiceCallRunning', '{"serviceCallId":"01a200f5-0272-7705-a55c-7549b36d5c33","executionId":"01a200f5-0274-7241-b49d-da9716355ffb"}', '2026-11-22 01:53:06.676+00', '2026-11-22 01:53:06.723116+00', '01a200f5-0274-7241-b49d-da97de3b97d7', 'b1cff4f31bce6abe-17', '01a200f5-0272-7705-a55c-7549e0332db4', 1795312386676, 0, NULL, NULL);
INSERT INTO public.outbox VALUES (7, '01975b2e-7c00-7000-8000-000000000001', '01a200f5-027b-72c2-844b-0e2ed7aa912e', 'ServiceCallSubmitted', '{"serviceCallId":"01a200f5-027b-72c2-844b-0e2ed7aa912e","name":"scheduled","method":"POST","url":"http://127.0.0.1:42995/hook","dueAtUs":2127470400000000,"tags":["later"]}', '2026-11-22 01:53:06.688+00', '2026-11-22 01:53:06.723116+00', '01a200f5-027c-750a-9518-f76bfcb0b176', 'b1cff4f31bce6abe-18', '01a200f5-027b-72c2-844b-0e2f3898dacd', 1795312386688, 0, NULL, NULL);
INSERT INTO public.outbox VALUES (8, '01975b2e-7c00-7000-8000-000000000001', '01a200f5-027b-72c2-844b-0e2ed7aa912e', 'ServiceCallScheduled', '{"serviceCallId":"01a200f5-027b-72c2-844b-0e2ed7aa912e","dueAtUs":2127470400000000}', '2026-11-22 01:53:06.688+00', '2026-11-22 01:53:06.723116+00', '01a200f5-027c-750a-9518-f76c43a5d00b', 'b1cff4f31bce6abe-18', '01a200f5-027b-72c2-844b-0e2f3898dacd', 1795312386688, 0, NULL, NULL);
INSERT INTO public.outbox VALUES (9, '01975b2e-7c00-7000-8000-000000000001', '01a200f5-027b-72c2-844b-0e2ed7aa912e', 'ScheduleTimer', '{"serviceCallId":"01a200f5-027b-72c2-844b-0e2ed7aa912e","dueAtUs":2127470400000000}', '2026-11-22 01:53:06.688+00', '2026-11-22 01:53:06.723116+00', '01a200f5-027c-750a-9518-f76cc49d8377', 'b1cff4f31bce6abe-18', '01a200f5-027b-72c2-844b-0e2f3898dacd', 1795312386688, 0, NULL, NULL);



INSERT INTO public.service_call_tags VALUES ('01975b2e-7c00-7000-8000-000000000001', '01a200f5-0252-712d-90bf-4e277a6db165', 'starred', '2026-11-22 01:53:06.644659+00');
INSERT INTO public.service_call_tags VALUES ('01975b2e-7c00-7000-8000-000000000001', '01a200f5-027b-72c2-844b-0e2ed7aa912e', 'later', '2026-11-22 01:53:06.684218+00');



INSERT INTO public.service_calls VALUES ('01975b2e-7c00-7000-8000-000000000001', '01a200f5-027b-72c2-844b-0e2ed7aa912e', 'scheduled', 'Scheduled', '2026-11-22 01:53:06.684218+00', '2037-06-01 12:00:00+00', NULL, NULL, '{"method":"POST","url":"http://127.0.0.1:42995/hook","headers":{"x-n":"1"},"body":{"status": 200}}', NULL, 'b1cff4f31bce6abe-18', 'abea643eec5ac70b9a33a7e21403c3dd6cc5d84e25024864eb1f3a3910946ab2', 'only-once', NULL, 0, '2037-06-01 12:00:15+00');
INSERT INTO public.service_calls VALUES ('01975b2e-7c00-7000-8000-000000000001', '01a200f5-0252-712d-90bf-4e277a6db165', 'succeeded', 'Succeeded', '2026-11-22 01:53:06.644659+00', '2026-11-22 01:53:06.644659+00', '2026-11-22 01:53:06.67421+00', '2026-11-22 01:53:06.72283+00', '{"method":"POST","url":"http://127.0.0.1:42995/hook","headers":{"x-n":"1"},"body":{"status": 200}}', '{"responseMeta":{"status":200,"headers":{"content-length":"12"},"bodySnippet":"{\"ok\": true}","latencyMs":0.885}}', 'b1cff4f31bce6abe-16', 'd8977d778f525a815ee8ef4e794ad03771224d399cf74ae722e922fd04f8f038', NULL, '01a200f5-0254-74de-aa98-8a8d2240e233', 1, NULL);
INSERT INTO public.service_calls VALUES ('01975b2e-7c00-7000-8000-000000000001', '01a200f5-0272-7705-a55c-7549b36d5c33', 'refused', 'Failed', '2026-11-22 01:53:06.676004+00', '2026-11-22 01:53:06.676004+00', '2026-11-22 01:53:06.722049+00', '2026-11-22 01:53:06.774303+00', '{"method":"POST","url":"http://127.0.0.1:42995/hook","headers":{"x-n":"1"},"body":{"status": 418}}', '{"responseMeta":{"status":418,"headers":{"content-length":"12"},"bodySnippet":"{\"ok\": true}","latencyMs":0.934},"errorMeta":{"kind":"HTTP_STATUS","message":"HTTP 418","latencyMs":0.934}}', 'b1cff4f31bce6abe-17', '570b59de8c9426329c0465a8471e1643e6a86e3d483111cc150b2c6adad56667', NULL, '01a200f5-0274-7241-b49d-da9716355ffb', 1, NULL);



INSERT INTO public.timer_schedules VALUES ('01975b2e-7c00-7000-8000-000000000001', '01a200f5-027b-72c2-844b-0e2ed7aa912e', 'b1cff4f31bce6abe-18', '2037-06-01 12:00:00+00', '2026-11-22 01:53:06.690921+00', NULL, 'Scheduled');



INSERT INTO tocsin.api_keys VALUES ('8e21252a1184', '{"key_id":"8e21252a1184","hash":"d5a64f585719a2b30cf040dfa3e18dc2cc1b31c4c0b421818241f1f199179848","role":"admin","namespaces":[],"tenants":[],"created_at":1795312387151890,"note":""}');



INSERT INTO tocsin.history VALUES (1795312386560260, 1795312386563497, 2110672386563497, '14b199ab-6fe9-51a4-bf02-75489981076e', 3, '\x00000000000000015aed6d32a4a24f56aac437844eeabac80000000000000003', 'kept', 'done', NULL, '\x7b2276223a312c226e616d657370616365223a226b657074222c226964223a22646f6e65222c22657865637574655f6174223a313739353331323338363536303236302c2275726c223a22687474703a2f2f3132372e302e302e313a34323939352f686f6f6b222c22637265617465645f6174223a313739353331323338363536303236302c22757064617465645f6174223a313739353331323338363536333439372c227061796c6f6164223a7b22737461747573223a203230307d2c2274696d656f75745f7573223a31303030303030302c22666972696e67223a22312d33222c22617474656d707473223a312c2266697273745f617474656d70745f6174223a313739353331323338363536323635352c22617474656d70745f6c6f67223a5b7b226174223a313739353331323338363536323635352c226475726174696f6e5f7573223a3637352c22737461747573223a3230307d5d2c22737461747573223a22636f6d706c65746564222c2265786563757465645f6174223a313739353331323338363536333439377d', 'completed');
INSERT INTO tocsin.history VALUES (1795312386563292, 1795312386566997, 2110672386566997, '6920ac1b-269a-5345-8672-14287e8df22c', 3, '\x00000000000000015aed6d32a4a24f56aac437844eeabac80000000000000004', 'kept', 'refused', NULL, '\x7b2276223a312c226e616d657370616365223a226b657074222c226964223a2272656675736564222c22657865637574655f6174223a313739353331323338363536333239322c2275726c223a22687474703a2f2f3132372e302e302e313a34323939352f686f6f6b222c22637265617465645f6174223a313739353331323338363536333239322c22757064617465645f6174223a313739353331323338363536363939372c227061796c6f6164223a7b22737461747573223a203430307d2c2274696d656f75745f7573223a31303030303030302c22666972696e67223a22312d34222c22617474656d707473223a312c2266697273745f617474656d70745f6174223a313739353331323338363536363239382c226c6173745f6572726f72223a22485454505f343030222c22617474656d70745f6c6f67223a5b7b226174223a313739353331323338363536363239382c226475726174696f6e5f7573223a3535392c22737461747573223a3430302c226572726f72223a22485454505f343030227d5d2c22737461747573223a226661696c6564222c2265786563757465645f6174223a313739353331323338363536363939377d', 'failed');
INSERT INTO tocsin.history VALUES (2127470400000000, 1795312386640052, 2110672386640052, '2be0567f-535d-5973-a405-b665acdca509', 3, '\x00000000000000015aed6d32a4a24f56aac437844eeabac80000000000000006', 'kept', 'canceled', NULL, '\x7b2276223a312c226e616d657370616365223a226b657074222c226964223a2263616e63656c6564222c22657865637574655f6174223a323132373437303430303030303030302c2275726c223a22687474703a2f2f3132372e302e302e313a312f666172222c22637265617465645f6174223a313739353331323338363633373935322c22757064617465645f6174223a313739353331323338363634303035322c2274696d656f75745f7573223a31303030303030302c22666972696e67223a22312d35222c22737461747573223a2263616e63656c6564227d', 'canceled');



INSERT INTO tocsin.members VALUES ('\x5aed6d32a4a24f56aac437844eeabac8', 'vm:43207', '127.0.0.1:35351', 4);



INSERT INTO tocsin.meta VALUES ('schema_version', 4);
INSERT INTO tocsin.meta VALUES ('total_shards', 4);



INSERT INTO tocsin.namespaces VALUES ('default', '{"name":"default","num_shards":4,"created_at":1795312386309985,"updated_at":1795312386309985,"history":"all","retention_us":259200000000,"secret":null,"paused":false}');
INSERT INTO tocsin.namespaces VALUES ('kept', '{"name":"kept","num_shards":2,"created_at":1795312386451892,"updated_at":1795312386451892,"history":"all","retention_us":315360000000000,"secret":"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw","paused":false}');
INSERT INTO tocsin.namespaces VALUES ('paused', '{"name":"paused","num_shards":4,"created_at":1795312386463759,"updated_at":1795312386557486,"history":"all","retention_us":315360000000000,"secret":"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw","paused":true}');



INSERT INTO tocsin.secrets VALUES ('cluster', '7aed945357d6de09b9531a1e394f65c7069e134db45546cbc6aaa53994b0b8d5');






INSERT INTO tocsin.timers VALUES (0, '00000000-0000-0000-0000-000000000000', 0, 1, 1, '\x5aed6d32a4a24f56aac437844eeabac8', NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO tocsin.timers VALUES (0, '00000000-0000-0000-0000-000000000000', 1, 1, 1, '\x5aed6d32a4a24f56aac437844eeabac8', NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO tocsin.timers VALUES (2127470400000000, '3fdd9998-487c-5d8b-a275-7c3b830304ff', 2, 2, NULL, NULL, '\x00000000000000015aed6d32a4a24f56aac437844eeabac80000000000000001', 'kept', 'plain', NULL, '\x7b2276223a312c226e616d657370616365223a226b657074222c226964223a22706c61696e222c22657865637574655f6174223a323132373437303430303030303030302c2275726c223a22687474703a2f2f3132372e302e302e313a312f666172222c22637265617465645f6174223a313739353331323338363436383735352c22757064617465645f6174223a313739353331323338363436383735352c2274696d656f75745f7573223a31303030303030302c22666972696e67223a22312d31227d', NULL);
INSERT INTO tocsin.timers VALUES (2127470400000000, '8ea4937f-f4d0-57c0-b42d-e867e299008a', 3, 2, NULL, NULL, '\x00000000000000015aed6d32a4a24f56aac437844eeabac80000000000000001', 'kept', 'každý', 'euorders', '\x7b2276223a312c226e616d657370616365223a226b657074222c226964223a226b61c5be64c3bd222c22657865637574655f6174223a323132373437303430303030303030302c2275726c223a22687474703a2f2f3132372e302e302e313a312f666172222c22637265617465645f6174223a313739353331323338363439313031342c22757064617465645f6174223a313739353331323338363439313031342c227061796c6f6164223a7b2274657874223a20225c75303137656c755c75303136356f755c75303130646b5c7530306664205c7532303238205c75643833645c7564643134222c20226e223a2031323334353637383930313233343536373839302c202264656570223a205b5b5b7b7d5d5d5d7d2c226d6574686f64223a22505554222c2268656164657273223a7b22782d6f72646572223a223137222c22617574686f72697a6174696f6e223a22426561726572206f662d7468652d7265636569766572227d2c227265747279223a7b226d61785f617474656d707473223a377d2c2274696d656f75745f7573223a32303030303030302c2274616773223a5b226575222c226f7264657273225d2c22666972696e67223a22312d31227d', NULL);
INSERT INTO tocsin.timers VALUES (2127470400000000, '090afa51-0970-5025-bb64-ca781a202034', 3, 2, NULL, NULL, '\x00000000000000015aed6d32a4a24f56aac437844eeabac80000000000000002', 'kept', 'policy-of-defaults', NULL, '\x7b2276223a312c226e616d657370616365223a226b657074222c226964223a22706f6c6963792d6f662d64656661756c7473222c22657865637574655f6174223a323132373437303430303030303030302c2275726c223a22687474703a2f2f3132372e302e302e313a312f666172222c22637265617465645f6174223a313739353331323338363439323737352c22757064617465645f6174223a313739353331323338363439323737352c227265747279223a7b7d2c2274696d656f75745f7573223a31303030303030302c22666972696e67223a22312d32227d', NULL);
INSERT INTO tocsin.timers VALUES (2127470400000000, 'fd4c1d34-b1df-5040-872c-a302ef612417', 2, 2, NULL, NULL, '\x00000000000000015aed6d32a4a24f56aac437844eeabac80000000000000002', 'default', 'in-default', NULL, '\x7b2276223a312c226e616d657370616365223a2264656661756c74222c226964223a22696e2d64656661756c74222c22657865637574655f6174223a323132373437303430303030303030302c2275726c223a22687474703a2f2f3132372e302e302e313a312f666172222c22637265617465645f6174223a313739353331323338363439343136392c22757064617465645f6174223a313739353331323338363439343136392c2274696d656f75745f7573223a31303030303030302c22666972696e67223a22312d32227d', NULL);
INSERT INTO tocsin.timers VALUES (1795312414819379, '3f2b5d86-3182-57e2-8dd3-142b1f26e1c7', 2, 2, NULL, NULL, '\x00000000000000015aed6d32a4a24f56aac437844eeabac80000000000000004', 'paused', 'retrying', NULL, '\x7b2276223a312c226e616d657370616365223a22706175736564222c226964223a227265747279696e67222c22657865637574655f6174223a313739353331323338363439353533382c2275726c223a22687474703a2f2f3132372e302e302e313a34323939352f686f6f6b222c22637265617465645f6174223a313739353331323338363439353533382c22757064617465645f6174223a313739353331323338363439393439392c227061796c6f6164223a7b22737461747573223a203530337d2c227265747279223a7b226d61785f617474656d707473223a332c22696e697469616c5f696e74657276616c5f7573223a33303030303030307d2c2274696d656f75745f7573223a31303030303030302c22666972696e67223a22312d33222c22617474656d707473223a312c2266697273745f617474656d70745f6174223a313739353331323338363439363739322c226c6173745f6572726f72223a22485454505f353033222c22617474656d70745f6c6f67223a5b7b226174223a313739353331323338363439363739322c226475726174696f6e5f7573223a323438362c22737461747573223a3530332c226572726f72223a22485454505f353033227d5d7d', NULL);
INSERT INTO tocsin.timers VALUES (0, '00000000-0000-0000-0000-000000000000', 2, 1, 1, '\x5aed6d32a4a24f56aac437844eeabac8', NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO tocsin.timers VALUES (1795312386558739, '4c1010e6-c6db-5084-9c94-faf6e26b5c4f', 2, 3, NULL, NULL, '\x00000000000000015aed6d32a4a24f56aac437844eeabac80000000000000006', 'paused', 'due', NULL, '\x7b2276223a312c226e616d657370616365223a22706175736564222c226964223a22647565222c22657865637574655f6174223a313739353331323338363535383733392c2275726c223a22687474703a2f2f3132372e302e302e313a34323939352f686f6f6b222c22637265617465645f6174223a313739353331323338363535383733392c22757064617465645f6174223a313739353331323338363535383733392c227061796c6f6164223a7b226e223a20327d2c2274696d656f75745f7573223a31303030303030302c22666972696e67223a22312d35227d', 'namespace:paused');
INSERT INTO tocsin.timers VALUES (0, '00000000-0000-0000-0000-000000000000', 3, 1, 1, '\x5aed6d32a4a24f56aac437844eeabac8', NULL, NULL, NULL, NULL, NULL, NULL);



SELECT pg_catalog.setval('public.outbox_id_seq', 15, true);



ALTER TABLE ONLY public.alembic_version
    ADD CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num);



ALTER TABLE ONLY public.agent_heartbeat
    ADD CONSTRAINT pk_agent_heartbeat PRIMARY KEY (id);



ALTER TABLE ONLY public.agent_identity
    ADD CONSTRAINT pk_agent_identity PRIMARY KEY (id);



ALTER TABLE ONLY public.agent_leader
    ADD CONSTRAINT pk_agent_leader PRIMARY KEY (id);



ALTER TABLE ONLY public.http_execution_log
    ADD CONSTRAINT pk_http_execution_log PRIMARY KEY (tenant_id, service_call_id, execution_id);



ALTER TABLE ONLY public.outbox
    ADD CONSTRAINT pk_outbox PRIMARY KEY (id);



ALTER TABLE ONLY public.service_call_tags
    ADD CONSTRAINT pk_service_call_tags PRIMARY KEY (tenant_id, service_call_id, tag);



ALTER TABLE ONLY public.service_calls
    ADD CONSTRAINT pk_service_calls PRIMARY KEY (tenant_id, service_call_id);



ALTER TABLE ONLY public.timer_schedules
    ADD CONSTRAINT pk_timer_schedules PRIMARY KEY (tenant_id, service_call_id);



ALTER TABLE ONLY tocsin.api_keys
    ADD CONSTRAINT api_keys_pkey PRIMARY KEY (key_id);



ALTER TABLE ONLY tocsin.history
    ADD CONSTRAINT history_pkey PRIMARY KEY (shard_id, timer_uuid, timer_generation);



ALTER TABLE ONLY tocsin.members
    ADD CONSTRAINT members_pkey PRIMARY KEY (member_incarnation);



ALTER TABLE ONLY tocsin.meta
    ADD CONSTRAINT meta_pkey PRIMARY KEY (meta_name);



ALTER TABLE ONLY tocsin.namespaces
    ADD CONSTRAINT namespaces_pkey PRIMARY KEY (namespace_name);



ALTER TABLE ONLY tocsin.secrets
    ADD CONSTRAINT secrets_pkey PRIMARY KEY (secret_name);



ALTER TABLE ONLY tocsin.sign_outs
    ADD CONSTRAINT sign_outs_pkey PRIMARY KEY (sign_in_name);



ALTER TABLE ONLY tocsin.timers
    ADD CONSTRAINT timers_pkey PRIMARY KEY (shard_id, row_type, timer_execute_at, timer_uuid);



CREATE INDEX idx_http_execution_log_unfinished ON public.http_execution_log USING btree (started_at) WHERE (finished_at IS NULL);



CREATE INDEX idx_outbox_correlation_id ON public.outbox USING btree (tenant_id, correlation_id);



CREATE INDEX idx_outbox_published_at ON public.outbox USING btree (published_at) WHERE (published_at IS NOT NULL);



CREATE INDEX idx_outbox_unpublished ON public.outbox USING btree (id) WHERE ((published_at IS NULL) AND (parked_at IS NULL));



CREATE INDEX idx_service_call_tags_tag ON public.service_call_tags USING btree (tenant_id, tag, submitted_at, service_call_id);



CREATE INDEX idx_service_calls_finished_at ON public.service_calls USING btree (finished_at) WHERE (finished_at IS NOT NULL);



CREATE UNIQUE INDEX idx_service_calls_idempotency_key ON public.service_calls USING btree (tenant_id, idempotency_key) WHERE (idempotency_key IS NOT NULL);



CREATE INDEX idx_service_calls_status ON public.service_calls USING btree (tenant_id, status, submitted_at, service_call_id);



CREATE INDEX idx_service_calls_submitted_at ON public.service_calls USING btree (tenant_id, submitted_at, service_call_id);



CREATE INDEX idx_service_calls_watch_at ON public.service_calls USING btree (watch_at) WHERE (watch_at IS NOT NULL);



CREATE INDEX idx_timer_schedules_correlation_id ON public.timer_schedules USING btree (correlation_id);



CREATE INDEX idx_timer_schedules_due_at ON public.timer_schedules USING btree (tenant_id, state, due_at);



CREATE INDEX idx_timer_schedules_waiting ON public.timer_schedules USING btree (due_at, tenant_id) WHERE (state = 'Scheduled'::text);



CREATE INDEX history_by_expiry ON tocsin.history USING btree (timer_expires_at);



CREATE INDEX history_by_instant ON tocsin.history USING btree (shard_id, timer_execute_at, timer_uuid);



CREATE UNIQUE INDEX timers_by_uuid ON tocsin.timers USING btree (shard_id, timer_uuid) WHERE (timer_id IS NOT NULL);



CREATE UNIQUE INDEX timers_shards ON tocsin.timers USING btree (shard_id) WHERE (row_type = 1);



ALTER TABLE ONLY public.http_execution_log
    ADD CONSTRAINT fk_http_execution_log_service_call FOREIGN KEY (tenant_id, service_call_id) REFERENCES public.service_calls(tenant_id, service_call_id) ON DELETE CASCADE;



ALTER TABLE ONLY public.service_call_tags
    ADD CONSTRAINT fk_service_call_tags_service_call FOREIGN KEY (tenant_id, service_call_id) REFERENCES public.service_calls(tenant_id, service_call_id) ON DELETE CASCADE;



ALTER TABLE ONLY public.timer_schedules
    ADD CONSTRAINT fk_timer_schedules_service_call FOREIGN KEY (tenant_id, service_call_id) REFERENCES public.service_calls(tenant_id, service_call_id) ON DELETE CASCADE;




