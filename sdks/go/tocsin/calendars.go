package tocsin

import (
	"context"
	"iter"
)

// Calendars are dates by name, such as holidays, that schedules skip, or on which alone they fire.
type Calendars struct{ part }

// Put creates the calendar, or replaces all that it has. From then on, no schedule fires at an instant that it excludes.
// ErrTooManyCalendars: the namespace has as many as it can have. ErrVersionConflict: it has not the expected version; 0: there must
// be none.
func (c *Calendars) Put(ctx context.Context, calendar PutCalendar) (*Calendar, error) {
	put := &call{operation: "putCalendar", body: constant(calendar)}
	return update[Calendar](ctx, &c.part, put, calendarNamed(calendar.Namespace, calendar.Name))
}

// Get returns the calendar with its dates. ErrCalendarNotFound: there is none.
func (c *Calendars) Get(ctx context.Context, namespace, name string) (*Calendar, error) {
	return ask[Calendar](ctx, &c.part, calendarNamed(namespace, name))
}

// List reads the calendars of a namespace, by name, without their dates; query.Limit is the size of a page.
func (c *Calendars) List(ctx context.Context, query ListCalendars) iter.Seq2[*CalendarSummary, error] {
	return elements(c.ListPages(ctx, query))
}

// ListPages is List by the page.
func (c *Calendars) ListPages(ctx context.Context, query ListCalendars) iter.Seq2[[]CalendarSummary, error] {
	return pages(ctx, func(ctx context.Context, cursor string) ([]CalendarSummary, string, error) {
		if cursor != "" {
			query.Cursor = cursor
		}
		page, err := ask[CalendarPage](ctx, &c.part, &call{operation: "listCalendars", body: constant(query)})
		if err != nil {
			return nil, "", err
		}
		return page.Calendars, page.NextCursor, nil
	})
}

// Delete deletes a calendar. ErrCalendarNotFound: there is none. ErrCalendarInUse: schedules name it.
func (c *Calendars) Delete(ctx context.Context, namespace, name string) error {
	return c.deleteCalendar(ctx, DeleteCalendar{Namespace: namespace, Name: name})
}

// DeleteVersion is Delete of this version only. ErrVersionConflict: the calendar has another one.
func (c *Calendars) DeleteVersion(ctx context.Context, namespace, name string, version int) error {
	return c.deleteCalendar(ctx, DeleteCalendar{Namespace: namespace, Name: name, ExpectedVersion: Some(version)})
}

func (c *Calendars) deleteCalendar(ctx context.Context, calendar DeleteCalendar) error {
	remove := &call{operation: "deleteCalendar", body: constant(calendar)}
	return c.delete(ctx, remove, calendarNamed(calendar.Namespace, calendar.Name), func(*reply) (bool, error) { return false, nil })
}

func calendarNamed(namespace, name string) *call {
	return &call{operation: "getCalendar", body: constant(CalendarId{Namespace: namespace, Name: name})}
}
