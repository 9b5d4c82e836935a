package tocsin

import (
	"bytes"
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
	"sync/atomic"
	"time"

	"tocsin.dev/go/internal/rules"
)

const (
	connectTimeout = 2 * time.Second
	// tryTimeout is longer than the server's own 10 s, so that its 503 arrives, which means more than a timeout.
	tryTimeout     = 15 * time.Second
	defaultTimeout = 30 * time.Second
	// unlimitedRetries: until the call's time is over.
	unlimitedRetries   = -1
	connectionsPerHost = 64
	// idleTimeout is below the 75 s after which the server closes idle connections.
	idleTimeout = 60 * time.Second
)

// session is what all calls of a client share.
type session struct {
	url           string
	authorization []string
	send          func(*http.Request) (*http.Response, error)
	hook          func(context.Context, http.Header)
	onTry         func(Try)
	log           *slog.Logger
	budget        rules.RetryBudget
	router        *router
	random        func() float64
	// close closes idle connections; nil: they are not ours.
	close func()
}

// logger is the default one at the time of the event, unless another is given.
func (s *session) logger() *slog.Logger {
	if s.log == nil {
		return slog.Default()
	}
	return s.log
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
	body   func(elapsed time.Duration) ([]byte, error)
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
func constant(body json.Marshaler) func(time.Duration) ([]byte, error) {
	return func(time.Duration) ([]byte, error) { return body.MarshalJSON() }
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
	paid := 0
	for retry := 0; ; retry++ {
		began := time.Now()
		answer, err = s.try(ctx, c, base, retry, began.Sub(started), deadline)
		if errors.Is(err, ErrInvalidArgument) {
			return nil, mayBeDone, err
		}
		canceled := err != nil && ctx.Err() == context.Canceled
		if s.router != nil && c.place != nil && !canceled {
			s.router.observe(base, answer)
		}
		if err == nil && (answer.status < 200 || answer.status >= 300) {
			err = errorOf(answer)
		}
		tried := Try{Operation: c.operation, Number: retry + 1, Elapsed: time.Since(began)}
		if err == nil {
			s.report(ctx, tried, answer, nil)
			s.budget.Succeeded(paid)
			return answer, mayBeDone, nil
		}
		mayBeDone = mayBeDone || maybeDone(err)
		pause, again := time.Duration(0), false
		if !canceled {
			pause, again = s.pause(c, err, retry, l, time.Until(deadline))
		}
		if again {
			tried.Pause = Some(pause)
		}
		s.report(ctx, tried, answer, err)
		if !again {
			return nil, mayBeDone, final(ctx, c, err, canceled, mayBeDone, deadline)
		}
		if maybeDone(err) {
			paid++
		}
		if !sleep(ctx, pause) {
			return nil, mayBeDone, fmt.Errorf("tocsin: %s: %w", c.operation, context.Cause(ctx))
		}
		base = s.url
	}
}

// final is the error of a call whose last try failed with this one.
func final(ctx context.Context, c *call, err error, canceled, mayBeDone bool, deadline time.Time) error {
	var lost *TransportError
	switch {
	case canceled:
		return fmt.Errorf("tocsin: %s: %w", c.operation, context.Cause(ctx))
	case errors.As(err, &lost) && !time.Now().Before(deadline):
		reason := fmt.Errorf("%w: no answer within the time of the call: %v", ErrDeadlineExceeded, lost.Err)
		return &TransportError{MaybeDone: mayBeDone, Err: reason}
	}
	return err
}

// pause is the time before the next try; false: there is none. One after a try that may have been executed has to be paid for;
// for the others the pauses bound the load.
func (s *session) pause(c *call, err error, retry int, l limits, left time.Duration) (time.Duration, bool) {
	if l.retries != unlimitedRetries && retry >= l.retries || !isRepeated(err) || c.once && maybeDone(err) {
		return 0, false
	}
	var after *time.Duration
	var answered *APIError
	if errors.As(err, &answered) && answered.hasRetryAfter {
		after = &answered.RetryAfter
	}
	pause, again := rules.RetryPause(retry, after, left, s.random())
	if !again || maybeDone(err) && !s.budget.Spend() {
		return 0, false
	}
	return pause, true
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
	ends := time.Now().Add(tryTimeout)
	if deadline.Before(ends) {
		ends = deadline
	}
	limited, cancel := context.WithDeadline(ctx, ends)
	defer cancel()
	var link connection
	request, err := s.request(link.traced(limited), c, base, retry, elapsed)
	if err != nil {
		return nil, err
	}
	if s.hook != nil {
		s.hook(ctx, request.Header)
	}
	response, err := s.send(request)
	if err != nil {
		return nil, lostAnswer(limited, link.maybeUsed(), err)
	}
	defer response.Body.Close()
	body, err := readAll(response)
	if err != nil {
		return nil, lostAnswer(limited, true, err)
	}
	return &reply{response.StatusCode, response.Header, body}, nil
}

// readAll spares growing buffers if the length is known.
func readAll(response *http.Response) ([]byte, error) {
	if response.ContentLength <= 0 || response.ContentLength > maxBatchBytes {
		return io.ReadAll(response.Body)
	}
	body := make([]byte, response.ContentLength)
	_, err := io.ReadFull(response.Body, body)
	return body, err
}

// connection follows whether a request got one. Round trippers that are not net/http's may never report it.
type connection struct{ asked, got atomic.Bool }

func (c *connection) traced(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { c.asked.Store(true) },
		GotConn: func(httptrace.GotConnInfo) { c.got.Store(true) },
	})
}

// maybeUsed is false only if the request was certainly never sent.
func (c *connection) maybeUsed() bool { return c.got.Load() || !c.asked.Load() }

// lostAnswer does not wrap the error of a try's own time limit: it is not the caller's.
func lostAnswer(ctx context.Context, maybeDone bool, err error) error {
	if ctx.Err() != nil {
		err = fmt.Errorf("no answer in time: %v", err)
	}
	return &TransportError{MaybeDone: maybeDone, Err: err}
}

// Values of headers that all requests share.
var (
	jsonType  = []string{"application/json"}
	userAgent = []string{"tocsin-client-go/" + Version}
	firstTry  = []string{"1"}
)

func (s *session) request(ctx context.Context, c *call, base string, retry int, elapsed time.Duration) (*http.Request, error) {
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
		encoded, err := c.body(elapsed)
		if err != nil {
			return nil, invalidArgument(err)
		}
		body = bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(ctx, described.method, address, body)
	if err != nil {
		return nil, invalidArgument(err)
	}
	request.Header = make(http.Header, 8) // with room for those below
	request.Header["Accept"], request.Header["User-Agent"] = jsonType, userAgent
	if body != nil {
		request.Header["Content-Type"] = jsonType
	}
	if s.authorization != nil {
		request.Header["Authorization"] = s.authorization
	}
	if c.first && retry == 0 {
		request.Header["Tocsin-First-Try"] = firstTry
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

func random() float64 { return rand.Float64() }
