PRAGMA application_id = 0;
PRAGMA user_version = 0;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
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
	correlation_id TEXT NOT NULL, 
	fingerprint TEXT NOT NULL, 
	idempotency_key TEXT, 
	execution_id TEXT, 
	executions INTEGER DEFAULT 0 NOT NULL, 
	watch_at TEXT, 
	CONSTRAINT pk_service_calls PRIMARY KEY (tenant_id, service_call_id), 
	CONSTRAINT ck_service_calls_status CHECK (status IN ('Scheduled', 'Running', 'Succeeded', 'Failed'))
)
 STRICT

;
CREATE TABLE service_call_tags (
	tenant_id TEXT NOT NULL, 
	service_call_id TEXT NOT NULL, 
	tag TEXT NOT NULL, 
	submitted_at TEXT NOT NULL, 
	CONSTRAINT pk_service_call_tags PRIMARY KEY (tenant_id, service_call_id, tag), 
	CONSTRAINT fk_service_call_tags_service_call FOREIGN KEY(tenant_id, service_call_id) REFERENCES service_calls (tenant_id, service_call_id) ON DELETE CASCADE
)
 STRICT

;
CREATE TABLE timer_schedules (
	tenant_id TEXT NOT NULL, 
	service_call_id TEXT NOT NULL, 
	correlation_id TEXT NOT NULL, 
	due_at TEXT NOT NULL, 
	registered_at TEXT NOT NULL, 
	reached_at TEXT, 
	state TEXT DEFAULT 'Scheduled' NOT NULL, 
	CONSTRAINT pk_timer_schedules PRIMARY KEY (tenant_id, service_call_id), 
	CONSTRAINT fk_timer_schedules_service_call FOREIGN KEY(tenant_id, service_call_id) REFERENCES service_calls (tenant_id, service_call_id) ON DELETE CASCADE, 
	CONSTRAINT ck_timer_schedules_state CHECK (state IN ('Scheduled', 'Reached'))
)
 STRICT

;
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
	correlation_id TEXT NOT NULL, 
	CONSTRAINT pk_http_execution_log PRIMARY KEY (tenant_id, service_call_id, execution_id), 
	CONSTRAINT fk_http_execution_log_service_call FOREIGN KEY(tenant_id, service_call_id) REFERENCES service_calls (tenant_id, service_call_id) ON DELETE CASCADE, 
	CONSTRAINT ck_http_execution_log_request_method CHECK (request_method IN ('GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS'))
)
 STRICT

;
CREATE TABLE outbox (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	tenant_id TEXT NOT NULL, 
	aggregate_id TEXT NOT NULL, 
	event_type TEXT NOT NULL, 
	event_payload TEXT NOT NULL, 
	created_at TEXT NOT NULL, 
	published_at TEXT, 
	envelope_id TEXT NOT NULL, 
	correlation_id TEXT NOT NULL, 
	causation_id TEXT, 
	timestamp_ms INTEGER NOT NULL, 
	attempts INTEGER DEFAULT 0 NOT NULL, 
	last_error TEXT, 
	parked_at TEXT
)
 STRICT

;
CREATE TABLE agent_identity (
	id INTEGER NOT NULL, 
	agent_id TEXT NOT NULL, 
	CONSTRAINT pk_agent_identity PRIMARY KEY (id), 
	CONSTRAINT ck_agent_identity_only_one CHECK (id = 1)
)
 STRICT

;
CREATE TABLE agent_leader (
	id INTEGER NOT NULL, 
	term INTEGER NOT NULL, 
	node TEXT NOT NULL, 
	incarnation TEXT NOT NULL, 
	since TEXT, 
	CONSTRAINT pk_agent_leader PRIMARY KEY (id), 
	CONSTRAINT ck_agent_leader_only_one CHECK (id = 1)
)
 STRICT

;
CREATE TABLE agent_heartbeat (
	id INTEGER NOT NULL, 
	beats INTEGER NOT NULL, 
	CONSTRAINT pk_agent_heartbeat PRIMARY KEY (id), 
	CONSTRAINT ck_agent_heartbeat_only_one CHECK (id = 1)
)
 STRICT

;
INSERT INTO "alembic_version" VALUES ('0003');
INSERT INTO "service_calls" VALUES ('01975b2e-7c00-7000-8000-000000000001', '01a200f4-f177-7306-9938-e669ab3dc1f3', 'succeeded', 'Succeeded', '2026-11-22T01:53:02.327674Z', '2026-11-22T01:53:02.327674Z', '2026-11-22T01:53:02.333821Z', '2026-11-22T01:53:02.338756Z', '{"method":"POST","url":"http://127.0.0.1:41799/hook","headers":{"x-n":"1"},"body":{"status": 200}}', '{"responseMeta":{"status":200,"headers":{"content-length":"12"},"bodySnippet":"{\"ok\": true}","latencyMs":0.999}}', '24b0e90f951a35ae-17', '8302bbc01ef616f5f7cd12d7cea4719118465ec0d019fd42a6bb39a0a54061d8', NULL, '01a200f4-f177-72f9-965b-bf980330d60b', 1, NULL);
INSERT INTO "service_calls" VALUES ('01975b2e-7c00-7000-8000-000000000001', '01a200f4-f17f-7187-9329-d3915ef0ac7c', 'refused', 'Failed', '2026-11-22T01:53:02.337488Z', '2026-11-22T01:53:02.337488Z', '2026-11-22T01:53:02.339980Z', '2026-11-22T01:53:02.348288Z', '{"method":"POST","url":"http://127.0.0.1:41799/hook","headers":{"x-n":"1"},"body":{"status": 418}}', '{"responseMeta":{"status":418,"headers":{"content-length":"12"},"bodySnippet":"{\"ok\": true}","latencyMs":0.529},"errorMeta":{"kind":"HTTP_STATUS","message":"HTTP 418","latencyMs":0.529}}', '24b0e90f951a35ae-18', 'd04be00a8c32008be78b3ea278255efeab1c38cedb2e8bd94d546638887c5408', NULL, '01a200f4-f181-76c1-9268-47aa922ae274', 1, NULL);
INSERT INTO "service_calls" VALUES ('01975b2e-7c00-7000-8000-000000000001', '01a200f4-f187-7646-af4e-89511f645989', 'scheduled', 'Scheduled', '2026-11-22T01:53:02.344207Z', '2037-06-01T12:00:00.000000Z', NULL, NULL, '{"method":"POST","url":"http://127.0.0.1:41799/hook","headers":{"x-n":"1"},"body":{"status": 200}}', NULL, '24b0e90f951a35ae-19', 'c79bc712fe3ef55dd54bc323ed9e1660cf81d4e1394a3a65cc21f9f35607fd6f', 'only-once', NULL, 0, '2037-06-01T12:00:15.000000Z');
INSERT INTO "service_call_tags" VALUES ('01975b2e-7c00-7000-8000-000000000001', '01a200f4-f177-7306-9938-e669ab3dc1f3', 'starred', '2026-11-22T01:53:02.327674Z');
INSERT INTO "service_call_tags" VALUES ('01975b2e-7c00-7000-8000-000000000001', '01a200f4-f187-7646-af4e-89511f645989', 'later', '2026-11-22T01:53:02.344207Z');
INSERT INTO "timer_schedules" VALUES ('01975b2e-7c00-7000-8000-000000000001', '01a200f4-f187-7646-af4e-89511f645989', '24b0e90f951a35ae-19', '2037-06-01T12:00:00.000000Z', '2026-11-22T01:53:02.348966Z', NULL, 'Scheduled');
INSERT INTO "http_execution_log" VALUES ('01975b2e-7c00-7000-8000-000000000001', '01a200f4-f177-7306-9938-e669ab3dc1f3', '01a200f4-f177-72f9-965b-bf980330d60b', '2026-11-22T01:53:02.333821Z', '2026-11-22T01:53:02.338756Z', 'http://127.0.0.1:41799/hook', 'POST', '{"x-n":"1","x-correlation-id":"24b0e90f951a35ae-17","content-type":"application/json"}', '{"status": 200}', '200', '{"content-length":"12"}', '{"ok": true}', NULL, '24b0e90f951a35ae-17');
INSERT INTO "http_execution_log" VALUES ('01975b2e-7c00-7000-8000-000000000001', '01a200f4-f17f-7187-9329-d3915ef0ac7c', '01a200f4-f181-76c1-9268-47aa922ae274', '2026-11-22T01:53:02.339980Z', '2026-11-22T01:53:02.348288Z', 'http://127.0.0.1:41799/hook', 'POST', '{"x-n":"1","x-correlation-id":"24b0e90f951a35ae-18","content-type":"application/json"}', '{"status": 418}', '418', '{"content-length":"12"}', '{"ok": true}', 'HTTP_STATUS: HTTP 418', '24b0e90f951a35ae-18');
INSERT INTO "outbox" VALUES (1, '01975b2e-7c00-7000-8000-000000000001', '01a200f4-f177-7306-9938-e669ab3dc1f3', 'ServiceCallSubmitted', '{"serviceCallId":"01a200f4-f177-7306-9938-e669ab3dc1f3","name":"succeeded","method":"POST","url":"http://127.0.0.1:41799/hook","dueAtUs":1795312382327674,"tags":["starred"]}', '2026-11-22T01:53:02.330000Z', '2026-11-22T01:53:02.383778Z', '01a200f4-f177-72f9-965b-bf98a6134e6e', '24b0e90f951a35ae-17', '01a200f4-f177-7306-9938-e669ea8a5ba5', 1795312382330, 0, NULL, NULL);
INSERT INTO "outbox" VALUES (2, '01975b2e-7c00-7000-8000-000000000001', '01a200f4-f177-7306-9938-e669ab3dc1f3', 'ServiceCallRunning', '{"serviceCallId":"01a200f4-f177-7306-9938-e669ab3dc1f3","executionId":"01a200f4-f177-72f9-965b-bf980330d60b"}', '2026-11-22T01:53:02.330000Z', '2026-11-22T01:53:02.383778Z', '01a200f4-f177-72f9-965b-bf993def270b', '24b0e90f951a35ae-17', '01a200f4-f177-7306-9938-e669ea8a5ba5', 1795312382330, 0, NULL, NULL);
INSERT INTO "outbox" VALUES (3, '01975b2e-7c00-7000-8000-000000000001', '01a200f4-f177-7306-9938-e669ab3dc1f3', 'StartExecution', '{"serviceCallId":"01a200f4-f177-7306-9938-e669ab3dc1f3","executionId":"01a200f4-f177-72f9-965b-bf980330d60b","requestSpec":{"method":"POST","url":"http://127.0.0.1:41799/hook","headers":{"x-n":"1"},"body":{"status": 200}}}', '2026-11-22T01:53:02.330000Z', '2026-11-22T01:53:02.383778Z', '01a200f4-f177-72f9-965b-bf9a063a4c03', '24b0e90f951a35ae-17', '01a200f4-f177-7306-9938-e669ea8a5ba5', 1795312382330, 0, NULL, NULL);
INSERT INTO "outbox" VALUES (4, '01975b2e-7c00-7000-8000-000000000001', '01a200f4-f177-7306-9938-e669ab3dc1f3', 'ExecutionStarted', '{"serviceCallId":"01a200f4-f177-7306-9938-e669ab3dc1f3","executionId":"01a200f4-f177-72f9-965b-bf980330d60b","startedAtUs":1795312382333821}', '2026-11-22T01:53:02.333000Z', '2026-11-22T01:53:02.383778Z', '01a200f4-f17d-74a9-96af-f5d80325a4e2', '24b0e90f951a35ae-17', '01a200f4-f177-72f9-965b-bf9a063a4c03', 1795312382333, 0, NULL, NULL);
INSERT INTO "outbox" VALUES (5, '01975b2e-7c00-7000-8000-000000000001', '01a200f4-f17f-7187-9329-d3915ef0ac7c', 'ServiceCallSubmitted', '{"serviceCallId":"01a200f4-f17f-7187-9329-d3915ef0ac7c","name":"refused","method":"POST","url":"http://127.0.0.1:41799/hook","dueAtUs":1795312382337488}', '2026-11-22T01:53:02.338000Z', '2026-11-22T01:53:02.383778Z', '01a200f4-f181-76c1-9268-47aaea5d7c02', '24b0e90f951a35ae-18', '01a200f4-f17f-7187-9329-d391d95f67ff', 1795312382338, 0, NULL, NULL);
INSERT INTO "outbox" VALUES (6, '01975b2e-7c00-7000-8000-000000000001', '01a200f4-f17f-7187-9329-d3915ef0ac7c', 'ServiceCallRunning', '{"serviceCallId":"01a200f4-f17f-7187-9329-d3915ef0ac7c","executionId":"01a200f4-f181-76c1-9268-47aa922ae274"}', '2026-11-22T01:53:02.338000Z', '2026-11-22T01:53:02.383778Z', '01a200f4-f181-76c1-9268-47abdf5fa69e', '24b0e90f951a35ae-18', '01a200f4-f17f-7187-9329-d391d95f67ff', 1795312382338, 0, NULL, NULL);
INSERT INTO "outbox" VALUES (7, '01975b2e-7c00-7000-8000-000000000001', '01a200f4-f17f-7187-9329-d3915ef0ac7c', 'StartExecution', '{"serviceCallId":"01a200f4-f17f-7187-9329-d3915ef0ac7c","executionId":"01a200f4-f181-76c1-9268-47aa922ae274","requestSpec":{"method":"POST","url":"http://127.0.0.1:41799/hook","headers":{"x-n":"1"},"body":{"status": 418}}}', '2026-11-22T01:53:02.338000Z', '2026-11-22T01:53:02.383778Z', '01a200f4-f181-76c1-9268-47ac3204659b', '24b0e90f951a35ae-18', '01a200f4-f17f-7187-9329-d391d95f67ff', 1795312382338, 0, NULL, NULL);
INSERT INTO "outbox" VALUES (8, '01975b2e-7c00-7000-8000-000000000001', '01a200f4-f177-7306-9938-e669ab3dc1f3', 'ExecutionSucceeded', '{"serviceCallId":"01a200f4-f177-7306-9938-e669ab3dc1f3","executionId":"01a200f4-f177-72f9-965b-bf980330d60b","finishedAtUs":1795312382338756,"responseMeta":{"status":200,"headers":{"content-length":"12"},"bodySnippet":"{\"ok\": true}","latencyMs":0.999}}', '2026-11-22T01:53:02.338000Z', '2026-11-22T01:53:02.383778Z', '01a200f4-f182-77b8-ad69-c78b0c22f1d0', '24b0e90f951a35ae-17', '01a200f4-f177-72f9-965b-bf9a063a4c03', 1795312382338, 0, NULL, NULL);
INSERT INTO "outbox" VALUES (9, '01975b2e-7c00-7000-8000-000000000001', '01a200f4-f17f-7187-9329-d3915ef0ac7c', 'ExecutionStarted', '{"serviceCallId":"01a200f4-f17f-7187-9329-d3915ef0ac7c","executionId":"01a200f4-f181-76c1-9268-47aa922ae274","startedAtUs":1795312382339980}', '2026-11-22T01:53:02.340000Z', '2026-11-22T01:53:02.383778Z', '01a200f4-f184-7623-b1cf-c8fc24fcbe3f', '24b0e90f951a35ae-18', '01a200f4-f181-76c1-9268-47ac3204659b', 1795312382340, 0, NULL, NULL);
INSERT INTO "outbox" VALUES (10, '01975b2e-7c00-7000-8000-000000000001', '01a200f4-f187-7646-af4e-89511f645989', 'ServiceCallSubmitted', '{"serviceCallId":"01a200f4-f187-7646-af4e-89511f645989","name":"scheduled","method":"POST","url":"http://127.0.0.1:41799/hook","dueAtUs":2127470400000000,"tags":["later"]}', '2026-11-22T01:53:02.346000Z', '2026-11-22T01:53:02.383778Z', '01a200f4-f188-77f7-8522-2947cac7db2a', '24b0e90f951a35ae-19', '01a200f4-f187-7646-af4e-8951f78f9e4d', 1795312382346, 0, NULL, NULL);
INSERT INTO "outbox" VALUES (11, '01975b2e-7c00-7000-8000-000000000001', '01a200f4-f187-7646-af4e-89511f645989', 'ServiceCallScheduled', '{"serviceCallId":"01a200f4-f187-7646-af4e-89511f645989","dueAtUs":2127470400000000}', '2026-11-22T01:53:02.346000Z', '2026-11-22T01:53:02.383778Z', '01a200f4-f188-77f7-8522-2948755df832', '24b0e90f951a35ae-19', '01a200f4-f187-7646-af4e-8951f78f9e4d', 1795312382346, 0, NULL, NULL);
INSERT INTO "outbox" VALUES (12, '01975b2e-7c00-7000-8000-000000000001', '01a200f4-f187-7646-af4e-89511f645989', 'ScheduleTimer', '{"serviceCallId":"01a200f4-f187-7646-af4e-89511f645989","dueAtUs":2127470400000000}', '2026-11-22T01:53:02.346000Z', '2026-11-22T01:53:02.383778Z', '01a200f4-f188-77f7-8522-294884203b9c', '24b0e90f951a35ae-19', '01a200f4-f187-7646-af4e-8951f78f9e4d', 1795312382346, 0, NULL, NULL);
INSERT INTO "outbox" VALUES (13, '01975b2e-7c00-7000-8000-000000000001', '01a200f4-f177-7306-9938-e669ab3dc1f3', 'ServiceCallSucceeded', '{"serviceCallId":"01a200f4-f177-7306-9938-e669ab3dc1f3","responseMeta":{"status":200,"headers":{"content-length":"12"},"bodySnippet":"{\"ok\": true}","latencyMs":0.999}}', '2026-11-22T01:53:02.347000Z', '2026-11-22T01:53:02.383778Z', '01a200f4-f18b-7409-be8a-346facde819b', '24b0e90f951a35ae-17', '01a200f4-f182-77b8-ad69-c78b0c22f1d0', 1795312382347, 0, NULL, NULL);
INSERT INTO "outbox" VALUES (14, '01975b2e-7c00-7000-8000-000000000001', '01a200f4-f17f-7187-9329-d3915ef0ac7c', 'ExecutionFailed', '{"serviceCallId":"01a200f4-f17f-7187-9329-d3915ef0ac7c","executionId":"01a200f4-f181-76c1-9268-47aa922ae274","finishedAtUs":1795312382348288,"errorMeta":{"kind":"HTTP_STATUS","message":"HTTP 418","latencyMs":0.529},"responseMeta":{"status":418,"headers":{"content-length":"12"},"bodySnippet":"{\"ok\": true}","latencyMs":0.529}}', '2026-11-22T01:53:02.348000Z', '2026-11-22T01:53:02.383778Z', '01a200f4-f18c-76be-bf8f-5e4651130876', '24b0e90f951a35ae-18', '01a200f4-f181-76c1-9268-47ac3204659b', 1795312382348, 0, NULL, NULL);
INSERT INTO "outbox" VALUES (15, '01975b2e-7c00-7000-8000-000000000001', '01a200f4-f17f-7187-9329-d3915ef0ac7c', 'ServiceCallFailed', '{"serviceCallId":"01a200f4-f17f-7187-9329-d3915ef0ac7c","errorMeta":{"kind":"HTTP_STATUS","message":"HTTP 418","latencyMs":0.529},"responseMeta":{"status":418,"headers":{"content-length":"12"},"bodySnippet":"{\"ok\": true}","latencyMs":0.529}}', '2026-11-22T01:53:02.359000Z', '2026-11-22T01:53:02.383778Z', '01a200f4-f197-77f0-b63f-e8bdaaab21ca', '24b0e90f951a35ae-18', '01a200f4-f18c-76be-bf8f-5e4651130876', 1795312382359, 0, NULL, NULL);
INSERT INTO "agent_identity" VALUES (1, '01a200f4-f06f-784e-a673-158c56faa250');
INSERT INTO "agent_leader" VALUES (1, 0, '', '', NULL);
INSERT INTO "agent_heartbeat" VALUES (1, 0);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES ('outbox', 15);
CREATE INDEX idx_timer_schedules_due_at ON timer_schedules (tenant_id, state, due_at);
CREATE INDEX idx_timer_schedules_correlation_id ON timer_schedules (correlation_id);
CREATE UNIQUE INDEX idx_service_calls_idempotency_key ON service_calls (tenant_id, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX idx_service_calls_submitted_at ON service_calls (tenant_id, submitted_at, service_call_id);
CREATE INDEX idx_service_calls_status ON service_calls (tenant_id, status, submitted_at, service_call_id);
CREATE INDEX idx_service_calls_watch_at ON service_calls (watch_at) WHERE watch_at IS NOT NULL;
CREATE INDEX idx_service_calls_finished_at ON service_calls (finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX idx_service_call_tags_tag ON service_call_tags (tenant_id, tag, submitted_at, service_call_id);
CREATE INDEX idx_timer_schedules_waiting ON timer_schedules (due_at, tenant_id) WHERE state = 'Scheduled';
CREATE INDEX idx_http_execution_log_unfinished ON http_execution_log (started_at) WHERE finished_at IS NULL;
CREATE INDEX idx_outbox_unpublished ON outbox (id) WHERE published_at IS NULL AND parked_at IS NULL;
CREATE INDEX idx_outbox_correlation_id ON outbox (tenant_id, correlation_id);
CREATE INDEX idx_outbox_published_at ON outbox (published_at) WHERE published_at IS NOT NULL;
