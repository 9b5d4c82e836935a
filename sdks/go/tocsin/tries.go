package tocsin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"
)

// Try is one request of a call, and what became of it: see WithOnTry.
type Try struct {
	// Operation is the operationId of the API's description, such as createTimer.
	Operation string
	// Number counts the tries of a call from 1.
	Number int
	// Status is the answer's; 0 if there was none.
	Status int
	// Code is that of an APIError; else empty.
	Code string
	// Err is why there was no answer; nil if there was one.
	Err error
	// Elapsed is how long the try took.
	Elapsed time.Duration
	// Pause is the time before the next try; absent if there is none.
	Pause Opt[time.Duration]
}

// String is the line that is logged: createTimer, try 1: 503 NOT_READY in 0.003 s, next try in 0.071 s.
func (t Try) String() string {
	outcome := strconv.Itoa(t.Status)
	switch {
	case t.Err != nil:
		outcome = t.Err.Error()
	case t.Code != "":
		outcome += " " + t.Code
	}
	line := fmt.Sprintf("%s, try %d: %s in %.3f s", t.Operation, t.Number, outcome, t.Elapsed.Seconds())
	if pause, again := t.Pause.Get(); again {
		line += fmt.Sprintf(", next try in %.3f s", pause.Seconds())
	}
	return line
}

// report completes a try, and gives it to the log and to the hook.
func (s *session) report(ctx context.Context, tried Try, answer *reply, err error) {
	log := s.logger()
	if s.onTry == nil && !log.Enabled(ctx, slog.LevelDebug) {
		return
	}
	var lost *TransportError
	var answered *APIError
	switch {
	case errors.As(err, &lost):
		tried.Err = lost.Err
	case errors.As(err, &answered):
		tried.Status, tried.Code = answered.Status, answered.Code
	default:
		tried.Status = answer.status
	}
	if log.Enabled(ctx, slog.LevelDebug) {
		log.DebugContext(ctx, tried.String())
	}
	if s.onTry != nil {
		s.observed(ctx, tried)
	}
}

// observed calls the hook. Its panic is logged, since what only watches must not break what it watches.
func (s *session) observed(ctx context.Context, tried Try) {
	defer func() {
		if panicked := recover(); panicked != nil {
			s.logger().WarnContext(ctx, "hook of a try panicked", "panic", panicked, "operation", tried.Operation)
		}
	}()
	s.onTry(tried)
}
