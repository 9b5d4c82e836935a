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
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"tocsin.dev/go/internal/rules"
)

const (
	maxBodyBytes      = 1 << 20
	maxWebhookIDBytes = 512
	maxSignatureBytes = 2048
	defaultTolerance  = 300 * time.Second
)

var timestampText = regexp.MustCompile(`^[0-9]{1,12}$`)

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
	if request.ContentLength > maxBodyBytes {
		return tooLarge()
	}
	signed, refusal := r.readHead(request)
	if refusal != nil {
		return *refusal
	}
	body, err := io.ReadAll(io.LimitReader(request.Body, maxBodyBytes+1))
	if err != nil {
		return refused(http.StatusInternalServerError, "the request's body did not arrive")
	}
	if len(body) > maxBodyBytes {
		return tooLarge()
	}
	if int64(len(body)) < request.ContentLength {
		r.log.Error("callback refused: something has read its body before; give the receiver the request as it arrived")
		return refused(http.StatusInternalServerError, "the receiver did not get the whole body; its log has the reason")
	}
	if r.secrets != nil && !rules.IsSigned(signed.keys, signed.webhookID, signed.timestamp, body, signed.signatures) {
		r.log.Warn("callback refused: wrong signature", "webhook_id", signed.webhookID)
		return refused(http.StatusServiceUnavailable, "no signature is of this receiver's secrets")
	}
	if strings.HasPrefix(signed.webhookID, batchPrefix) {
		firings, unreadable, err := readBatch(body, request.Header)
		if err != nil {
			return r.foreign(err, signed.webhookID)
		}
		return r.answerAll(request.Context(), handler, firings, unreadable)
	}
	firing := &Firing{WebhookID: signed.webhookID, Body: body, Header: request.Header}
	if err := firing.read(signed.timestamp); err != nil {
		return r.foreign(err, signed.webhookID)
	}
	return r.answer(request.Context(), handler, firing)
}

func (r *Receiver) foreign(err error, webhookID string) Answer {
	r.log.Warn("callback refused", "error", err, "webhook_id", webhookID)
	return refused(http.StatusServiceUnavailable, err.Error())
}

// answer is what the handler decides, or that it has failed.
func (r *Receiver) answer(ctx context.Context, handler Handler, firing *Firing) Answer {
	decided, err := call(ctx, handler, firing)
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

// head is what a request's head has for the verification.
type head struct {
	webhookID  string
	timestamp  int64
	signatures []string
	keys       [][]byte
}

// readHead refuses what need not be read further; everything is bounded before it is worked on. What a mended configuration
// would accept is 503: after a 401 the timer fails.
func (r *Receiver) readHead(request *http.Request) (*head, *Answer) {
	for _, name := range []string{"Webhook-Id", "Webhook-Timestamp", "Webhook-Signature"} {
		if r.secrets != nil && len(request.Header[name]) == 0 {
			return nil, refusal(http.StatusUnauthorized, "the request is not signed")
		}
	}
	found := &head{webhookID: request.Header.Get("webhook-id")}
	sent, given := request.Header.Get("webhook-timestamp"), request.Header.Get("webhook-signature")
	if !timestampText.MatchString(sent) {
		return nil, refusal(http.StatusServiceUnavailable, "the request's timestamp is not a number of seconds")
	}
	found.timestamp, _ = strconv.ParseInt(sent, 10, 64) // twelve digits always fit
	if len(found.webhookID) > maxWebhookIDBytes {
		return nil, refusal(http.StatusServiceUnavailable, "the request's webhook-id is too long")
	}
	if r.secrets == nil {
		return found, nil
	}
	if len(given) > maxSignatureBytes || strings.Count(given, " ") >= rules.MaxSignatures {
		return nil, refusal(http.StatusServiceUnavailable, "the request has too many signatures")
	}
	found.signatures = strings.Split(given, " ")
	if r.now().Sub(time.Unix(found.timestamp, 0)).Abs() > r.tolerance {
		r.log.Warn("callback refused: timestamp is outside the tolerance", "webhook_id", found.webhookID)
		return nil, refusal(http.StatusServiceUnavailable, "the request's timestamp is outside the tolerance; check both clocks")
	}
	var err error
	if found.keys, err = r.keys(request.Context()); err != nil {
		r.log.Error("signing secrets can't be read; callbacks are refused until they can", "error", err)
		return nil, refusal(http.StatusServiceUnavailable, "the receiver's secrets can't be read; its log has the reason")
	}
	return found, nil
}

func tooLarge() Answer {
	return refused(http.StatusRequestEntityTooLarge, "the body is too large for a callback")
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
