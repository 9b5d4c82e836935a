package receiver

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"tocsin.dev/go/internal/rules"
)

// Firing is one attempt to fire a timer, or an occurrence of a schedule. All of it is proven by the signature but Header.
//
// A timer with a raw body has no Payload, Attempt is 0, and both instants are that of the request. So it is with a timer that
// sends no body, as GET and HEAD do; Namespace and TimerID are empty, too, unless it has an empty raw body.
type Firing struct {
	// WebhookID is the same for all attempts of one firing: use it to recognise repetitions.
	WebhookID string
	Namespace string
	// TimerID is the timer's or the schedule's id.
	TimerID string
	// ExecuteAt is when it was due.
	ExecuteAt time.Time
	// FiredAt is when this attempt began.
	FiredAt time.Time
	// Attempt counts from 1; 0 if it is unknown.
	Attempt int
	// Payload is the timer's; nil for a raw body, which is in Body.
	Payload json.RawMessage
	// Body is the request's, as it arrived; of a batch, this timer's part of it.
	Body []byte
	// Header is the request's. Nothing in it is signed but webhook-id and webhook-timestamp.
	Header http.Header
}

// Traceparent is the W3C Trace Context of the program that created the timer; empty if there is none.
func (f *Firing) Traceparent() string { return f.Header.Get("traceparent") }

// Payload reads the firing's payload into a T. A handler that returns its error is called again: a deployment may mend it.
func Payload[T any](firing *Firing) (T, error) {
	var payload T
	if err := json.Unmarshal(firing.Payload, &payload); err != nil {
		return payload, fmt.Errorf("payload of %s: %w", firing.TimerID, err)
	}
	return payload, nil
}

var errForeign = errors.New("the request is not a callback of the timer that its webhook-id names")

// envelope is the body of a timer with a payload.
type envelope struct {
	Namespace *string         `json:"namespace"`
	TimerID   *string         `json:"timerId"`
	ExecuteAt *string         `json:"executeAt"`
	FiredAt   *string         `json:"firedAt"`
	Attempt   *int            `json:"attempt"`
	Payload   json.RawMessage `json:"payload"`
}

// read reads a verified request. Only its webhook-id, its timestamp and its body are signed. The webhook-id has a hash of the
// namespace and the id, and so proves these, wherever they come from.
func (f *Firing) read(timestamp int64) error {
	f.ExecuteAt = time.Unix(timestamp, 0).UTC()
	f.FiredAt = f.ExecuteAt
	if f.readEnvelope() {
		return nil
	}
	namespace, named := f.Header.Get("tocsin-namespace"), f.Header.Get("tocsin-timer-id")
	if len(f.Body) == 0 && namespace == "" && named == "" {
		return nil
	}
	id, err := url.PathUnescape(named)
	if err != nil || !rules.IsFiringOf(f.WebhookID, namespace, id) {
		return errForeign
	}
	f.Namespace, f.TimerID = namespace, id
	return nil
}

// readEnvelope returns false if the body is not an envelope of this webhook-id.
func (f *Firing) readEnvelope() bool {
	var found envelope
	if err := json.Unmarshal(f.Body, &found); err != nil {
		return false
	}
	if found.Namespace == nil || found.TimerID == nil || found.ExecuteAt == nil || found.FiredAt == nil || found.Attempt == nil ||
		found.Payload == nil || !rules.IsFiringOf(f.WebhookID, *found.Namespace, *found.TimerID) {
		return false
	}
	executeAt, err := rules.ParseInstant(*found.ExecuteAt)
	firedAt, err2 := rules.ParseInstant(*found.FiredAt)
	if err != nil || err2 != nil {
		return false
	}
	f.Namespace, f.TimerID, f.Attempt, f.Payload = *found.Namespace, *found.TimerID, *found.Attempt, found.Payload
	f.ExecuteAt, f.FiredAt = executeAt, firedAt
	return true
}
