package tests

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"tocsin.dev/go/receiver"
	"tocsin.dev/go/tocsin"
	"tocsin.dev/go/tocsintest"
)

// outboxDatabases are those of the other tests, and MySQL's if TOCSIN_TEST_MYSQL_DSN has one.
func outboxDatabases(t *testing.T) map[string]tocsin.Dialect {
	found := map[string]tocsin.Dialect{}
	for name, dialect := range databases(t) {
		found[name] = map[receiver.Dialect]tocsin.Dialect{
			receiver.SQLite: tocsin.SQLite, receiver.PostgreSQL: tocsin.PostgreSQL,
		}[dialect]
	}
	if dsn := os.Getenv("TOCSIN_TEST_MYSQL_DSN"); dsn != "" {
		found["mysql "+dsn] = tocsin.MySQL
	}
	return found
}

// waitUntilDrained returns when no row waits.
func waitUntilDrained(t *testing.T, db *sql.DB) {
	t.Helper()
	for rows := 1; rows > 0; {
		if err := db.QueryRow("SELECT count(*) FROM go_outbox WHERE dead_reason IS NULL").Scan(&rows); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOutbox(t *testing.T) {
	server := tocsintest.NewServer(t)
	client := server.Client()
	for name, dialect := range outboxDatabases(t) {
		t.Run(string(dialect), func(t *testing.T) { testOutbox(t, client, open(t, name), dialect) })
	}
}

func testOutbox(t *testing.T, client *tocsin.Client, db *sql.DB, dialect tocsin.Dialect) {
	ctx, namespace := context.Background(), "go-"+string(dialect)
	if _, err := client.Namespaces.Create(ctx, tocsin.CreateNamespace{Name: namespace}); err != nil {
		t.Fatal(err)
	}
	drain := tocsin.NewDrain(client, db, dialect).WithTable("go_outbox")
	for range 2 {
		if err := drain.CreateTable(ctx); err != nil {
			t.Fatal(err)
		}
	}
	timer := func(id string, payload any) tocsin.CreateTimer {
		return tocsin.CreateTimer{
			Namespace: namespace, ID: id, CallbackURL: "http://127.0.0.1:1/", Delay: time.Hour, Payload: tocsin.JSON(payload),
		}
	}
	begun := func(commit bool, timers ...tocsin.CreateTimer) {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, each := range timers {
			if _, err := tocsin.NewOutbox(tx, dialect).WithTable("go_outbox").Create(ctx, each); err != nil {
				t.Fatal(err)
			}
		}
		end := tx.Rollback
		if commit {
			end = tx.Commit
		}
		if err := end(); err != nil {
			t.Fatal(err)
		}
	}
	refused := timer("refused", nil)
	refused.Namespace = "none"
	begun(true, timer("größe/17 ☂", "ä"), refused)
	begun(false, timer("never", nil))
	if drained, err := drain.Once(ctx); drained != (tocsin.Drained{Created: 1, Dead: 1}) || err != nil {
		t.Error(drained, err)
	}
	var many []tocsin.CreateTimer
	for n := range 300 {
		many = append(many, timer(fmt.Sprint("t", n%100), n))
	}
	running, cancel := context.WithCancel(ctx)
	ended := make(chan error)
	for range 3 {
		go func() { ended <- drain.WithRows(20).Run(running, 5*time.Millisecond) }()
	}
	begun(true, many...)
	waitUntilDrained(t, db)
	cancel()
	for range 3 {
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	payloads := map[string]string{}
	for each, err := range client.Timers.List(ctx, tocsin.ListTimers{Namespace: namespace}) {
		if err != nil {
			t.Fatal(err)
		}
		payloads[each.ID] = string(each.Payload)
	}
	if len(payloads) != 101 || payloads["größe/17 ☂"] != `"ä"` {
		t.Error(len(payloads), payloads["größe/17 ☂"])
	}
	for n := range 100 {
		if payloads[fmt.Sprint("t", n)] != fmt.Sprint(200+n) {
			t.Error(n, payloads[fmt.Sprint("t", n)])
		}
	}
}

func TestOutboxInTransactionsOfPgx(t *testing.T) {
	url := os.Getenv("TOCSIN_TEST_POSTGRESQL")
	if url == "" {
		t.Skip("TOCSIN_TEST_POSTGRESQL is not set")
	}
	ctx, client := context.Background(), tocsintest.NewServer(t).Client()
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	db := stdlib.OpenDBFromPool(pool)
	defer db.Close()
	drain := tocsin.NewDrain(client, db, tocsin.PostgreSQL)
	if err := drain.CreateTable(ctx); err != nil {
		t.Fatal(err)
	}
	for _, commit := range []bool{false, true} {
		tx, err := pool.Begin(ctx)
		if err != nil {
			t.Fatal(err)
		}
		execute := func(ctx context.Context, statement string, parameters ...any) error {
			_, err := tx.Exec(ctx, statement, parameters...)
			return err
		}
		_, err = tocsin.NewOutboxFunc(execute, tocsin.PostgreSQL).Create(ctx, tocsin.CreateTimer{
			Namespace: "default", ID: fmt.Sprint(commit), CallbackURL: "http://127.0.0.1:1/", Delay: time.Hour,
		})
		if end := map[bool]func(context.Context) error{true: tx.Commit, false: tx.Rollback}[commit]; errors.Join(err, end(ctx)) != nil {
			t.Fatal(err)
		}
	}
	if drained, err := drain.Once(ctx); drained != (tocsin.Drained{Created: 1}) || err != nil {
		t.Error(drained, err)
	}
	if _, err := client.Timers.Get(ctx, "default", "true"); err != nil {
		t.Error(err)
	}
}

func TestOutboxRefuses(t *testing.T) {
	ctx, db := context.Background(), open(t, "sqlite3 file:"+t.TempDir()+"/app.db")
	for name, err := range map[string]error{
		"a pool":    create(ctx, tocsin.NewOutbox(db, tocsin.SQLite), tocsin.CreateTimer{}),
		"a table":   create(ctx, tocsin.NewOutboxFunc(nil, tocsin.SQLite).WithTable("a; DROP"), tocsin.CreateTimer{}),
		"a dialect": create(ctx, tocsin.NewOutboxFunc(nil, "oracle"), tocsin.CreateTimer{}),
		"a key":     create(ctx, tocsin.NewOutboxFunc(nil, tocsin.SQLite), tocsin.CreateTimer{IdempotencyKey: "mine"}),
		"rows":      tocsin.NewDrain(tocsin.NewClient("http://127.0.0.1:1"), db, tocsin.SQLite).WithRows(0).Run(ctx, time.Second),
	} {
		if !errors.Is(err, tocsin.ErrInvalidArgument) {
			t.Error(name, err)
		}
	}
}

func create(ctx context.Context, outbox *tocsin.Outbox, timer tocsin.CreateTimer) error {
	_, err := outbox.Create(ctx, timer)
	return err
}

// refusing answers that the only timer of a batch is over a quota.
type refusing struct{}

func (refusing) RoundTrip(request *http.Request) (*http.Response, error) {
	answer := `{"results":[{"error":{"status":429,"error":"QUOTA_EXCEEDED","message":"","errors":[]}}]}`
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(answer)), Request: request}, nil
}

func TestARowThatIsRefusedForTheMomentIsNoServerThatIsAway(t *testing.T) {
	ctx, db := context.Background(), open(t, "sqlite3 file:"+t.TempDir()+"/app.db")
	client := tocsin.NewClient("http://tocsin", tocsin.WithRetries(0), tocsin.WithHTTPClient(&http.Client{Transport: refusing{}}))
	drain := tocsin.NewDrain(client, db, tocsin.SQLite)
	if err := drain.CreateTable(ctx); err != nil {
		t.Fatal(err)
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	timer := tocsin.CreateTimer{Namespace: "n", ID: "t", CallbackURL: "http://127.0.0.1:1/", Delay: time.Hour}
	if err := errors.Join(create(ctx, tocsin.NewOutbox(tx, tocsin.SQLite), timer), tx.Commit()); err != nil {
		t.Fatal(err)
	}
	if drained, err := drain.Once(ctx); drained != (tocsin.Drained{Waiting: 1}) || err != nil {
		t.Error(drained, err)
	}
}
