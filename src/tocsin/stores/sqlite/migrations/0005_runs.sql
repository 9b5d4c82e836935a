-- Runs that ended while their timers went on, clustered by timer, in their order.
CREATE TABLE runs (
  shard_id INTEGER NOT NULL,
  run_uuid BLOB NOT NULL CHECK (length(run_uuid) = 16),
  run_generation BLOB NOT NULL CHECK (length(run_generation) = 32),
  -- JSON text as the engine wrote it; ANY, so that a record that is not valid text is kept unchanged.
  run_record ANY NOT NULL,
  run_expires_at INTEGER NOT NULL,
  PRIMARY KEY (shard_id, run_uuid, run_generation)
) STRICT, WITHOUT ROWID;

CREATE INDEX runs_by_expiry ON runs (run_expires_at);
