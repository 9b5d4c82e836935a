package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"tocsin.dev/go/internal/rules"
	"tocsin.dev/go/receiver"
	"tocsin.dev/go/tocsin"
)

// given has the members of all vectors.
type given struct {
	Namespace, ID, WebhookID, Text  string
	Method, Key, URL                string
	Events                          []struct{ Retries, Successes, Paid int }
	NumShards, TotalShards, Attempt int
	Timestamp                       int64
	Microseconds                    *int64
	Secrets                         []string
	ToleranceSeconds, Random        float64
	LeftSeconds                     float64
	RetryAfter                      *float64
	Now                             time.Time
	Headers                         map[string]string
	Status                          int
	Body                            json.RawMessage
	Answer                          wanted
	Answers                         map[string]wanted
}

// wanted is the answer that a scenario's handler gives.
type wanted struct {
	Done         *struct{}
	RescheduleAt *struct {
		At      time.Time
		Payload json.RawMessage
	}
	Retry *struct{ After *float64 }
	Fail  *struct{ Reason string }
	Raise string
}

func (w wanted) answer() (receiver.Answer, error) {
	switch {
	case w.Done != nil:
		return receiver.Done(), nil
	case w.RescheduleAt != nil && w.RescheduleAt.Payload != nil:
		return receiver.RescheduleWith(w.RescheduleAt.At, w.RescheduleAt.Payload), nil
	case w.RescheduleAt != nil:
		return receiver.RescheduleAt(w.RescheduleAt.At), nil
	case w.Retry != nil && w.Retry.After != nil:
		return receiver.RetryAfter(seconds(*w.Retry.After)), nil
	case w.Retry != nil:
		return receiver.Retry(), nil
	case w.Fail != nil:
		return receiver.Fail(w.Fail.Reason), nil
	}
	return receiver.Answer{}, errors.New(w.Raise)
}

// failure is an error as the harness compares it.
func failure(err error) object {
	var classes []string
	for each := err; each != nil; { // the sentinels of this package name the classes
		if name, ok := strings.CutPrefix(each.Error(), "tocsin: "); ok && !strings.ContainsAny(name, " :") {
			classes = append(classes, name)
		}
		if several, ok := each.(interface{ Unwrap() []error }); ok {
			each = several.Unwrap()[0]
		} else {
			each = errors.Unwrap(each)
		}
	}
	known := object{}
	var answered *tocsin.APIError
	var lost *tocsin.TransportError
	switch {
	case errors.Is(err, context.Canceled):
		return object{"classes": []string{"Canceled"}}
	case errors.As(err, &answered):
		known = object{"status": answered.Status, "message": answered.Message, "fields": append([]tocsin.BadField{}, answered.Fields...)}
		for name, value := range map[string]string{"code": answered.Code, "correlationId": answered.CorrelationID} {
			if value != "" {
				known[name] = value
			}
		}
		if answered.RetryAfter > 0 {
			known["retryAfter"] = answered.RetryAfter.Seconds()
		}
		classes = append(classes, "ApiError")
	case errors.As(err, &lost):
		known["maybeDone"] = lost.MaybeDone
		classes = append(classes, "TransportError")
	case errors.Is(err, tocsin.ErrInvalidArgument):
		return object{"classes": []string{"InvalidArgument", "TocsinError"}, "message": err.Error()}
	case errors.Is(err, errUnknownStep):
		return object{"classes": []string{"UnknownStep"}}
	case len(classes) == 0:
		return object{"classes": []string{"Crash"}, "message": err.Error()}
	}
	known["classes"] = append(classes, "TocsinError")
	return known
}

// own are the steps that need no server.
var own = map[string]func(with json.RawMessage) (any, error){
	"receiver.handle":    on(receive),
	"tries":              tries,
	"vectors.tries":      triedLine,
	"vectors.firings":    vector(read),
	"vectors.batches":    vector(batched),
	"vectors.budget":     vector(budget),
	"vectors.outbox":     on(outboxVector),
	"vectors.keys":       vector(keys),
	"vectors.urls":       vector(urls),
	"vectors.placement":  vector(placed),
	"vectors.signatures": vector(signed),
	"vectors.signing":    vector(signatures),
	"vectors.instants":   vector(instants),
	"vectors.durations":  vector(durations),
	"vectors.answers":    vector(answered),
	"vectors.errors":     vector(failed),
	"vectors.retries":    vector(paused),
}

func on[Q any](compute func(Q) (any, error)) func(json.RawMessage) (any, error) {
	return func(with json.RawMessage) (any, error) {
		var given Q
		if err := json.Unmarshal(with, &given); err != nil {
			return nil, err
		}
		return compute(given)
	}
}

// vector returns a case's result; any error where one is expected.
func vector(compute func(g given) (object, error)) func(json.RawMessage) (any, error) {
	return on(func(g given) (any, error) {
		result, err := compute(g)
		if errors.Is(err, tocsin.ErrInvalidArgument) {
			return object{"error": failure(err)}, nil
		}
		if err != nil {
			return object{"error": err.Error()}, nil
		}
		return result, nil
	})
}

func budget(g given) (object, error) {
	var client rules.RetryBudget
	results := []object{}
	for _, event := range g.Events {
		allowed := 0
		for range event.Retries {
			if client.Spend() {
				allowed++
			}
		}
		for range event.Successes {
			client.Succeeded(event.Paid)
		}
		result := object{"left": client.Left()}
		if event.Retries > 0 {
			result["allowed"] = allowed
		}
		results = append(results, result)
	}
	return object{"results": results}, nil
}

// keys and urls: a client refuses them before it connects.
func keys(g given) (object, error) {
	key, err := rules.Key(g.Key)
	if err != nil {
		_, err = tocsin.NewClient("http://127.0.0.1:1", tocsin.WithKey(g.Key)).Namespaces.List(context.Background())
	}
	return object{"key": key}, err
}

func urls(g given) (object, error) {
	base, err := rules.BaseURL(g.URL)
	if err != nil {
		_, err = tocsin.NewClient(g.URL).Namespaces.List(context.Background())
	}
	return object{"base": base}, err
}

func placed(g given) (object, error) {
	shard := rules.ShardOf(g.Namespace, g.ID, g.NumShards, g.TotalShards)
	return object{"timerUuid": rules.TimerUUID(g.Namespace, g.ID).String(), "shardId": shard}, nil
}

func instants(g given) (object, error) {
	instant, err := rules.ParseInstant(g.Text)
	if err != nil {
		return nil, err
	}
	text, err := rules.FormatInstant(instant)
	return object{"text": text}, err
}

func durations(g given) (object, error) {
	if g.Microseconds != nil {
		text, err := rules.FormatDuration(time.Duration(*g.Microseconds) * time.Microsecond)
		return object{"text": text}, err
	}
	duration, err := rules.ParseDuration(g.Text)
	return object{"microseconds": duration.Microseconds()}, err
}

func paused(g given) (object, error) {
	var after *time.Duration
	if g.RetryAfter != nil {
		duration := seconds(*g.RetryAfter)
		after = &duration
	}
	pause, ok := rules.RetryPause(g.Attempt, after, seconds(g.LeftSeconds), g.Random)
	if !ok {
		return nil, errors.New("give up")
	}
	return object{"delaySeconds": pause.Seconds()}, nil
}

func signatures(g given) (object, error) {
	var body string
	err := json.Unmarshal(g.Body, &body)
	made := make([]string, len(g.Secrets))
	for i, secret := range g.Secrets {
		key, wrong := rules.SigningKey(secret)
		made[i], err = rules.Signature(key, g.WebhookID, g.Timestamp, []byte(body)), errors.Join(err, wrong)
	}
	return object{"signature": strings.Join(made, " ")}, err
}

// signed asks a receiver.
func signed(g given) (object, error) {
	var body string
	if err := json.Unmarshal(g.Body, &body); err != nil {
		return nil, err
	}
	hooks := receiver.New(receiver.Static(g.Secrets...), receiver.WithTolerance(seconds(g.ToleranceSeconds)),
		receiver.WithClock(func() time.Time { return g.Now }))
	got := answerTo(hooks, request(g.Headers, body), func(context.Context, *receiver.Firing) (receiver.Answer, error) {
		return receiver.Done(), nil
	})
	if got.Code == http.StatusUnauthorized || got.Code == http.StatusServiceUnavailable {
		return nil, errors.New(got.Body.String())
	}
	return object{"valid": true}, nil
}

func answered(g given) (object, error) {
	headers := map[string]string{"webhook-id": "x", "webhook-timestamp": "1"}
	got := answerTo(receiver.NewUnsigned(), request(headers, ""), func(context.Context, *receiver.Firing) (receiver.Answer, error) {
		return g.Answer.answer()
	})
	result := object{"status": got.Code, "headers": lower(got.Header())}
	if strings.Contains(got.Header().Get("content-type"), "json") {
		result["body"] = json.RawMessage(got.Body.Bytes())
	}
	return result, nil
}

// failed has the answer sent by a server.
func failed(g given) (object, error) {
	server := httptest.NewServer(http.HandlerFunc(func(to http.ResponseWriter, _ *http.Request) {
		for name, value := range g.Headers {
			to.Header().Set(name, value)
		}
		to.WriteHeader(g.Status)
		var text string
		if json.Unmarshal(g.Body, &text) != nil {
			text = string(g.Body)
		}
		fmt.Fprint(to, text)
	}))
	defer server.Close()
	_, err := tocsin.NewClient(server.URL, tocsin.WithRetries(0)).Cluster.Get(context.Background())
	return failure(err), nil
}
