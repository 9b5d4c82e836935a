-- readable from: 8
--
-- Schedules are timers of a namespace's name followed by "/schedule". They are listed by their ids, in the order of bytes.
CREATE INDEX timers_schedules ON timers (timer_namespace, timer_id COLLATE "C") WHERE right(timer_namespace, 9) = '/schedule';
