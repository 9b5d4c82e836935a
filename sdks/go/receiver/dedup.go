package receiver

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
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

// Dedup remembers firings and their answers in the table tocsin_firings, in the transaction that does the work: both are there,
// or neither.
type Dedup struct {
	db      *sql.DB
	dialect Dialect
	table   string
	err     error
}

// NewDedup keeps firings in this database.
func NewDedup(db *sql.DB, dialect Dialect) *Dedup {
	return &Dedup{db: db, dialect: dialect, table: "tocsin_firings"}
}

// WithTable returns a Dedup with another table, such as jobs.tocsin_firings.
func (d *Dedup) WithTable(table string) *Dedup {
	changed := &Dedup{db: d.db, dialect: d.dialect, table: table}
	if !tableName.MatchString(table) {
		changed.err = fmt.Errorf("table: %q is not a table's name, such as tocsin_firings or jobs.tocsin_firings", table)
	}
	return changed
}

// CreateTable creates the table if it isn't there.
func (d *Dedup) CreateTable(ctx context.Context) error {
	if d.err != nil {
		return d.err
	}
	_, err := d.db.ExecContext(ctx, d.statement(
		"CREATE TABLE IF NOT EXISTS %s (webhook_id TEXT PRIMARY KEY, answer TEXT, handled_at BIGINT NOT NULL)",
	))
	return err
}

// Forget removes the firings that were handled longer ago, and returns how many: 7 days are usual. Keep them for longer than a
// timer's retries can take, and than the age of a backup of the server that you might restore.
func (d *Dedup) Forget(ctx context.Context, olderThan time.Duration) (int64, error) {
	if d.err != nil {
		return 0, d.err
	}
	before := time.Now().Add(-olderThan).Unix()
	removed, err := d.db.ExecContext(ctx, d.statement("DELETE FROM %s WHERE handled_at < ?"), before)
	if err != nil {
		return 0, err
	}
	return removed.RowsAffected()
}

// Once calls work with a transaction, and commits what it did together with its answer. A repetition of the firing gets this
// answer again, and work is not called. Retry, like an error, rolls back. Work must not commit.
func (d *Dedup) Once(
	ctx context.Context, firing *Firing, work func(ctx context.Context, tx *sql.Tx) (Answer, error),
) (decided Answer, err error) {
	if d.err != nil {
		return Answer{}, d.err
	}
	tx, err := d.db.BeginTx(ctx, nil)
	if err != nil {
		return Answer{}, err
	}
	committed := false
	defer func() {
		if !committed { // also after a panic
			if failed := tx.Rollback(); failed != nil && !errors.Is(failed, sql.ErrTxDone) {
				err = errors.Join(err, failed)
			}
		}
	}()
	kept, repeated, err := d.begin(ctx, tx, firing)
	if err != nil || repeated {
		return kept, err
	}
	decided, err = work(ctx, tx)
	if err == nil {
		err = decided.check()
	}
	if err != nil || decided.status == 503 {
		return decided, err
	}
	text, err := decided.text()
	if err != nil {
		return Answer{}, err
	}
	update := d.statement("UPDATE %s SET answer = ? WHERE webhook_id = ?")
	if _, err = tx.ExecContext(ctx, update, text, firing.WebhookID); err != nil {
		return Answer{}, err
	}
	err = tx.Commit()
	committed = err == nil
	return decided, err
}

// begin stores the firing, or returns the answer of an earlier one.
func (d *Dedup) begin(ctx context.Context, tx *sql.Tx, firing *Firing) (kept Answer, repeated bool, err error) {
	insert := d.statement("INSERT INTO %s (webhook_id, handled_at) VALUES (?, ?) ON CONFLICT DO NOTHING")
	inserted, err := tx.ExecContext(ctx, insert, firing.WebhookID, time.Now().Unix())
	if err != nil {
		return Answer{}, false, err
	}
	if count, err := inserted.RowsAffected(); err != nil || count > 0 {
		return Answer{}, false, err
	}
	var text sql.NullString
	row := tx.QueryRowContext(ctx, d.statement("SELECT answer FROM %s WHERE webhook_id = ?"), firing.WebhookID)
	if err := row.Scan(&text); err != nil {
		return Answer{}, false, err
	}
	if !text.Valid {
		return Answer{}, false, fmt.Errorf("firing %s has no answer: something else wrote %s", firing.WebhookID, d.table)
	}
	kept, err = answerOf(text.String)
	return kept, true, err
}

// statement has the table in place of %s, and the database's parameters in place of question marks.
func (d *Dedup) statement(text string) string {
	text = strings.Replace(text, "%s", d.table, 1)
	if d.dialect == PostgreSQL {
		for n := 1; strings.Contains(text, "?"); n++ {
			text = strings.Replace(text, "?", fmt.Sprintf("$%d", n), 1)
		}
	}
	return text
}
