-- readable from: 7
--
-- Schedules are timers of a namespace's name followed by "/schedule". They are listed by their ids.
CREATE INDEX timers_schedules ON timers (timer_namespace, timer_id) WHERE substr(timer_namespace, -9) = '/schedule';
