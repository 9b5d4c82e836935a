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
