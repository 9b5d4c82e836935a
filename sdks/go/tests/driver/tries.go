package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"

	"tocsin.dev/go/tocsin"
)

// observer keeps tries, and as a handler of slog what is logged at debug level. Scenarios cause the other events.
type observer struct {
	slog.Handler
	mutex sync.Mutex
	tries []object
	lines []string
}

var observed = &observer{Handler: slog.DiscardHandler}

func (o *observer) Enabled(context.Context, slog.Level) bool { return true }

func (o *observer) Handle(_ context.Context, record slog.Record) error {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if record.Level == slog.LevelDebug {
		o.lines = append(o.lines, record.Message)
	}
	return nil
}

func (o *observer) add(tried tocsin.Try) {
	shown := object{"operation": tried.Operation, "number": tried.Number, "seconds": tried.Elapsed.Seconds()}
	if tried.Status != 0 {
		shown["status"] = tried.Status
	}
	if tried.Code != "" {
		shown["code"] = tried.Code
	}
	if tried.Err != nil {
		shown["error"] = tried.Err.Error()
	}
	if pause, again := tried.Pause.Get(); again {
		shown["pauseSeconds"] = pause.Seconds()
	}
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.tries = append(o.tries, shown)
}

// take returns what was observed since it was taken last.
func (o *observer) take() object {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	taken := object{"tries": append([]object{}, o.tries...), "lines": append([]string{}, o.lines...)}
	o.tries, o.lines = nil, nil
	return taken
}

func tries(json.RawMessage) (any, error) { return observed.take(), nil }

// triedLine is the vector of the debug line.
func triedLine(with json.RawMessage) (any, error) {
	var given struct {
		Operation, Code, Error string
		Number, Status         int
		Seconds                float64
		PauseSeconds           *float64
	}
	if err := json.Unmarshal(with, &given); err != nil {
		return nil, err
	}
	tried := tocsin.Try{
		Operation: given.Operation, Number: given.Number, Status: given.Status, Code: given.Code, Elapsed: seconds(given.Seconds),
	}
	if given.Error != "" {
		tried.Err = text(given.Error)
	}
	if given.PauseSeconds != nil {
		tried.Pause = tocsin.Some(seconds(*given.PauseSeconds))
	}
	return object{"line": tried.String()}, nil
}

type text string

func (t text) Error() string { return string(t) }
