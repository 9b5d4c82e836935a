package provider

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// losing passes requests to the server of all tests. Of each operation that is named it loses every other answer to a change that
// was executed, from the first one on.
type losing struct {
	operations map[string]bool

	mutex sync.Mutex
	times map[string]int
}

func (l *losing) ServeHTTP(to http.ResponseWriter, request *http.Request) {
	passed, err := http.NewRequestWithContext(request.Context(), request.Method, running.URL+request.URL.Path, request.Body)
	if err != nil {
		panic(err)
	}
	passed.Header = request.Header
	answer, err := http.DefaultTransport.RoundTrip(passed)
	if err != nil {
		panic(err)
	}
	defer answer.Body.Close()
	l.mutex.Lock()
	if answer.StatusCode == http.StatusOK && l.operations[request.URL.Path] {
		l.times[request.URL.Path]++
	}
	lost := answer.StatusCode == http.StatusOK && l.times[request.URL.Path]%2 == 1
	l.mutex.Unlock()
	if lost {
		panic(http.ErrAbortHandler)
	}
	to.WriteHeader(answer.StatusCode)
	if _, err := io.Copy(to, answer.Body); err != nil {
		panic(err)
	}
}

func TestAChangeWhoseAnswerIsLostIsInTheState(t *testing.T) {
	lost := &losing{operations: map[string]bool{}, times: map[string]int{}}
	server := httptest.NewServer(lost)
	defer server.Close()
	f := newTerraform(t, tree{"url": server.URL})
	namespace := f.namespace()
	for of, each := range map[string]struct {
		operation         string
		configured, other tree
	}{
		"tocsin_schedule": {"schedules/create", tree{"id": "report", "cron": "@daily", "callback_url": receiver}, tree{"cron": "@hourly"}},
		"tocsin_calendar": {"calendars/put", tree{"name": "weekends", "weekdays": []string{"SAT", "SUN"}}, tree{"description": "other"}},
		"tocsin_flow":     {"flows/put", tree{"match": "a:", "total": tree{"parallelism": 1}}, tree{"total": tree{"parallelism": 2}}},
		"tocsin_monitor":  {"monitors/put", tree{"id": "backup", "every": "1h"}, tree{"every": "2h"}},
	} {
		lost.operations["/api/v1/"+each.operation] = true
		it := f.resource(of)
		each.configured["namespace"] = namespace
		it.apply(each.configured)
		for name, value := range each.other {
			each.configured[name] = value
		}
		it.apply(each.configured)
		if lost.times["/api/v1/"+each.operation] < 2 {
			t.Error("no answer to", each.operation, "was lost")
		}
	}
}
