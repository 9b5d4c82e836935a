package tocsin

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"tocsin.dev/go/internal/rules"
)

// Dialect is what the SQL of databases differs by.
type Dialect string

// The databases that an outbox can be in.
const (
	PostgreSQL Dialect = rules.PostgreSQL
	MySQL      Dialect = rules.MySQL
	SQLite     Dialect = rules.SQLite
)

// OutboxTable is the usual name of the table.
const OutboxTable = "tocsin_outbox"

const (
	// For so long nobody else takes the rows that a drain has taken. A drain that is killed leaves them waiting for it.
	outboxLease = time.Minute
	// Between the tries of a row that is refused for the moment: half of its age, within these bounds.
	minRowPause, maxRowPause = time.Second, time.Minute
	// Of a reason, which has the server's message.
	maxReasonBytes = 1_000
)

// Outbox writes timers as rows in a transaction that your program has open. A Drain creates them after the commit.
type Outbox struct {
	execute func(ctx context.Context, statement string, parameters ...any) error
	table   rules.OutboxTable
	err     error
}

// SQLTransaction is what is used of an *sql.Tx, or of an *sql.Conn with an open transaction.
type SQLTransaction interface {
	ExecContext(ctx context.Context, statement string, parameters ...any) (sql.Result, error)
}

// NewOutbox writes in a transaction of database/sql. An *sql.DB is none.
func NewOutbox(tx SQLTransaction, dialect Dialect) *Outbox {
	o := NewOutboxFunc(func(ctx context.Context, statement string, parameters ...any) error {
		_, err := tx.ExecContext(ctx, statement, parameters...)
		return err
	}, dialect)
	if _, pool := tx.(*sql.DB); pool {
		o.err = invalidArgument(errors.New("tx: an *sql.DB is no transaction, and the row and your work need one; give the *sql.Tx"))
	}
	return o
}

// NewOutboxFunc writes in a transaction of another library, such as pgx: execute executes a statement in it.
func NewOutboxFunc(
	execute func(ctx context.Context, statement string, parameters ...any) error, dialect Dialect,
) *Outbox {
	table, err := newOutboxTable(OutboxTable, dialect)
	return &Outbox{execute, table, err}
}

// WithTable returns an Outbox with another table, such as jobs.tocsin_outbox.
func (o *Outbox) WithTable(name string) *Outbox {
	table, err := newOutboxTable(name, Dialect(o.table.Dialect))
	return &Outbox{o.execute, table, errors.Join(o.err, err)}
}

// Create writes a timer to create as a row, and returns the row's id, which is the timer's idempotency key. If the transaction
// commits, a drain creates the timer; if it rolls back, there was none. A delay counts from this call.
func (o *Outbox) Create(ctx context.Context, timer CreateTimer) (string, error) {
	if o.err != nil {
		return "", o.err
	}
	request, err := requestOf(timer)
	if err != nil {
		return "", err
	}
	now := time.Now()
	id := rules.NewRowID(now)
	return id, o.execute(ctx, o.table.Written(o.table.Insert()), id, timer.Namespace, timer.ID, request, now.UnixMicro())
}

// requestOf is the JSON of a row.
func requestOf(timer CreateTimer) (string, error) {
	if timer.IdempotencyKey != "" {
		return "", invalidArgument(errors.New("idempotency key: is the id of the row; leave it out"))
	}
	encoded, err := timer.MarshalJSON()
	if err != nil {
		return "", invalidArgument(fmt.Errorf("timer %q: %w", timer.ID, err))
	}
	return string(encoded), nil
}

// isFinal reports whether the timer would be refused again. What an operator or a new release of the server mends is not final.
func isFinal(err error) bool {
	var answered *APIError
	if errors.As(err, &answered) {
		return rules.IsFinal(answered.Status, answered.Code)
	}
	return errors.Is(err, ErrInvalidArgument)
}

func newOutboxTable(name string, dialect Dialect) (rules.OutboxTable, error) {
	table, err := rules.NewOutboxTable(name, string(dialect))
	if err != nil {
		err = invalidArgument(err)
	}
	return table, err
}
