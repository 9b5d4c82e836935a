package tocsin

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// recorder answers with the statuses in turn, then with the last one, and keeps the requests.
type recorder struct {
	mutex    sync.Mutex
	statuses []int
	headers  []http.Header
	bodies   []string
}

func (r *recorder) ServeHTTP(to http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		panic(err)
	}
	r.mutex.Lock()
	status := r.statuses[min(len(r.bodies), len(r.statuses)-1)]
	r.headers, r.bodies = append(r.headers, request.Header), append(r.bodies, string(body))
	r.mutex.Unlock()
	to.WriteHeader(status)
	if strings.HasSuffix(request.URL.Path, "/batch/create") {
		fmt.Fprint(to, batchAnswer(body))
		return
	}
	if err := json.NewEncoder(to).Encode(Timer{ID: "t", Status: TimerStatusPending}); err != nil {
		panic(err)
	}
}

func batchAnswer(body []byte) string {
	var sent struct{ Timers []CreateTimer }
	if err := json.Unmarshal(body, &sent); err != nil {
		return err.Error()
	}
	results := []BatchResult{}
	for _, timer := range sent.Timers {
		results = append(results, BatchResult{Timer: &Timer{ID: timer.ID}})
	}
	answer, err := json.Marshal(BatchResults{Results: results})
	if err != nil {
		return err.Error()
	}
	return string(answer)
}

func served(t *testing.T, statuses ...int) (*Client, *recorder) {
	t.Helper()
	requests := &recorder{statuses: statuses}
	server := httptest.NewServer(requests)
	t.Cleanup(server.Close)
	client := NewClient(server.URL)
	client.session.random = func() float64 { return 0 }
	return client, requests
}

func newTimer() CreateTimer {
	return CreateTimer{Namespace: "n", ID: "t", CallbackURL: "http://x/?a=1&b=<2>", Delay: time.Hour}
}

func TestRetriesOfAllCallsShareABudget(t *testing.T) {
	client, requests := served(t, 503)
	for range 10 {
		if _, err := client.Timers.Get(context.Background(), "n", "t"); !errors.Is(err, ErrUnavailable) {
			t.Fatal(err)
		}
	}
	if got := len(requests.bodies); got != 10+100 {
		t.Errorf("%d requests", got)
	}
}

func TestRetryHasTheSameKeyAndWhatIsLeftOfTheDelay(t *testing.T) {
	client, requests := served(t, 503, 200)
	if _, err := client.Timers.Create(context.Background(), newTimer()); err != nil {
		t.Fatal(err)
	}
	var first, second CreateTimer
	if err := errors.Join(json.Unmarshal([]byte(requests.bodies[0]), &first), json.Unmarshal([]byte(requests.bodies[1]), &second)); err != nil {
		t.Fatal(err)
	}
	if first.IdempotencyKey == "" || first.IdempotencyKey != second.IdempotencyKey {
		t.Error(first.IdempotencyKey, second.IdempotencyKey)
	}
	if first.Delay != time.Hour || second.Delay >= time.Hour {
		t.Error(first.Delay, second.Delay)
	}
	if requests.headers[0].Get("tocsin-first-try") != "1" || requests.headers[1].Get("tocsin-first-try") != "" {
		t.Error(requests.headers)
	}
}

func TestWhatIsSent(t *testing.T) {
	client, requests := served(t, 200)
	timer := newTimer()
	timer.Payload = json.RawMessage(`{"b" : "<&>", "a":1.0}`)
	timer.Tags, timer.IdempotencyKey = []string{}, "mine"
	if _, err := client.Timers.Create(context.Background(), timer); err != nil {
		t.Fatal(err)
	}
	want := `{"namespace":"n","callbackUrl":"http://x/?a=1&b=<2>","id":"t","delay":"1h","idempotencyKey":"mine",` +
		`"payload":{"b" : "<&>", "a":1.0},"tags":[]}`
	if requests.bodies[0] != want || requests.headers[0].Get("tocsin-first-try") != "" {
		t.Error(requests.bodies[0])
	}
	change := UpdateTimer{Namespace: "n", TimerID: "t", Headers: Null[map[string]string](), Tags: Some([]string{"a"})}
	if _, err := client.Timers.Update(context.Background(), change); err != nil {
		t.Fatal(err)
	}
	if want := `{"namespace":"n","timerId":"t","headers":null,"tags":["a"]}`; requests.bodies[1] != want {
		t.Error(requests.bodies[1])
	}
}

func TestWhatCannotBeSentIsNamed(t *testing.T) {
	client, requests := served(t, 200)
	ctx := context.Background()
	wrong := map[string]func() error{
		"payload": func() error {
			timer := newTimer()
			timer.Payload = JSON(math.NaN())
			_, err := client.Timers.Create(ctx, timer)
			return err
		},
		"delay": func() error {
			timer := newTimer()
			timer.Delay = -1
			_, err := client.Timers.Create(ctx, timer)
			return err
		},
		"tags": func() error {
			timer := newTimer()
			timer.Tags = []string{"\xff"}
			results, err := client.Timers.CreateMany(ctx, func(yield func(CreateTimer) bool) { yield(timer) })
			return errors.Join(err, results[0].Err)
		},
		"url": func() error { _, err := NewClient("localhost:8080").Namespaces.List(ctx); return err },
		"tls config": func() error {
			return NewClient("http://x", WithTLSConfig(&tls.Config{}), WithHTTPClient(http.DefaultClient)).Timers.Delete(ctx, "n", "t")
		},
		"retries": func() error { return client.With(WithRetries(-1)).Timers.Delete(ctx, "n", "t") },
		"timeout": func() error { return client.With(WithTimeout(0)).Timers.Delete(ctx, "n", "t") },
	}
	for name, call := range wrong {
		if err := call(); !errors.Is(err, ErrInvalidArgument) || !strings.Contains(err.Error(), name+":") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(requests.bodies) > 0 {
		t.Error(requests.bodies)
	}
}

func TestHookSeesTheContextAndAddsHeaders(t *testing.T) {
	type key struct{}
	requests := &recorder{statuses: []int{200}}
	server := httptest.NewServer(requests)
	defer server.Close()
	client := NewClient(server.URL, WithKey("k"), WithRequestHook(func(ctx context.Context, header http.Header) {
		header.Set("traceparent", ctx.Value(key{}).(string))
	}))
	if _, err := client.Timers.Get(context.WithValue(context.Background(), key{}, "00-1"), "n", "t"); err != nil {
		t.Fatal(err)
	}
	if got := requests.headers[0]; got.Get("traceparent") != "00-1" || got.Get("authorization") != "Bearer k" {
		t.Error(got)
	}
}

func TestBatcherSendsWhatManyGoroutinesAdd(t *testing.T) {
	client, requests := served(t, 503, 200)
	batcher := client.Timers.NewBatcher()
	var adding sync.WaitGroup
	for i := range 2_000 {
		adding.Add(1)
		go func() {
			defer adding.Done()
			timer := newTimer()
			timer.ID = fmt.Sprint(i)
			pending, err := batcher.Add(context.Background(), timer)
			if err != nil {
				t.Error(err)
				return
			}
			if created, err := pending.Wait(context.Background()); err != nil || created.ID != timer.ID {
				t.Error(created, err)
			}
		}()
	}
	adding.Wait()
	batcher.Close()
	if got := len(requests.bodies); got < 5 {
		t.Errorf("%d requests", got)
	}
	if _, err := batcher.TryAdd(newTimer()); !errors.Is(err, ErrBatcherClosed) {
		t.Error(err)
	}
}

func TestTimersThatACanceledCreateManyDidNotSendHaveItsError(t *testing.T) {
	client, requests := served(t, 200)
	ctx, cancel := context.WithCancel(context.Background())
	results, err := client.Timers.CreateMany(ctx, func(yield func(CreateTimer) bool) {
		for n := range 3 {
			if n == 2 {
				cancel()
			}
			if !yield(newTimer()) {
				return
			}
		}
	})
	if !errors.Is(err, context.Canceled) || len(results) != 2 || len(requests.bodies) > 0 {
		t.Fatal(results, err, requests.bodies)
	}
	for _, each := range results {
		if each.Timer != nil || !errors.Is(each.Err, context.Canceled) {
			t.Error(each)
		}
	}
}

func TestBatcherIsFull(t *testing.T) {
	client, _ := served(t, 200)
	batcher := client.Timers.NewBatcher()
	batcher.queue.waiting = maxWaiting
	if _, err := batcher.TryAdd(newTimer()); !errors.Is(err, ErrBatcherFull) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := batcher.Add(ctx, newTimer()); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestATimerIsNeverInTwoRequests(t *testing.T) {
	queue, now := newBatchQueue(), time.Now()
	add := func(id string) {
		timer, err := newItem(CreateTimer{Namespace: "n", ID: id})
		if err != nil {
			t.Fatal(err)
		}
		queue.add(entry{item: timer, added: now}, "")
	}
	ids := func(entries []entry) (found string) {
		for _, each := range entries {
			found += each.item.place.timerID
		}
		return found
	}
	for _, id := range []string{"a", "b", "a", "c"} {
		add(id)
	}
	if _, early := queue.take(now); early != nil {
		t.Error("nothing is ready before 5 ms")
	}
	_, first := queue.take(now.Add(linger))
	add("b")
	if _, blocked := queue.take(now.Add(linger)); ids(first) != "abc" || blocked != nil {
		t.Error(ids(first), ids(blocked))
	}
	queue.settled("", first)
	if _, second := queue.take(now.Add(linger)); ids(second) != "ab" {
		t.Error(ids(second))
	}
}

func TestALaterTimerOfANameNeverOvertakesAnEarlierOne(t *testing.T) {
	queue, now := newBatchQueue(), time.Now()
	add := func(id, callback, owner string) {
		timer, err := newItem(CreateTimer{Namespace: "n", ID: id, CallbackURL: callback})
		if err != nil {
			t.Fatal(err)
		}
		queue.add(entry{item: timer, added: now}, owner)
	}
	later := now.Add(linger)
	var requests [][]entry
	for _, id := range []string{"x", "y"} { // as many as the owner gets at a time
		add(id, "", "a")
		_, taken := queue.take(later)
		requests = append(requests, taken)
	}
	add("t", "old", "a")
	add("t", "new", "b") // the owner changes while its requests last
	if _, overtaking := queue.take(later); overtaking != nil {
		t.Error(overtaking[0].item.timer.CallbackURL)
	}
	for _, want := range []string{"old", "new"} {
		queue.settled("a", requests[0])
		owner, taken := queue.take(later)
		if len(taken) != 1 || owner != "a" || taken[0].item.timer.CallbackURL != want {
			t.Fatal(owner, taken, want)
		}
		requests[0] = taken
	}
	queue.settled("a", requests[0])
	add("t", "another", "b")
	if owner, taken := queue.take(later); owner != "b" || len(taken) != 1 {
		t.Error(owner, taken)
	}
}

type tripper func(*http.Request) (*http.Response, error)

func (t tripper) RoundTrip(request *http.Request) (*http.Response, error) { return t(request) }

func with(t tripper, options ...Option) *Client {
	return NewClient("http://tocsin.example", append(options, WithHTTPClient(&http.Client{Transport: t}))...)
}

func TestARoundTripperOfAnotherKindMayHaveSentTheRequest(t *testing.T) {
	requests := 0
	client := with(func(*http.Request) (*http.Response, error) { requests++; return nil, errors.New("lost") })
	_, err := client.Namespaces.Create(context.Background(), CreateNamespace{Name: "n"})
	var lost *TransportError
	if !errors.As(err, &lost) || !lost.MaybeDone || requests != 1 {
		t.Error(err, requests)
	}
}

func TestTimeLimitsHoldWithAnotherHTTPClient(t *testing.T) {
	client := with(func(request *http.Request) (*http.Response, error) {
		if ends, ok := request.Context().Deadline(); !ok || time.Until(ends) > tryTimeout {
			t.Error("a try has no limit")
		}
		<-request.Context().Done()
		return nil, request.Context().Err()
	}, WithTimeout(time.Millisecond))
	if _, err := client.Cluster.Get(context.Background()); !errors.Is(err, ErrDeadlineExceeded) {
		t.Error(err)
	}
}

func TestAnUnknownCertificateIsNotTriedAgain(t *testing.T) {
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	tries := 0
	_, err := NewClient(server.URL, WithOnTry(func(Try) { tries++ })).Timers.Get(context.Background(), "n", "t")
	var lost *TransportError
	if !errors.As(err, &lost) || lost.MaybeDone || tries != 1 {
		t.Error(err, tries)
	}
}

func TestConnectionsAreOfHTTP1(t *testing.T) {
	protocols := make(chan string, 1)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(to http.ResponseWriter, request *http.Request) {
		protocols <- request.Proto
		to.WriteHeader(http.StatusNoContent)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	trusted := server.Client().Transport.(*http.Transport).TLSClientConfig
	for _, offered := range [][]string{nil, {"h2", "http/1.1"}} {
		settings := &tls.Config{RootCAs: trusted.RootCAs, NextProtos: offered}
		if err := NewClient(server.URL, WithTLSConfig(settings)).Timers.Delete(context.Background(), "n", "t"); err != nil {
			t.Fatal(err)
		}
		if got := <-protocols; got != "HTTP/1.1" {
			t.Error(got)
		}
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	requests := 0
	client := with(func(request *http.Request) (*http.Response, error) {
		requests++
		return &http.Response{StatusCode: 307, Header: http.Header{"Location": {"/"}}, Body: http.NoBody, Request: request}, nil
	})
	if err := client.Timers.Delete(context.Background(), "n", "t"); !errors.Is(err, ErrServerError) || requests != 1 {
		t.Error(err, requests)
	}
}

func TestAForeignAnswerDeletesNothing(t *testing.T) {
	client, _ := served(t, 200)
	if err := client.Timers.Delete(context.Background(), "n", "t"); !errors.Is(err, ErrServerError) {
		t.Error(err)
	}
}

func TestAMessageHasEachReasonOnce(t *testing.T) {
	bad := []BadField{{Path: "payload", Reason: "is too long"}, {Path: "id", Reason: "is empty"}}
	err := &APIError{Status: 400, Code: "INVALID_INPUT", Message: "payload: is too long", Fields: bad}
	if got := err.Error(); got != "tocsin: INVALID_INPUT (400): payload: is too long; id: is empty" {
		t.Error(got)
	}
}
