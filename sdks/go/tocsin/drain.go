package tocsin

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"tocsin.dev/go/internal/rules"
)

const (
	// How many rows a round takes.
	outboxRows = 250
	// How long one request may take, with its retries: shorter than a drain has its rows.
	outboxRequestTimeout = 15 * time.Second
	// How long the results of a round may take to be written, also if the drain is to end.
	settleTimeout = 10 * time.Second
	// After a round that failed: doubled up to the longest with each further one.
	firstDrainPause, maxDrainPause = time.Second, 30 * time.Second
)

// Drained is what became of the rows that a drain has taken.
type Drained struct {
	// Created: their timers are created, and they are deleted.
	Created int
	// Dead: the server refuses them for good; they stay in the table, with the reason.
	Dead int
	// Waiting: they are tried again later.
	Waiting int
	// Unavailable is why the server could not be asked, or did not answer; nil if it did.
	Unavailable error
}

// Drain creates the timers of an Outbox whose transactions are committed, oldest first, and deletes their rows.
//
// Any number of drains may run at once, in one process or several. A timer's rows are sent one after another. What the server
// refuses for good stays in the table with its dead_reason.
//
// Each row is sent with its id as idempotency key, so that a row that is sent again, after a crash or a lost answer, fires once.
// Idempotency keys expire 24 hours after the timer has ended: a row that is sent again later fires twice.
type Drain struct {
	client *Client
	db     *sql.DB
	table  rules.OutboxTable
	rows   int
	err    error
}

// NewDrain drains the table in this database. With pgx, use its package stdlib: stdlib.OpenDBFromPool(pool).
func NewDrain(client *Client, db *sql.DB, dialect Dialect) *Drain {
	table, err := newOutboxTable(OutboxTable, dialect)
	return &Drain{client.With(WithTimeout(outboxRequestTimeout)), db, table, outboxRows, err}
}

// WithTable returns a Drain of another table, such as jobs.tocsin_outbox.
func (d *Drain) WithTable(name string) *Drain {
	changed := *d
	var err error
	changed.table, err = newOutboxTable(name, Dialect(d.table.Dialect))
	changed.err = errors.Join(d.err, err)
	return &changed
}

// WithRows returns a Drain that takes so many rows in a round, at most 1,000; the default is 250.
func (d *Drain) WithRows(rows int) *Drain {
	changed := *d
	changed.rows = rows
	if rows < 1 || rows > maxBatchItems {
		err := fmt.Errorf("rows: %d is not between 1 and %d, which fit a request", rows, maxBatchItems)
		changed.err = errors.Join(d.err, invalidArgument(err))
	}
	return &changed
}

// CreateTable creates the table if it isn't there.
func (d *Drain) CreateTable(ctx context.Context) error {
	if d.err != nil {
		return d.err
	}
	_, err := d.db.ExecContext(ctx, d.table.Create())
	return err
}

// Run drains until the context ends, whose error it returns. It looks for rows every so often; while there are some it makes no
// pauses, and while the server or the database is away, they grow up to 30 s.
func (d *Drain) Run(ctx context.Context, every time.Duration) error {
	for failures := 0; ctx.Err() == nil; {
		drained, err := d.Once(ctx)
		if errors.Is(err, ErrInvalidArgument) {
			return err
		}
		pause := time.Duration(0)
		switch err = errors.Join(err, drained.Unavailable); {
		case err != nil && ctx.Err() == nil:
			pause = min(firstDrainPause<<min(failures, 10), maxDrainPause)
			failures++
			d.client.session.logger().Warn("outbox not drained", "error", err, "next try in", pause)
		case drained.Dead > 0:
			d.client.session.logger().Error("outbox rows dead; see dead_reason in the table", "rows", drained.Dead)
		case drained.Created+drained.Waiting == 0:
			failures, pause = 0, every
		default:
			failures = 0
		}
		if pause > 0 {
			sleep(ctx, pause)
		}
	}
	return ctx.Err()
}

// Once creates the timers of a round's rows. The error is the database's; what the server or the network does is in Drained.
func (d *Drain) Once(ctx context.Context) (Drained, error) {
	if err := errors.Join(d.err, d.client.err); err != nil {
		return Drained{}, err
	}
	var rows []rules.OutboxRow
	dueAt := time.Now().Add(outboxLease).UnixMicro()
	err := d.transaction(ctx, func(tx *sql.Tx) (err error) {
		rows, err = d.take(ctx, tx, dueAt)
		return err
	})
	if err != nil || len(rows) == 0 {
		return Drained{}, err
	}
	r := round{drain: d}
	r.send(ctx, rows)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	err = d.transaction(ctx, func(tx *sql.Tx) error { return d.settle(ctx, tx, &r, dueAt) })
	return Drained{len(r.created), len(r.dead), len(r.waiting), r.unavailable}, err
}

func (d *Drain) transaction(ctx context.Context, work func(*sql.Tx) error) error {
	tx, err := d.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := work(tx); err != nil {
		if failed := tx.Rollback(); failed != nil && !errors.Is(failed, sql.ErrTxDone) {
			err = errors.Join(err, failed)
		}
		return err
	}
	return tx.Commit()
}

func (d *Drain) take(ctx context.Context, tx *sql.Tx, dueAt int64) (rows []rules.OutboxRow, err error) {
	parameters := []any{dueAt, time.Now().UnixMicro()}
	if d.table.Dialect == rules.MySQL {
		parameters = parameters[1:]
	}
	found, err := tx.QueryContext(ctx, d.table.Written(d.table.Take(d.rows)), parameters...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, found.Close()) }()
	for found.Next() {
		var row rules.OutboxRow
		var createdAt int64
		if err := found.Scan(&row.ID, &row.Request, &createdAt); err != nil {
			return nil, err
		}
		row.CreatedAt = time.UnixMicro(createdAt)
		rows = append(rows, row)
	}
	if err := found.Err(); err != nil {
		return nil, err
	}
	if d.table.Dialect == rules.MySQL && len(rows) > 0 {
		ids := make([]string, len(rows))
		for i, row := range rows {
			ids[i] = row.ID
		}
		if err := d.update(ctx, tx, "due_at = ? WHERE", ids, dueAt); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(rows, func(a, b rules.OutboxRow) int { return strings.Compare(a.ID, b.ID) })
	return rows, nil
}

// settle deletes what is created, marks what is dead, and leaves the rest to the next round, after a pause if the server answered.
func (d *Drain) settle(ctx context.Context, tx *sql.Tx, r *round, dueAt int64) error {
	if err := d.execute(ctx, tx, d.table.Delete(len(r.created)), r.created); err != nil {
		return err
	}
	for _, dead := range r.dead {
		if err := d.update(ctx, tx, "dead_reason = ? WHERE", []string{dead.id}, dead.reason); err != nil {
			return err
		}
	}
	now := time.Now()
	if r.unavailable == nil && len(r.waiting) > 0 {
		now = now.Add(min(max(now.Sub(r.oldest)/2, minRowPause), maxRowPause))
	}
	// Another drain has them if the lease was over: it is not to be disturbed.
	return d.update(ctx, tx, "due_at = ? WHERE due_at = ? AND", r.waiting, now.UnixMicro(), dueAt)
}

// update changes the rows, of which there may be none.
func (d *Drain) update(ctx context.Context, tx *sql.Tx, change string, ids []string, parameters ...any) error {
	return d.execute(ctx, tx, d.table.Update()+" SET "+change+" id IN ("+rules.Marks(len(ids))+")", ids, parameters...)
}

// execute executes a statement for the rows.
func (d *Drain) execute(ctx context.Context, tx *sql.Tx, statement string, ids []string, parameters ...any) error {
	if len(ids) == 0 {
		return nil
	}
	for _, id := range ids {
		parameters = append(parameters, id)
	}
	_, err := tx.ExecContext(ctx, d.table.Written(statement), parameters...)
	return err
}

// round is what the server made of the rows that were taken, as far as it was asked.
type round struct {
	drain            *Drain
	created, waiting []string
	dead             []deadRow
	oldest           time.Time
	unavailable      error
}

type deadRow struct{ id, reason string }

func (r *round) add(row rules.OutboxRow, err error) {
	switch {
	case err == nil:
		r.created = append(r.created, row.ID)
	case isFinal(err):
		reason := err.Error()
		r.dead = append(r.dead, deadRow{row.ID, strings.ToValidUTF8(reason[:min(len(reason), maxReasonBytes)], "")})
	default:
		if len(r.waiting) == 0 || row.CreatedAt.Before(r.oldest) {
			r.oldest = row.CreatedAt
		}
		r.waiting = append(r.waiting, row.ID)
	}
}

// send has the server create the timers, in requests that are small enough.
func (r *round) send(ctx context.Context, rows []rules.OutboxRow) {
	var chunk []rules.OutboxRow
	var items []*item
	size := envelopeBytes
	for _, row := range rows {
		each, err := itemOf(row)
		if err != nil {
			r.add(row, err)
			continue
		}
		if len(chunk) > 0 && size+len(each.encoded)+1 > maxBatchBytes {
			r.request(ctx, chunk, items)
			chunk, items, size = nil, nil, envelopeBytes
		}
		chunk, items, size = append(chunk, row), append(items, each), size+len(each.encoded)+1
	}
	if len(chunk) > 0 {
		r.request(ctx, chunk, items)
	}
}

func itemOf(row rules.OutboxRow) (*item, error) {
	timer, err := row.Timer(time.Now())
	if err != nil {
		return nil, invalidArgument(err)
	}
	encoded, err := timer.JSON(0)
	return &item{place: place{timer.Namespace, timer.ID}, encoded: encoded, raw: timer}, err
}

func (r *round) request(ctx context.Context, rows []rules.OutboxRow, items []*item) {
	if r.unavailable != nil {
		for _, row := range rows {
			r.add(row, r.unavailable)
		}
		return
	}
	errs := make([]error, len(items))
	r.drain.client.Timers.createChunk(ctx, items, func(i int, result ItemResult) { errs[i] = result.Err })
	whole := errs[0]
	for _, err := range errs {
		if err != whole {
			whole = nil
		}
	}
	var answered *APIError
	if errors.As(whole, &answered) && answered.ofItem { // of the only row: the server is there
		whole = nil
	}
	if whole != nil && isFinal(whole) && len(rows) > 1 {
		// One of them spoils the request: each gets an answer of its own.
		for i := range rows {
			r.request(ctx, rows[i:i+1], items[i:i+1])
		}
		return
	}
	if whole != nil && !isFinal(whole) {
		r.unavailable = whole
	}
	for i, row := range rows {
		r.add(row, errs[i])
	}
}
