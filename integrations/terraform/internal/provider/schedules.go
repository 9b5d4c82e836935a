package provider

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"tocsin.dev/go/tocsin"
)

// schedules call a URL at the instants of a rule.
func schedules() *kind {
	return &kind{
		name: "schedule",
		description: "A schedule: it calls a URL at the instants of a cron expression, or at intervals. One that has ended by " +
			"itself, at `end_at` or after `max_occurrences`, stays in the state; a change lets it start over.",
		key: []string{"namespace", "id"},
		attributes: joined(marks(), timing(), timerHooks(""), attributes{
			"namespace":           naming("The namespace's name."),
			"id":                  naming("The schedule's id, unique among its namespace's schedules."),
			"callback_url":        address("callback_url", "The http or https URL to call, or `nats://subject` to publish to."),
			"secret_callback_url": secretAddress("callback_url"),
			"method":              textOr("POST", "The HTTP method of the callback."),
			"headers":             headers("Additional headers of the callback."),
			"secret_headers":      secretHeaders(),
			"payload": predicted(jsonTexts, "The payload: any JSON, as `jsonencode` makes it. It is not secret. Default: `null`, "+
				"unless there is a `body`."),
			"body": schema.SingleNestedAttribute{
				MarkdownDescription: "The whole body of the callback, instead of the envelope with the payload: one of `json`, `text` " +
					"and `base64`.",
				Optional: true,
				Attributes: attributes{
					"json":         textOf(jsonTexts, "Any JSON, as `jsonencode` makes it."),
					"text":         schema.StringAttribute{MarkdownDescription: "Text, sent in UTF-8.", Optional: true},
					"base64":       text("Bytes, in base64 with padding."),
					"content_type": filledText("The body's media type. Default: that of its form."),
				},
			},
			"retry_policy":             retryPolicy("Without it, each attempt uses the namespace's current policy."),
			"callback_timeout_seconds": numberOr(10, "Timeout of one attempt, in seconds."),
			"tags":                     texts("Labels to filter lists by."),
			"expire_after": textOf(positiveDurations,
				"No attempt begins later than this after its instant; at least `1s`."),
			"description": text("What it is for, in one line."),
			"flow_key":    text("The flow that limits its attempts, if a rule of the namespace matches it."),
			"credential": text("The name of the namespace's credential that its requests have; it goes to no other origin than the " +
				"credential's own."),
			"paused":   paused("Whether it is paused."),
			hasSecrets: truth("Whether it has secrets in headers or URLs."),
		}),
		facts: attributes{
			"status":   fact("`active`, `paused` or `ended`."),
			"sentence": fact("When it runs, in words."),
			"next_instants": schema.ListAttribute{MarkdownDescription: "Its next three instants.", Computed: true,
				ElementType: types.StringType},
			"paused_reason":   fact("Why it is paused; null unless it is."),
			"next_attempt_at": fact("When the next attempt is due."),
		},
		validate: validateSchedule,
		predict:  predictSchedule,
		create: func(ctx context.Context, client *tocsin.Client, sent object) (object, error) {
			wanted, err := sentAs[tocsin.CreateSchedule](sent)
			if err != nil {
				return nil, err
			}
			wanted.ExpectedVersion = tocsin.Some(0)
			return scheduleShown(client.Schedules.Create(ctx, wanted))
		},
		update: func(ctx context.Context, client *tocsin.Client, sent object, _ map[string]bool) (object, error) {
			wanted, err := sentAs[tocsin.CreateSchedule](sent)
			if err != nil {
				return nil, err
			}
			return scheduleShown(client.Schedules.Create(ctx, wanted))
		},
		read: func(ctx context.Context, client *tocsin.Client, key []string) (object, error) {
			found, err := client.Schedules.Get(ctx, key[0], key[1])
			if err == nil && found.Status == tocsin.ScheduleStatusEnded && !endsByItself(found, time.Now()) {
				return nil, nil
			}
			return present(scheduleShown(found, err))
		},
		remove: func(ctx context.Context, client *tocsin.Client, key []string, version int) error {
			err := client.Schedules.DeleteVersion(ctx, key[0], key[1], version)
			if errors.Is(err, tocsin.ErrScheduleEnded) {
				return nil
			}
			return gone(err)
		},
		pause: func(ctx context.Context, client *tocsin.Client, key []string, paused bool) (object, error) {
			if paused {
				return scheduleShown(client.Schedules.Pause(ctx, key[0], key[1]))
			}
			return scheduleShown(client.Schedules.Resume(ctx, key[0], key[1]))
		},
		tried: func(ctx context.Context, client *tocsin.Client, sent object) (int, error) {
			wanted, err := sentAs[tocsin.CreateSchedule](sent)
			if err != nil {
				return 0, err
			}
			wanted.DryRun = true
			found, err := client.Schedules.Create(ctx, wanted)
			if err != nil {
				return 0, err
			}
			return found.Version, nil
		},
	}
}

// timing are the arguments of when a schedule is due.
func timing() attributes {
	pauses := countOr(0, "Pauses the schedule when this many occurrences in a row have failed; 0: never.")
	pauses.Validators = nil
	return attributes{
		"cron":      cron(),
		"time_zone": filledText("The IANA time zone of `cron`. Default: `UTC`."),
		"every":     textOf(positiveDurations, "An interval of `1s` to `366d`, by elapsed time, instead of `cron`."),
		"anchor": textOf(instants, "An instant from which `every` counts, in both directions. Default: the schedule's "+
			"creation."),
		"start_at":        textOf(instants, "No instant is earlier than this."),
		"end_at":          textOf(instants, "All instants are earlier than this."),
		"max_occurrences": count("How many instants it has; afterwards it ends."),
		"jitter":          textOfOr(durations, "0s", "Longest delay of an instant."),
		"catch_up": textOr("latest", "What becomes of instants that pass while the schedule cannot fire: `latest` (the last of "+
			"them fires), `all` or `none`."),
		"catch_up_window": textOf(durations,
			"Instants that are later than this are missed. Default: 24 hours; without catch-up, a minute."),
		"pause_after_failures": pauses,
		"only":                 texts("Calendars: only instants on a date of one of them fire."),
		"skip":                 texts("Calendars: no instant on a date of any of them fires."),
		"on_skipped": textOr("none", "What becomes of an instant that a calendar excludes: `none`, or `next`: it moves to the "+
			"next date that is allowed."),
	}
}

func filledText(description string) schema.StringAttribute {
	return schema.StringAttribute{
		MarkdownDescription: description, Optional: true, Computed: true, Validators: []validator.String{notEmpty{}},
	}
}

func validateSchedule(configured tree) map[string]string {
	wrong := map[string]string{}
	validateRhythm(configured, wrong, "cron", "every")
	exactlyOne(configured, wrong, "callback_url", "callback_url", "secret_callback_url")
	if configured["payload"] != nil && configured["body"] != nil && isKnown(configured) {
		wrong["payload"] = "is sent in the envelope, which body replaces; give one of payload and body"
	}
	if body, ok := configured["body"].(tree); ok {
		exactlyOne(body, wrong, "body", "json", "text", "base64")
	}
	validateHooks(configured, wrong)
	return wrong
}

// mediaTypes are those of bodies that state none.
var mediaTypes = map[string]string{
	"json": "application/json", "text": "text/plain; charset=utf-8", "base64": "application/octet-stream",
}

func predictSchedule(configured, planned tree) {
	predictTimeZone(configured, planned)
	if configured["payload"] == nil {
		planned["payload"] = ifGiven(configured["body"], nil, "null")
	}
	given, _ := configured["body"].(tree)
	if body, ok := planned["body"].(tree); ok && given["content_type"] == nil {
		for name, mediaType := range mediaTypes {
			if given[name] != nil {
				body["content_type"] = mediaType
			}
		}
	}
	predictRetries(configured["retry_policy"], planned["retry_policy"])
}

// scheduleShown is a schedule with its state as the argument `paused`, and, once it has ended, without a version: a change
// then creates another one.
func scheduleShown(found *tocsin.Schedule, err error) (object, error) {
	members, err := answered(found, err)
	if err != nil {
		return nil, err
	}
	if found.Status == tocsin.ScheduleStatusEnded {
		members["version"] = json.RawMessage("0")
	}
	members["paused"], err = json.Marshal(found.Status == tocsin.ScheduleStatusPaused)
	return members, err
}

// endsByItself reports whether an ended schedule has come to its end, so that creating it again would be wrong. Others have
// been deleted. Counts has all its occurrences: those by hand, too, so that a deleted one with some of them may pass for
// complete, but never the other way round.
func endsByItself(found *tocsin.Schedule, now time.Time) bool {
	ended := 0
	for _, count := range found.Counts {
		ended += count
	}
	most, limited := found.MaxOccurrences.Get()
	return limited && ended >= most || !found.EndAt.IsZero() && !found.EndAt.After(now)
}
