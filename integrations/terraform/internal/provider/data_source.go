package provider

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	resourceschema "github.com/hashicorp/terraform-plugin-framework/resource/schema"
)

// observed is the data source of a kind: an object that something else declares.
type observed struct {
	*server
	kind *kind
}

// Metadata states the type.
func (o *observed) Metadata(_ context.Context, request datasource.MetadataRequest, response *datasource.MetadataResponse) {
	response.TypeName = request.ProviderTypeName + "_" + o.kind.name
}

// Schema states the attributes: those of the resource, as facts, and some more.
func (o *observed) Schema(_ context.Context, _ datasource.SchemaRequest, response *datasource.SchemaResponse) {
	found := observable(o.all())
	for _, name := range o.kind.key {
		named := found[name].(schema.StringAttribute)
		named.Required, named.Computed = true, false
		found[name] = named
	}
	response.Schema = schema.Schema{MarkdownDescription: o.kind.description, Attributes: found}
}

func (o *observed) all() attributes { return joined(o.kind.attributes, o.kind.facts) }

// observable are the attributes of a resource as those of a data source: all computed, and without write-only ones.
func observable(of attributes) map[string]schema.Attribute {
	found := map[string]schema.Attribute{}
	for name, attribute := range of {
		if attribute.IsWriteOnly() {
			continue
		}
		text := attribute.GetMarkdownDescription()
		switch attribute := attribute.(type) {
		case resourceschema.StringAttribute:
			found[name] = schema.StringAttribute{MarkdownDescription: text, Computed: true}
		case resourceschema.BoolAttribute:
			found[name] = schema.BoolAttribute{MarkdownDescription: text, Computed: true}
		case resourceschema.Int64Attribute:
			found[name] = schema.Int64Attribute{MarkdownDescription: text, Computed: true}
		case resourceschema.Float64Attribute:
			found[name] = schema.Float64Attribute{MarkdownDescription: text, Computed: true}
		case resourceschema.MapAttribute:
			found[name] = schema.MapAttribute{MarkdownDescription: text, Computed: true, ElementType: attribute.ElementType}
		case resourceschema.SetAttribute:
			found[name] = schema.SetAttribute{MarkdownDescription: text, Computed: true, ElementType: attribute.ElementType}
		case resourceschema.ListAttribute:
			found[name] = schema.ListAttribute{MarkdownDescription: text, Computed: true, ElementType: attribute.ElementType}
		case resourceschema.SingleNestedAttribute:
			found[name] = schema.SingleNestedAttribute{
				MarkdownDescription: text, Computed: true, Attributes: observable(attribute.Attributes),
			}
		case resourceschema.SetNestedAttribute:
			found[name] = schema.SetNestedAttribute{
				MarkdownDescription: text, Computed: true,
				NestedObject: schema.NestedAttributeObject{Attributes: observable(attribute.NestedObject.Attributes)},
			}
		}
	}
	return found
}

// Configure takes the server.
func (o *observed) Configure(_ context.Context, request datasource.ConfigureRequest, _ *datasource.ConfigureResponse) {
	o.server, _ = request.ProviderData.(*server)
}

// Read reads the object; one that is not there is an error.
func (o *observed) Read(ctx context.Context, request datasource.ReadRequest, response *datasource.ReadResponse) {
	configured, err := treeOf(request.Config.Raw)
	var found object
	if err == nil {
		found, err = o.kind.read(ctx, o.client, o.kind.keyOf(configured))
	}
	title := o.kind.title(o.kind.keyOf(configured))
	if err != nil {
		response.Diagnostics.AddError("Not read", fmt.Sprintf("%s: %v", title, err))
		return
	}
	if found == nil {
		response.Diagnostics.AddError("Not found", title+" does not exist; create it first, or check its name.")
		return
	}
	values, secrets, err := shown(o.all(), found)
	if err == nil {
		if o.kind.attributes[hasSecrets] != nil {
			values[hasSecrets] = secrets
		}
		response.State.Raw, err = typed(response.State.Schema.Type().TerraformType(ctx), values)
	}
	if err != nil {
		response.Diagnostics.AddError("Unreadable answer", fmt.Sprintf("The server's answer can't be read: %v.", err))
	}
}
