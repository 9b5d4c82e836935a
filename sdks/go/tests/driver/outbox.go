package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"path/filepath"
	"time"

	"tocsin.dev/go/internal/rules"
	"tocsin.dev/go/tocsin"
)

// outbox writes rows to an outbox in a database of that name, or drains it.
func outbox(x context.Context, client *tocsin.Client, do string, with json.RawMessage) (shown any, err error) {
	var given struct {
		Database string
		Timers   []tocsin.CreateTimer
		Rollback bool
	}
	if err := json.Unmarshal(with, &given); err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(databases, given.Database))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	drain := tocsin.NewDrain(client, db, tocsin.SQLite)
	if err := drain.CreateTable(x); err != nil {
		return nil, err
	}
	switch do {
	case "outbox.create":
		return written(x, db, given.Timers, given.Rollback)
	case "outbox.rows":
		return outboxRows(x, db)
	}
	drained, err := drain.Once(x)
	return object{
		"created": drained.Created, "dead": drained.Dead, "waiting": drained.Waiting, "unavailable": drained.Unavailable != nil,
	}, err
}

func written(x context.Context, db *sql.DB, timers []tocsin.CreateTimer, rollback bool) ([]string, error) {
	tx, err := db.BeginTx(x, nil)
	if err != nil {
		return nil, err
	}
	defer tx.Rollback()
	var ids []string
	for _, timer := range timers {
		id, err := tocsin.NewOutbox(tx, tocsin.SQLite).Create(x, timer)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	if rollback {
		return ids, nil
	}
	return ids, tx.Commit()
}

func outboxRows(x context.Context, db *sql.DB) ([]object, error) {
	found, err := db.QueryContext(x, "SELECT timer_id, dead_reason FROM tocsin_outbox ORDER BY id")
	if err != nil {
		return nil, err
	}
	defer found.Close()
	rows := []object{}
	for found.Next() {
		var id string
		var reason *string
		if err := found.Scan(&id, &reason); err != nil {
			return nil, err
		}
		rows = append(rows, object{"timerId": id, "deadReason": reason})
	}
	return rows, found.Err()
}

// outboxVector is what the outbox makes of a statement, a timer, a row or a refusal.
func outboxVector(given struct {
	Statement, Dialect string
	Timer              *tocsin.CreateTimer
	Send               *struct {
		ID        string
		Request   json.RawMessage
		CreatedAt int64
	}
	Now     int64
	Refused struct {
		Status int
		Code   string
	}
}) (any, error) {
	switch {
	case given.Statement != "":
		table, err := rules.NewOutboxTable(tocsin.OutboxTable, given.Dialect)
		texts := map[string]string{
			"table": table.Create(), "insert": table.Insert(), "take": table.Take(250), "delete": table.Delete(2),
		}
		return object{"text": texts[given.Statement]}, err
	case given.Timer != nil:
		var columns []any
		execute := func(_ context.Context, _ string, parameters ...any) error { columns = parameters; return nil }
		_, err := tocsin.NewOutboxFunc(execute, tocsin.SQLite).Create(context.Background(), *given.Timer)
		if err != nil {
			return nil, err
		}
		return object{"namespace": columns[1], "timerId": columns[2], "request": json.RawMessage(columns[3].(string))}, nil
	case given.Send != nil:
		row := rules.OutboxRow{ID: given.Send.ID, Request: string(given.Send.Request), CreatedAt: time.UnixMicro(given.Send.CreatedAt)}
		timer, err := row.Timer(time.UnixMicro(given.Now))
		if err != nil {
			return nil, err
		}
		sent, err := timer.JSON(0)
		return object{"timer": json.RawMessage(sent)}, err
	}
	return object{"dead": rules.IsFinal(given.Refused.Status, given.Refused.Code)}, nil
}
