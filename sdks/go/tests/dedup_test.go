// Package tests has the tests of the Go SDK that need more than the standard library.
package tests

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/lib/pq"
	_ "github.com/ncruces/go-sqlite3/driver"

	"tocsin.dev/go/receiver"
)

// databases are SQLite's, and PostgreSQL's if TOCSIN_TEST_POSTGRESQL has the URL of one.
func databases(t *testing.T) map[string]receiver.Dialect {
	found := map[string]receiver.Dialect{"sqlite3 file:" + t.TempDir() + "/app.db?_pragma=busy_timeout(30000)&_txlock=immediate": receiver.SQLite}
	if url := os.Getenv("TOCSIN_TEST_POSTGRESQL"); url != "" {
		found["postgres "+url] = receiver.PostgreSQL
	}
	return found
}

func open(t *testing.T, name string) *sql.DB {
	t.Helper()
	driver, source, _ := strings.Cut(name, " ")
	database, err := sql.Open(driver, source)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := database.Close(); err != nil {
			t.Error(err)
		}
	})
	return database
}

func TestDedup(t *testing.T) {
	for name, dialect := range databases(t) {
		ctx, database := context.Background(), open(t, name)
		dedup := receiver.NewDedup(database, dialect).WithTable("go_firings")
		for range 2 {
			if err := dedup.CreateTable(ctx); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := database.Exec("CREATE TABLE go_work (id TEXT)"); err != nil {
			t.Fatal(err)
		}
		rows := func() (count int) {
			if err := database.QueryRow("SELECT count(*) FROM go_work").Scan(&count); err != nil {
				t.Fatal(err)
			}
			return count
		}
		once := func(id string, answer receiver.Answer, fails error) error {
			_, err := dedup.Once(ctx, &receiver.Firing{WebhookID: id}, func(ctx context.Context, tx *sql.Tx) (receiver.Answer, error) {
				_, err := tx.ExecContext(ctx, "INSERT INTO go_work VALUES ('x')")
				return answer, errors.Join(err, fails)
			})
			return err
		}
		for _, rolledBack := range []error{
			once("a", receiver.Retry(), nil), once("a", receiver.Fail("no"), nil), once("a", receiver.RescheduleWith(time.Now(), func() {}), nil),
			once("a", receiver.Done(), errors.ErrUnsupported),
		} {
			if rows() != 0 {
				t.Error(name, rolledBack, rows())
			}
		}
		var failed atomic.Int32
		var working sync.WaitGroup
		for range 4 {
			working.Add(1)
			go func() {
				defer working.Done()
				if err := once("a", receiver.Done(), nil); err != nil {
					failed.Add(1)
					t.Error(name, err)
				}
			}()
		}
		working.Wait()
		if rows() != 1 {
			t.Error(name, rows(), "rows")
		}
		if removed, err := dedup.Forget(ctx, -time.Hour); removed != 1 || err != nil {
			t.Error(name, removed, err)
		}
		if dedup.WithTable("x; DROP").CreateTable(ctx) == nil {
			t.Error("a table's name is checked")
		}
	}
}
