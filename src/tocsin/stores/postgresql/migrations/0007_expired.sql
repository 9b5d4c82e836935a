-- The status of a finished timer may also be 'expired'. NOT VALID: rows that satisfied the former constraint need not be read
-- again, with the table locked.
ALTER TABLE history
  DROP CONSTRAINT history_timer_status_check,
  ADD CONSTRAINT history_timer_status_check
    CHECK (timer_status IN ('completed', 'failed', 'canceled', 'expired')) NOT VALID;
