package provider

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"tocsin.dev/go/tocsin"
	"tocsin.dev/go/tocsintest"
)

// running is the server of all tests: each has a namespace of its own in it.
var running *tocsintest.Server

func TestMain(m *testing.M) {
	os.Exit(func() int {
		// The program of this checkout, unless another one is named.
		if os.Getenv("TOCSIN_BIN") == "" {
			found, err := filepath.Abs("../../../../.venv/bin/tocsin")
			if err == nil {
				err = os.Setenv("TOCSIN_BIN", found)
			}
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				return 1
			}
		}
		// Without it, the server issues no JWTs.
		if err := os.Setenv("TOCSIN_PUBLIC_URL", "https://timers.example"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		folder, err := os.MkdirTemp("", "tocsin-provider-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(folder)
		if running, err = tocsintest.Start(folder, "--log-level", "warning"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer func() { _ = running.Stop() }()
		return m.Run()
	}())
}

// terraform speaks with the provider as Terraform's core does, over its protocol.
type terraform struct {
	*testing.T
	provider tfprotov6.ProviderServer
	schemas  *tfprotov6.GetProviderSchemaResponse
	client   *tocsin.Client
}

// instance is a resource: its type, and its state as the provider last returned it.
type instance struct {
	*terraform
	of    string
	state tftypes.Value
}

func newTerraform(t *testing.T, configured tree) *terraform {
	t.Helper()
	server, err := providerserver.NewProtocol6WithError(New())()
	if err != nil {
		t.Fatal(err)
	}
	f := &terraform{T: t, provider: server, client: running.Client()}
	if f.schemas, err = server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{}); err != nil {
		t.Fatal(err)
	}
	f.none(f.schemas.Diagnostics)
	kind := f.schemas.Provider.ValueType()
	configuration := tree{"url": running.URL}
	for name, value := range configured {
		configuration[name] = value
	}
	answer, err := server.ConfigureProvider(t.Context(),
		&tfprotov6.ConfigureProviderRequest{Config: f.dynamic(kind, f.value(kind, configuration))})
	if err != nil {
		t.Fatal(err)
	}
	f.none(answer.Diagnostics)
	return f
}

// namespace creates a namespace by hand, named after the test.
func (f *terraform) namespace() string {
	f.Helper()
	name := strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(f.Name()))
	if _, err := f.client.Namespaces.Create(f.Context(), tocsin.CreateNamespace{Name: name}); err != nil {
		f.Fatal(err)
	}
	return name
}

// credential puts a credential for a host by hand.
func (f *terraform) credential(namespace, name, host string) {
	f.Helper()
	if _, err := f.client.Credentials.Put(f.Context(), tocsin.PutCredential{
		Namespace: namespace, Name: name, Type: tocsin.CredentialTypeBearer, Token: "planted", Hosts: []string{host},
	}); err != nil {
		f.Fatal(err)
	}
}

func (f *terraform) resource(of string) *instance {
	kind := f.schemas.ResourceSchemas[of].ValueType()
	return &instance{f, of, tftypes.NewValue(kind, nil)}
}

func (f *terraform) none(found []*tfprotov6.Diagnostic) {
	f.Helper()
	for _, each := range found {
		if each.Severity == tfprotov6.DiagnosticSeverityError {
			f.Fatalf("%s: %s (%s)", each.Summary, each.Detail, each.Attribute)
		}
	}
}

func (f *terraform) value(kind tftypes.Type, values tree) tftypes.Value {
	f.Helper()
	found, err := typed(kind, asPlain(values))
	if err != nil {
		f.Fatal(err)
	}
	return found
}

func (f *terraform) dynamic(kind tftypes.Type, value tftypes.Value) *tfprotov6.DynamicValue {
	f.Helper()
	found, err := tfprotov6.NewDynamicValue(kind, value)
	if err != nil {
		f.Fatal(err)
	}
	return &found
}

func (f *terraform) read(kind tftypes.Type, value *tfprotov6.DynamicValue) tftypes.Value {
	f.Helper()
	if value == nil {
		return tftypes.NewValue(kind, nil)
	}
	found, err := value.Unmarshal(kind)
	if err != nil {
		f.Fatal(err)
	}
	return found
}

func (i *instance) schema() *tfprotov6.Schema { return i.schemas.ResourceSchemas[i.of] }

// validate returns what the provider finds in a configuration.
func (i *instance) validate(configured tree) []*tfprotov6.Diagnostic {
	i.Helper()
	kind := i.schema().ValueType()
	answer, err := i.provider.ValidateResourceConfig(i.Context(), &tfprotov6.ValidateResourceConfigRequest{
		TypeName: i.of, Config: i.dynamic(kind, i.value(kind, configured)),
		ClientCapabilities: &tfprotov6.ValidateResourceConfigClientCapabilities{WriteOnlyAttributesAllowed: true},
	})
	if err != nil {
		i.Fatal(err)
	}
	return answer.Diagnostics
}

// plan returns what an apply would make of the state; nil is a configuration without the resource.
func (i *instance) plan(configured tree) (tftypes.Value, *tfprotov6.PlanResourceChangeResponse) {
	i.Helper()
	kind := i.schema().ValueType()
	config := tftypes.NewValue(kind, nil)
	proposed := config
	if configured != nil {
		i.none(i.validate(configured))
		config = i.value(kind, configured)
		proposed = i.proposed(i.schema().Block.Attributes, config, i.state)
	}
	answer, err := i.provider.PlanResourceChange(i.Context(), &tfprotov6.PlanResourceChangeRequest{
		TypeName: i.of, PriorState: i.dynamic(kind, i.state), Config: i.dynamic(kind, config),
		ProposedNewState: i.dynamic(kind, proposed),
	})
	if err != nil {
		i.Fatal(err)
	}
	return i.read(kind, answer.PlannedState), answer
}

// proposed is what Terraform proposes: what is not configured and computed keeps its value.
func (i *instance) proposed(of []*tfprotov6.SchemaAttribute, config, prior tftypes.Value) tftypes.Value {
	i.Helper()
	if config.IsNull() || !config.IsKnown() {
		return config
	}
	given, before := i.members(config), i.members(prior)
	for _, attribute := range of {
		was, ok := before[attribute.Name]
		if !ok {
			was = tftypes.NewValue(attribute.ValueType(), nil)
		}
		now := given[attribute.Name]
		switch {
		case now.IsNull() && attribute.Computed:
			given[attribute.Name] = was
		case attribute.WriteOnly:
			given[attribute.Name] = tftypes.NewValue(attribute.ValueType(), nil)
		case attribute.NestedType != nil && attribute.NestedType.Nesting == tfprotov6.SchemaObjectNestingModeSingle:
			given[attribute.Name] = i.proposed(attribute.NestedType.Attributes, now, was)
		}
	}
	return tftypes.NewValue(config.Type(), given)
}

func (i *instance) members(of tftypes.Value) map[string]tftypes.Value {
	i.Helper()
	found := map[string]tftypes.Value{}
	if !of.IsNull() {
		if err := of.Copy().As(&found); err != nil { // As would give the value's own map
			i.Fatal(err)
		}
	}
	return found
}

// try plans and applies, and returns the diagnostics of both.
func (i *instance) try(configured tree) []*tfprotov6.Diagnostic {
	i.Helper()
	planned, answer := i.plan(configured)
	return append(answer.Diagnostics, i.carryOut(configured, planned, answer)...)
}

// carryOut applies a plan, unless it has an error.
func (i *instance) carryOut(configured tree, planned tftypes.Value,
	plan *tfprotov6.PlanResourceChangeResponse) []*tfprotov6.Diagnostic {
	i.Helper()
	for _, each := range plan.Diagnostics {
		if each.Severity == tfprotov6.DiagnosticSeverityError {
			return nil
		}
	}
	if len(plan.RequiresReplace) > 0 {
		i.Fatal("the plan replaces the resource")
	}
	kind := i.schema().ValueType()
	config := tftypes.NewValue(kind, nil)
	if configured != nil {
		config = i.value(kind, configured)
	}
	answer, err := i.provider.ApplyResourceChange(i.Context(), &tfprotov6.ApplyResourceChangeRequest{
		TypeName: i.of, PriorState: i.dynamic(kind, i.state), PlannedState: plan.PlannedState, Config: i.dynamic(kind, config),
		PlannedPrivate: plan.PlannedPrivate,
	})
	if err != nil {
		i.Fatal(err)
	}
	i.state = i.read(kind, answer.NewState)
	if len(answer.Diagnostics) == 0 {
		i.isAsPlanned(planned, i.state)
	}
	return answer.Diagnostics
}

// isAsPlanned fails where a known value of the plan is another one afterwards, which Terraform takes for a defect of the
// provider.
func (i *instance) isAsPlanned(planned, made tftypes.Value) {
	i.Helper()
	differing, err := planned.Diff(made)
	if err != nil {
		i.Fatal(err)
	}
	for _, each := range differing {
		if each.Value1 == nil || each.Value1.IsFullyKnown() && (each.Value2 == nil || !each.Value1.Equal(*each.Value2)) {
			i.Errorf("%s was planned otherwise", each)
		}
	}
}

// apply plans and applies without any error, and then finds nothing that differs.
func (i *instance) apply(configured tree) {
	i.Helper()
	i.none(i.try(configured))
	i.refresh()
	if configured != nil {
		i.unchanged(configured)
	} else if !i.state.IsNull() {
		i.Error("it is still there")
	}
}

// refresh reads the state.
func (i *instance) refresh() {
	i.Helper()
	if i.state.IsNull() {
		return
	}
	kind := i.schema().ValueType()
	request := &tfprotov6.ReadResourceRequest{TypeName: i.of, CurrentState: i.dynamic(kind, i.state)}
	answer, err := i.provider.ReadResource(i.Context(), request)
	if err != nil {
		i.Fatal(err)
	}
	i.none(answer.Diagnostics)
	i.state = i.read(kind, answer.NewState)
}

func (i *instance) unchanged(configured tree) {
	i.Helper()
	planned, answer := i.plan(configured)
	i.none(answer.Diagnostics)
	if !planned.Equal(i.state) {
		differing, err := i.state.Diff(planned)
		i.Errorf("a plan of the same configuration changes %v %v", differing, err)
	}
}

// differs is a plan that changes these attributes, besides what follows from that.
func (i *instance) differs(configured tree, attributes ...string) {
	i.Helper()
	planned, answer := i.plan(configured)
	i.none(answer.Diagnostics)
	before, after := i.members(i.state), i.members(planned)
	found := []string{}
	for _, name := range names(after) {
		if !after[name].Equal(before[name]) {
			found = append(found, name)
		}
	}
	if fmt.Sprint(found) != fmt.Sprint(attributes) {
		i.Errorf("the plan changes %v, not %v", found, attributes)
	}
}

func (i *instance) importAs(id string) {
	i.Helper()
	answer, err := i.provider.ImportResourceState(i.Context(), &tfprotov6.ImportResourceStateRequest{TypeName: i.of, ID: id})
	if err != nil {
		i.Fatal(err)
	}
	i.none(answer.Diagnostics)
	i.state = i.read(i.schema().ValueType(), answer.ImportedResources[0].State)
	i.refresh()
}

// has compares attributes of the state.
func (i *instance) has(wanted tree) {
	i.Helper()
	found, err := treeOf(i.state)
	if err != nil {
		i.Fatal(err)
	}
	for name, value := range asPlain(wanted).(tree) {
		if fmt.Sprint(found[name]) != fmt.Sprint(value) {
			i.Errorf("%s is %v, not %v", name, found[name], value)
		}
	}
}

// data reads a data source.
func (f *terraform) data(of string, configured tree) (tree, []*tfprotov6.Diagnostic) {
	f.Helper()
	kind := f.schemas.DataSourceSchemas[of].ValueType()
	answer, err := f.provider.ReadDataSource(f.Context(), &tfprotov6.ReadDataSourceRequest{
		TypeName: of, Config: f.dynamic(kind, f.value(kind, configured)),
	})
	if err != nil {
		f.Fatal(err)
	}
	found, err := treeOf(f.read(kind, answer.State))
	if err != nil {
		f.Fatal(err)
	}
	return found, answer.Diagnostics
}

// refused fails unless the only error is this one, at this attribute.
func (f *terraform) refused(found []*tfprotov6.Diagnostic, at, detail string) {
	f.Helper()
	errors := []string{}
	for _, each := range found {
		if each.Severity == tfprotov6.DiagnosticSeverityError {
			errors = append(errors, fmt.Sprintf("%s: %s", each.Attribute, each.Detail))
			if fmt.Sprint(each.Attribute) == at && strings.Contains(each.Detail, detail) && len(found) == 1 {
				return
			}
		}
	}
	f.Errorf("refused with %q, not at %q with %q", errors, at, detail)
}

// asPlain has the numbers of a test as Terraform has them.
func asPlain(value any) any {
	switch value := value.(type) {
	case int:
		return bigFloat(float64(value))
	case float64:
		return bigFloat(value)
	case []string:
		found := make([]any, len(value))
		for i, each := range value {
			found[i] = each
		}
		return found
	case []any:
		found := make([]any, len(value))
		for i, each := range value {
			found[i] = asPlain(each)
		}
		return found
	case tree:
		found := tree{}
		for name, each := range value {
			found[name] = asPlain(each)
		}
		return found
	}
	return value
}

func with(configured tree, changes tree) tree {
	found := tree{}
	for name, value := range configured {
		found[name] = value
	}
	for name, value := range changes {
		if found[name] = value; value == nil {
			delete(found, name)
		}
	}
	return found
}
