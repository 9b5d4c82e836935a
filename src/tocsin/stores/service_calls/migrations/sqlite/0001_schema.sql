-- The tables of the service agent. The first five are those of the reference schema, with what the agent adds to them. Every
-- key starts with the tenant, and rows that refer to a call are deleted with it. Instants are texts of fixed width with six
-- fractional digits, which sort by time: 2027-01-31T12:00:00.000000Z.
--
-- The order of a table's indexes matters: of two that serve alike, SQLite's planner takes the newer one while there are no
-- statistics.

CREATE TABLE service_calls (
  tenant_id TEXT NOT NULL,
  service_call_id TEXT NOT NULL,
  name TEXT NOT NULL,
  status TEXT NOT NULL,
  submitted_at TEXT NOT NULL,
  due_at TEXT NOT NULL,
  started_at TEXT,
  finished_at TEXT,
  request_spec TEXT NOT NULL,
  outcome_meta TEXT,
  -- The request that submitted the call, and a digest to recognize its repetitions.
  correlation_id TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  idempotency_key TEXT,
  -- The execution that was ordered last, and how many were ordered.
  execution_id TEXT,
  executions INTEGER NOT NULL DEFAULT 0,
  -- When the watchdog checks the call, while it has not finished.
  watch_at TEXT,
  -- The retry policy, and the state of the retries.
  retry_policy TEXT,
  attempts INTEGER NOT NULL DEFAULT 0,
  first_attempt_at TEXT,
  next_attempt_at TEXT,
  -- Of the request that submitted the call, for the traces of its executions.
  traceparent TEXT,
  -- Who is notified of its end.
  hooks TEXT,
  -- Destination and error of a failed call, until it is retried or its failure is dismissed.
  failure TEXT,
  -- The flow whose limits apply to its attempts.
  flow_key TEXT,
  CONSTRAINT pk_service_calls PRIMARY KEY (tenant_id, service_call_id),
  CONSTRAINT ck_service_calls_status CHECK (status IN ('Scheduled', 'Running', 'Retrying', 'Succeeded', 'Failed'))
) STRICT;

CREATE UNIQUE INDEX idx_service_calls_idempotency_key ON service_calls (tenant_id, idempotency_key)
  WHERE idempotency_key IS NOT NULL;

-- Pages, the newest first: of all calls, with a status, and with one correlation id.
CREATE INDEX idx_service_calls_submitted_at ON service_calls (tenant_id, submitted_at, service_call_id);
CREATE INDEX idx_service_calls_status ON service_calls (tenant_id, status, submitted_at, service_call_id);

-- For the watchdog, over all tenants: only calls that have not finished. For the purge, likewise.
CREATE INDEX idx_service_calls_watch_at ON service_calls (watch_at) WHERE watch_at IS NOT NULL;
CREATE INDEX idx_service_calls_finished_at ON service_calls (finished_at) WHERE finished_at IS NOT NULL;
-- By the correlation id first, which is also looked for over all tenants.
CREATE INDEX idx_service_calls_correlation_id ON service_calls (correlation_id, tenant_id, submitted_at, service_call_id);
-- All calls, over all tenants.
CREATE INDEX idx_service_calls_newest ON service_calls (submitted_at, service_call_id);
-- Failures, the newest first, of a tenant and of all; counted from the index alone.
CREATE INDEX idx_service_calls_failures ON service_calls (tenant_id, finished_at, service_call_id, failure)
  WHERE failure IS NOT NULL;
CREATE INDEX idx_service_calls_all_failures ON service_calls (finished_at, service_call_id, tenant_id, failure)
  WHERE failure IS NOT NULL;

CREATE TABLE service_call_tags (
  tenant_id TEXT NOT NULL,
  service_call_id TEXT NOT NULL,
  tag TEXT NOT NULL,
  -- A copy of the call's, so that a page by tag is one range of an index.
  submitted_at TEXT NOT NULL,
  CONSTRAINT pk_service_call_tags PRIMARY KEY (tenant_id, service_call_id, tag),
  CONSTRAINT fk_service_call_tags_service_call FOREIGN KEY (tenant_id, service_call_id)
    REFERENCES service_calls (tenant_id, service_call_id) ON DELETE CASCADE
) STRICT;

CREATE INDEX idx_service_call_tags_tag ON service_call_tags (tenant_id, tag, submitted_at, service_call_id);

CREATE TABLE timer_schedules (
  tenant_id TEXT NOT NULL,
  service_call_id TEXT NOT NULL,
  correlation_id TEXT NOT NULL,
  due_at TEXT NOT NULL,
  registered_at TEXT NOT NULL,
  reached_at TEXT,
  state TEXT NOT NULL DEFAULT 'Scheduled',
  CONSTRAINT pk_timer_schedules PRIMARY KEY (tenant_id, service_call_id),
  CONSTRAINT fk_timer_schedules_service_call FOREIGN KEY (tenant_id, service_call_id)
    REFERENCES service_calls (tenant_id, service_call_id) ON DELETE CASCADE,
  CONSTRAINT ck_timer_schedules_state CHECK (state IN ('Scheduled', 'Reached'))
) STRICT;

CREATE INDEX idx_timer_schedules_due_at ON timer_schedules (tenant_id, state, due_at);
CREATE INDEX idx_timer_schedules_correlation_id ON timer_schedules (correlation_id);

-- Waiting schedules over all tenants, for the next due time and the tenants with due schedules.
CREATE INDEX idx_timer_schedules_waiting ON timer_schedules (due_at, tenant_id) WHERE state = 'Scheduled';

CREATE TABLE http_execution_log (
  tenant_id TEXT NOT NULL,
  service_call_id TEXT NOT NULL,
  execution_id TEXT NOT NULL,
  started_at TEXT NOT NULL,
  finished_at TEXT,
  request_url TEXT NOT NULL,
  request_method TEXT NOT NULL,
  request_headers TEXT NOT NULL,
  request_body TEXT,
  response_status TEXT,
  response_headers TEXT,
  response_body TEXT,
  error_message TEXT,
  -- For the event that reports an interrupted execution.
  correlation_id TEXT NOT NULL,
  CONSTRAINT pk_http_execution_log PRIMARY KEY (tenant_id, service_call_id, execution_id),
  CONSTRAINT fk_http_execution_log_service_call FOREIGN KEY (tenant_id, service_call_id)
    REFERENCES service_calls (tenant_id, service_call_id) ON DELETE CASCADE,
  CONSTRAINT ck_http_execution_log_request_method CHECK (
    request_method IN ('GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS')
  )
) STRICT;

-- Executions that an earlier run of the process left unfinished.
CREATE INDEX idx_http_execution_log_unfinished ON http_execution_log (started_at) WHERE finished_at IS NULL;

-- Orders to execute that wait for their flow or their credential. A row is deleted by the transaction that logs its execution.
CREATE TABLE suspended_executions (
  tenant_id TEXT NOT NULL,
  service_call_id TEXT NOT NULL,
  execution_id TEXT NOT NULL,
  -- What it waits for: a flow, a credential and its destination, or all three, with spaces between them.
  place TEXT NOT NULL,
  suspended_at TEXT NOT NULL,
  -- When orchestration was notified, of one that waits for longer.
  reported_at TEXT,
  -- The whole message.
  envelope TEXT NOT NULL,
  CONSTRAINT pk_suspended_executions PRIMARY KEY (tenant_id, service_call_id, execution_id),
  CONSTRAINT fk_suspended_executions_service_call FOREIGN KEY (tenant_id, service_call_id)
    REFERENCES service_calls (tenant_id, service_call_id) ON DELETE CASCADE
) STRICT;

-- Those of a place, in the order in which they were ordered, which their ids have.
CREATE INDEX idx_suspended_executions_place ON suspended_executions (place, execution_id);
CREATE INDEX idx_suspended_executions_unreported ON suspended_executions (suspended_at) WHERE reported_at IS NULL;

CREATE TABLE outbox (
  id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  tenant_id TEXT NOT NULL,
  aggregate_id TEXT NOT NULL,
  event_type TEXT NOT NULL,
  event_payload TEXT NOT NULL,
  created_at TEXT NOT NULL,
  published_at TEXT,
  -- The rest of the envelope.
  envelope_id TEXT NOT NULL,
  correlation_id TEXT NOT NULL,
  causation_id TEXT,
  timestamp_ms INTEGER NOT NULL,
  -- The state of publishing. `suspended_at`: the message can never be published.
  attempts INTEGER NOT NULL DEFAULT 0,
  last_error TEXT,
  suspended_at TEXT
) STRICT;

-- Unpublished messages; traces; the purge.
CREATE INDEX idx_outbox_unpublished ON outbox (id) WHERE published_at IS NULL AND suspended_at IS NULL;
CREATE INDEX idx_outbox_correlation_id ON outbox (tenant_id, correlation_id);
CREATE INDEX idx_outbox_published_at ON outbox (published_at) WHERE published_at IS NOT NULL;

-- One row with a UUID created with the database, which identifies what is stored elsewhere for this database.
CREATE TABLE agent_identity (
  id INTEGER NOT NULL,
  agent_id TEXT NOT NULL,
  CONSTRAINT pk_agent_identity PRIMARY KEY (id),
  CONSTRAINT ck_agent_identity_only_one CHECK (id = 1)
) STRICT;

-- Used on a shared database only: one process at a time locks a file.
CREATE TABLE agent_leader (
  id INTEGER NOT NULL,
  epoch INTEGER NOT NULL,
  node TEXT NOT NULL,
  incarnation TEXT NOT NULL,
  since TEXT,
  CONSTRAINT pk_agent_leader PRIMARY KEY (id),
  CONSTRAINT ck_agent_leader_only_one CHECK (id = 1)
) STRICT;
INSERT INTO agent_leader (id, epoch, node, incarnation) VALUES (1, 0, '', '');

-- Grows while that node is alive. A table of its own, because every write locks the row above.
CREATE TABLE agent_heartbeat (
  id INTEGER NOT NULL,
  beats INTEGER NOT NULL,
  CONSTRAINT pk_agent_heartbeat PRIMARY KEY (id),
  CONSTRAINT ck_agent_heartbeat_only_one CHECK (id = 1)
) STRICT;
INSERT INTO agent_heartbeat (id, beats) VALUES (1, 0);

-- The secrets that sign a tenant's service calls, encoded by `tocsin.model.secrets`.
CREATE TABLE tenant_secrets (
  tenant_id TEXT NOT NULL,
  secrets TEXT NOT NULL,
  CONSTRAINT pk_tenant_secrets PRIMARY KEY (tenant_id)
) STRICT;

-- Not `meta`, like in the timers' store: with PostgreSQL, both may be in one schema.
CREATE TABLE agent_meta (meta_name TEXT NOT NULL PRIMARY KEY, meta_value INTEGER NOT NULL) STRICT;
