package main

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"tocsin.dev/go/tocsin"
)

var errUnknownStep = errors.New("unknown step")

// named has the members that name an object, and what steps have beside a request.
type named struct {
	Namespace, Name, ID, TimerID, ScheduleID, TenantID, ServiceCallID, Tag, KeyID, JobID, Match, Destination string

	TimeoutSeconds float64
	Pages          bool
}

// call runs the method that has the step's name.
func call(x context.Context, client *tocsin.Client, do string, with json.RawMessage) (any, error) {
	var n named
	if do != "calls.list" { // whose tag is a list
		if err := json.Unmarshal(with, &n); err != nil {
			return nil, err
		}
	}
	if n.TimeoutSeconds > 0 {
		limited, cancel := context.WithTimeout(x, time.Duration(n.TimeoutSeconds*float64(time.Second)))
		defer cancel()
		x = limited
	}
	switch do {
	case "timers.createMany", "timers.batcher", "timers.createEach":
		return createMany(x, client, do, with)
	case "outbox.create", "outbox.drain", "outbox.rows":
		return outbox(x, client, do, with)
	case "calls.list":
		return listCalls(x, client, with)
	case "monitors.run":
		return monitored(x, client, with)
	}
	family, verb, _ := strings.Cut(do, ".")
	names := map[string][]string{
		"timers": {n.Namespace, n.TimerID}, "schedules": {n.Namespace, n.ScheduleID}, "calls": {n.ServiceCallID, n.Tag},
		"keys": {n.KeyID}, "jobs": {n.JobID}, "namespaces": {n.Name},
		"flows": {n.Namespace, n.Match}, "calendars": {n.Namespace, n.Name}, "monitors": {n.Namespace, n.ID}, "destinations": {n.Destination},
	}[family]
	part, known := map[string]any{
		"timers": client.Timers, "schedules": client.Schedules, "namespaces": client.Namespaces, "cluster": client.Cluster,
		"keys": client.Keys, "audit": client.Audit, "jobs": client.Jobs, "failures": client.Failures,
		"flows": client.Flows, "calendars": client.Calendars, "monitors": client.Monitors, "destinations": client.Destinations,
		"calls": client.Calls(n.TenantID),
	}[family]
	if !known || verb == "" {
		return nil, errUnknownStep
	}
	name := strings.ToUpper(verb[:1]) + verb[1:]
	if n.Pages {
		name += "Pages"
	}
	method := reflect.ValueOf(part).MethodByName(name)
	if !method.IsValid() {
		return nil, errUnknownStep
	}
	arguments, err := argumentsOf(x, method.Type(), names, with)
	if err != nil {
		return nil, err
	}
	return result(method.Call(arguments), n.Pages)
}

// argumentsOf are the context, then names, or the members of a request.
func argumentsOf(x context.Context, method reflect.Type, names []string, with json.RawMessage) ([]reflect.Value, error) {
	arguments := []reflect.Value{reflect.ValueOf(x)}
	for i := 1; i < method.NumIn(); i++ {
		argument := reflect.New(method.In(i))
		if method.In(i).Kind() == reflect.String {
			argument.Elem().SetString(names[0])
			names = names[1:]
		} else if err := json.Unmarshal(with, argument.Interface()); err != nil {
			return nil, err
		}
		if timer, ok := argument.Interface().(*tocsin.CreateTimer); ok {
			substitute(timer)
		}
		arguments = append(arguments, argument.Elem())
	}
	return arguments, nil
}

// result is what a method returned: a value, a list, an error.
func result(returned []reflect.Value, pages bool) (any, error) {
	if returned[0].Kind() == reflect.Func {
		found := []any{}
		for each, failed := range returned[0].Seq2() {
			if !failed.IsNil() {
				return nil, failed.Interface().(error)
			}
			found = append(found, each.Interface())
		}
		if pages {
			return object{"pages": found}, nil
		}
		return object{"items": found}, nil
	}
	failed, _ := returned[len(returned)-1].Interface().(error)
	if results, ok := returned[0].Interface().([]tocsin.ItemResult); ok {
		return shownResults(results), failed
	}
	if len(returned) == 1 {
		return nil, failed
	}
	return returned[0].Interface(), failed
}

// monitored is what a monitored job did.
func monitored(x context.Context, client *tocsin.Client, with json.RawMessage) (any, error) {
	var given struct {
		Namespace, ID string
		Fail          *string
	}
	if err := json.Unmarshal(with, &given); err != nil {
		return nil, err
	}
	err := client.Monitors.Run(x, given.Namespace, given.ID, func(context.Context) error {
		if given.Fail == nil {
			return nil
		}
		return errors.New(*given.Fail)
	})
	if err != nil {
		return object{"raised": err.Error()}, nil
	}
	return object{"returned": "done"}, nil
}

// listCalls: one status may stand alone.
func listCalls(x context.Context, client *tocsin.Client, with json.RawMessage) (any, error) {
	var filters struct {
		TenantID string
		Status   tocsin.ServiceCallStatus
		Tag      []string
	}
	if err := json.Unmarshal(with, &filters); err != nil {
		return nil, err
	}
	query := tocsin.ListCalls{Tags: filters.Tag}
	if filters.Status != "" {
		query.Status = []tocsin.ServiceCallStatus{filters.Status}
	}
	return result([]reflect.Value{reflect.ValueOf(client.Calls(filters.TenantID).List(x, query))}, false)
}

// substitute replaces a payload that stands for one that can't be encoded.
func substitute(timer *tocsin.CreateTimer) {
	var given map[string]bool
	if json.Unmarshal(timer.Payload, &given) == nil && given["$unencodable"] {
		timer.Payload = tocsin.JSON(math.NaN())
	}
}

func createMany(x context.Context, client *tocsin.Client, do string, with json.RawMessage) (any, error) {
	var given struct {
		Timers, Items []tocsin.CreateTimer
		Concurrency   int
	}
	if err := json.Unmarshal(with, &given); err != nil {
		return nil, err
	}
	timers := append(given.Timers, given.Items...)
	for i := range timers {
		substitute(&timers[i])
	}
	var results []tocsin.ItemResult
	var err error
	switch do {
	case "timers.batcher":
		results = batch(x, client, timers)
	case "timers.createEach":
		results = createEach(x, client, timers, given.Concurrency)
	default:
		results, err = client.Timers.CreateMany(x, slices.Values(timers))
	}
	return shownResults(results), err
}

// shownResults are the timers, or why there is none.
func shownResults(results []tocsin.ItemResult) []object {
	shown := make([]object, len(results))
	for i, each := range results {
		shown[i] = object{"timer": each.Timer}
		if each.Err != nil {
			shown[i] = object{"error": failure(each.Err)}
		}
	}
	return shown
}

func batch(x context.Context, client *tocsin.Client, items []tocsin.CreateTimer) []tocsin.ItemResult {
	batcher := client.Timers.NewBatcher()
	results, added := make([]tocsin.ItemResult, len(items)), make([]*tocsin.Pending, len(items))
	for i, timer := range items {
		added[i], results[i].Err = batcher.Add(x, timer)
	}
	batcher.Close()
	for i, pending := range added {
		if pending != nil {
			results[i].Timer, results[i].Err = pending.Wait(x)
		}
	}
	return results
}

func createEach(x context.Context, client *tocsin.Client, timers []tocsin.CreateTimer, concurrency int) []tocsin.ItemResult {
	results := make([]tocsin.ItemResult, len(timers))
	var working sync.WaitGroup
	for first := range concurrency {
		working.Add(1)
		go func() {
			defer working.Done()
			for i := first; i < len(timers); i += concurrency {
				results[i].Timer, results[i].Err = client.Timers.Create(x, timers[i])
			}
		}()
	}
	working.Wait()
	return results
}
