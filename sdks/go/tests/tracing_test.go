package tests

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"tocsin.dev/go/tocsin"
)

func TestEveryTryHasTheSpanOfItsCall(t *testing.T) {
	var sent []string
	server := httptest.NewServer(http.HandlerFunc(func(to http.ResponseWriter, request *http.Request) {
		sent = append(sent, request.Header.Get("traceparent"))
		if len(sent)%2 == 1 {
			to.WriteHeader(http.StatusServiceUnavailable)
		} else {
			to.WriteHeader(http.StatusNoContent)
		}
	}))
	defer server.Close()
	client := tocsin.NewClient(server.URL, tocsin.WithRequestHook(func(ctx context.Context, header http.Header) {
		propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(header))
	}))
	var wanted []string
	for n := range 2 {
		span := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{byte(n + 1)}})
		if err := client.Timers.Delete(trace.ContextWithSpanContext(t.Context(), span), "n", "t"); err != nil {
			t.Fatal(err)
		}
		traceparent := fmt.Sprintf("00-%s-%s-00", span.TraceID(), span.SpanID())
		wanted = append(wanted, traceparent, traceparent)
	}
	if !slices.Equal(sent, wanted) {
		t.Error(sent, wanted)
	}
}
