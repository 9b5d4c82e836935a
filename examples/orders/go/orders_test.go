package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"tocsin.dev/go/receiver"
	"tocsin.dev/go/tocsin"
	"tocsin.dev/go/tocsintest"
)

const secret = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX"

// world is the service, and a Tocsin whose clock is moved.
type world struct {
	*testing.T
	shop   *shop
	url    string
	tocsin *tocsintest.Server
}

func newWorld(t *testing.T) *world {
	ctx := context.Background()
	server := tocsintest.NewServer(t)
	if _, err := server.Client().Namespaces.Create(ctx, tocsin.CreateNamespace{Name: namespace, Secret: secret}); err != nil {
		t.Fatal(err)
	}
	db, err := openDatabase(t.TempDir() + "/orders.db")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	// Its URL is known before there are routes.
	web := httptest.NewServer(nil)
	t.Cleanup(web.Close)
	shop, err := newShop(ctx, settings{db, server.Client(), receiver.Static(secret), web.URL})
	if err != nil {
		t.Fatal(err)
	}
	web.Config.Handler = shop.routes()
	return &world{t, shop, web.URL, server}
}

// send returns the status and the body of the answer.
func (w *world) send(method, path, body string) (int, string) {
	w.Helper()
	request, err := http.NewRequest(method, w.url+path, bytes.NewBufferString(body))
	if err != nil {
		w.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		w.Fatal(err)
	}
	defer answer.Body.Close()
	read, err := io.ReadAll(answer.Body)
	if err != nil {
		w.Fatal(err)
	}
	return answer.StatusCode, strings.TrimSpace(string(read))
}

func (w *world) advance(by time.Duration) {
	w.Helper()
	if _, err := w.tocsin.Advance(context.Background(), by); err != nil {
		w.Fatal(err)
	}
}

func (w *world) expectStatus(id, status string) {
	w.Helper()
	if _, got := w.send("GET", "/orders/"+id, ""); !strings.Contains(got, `"status":"`+status+`"`) {
		w.Errorf("order %s is %s, not %s", id, got, status)
	}
}

func (w *world) expectMails(id string, subjects ...string) {
	w.Helper()
	rows, err := w.shop.db.Query("SELECT subject FROM mails WHERE order_id = ?", id)
	if err != nil {
		w.Fatal(err)
	}
	defer rows.Close()
	var got []string
	for rows.Next() {
		var subject string
		if err := rows.Scan(&subject); err != nil {
			w.Fatal(err)
		}
		got = append(got, subject)
	}
	if !slices.Equal(got, subjects) {
		w.Errorf("the mails of order %s are %q", id, got)
	}
}

func TestOrders(t *testing.T) {
	w := newWorld(t)
	t.Run("an unpaid order is canceled after a reminder", func(t *testing.T) {
		w.T = t
		for range 2 {
			if _, got := w.send("POST", "/orders", `{"id": "17", "amount": 4200}`); got != `{"id":"17","amount":4200,"status":"open"}` {
				t.Error(got)
			}
		}
		w.advance(25 * time.Hour)
		w.expectStatus("17", "reminded")
		w.advance(48 * time.Hour)
		w.expectStatus("17", "canceled")
		w.expectMails("17", "Please pay your order", "Your order is canceled")
		if code, got := w.send("POST", "/orders/17/pay", ""); code != http.StatusConflict {
			t.Error(code, got)
		}
	})
	t.Run("a paid order stays paid", func(t *testing.T) {
		w.T = t
		w.send("POST", "/orders", `{"id": "18", "amount": 990}`)
		w.advance(25 * time.Hour)
		w.send("POST", "/orders/18/pay", "")
		timer, err := w.tocsin.Client().Timers.Get(context.Background(), namespace, "payment-18")
		if err != nil || timer.Status != tocsin.TimerStatusCanceled {
			t.Error(timer, err)
		}
		w.advance(48 * time.Hour)
		w.expectStatus("18", "paid")
		w.expectMails("18", "Please pay your order")
	})
	t.Run("a repeated firing reminds once", func(t *testing.T) {
		w.T = t
		w.send("POST", "/orders", `{"id": "19", "amount": 500}`)
		firing := receiver.Firing{
			Namespace: namespace, TimerID: "payment-19", ExecuteAt: time.Now(), Payload: json.RawMessage(`{"order": "19"}`),
		}
		for range 2 {
			answer := httptest.NewRecorder()
			request := tocsintest.Sign(t, firing, secret)
			request.URL.Path = "/hooks/payment"
			w.shop.routes().ServeHTTP(answer, request)
			if got := answer.Body.String(); !strings.Contains(got, "nextExecuteAt") {
				t.Error(answer.Code, got)
			}
		}
		w.expectMails("19", "Please pay your order")
	})
}
