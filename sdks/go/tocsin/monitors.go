package tocsin

import (
	"context"
	"encoding/json"
	"iter"
	"strings"
	"time"
)

const (
	// errorBytesMax is how much of an error Run reports.
	errorBytesMax = 2_000
	// reportTimeout bounds how long a server that is not reached delays a job, before it and after it.
	reportTimeout = 5 * time.Second
)

// Monitors know when jobs should report, and notify when one does not.
type Monitors struct{ part }

// Put creates the monitor, or replaces its definition; give one of Cron and Every. The answer that creates it has its PingURL, which
// is never shown again; that of a schedule has none. So it is not repeated after a lost answer: the *TransportError has MaybeDone,
// and Rotate makes another. ErrVersionConflict: it has not the expected version.
func (m *Monitors) Put(ctx context.Context, monitor PutMonitor) (*MonitorPut, error) {
	_, versioned := monitor.ExpectedVersion.Get()
	safe := monitor.DryRun || monitor.Schedule != "" && !versioned
	return ask[MonitorPut](ctx, &m.part, &call{operation: "putMonitor", body: constant(monitor), once: !safe})
}

// Get returns the monitor. ErrMonitorNotFound: there is none.
func (m *Monitors) Get(ctx context.Context, namespace, id string) (*Monitor, error) {
	return m.ask(ctx, "getMonitor", MonitorName{Namespace: namespace, ID: id})
}

// List reads the monitors that match; query.Limit is the size of a page.
func (m *Monitors) List(ctx context.Context, query ListMonitors) iter.Seq2[*Monitor, error] {
	return elements(m.ListPages(ctx, query))
}

// ListPages is List by the page.
func (m *Monitors) ListPages(ctx context.Context, query ListMonitors) iter.Seq2[[]Monitor, error] {
	return pages(ctx, func(ctx context.Context, cursor string) ([]Monitor, string, error) {
		if cursor != "" {
			query.Cursor = cursor
		}
		page, err := ask[MonitorPage](ctx, &m.part, &call{operation: "listMonitors", body: constant(query)})
		if err != nil {
			return nil, "", err
		}
		return page.Monitors, page.NextCursor, nil
	})
}

// Pause expects nothing until Resume. ErrMonitorNotFound: there is no such monitor.
func (m *Monitors) Pause(ctx context.Context, namespace, id string) (*Monitor, error) {
	return m.ask(ctx, "pauseMonitor", MonitorName{Namespace: namespace, ID: id})
}

// Resume expects reports again, from the next instant on. ErrMonitorNotFound: there is no such monitor.
func (m *Monitors) Resume(ctx context.Context, namespace, id string) (*Monitor, error) {
	return m.ask(ctx, "resumeMonitor", MonitorName{Namespace: namespace, ID: id})
}

// Rotate replaces the ping URL: the former one is refused from the answer on. ErrMonitorNotFound: there is no such monitor.
func (m *Monitors) Rotate(ctx context.Context, namespace, id string) (*MonitorRotated, error) {
	name := MonitorName{Namespace: namespace, ID: id}
	return ask[MonitorRotated](ctx, &m.part, &call{operation: "rotateMonitor", body: constant(name)})
}

// Delete deletes the monitor with its history. ErrMonitorNotFound: there is no such monitor.
func (m *Monitors) Delete(ctx context.Context, namespace, id string) error {
	return m.deleteMonitor(ctx, DeleteMonitor{Namespace: namespace, ID: id})
}

// DeleteVersion is Delete of this version only. ErrVersionConflict: the monitor has another one.
func (m *Monitors) DeleteVersion(ctx context.Context, namespace, id string, version int) error {
	return m.deleteMonitor(ctx, DeleteMonitor{Namespace: namespace, ID: id, ExpectedVersion: Some(version)})
}

func (m *Monitors) deleteMonitor(ctx context.Context, monitor DeleteMonitor) error {
	remove := &call{operation: "deleteMonitor", body: constant(monitor)}
	get := &call{operation: "getMonitor", body: constant(MonitorName{Namespace: monitor.Namespace, ID: monitor.ID})}
	return m.delete(ctx, remove, get, func(*reply) (bool, error) { return false, nil })
}

// Ping reports that the job has begun, succeeded or failed. ErrMonitorNotFound: there is no such monitor.
func (m *Monitors) Ping(ctx context.Context, ping PingMonitor) (*Monitor, error) {
	return m.ask(ctx, "pingMonitor", ping)
}

// History reads the monitor's periods, newest first; query.Limit is the size of a page.
func (m *Monitors) History(ctx context.Context, query MonitorHistory) iter.Seq2[*MonitorPeriod, error] {
	return elements(m.HistoryPages(ctx, query))
}

// HistoryPages is History by the page.
func (m *Monitors) HistoryPages(ctx context.Context, query MonitorHistory) iter.Seq2[[]MonitorPeriod, error] {
	return pages(ctx, func(ctx context.Context, cursor string) ([]MonitorPeriod, string, error) {
		if cursor != "" {
			query.Cursor = cursor
		}
		page, err := ask[MonitorPeriods](ctx, &m.part, &call{operation: "monitorHistory", body: constant(query)})
		if err != nil {
			return nil, "", err
		}
		return page.Periods, page.NextCursor, nil
	})
}

// Run calls the job and reports its beginning and its end, and returns the job's error. A panic is reported as a failure. A report
// that can't be sent within 5 s is logged, and changes nothing else. Reports are also sent when the context has ended by then.
func (m *Monitors) Run(ctx context.Context, namespace, id string, job func(context.Context) error) (err error) {
	m.report(ctx, PingMonitor{Namespace: namespace, ID: id, Event: PingEventStart})
	end := PingMonitor{Namespace: namespace, ID: id, Event: PingEventFail, Body: "panic"}
	defer func() { m.report(ctx, end) }()
	err = job(ctx)
	if err == nil {
		end.Event, end.Body = PingEventSuccess, ""
	} else {
		reason := err.Error()
		// Errors can have any bytes, and the cut can be inside a character: no request can contain that.
		end.Body = strings.ToValidUTF8(reason[:min(len(reason), errorBytesMax)], "")
	}
	return err
}

func (m *Monitors) report(ctx context.Context, ping PingMonitor) {
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), reportTimeout)
	defer cancel()
	if _, err := m.Ping(limited, ping); err != nil {
		m.session.logger().Warn("report to monitor not delivered", "namespace", ping.Namespace, "id", ping.ID, "event", ping.Event, "error", err)
	}
}

func (m *Monitors) ask(ctx context.Context, operation string, body json.Marshaler) (*Monitor, error) {
	answer, err := ask[MonitorAnswer](ctx, &m.part, &call{operation: operation, body: constant(body)})
	if err != nil {
		return nil, err
	}
	return &answer.Monitor, nil
}
