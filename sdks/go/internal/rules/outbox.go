package rules

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The databases that an outbox can be in.
const (
	PostgreSQL = "postgresql"
	MySQL      = "mysql"
	SQLite     = "sqlite"
)

var tableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)?$`)

// ownCode is how the codes of Tocsin's errors are written. Others have words there, such as Not Found.
var ownCode = regexp.MustCompile(`^[A-Z][A-Z0-9_]*$`)

var lastRowID struct {
	sync.Mutex
	milliseconds int64
	count        int64
}

// NewRowID is a UUID of version 7 that is greater than the one before, so that rows are read as they were written.
func NewRowID(now time.Time) string {
	last := &lastRowID
	last.Lock()
	defer last.Unlock()
	last.count++
	if milliseconds := now.UnixMilli(); milliseconds > last.milliseconds {
		last.milliseconds, last.count = milliseconds, 0
	}
	if last.count > 0xfff {
		last.milliseconds, last.count = last.milliseconds+1, 0
	}
	id := NewUUID7(time.UnixMilli(last.milliseconds)).String()
	return fmt.Sprintf("%s%03x%s", id[:15], last.count, id[18:])
}

// OutboxRow is a row that a drain has taken.
type OutboxRow struct {
	ID, Request string
	CreatedAt   time.Time
}

// Timer is what is sent for the row: with its id as idempotency key, and with what is left of its delay.
func (r OutboxRow) Timer(now time.Time) (*RawTimer, error) {
	var sent RawTimer
	if err := json.Unmarshal([]byte(r.Request), &sent.members); err != nil || sent.members == nil {
		return nil, errors.New("request: is not a JSON object; write rows with an Outbox")
	}
	var named struct {
		Namespace, ID, Delay string
	}
	// The server reports what is wrong with them.
	_ = json.Unmarshal([]byte(r.Request), &named)
	sent.members["idempotencyKey"] = json.RawMessage(strconv.Quote(r.ID))
	if delay, err := ParseDuration(named.Delay); err == nil {
		sent.delayed, sent.delay = true, max(delay-max(now.Sub(r.CreatedAt), 0), 0)
	}
	sent.Namespace, sent.ID = named.Namespace, named.ID
	return &sent, nil
}

// RawTimer is a timer as its JSON was written.
type RawTimer struct {
	Namespace, ID string

	members map[string]json.RawMessage
	delayed bool
	delay   time.Duration
}

// JSON is what is sent so much later.
func (t *RawTimer) JSON(elapsed time.Duration) ([]byte, error) {
	if t.delayed {
		text, err := FormatDuration(max(t.delay-elapsed, 0))
		if err != nil {
			return nil, err
		}
		t.members["delay"] = json.RawMessage(strconv.Quote(text))
	}
	var written bytes.Buffer
	encoder := json.NewEncoder(&written)
	encoder.SetEscapeHTML(false) // a payload stays as it was written
	err := encoder.Encode(t.members)
	return bytes.TrimSuffix(written.Bytes(), []byte("\n")), err
}

// IsFinal reports whether a timer that is refused with this status and code would be refused again. What an operator or a new release
// of the server mends is not final, nor what has room when the timer has fired, nor what does not concern the timer: something
// else answers at the URL, such as a proxy without a backend, or the URL's path is wrong. A proxy that takes smaller bodies than
// Tocsin may take fewer rows at a time.
func IsFinal(status int, code string) bool {
	switch {
	case !ownCode.MatchString(code) || code == "ROUTE_NOT_FOUND":
		return status == 413
	case code == "COLLECTION_FULL":
		return false
	}
	switch status {
	case 401, 403, 408, 429:
		return false
	}
	return status >= 400 && status < 500
}

// OutboxTable has the statements. Their parameters are question marks, which Written changes where the database has others.
type OutboxTable struct{ Name, Dialect string }

// NewOutboxTable checks the name and the dialect.
func NewOutboxTable(name, dialect string) (OutboxTable, error) {
	table := OutboxTable{name, dialect}
	if !tableName.MatchString(name) {
		return table, fmt.Errorf("table: %q is not a table's name, such as tocsin_outbox or jobs.tocsin_outbox", name)
	}
	if dialect != PostgreSQL && dialect != MySQL && dialect != SQLite {
		return table, fmt.Errorf("dialect: %q is unknown; give PostgreSQL, MySQL or SQLite", dialect)
	}
	return table, nil
}

// Create has unique columns, which are no rule, but the index that finds whether a timer has an earlier row.
func (t OutboxTable) Create() string {
	text, end := "TEXT", ""
	if t.Dialect == MySQL {
		text, end = "MEDIUMTEXT", " ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin"
	}
	return "CREATE TABLE IF NOT EXISTS " + t.Name + " (id VARCHAR(36) NOT NULL PRIMARY KEY, " +
		"namespace VARCHAR(255) NOT NULL, timer_id VARCHAR(255) NOT NULL, " +
		"request " + text + " NOT NULL, created_at BIGINT NOT NULL, due_at BIGINT NOT NULL, dead_reason TEXT, " +
		"UNIQUE (namespace, timer_id, id))" + end
}

// Insert writes a row.
func (t OutboxTable) Insert() string {
	return "INSERT INTO " + t.Name + " (id, namespace, timer_id, request, created_at, due_at) VALUES (?, ?, ?, ?, ?, 0)"
}

// due finds the oldest rows that are due, and that no other drain has. Of a timer's rows it is the oldest, so that they are sent
// one after another, by however many drains.
func (t OutboxTable) due(rows int, columns string) string {
	locking := " FOR UPDATE SKIP LOCKED"
	if t.Dialect == SQLite {
		locking = ""
	}
	return "SELECT " + columns + " FROM " + t.Name + " AS due WHERE due_at <= ? AND dead_reason IS NULL AND NOT EXISTS " +
		"(SELECT 1 FROM " + t.Name + " AS older WHERE older.namespace = due.namespace " +
		"AND older.timer_id = due.timer_id AND older.id < due.id AND older.dead_reason IS NULL) " +
		"ORDER BY id LIMIT " + strconv.Itoa(rows) + locking
}

// Take takes rows that are due; in MySQL, which needs another statement for it, it finds and locks them. The array has PostgreSQL
// find them once, not for each row of a plan.
func (t OutboxTable) Take(rows int) string {
	if t.Dialect == MySQL {
		return t.due(rows, "id, request, created_at")
	}
	found := "IN (" + t.due(rows, "id") + ")"
	if t.Dialect == PostgreSQL {
		found = "= ANY (ARRAY(" + t.due(rows, "id") + "))"
	}
	return "UPDATE " + t.Name + " SET due_at = ? WHERE id " + found + " RETURNING id, request, created_at"
}

// Delete deletes so many rows.
func (t OutboxTable) Delete(rows int) string {
	of := "FROM " + t.Name
	if t.Dialect == MySQL {
		of = "settled FROM " + t.Name + " AS settled FORCE INDEX (PRIMARY)"
	}
	return "DELETE " + of + " WHERE id IN (" + Marks(rows) + ")"
}

// Update begins an update of rows by their ids. MySQL would read small tables as a whole, and lock rows of the program's
// transactions: the index is named.
func (t OutboxTable) Update() string {
	if t.Dialect == MySQL {
		return "UPDATE " + t.Name + " FORCE INDEX (PRIMARY)"
	}
	return "UPDATE " + t.Name
}

// Marks are so many parameters.
func Marks(count int) string { return strings.TrimSuffix(strings.Repeat("?, ", count), ", ") }

// Written has the parameters as the database has them.
func (t OutboxTable) Written(statement string) string {
	if t.Dialect != PostgreSQL {
		return statement
	}
	var numbered strings.Builder
	for number, part := range strings.Split(statement, "?") {
		if number > 0 {
			fmt.Fprintf(&numbered, "$%d", number)
		}
		numbered.WriteString(part)
	}
	return numbered.String()
}
