package receiver

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"
)

// Dialect is how a database writes parameters.
type Dialect int

// The databases that Dedup knows.
const (
	SQLite Dialect = iota
	PostgreSQL
)

var tableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)?$`)

// Transactions runs work in transactions of your own database library, as Tx. It is for SQLite and PostgreSQL.
type Transactions[Tx any] interface {
	// Run calls work with a transaction, which commits if work returns nil, and rolls back after an error or a panic. It returns
	// the error of work or of the commit.
	Run(ctx context.Context, work func(ctx context.Context, tx Tx) error) error
	// Execute executes a statement in the transaction, and returns how many rows it wrote. Parameters are written as $1, $2.
	Execute(ctx context.Context, tx Tx, statement string, parameters ...any) (int64, error)
	// Text returns the only value of the only row of a query in the transaction, a text.
	Text(ctx context.Context, tx Tx, query string, parameters ...any) (string, error)
}

// Dedup is DedupIn with database/sql.
type Dedup = DedupIn[*sql.Tx]

// DedupIn remembers firings and their answers in the table tocsin_firings, in the transaction that does the work: both are there,
// or neither.
type DedupIn[Tx any] struct {
	transactions Transactions[Tx]
	table        string
	err          error
}

// NewDedup keeps firings in this database. See NewDedupIn for other libraries than database/sql, and for transactions that your
// program begins itself.
func NewDedup(db *sql.DB, dialect Dialect) *Dedup {
	return NewDedupIn[*sql.Tx](sqlTransactions{db, dialect})
}

// NewDedupIn keeps firings where these transactions take place.
func NewDedupIn[Tx any](transactions Transactions[Tx]) *DedupIn[Tx] {
	return &DedupIn[Tx]{transactions: transactions, table: "tocsin_firings"}
}

// WithTable returns a Dedup with another table, such as jobs.tocsin_firings.
func (d *DedupIn[Tx]) WithTable(table string) *DedupIn[Tx] {
	changed := &DedupIn[Tx]{transactions: d.transactions, table: table}
	if !tableName.MatchString(table) {
		changed.err = fmt.Errorf("table: %q is not a table's name, such as tocsin_firings or jobs.tocsin_firings", table)
	}
	return changed
}

// CreateTable creates the table if it isn't there.
func (d *DedupIn[Tx]) CreateTable(ctx context.Context) error {
	_, err := d.execute(ctx, "CREATE TABLE IF NOT EXISTS %s (webhook_id TEXT PRIMARY KEY, answer TEXT, handled_at BIGINT NOT NULL)")
	return err
}

// Forget removes the firings that were handled longer ago, and returns how many: 7 days are usual. Keep them for longer than a
// timer's retries can take, and than the age of a backup of the server that you might restore.
func (d *DedupIn[Tx]) Forget(ctx context.Context, olderThan time.Duration) (int64, error) {
	return d.execute(ctx, "DELETE FROM %s WHERE handled_at < $1", time.Now().Add(-olderThan).Unix())
}

// execute executes a statement in a transaction of its own.
func (d *DedupIn[Tx]) execute(ctx context.Context, statement string, parameters ...any) (written int64, err error) {
	if d.err != nil {
		return 0, d.err
	}
	err = d.transactions.Run(ctx, func(ctx context.Context, tx Tx) (err error) {
		written, err = d.transactions.Execute(ctx, tx, d.statement(statement), parameters...)
		return err
	})
	return written, err
}

var errNotDone = errors.New("the work was not done")

// Once calls work with a transaction, and commits what it did together with its answer. A repetition of the firing gets this
// answer again, and work is not called. Retry and Fail, like an error, roll back and store nothing: when the timer is replayed, work
// is called again. Work must not commit.
func (d *DedupIn[Tx]) Once(
	ctx context.Context, firing *Firing, work func(ctx context.Context, tx Tx) (Answer, error),
) (Answer, error) {
	if d.err != nil {
		return Answer{}, d.err
	}
	var decided Answer
	undone := false
	err := d.transactions.Run(ctx, func(ctx context.Context, tx Tx) error {
		kept, repeated, err := d.begin(ctx, tx, firing)
		if err != nil || repeated {
			decided = kept
			return err
		}
		if decided, err = work(ctx, tx); err == nil {
			err = decided.check()
		}
		if err != nil {
			return err
		}
		undone = decided.status == http.StatusServiceUnavailable || decided.status == http.StatusUnprocessableEntity
		if undone {
			return errNotDone
		}
		text, err := decided.text()
		if err != nil {
			return err
		}
		update := d.statement("UPDATE %s SET answer = $1 WHERE webhook_id = $2")
		_, err = d.transactions.Execute(ctx, tx, update, text, firing.WebhookID)
		return err
	})
	if undone && errors.Is(err, errNotDone) {
		err = nil
	}
	return decided, err
}

// begin stores the firing, or returns the answer of an earlier one.
func (d *DedupIn[Tx]) begin(ctx context.Context, tx Tx, firing *Firing) (kept Answer, repeated bool, err error) {
	insert := d.statement("INSERT INTO %s (webhook_id, handled_at) VALUES ($1, $2) ON CONFLICT DO NOTHING")
	written, err := d.transactions.Execute(ctx, tx, insert, firing.WebhookID, time.Now().Unix())
	if err != nil || written > 0 {
		return Answer{}, false, err
	}
	query := d.statement("SELECT COALESCE(answer, '') FROM %s WHERE webhook_id = $1")
	text, err := d.transactions.Text(ctx, tx, query, firing.WebhookID)
	if err != nil {
		return Answer{}, false, err
	}
	if text == "" {
		return Answer{}, false, fmt.Errorf("firing %s has no answer: something else wrote %s", firing.WebhookID, d.table)
	}
	kept, err = answerOf(text)
	return kept, true, err
}

func (d *DedupIn[Tx]) statement(text string) string { return strings.Replace(text, "%s", d.table, 1) }

// sqlTransactions are those of database/sql.
type sqlTransactions struct {
	db      *sql.DB
	dialect Dialect
}

func (s sqlTransactions) Run(ctx context.Context, work func(context.Context, *sql.Tx) error) (err error) {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	committed := false
	defer func() {
		if !committed { // also after a panic
			if failed := tx.Rollback(); failed != nil && !errors.Is(failed, sql.ErrTxDone) {
				err = errors.Join(err, failed)
			}
		}
	}()
	if err := work(ctx, tx); err != nil {
		return err
	}
	err = tx.Commit()
	committed = err == nil
	return err
}

func (s sqlTransactions) Execute(ctx context.Context, tx *sql.Tx, statement string, parameters ...any) (int64, error) {
	done, err := tx.ExecContext(ctx, s.written(statement), parameters...)
	if err != nil {
		return 0, err
	}
	return done.RowsAffected()
}

func (s sqlTransactions) Text(ctx context.Context, tx *sql.Tx, query string, parameters ...any) (text string, err error) {
	err = tx.QueryRowContext(ctx, s.written(query), parameters...).Scan(&text)
	return text, err
}

// SQLite takes $1 for a name. The statements of Dedup have their parameters in order.
var questionMarks = strings.NewReplacer("$1", "?", "$2", "?")

func (s sqlTransactions) written(statement string) string {
	if s.dialect == SQLite {
		return questionMarks.Replace(statement)
	}
	return statement
}
