package tocsin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync"
	"time"

	"tocsin.dev/go/internal/rules"
)

const (
	connectTimeout = 2 * time.Second
	// tryTimeout is longer than the server's own 10 s, so that its 503 arrives, which means more than a timeout.
	tryTimeout         = 15 * time.Second
	defaultTimeout     = 30 * time.Second
	defaultRetries     = 3
	connectionsPerHost = 64
	// idleTimeout is below the 75 s after which the server closes idle connections.
	idleTimeout = 60 * time.Second
)

// session is what all calls of a client share.
type session struct {
	url    string
	key    string
	http   *http.Client
	hook   func(context.Context, http.Header)
	log    *slog.Logger
	budget retryBudget
	router *router
	random func() float64
}

// limits are those of one call.
type limits struct {
	timeout time.Duration
	retries int
}

// call is a request as it is meant, whatever number of tries it takes.
type call struct {
	operation string
	// body returns what to send, after so much time; nil: nothing.
	body   func(elapsed time.Duration) json.Marshaler
	path   map[string]string
	query  url.Values
	header http.Header
	// first: the first try has a key that was never sent before.
	first bool
	// once: it must not be repeated after a try that may have been executed.
	once bool
	// place is the timer that it writes, if its owner may be asked directly.
	place *place
}

// reply is what was answered.
type reply struct {
	status int
	header http.Header
	body   []byte
}

// constant is a body that does not depend on time.
func constant(body json.Marshaler) func(time.Duration) json.Marshaler {
	return func(time.Duration) json.Marshaler { return body }
}

// left is what is left of a delay, so that a retry means the same instant. It is never zero, which would be absent.
func left(delay, elapsed time.Duration) time.Duration {
	if delay <= 0 || elapsed <= 0 {
		return delay
	}
	return max(delay-elapsed, time.Microsecond)
}

// perform repeats the call until it is answered 2xx. It returns the last try's error otherwise, and whether one of the
// failed tries may have been executed.
func (s *session) perform(ctx context.Context, c *call, l limits) (answer *reply, mayBeDone bool, err error) {
	started := time.Now()
	deadline := started.Add(l.timeout)
	if ends, ok := ctx.Deadline(); ok && ends.Before(deadline) {
		deadline = ends
	}
	base := s.url
	if s.router != nil && c.place != nil {
		base = s.router.baseFor(ctx, *c.place, s)
	}
	for retry := 0; ; retry++ {
		answer, err = s.try(ctx, c, base, retry, time.Since(started), deadline)
		if err != nil && ctx.Err() == context.Canceled {
			return nil, true, fmt.Errorf("tocsin: %s: %w", c.operation, context.Cause(ctx))
		}
		if errors.Is(err, ErrInvalidArgument) {
			return nil, mayBeDone, err
		}
		if s.router != nil && c.place != nil {
			s.router.observe(base, answer)
		}
		if err == nil && answer.status >= 200 && answer.status < 300 {
			s.budget.earn()
			return answer, mayBeDone, nil
		}
		if err == nil {
			err = errorOf(answer)
		}
		mayBeDone = mayBeDone || maybeDone(err)
		var lost *TransportError
		if errors.As(err, &lost) && !time.Now().Before(deadline) {
			reason := fmt.Errorf("%w: no answer within the time of the call: %v", ErrDeadlineExceeded, lost.Err)
			return nil, mayBeDone, &TransportError{MaybeDone: mayBeDone, Err: reason}
		}
		pause, ok := s.pause(c, err, retry, l, time.Until(deadline))
		if !ok || !s.budget.spend() {
			return nil, mayBeDone, err
		}
		if !sleep(ctx, pause) {
			return nil, mayBeDone, fmt.Errorf("tocsin: %s: %w", c.operation, context.Cause(ctx))
		}
		base = s.url
	}
}

// pause is the time before the next try; false: there is none.
func (s *session) pause(c *call, err error, retry int, l limits, left time.Duration) (time.Duration, bool) {
	if retry >= l.retries || !isRepeated(err) || (c.once && maybeDone(err)) {
		return 0, false
	}
	var after *time.Duration
	var answered *APIError
	if errors.As(err, &answered) && answered.hasRetryAfter {
		after = &answered.RetryAfter
	}
	return rules.RetryPause(retry, after, left, s.random())
}

// read is one short try of a read whose failure changes no call's result.
func (s *session) read(ctx context.Context, c *call) (*reply, error) {
	answer, err := s.try(ctx, c, s.url, 0, 0, time.Now().Add(connectTimeout))
	if err == nil && answer.status >= 400 {
		return nil, errorOf(answer)
	}
	return answer, err
}

func (s *session) try(
	ctx context.Context, c *call, base string, retry int, elapsed time.Duration, deadline time.Time,
) (*reply, error) {
	request, err := s.request(c, base, retry, elapsed)
	if err != nil {
		return nil, err
	}
	if s.hook != nil {
		s.hook(ctx, request.Header)
	}
	ends := time.Now().Add(tryTimeout)
	if deadline.Before(ends) {
		ends = deadline
	}
	limited, cancel := context.WithDeadline(ctx, ends)
	defer cancel()
	connected := false
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected = true }}
	response, err := s.http.Do(request.WithContext(httptrace.WithClientTrace(limited, trace)))
	if err != nil {
		return nil, lostAnswer(limited, connected, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, lostAnswer(limited, true, err)
	}
	return &reply{response.StatusCode, response.Header, body}, nil
}

// lostAnswer does not wrap the error of a try's own time limit: it is not the caller's.
func lostAnswer(ctx context.Context, connected bool, err error) error {
	if ctx.Err() != nil {
		err = fmt.Errorf("no answer in time: %v", err)
	}
	return &TransportError{MaybeDone: connected, Err: err}
}

func (s *session) request(c *call, base string, retry int, elapsed time.Duration) (*http.Request, error) {
	described := operations[c.operation]
	address := base + described.path
	for name, value := range c.path {
		address = strings.ReplaceAll(address, "{"+name+"}", url.PathEscape(value))
	}
	if len(c.query) > 0 {
		address += "?" + c.query.Encode()
	}
	var body io.Reader
	if c.body != nil {
		if retry == 0 {
			elapsed = 0
		}
		encoded, err := c.body(elapsed).MarshalJSON()
		if err != nil {
			return nil, invalidArgument(err)
		}
		body = strings.NewReader(string(encoded))
	}
	request, err := http.NewRequest(described.method, address, body)
	if err != nil {
		return nil, invalidArgument(err)
	}
	request.Header.Set("accept", "application/json")
	request.Header.Set("user-agent", "tocsin-client-go/"+Version)
	if body != nil {
		request.Header.Set("content-type", "application/json")
	}
	if s.key != "" {
		request.Header.Set("authorization", "Bearer "+s.key)
	}
	if c.first && retry == 0 {
		request.Header.Set("tocsin-first-try", "1")
	}
	for name, values := range c.header {
		request.Header[name] = values
	}
	return request, nil
}

// sleep returns false if the context ends before.
func sleep(ctx context.Context, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// retryBudget bounds the retries of a client: if most tries fail, repeating each of them makes an overload worse. It counts
// in tenths of a retry: 20 retries over all calls of a client while nothing succeeds, and one more for ten successes.
type retryBudget struct {
	mutex sync.Mutex
	spent int
}

const (
	maxBudget = 200
	retryCost = 10
)

// spend pays for a retry; false: too little is left.
func (b *retryBudget) spend() bool {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.spent+retryCost > maxBudget {
		return false
	}
	b.spent += retryCost
	return true
}

func (b *retryBudget) earn() {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.spent = max(b.spent-1, 0)
}

func random() float64 { return rand.Float64() }
