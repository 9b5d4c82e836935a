package provider

import (
	"context"
	"fmt"
	"math/big"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/float64default"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/int64default"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/mapdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/setdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"tocsin.dev/go/tocsin"
)

// The attributes of which the schemas are made. Each takes its description, in Markdown.

// naming is an argument that names the object: another value is another object.
func naming(description string) schema.StringAttribute {
	return schema.StringAttribute{
		MarkdownDescription: description, Required: true,
		PlanModifiers: []planmodifier.String{stringplanmodifier.RequiresReplace()}, Validators: []validator.String{notEmpty{}},
	}
}

func text(description string) schema.StringAttribute {
	return schema.StringAttribute{
		MarkdownDescription: description, Optional: true, Validators: []validator.String{notEmpty{}},
	}
}

// textOr is a text with a default.
func textOr(fallback, description string) schema.StringAttribute {
	found := text(description)
	found.Computed, found.Default = true, stringdefault.StaticString(fallback)
	return found
}

func textOf(kind *form, description string) schema.StringAttribute {
	return schema.StringAttribute{
		MarkdownDescription: description, Optional: true, CustomType: formType{form: kind},
	}
}

// textOfOr is a text of a form with a default.
func textOfOr(kind *form, fallback, description string) schema.StringAttribute {
	found := textOf(kind, description)
	found.Computed, found.Default = true, stringdefault.StaticString(fallback)
	return found
}

// predicted is a text that the server fills in; `predict` of the kind does, too.
func predicted(kind *form, description string) schema.StringAttribute {
	found := textOf(kind, description)
	found.Computed = true
	return found
}

func required(attribute schema.StringAttribute) schema.StringAttribute {
	attribute.Optional, attribute.Required = false, true
	return attribute
}

func count(description string) schema.Int64Attribute {
	return schema.Int64Attribute{
		MarkdownDescription: description, Optional: true, Validators: []validator.Int64{positive{}},
	}
}

func countOr(fallback int64, description string) schema.Int64Attribute {
	found := count(description)
	found.Computed, found.Default = true, int64default.StaticInt64(fallback)
	return found
}

func numberOr(fallback float64, description string) schema.Float64Attribute {
	return schema.Float64Attribute{
		MarkdownDescription: description, Optional: true, Computed: true, Default: float64default.StaticFloat64(fallback),
		Validators: []validator.Float64{positive{}},
	}
}

func flag(description string) schema.BoolAttribute {
	return schema.BoolAttribute{
		MarkdownDescription: description, Optional: true, Computed: true, Default: booldefault.StaticBool(false),
	}
}

// paused stays as it is where the configuration has nothing: operators pause, too.
func paused(description string) schema.BoolAttribute {
	return schema.BoolAttribute{
		MarkdownDescription: description + " Without it, what an operator has paused stays so.", Optional: true, Computed: true,
	}
}

func texts(description string) schema.SetAttribute {
	return schema.SetAttribute{
		MarkdownDescription: description, Optional: true, Computed: true, ElementType: types.StringType,
		Default: setdefault.StaticValue(types.SetValueMust(types.StringType, []attr.Value{})),
	}
}

func headers(description string) schema.MapAttribute {
	return schema.MapAttribute{
		MarkdownDescription: description, Optional: true, Computed: true, ElementType: types.StringType,
		Default:    mapdefault.StaticValue(types.MapValueMust(types.StringType, map[string]attr.Value{})),
		Validators: []validator.Map{noSecrets{secretly + "headers"}},
	}
}

func secretHeaders() schema.MapAttribute {
	return schema.MapAttribute{
		MarkdownDescription: "Further headers, which are secrets. They are neither in the plan nor in the state.",
		Optional:            true, WriteOnly: true, ElementType: types.StringType,
		Validators: []validator.Map{onlySecrets{"headers"}},
	}
}

func address(name, description string) schema.StringAttribute {
	return schema.StringAttribute{
		MarkdownDescription: description + fmt.Sprintf(" With `%s%s`, what the server shows of that.", secretly, name),
		Optional:            true, Computed: true,
		Validators: []validator.String{notEmpty{}, noSecrets{secretly + name}},
	}
}

func secretAddress(name string) schema.StringAttribute {
	return schema.StringAttribute{
		MarkdownDescription: "Instead of `" + name + "`: one with a secret in it. It is neither in the plan nor in the state.",
		Optional:            true, WriteOnly: true, Validators: []validator.String{notEmpty{}, onlySecrets{name}},
	}
}

// hook is who is notified of an event.
func hook(event string) schema.SingleNestedAttribute {
	return schema.SingleNestedAttribute{
		MarkdownDescription: "Who is notified " + event + ".", Optional: true,
		Attributes: attributes{
			"url":            address("url", "The http or https URL, or `nats://subject`, to notify."),
			"secret_url":     secretAddress("url"),
			"headers":        headers("Additional headers of the notification."),
			"secret_headers": secretHeaders(),
			"credential":     text("The name of the namespace's credential that the notification has."),
		},
	}
}

// hooks are the events that are notified, with what each notifies of.
var hooks = map[string]string{
	"on_failure":  "when it has failed, or expired",
	"on_success":  "when it has succeeded",
	"on_recovery": "when it succeeds after a failure",
	"on_missed":   "when instants did not fire, though the schedule was not paused",
	"on_paused":   "when the schedule has paused itself after failures in a row",
	onLate:        "when a monitor is late, and when its job reports a failure",
}

// onLate is an event of monitors, and not of schedules.
const onLate = "on_late"

func validateHooks(configured tree, wrong map[string]string) {
	for name := range hooks {
		if given, ok := configured[name].(tree); ok {
			exactlyOne(given, wrong, name, "url", "secret_url")
		}
	}
}

// retryPolicy is how often and for how long failed attempts are retried. predictRetries fills in the intervals.
func retryPolicy(description string) schema.SingleNestedAttribute {
	return schema.SingleNestedAttribute{
		MarkdownDescription: description, Optional: true,
		Attributes: attributes{
			"max_attempts":          countOr(attemptsMax, "Maximum number of attempts, including the first."),
			"max_attempts_duration": textOf(positiveDurations, "No attempt starts later than this after the first."),
			"initial_interval": predicted(positiveDurations,
				"Delay before the second attempt. Default: `5s`, or `max_interval` if shorter."),
			"backoff_multiplier": numberOr(backoffMultiplier, "Factor by which each delay grows."),
			"max_interval":       predicted(positiveDurations, "Maximum delay. Default: `4h`, or `initial_interval` if longer."),
		},
	}
}

// The server's default policy.
const (
	attemptsMax       = 10
	backoffMultiplier = 3
	firstInterval     = 5 * time.Second
	longestInterval   = 4 * time.Hour
)

// predictRetries fills in the intervals of a planned policy, each with regard to the other.
func predictRetries(configured, planned any) {
	policy, ok := planned.(tree)
	given, _ := configured.(tree)
	if !ok {
		return
	}
	first, longest := given["initial_interval"], given["max_interval"]
	if first == nil {
		policy["initial_interval"] = intervalOr(firstInterval, longest,
			func(other time.Duration) bool { return other < firstInterval })
	}
	if longest == nil {
		policy["max_interval"] = intervalOr(longestInterval, first,
			func(other time.Duration) bool { return other > longestInterval })
	}
}

// intervalOr is the default, or the other interval where that takes its place.
func intervalOr(fallback time.Duration, other any, takes func(time.Duration) bool) any {
	written, ok := other.(string)
	if other == unknown {
		return unknown
	}
	if length, err := durationOf(written); ok && err == nil && takes(length) {
		return written
	}
	return textOfDuration(fallback)
}

// textOfDuration writes a duration as the server does.
func textOfDuration(duration time.Duration) string {
	encoded, _ := tocsin.Some(duration).MarshalJSON() // the constants can be written
	return strings.Trim(string(encoded), `"`)
}

// limitsOf are limits of attempts. predictLimits fills in what depends on others.
func limitsOf(description string) schema.SingleNestedAttribute {
	return schema.SingleNestedAttribute{
		MarkdownDescription: description, Optional: true,
		Attributes: attributes{
			"rate": schema.SingleNestedAttribute{
				MarkdownDescription: "So many attempts within a time, evenly spread.", Optional: true,
				Attributes: attributes{
					"count": schema.Int64Attribute{
						MarkdownDescription: "How many attempts may begin in that time.", Required: true,
						Validators: []validator.Int64{positive{}},
					},
					"per": required(textOf(positiveDurations, "The time: `1s` to `1d`.")),
				},
			},
			"burst":       filled("How many attempts may begin at once if none did for a while. Requires `rate`; default 1."),
			"parallelism": filled("How many attempts may be in flight at once. With `ordered`, it is 1."),
			"ordered": flag("Whether the timers of each key begin one at a time, in the order of their instants. Only in `per_key`, " +
				"and in a namespace with `num_shards = 1`."),
		},
	}
}

func filled(description string) schema.Int64Attribute {
	found := count(description)
	found.Computed = true
	return found
}

func predictLimits(configured, planned any) {
	limits, ok := planned.(tree)
	given, _ := configured.(tree)
	if !ok {
		return
	}
	if given["burst"] == nil {
		limits["burst"] = ifGiven(given["rate"], big.NewFloat(1), nil)
	}
	if given["parallelism"] == nil {
		ordered := given["ordered"]
		if ordered == false {
			ordered = nil
		}
		limits["parallelism"] = ifGiven(ordered, big.NewFloat(1), nil)
	}
}

// ifGiven is what the server fills in if an argument is given, and if it is not; unknown while that is.
func ifGiven(argument, then, otherwise any) any {
	switch argument {
	case nil:
		return otherwise
	case unknown:
		return unknown
	}
	return then
}

// callbackBatch is how due timers of one receiver are sent together.
func callbackBatch() schema.SingleNestedAttribute {
	return schema.SingleNestedAttribute{
		MarkdownDescription: "Due timers with the same URL, method, headers and timeout are sent in one request, which the " +
			"receiver answers timer by timer.",
		Optional: true,
		Attributes: attributes{
			"max": schema.Int64Attribute{
				MarkdownDescription: "How many timers one request has at most: 2 to 500.", Required: true,
				Validators: []validator.Int64{positive{}},
			},
			"linger": textOfOr(durations, "100ms", "How long the first due timer of a request waits for others: `0s` to `5s`."),
		},
	}
}

// marks are the attributes of all kinds that the configuration does not have.
func marks() attributes {
	return attributes{
		"managed_by": schema.StringAttribute{
			MarkdownDescription: "Which declaration it comes from: the provider's `managed_by`.", Computed: true,
		},
		"version": schema.Int64Attribute{
			MarkdownDescription: "1, and one more with each change; 0 for a schedule that has ended.", Computed: true,
		},
	}
}

func fact(description string) schema.StringAttribute {
	return schema.StringAttribute{MarkdownDescription: description, Computed: true}
}

func truth(description string) schema.BoolAttribute {
	return schema.BoolAttribute{MarkdownDescription: description, Computed: true}
}

const hasSecrets = "has_secrets"

// joined are the attributes of all maps.
func joined(maps ...attributes) attributes {
	found := attributes{}
	for _, each := range maps {
		for name, attribute := range each {
			found[name] = attribute
		}
	}
	return found
}

// timerHooks are those of the events of timers and schedules.
func timerHooks(whose string) attributes {
	found := attributes{}
	for name, event := range hooks {
		if name != onLate {
			found[name] = hook(event + whose)
		}
	}
	return found
}

// notEmpty refuses empty texts, which the server would take for absent ones.
type notEmpty struct{}

func (notEmpty) Description(context.Context) string { return "is not empty" }

func (v notEmpty) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

func (notEmpty) ValidateString(_ context.Context, request validator.StringRequest, response *validator.StringResponse) {
	if !request.ConfigValue.IsNull() && !request.ConfigValue.IsUnknown() && request.ConfigValue.ValueString() == "" {
		refuse(&response.Diagnostics, request.Path, "is empty; give a text, or leave it out")
	}
}

// positive refuses numbers that are not greater than zero.
type positive struct{}

const notPositive = "must be greater than zero; leave it out to have the default"

func (positive) Description(context.Context) string { return "is greater than zero" }

func (v positive) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

func (positive) ValidateInt64(_ context.Context, request validator.Int64Request, response *validator.Int64Response) {
	if value := request.ConfigValue; !value.IsNull() && !value.IsUnknown() && value.ValueInt64() <= 0 {
		refuse(&response.Diagnostics, request.Path, notPositive)
	}
}

func (positive) ValidateFloat64(_ context.Context, request validator.Float64Request, response *validator.Float64Response) {
	if value := request.ConfigValue; !value.IsNull() && !value.IsUnknown() && value.ValueFloat64() <= 0 {
		refuse(&response.Diagnostics, request.Path, notPositive)
	}
}
