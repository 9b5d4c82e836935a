package tocsin

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestAReportDelaysAMonitoredJobForAShortTimeOnly(t *testing.T) {
	client, _ := served(t, 404)
	send, reports := client.session.send, 0
	client.session.send = func(request *http.Request) (*http.Response, error) {
		reports++
		if ends, limited := request.Context().Deadline(); !limited || time.Until(ends) > reportTimeout {
			t.Error("the report may take until", ends)
		}
		return send(request)
	}
	broken := errors.New("broken")
	if err := client.Monitors.Run(context.Background(), "n", "m", func(context.Context) error { return broken }); err != broken {
		t.Error(err)
	}
	if reports != 2 {
		t.Error(reports, "reports")
	}
}

func TestAPutThatMayHaveLostThePingURLIsNotRepeated(t *testing.T) {
	for _, each := range []struct {
		monitor  PutMonitor
		requests int
	}{
		{PutMonitor{Namespace: "n", ID: "m", Every: time.Hour}, 1},
		{PutMonitor{Namespace: "n", ID: "m", Schedule: "s", ExpectedVersion: Some(1)}, 1},
		{PutMonitor{Namespace: "n", ID: "m", Schedule: "s"}, 2},
		{PutMonitor{Namespace: "n", ID: "m", Every: time.Hour, DryRun: true}, 2},
	} {
		requests := 0
		client := with(func(*http.Request) (*http.Response, error) { requests++; return nil, errors.New("lost") }, WithRetries(1))
		_, err := client.Monitors.Put(context.Background(), each.monitor)
		var lost *TransportError
		if !errors.As(err, &lost) || !lost.MaybeDone || requests != each.requests {
			t.Error(each, err, requests)
		}
	}
}

func TestTheEndOfAMonitoredJobIsReportedAfterItsContext(t *testing.T) {
	client, requests := served(t, 200)
	ctx, cancel := context.WithCancel(context.Background())
	err := client.Monitors.Run(ctx, "n", "m", func(context.Context) error {
		cancel()
		return ctx.Err()
	})
	if !errors.Is(err, context.Canceled) || len(requests.bodies) != 2 ||
		requests.bodies[1] != `{"namespace":"n","id":"m","event":"fail","body":"context canceled"}` {
		t.Error(err, requests.bodies)
	}
}

func TestAFailureIsReportedWhateverBytesItsErrorHas(t *testing.T) {
	for _, text := range []string{"caf\xe9", strings.Repeat("x", errorBytesMax-1) + "ü"} {
		client, requests := served(t, 200)
		failed := errors.New(text)
		if err := client.Monitors.Run(context.Background(), "n", "m", func(context.Context) error { return failed }); err != failed {
			t.Error(err)
		}
		if len(requests.bodies) != 2 || !strings.Contains(requests.bodies[1], `"event":"fail","body":"`+text[:3]) {
			t.Error(requests.bodies)
		}
	}
}
