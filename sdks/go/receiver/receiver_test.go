package receiver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"tocsin.dev/go/receiver"
	"tocsin.dev/go/tocsintest"
)

const secret = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX"

func served(handler receiver.Handler, request *http.Request, logged io.Writer) *httptest.ResponseRecorder {
	hooks := receiver.New(receiver.Static(secret), receiver.WithLogger(slog.New(slog.NewTextHandler(logged, nil))))
	answer := httptest.NewRecorder()
	hooks.Handle(handler).ServeHTTP(answer, request)
	return answer
}

func TestDefectsOfHandlersAreLoggedAndRetried(t *testing.T) {
	for reason, handler := range map[string]receiver.Handler{
		"broken": func(context.Context, *receiver.Firing) (receiver.Answer, error) {
			return receiver.Done(), errors.New("broken")
		},
		"panic: oh":   func(context.Context, *receiver.Firing) (receiver.Answer, error) { panic("oh") },
		"empty":       func(context.Context, *receiver.Firing) (receiver.Answer, error) { return receiver.Answer{}, nil },
		"is negative": func(context.Context, *receiver.Firing) (receiver.Answer, error) { return receiver.RetryAfter(-1), nil },
		"cannot unmarshal": func(_ context.Context, firing *receiver.Firing) (receiver.Answer, error) {
			_, err := receiver.Payload[int](firing)
			return receiver.Done(), err
		},
		"unsupported type": func(context.Context, *receiver.Firing) (receiver.Answer, error) {
			return receiver.RescheduleWith(time.Now(), func() {}), nil
		},
	} {
		var logged bytes.Buffer
		request := tocsintest.Sign(t, receiver.Firing{Payload: []byte(`"text"`)}, secret)
		if answer := served(handler, request, &logged); answer.Code != 500 || !strings.Contains(logged.String(), reason) {
			t.Error(reason, answer.Code, logged.String())
		}
	}
}

func TestABodyThatWasReadBeforeIsNamed(t *testing.T) {
	request := tocsintest.Sign(t, receiver.Firing{}, secret)
	if _, err := io.ReadAll(request.Body); err != nil {
		t.Fatal(err)
	}
	var logged bytes.Buffer
	if answer := served(nil, request, &logged); answer.Code != 500 || !strings.Contains(logged.String(), "read its body before") {
		t.Error(answer.Code, logged.String())
	}
}

// handled returns what the handler gets; nil if the request is refused.
func handled(t *testing.T, request *http.Request) (got *receiver.Firing) {
	t.Helper()
	handler := func(_ context.Context, firing *receiver.Firing) (receiver.Answer, error) {
		got = firing
		return receiver.Done(), nil
	}
	if answer := served(handler, request, io.Discard); got == nil && answer.Code != http.StatusServiceUnavailable {
		t.Error(answer.Code)
	}
	return got
}

func TestSignMakesRawBodies(t *testing.T) {
	header := http.Header{"Traceparent": {"00-1"}}
	firing := receiver.Firing{Namespace: "orders", TimerID: "größe+1/2", Body: []byte("raw"), Header: header}
	got := handled(t, tocsintest.Sign(t, firing, secret))
	if got == nil || got.TimerID != "größe+1/2" || got.Namespace != "orders" || got.Attempt != 0 || !got.FiredAt.Equal(got.ExecuteAt) ||
		got.Payload != nil || string(got.Body) != "raw" || got.Traceparent() != "00-1" {
		t.Errorf("%+v", got)
	}
}

func TestSignRepeatsTheFiringOfAnInstant(t *testing.T) {
	id := func(firing receiver.Firing) string { return handled(t, tocsintest.Sign(t, firing, secret)).WebhookID }
	at := receiver.Firing{TimerID: "a", ExecuteAt: time.Unix(1_800_000_000, 0)}
	first, again := id(at), id(at)
	at.ExecuteAt = at.ExecuteAt.Add(time.Second)
	later := id(at)
	at.ExecuteAt = time.Time{}
	if other := id(at); first != again || first == later || other == id(at) {
		t.Error(first, again, later, other)
	}
}

// unread fails the test if a body is read.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) { u.t.Error("the body was read"); return 0, io.EOF }

func TestTheHeadIsBoundedBeforeTheBodyIsRead(t *testing.T) {
	for name, value := range map[string]string{
		"webhook-signature": strings.Repeat("v1,AAAA ", 4_000), "webhook-id": strings.Repeat("x", 5_000),
		"webhook-timestamp": strings.Repeat("1", 5_000),
	} {
		request := tocsintest.Sign(t, receiver.Firing{}, secret)
		request.Header.Set(name, value)
		request.Body = io.NopCloser(unread{t})
		if got := handled(t, request); got != nil {
			t.Error(name, got)
		}
	}
}

func TestTooLargeAndUnconfigured(t *testing.T) {
	large := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(make([]byte, 1<<20+1)))
	if answer := served(nil, large, io.Discard); answer.Code != http.StatusRequestEntityTooLarge {
		t.Error(answer.Code)
	}
	answer := httptest.NewRecorder()
	request := tocsintest.Sign(t, receiver.Firing{}, secret)
	receiver.New(nil, receiver.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil)))).Handle(nil).ServeHTTP(answer, request)
	if answer.Code != http.StatusServiceUnavailable {
		t.Error(answer.Code)
	}
}

func TestAnUnreadableCallbackTakesNoOtherOfItsBatchAlong(t *testing.T) {
	var items []string
	for _, id := range []string{"a", "b", "c"} {
		request := tocsintest.Sign(t, receiver.Firing{TimerID: id, Payload: []byte("1e999")}, secret)
		body, err := io.ReadAll(request.Body)
		if err != nil {
			t.Fatal(err)
		}
		items = append(items, `{"webhookId":"`+request.Header.Get("webhook-id")+`",`+string(body[1:]))
	}
	items[1] = strings.Replace(items[1], `"attempt":`, `"attempt":"","later":`, 1)
	items = append(items, "17")
	request := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(`{"items":[`+strings.Join(items, ",")+`]}`))
	request.Header.Set("webhook-id", "batch_"+strings.Repeat("0", 32))
	request.Header.Set("webhook-timestamp", "1")
	handler := func(_ context.Context, firing *receiver.Firing) (receiver.Answer, error) {
		return receiver.Fail(strings.Repeat("ä", 201)), nil
	}
	answer := httptest.NewRecorder()
	receiver.NewUnsigned().Handle(receiver.Handler(handler)).ServeHTTP(answer, request)
	var got struct {
		Items []struct {
			Status int
			Reason string
		}
	}
	if err := json.Unmarshal(answer.Body.Bytes(), &got); err != nil || answer.Code != http.StatusOK || len(got.Items) != 3 {
		t.Fatal(err, answer.Code, answer.Body)
	}
	if got.Items[0].Reason != strings.Repeat("ä", 199)+"…" || got.Items[1].Status != 422 || got.Items[2].Status != 503 {
		t.Error(got)
	}
}
