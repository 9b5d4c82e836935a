-- readable from: 6
--
-- Schedules are timers of a namespace's name followed by "/schedule". No index can have them alone, so this table has their
-- ids in order. Its rows are hints: a list reads what the timers' rows are, and one without a timer's row is ignored.
CREATE TABLE IF NOT EXISTS schedules (
  schedule_namespace varbinary(264) NOT NULL,
  schedule_id varbinary(1020) NOT NULL,
  schedule_shard int NOT NULL,
  schedule_uuid binary(16) NOT NULL,
  PRIMARY KEY (schedule_namespace, schedule_id)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;
