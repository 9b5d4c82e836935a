// Package provider is the Terraform provider of Tocsin: namespaces, flows, schedules, calendars, credentials and monitors, as
// `tocsin apply` declares them.
package provider

import (
	"context"
	"os"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"tocsin.dev/go/tocsin"
)

// Address is where Terraform's configurations find the provider.
const Address = "tocsin.dev/tocsin/tocsin"

// managedByDefault is the mark of objects whose provider has no name of its own.
const managedByDefault = "terraform"

// Provider makes the resources and data sources of a server.
type Provider struct{}

// New makes a provider.
func New() provider.Provider { return &Provider{} }

// settings are what a configuration of the provider has.
type settings struct {
	URL       types.String `tfsdk:"url"`
	Key       types.String `tfsdk:"key"`
	ManagedBy types.String `tfsdk:"managed_by"`
	TakeOver  types.Bool   `tfsdk:"take_over"`
}

// server is what resources work with.
type server struct {
	client    *tocsin.Client
	managedBy string
	takeOver  bool
}

// Metadata states the prefix of all types.
func (*Provider) Metadata(_ context.Context, _ provider.MetadataRequest, response *provider.MetadataResponse) {
	response.TypeName, response.Version = "tocsin", tocsin.Version
}

// Schema states the arguments of the provider.
func (*Provider) Schema(_ context.Context, _ provider.SchemaRequest, response *provider.SchemaResponse) {
	response.Schema = Schema()
}

// Schema has the arguments of the provider.
func Schema() schema.Schema {
	return schema.Schema{
		MarkdownDescription: "Declares namespaces, flows, schedules, calendars, credentials and monitors of a Tocsin server.",
		Attributes: map[string]schema.Attribute{
			"url": schema.StringAttribute{
				MarkdownDescription: "URL of the server. Default: the environment variable `TOCSIN_URL`.", Optional: true,
			},
			"key": schema.StringAttribute{
				MarkdownDescription: "API key, if the server requires one. Default: the environment variable `TOCSIN_KEY`, or the " +
					"file that `TOCSIN_KEY_FILE` names. Namespaces and flows need a key with the role `admin` for the whole service, " +
					"credentials one with `admin` for their namespace, schedules, calendars and monitors one with `write`.",
				Optional: true, Sensitive: true,
			},
			"managed_by": schema.StringAttribute{
				MarkdownDescription: "This configuration's name on the server: what it creates carries it. Give each configuration " +
					"its own. Default: `" + managedByDefault + "`.",
				Optional: true,
			},
			"take_over": schema.BoolAttribute{
				MarkdownDescription: "Whether objects that another declaration manages become this one's. Default: no, they are " +
					"refused.",
				Optional: true,
			},
		},
	}
}

// Configure makes the client.
func (*Provider) Configure(ctx context.Context, request provider.ConfigureRequest, response *provider.ConfigureResponse) {
	var given settings
	response.Diagnostics.Append(request.Config.Get(ctx, &given)...)
	values := map[string]interface{ IsUnknown() bool }{"url": given.URL, "key": given.Key, "managed_by": given.ManagedBy}
	for name, value := range values {
		if value.IsUnknown() {
			refuse(&response.Diagnostics, path.Root(name),
				"is known only after the apply; create in another configuration what it comes from")
		}
	}
	if response.Diagnostics.HasError() {
		return
	}
	key := keyIn(given, &response.Diagnostics)
	address := given.URL.ValueString()
	if address == "" {
		address = os.Getenv("TOCSIN_URL")
	}
	if address == "" {
		refuse(&response.Diagnostics, path.Root("url"), "is missing; give it, or set TOCSIN_URL")
	}
	if response.Diagnostics.HasError() {
		return
	}
	options := []tocsin.Option{}
	if key != "" {
		options = append(options, tocsin.WithKey(key))
	}
	found := &server{tocsin.NewClient(address, options...), managedByDefault, given.TakeOver.ValueBool()}
	if name := given.ManagedBy.ValueString(); name != "" {
		found.managedBy = name
	}
	response.ResourceData, response.DataSourceData = found, found
}

func keyIn(given settings, problems *diag.Diagnostics) string {
	if key := given.Key.ValueString(); key != "" {
		return key
	}
	if key := os.Getenv("TOCSIN_KEY"); key != "" {
		return key
	}
	name := os.Getenv("TOCSIN_KEY_FILE")
	if name == "" {
		return ""
	}
	text, err := os.ReadFile(name)
	if err != nil {
		refuse(problems, path.Root("key"), "can't be read from TOCSIN_KEY_FILE: "+err.Error())
	}
	return strings.TrimSpace(string(text))
}

// Resources are those of all kinds.
func (*Provider) Resources(context.Context) []func() resource.Resource {
	found := []func() resource.Resource{}
	for _, each := range kinds() {
		found = append(found, func() resource.Resource { return &declared{kind: each} })
	}
	return found
}

// DataSources are those of all kinds.
func (*Provider) DataSources(context.Context) []func() datasource.DataSource {
	found := []func() datasource.DataSource{}
	for _, each := range kinds() {
		found = append(found, func() datasource.DataSource { return &observed{kind: each} })
	}
	return found
}
