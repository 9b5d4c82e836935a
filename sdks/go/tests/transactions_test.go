package tests

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"tocsin.dev/go/receiver"
)

// pgxTransactions are as the documentation has them.
type pgxTransactions struct{ *pgxpool.Pool }

func (p pgxTransactions) Run(ctx context.Context, work func(context.Context, pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, p.Pool, func(tx pgx.Tx) error { return work(ctx, tx) })
}

func (p pgxTransactions) Execute(ctx context.Context, tx pgx.Tx, statement string, parameters ...any) (int64, error) {
	done, err := tx.Exec(ctx, statement, parameters...)
	return done.RowsAffected(), err
}

func (p pgxTransactions) Text(ctx context.Context, tx pgx.Tx, query string, parameters ...any) (text string, err error) {
	err = tx.QueryRow(ctx, query, parameters...).Scan(&text)
	return text, err
}

func TestDedupInTransactionsOfTheProgram(t *testing.T) {
	url := os.Getenv("TOCSIN_TEST_POSTGRESQL")
	if url == "" {
		t.Skip("TOCSIN_TEST_POSTGRESQL is not set")
	}
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	dedup := receiver.NewDedupIn(pgxTransactions{pool}).WithTable("pgx_firings")
	if err := dedup.CreateTable(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(ctx, "CREATE TABLE pgx_work (id TEXT)"); err != nil {
		t.Fatal(err)
	}
	once := func(answer receiver.Answer, fails error) error {
		_, err := dedup.Once(ctx, &receiver.Firing{WebhookID: "a"}, func(ctx context.Context, tx pgx.Tx) (receiver.Answer, error) {
			_, err := tx.Exec(ctx, "INSERT INTO pgx_work VALUES ('x')")
			return answer, errors.Join(err, fails)
		})
		return err
	}
	rows := func() (count int) {
		if err := pool.QueryRow(ctx, "SELECT count(*) FROM pgx_work").Scan(&count); err != nil {
			t.Fatal(err)
		}
		return count
	}
	if err := once(receiver.Done(), errors.ErrUnsupported); !errors.Is(err, errors.ErrUnsupported) || rows() != 0 {
		t.Error(err, rows())
	}
	for _, undone := range []receiver.Answer{receiver.Retry(), receiver.Fail("no")} {
		if err := once(undone, nil); err != nil || rows() != 0 {
			t.Error(err, rows())
		}
	}
	for range 2 {
		if err := once(receiver.Done(), nil); err != nil || rows() != 1 {
			t.Error(err, rows())
		}
	}
	if removed, err := dedup.Forget(ctx, -time.Hour); removed != 1 || err != nil {
		t.Error(removed, err)
	}
}
