package provider

import (
	"context"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"tocsin.dev/go/tocsin"
)

// credentials are what requests identify themselves with. Schedules and notifications name them.
func credentials() *kind {
	hosts := texts("Where it may be sent, and nowhere else: `host` or `host:port` for HTTPS, `http://host:port` for plain HTTP. " +
		"Without any, only this machine's own addresses.")
	hosts.Validators = []validator.Set{shortHosts{}}
	return &kind{
		name: "credential",
		description: "A credential: what requests identify themselves with. Schedules and notifications name it. Its secret is in " +
			"neither the plan nor the state; without one, it keeps the secret that it has.",
		key: []string{"namespace", "name"},
		attributes: joined(marks(), attributes{
			"namespace": naming("The namespace's name."),
			"name":      naming("The credential's name, unique in its namespace."),
			"type": required(text("How a request identifies itself: `basic`, `bearer`, `oauth2ClientCredentials`, `jwt` or " +
				"`mtls`.")),
			"hosts":     hosts,
			"username":  text("Of `basic`: the user's name."),
			"token_url": text("Of `oauth2ClientCredentials`: the token endpoint."),
			"client_id": text("Of `oauth2ClientCredentials`: the client's id."),
			"client_authentication": filledText("Of `oauth2ClientCredentials`: whether the token endpoint gets the client's secret " +
				"in the header Authorization (`basic`, the default) or in the body (`post`)."),
			"scope":         text("Of `oauth2ClientCredentials`: the scopes to ask for, with spaces between."),
			"audience":      text("Of `jwt`: its `aud`. Of `oauth2ClientCredentials`: the parameter `audience`."),
			"lifetime":      predicted(positiveDurations, "Of `jwt`: how long each is valid, `1m` to `1h`. Default: `10m`."),
			"certificate":   text("Of `mtls`: the client's certificate in PEM, followed by those that lead to its authority."),
			"ca":            text("Certificates in PEM of the authorities that are trusted for its hosts, instead of the system's."),
			"description":   text("What it is for, in one line."),
			"password":      secretOf("basic", "the password"),
			"token":         secretOf("bearer", "the token"),
			"client_secret": secretOf("oauth2ClientCredentials", "the client's secret"),
			"private_key":   secretOf("mtls", "the certificate's private key in PEM, without a password"),
		}),
		validate: func(tree) map[string]string { return nil },
		predict: func(configured, planned tree) {
			predictOf("oauth2ClientCredentials", "client_authentication", "basic", configured, planned)
			predictOf("jwt", "lifetime", "10m", configured, planned)
		},
		create: func(ctx context.Context, client *tocsin.Client, sent object) (object, error) {
			wanted, err := sentAs[tocsin.PutCredential](sent)
			if err != nil {
				return nil, err
			}
			wanted.ExpectedVersion = tocsin.Some(0)
			return answered(client.Credentials.Put(ctx, wanted))
		},
		update: func(ctx context.Context, client *tocsin.Client, sent object, _ map[string]bool) (object, error) {
			wanted, err := sentAs[tocsin.PutCredential](sent)
			if err != nil {
				return nil, err
			}
			return answered(client.Credentials.Put(ctx, wanted))
		},
		read: func(ctx context.Context, client *tocsin.Client, key []string) (object, error) {
			return present(answered(client.Credentials.Get(ctx, key[0], key[1])))
		},
		remove: func(ctx context.Context, client *tocsin.Client, key []string, version int) error {
			return gone(client.Credentials.DeleteVersion(ctx, key[0], key[1], version))
		},
		tried: func(ctx context.Context, client *tocsin.Client, sent object) (int, error) {
			wanted, err := sentAs[tocsin.PutCredential](sent)
			if err != nil {
				return 0, err
			}
			wanted.DryRun = true
			found, err := client.Credentials.Put(ctx, wanted)
			if err != nil {
				return 0, err
			}
			return found.Version, nil
		},
	}
}

// secretOf is the write-only argument for the secret of a type.
func secretOf(kind, description string) schema.StringAttribute {
	return schema.StringAttribute{
		MarkdownDescription: "Of `" + kind + "`: " + description + ". It is neither in the plan nor in the state.",
		Optional:            true, WriteOnly: true, Validators: []validator.String{notEmpty{}},
	}
}

// predictOf fills in an argument that credentials of one type have.
func predictOf(kind, name, fallback string, configured, planned tree) {
	if configured[name] != nil {
		return
	}
	planned[name] = nil
	switch configured["type"] {
	case kind:
		planned[name] = fallback
	case unknown:
		planned[name] = unknown
	}
}

// shortHosts refuses hosts that the server writes otherwise, which would be a difference in each plan.
type shortHosts struct{}

func (shortHosts) Description(context.Context) string { return "has hosts as the server writes them" }

func (v shortHosts) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

func (shortHosts) ValidateSet(_ context.Context, request validator.SetRequest, response *validator.SetResponse) {
	for _, each := range request.ConfigValue.Elements() {
		host, ok := each.(types.String)
		if short := shortHost(host.ValueString()); ok && short != host.ValueString() {
			refuse(&response.Diagnostics, request.Path, "has "+host.ValueString()+", which the server writes as "+short+
				"; write it so")
		}
	}
}

// shortHost is a host in small letters, and without what is understood.
func shortHost(host string) string {
	short := strings.ToLower(host)
	if strings.HasPrefix(short, "http://") {
		return strings.TrimSuffix(short, ":80")
	}
	return strings.TrimSuffix(strings.TrimPrefix(short, "https://"), ":443")
}
