package provider

import (
	"errors"
	"math/big"
	"testing"
	"time"

	"tocsin.dev/go/tocsin"
	"tocsin.dev/go/tocsintest"
)

func bigFloat(value float64) *big.Float { return big.NewFloat(value) }

const receiver = "https://shop.example/hooks/report"

func TestScheduleFromCreationToDestruction(t *testing.T) {
	f := newTerraform(t, nil)
	namespace := f.namespace()
	configured := tree{"namespace": namespace, "id": "report", "cron": "0 2 * * *", "callback_url": receiver}
	it := f.resource("tocsin_schedule")
	it.apply(configured)
	it.has(tree{
		"time_zone": "UTC", "method": "POST", "payload": "null", "jitter": "0s", "catch_up": "latest", "paused": false,
		"managed_by": "terraform", "version": 1, "has_secrets": false, "retry_policy": nil,
	})

	changed := with(configured, tree{
		"time_zone": "Europe/Berlin", "payload": `{"report": "sales", "depth": 10}`, "tags": []string{"b", "a"},
		"retry_policy": tree{"max_interval": "90s"}, "headers": tree{"X-Shop": "7"}, "expire_after": "3600s",
		"on_failure": tree{"url": "https://ops.example/alerts"}, "paused": true, "description": "Sales of the day",
	})
	it.apply(changed)
	it.has(tree{"version": 3, "paused": true, "expire_after": "3600s"})

	imported := f.resource("tocsin_schedule")
	imported.importAs(namespace + "/report")
	imported.unchanged(changed)

	found, err := f.client.Schedules.Update(t.Context(), tocsin.UpdateSchedule{
		Namespace: namespace, ScheduleID: "report", Jitter: tocsin.Some(30 * time.Second), Tags: tocsin.Some([]string{"a"}),
	})
	if err != nil || found.Version != 4 {
		t.Fatal(found, err)
	}
	it.refresh()
	it.differs(changed, "has_secrets", "jitter", "tags", "version")
	it.apply(changed)
	it.has(tree{"jitter": "0s", "version": 5})

	it.apply(configured)
	it.has(tree{"paused": true, "time_zone": "UTC", "payload": "null", "on_failure": nil, "expire_after": nil})

	if err := f.client.Schedules.Delete(t.Context(), namespace, "report"); err != nil {
		t.Fatal(err)
	}
	it.refresh()
	if !it.state.IsNull() {
		t.Fatal("a schedule that was deleted is still in the state")
	}
	it.apply(configured)
	it.apply(nil)
	found, err = f.client.Schedules.Get(t.Context(), namespace, "report")
	if err == nil && found.Status != tocsin.ScheduleStatusEnded {
		t.Fatal("the schedule goes on", found)
	}
}

func TestNamespaceFromCreationToDestruction(t *testing.T) {
	f := newTerraform(t, tree{"managed_by": "shop"})
	configured := tree{"name": "lifecycle-shop"}
	it := f.resource("tocsin_namespace")
	it.apply(configured)
	it.has(tree{"history": "all", "answers": "standard", "paused": false, "signed": false, "managed_by": "shop", "version": 1})

	changed := with(configured, tree{
		"retention": "48h", "history": "failures", "answers": "strict",
		"retry_policy": tree{"max_attempts": 3, "initial_interval": "8h"},
		"limits":       tree{"rate": tree{"count": 100, "per": "60s"}}, "quotas": tree{"pending": 1000}, "paused": true,
		"on_missed": tree{"url": "https://ops.example/missed", "headers": tree{}},
		"on_late":   tree{"url": "https://ops.example/late"}, "callback_batch": tree{"max": 50, "linger": "1000ms"},
	})
	it.apply(changed)
	it.has(tree{"retention": "48h", "paused": true})
	imported := f.resource("tocsin_namespace")
	imported.importAs("lifecycle-shop")
	imported.unchanged(changed)

	quotas := tocsin.Some(tocsin.Quotas{PayloadBytes: tocsin.Some(100)})
	update := tocsin.UpdateNamespace{Name: "lifecycle-shop", Quotas: quotas}
	if _, err := f.client.Namespaces.Update(t.Context(), update); err != nil {
		t.Fatal(err)
	}
	it.refresh()
	it.differs(changed, "has_secrets", "quotas", "signed", "version")
	it.apply(changed)

	it.apply(configured)
	it.has(tree{"retention": "48h", "history": "all", "answers": "standard", "quotas": nil, "limits": nil, "on_missed": nil,
		"on_late": nil, "callback_batch": nil,
		"paused": true})
	it.refused(it.try(with(configured, tree{"num_shards": 999})), `AttributeName("num_shards")`, "can't be changed")
	it.apply(with(configured, tree{"paused": false}))
	it.apply(nil)
	if _, err := f.client.Namespaces.Get(t.Context(), "lifecycle-shop"); !errors.Is(err, tocsin.ErrNamespaceNotFound) {
		t.Fatal("the namespace is still there", err)
	}
}

func TestFlowFromCreationToDestruction(t *testing.T) {
	f := newTerraform(t, nil)
	namespace := f.namespace()
	configured := tree{"namespace": namespace, "match": "customer:", "per_key": tree{"rate": tree{"count": 10, "per": "60s"}}}
	it := f.resource("tocsin_flow")
	it.apply(configured)
	it.has(tree{"close_on_retry_after": false, "total": nil, "paused": false, "version": 1})

	changed := with(configured, tree{
		"per_key": tree{"rate": tree{"count": 10, "per": "1m"}, "burst": 5}, "total": tree{"parallelism": 7},
		"close_on_retry_after": true, "paused": true,
	})
	it.apply(changed)
	it.has(tree{"paused": true})
	imported := f.resource("tocsin_flow")
	imported.importAs(namespace + "/customer:")
	imported.unchanged(changed)

	rule := tocsin.PutFlow{Namespace: namespace, Match: "customer:", Total: &tocsin.FlowLimits{Parallelism: 1}}
	if _, err := f.client.Flows.Put(t.Context(), rule); err != nil {
		t.Fatal(err)
	}
	it.refresh()
	it.differs(changed, "close_on_retry_after", "per_key", "total", "version")
	it.apply(changed)
	it.apply(configured)
	it.has(tree{"paused": true, "total": nil})
	it.apply(nil)
	if _, err := f.client.Flows.Get(t.Context(), namespace, "customer:"); !errors.Is(err, tocsin.ErrFlowNotFound) {
		t.Fatal("the rule is still there", err)
	}
}

// A rule may send timers together and limit nothing. One that is changed keeps that, and loses it with the argument alone.
func TestFlowThatSendsTogether(t *testing.T) {
	f := newTerraform(t, nil)
	namespace := f.namespace()
	batched := func() *tocsin.CallbackBatchAnswer {
		t.Helper()
		found, err := f.client.Flows.Get(t.Context(), namespace, "mail")
		if err != nil {
			t.Fatal(err)
		}
		return found.CallbackBatch
	}
	configured := tree{"namespace": namespace, "match": "mail", "callback_batch": tree{"max": 100}}
	it := f.resource("tocsin_flow")
	it.apply(configured)
	it.has(tree{"callback_batch": map[string]any{"max": "100", "linger": "100ms"}, "per_key": nil})
	limited := with(configured, tree{"total": tree{"parallelism": 1}})
	it.apply(limited)
	if found := batched(); found == nil || found.Max != 100 {
		t.Error("another change has removed it", found)
	}
	imported := f.resource("tocsin_flow")
	imported.importAs(namespace + "/mail")
	imported.unchanged(limited)

	// Removed by hand, it comes back.
	rule := tocsin.PutFlow{Namespace: namespace, Match: "mail", Total: &tocsin.FlowLimits{Parallelism: 1}}
	if _, err := f.client.Flows.Put(t.Context(), rule); err != nil {
		t.Fatal(err)
	}
	it.refresh()
	it.differs(limited, "callback_batch", "version")
	it.apply(limited)
	it.apply(with(limited, tree{"callback_batch": nil}))
	if found := batched(); found != nil {
		t.Error("it is still there", found)
	}
}

func TestCalendarFromCreationToDestruction(t *testing.T) {
	f := newTerraform(t, nil)
	namespace := f.namespace()
	configured := tree{"namespace": namespace, "name": "holidays", "dates": []string{"2099-12-25", "2099-01-01"}}
	it := f.resource("tocsin_calendar")
	it.apply(configured)
	it.has(tree{"time_zone": "UTC", "weekdays": []any{}, "ranges": []any{}, "version": 1, "managed_by": "terraform"})

	changed := with(configured, tree{
		"time_zone": "Asia/Tokyo", "weekdays": []string{"SUN", "SAT"}, "description": "Closed",
		"ranges": []any{tree{"first": "2099-05-03", "last": "2099-05-06"}, tree{"first": "2099-02-11", "last": "2099-02-11"}},
	})
	it.apply(changed)
	imported := f.resource("tocsin_calendar")
	imported.importAs(namespace + "/holidays")
	imported.unchanged(changed)

	put := tocsin.PutCalendar{Namespace: namespace, Name: "holidays", Weekdays: []tocsin.Weekday{tocsin.WeekdayFri}}
	if _, err := f.client.Calendars.Put(t.Context(), put); err != nil {
		t.Fatal(err)
	}
	it.refresh()
	it.differs(changed, "dates", "description", "ranges", "time_zone", "version", "weekdays")
	it.apply(changed)

	schedule := f.resource("tocsin_schedule")
	schedule.apply(tree{"namespace": namespace, "id": "report", "cron": "@daily", "callback_url": receiver,
		"skip": []string{"holidays"}})
	f.refused(it.try(nil), "", "holidays: tocsin: CALENDAR_IN_USE")
	schedule.apply(nil)
	it.apply(nil)
	if _, err := f.client.Calendars.Get(t.Context(), namespace, "holidays"); !errors.Is(err, tocsin.ErrCalendarNotFound) {
		t.Fatal("the calendar is still there", err)
	}
}

func TestMonitorFromCreationToDestruction(t *testing.T) {
	f := newTerraform(t, nil)
	namespace := f.namespace()
	configured := tree{"namespace": namespace, "id": "backup", "cron": "0 3 * * *"}
	it := f.resource("tocsin_monitor")
	it.apply(configured)
	it.has(tree{"time_zone": "UTC", "grace": "5m", "repeat": nil, "every": nil, "tags": []any{}, "paused": false, "version": 1,
		"managed_by": "terraform", "has_secrets": false})
	it.without("/ping/", nil)

	changed := tree{
		"namespace": namespace, "id": "backup", "every": "3600s", "grace": "600s", "repeat": "60m", "tags": []string{"b", "a"},
		"on_late": tree{"url": "https://ops.example/late"}, "on_recovery": tree{"url": "https://ops.example/well"},
		"description": "The database", "paused": true,
	}
	it.apply(changed)
	it.has(tree{"time_zone": nil, "grace": "600s", "paused": true})
	imported := f.resource("tocsin_monitor")
	imported.importAs(namespace + "/backup")
	imported.unchanged(changed)
	found, problems := f.data("tocsin_monitor", tree{"namespace": namespace, "id": "backup"})
	if found["state"] != "paused" || found["running"] != false || found["expected_at"] != nil {
		t.Error(found, problems)
	}

	put := tocsin.PutMonitor{Namespace: namespace, ID: "backup", Every: time.Hour}
	if _, err := f.client.Monitors.Put(t.Context(), put); err != nil {
		t.Fatal(err)
	}
	it.refresh()
	f.refused(imported.try(nil), "", "plan again")
	it.differs(changed, "description", "grace", "has_secrets", "on_late", "on_recovery", "repeat", "tags", "version")
	it.apply(changed)
	it.apply(configured)
	it.has(tree{"paused": true, "on_late": nil, "repeat": nil})
	it.apply(nil)
	if _, err := f.client.Monitors.Get(t.Context(), namespace, "backup"); !errors.Is(err, tocsin.ErrMonitorNotFound) {
		t.Fatal("the monitor is still there", err)
	}
}

func TestOtherTextsOfTheSameAreNoChange(t *testing.T) {
	f := newTerraform(t, nil)
	namespace := f.namespace()
	configured := tree{
		"namespace": namespace, "id": "sync", "every": "60s", "callback_url": receiver, "start_at": "2099-01-01T01:00:00+01:00",
		"payload": `{"a":1,"b":[2]}`, "jitter": "1000ms", "catch_up_window": "24h",
	}
	it := f.resource("tocsin_schedule")
	it.apply(configured)
	it.has(tree{"every": "60s", "time_zone": nil})
	it.unchanged(with(configured, tree{
		"every": "1m", "start_at": "2099-01-01T00:00:00Z", "payload": `{"b": [2], "a": 1}`, "jitter": "1s", "catch_up_window": "1d",
	}))
	it.differs(with(configured, tree{"payload": `{"a":1,"b":[2.0]}`}), "has_secrets", "payload", "version")
}

func TestBodiesOfEachForm(t *testing.T) {
	f := newTerraform(t, nil)
	configured := tree{"namespace": f.namespace(), "id": "body", "cron": "@daily", "callback_url": receiver}
	it := f.resource("tocsin_schedule")
	for _, body := range []tree{
		{"json": `{"a": 1}`}, {"text": "Hello", "content_type": "text/markdown"}, {"base64": "AAEC"}, {"text": ""},
	} {
		it.apply(with(configured, tree{"body": body}))
		it.has(tree{"payload": nil})
	}
	it.apply(configured)
	it.has(tree{"payload": "null", "body": nil})
}

func TestPoliciesFollowTheirIntervals(t *testing.T) {
	f := newTerraform(t, nil)
	configured := tree{"namespace": f.namespace(), "id": "policy", "cron": "@daily", "callback_url": receiver}
	it := f.resource("tocsin_schedule")
	for _, policy := range []tree{
		{}, {"max_interval": "2s"}, {"initial_interval": "5h"}, {"max_interval": "1h", "initial_interval": "1s"},
		{"max_attempts_duration": "1h"},
	} {
		it.apply(with(configured, tree{"retry_policy": policy}))
	}
	written := with(configured, tree{"retry_policy": tree{"max_interval": "2000ms"}})
	it.apply(written)
	it.importAs(configured["namespace"].(string) + "/policy")
	it.has(tree{"retry_policy": map[string]any{
		"max_attempts": "10", "backoff_multiplier": "3", "initial_interval": "2s", "max_interval": "2s",
		"max_attempts_duration": nil,
	}})
	it.unchanged(written)

	// What follows from an interval that is not yet known is not known either.
	planned, _ := it.plan(with(configured, tree{"retry_policy": tree{"max_interval": unknown}}))
	found, err := treeOf(planned)
	if err != nil || found["retry_policy"].(tree)["initial_interval"] != unknown {
		t.Error(found, err)
	}
}

// What is no multiple of a power of two has several binary forms.
func TestFractions(t *testing.T) {
	f := newTerraform(t, nil)
	exact := func(text string) *big.Float {
		found, _, err := big.ParseFloat(text, 10, 512, big.ToNearestEven)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	it := f.resource("tocsin_schedule")
	it.apply(tree{
		"namespace": f.namespace(), "id": "fractions", "cron": "@daily", "callback_url": receiver,
		"callback_timeout_seconds": exact("2.7"), "retry_policy": tree{"backoff_multiplier": exact("1.1")},
	})
}

func TestOrderedFlow(t *testing.T) {
	f := newTerraform(t, nil)
	shop := f.resource("tocsin_namespace")
	shop.apply(tree{"name": "ordered-shop", "num_shards": 1})
	it := f.resource("tocsin_flow")
	it.apply(tree{"namespace": "ordered-shop", "match": "account:", "per_key": tree{"ordered": true}})
	it.apply(tree{"namespace": "ordered-shop", "match": "account:", "per_key": tree{"parallelism": 2}})
}

// A number of occurrences does not make a deleted schedule one that has ended by itself.
func TestScheduleThatWasDeletedBeforeItsLastOccurrence(t *testing.T) {
	server := tocsintest.NewServer(t, "--log-level", "warning")
	f := newTerraform(t, tree{"url": server.URL})
	if _, err := server.Client().Namespaces.Create(t.Context(), tocsin.CreateNamespace{Name: "shop"}); err != nil {
		t.Fatal(err)
	}
	configured := tree{
		"namespace": "shop", "id": "thrice", "every": "1m", "max_occurrences": 3,
		"callback_url": server.URL + "/health/live", "method": "GET",
	}
	it := f.resource("tocsin_schedule")
	it.apply(configured)
	if _, err := server.Advance(t.Context(), 2*time.Minute); err != nil {
		t.Fatal(err)
	}
	if err := server.Client().Schedules.Delete(t.Context(), "shop", "thrice"); err != nil {
		t.Fatal(err)
	}
	found, err := server.Client().Schedules.Get(t.Context(), "shop", "thrice")
	if err != nil || found.Status != tocsin.ScheduleStatusEnded || len(found.Counts) == 0 {
		t.Fatal("it has not ended after some occurrences", found, err)
	}
	it.refresh()
	if !it.state.IsNull() {
		t.Fatal("a schedule that was deleted is still in the state")
	}
	it.apply(configured)
	found, err = server.Client().Schedules.Get(t.Context(), "shop", "thrice")
	if err != nil || found.Status != tocsin.ScheduleStatusActive {
		t.Fatal("it was not created again", found, err)
	}
}

// A schedule that has ended by itself is not created again at each apply.
func TestScheduleThatHasEnded(t *testing.T) {
	server := tocsintest.NewServer(t, "--log-level", "warning")
	f := newTerraform(t, tree{"url": server.URL})
	if _, err := server.Client().Namespaces.Create(t.Context(), tocsin.CreateNamespace{Name: "shop"}); err != nil {
		t.Fatal(err)
	}
	configured := tree{
		"namespace": "shop", "id": "twice", "every": "1m", "max_occurrences": 2,
		"callback_url": server.URL + "/health/live", "method": "GET",
		"secret_headers": tree{"authorization": "Bearer planted"},
	}
	it := f.resource("tocsin_schedule")
	it.apply(configured)
	if _, err := server.Advance(t.Context(), time.Hour); err != nil {
		t.Fatal(err)
	}
	found, err := server.Client().Schedules.Get(t.Context(), "shop", "twice")
	if err != nil || found.Status != tocsin.ScheduleStatusEnded {
		t.Fatal("it goes on", found, err)
	}
	it.refresh()
	it.unchanged(configured)

	// With more occurrences it starts over.
	it.apply(with(configured, tree{"max_occurrences": 4}))
	found, err = server.Client().Schedules.Get(t.Context(), "shop", "twice")
	if err != nil || found.Status != tocsin.ScheduleStatusActive {
		t.Fatal("it does not go on", found, err)
	}
	it.apply(nil)
}
