package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"time"

	_ "github.com/ncruces/go-sqlite3/driver"

	"tocsin.dev/go/internal/rules"
	"tocsin.dev/go/receiver"
)

// read is the vector of what a firing has.
func read(g given) (object, error) {
	var body string
	if err := json.Unmarshal(g.Body, &body); err != nil {
		return nil, err
	}
	var firing object
	made := request(g.Headers, body)
	made.Method = g.Method
	refused := answerTo(receiver.NewUnsigned(), made, func(_ context.Context, f *receiver.Firing) (receiver.Answer, error) {
		firing = shownFiring(f)
		return receiver.Done(), nil
	})
	if firing == nil {
		return nil, errors.New(refused.Body.String())
	}
	return firing, nil
}

// batched is the vector of the callbacks of a batch, and of the response to them.
func batched(g given) (object, error) {
	var body string
	if err := json.Unmarshal(g.Body, &body); err != nil {
		return nil, err
	}
	firings := []object{}
	made := request(g.Headers, body)
	handle := func(_ context.Context, f *receiver.Firing) (receiver.Answer, error) {
		firings = append(firings, shownFiring(f))
		return g.Answers[f.TimerID].answer()
	}
	got := answerTo(receiver.NewUnsigned(), made, handle)
	if len(firings) == 0 {
		return nil, errors.New(got.Body.String())
	}
	return object{"status": got.Code, "body": json.RawMessage(got.Body.Bytes()), "firings": firings}, nil
}

// receiving is a receiver.handle.
type receiving struct {
	Secrets          []string
	Unsigned         bool
	ToleranceSeconds *float64
	Now              *time.Time
	Dedup            string
	Request          struct {
		Method  string
		Headers [][2]string
		Body    []byte
	}
	Answer  wanted
	Answers map[string]wanted
}

func receive(r receiving) (any, error) {
	options := []receiver.Option{}
	if r.ToleranceSeconds != nil {
		options = append(options, receiver.WithTolerance(seconds(*r.ToleranceSeconds)))
	}
	if r.Now != nil {
		options = append(options, receiver.WithClock(func() time.Time { return *r.Now }))
	}
	hooks := receiver.New(receiver.Static(r.Secrets...), options...)
	if r.Unsigned {
		hooks = receiver.NewUnsigned(options...)
	}
	handled, firings := false, []object{}
	var firing any
	got := answerTo(hooks, rawRequest(r), func(x context.Context, f *receiver.Firing) (receiver.Answer, error) {
		if firing == nil {
			firing = shownFiring(f)
		}
		firings = append(firings, shownFiring(f))
		work := func() (receiver.Answer, error) {
			handled = true
			if own, found := r.Answers[f.TimerID]; found {
				return own.answer()
			}
			return r.Answer.answer()
		}
		if r.Dedup == "" {
			return work()
		}
		return once(x, r.Dedup, f, work)
	})
	return object{
		"status": got.Code, "headers": lower(got.Header()), "body": got.Body.String(), "handled": handled, "firing": firing,
		"firings": firings,
	}, nil
}

var databases = func() string {
	folder, err := os.MkdirTemp("", "tocsin-driver-")
	if err != nil {
		log.Fatal(err)
	}
	return folder
}()

func removeDatabases() {
	if err := os.RemoveAll(databases); err != nil {
		log.Fatal(err)
	}
}

func once(x context.Context, name string, f *receiver.Firing, work func() (receiver.Answer, error)) (receiver.Answer, error) {
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(databases, name))
	if err != nil {
		return receiver.Answer{}, err
	}
	defer db.Close()
	dedup := receiver.NewDedup(db, receiver.SQLite)
	if err := dedup.CreateTable(x); err != nil {
		return receiver.Answer{}, err
	}
	return dedup.Once(x, f, func(context.Context, *sql.Tx) (receiver.Answer, error) { return work() })
}

func shownFiring(f *receiver.Firing) object {
	return object{
		"namespace": f.Namespace, "timerId": f.TimerID, "executeAt": shownInstant(f.ExecuteAt),
		"firedAt": shownInstant(f.FiredAt), "attempt": f.Attempt, "payload": f.Payload, "webhookId": f.WebhookID,
	}
}

func shownInstant(instant time.Time) string {
	text, err := rules.FormatInstant(instant)
	if err != nil {
		return err.Error()
	}
	return text
}

func answerTo(r *receiver.Receiver, request *http.Request, handler receiver.Handler) *httptest.ResponseRecorder {
	got := httptest.NewRecorder()
	r.Handle(handler).ServeHTTP(got, request)
	return got
}

func request(headers map[string]string, body string) *http.Request {
	made := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
	for name, value := range headers {
		made.Header.Set(name, value)
	}
	return made
}

func rawRequest(r receiving) *http.Request {
	made := httptest.NewRequest(r.Request.Method, "/", strings.NewReader(string(r.Request.Body)))
	for _, each := range r.Request.Headers {
		made.Header.Add(each[0], each[1])
	}
	return made
}

func lower(header http.Header) map[string]string {
	lowered := map[string]string{}
	for name, values := range header {
		lowered[strings.ToLower(name)] = strings.Join(values, ", ")
	}
	return lowered
}
