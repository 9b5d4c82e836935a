package receiver_test

import (
	"bytes"
	"context"
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

func TestRawBodiesHaveTheirFiringInHeaders(t *testing.T) {
	header := http.Header{}
	for name, value := range map[string]string{
		"tocsin-namespace": "orders", "tocsin-timer-id": "gr%C3%B6%C3%9Fe+1", "tocsin-attempt": "2",
		"tocsin-execute-at": "2027-01-31T12:00:00Z", "tocsin-fired-at": "2027-01-31T12:00:00.000001Z", "traceparent": "00-1",
	} {
		header.Set(name, value)
	}
	var got *receiver.Firing
	handler := func(_ context.Context, firing *receiver.Firing) (receiver.Answer, error) {
		got = firing
		return receiver.Done(), nil
	}
	served(handler, tocsintest.Sign(t, receiver.Firing{Body: []byte("raw"), Header: header}, secret), io.Discard)
	if got == nil || got.TimerID != "größe+1" || got.Attempt != 2 || got.FiredAt.Sub(got.ExecuteAt) != time.Microsecond ||
		got.Payload != nil || string(got.Body) != "raw" || got.Traceparent() != "00-1" {
		t.Errorf("%+v", got)
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
