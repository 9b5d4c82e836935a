package provider

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// declared is the resource of a kind.
type declared struct {
	*server
	kind *kind
}

// Metadata states the type.
func (d *declared) Metadata(_ context.Context, request resource.MetadataRequest, response *resource.MetadataResponse) {
	response.TypeName = request.ProviderTypeName + "_" + d.kind.name
}

// Schema states the attributes.
func (d *declared) Schema(_ context.Context, _ resource.SchemaRequest, response *resource.SchemaResponse) {
	description := d.kind.description + " Import it as `" + d.kind.placeholder() + "`."
	response.Schema = schema.Schema{MarkdownDescription: description, Attributes: d.kind.attributes}
}

// Configure takes the server; there is none yet when a configuration is only validated.
func (d *declared) Configure(_ context.Context, request resource.ConfigureRequest, _ *resource.ConfigureResponse) {
	d.server, _ = request.ProviderData.(*server)
}

// ValidateConfig reports arguments that do not go together.
func (d *declared) ValidateConfig(_ context.Context, request resource.ValidateConfigRequest,
	response *resource.ValidateConfigResponse) {
	configured, err := treeOf(request.Config.Raw)
	if err != nil {
		response.Diagnostics.AddError("Unreadable configuration", err.Error())
		return
	}
	wrong := d.kind.validate(configured)
	for _, name := range names(wrong) {
		refuse(&response.Diagnostics, path.Root(name), wrong[name])
	}
}

// call is what an operation has to work with: an object's configuration, plan and state, as far as there are.
type call struct {
	configured, planned, stored tree
	raw                         tftypes.Value // the state, to compare with
	kind                        tftypes.Type
}

func newCall(problems *diag.Diagnostics, config tfsdk.Config, plan tfsdk.Plan, state tfsdk.State) *call {
	found := &call{raw: state.Raw, kind: state.Raw.Type()}
	for to, raw := range map[*tree]tftypes.Value{
		&found.configured: config.Raw, &found.planned: plan.Raw, &found.stored: state.Raw,
	} {
		values, err := treeOf(raw)
		if err != nil {
			problems.AddError("Unreadable values", err.Error())
		}
		*to = values
	}
	return found
}

// ModifyPlan predicts what the server will fill in, so that a plan shows it and nothing differs afterwards, and has the
// server compare secrets, which neither the state nor its answers have.
func (d *declared) ModifyPlan(ctx context.Context, request resource.ModifyPlanRequest,
	response *resource.ModifyPlanResponse) {
	c := newCall(&response.Diagnostics, request.Config, request.Plan, request.State)
	if response.Diagnostics.HasError() || d.server == nil {
		return
	}
	if c.stored != nil {
		d.refuseForeign(&response.Diagnostics, c)
	}
	if c.planned == nil {
		return
	}
	settle(d.kind.attributes, c.planned, c.configured, c.stored)
	d.kind.predict(c.configured, c.planned)
	keep(d.kind.attributes, c.planned, c.stored)
	c.planned["managed_by"] = d.managedBy
	if c.stored != nil && d.planChange(ctx, &response.Diagnostics, c) {
		d.open(c)
	}
	raw, err := typed(c.kind, c.planned)
	if err != nil {
		response.Diagnostics.AddError("Unusable plan", err.Error())
		return
	}
	response.Plan.Raw = raw
}

// refuseForeign reports an object that another declaration manages.
func (d *declared) refuseForeign(problems *diag.Diagnostics, c *call) {
	owner, _ := c.stored["managed_by"].(string)
	if owner != "" && owner != d.managedBy && !d.takeOver {
		problems.AddAttributeError(path.Root("managed_by"), "Managed by another declaration", fmt.Sprintf(
			"managed_by: %s is managed by %q, not by %q; change it there, remove it from this state, or set take_over in the provider",
			d.kind.title(d.kind.keyOf(c.stored)), owner, d.managedBy,
		))
	}
}

// planChange reports whether a plan for an object that exists changes anything.
func (d *declared) planChange(ctx context.Context, problems *diag.Diagnostics, c *call) bool {
	raw, err := typed(c.kind, c.planned)
	if err != nil {
		problems.AddError("Unusable plan", err.Error())
		return false
	}
	before, after := c.stored["num_shards"], c.planned["num_shards"]
	if d.kind.attributes["num_shards"] != nil && !sameNumber(before, after) {
		refuse(problems, path.Root("num_shards"), fmt.Sprintf(
			"can't be changed: the namespace has %v; leave it out, or declare another namespace", before,
		))
	}
	if !raw.Equal(c.raw) {
		return true
	}
	return d.secretsDiffer(ctx, problems, c)
}

func sameNumber(one, other any) bool {
	first, ok := one.(*big.Float)
	second, ok2 := other.(*big.Float)
	return !ok || !ok2 || first.Cmp(second) == 0
}

// settle gives a plan the stored values of what the server fills in. Terraform takes all of them for unknown as soon as
// anything differs, even if that is only another text of the same.
func settle(of attributes, planned, configured, stored tree) {
	for name, attribute := range of {
		before, exists := stored[name]
		if exists && planned[name] == unknown && configured[name] == nil {
			planned[name] = before
		}
		inner, ok := planned[name].(tree)
		given, ok2 := configured[name].(tree)
		within, ok3 := before.(tree)
		if ok && ok2 && ok3 {
			settle(nestedIn(attribute), inner, given, within)
		}
	}
}

// keep leaves a stored text where the plan has another one of the same meaning: that is no change.
func keep(of attributes, planned, stored tree) {
	for name, attribute := range of {
		wanted, ok := planned[name].(string)
		before, ok2 := stored[name].(string)
		if kind := formOf(attribute); kind != nil && ok && ok2 && kind.same(wanted, before) {
			planned[name] = before
		}
		inner, ok := planned[name].(tree)
		within, ok2 := stored[name].(tree)
		if ok && ok2 {
			keep(nestedIn(attribute), inner, within)
		}
	}
}

// open makes unknown what a change changes besides the arguments: the version, and what is shown of secrets.
func (d *declared) open(c *call) {
	for _, name := range []string{"version", hasSecrets, "signed"} {
		if d.kind.attributes[name] != nil {
			c.planned[name] = unknown
		}
	}
	openAddresses(d.kind.attributes, c.planned, c.configured)
}

func openAddresses(of attributes, planned, configured tree) {
	for name, attribute := range of {
		if _, ok := attribute.(schema.StringAttribute); ok && hasTwin(of, name) && configured[name] == nil {
			planned[name] = unknown
		}
		inner, ok := planned[name].(tree)
		given, ok2 := configured[name].(tree)
		if within := nestedIn(attribute); within != nil && ok && ok2 {
			openAddresses(within, inner, given)
		}
	}
}

// secretsDiffer asks the server whether it has other secrets than the configuration.
func (d *declared) secretsDiffer(ctx context.Context, problems *diag.Diagnostics, c *call) bool {
	hidden, shown := hasHidden(d.kind.attributes, c.configured), c.stored[hasSecrets] == true
	if d.kind.tried == nil {
		return hidden != shown // all that can be known
	}
	if !hidden && !shown {
		return false
	}
	before, _ := c.stored["version"].(*big.Float)
	if before == nil || before.Sign() == 0 {
		return false // what has ended sends no secrets
	}
	if !isKnown(c.configured) {
		return true // it is compared when it is written
	}
	sent, err := d.request(c)
	if err != nil {
		problems.AddError("Unusable configuration", err.Error())
		return false
	}
	version, err := d.kind.tried(ctx, d.client, sent)
	if err != nil {
		d.report(problems, "Secrets can't be compared", c.configured, err)
		return false
	}
	if before.Cmp(big.NewFloat(float64(version))) == 0 {
		return false
	}
	problems.AddWarning("A secret differs", fmt.Sprintf(
		"%s has another secret than the configuration, or one that the configuration has not: it is replaced or removed.",
		d.kind.title(d.kind.keyOf(c.configured)),
	))
	return true
}

// request is the configuration as a request, with the mark of its owner.
func (d *declared) request(c *call) (object, error) {
	sent, err := request(d.kind.attributes, c.configured)
	if err != nil {
		return nil, err
	}
	sent["managedBy"], err = json.Marshal(d.managedBy)
	return sent, err
}

// Create creates an object; one that exists has to be imported.
func (d *declared) Create(ctx context.Context, request resource.CreateRequest, response *resource.CreateResponse) {
	c := newCall(&response.Diagnostics, request.Config, request.Plan,
		tfsdk.State{Raw: tftypes.NewValue(request.Plan.Raw.Type(), nil)})
	if response.Diagnostics.HasError() {
		return
	}
	sent, err := d.request(c)
	var made object
	if err == nil {
		made, err = d.kind.create(ctx, d.client, sent)
	}
	if err != nil {
		d.report(&response.Diagnostics, "Not created", c.configured, err)
		return
	}
	d.finish(ctx, &response.Diagnostics, &response.State, c, made)
}

// Update changes an object, if it still is as the plan has read it.
func (d *declared) Update(ctx context.Context, request resource.UpdateRequest, response *resource.UpdateResponse) {
	c := newCall(&response.Diagnostics, request.Config, request.Plan, request.State)
	if response.Diagnostics.HasError() {
		return
	}
	changed, err := d.changed(request.Plan.Raw, request.State.Raw, c)
	if err != nil {
		response.Diagnostics.AddError("Unusable plan", err.Error())
		return
	}
	sent, err := d.request(c)
	var made object
	if err == nil {
		version, _ := c.stored["version"].(*big.Float)
		sent["expectedVersion"] = json.RawMessage(version.Text('f', 0))
		made, err = d.kind.update(ctx, d.client, sent, changed)
	}
	if err != nil {
		d.report(&response.Diagnostics, "Not changed", c.configured, err)
		return
	}
	d.finish(ctx, &response.Diagnostics, &response.State, c, made)
}

// changed are the arguments that differ from the state, and those with secrets, of which nobody knows.
func (d *declared) changed(plan, state tftypes.Value, c *call) (map[string]bool, error) {
	var planned, stored map[string]tftypes.Value
	if err := plan.As(&planned); err != nil {
		return nil, err
	}
	if err := state.As(&stored); err != nil {
		return nil, err
	}
	found := map[string]bool{}
	for name, attribute := range d.kind.attributes {
		hidden := attribute.IsWriteOnly() && c.configured[name] != nil
		if within, ok := c.configured[name].(tree); ok && hasHidden(nestedIn(attribute), within) {
			hidden = true
		}
		if (attribute.IsOptional() && !attribute.IsWriteOnly() && !planned[name].Equal(stored[name])) || hidden {
			found[name] = true
		}
	}
	delete(found, "paused")
	return found, nil
}

// finish pauses or resumes what was written, if it is to be, and stores it.
func (d *declared) finish(ctx context.Context, problems *diag.Diagnostics, state *tfsdk.State, c *call, made object) {
	wanted, known := c.planned["paused"].(bool)
	var is bool
	if raw := made["paused"]; d.kind.pause != nil && known && json.Unmarshal(raw, &is) == nil && is != wanted {
		found, err := d.kind.pause(ctx, d.client, d.kind.keyOf(c.configured), wanted)
		if err != nil {
			d.report(problems, "Written, but neither paused nor resumed", c.configured, err)
		} else {
			made = found
		}
	}
	d.store(problems, state, made)
}

// store makes the state of what the server shows.
func (d *declared) store(problems *diag.Diagnostics, state *tfsdk.State, found object) {
	values, secrets, err := shown(d.kind.attributes, found)
	if err == nil {
		if d.kind.attributes[hasSecrets] != nil {
			values[hasSecrets] = secrets
		}
		state.Raw, err = typed(state.Schema.Type().TerraformType(context.Background()), values)
	}
	if err != nil {
		problems.AddError("Unreadable answer", fmt.Sprintf("The server's answer can't be read: %v.", err))
	}
}

// Read takes over what the server has; an object that is no more leaves the state.
func (d *declared) Read(ctx context.Context, request resource.ReadRequest, response *resource.ReadResponse) {
	stored, err := treeOf(request.State.Raw)
	var found object
	if err == nil {
		found, err = d.kind.read(ctx, d.client, d.kind.keyOf(stored))
	}
	if err != nil {
		d.report(&response.Diagnostics, "Not read", stored, err)
		return
	}
	if found == nil {
		response.State.RemoveResource(ctx)
		return
	}
	d.store(&response.Diagnostics, &response.State, found)
}

// Delete deletes an object, if it still is as the plan has read it.
func (d *declared) Delete(ctx context.Context, request resource.DeleteRequest, response *resource.DeleteResponse) {
	stored, err := treeOf(request.State.Raw)
	if err == nil {
		version, _ := stored["version"].(*big.Float)
		expected, _ := version.Int64()
		err = d.kind.remove(ctx, d.client, d.kind.keyOf(stored), int(expected))
	}
	if err != nil {
		d.report(&response.Diagnostics, "Not deleted", stored, err)
	}
}

// ImportState takes the object whose key was given, such as shop/nightly-report.
func (d *declared) ImportState(ctx context.Context, request resource.ImportStateRequest,
	response *resource.ImportStateResponse) {
	key := strings.SplitN(request.ID, "/", len(d.kind.key))
	if len(key) != len(d.kind.key) || slices.Contains(key, "") {
		response.Diagnostics.AddError("Invalid id", fmt.Sprintf(
			"%q names no %s; import it as %s", request.ID, d.kind.name, d.kind.placeholder(),
		))
		return
	}
	for i, name := range d.kind.key {
		response.Diagnostics.Append(response.State.SetAttribute(ctx, path.Root(name), key[i])...)
	}
}
