package tests

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"tocsin.dev/go/tocsin"
	"tocsin.dev/go/tocsintest"
)

// losing loses the answer to the next request of this operation, once the server has executed it; if changing, after another change.
type losing struct {
	operation string
	changing  func()
}

func (l *losing) RoundTrip(request *http.Request) (*http.Response, error) {
	answer, err := http.DefaultTransport.RoundTrip(request)
	if err != nil || l.operation == "" || !strings.HasSuffix(request.URL.Path, l.operation) {
		return answer, err
	}
	l.operation = ""
	if changing := l.changing; changing != nil {
		l.changing = nil
		changing()
	}
	return nil, errors.Join(errors.New("lost"), answer.Body.Close())
}

func TestAChangeOfAVersionWhoseAnswerIsLostIsReported(t *testing.T) {
	server, ctx, lost := tocsintest.NewServer(t), context.Background(), &losing{}
	client := server.Client(tocsin.WithHTTPClient(&http.Client{Transport: lost}))
	schedule := tocsin.CreateSchedule{
		Namespace: "default", ID: "s", CallbackURL: "http://127.0.0.1:1/", Cron: "0 3 * * *", TimeZone: "Europe/Berlin", Paused: true,
		Headers: map[string]string{"x-shop": "1"}, OnFailure: &tocsin.Hook{URL: "http://127.0.0.1:1/failed"},
	}
	flow := tocsin.PutFlow{Namespace: "default", Match: "mail:", PerKey: &tocsin.FlowLimits{Parallelism: 3}}
	calendar := tocsin.PutCalendar{Namespace: "default", Name: "c", Dates: []string{"2027-12-25"}}
	credential := tocsin.PutCredential{
		Namespace: "default", Name: "k", Type: tocsin.CredentialTypeBearer, Token: "t", Hosts: []string{"http://127.0.0.1:1"},
	}
	put := map[string]func(version int, text string) (int, error){
		"schedules/create": func(version int, text string) (int, error) {
			schedule.ExpectedVersion, schedule.Description = tocsin.Some(version), tocsin.Some(text)
			written, err := client.Schedules.Create(ctx, schedule)
			return versionOf(written, func() int { return written.Version }), err
		},
		"flows/put": func(version int, text string) (int, error) {
			flow.ExpectedVersion, flow.Total = tocsin.Some(version), &tocsin.FlowLimits{Parallelism: len(text)}
			written, err := client.Flows.Put(ctx, flow)
			return versionOf(written, func() int { return written.Version }), err
		},
		"calendars/put": func(version int, text string) (int, error) {
			calendar.ExpectedVersion, calendar.Description = tocsin.Some(version), text
			written, err := client.Calendars.Put(ctx, calendar)
			return versionOf(written, func() int { return written.Version }), err
		},
		"credentials/put": func(version int, text string) (int, error) {
			credential.ExpectedVersion, credential.Description = tocsin.Some(version), text
			written, err := client.Credentials.Put(ctx, credential)
			credential.Token = "" // it is kept
			return versionOf(written, func() int { return written.Version }), err
		},
	}
	for operation, write := range put {
		t.Run(operation, func(t *testing.T) {
			created := 0
			if operation == "credentials/put" { // nobody sees whether one has the token that was sent
				created = 1
				if _, err := write(0, "one"); err != nil {
					t.Fatal(err)
				}
			}
			for version := created; version < 2; version++ {
				lost.operation = operation
				if got, err := write(version, "text"[:version+1]); got != version+1 || err != nil {
					t.Error(version, got, err)
				}
			}
			// Another's change with other fields, then one more with the same.
			lost.operation = operation
			lost.changing = func() {
				if _, err := write(3, "another text"); err != nil {
					t.Error(err)
				}
				if _, err := write(4, "of mine"); err != nil {
					t.Error(err)
				}
			}
			if _, err := write(2, "of mine"); !errors.Is(err, tocsin.ErrVersionConflict) {
				t.Error(err)
			}
		})
	}
	change := tocsin.UpdateSchedule{Namespace: "default", ScheduleID: "s", Description: tocsin.Some("updated"), ExpectedVersion: tocsin.Some(5)}
	lost.operation = "schedules/update"
	if updated, err := client.Schedules.Update(ctx, change); err != nil || updated.Version != 6 {
		t.Error(updated, err)
	}
	namespace, err := client.Namespaces.Create(ctx, tocsin.CreateNamespace{Name: "n"})
	if err != nil {
		t.Fatal(err)
	}
	lost.operation = "namespaces/update"
	retention := tocsin.UpdateNamespace{Name: "n", Retention: tocsin.Some(time.Hour), ExpectedVersion: tocsin.Some(namespace.Version)}
	if _, err := client.Namespaces.Update(ctx, retention); err != nil {
		t.Error(err)
	}
}

func versionOf[T any](written *T, version func() int) int {
	if written == nil {
		return 0
	}
	return version()
}
