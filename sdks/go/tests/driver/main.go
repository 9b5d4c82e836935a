// The driver runs the scenarios' steps with this SDK: sdks/harness.py sends them, and checks what this program reports.
// TOCSIN_SDK_CONTROL is the harness's URL.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"os"
	"runtime/debug"
	"time"

	"tocsin.dev/go/tocsin"
)

// object is one of JSON.
type object map[string]any

// step is what the harness asks for.
type step struct {
	Do            string          `json:"do"`
	With          json.RawMessage `json:"with"`
	Client        clientOptions   `json:"client"`
	Scenario      string          `json:"scenario"`
	CancelAfterMS int             `json:"cancelAfterMs"`
	Done          bool            `json:"done"`
	Failures      []string        `json:"failures"`
	Summary       string          `json:"summary"`
}

type clientOptions struct {
	URL     string   `json:"url"`
	Timeout *float64 `json:"timeout"`
	Retries *int     `json:"retries"`
	Routing string   `json:"routing"`
	Key     *string  `json:"key"`
	OnTry   string   `json:"onTry"`
}

// clientKey: a client for each scenario and what it wants.
type clientKey struct{ scenario, options string }

var (
	clients = map[clientKey]*tocsin.Client{}
	can     = []string{"audit", "batcher", "calls", "cancel", "dedup", "keys", "outbox", "receiver", "routing", "schedules"}
)

func clientOf(s step) *tocsin.Client {
	options, err := json.Marshal(s.Client)
	if err != nil {
		log.Fatal(err)
	}
	for key, client := range clients {
		if key.scenario != s.Scenario {
			client.Close()
			delete(clients, key)
		}
	}
	key := clientKey{s.Scenario, string(options)}
	if clients[key] == nil {
		wanted := []tocsin.Option{tocsin.WithOnTry(func(tried tocsin.Try) {
			observed.add(tried)
			if s.Client.OnTry == "raise" {
				panic("the hook raises")
			}
		})}
		if s.Client.Key != nil {
			wanted = append(wanted, tocsin.WithKey(*s.Client.Key))
		}
		if s.Client.Timeout != nil {
			wanted = append(wanted, tocsin.WithTimeout(seconds(*s.Client.Timeout)))
		}
		if s.Client.Retries != nil {
			wanted = append(wanted, tocsin.WithRetries(*s.Client.Retries))
		}
		if s.Client.Routing == "owners" {
			wanted = append(wanted, tocsin.WithOwnerRouting())
		}
		clients[key] = tocsin.NewClient(s.Client.URL, wanted...)
	}
	return clients[key]
}

func seconds(number float64) time.Duration { return time.Duration(number * float64(time.Second)) }

// run returns the outcome of a step.
func run(s step) (outcome object) {
	defer func() {
		if crash := recover(); crash != nil {
			outcome = object{"error": object{"classes": []string{"Crash"}, "message": fmt.Sprintf("%v\n%s", crash, debug.Stack())}}
		}
	}()
	if len(s.With) == 0 {
		s.With = json.RawMessage("{}")
	}
	var value any
	var err error
	if compute, ok := own[s.Do]; ok {
		value, err = compute(s.With)
	} else {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		if s.CancelAfterMS > 0 {
			time.AfterFunc(time.Duration(s.CancelAfterMS)*time.Millisecond, cancel)
		}
		value, err = call(ctx, clientOf(s), s.Do, s.With)
	}
	if err != nil {
		return object{"error": failure(err)}
	}
	return object{"value": value}
}

func next(outcome object) (s step) {
	body, err := json.Marshal(outcome)
	if err != nil {
		log.Fatal(err)
	}
	response, err := http.Post(os.Getenv("TOCSIN_SDK_CONTROL")+"/next", "application/json", bytes.NewReader(body))
	if err != nil {
		log.Fatal(err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(&s); err != nil {
		log.Fatal(err)
	}
	return s
}

func main() {
	slog.SetDefault(slog.New(observed))
	s := next(object{"hello": object{"language": "go", "can": can}})
	for scenario := ""; !s.Done; {
		if s.Scenario != scenario {
			scenario = s.Scenario
			observed.take()
		}
		s = next(run(s))
	}
	removeDatabases()
	for _, failed := range s.Failures {
		fmt.Println(failed)
	}
	fmt.Println(s.Summary)
	if len(s.Failures) > 0 {
		os.Exit(1)
	}
}
