package receiver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"tocsin.dev/go/internal/rules"
)

// Firing is one attempt to fire a timer, or an occurrence of a schedule.
//
// A timer with the method GET or HEAD sends no body: without a raw body of the timer, Namespace and TimerID are empty, Attempt
// is 0, and both instants are that of the request.
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
	// Attempt counts from 1.
	Attempt int
	// Payload is the timer's; nil for a raw body, which is in Body.
	Payload json.RawMessage
	// Body is the request's, as it arrived.
	Body []byte
	// Header is the request's.
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

// readFiring reads a verified request.
func readFiring(header http.Header, body []byte) (*Firing, error) {
	firing := &Firing{WebhookID: header.Get("webhook-id"), Body: body, Header: header}
	if header.Get("tocsin-timer-id") != "" {
		return firing, firing.readHeader()
	}
	if len(body) == 0 {
		sent, err := strconv.ParseInt(header.Get("webhook-timestamp"), 10, 64)
		firing.ExecuteAt = time.Unix(sent, 0).UTC()
		firing.FiredAt = firing.ExecuteAt
		return firing, err
	}
	return firing, firing.readEnvelope()
}

func (f *Firing) readHeader() (err error) {
	f.Namespace = f.Header.Get("tocsin-namespace")
	if f.TimerID, err = url.PathUnescape(f.Header.Get("tocsin-timer-id")); err != nil {
		return fmt.Errorf("tocsin-timer-id: %w", err)
	}
	if f.Attempt, err = strconv.Atoi(f.Header.Get("tocsin-attempt")); err != nil {
		return fmt.Errorf("tocsin-attempt: %w", err)
	}
	return f.readInstants(f.Header.Get("tocsin-execute-at"), f.Header.Get("tocsin-fired-at"))
}

func (f *Firing) readEnvelope() error {
	var envelope struct {
		Namespace *string         `json:"namespace"`
		TimerID   *string         `json:"timerId"`
		ExecuteAt string          `json:"executeAt"`
		FiredAt   string          `json:"firedAt"`
		Attempt   int             `json:"attempt"`
		Payload   json.RawMessage `json:"payload"`
	}
	if err := json.Unmarshal(f.Body, &envelope); err != nil {
		return fmt.Errorf("the body is not a callback of Tocsin: %w", err)
	}
	if envelope.Namespace == nil || envelope.TimerID == nil || envelope.Payload == nil {
		return fmt.Errorf("the body is not a callback of Tocsin: namespace, timerId or payload is missing")
	}
	f.Namespace, f.TimerID = *envelope.Namespace, *envelope.TimerID
	f.Attempt, f.Payload = envelope.Attempt, envelope.Payload
	return f.readInstants(envelope.ExecuteAt, envelope.FiredAt)
}

func (f *Firing) readInstants(executeAt, firedAt string) (err error) {
	if f.ExecuteAt, err = rules.ParseInstant(executeAt); err != nil {
		return err
	}
	f.FiredAt, err = rules.ParseInstant(firedAt)
	return err
}
