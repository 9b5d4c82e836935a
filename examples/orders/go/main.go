// An order service: it reminds of the payment after a day, and cancels the order two days later.
package main

import (
	"cmp"
	"context"
	"database/sql"
	"log"
	"net/http"
	"os"

	_ "github.com/ncruces/go-sqlite3/driver"

	"tocsin.dev/go/receiver"
	"tocsin.dev/go/tocsin"
)

func main() {
	db, err := openDatabase(cmp.Or(os.Getenv("DATABASE"), "orders.db"))
	if err != nil {
		log.Fatal(err)
	}
	var options []tocsin.Option
	if key := os.Getenv("TOCSIN_KEY"); key != "" {
		options = append(options, tocsin.WithKey(key))
	}
	address := "127.0.0.1:" + cmp.Or(os.Getenv("PORT"), "9000")
	shop, err := newShop(context.Background(), settings{
		db:        db,
		tocsin:    tocsin.NewClient(cmp.Or(os.Getenv("TOCSIN_URL"), "http://127.0.0.1:8080"), options...),
		secrets:   receiver.FromEnv("TOCSIN_SECRET"),
		publicURL: cmp.Or(os.Getenv("PUBLIC_URL"), "http://"+address),
	})
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(http.ListenAndServe(address, shop.routes()))
}

// openDatabase opens SQLite. Its transactions begin with the right to write: two of them wait for each other, and neither fails.
func openDatabase(path string) (*sql.DB, error) {
	return sql.Open("sqlite3", "file:"+path+"?_pragma=busy_timeout(30000)&_txlock=immediate")
}
