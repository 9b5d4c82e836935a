package tocsin

import (
	"context"
	"iter"
)

// Schedules call a URL at the instants of a cron expression, or at intervals.
type Schedules struct{ part }

// Create creates a schedule, or changes the one with this id to this definition; an identical one writes nothing. Call it on each
// start of your program. Give one of Cron and Every.
func (s *Schedules) Create(ctx context.Context, schedule CreateSchedule) (*Schedule, error) {
	create := &call{operation: "createSchedule", body: constant(schedule)}
	return update[Schedule](ctx, &s.part, create, scheduleNamed("getSchedule", schedule.Namespace, schedule.ID))
}

// Get returns the schedule, also one that has ended and is retained. ErrScheduleNotFound: there is none.
func (s *Schedules) Get(ctx context.Context, namespace, scheduleID string) (*Schedule, error) {
	return ask[Schedule](ctx, &s.part, scheduleNamed("getSchedule", namespace, scheduleID))
}

// Update changes the given fields; those that are absent stay, and null removes. ErrScheduleEnded: it has no more instants.
func (s *Schedules) Update(ctx context.Context, change UpdateSchedule) (*Schedule, error) {
	call := &call{operation: "updateSchedule", body: constant(change)}
	return update[Schedule](ctx, &s.part, call, scheduleNamed("getSchedule", change.Namespace, change.ScheduleID))
}

// Delete ends the schedule. ErrScheduleEnded: it had ended before.
func (s *Schedules) Delete(ctx context.Context, namespace, scheduleID string) error {
	return s.deleteSchedule(ctx, DeleteSchedule{Namespace: namespace, ScheduleID: scheduleID})
}

// DeleteVersion is Delete of this version only. ErrVersionConflict: the schedule has another one.
func (s *Schedules) DeleteVersion(ctx context.Context, namespace, scheduleID string, version int) error {
	return s.deleteSchedule(ctx, DeleteSchedule{Namespace: namespace, ScheduleID: scheduleID, ExpectedVersion: Some(version)})
}

func (s *Schedules) deleteSchedule(ctx context.Context, schedule DeleteSchedule) error {
	remove := &call{operation: "deleteSchedule", body: constant(schedule)}
	get := scheduleNamed("getSchedule", schedule.Namespace, schedule.ScheduleID)
	return s.delete(ctx, remove, get, func(answer *reply) (bool, error) {
		schedule, err := readJSON[Schedule](answer)
		return err == nil && schedule.Status == ScheduleStatusEnded, err
	})
}

// List reads all schedules that match; query.Limit is the size of a page.
func (s *Schedules) List(ctx context.Context, query ListSchedules) iter.Seq2[*Schedule, error] {
	return elements(s.ListPages(ctx, query))
}

// ListPages is List by the page.
func (s *Schedules) ListPages(ctx context.Context, query ListSchedules) iter.Seq2[[]Schedule, error] {
	return pages(ctx, func(ctx context.Context, cursor string) ([]Schedule, string, error) {
		if cursor != "" {
			query.Cursor = cursor
		}
		page, err := ask[SchedulePage](ctx, &s.part, &call{operation: "listSchedules", body: constant(query)})
		if err != nil {
			return nil, "", err
		}
		return page.Schedules, page.NextCursor, nil
	})
}

// Pause skips all instants until it is resumed. An attempt in flight ends; none is retried.
func (s *Schedules) Pause(ctx context.Context, namespace, scheduleID string) (*Schedule, error) {
	return ask[Schedule](ctx, &s.part, scheduleNamed("pauseSchedule", namespace, scheduleID))
}

// Resume goes on with the next instant.
func (s *Schedules) Resume(ctx context.Context, namespace, scheduleID string) (*Schedule, error) {
	return ask[Schedule](ctx, &s.part, scheduleNamed("resumeSchedule", namespace, scheduleID))
}

// Trigger fires once, now. It is not repeated after a lost answer, since that could fire twice: the *TransportError has
// MaybeDone.
func (s *Schedules) Trigger(ctx context.Context, namespace, scheduleID string) (*Schedule, error) {
	trigger := scheduleNamed("triggerSchedule", namespace, scheduleID)
	trigger.once = true
	return ask[Schedule](ctx, &s.part, trigger)
}

// Backfill fires the instants of a time in the past. It is not repeated after a lost answer, as in Trigger.
func (s *Schedules) Backfill(ctx context.Context, times BackfillSchedule) (*Schedule, error) {
	return ask[Schedule](ctx, &s.part, &call{operation: "backfillSchedule", body: constant(times), once: true})
}

// Replay fires failed occurrences again, each under its own webhook-id. It is not repeated after a lost answer, as in Trigger.
func (s *Schedules) Replay(ctx context.Context, wanted ReplaySchedule) (*Schedule, error) {
	return ask[Schedule](ctx, &s.part, &call{operation: "replaySchedule", body: constant(wanted), once: true})
}

// Preview returns the next instants of an existing schedule, or of a definition that is only tried.
func (s *Schedules) Preview(ctx context.Context, query PreviewSchedule) (*Preview, error) {
	return ask[Preview](ctx, &s.part, &call{operation: "previewSchedule", body: constant(query)})
}

// History reads the schedule's occurrences, newest first.
func (s *Schedules) History(ctx context.Context, query ScheduleHistory) iter.Seq2[*OccurrenceRun, error] {
	return elements(s.HistoryPages(ctx, query))
}

// HistoryPages is History by the page.
func (s *Schedules) HistoryPages(ctx context.Context, query ScheduleHistory) iter.Seq2[[]OccurrenceRun, error] {
	return pages(ctx, func(ctx context.Context, cursor string) ([]OccurrenceRun, string, error) {
		if cursor != "" {
			query.Cursor = cursor
		}
		page, err := ask[OccurrencePage](ctx, &s.part, &call{operation: "scheduleHistory", body: constant(query)})
		if err != nil {
			return nil, "", err
		}
		return page.Occurrences, page.NextCursor, nil
	})
}

func scheduleNamed(operation, namespace, scheduleID string) *call {
	return &call{operation: operation, body: constant(ScheduleName{Namespace: namespace, ScheduleID: scheduleID})}
}
