package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema"

	"tocsin.dev/go/tocsin"
)

// flows are rules that limit attempts, or send them together.
func flows() *kind {
	return &kind{
		name: "flow",
		description: "A rule of flows: it limits how many attempts begin, and are in flight at once, of timers and schedules " +
			"whose flow key it matches, or sends them together.",
		key: []string{"namespace", "match"},
		attributes: joined(marks(), attributes{
			"namespace": naming("The namespace's name."),
			"match":     naming("The flow key that the rule is for, or a prefix of keys, which ends with a colon."),
			"per_key":   limitsOf("The limits of each flow key by itself."),
			"total":     limitsOf("The limits of all flow keys of the rule together."),
			"close_on_retry_after": flag("Whether an answer 429 or 503 with Retry-After lets nothing more of its flow key begin " +
				"until then."),
			"callback_batch": callbackBatch(),
			"paused":         paused("Whether nothing of it begins."),
		}),
		facts: attributes{
			"in_flight": schema.Int64Attribute{MarkdownDescription: "Attempts that are in flight.", Computed: true},
			"waiting":   schema.Int64Attribute{MarkdownDescription: "Due timers that wait in memory.", Computed: true},
		},
		validate: func(configured tree) map[string]string {
			wrong := map[string]string{}
			closes := configured["close_on_retry_after"]
			limits := configured["per_key"] != nil || configured["total"] != nil || closes != nil && closes != false
			if !limits && configured["callback_batch"] == nil {
				wrong["match"] = "names a rule that does nothing; give per_key, total, close_on_retry_after or callback_batch"
			}
			return wrong
		},
		predict: func(configured, planned tree) {
			predictLimits(configured["per_key"], planned["per_key"])
			predictLimits(configured["total"], planned["total"])
		},
		create: func(ctx context.Context, client *tocsin.Client, sent object) (object, error) {
			rule, err := sentAs[tocsin.PutFlow](sent)
			if err != nil {
				return nil, err
			}
			rule.ExpectedVersion = tocsin.Some(0)
			return answered(client.Flows.Put(ctx, rule))
		},
		update: func(ctx context.Context, client *tocsin.Client, sent object, _ map[string]bool) (object, error) {
			rule, err := sentAs[tocsin.PutFlow](sent)
			if err != nil {
				return nil, err
			}
			return answered(client.Flows.Put(ctx, rule))
		},
		read: func(ctx context.Context, client *tocsin.Client, key []string) (object, error) {
			return present(answered(client.Flows.Get(ctx, key[0], key[1])))
		},
		remove: func(ctx context.Context, client *tocsin.Client, key []string, version int) error {
			return gone(client.Flows.DeleteVersion(ctx, key[0], key[1], version))
		},
		pause: func(ctx context.Context, client *tocsin.Client, key []string, paused bool) (object, error) {
			if paused {
				return answered(client.Flows.Pause(ctx, tocsin.PauseFlow{Namespace: key[0], Match: key[1]}))
			}
			return answered(client.Flows.Resume(ctx, key[0], key[1]))
		},
	}
}
