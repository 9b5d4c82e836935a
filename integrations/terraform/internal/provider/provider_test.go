package provider

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"tocsin.dev/go/tocsin"
)

func TestMistakesAreFoundWithoutAServer(t *testing.T) {
	f := newTerraform(t, nil)
	schedule := tree{"namespace": "shop", "id": "report", "cron": "@daily", "callback_url": receiver}
	for _, each := range []struct {
		of         string
		configured tree
		at, detail string
	}{
		{"tocsin_schedule", with(schedule, tree{"every": "1m"}), `AttributeName("cron")`, "exactly one of cron and every"},
		{"tocsin_schedule", with(schedule, tree{"cron": nil}), `AttributeName("cron")`, "exactly one of cron and every"},
		{"tocsin_schedule", with(schedule, tree{"callback_url": nil}), `AttributeName("callback_url")`,
			"exactly one of callback_url and"},
		{"tocsin_schedule", with(schedule, tree{"jitter": "soon"}), `AttributeName("jitter")`, `"soon" is no duration`},
		{"tocsin_schedule", with(schedule, tree{"end_at": "2027-01-01"}), `AttributeName("end_at")`, "is no instant"},
		{"tocsin_schedule", with(schedule, tree{"payload": "{"}), `AttributeName("payload")`, "jsonencode"},
		{"tocsin_schedule", with(schedule, tree{"expire_after": "0s"}), `AttributeName("expire_after")`, "greater than zero"},
		{"tocsin_schedule", with(schedule, tree{"max_occurrences": 0}), `AttributeName("max_occurrences")`, "greater than zero"},
		{"tocsin_schedule", with(schedule, tree{"description": ""}), `AttributeName("description")`, "is empty"},
		{"tocsin_schedule", with(schedule, tree{"callback_url": receiver + "#a"}), `AttributeName("callback_url")`, "fragment"},
		{"tocsin_schedule", with(schedule, tree{"payload": "1", "body": tree{"text": "a"}}), `AttributeName("payload")`,
			"one of payload and body"},
		{"tocsin_schedule", with(schedule, tree{"body": tree{}}), `AttributeName("body")`, "exactly one of json"},
		{"tocsin_schedule", with(schedule, tree{"cron": nil, "every": "1m", "time_zone": "UTC"}), `AttributeName("time_zone")`,
			"leave it out"},
		{"tocsin_schedule", with(schedule, tree{"on_paused": tree{}}), `AttributeName("on_paused")`, "exactly one of url"},
		{
			"tocsin_schedule", with(schedule, tree{"retry_policy": tree{"max_interval": "x"}}),
			`AttributeName("retry_policy").AttributeName("max_interval")`, "is no duration",
		},
		{"tocsin_flow", tree{"namespace": "shop", "match": "a:"}, `AttributeName("match")`, "does nothing"},
		{"tocsin_monitor", tree{"namespace": "shop", "id": "a"}, `AttributeName("cron")`, "exactly one of cron and every"},
		{"tocsin_monitor", tree{"namespace": "shop", "id": "a", "every": "1h", "time_zone": "UTC"}, `AttributeName("time_zone")`,
			"leave it out"},
		{"tocsin_monitor", tree{"namespace": "shop", "id": "a", "every": "1h", "on_late": tree{}}, `AttributeName("on_late")`,
			"exactly one of url"},
		{"tocsin_calendar", tree{"namespace": "shop", "name": "none"}, `AttributeName("dates")`, "give dates, ranges or weekdays"},
		{"tocsin_namespace", tree{"name": "shop", "quotas": tree{}}, `AttributeName("quotas")`, "has none"},
	} {
		f.refused(f.resource(each.of).validate(each.configured), each.at, each.detail)
	}
	for _, configured := range []tree{
		schedule, with(schedule, tree{"every": unknown}), with(schedule, tree{"secret_callback_url": unknown}),
		with(schedule, tree{"payload": unknown, "body": unknown}),
	} {
		f.none(f.resource("tocsin_schedule").validate(configured))
	}
	f.none(f.resource("tocsin_flow").validate(tree{"namespace": "shop", "match": "a:", "callback_batch": unknown}))
}

func TestTheServersReasonsAreAtTheirAttributes(t *testing.T) {
	f := newTerraform(t, nil)
	namespace := f.namespace()
	schedule := tree{"namespace": namespace, "id": "report", "cron": "@daily", "callback_url": receiver}
	for _, each := range []struct {
		of         string
		configured tree
		at         string
	}{
		{"tocsin_schedule", with(schedule, tree{"cron": "61 * * * *"}), `AttributeName("cron")`},
		{"tocsin_schedule", with(schedule, tree{"time_zone": "Mars/Olympus"}), `AttributeName("timeZone")`},
		{"tocsin_schedule", with(schedule, tree{"headers": tree{"bad name": "x"}}),
			`AttributeName("headers").ElementKeyString("bad name")`},
		{
			"tocsin_schedule", with(schedule, tree{"retry_policy": tree{"max_attempts": 1_000_000}}),
			`AttributeName("retry_policy").AttributeName("max_attempts")`,
		},
		{"tocsin_schedule", with(schedule, tree{"on_failure": tree{"url": "ftp://x"}}),
			`AttributeName("on_failure").AttributeName("url")`},
		{"tocsin_schedule", with(schedule, tree{"skip": []string{"holidays"}}), `AttributeName("skip")`},
		{"tocsin_schedule", with(schedule, tree{"tags": []string{""}}), `AttributeName("tags")`},
		{"tocsin_calendar", tree{"namespace": namespace, "name": "a", "dates": []string{"2027-02-30"}}, `AttributeName("dates")`},
		{
			"tocsin_calendar", tree{"namespace": namespace, "name": "a",
				"ranges": []any{tree{"first": "2027-02-02", "last": "2027-02-01"}}},
			`AttributeName("ranges")`,
		},
		{
			"tocsin_flow", tree{"namespace": namespace, "match": "a:", "total": tree{"rate": tree{"count": 1, "per": "2d"}}},
			`AttributeName("total").AttributeName("rate").AttributeName("per")`,
		},
		{"tocsin_monitor", tree{"namespace": namespace, "id": "a", "every": "1h", "repeat": "1s"}, `AttributeName("repeat")`},
		{"tocsin_flow", tree{"namespace": namespace, "match": "a:", "callback_batch": tree{"max": 501}},
			`AttributeName("callback_batch").AttributeName("max")`},
	} {
		it := f.resource(each.of)
		f.refused(it.try(each.configured), strings.ReplaceAll(each.at, "timeZone", "time_zone"), "")
		if !it.state.IsNull() {
			t.Error("a refused object is in the state")
		}
	}
}

func TestWhatExistsIsNotOverwritten(t *testing.T) {
	f := newTerraform(t, nil)
	namespace := f.namespace()
	schedule := tree{"namespace": namespace, "id": "report", "cron": "@daily", "callback_url": receiver}
	flow := tree{"namespace": namespace, "match": "a:", "total": tree{"parallelism": 1}}
	f.resource("tocsin_schedule").apply(schedule)
	f.resource("tocsin_flow").apply(flow)
	calendar := tree{"namespace": namespace, "name": "weekends", "weekdays": []string{"SAT", "SUN"}}
	f.resource("tocsin_calendar").apply(calendar)
	monitor := tree{"namespace": namespace, "id": "backup", "every": "1h"}
	f.resource("tocsin_monitor").apply(monitor)
	for of, configured := range map[string]tree{
		"tocsin_monitor": monitor, "tocsin_schedule": schedule, "tocsin_flow": flow, "tocsin_calendar": calendar,
		"tocsin_namespace": {"name": namespace},
	} {
		f.refused(f.resource(of).try(configured), "", "exists already; import it")
	}
}

func TestAChangeThatCameInBetweenIsNotLost(t *testing.T) {
	f := newTerraform(t, nil)
	namespace := f.namespace()
	configured := tree{"namespace": namespace, "id": "report", "cron": "@daily", "callback_url": receiver}
	it := f.resource("tocsin_schedule")
	it.apply(configured)
	changed := with(configured, tree{"tags": []string{"a"}})
	planned, plan := it.plan(changed)
	update := tocsin.UpdateSchedule{Namespace: namespace, ScheduleID: "report", Description: tocsin.Some("By hand")}
	if _, err := f.client.Schedules.Update(t.Context(), update); err != nil {
		t.Fatal(err)
	}
	f.refused(it.carryOut(changed, planned, plan), "", "has changed since it was read, and nothing was written; plan again")
	_, plan = it.plan(nil)
	before := it.state
	f.refused(it.carryOut(nil, it.resource(it.of).state, plan), "", "plan again")
	it.state = before
	it.refresh()
	it.has(tree{"description": "By hand", "tags": []any{}})
	it.apply(changed)
}

func TestWhatHasChangedIsNotDeleted(t *testing.T) {
	f := newTerraform(t, nil)
	namespace := f.namespace()
	flow, calendar := f.resource("tocsin_flow"), f.resource("tocsin_calendar")
	flow.apply(tree{"namespace": namespace, "match": "a:", "total": tree{"parallelism": 1}})
	calendar.apply(tree{"namespace": namespace, "name": "weekends", "weekdays": []string{"SAT"}})
	rule := tocsin.PutFlow{Namespace: namespace, Match: "a:", Total: &tocsin.FlowLimits{Parallelism: 2}}
	if _, err := f.client.Flows.Put(t.Context(), rule); err != nil {
		t.Fatal(err)
	}
	dates := tocsin.PutCalendar{Namespace: namespace, Name: "weekends", Weekdays: []tocsin.Weekday{tocsin.WeekdaySun}}
	if _, err := f.client.Calendars.Put(t.Context(), dates); err != nil {
		t.Fatal(err)
	}
	for _, it := range []*instance{flow, calendar} {
		f.refused(it.try(nil), "", "plan again")
		it.refresh()
		it.apply(nil)
	}
}

func TestWhatAnotherDeclarationManagesIsRefused(t *testing.T) {
	f := newTerraform(t, tree{"managed_by": "shop"})
	namespace := f.namespace()
	configured := tree{"namespace": namespace, "match": "a:", "total": tree{"parallelism": 1}}
	f.resource("tocsin_flow").apply(configured)

	other := newTerraform(t, tree{"managed_by": "ops"}).resource("tocsin_flow")
	other.importAs(namespace + "/a:")
	f.refused(other.try(configured), `AttributeName("managed_by")`, `is managed by "shop", not by "ops"`)
	f.refused(other.try(nil), `AttributeName("managed_by")`, `is managed by "shop"`)

	taker := newTerraform(t, tree{"managed_by": "ops", "take_over": true}).resource("tocsin_flow")
	taker.importAs(namespace + "/a:")
	taker.differs(configured, "managed_by", "version")
	taker.apply(configured)
	taker.has(tree{"managed_by": "ops"})

	// What nobody manages is adopted.
	if _, err := f.client.Flows.Put(t.Context(), tocsin.PutFlow{
		Namespace: namespace, Match: "a:", Total: &tocsin.FlowLimits{Parallelism: 1}, ManagedBy: tocsin.Null[string](),
	}); err != nil {
		t.Fatal(err)
	}
	other.refresh()
	other.apply(configured)
	other.has(tree{"managed_by": "ops"})
}

func TestAnotherNameIsAnotherObject(t *testing.T) {
	f := newTerraform(t, nil)
	it := f.resource("tocsin_flow")
	configured := tree{"namespace": f.namespace(), "match": "a:", "total": tree{"parallelism": 1}}
	it.apply(configured)
	_, plan := it.plan(with(configured, tree{"match": "b:"}))
	if len(plan.RequiresReplace) != 1 || plan.RequiresReplace[0].String() != `AttributeName("match")` {
		t.Error("the plan replaces for", plan.RequiresReplace)
	}
}

func TestDataSources(t *testing.T) {
	f := newTerraform(t, nil)
	namespace := f.namespace()
	f.resource("tocsin_schedule").apply(secretsOf(namespace, "planted"))
	f.resource("tocsin_flow").apply(tree{"namespace": namespace, "match": "a:", "total": tree{"parallelism": 3}})
	found, problems := f.data("tocsin_schedule", tree{"namespace": namespace, "id": "secrets"})
	f.none(problems)
	if instants, _ := found["next_instants"].([]any); len(instants) != 3 || found["status"] != "active" ||
		found["has_secrets"] != true {
		t.Error(found)
	}
	found, problems = f.data("tocsin_flow", tree{"namespace": namespace, "match": "a:"})
	if found["total"].(tree)["parallelism"] == nil {
		t.Error(found, problems)
	}
	if found, problems = f.data("tocsin_namespace", tree{"name": namespace}); found["history"] != "all" {
		t.Error(found, problems)
	}
	f.resource("tocsin_calendar").apply(tree{"namespace": namespace, "name": "weekends", "weekdays": []string{"SAT", "SUN"}})
	found, problems = f.data("tocsin_calendar", tree{"namespace": namespace, "name": "weekends"})
	if len(found["weekdays"].([]any)) != 2 {
		t.Error(found, problems)
	}
	_, problems = f.data("tocsin_flow", tree{"namespace": namespace, "match": "b:"})
	f.refused(problems, "", "flow "+namespace+"/b: does not exist")
}

func TestIdsOfImports(t *testing.T) {
	f := newTerraform(t, nil)
	for _, id := range []string{"", "shop", "shop/", "/report"} {
		answer, err := f.provider.ImportResourceState(t.Context(),
			&tfprotov6.ImportResourceStateRequest{TypeName: "tocsin_schedule", ID: id})
		if err != nil {
			t.Fatal(err)
		}
		f.refused(answer.Diagnostics, "", "import it as NAMESPACE/ID")
	}
}

func TestKeysWithSlashes(t *testing.T) {
	f := newTerraform(t, nil)
	configured := tree{"namespace": f.namespace(), "match": "a//b/", "total": tree{"parallelism": 1}}
	f.resource("tocsin_flow").apply(configured)
	it := f.resource("tocsin_flow")
	it.importAs(configured["namespace"].(string) + "/a//b/")
	it.unchanged(configured)
}

func TestSettingsOfTheProvider(t *testing.T) {
	server, err := providerserver.NewProtocol6WithError(New())()
	if err != nil {
		t.Fatal(err)
	}
	f := newTerraform(t, nil)
	configure := func(configured tree) []*tfprotov6.Diagnostic {
		kind := f.schemas.Provider.ValueType()
		answer, err := server.ConfigureProvider(t.Context(),
			&tfprotov6.ConfigureProviderRequest{Config: f.dynamic(kind, f.value(kind, configured))})
		if err != nil {
			t.Fatal(err)
		}
		return answer.Diagnostics
	}
	for _, name := range []string{"TOCSIN_URL", "TOCSIN_KEY", "TOCSIN_KEY_FILE"} {
		t.Setenv(name, "")
	}
	f.refused(configure(tree{}), `AttributeName("url")`, "set TOCSIN_URL")
	f.refused(configure(tree{"url": unknown}), `AttributeName("url")`, "known only after the apply")
	t.Setenv("TOCSIN_URL", running.URL)
	f.none(configure(tree{}))
	t.Setenv("TOCSIN_KEY_FILE", filepath.Join(t.TempDir(), "key"))
	f.refused(configure(tree{}), `AttributeName("key")`, "TOCSIN_KEY_FILE")
	if err := os.WriteFile(os.Getenv("TOCSIN_KEY_FILE"), []byte("a key\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f.none(configure(tree{}))
}
