// Package receiver handles the callbacks of Tocsin: it verifies them, gives your handler a Firing, and sends its answer.
//
//	hooks := receiver.New(receiver.FromEnv("TOCSIN_SECRET"))
//	http.Handle("POST /hooks/remind", hooks.Handle(remind))
//
// Dedup does the work of a firing once, however often its callback arrives.
package receiver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"tocsin.dev/go/internal/rules"
)

const (
	maxBodyBytes     = 1 << 20
	defaultTolerance = 300 * time.Second
)

// Handler does the work of a firing. An error, or a panic, is logged, and the timer's policy retries: a deployment may mend it.
type Handler func(ctx context.Context, firing *Firing) (Answer, error)

// Secrets returns the signing secrets of a namespace: the current one, and the former one during a rotation. It is called for
// each request.
type Secrets func(ctx context.Context) ([]string, error)

// FromEnv are the secrets in an environment variable, separated by spaces.
func FromEnv(name string) Secrets {
	return func(context.Context) ([]string, error) { return strings.Fields(os.Getenv(name)), nil }
}

// Static are secrets that do not change while the program runs.
func Static(secrets ...string) Secrets {
	return func(context.Context) ([]string, error) { return secrets, nil }
}

// Receiver verifies callbacks.
type Receiver struct {
	secrets   Secrets
	tolerance time.Duration
	now       func() time.Time
	log       *slog.Logger
}

// Option is one of New.
type Option func(*Receiver)

// WithTolerance is how much the sender's clock may differ; the default is 300 s.
func WithTolerance(tolerance time.Duration) Option {
	return func(r *Receiver) { r.tolerance = tolerance }
}

// WithClock replaces the system's clock, for tests.
func WithClock(now func() time.Time) Option { return func(r *Receiver) { r.now = now } }

// WithLogger logs to this logger instead of the default one.
func WithLogger(logger *slog.Logger) Option { return func(r *Receiver) { r.log = logger } }

// New makes a receiver of signed callbacks. Without secrets it refuses all of them.
func New(secrets Secrets, options ...Option) *Receiver {
	if secrets == nil {
		secrets = Static()
	}
	return newReceiver(secrets, options)
}

// NewUnsigned makes a receiver that verifies nothing: anybody who reaches it can call it.
func NewUnsigned(options ...Option) *Receiver { return newReceiver(nil, options) }

func newReceiver(secrets Secrets, options []Option) *Receiver {
	made := &Receiver{secrets: secrets, tolerance: defaultTolerance, now: time.Now, log: slog.Default()}
	for _, each := range options {
		each(made)
	}
	return made
}

// Handle makes an http.Handler of a handler. It needs the raw body, so no middleware may have read it before.
func (r *Receiver) Handle(handler Handler) http.Handler {
	return http.HandlerFunc(func(to http.ResponseWriter, request *http.Request) {
		if err := r.respond(request, handler).write(to); err != nil {
			r.log.Warn("callback response could not be sent", "error", err)
		}
	})
}

func (r *Receiver) respond(request *http.Request, handler Handler) Answer {
	body, err := io.ReadAll(io.LimitReader(request.Body, maxBodyBytes+1))
	if err != nil {
		return refused(http.StatusInternalServerError, "the request's body did not arrive")
	}
	if len(body) > maxBodyBytes {
		return refused(http.StatusRequestEntityTooLarge, "the body is too large for a callback")
	}
	if int64(len(body)) < request.ContentLength {
		r.log.Error("callback refused: something has read its body before; give the receiver the request as it arrived")
		return refused(http.StatusInternalServerError, "the receiver did not get the whole body; its log has the reason")
	}
	if r.secrets != nil {
		if refusal := r.verify(request, body); refusal != nil {
			return *refusal
		}
	}
	firing, err := readFiring(request.Header, body)
	if err != nil {
		r.log.Error("callback can't be read", "error", err, "webhook_id", request.Header.Get("webhook-id"))
		return refused(http.StatusInternalServerError, "the callback can't be read; the receiver's log has the reason")
	}
	decided, err := call(request.Context(), handler, firing)
	if err == nil {
		err = decided.check()
	}
	if err != nil {
		r.log.Error("handler failed", "error", err, "webhook_id", firing.WebhookID, "timer_id", firing.TimerID)
		return refused(http.StatusInternalServerError, "the handler failed; the receiver's log has the reason")
	}
	return decided
}

// call makes an error of a panic, with the stack.
func call(ctx context.Context, handler Handler, firing *Firing) (decided Answer, err error) {
	defer func() {
		switch panicked := recover(); panicked {
		case nil:
		case http.ErrAbortHandler:
			panic(panicked)
		default:
			err = fmt.Errorf("panic: %v\n%s", panicked, debug.Stack())
		}
	}()
	return handler(ctx, firing)
}

// verify returns the refusal of a request. What a mended configuration would accept is 503: after a 401 the timer fails.
func (r *Receiver) verify(request *http.Request, body []byte) *Answer {
	id, sent := request.Header.Get("webhook-id"), request.Header.Get("webhook-timestamp")
	if _, signed := request.Header["Webhook-Signature"]; !signed || id == "" || sent == "" {
		return refusal(http.StatusUnauthorized, "the request is not signed")
	}
	keys, err := r.keys(request.Context())
	if err != nil {
		r.log.Error("signing secrets can't be read; callbacks are refused until they can", "error", err)
		return refusal(http.StatusServiceUnavailable, "the receiver's secrets can't be read; its log has the reason")
	}
	timestamp, err := strconv.ParseUint(sent, 10, 62)
	if err != nil {
		return refusal(http.StatusServiceUnavailable, "the request's timestamp is not a number")
	}
	if r.now().Sub(time.Unix(int64(timestamp), 0)).Abs() > r.tolerance {
		r.log.Warn("callback refused: timestamp is outside the tolerance", "webhook_id", id)
		return refusal(http.StatusServiceUnavailable, "the request's timestamp is outside the tolerance; check both clocks")
	}
	if !rules.IsSigned(keys, id, int64(timestamp), body, request.Header.Get("webhook-signature")) {
		r.log.Warn("callback refused: wrong signature", "webhook_id", id)
		return refusal(http.StatusServiceUnavailable, "no signature is of this receiver's secrets")
	}
	return nil
}

func refusal(status int, reason string) *Answer {
	made := refused(status, reason)
	return &made
}

func (r *Receiver) keys(ctx context.Context) ([][]byte, error) {
	secrets, err := r.secrets(ctx)
	if err != nil {
		return nil, err
	}
	if len(secrets) == 0 {
		return nil, errors.New("the receiver has no signing secret; give one, or use NewUnsigned")
	}
	keys := make([][]byte, len(secrets))
	for i, secret := range secrets {
		if keys[i], err = rules.SigningKey(secret); err != nil {
			return nil, err
		}
	}
	return keys, nil
}
