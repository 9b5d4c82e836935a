PRAGMA application_id = 1416586099;
PRAGMA user_version = 3;
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
  -- JSON text as the engine wrote it; ANY, so that a record which is no text can be kept as it came.
  timer_record ANY,
  timer_parked_reason TEXT,
  PRIMARY KEY (shard_id, row_type, timer_execute_at, timer_uuid)
) STRICT, WITHOUT ROWID;
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
CREATE TABLE meta (
  meta_name TEXT PRIMARY KEY,
  meta_value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE secrets (
  secret_name TEXT PRIMARY KEY,
  secret_value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE sign_outs (
  sign_in_name TEXT PRIMARY KEY,
  sign_in_expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO "timers" VALUES (0, 1, 0, X'', 1, X'FD26AABCCE314B5E96C27C5A77BB97DC', NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO "timers" VALUES (1, 1, 0, X'', 1, X'FD26AABCCE314B5E96C27C5A77BB97DC', NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO "timers" VALUES (2, 1, 0, X'', 1, X'FD26AABCCE314B5E96C27C5A77BB97DC', NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO "timers" VALUES (2, 2, 1795312410282057, X'3F2B5D86318257E28DD3142B1F26E1C7', NULL, NULL, X'0000000000000001FD26AABCCE314B5E96C27C5A77BB97DC0000000000000004', 'paused', 'retrying', NULL, '{"v":1,"namespace":"paused","id":"retrying","execute_at":1795312382183176,"url":"http://127.0.0.1:41799/hook","created_at":1795312382183176,"updated_at":1795312382186072,"payload":{"status": 503},"retry":{"max_attempts":3,"initial_interval_us":30000000},"timeout_us":10000000,"firing":"1-3","attempts":1,"first_attempt_at":1795312382184091,"last_error":"HTTP_503","attempt_log":[{"at":1795312382184091,"duration_us":1795,"status":503,"error":"HTTP_503"}]}', NULL);
INSERT INTO "timers" VALUES (2, 2, 2127470400000000, X'3FDD9998487C5D8BA2757C3B830304FF', NULL, NULL, X'0000000000000001FD26AABCCE314B5E96C27C5A77BB97DC0000000000000001', 'kept', 'plain', NULL, '{"v":1,"namespace":"kept","id":"plain","execute_at":2127470400000000,"url":"http://127.0.0.1:1/far","created_at":1795312382177938,"updated_at":1795312382177938,"timeout_us":10000000,"firing":"1-1"}', NULL);
INSERT INTO "timers" VALUES (2, 2, 2127470400000000, X'FD4C1D34B1DF5040872CA302EF612417', NULL, NULL, X'0000000000000001FD26AABCCE314B5E96C27C5A77BB97DC0000000000000002', 'default', 'in-default', NULL, '{"v":1,"namespace":"default","id":"in-default","execute_at":2127470400000000,"url":"http://127.0.0.1:1/far","created_at":1795312382182121,"updated_at":1795312382182121,"timeout_us":10000000,"firing":"1-2"}', NULL);
INSERT INTO "timers" VALUES (2, 3, 1795312382252114, X'4C1010E6C6DB50849C94FAF6E26B5C4F', NULL, NULL, X'0000000000000001FD26AABCCE314B5E96C27C5A77BB97DC0000000000000006', 'paused', 'due', NULL, '{"v":1,"namespace":"paused","id":"due","execute_at":1795312382252114,"url":"http://127.0.0.1:41799/hook","created_at":1795312382252114,"updated_at":1795312382252114,"payload":{"n": 2},"timeout_us":10000000,"firing":"1-5"}', 'namespace:paused');
INSERT INTO "timers" VALUES (3, 1, 0, X'', 1, X'FD26AABCCE314B5E96C27C5A77BB97DC', NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO "timers" VALUES (3, 2, 2127470400000000, X'090AFA5109705025BB64CA781A202034', NULL, NULL, X'0000000000000001FD26AABCCE314B5E96C27C5A77BB97DC0000000000000002', 'kept', 'policy-of-defaults', NULL, '{"v":1,"namespace":"kept","id":"policy-of-defaults","execute_at":2127470400000000,"url":"http://127.0.0.1:1/far","created_at":1795312382180975,"updated_at":1795312382180975,"retry":{},"timeout_us":10000000,"firing":"1-2"}', NULL);
INSERT INTO "timers" VALUES (3, 2, 2127470400000000, X'8EA4937FF4D057C0B42DE867E299008A', NULL, NULL, X'0000000000000001FD26AABCCE314B5E96C27C5A77BB97DC0000000000000001', 'kept', 'každý', 'euorders', '{"v":1,"namespace":"kept","id":"každý","execute_at":2127470400000000,"url":"http://127.0.0.1:1/far","created_at":1795312382179645,"updated_at":1795312382179645,"payload":{"text": "\u017elu\u0165ou\u010dk\u00fd \u2028 \ud83d\udd14", "n": 12345678901234567890, "deep": [[[{}]]]},"method":"PUT","headers":{"x-order":"17","authorization":"Bearer of-the-receiver"},"retry":{"max_attempts":7},"timeout_us":20000000,"tags":["eu","orders"],"firing":"1-1"}', NULL);
INSERT INTO "history" VALUES (3, 1795312382253744, X'14B199AB6FE951A4BF0275489981076E', X'0000000000000001FD26AABCCE314B5E96C27C5A77BB97DC0000000000000003', 'kept', 'done', NULL, '{"v":1,"namespace":"kept","id":"done","execute_at":1795312382253744,"url":"http://127.0.0.1:41799/hook","created_at":1795312382253744,"updated_at":1795312382255382,"payload":{"status": 200},"timeout_us":10000000,"firing":"1-3","attempts":1,"first_attempt_at":1795312382254905,"attempt_log":[{"at":1795312382254905,"duration_us":339,"status":200}],"status":"completed","executed_at":1795312382255382}', 'completed', 1795312382255382, 2110672382255382);
INSERT INTO "history" VALUES (3, 1795312382255246, X'6920AC1B269A5345867214287E8DF22C', X'0000000000000001FD26AABCCE314B5E96C27C5A77BB97DC0000000000000004', 'kept', 'refused', NULL, '{"v":1,"namespace":"kept","id":"refused","execute_at":1795312382255246,"url":"http://127.0.0.1:41799/hook","created_at":1795312382255246,"updated_at":1795312382256821,"payload":{"status": 400},"timeout_us":10000000,"firing":"1-4","attempts":1,"first_attempt_at":1795312382256315,"last_error":"HTTP_400","attempt_log":[{"at":1795312382256315,"duration_us":394,"status":400,"error":"HTTP_400"}],"status":"failed","executed_at":1795312382256821}', 'failed', 1795312382256821, 2110672382256821);
INSERT INTO "history" VALUES (3, 2127470400000000, X'2BE0567F535D5973A405B665ACDCA509', X'0000000000000001FD26AABCCE314B5E96C27C5A77BB97DC0000000000000006', 'kept', 'canceled', NULL, '{"v":1,"namespace":"kept","id":"canceled","execute_at":2127470400000000,"url":"http://127.0.0.1:1/far","created_at":1795312382323553,"updated_at":1795312382325651,"timeout_us":10000000,"firing":"1-5","status":"canceled"}', 'canceled', 1795312382325651, 2110672382325651);
INSERT INTO "members" VALUES (X'FD26AABCCE314B5E96C27C5A77BB97DC', 'vm:43249', 'http://127.0.0.1:43249', 4);
INSERT INTO "namespaces" VALUES ('default', '{"name":"default","num_shards":4,"created_at":1795312382075546,"updated_at":1795312382075546,"history":"all","retention_us":259200000000,"secret":null,"paused":false}');
INSERT INTO "namespaces" VALUES ('kept', '{"name":"kept","num_shards":2,"created_at":1795312382174668,"updated_at":1795312382174668,"history":"all","retention_us":315360000000000,"secret":"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw","paused":false}');
INSERT INTO "namespaces" VALUES ('paused', '{"name":"paused","num_shards":4,"created_at":1795312382176947,"updated_at":1795312382251010,"history":"all","retention_us":315360000000000,"secret":"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw","paused":true}');
INSERT INTO "api_keys" VALUES ('a5787361ae18', '{"key_id":"a5787361ae18","hash":"1ba9985b88dcc3408c7a60fd32caac567ad1609072426366695fb3e6633b49fd","role":"admin","namespaces":[],"tenants":[],"created_at":1795312382645854,"note":""}');
INSERT INTO "meta" VALUES ('total_shards', 4);
INSERT INTO "secrets" VALUES ('cluster', 'af6fb492b99e88e9b116f86ea09f71ec6a20e387e40461733b3c0976b2f88d75');
CREATE UNIQUE INDEX timers_by_uuid ON timers (shard_id, timer_uuid);
CREATE UNIQUE INDEX history_by_uuid ON history (shard_id, timer_uuid, timer_generation);
CREATE INDEX history_by_expiry ON history (timer_expires_at);
