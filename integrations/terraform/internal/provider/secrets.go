package provider

import (
	"context"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// redacted is what the server shows in the place of a secret.
const redacted = "[redacted]"

// The server's rule of what is a secret. It is repeated here so that a secret in the wrong argument is refused by
// `terraform validate`, before it gets into a plan or a state; a test compares it with a server's.
var (
	secretNames = []string{"key", "sig", "pwd", "pass", "pin", "sid", "code", "x-honeycomb-team"}
	plainNames  = []string{"www-authenticate", "proxy-authenticate", "authority", ":authority", "author", "x-author"}
	secretParts = regexp.MustCompile(
		`auth|cookie|token|secret|passw|passphrase|passcode|credential|session|signature|jwt|bearer|csrf|xsrf|otp` +
			`|(api|access|private|account|subscription|shared|master|signing|encryption|license)[-_.]?key`,
	)
	keyName      = regexp.MustCompile(`[-_.]key$`)
	plainKeyName = regexp.MustCompile(
		`(idempotency|idempotent|deduplication|dedup|cache|surrogate|partition|row|range|hash|sort|primary|foreign|public` +
			`|group|ordering|order|routing|concurrency|lock|message|object|project|issue|error|translation|websocket)[-_.]key$`,
	)
	credential = regexp.MustCompile(`(?i)^(basic|bearer|digest|negotiate|token|apikey)\s+\S`)
	userInfo   = regexp.MustCompile(`//[^/?#\s]*@`)
	parameter  = regexp.MustCompile(`[?&;]([^?=&;#\s]+)=`)
)

func isSecretName(name string) bool {
	folded := strings.ToLower(strings.TrimSpace(name))
	if slices.Contains(plainNames, folded) {
		return false
	}
	if slices.Contains(secretNames, folded) || secretParts.MatchString(folded) {
		return true
	}
	return keyName.MatchString(folded) && !plainKeyName.MatchString(folded)
}

// isSecretHeader reports whether the server takes a header's value for a secret, by its name or by its form.
func isSecretHeader(name, value string) bool {
	return isSecretName(name) || credential.MatchString(value)
}

// hasSecret reports whether the server takes a part of a URL for a secret.
func hasSecret(address string) bool {
	if userInfo.MatchString(address) {
		return true
	}
	return slices.ContainsFunc(parameter.FindAllStringSubmatch(address, -1), func(found []string) bool {
		name, err := url.QueryUnescape(found[1])
		return isSecretName(found[1]) || (err == nil && isSecretName(name))
	})
}

// noSecrets is the validator of arguments that the state shows: `instead` is the write-only one for secrets.
type noSecrets struct{ instead string }

func (v noSecrets) Description(context.Context) string { return "has no secret" }

func (v noSecrets) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

// ValidateMap reports headers that are secrets. No message has a value.
func (v noSecrets) ValidateMap(_ context.Context, request validator.MapRequest, response *validator.MapResponse) {
	eachHeader(request, func(name, value string) {
		if isSecretHeader(name, value) {
			refuse(&response.Diagnostics, request.Path.AtMapKey(name),
				"is a secret, which the state would have in clear; move it to "+v.instead)
		}
	})
}

// ValidateString reports a URL with secrets, and one that the server does not keep as it is.
func (v noSecrets) ValidateString(_ context.Context, request validator.StringRequest, response *validator.StringResponse) {
	address := request.ConfigValue.ValueString()
	if hasSecret(address) {
		refuse(&response.Diagnostics, request.Path,
			"has a secret, which the state would have in clear; give the URL as "+v.instead+" instead")
	}
	if strings.Contains(address, "#") {
		refuse(&response.Diagnostics, request.Path, "has a fragment, which is never sent; leave out what begins with #")
	}
}

// onlySecrets is the validator of write-only arguments: what the server shows in its answers would get into the state all the
// same.
type onlySecrets struct{ instead string }

func (v onlySecrets) Description(context.Context) string { return "is a secret" }

func (v onlySecrets) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

// ValidateMap reports headers that the server would show.
func (v onlySecrets) ValidateMap(_ context.Context, request validator.MapRequest, response *validator.MapResponse) {
	eachHeader(request, func(name, value string) {
		if !isSecretHeader(name, value) {
			refuse(&response.Diagnostics, request.Path.AtMapKey(name), "would be shown by the server, which finds secrets by "+
				"their names; name the header so, such as x-shop-token, or move it to "+v.instead)
		}
	})
}

// ValidateString reports a URL that the server would show.
func (v onlySecrets) ValidateString(_ context.Context, request validator.StringRequest, response *validator.StringResponse) {
	if !request.ConfigValue.IsNull() && !request.ConfigValue.IsUnknown() && !hasSecret(request.ConfigValue.ValueString()) {
		refuse(&response.Diagnostics, request.Path, "would be shown by the server, which finds secrets in a URL before its host, "+
			"and in parameters with such names; name the parameter so, such as token, or give the URL as "+v.instead)
	}
}

func eachHeader(request validator.MapRequest, check func(name, value string)) {
	for name, value := range request.ConfigValue.Elements() {
		if text, ok := value.(types.String); ok && !text.IsUnknown() {
			check(name, text.ValueString())
		}
	}
}

// refuse reports what is wrong with an argument, and the mend.
func refuse(to *diag.Diagnostics, at path.Path, reason string) {
	to.AddAttributeError(at, "Invalid value", at.String()+": "+reason)
}
