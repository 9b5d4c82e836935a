package provider

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema"

	"tocsin.dev/go/tocsin"
)

// monitors notify when a job doesn't report.
func monitors() *kind {
	return &kind{
		name: "monitor",
		description: "A monitor: it knows when a job should report, and notifies when it does not. Its ping URL is a secret, and " +
			"neither in the plan nor in the state: `tocsin monitors rotate` shows one.",
		key: []string{"namespace", "id"},
		attributes: joined(marks(), attributes{
			"namespace": naming("The namespace's name."),
			"id":        naming("The monitor's id, unique among its namespace's monitors."),
			"cron":      cron(),
			"time_zone": filledText("The IANA time zone of `cron`. Default: `UTC`."),
			"every": textOf(positiveDurations, "A report is expected so long after the last one; `1s` to `366d`, instead of "+
				"`cron`."),
			"schedule": text("The id of a schedule of the namespace that it watches, instead of `cron` or `every`: no ping is " +
				"needed, and it is late when an occurrence has not ended `grace` after its instant."),
			"grace": textOfOr(positiveDurations, "5m", "How long after the expected instant a report may come, or an occurrence "+
				"end; `1s` to `31d`."),
			"repeat":      textOf(positiveDurations, "While it is late, notify again so often; at least `1m`. Default: once."),
			onLate:        hook("when it is late, and when its job reports a failure"),
			"on_recovery": hook("when its job succeeds after it was late or had failed"),
			"tags":        texts("Labels to filter lists by."),
			"description": text("What it is for, in one line."),
			"paused":      paused("Whether it expects nothing."),
			hasSecrets:    truth("Whether its notifications have secrets in headers or URLs."),
		}),
		facts: attributes{
			"state":        fact("`new` (no report yet), `up`, `late`, `failed` or `paused`."),
			"since":        fact("Since when it has this state."),
			"running":      truth("Whether its job has started and not ended."),
			"last_ping_at": fact("When its job reported last."),
			"expected_at":  fact("When a report is expected; null while none is."),
			"deadline":     fact("From when on it is late; null while no report is expected."),
		},
		validate: func(configured tree) map[string]string {
			wrong := map[string]string{}
			validateRhythm(configured, wrong, "cron", "every", "schedule")
			validateHooks(configured, wrong)
			return wrong
		},
		predict: predictTimeZone,
		create: func(ctx context.Context, client *tocsin.Client, sent object) (object, error) {
			wanted, err := sentAs[tocsin.PutMonitor](sent)
			if err != nil {
				return nil, err
			}
			wanted.ExpectedVersion = tocsin.Some(0)
			return monitorPut(putMonitor(ctx, client, wanted))
		},
		update: func(ctx context.Context, client *tocsin.Client, sent object, _ map[string]bool) (object, error) {
			wanted, err := sentAs[tocsin.PutMonitor](sent)
			if err != nil {
				return nil, err
			}
			return monitorPut(putMonitor(ctx, client, wanted))
		},
		read: func(ctx context.Context, client *tocsin.Client, key []string) (object, error) {
			return present(monitorShown(client.Monitors.Get(ctx, key[0], key[1])))
		},
		remove: func(ctx context.Context, client *tocsin.Client, key []string, version int) error {
			return gone(client.Monitors.DeleteVersion(ctx, key[0], key[1], version))
		},
		pause: func(ctx context.Context, client *tocsin.Client, key []string, paused bool) (object, error) {
			if paused {
				return monitorShown(client.Monitors.Pause(ctx, key[0], key[1]))
			}
			return monitorShown(client.Monitors.Resume(ctx, key[0], key[1]))
		},
		tried: func(ctx context.Context, client *tocsin.Client, sent object) (int, error) {
			wanted, err := sentAs[tocsin.PutMonitor](sent)
			if err != nil {
				return 0, err
			}
			wanted.DryRun = true
			found, err := client.Monitors.Put(ctx, wanted)
			if err != nil {
				return 0, err
			}
			return found.Monitor.Version, nil
		},
	}
}

// putMonitor puts a monitor of an expected version. The client does not repeat it after a lost answer, since only the first one has
// the ping URL, which nothing here needs. Whether it was executed, a dry run shows: it finds nothing to change in the next version.
func putMonitor(ctx context.Context, client *tocsin.Client, wanted tocsin.PutMonitor) (*tocsin.MonitorPut, error) {
	made, err := client.Monitors.Put(ctx, wanted)
	expected, ok := wanted.ExpectedVersion.Get()
	var lost *tocsin.TransportError
	if !ok || !errors.As(err, &lost) || !lost.MaybeDone {
		return made, err
	}
	tried := wanted
	tried.DryRun, tried.ExpectedVersion = true, tocsin.Some(expected+1)
	found, err := client.Monitors.Put(ctx, tried)
	if err == nil && found.Monitor.Version == expected+1 {
		return found, nil
	}
	return client.Monitors.Put(ctx, wanted) // refused if it has another version meanwhile
}

// monitorPut is the monitor that was put, without the ping URL that the answer has if it is new.
func monitorPut(made *tocsin.MonitorPut, err error) (object, error) {
	if err != nil {
		return nil, err
	}
	return monitorShown(&made.Monitor, nil)
}

// monitorShown is a monitor with its state as the argument `paused`, too.
func monitorShown(found *tocsin.Monitor, err error) (object, error) {
	members, err := answered(found, err)
	if err != nil {
		return nil, err
	}
	members["paused"], err = json.Marshal(found.State == tocsin.MonitorStatePaused)
	return members, err
}

// cron is the argument of schedules and monitors that have an expression.
func cron() schema.StringAttribute {
	return text("A cron expression of five fields, or six with the seconds first, or `@hourly`, `@daily`, `@weekly`, " +
		"`@monthly`, `@yearly`. Give it, or `every`.")
}

// validateRhythm reports what schedules and monitors may get wrong alike.
func validateRhythm(configured tree, wrong map[string]string, rhythms ...string) {
	exactlyOne(configured, wrong, "cron", rhythms...)
	if configured["cron"] == nil && configured["time_zone"] != nil {
		wrong["time_zone"] = "is that of cron, which is not given; leave it out"
	}
}

// predictTimeZone fills in the time zone that an expression has without stating one.
func predictTimeZone(configured, planned tree) {
	if configured["time_zone"] == nil {
		planned["time_zone"] = ifGiven(configured["cron"], "UTC", nil)
	}
}
