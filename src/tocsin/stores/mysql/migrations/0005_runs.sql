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
