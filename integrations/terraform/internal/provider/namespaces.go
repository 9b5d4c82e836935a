package provider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"

	"tocsin.dev/go/tocsin"
)

// namespaces have settings that their timers and schedules share.
func namespaces() *kind {
	policy := retryPolicy("The policy of timers without their own. Without it, the default: 10 attempts in 8.5 h.")
	policy.Computed = true
	return &kind{
		name:        "namespace",
		description: "A namespace, with the settings that its timers and schedules share.",
		key:         []string{"name"},
		attributes: joined(marks(), timerHooks("; for timers and schedules without their own"), attributes{
			"name":       naming("The namespace's name."),
			"num_shards": filled("The number of shards that its timers are spread over. Default: the server's. It can't be changed."),
			"history":    textOr("all", "Which finished timers stay visible: `all`, `failures` or `none`."),
			"retention":  predicted(durations, "How long finished timers stay visible. Default: the server's; it stays as it is."),
			"answers": textOr("standard", "What a 2xx response to a callback means. `standard`: success, unless its body asks for "+
				"something else. `strict`: success only with an empty body or `ok: true`."),
			"retry_policy":   policy,
			"limits":         limitsOf("The limits of all attempts of the namespace together."),
			"callback_batch": callbackBatch(),
			"event_sink": text("Where what becomes of its timers is published: below this subject of NATS, such as " +
				"`nats://shop.events`, which the server's setting `nats_targets` has to list."),
			onLate: hook(hooks[onLate] + "; for monitors without their own"),
			"quotas": schema.SingleNestedAttribute{
				MarkdownDescription: "Limits on what its clients create.", Optional: true,
				Attributes: attributes{
					"pending":            count("Its timers that may be pending at once; not schedules."),
					"creates_per_second": count("Timers and schedules that may be created in it in a second."),
					"payload_bytes":      count("Bytes that the payload or the raw body of one timer or schedule may have."),
				},
			},
			"paused": paused("While true, none of its timers fires."),
			"secret": schema.StringAttribute{
				MarkdownDescription: "The secret that signs its callbacks: `whsec_` and base64. It is neither in the plan nor in the " +
					"state. Another one signs alone at once; `tocsin namespaces rotate-secret` replaces one with a grace, and then " +
					"belongs here, too. Without it, the namespace keeps the secret that it has.",
				Optional: true, WriteOnly: true, Validators: []validator.String{notEmpty{}},
			},
			"signed":   truth("Whether it has a signing secret."),
			hasSecrets: truth("Whether headers or URLs of its notifications have secrets."),
		}),
		validate: func(configured tree) map[string]string {
			wrong := map[string]string{}
			validateHooks(configured, wrong)
			if quotas, ok := configured["quotas"].(tree); ok && len(withoutNulls(quotas)) == 0 {
				wrong["quotas"] = "has none; give pending, creates_per_second or payload_bytes, or leave it out"
			}
			return wrong
		},
		predict: func(configured, planned tree) {
			if configured["retry_policy"] == nil {
				planned["retry_policy"] = tree{
					"max_attempts": big.NewFloat(attemptsMax), "backoff_multiplier": big.NewFloat(backoffMultiplier),
				}
			}
			predictRetries(configured["retry_policy"], planned["retry_policy"])
			predictLimits(configured["limits"], planned["limits"])
		},
		create: func(ctx context.Context, client *tocsin.Client, sent object) (object, error) {
			wanted, err := sentAs[tocsin.CreateNamespace](sent)
			if err != nil {
				return nil, err
			}
			return answered(client.Namespaces.Create(ctx, wanted))
		},
		update: func(ctx context.Context, client *tocsin.Client, sent object, changed map[string]bool) (object, error) {
			return changedNamespace(ctx, client, sent, changed)
		},
		read: readNamespace,
		remove: func(ctx context.Context, client *tocsin.Client, key []string, version int) error {
			return deleteNamespace(ctx, client, key[0], version)
		},
		pause: func(ctx context.Context, client *tocsin.Client, key []string, paused bool) (object, error) {
			return answered(client.Namespaces.Update(ctx, tocsin.UpdateNamespace{Name: key[0], Paused: tocsin.Some(paused)}))
		},
		tried: func(ctx context.Context, client *tocsin.Client, sent object) (int, error) {
			hidden := object{"name": sent["name"], "dryRun": json.RawMessage("true")}
			for name := range hooks {
				hidden[inCamelCase(name)] = orNull(sent[inCamelCase(name)])
			}
			if sent["secret"] != nil {
				hidden["secret"] = sent["secret"]
			}
			change, err := sentAs[tocsin.UpdateNamespace](hidden)
			if err != nil {
				return 0, err
			}
			found, err := client.Namespaces.Update(ctx, change)
			if err != nil {
				return 0, err
			}
			return found.Version, nil
		},
	}
}

// left are what an update has for an argument that is no longer there; null for others.
var left = object{"history": json.RawMessage(`"all"`), "answers": json.RawMessage(`"standard"`)}

// changedNamespace changes the arguments that differ. In an update, what is absent stays.
func changedNamespace(ctx context.Context, client *tocsin.Client, sent object, changed map[string]bool) (object, error) {
	change := object{}
	for _, name := range []string{"name", "managedBy", "expectedVersion"} {
		change[name] = sent[name]
	}
	for name := range changed {
		member := inCamelCase(name)
		value := orNull(sent[member])
		if sent[member] == nil && left[member] != nil {
			value = left[member]
		}
		change[member] = value
	}
	if quotas := change["quotas"]; quotas != nil && string(quotas) != "null" {
		// Those that are absent stay, too.
		all := object{"pending": nil, "createsPerSecond": nil, "payloadBytes": nil}
		if err := json.Unmarshal(quotas, &all); err != nil {
			return nil, err
		}
		var err error
		if change["quotas"], err = json.Marshal(all); err != nil {
			return nil, err
		}
	}
	wanted, err := sentAs[tocsin.UpdateNamespace](change)
	if err != nil {
		return nil, err
	}
	return answered(client.Namespaces.Update(ctx, wanted))
}

func orNull(value json.RawMessage) json.RawMessage {
	if value == nil {
		return json.RawMessage("null")
	}
	return value
}

func withoutNulls(values tree) tree {
	found := tree{}
	for name, value := range values {
		if value != nil {
			found[name] = value
		}
	}
	return found
}

func readNamespace(ctx context.Context, client *tocsin.Client, key []string) (object, error) {
	found, err := client.Namespaces.Get(ctx, key[0])
	if errors.Is(err, tocsin.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if found.Deleting != "" {
		return nil, fmt.Errorf("namespace %s is being deleted by job %s; wait until that has ended", key[0], found.Deleting)
	}
	if found.Damaged != "" {
		return nil, fmt.Errorf("namespace %s can't be read, because its stored record is damaged; restore it from a backup", key[0])
	}
	return answered(found, nil)
}

// pollInterval is the time between two looks at a job.
const pollInterval = 200 * time.Millisecond

// deleteNamespace deletes it by a job, and waits until it is no more: what follows may create it again.
func deleteNamespace(ctx context.Context, client *tocsin.Client, name string, version int) error {
	job, err := client.Namespaces.Delete(ctx, tocsin.DeleteNamespace{Name: name, ExpectedVersion: tocsin.Some(version)})
	if err != nil {
		return gone(err)
	}
	for {
		_, err := client.Namespaces.Get(ctx, name)
		if err != nil {
			return gone(err)
		}
		if job, err = client.Jobs.Get(ctx, job.ID); err != nil {
			return gone(err)
		}
		if job.State == tocsin.JobStateCanceled || job.State == tocsin.JobStateFailed {
			return fmt.Errorf("namespace %s is still there: its deletion by job %s is %s; apply again", name, job.ID, job.State)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pollInterval):
		}
	}
}
