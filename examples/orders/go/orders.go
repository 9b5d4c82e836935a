package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"log"
	"net/http"
	"time"

	"tocsin.dev/go/receiver"
	"tocsin.dev/go/tocsin"
)

const (
	namespace   = "orders"
	remindAfter = 24 * time.Hour
	cancelAfter = 48 * time.Hour // after the reminder
)

var tables = []string{
	"CREATE TABLE IF NOT EXISTS orders (id TEXT PRIMARY KEY, amount INTEGER NOT NULL, status TEXT NOT NULL)",
	// What a mailer sends.
	"CREATE TABLE IF NOT EXISTS mails (order_id TEXT NOT NULL, subject TEXT NOT NULL)",
}

type order struct {
	ID     string `json:"id"`
	Amount int64  `json:"amount"`
	Status string `json:"status"` // open, reminded, canceled, paid
}

type paymentDue struct {
	Order string `json:"order"`
}

type settings struct {
	db      *sql.DB
	tocsin  *tocsin.Client
	secrets receiver.Secrets
	// publicURL is where Tocsin reaches this service.
	publicURL string
}

type shop struct {
	settings
	dedup *receiver.Dedup
}

func newShop(ctx context.Context, s settings) (*shop, error) {
	for _, table := range tables {
		if _, err := s.db.ExecContext(ctx, table); err != nil {
			return nil, err
		}
	}
	dedup := receiver.NewDedup(s.db, receiver.SQLite)
	return &shop{s, dedup}, dedup.CreateTable(ctx)
}

func (s *shop) routes() http.Handler {
	routes := http.NewServeMux()
	routes.HandleFunc("POST /orders", s.place)
	routes.HandleFunc("GET /orders/{id}", func(w http.ResponseWriter, r *http.Request) {
		found, err := s.find(r.Context(), r.PathValue("id"))
		answer(w, found, err)
	})
	routes.HandleFunc("POST /orders/{id}/pay", s.pay)
	routes.Handle("POST /hooks/payment", receiver.New(s.secrets).Handle(s.paymentDue))
	return routes
}

func (s *shop) place(w http.ResponseWriter, r *http.Request) {
	var placed order
	if err := json.NewDecoder(r.Body).Decode(&placed); err != nil || placed.ID == "" {
		http.Error(w, "an order has an id and an amount", http.StatusBadRequest)
		return
	}
	// The timer first: an order without one would stay open forever, a timer without an order does nothing. Whoever got no
	// answer sends the order again, and neither is made a second time.
	_, err := s.tocsin.Timers.Create(r.Context(), tocsin.CreateTimer{
		Namespace: namespace, ID: "payment-" + placed.ID, CallbackURL: s.publicURL + "/hooks/payment",
		Delay: remindAfter, Payload: tocsin.JSON(paymentDue{placed.ID}), OnConflict: tocsin.OnConflictKeep,
	})
	if err == nil {
		insert := "INSERT INTO orders VALUES (?, ?, 'open') ON CONFLICT DO NOTHING"
		_, err = s.db.ExecContext(r.Context(), insert, placed.ID, placed.Amount)
	}
	if err == nil {
		placed, err = s.find(r.Context(), placed.ID)
	}
	answer(w, placed, err)
}

func (s *shop) pay(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	paid := "UPDATE orders SET status = 'paid' WHERE id = ? AND status <> 'canceled'"
	if _, err := s.db.ExecContext(r.Context(), paid, id); err != nil {
		answer(w, order{}, err)
		return
	}
	found, err := s.find(r.Context(), id)
	if err == nil && found.Status != "paid" {
		http.Error(w, "the order is canceled", http.StatusConflict)
		return
	}
	if err == nil {
		soon, cancel := context.WithTimeout(r.Context(), 2*time.Second)
		defer cancel()
		if failed := s.tocsin.Timers.Delete(soon, namespace, "payment-"+id); failed != nil {
			// It has ended, or Tocsin is away: then it fires, and finds a paid order.
			log.Printf("the timer of order %s was not deleted: %v", id, failed)
		}
	}
	answer(w, found, err)
}

func (s *shop) paymentDue(ctx context.Context, firing *receiver.Firing) (receiver.Answer, error) {
	due, err := receiver.Payload[paymentDue](firing)
	if err != nil {
		return receiver.Answer{}, err
	}
	return s.dedup.Once(ctx, firing, func(ctx context.Context, tx *sql.Tx) (receiver.Answer, error) {
		return overdue(ctx, tx, due.Order, firing.ExecuteAt)
	})
}

// overdue does what is due for an order that is not paid. A payment that comes at the same time is before it or after it, not
// both.
func overdue(ctx context.Context, tx *sql.Tx, id string, at time.Time) (receiver.Answer, error) {
	reminded, err := change(ctx, tx, id, "open", "reminded", "Please pay your order")
	if err != nil {
		return receiver.Answer{}, err
	}
	if reminded {
		return receiver.RescheduleAt(at.Add(cancelAfter)), nil
	}
	_, err = change(ctx, tx, id, "reminded", "canceled", "Your order is canceled")
	return receiver.Done(), err
}

// change moves an order to another status with a mail, and reports whether it had the first.
func change(ctx context.Context, tx *sql.Tx, id, from, to, subject string) (bool, error) {
	changed, err := tx.ExecContext(ctx, "UPDATE orders SET status = ? WHERE id = ? AND status = ?", to, id, from)
	if err != nil {
		return false, err
	}
	if count, err := changed.RowsAffected(); err != nil || count == 0 {
		return false, err
	}
	_, err = tx.ExecContext(ctx, "INSERT INTO mails VALUES (?, ?)", id, subject)
	return true, err
}

func (s *shop) find(ctx context.Context, id string) (found order, err error) {
	row := s.db.QueryRowContext(ctx, "SELECT id, amount, status FROM orders WHERE id = ?", id)
	return found, row.Scan(&found.ID, &found.Amount, &found.Status)
}

// answer sends the order, unless there is an error.
func answer(w http.ResponseWriter, found order, err error) {
	switch {
	case errors.Is(err, sql.ErrNoRows):
		http.Error(w, "there is no such order", http.StatusNotFound)
	case err != nil:
		log.Print(err)
		http.Error(w, "try again later", http.StatusServiceUnavailable)
	default:
		w.Header().Set("content-type", "application/json")
		json.NewEncoder(w).Encode(found)
	}
}
