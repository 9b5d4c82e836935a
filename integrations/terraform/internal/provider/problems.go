package provider

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"

	"tocsin.dev/go/tocsin"
)

// report makes diagnostics of an error: of each bad field, at its attribute.
func (d *declared) report(to *diag.Diagnostics, summary string, values tree, err error) {
	title := d.kind.title(d.kind.keyOf(values))
	var refused *tocsin.APIError
	switch {
	case errors.Is(err, tocsin.ErrVersionConflict) && summary == "Not created":
		to.AddError(summary, title+" exists already; import it, or give this one another name.")
	case errors.Is(err, tocsin.ErrNamespaceExists):
		to.AddError(summary, title+" exists already; import it, or give this one another name.")
	case errors.Is(err, tocsin.ErrVersionConflict):
		to.AddError(summary, title+" has changed since it was read, and nothing was written; plan again.")
	case errors.Is(err, tocsin.ErrNamespaceNotEmpty):
		to.AddError(summary, title+" has pending timers or schedules; wait for them, or delete it with `tocsin namespaces delete`.")
	case errors.As(err, &refused) && len(refused.Fields) > 0:
		for _, field := range refused.Fields {
			at := attributePath(d.kind.attributes, field.Path)
			to.AddAttributeError(at, summary, fmt.Sprintf("%s: %s.", title, strings.TrimSpace(at.String()+" "+field.Reason)))
		}
	default:
		to.AddError(summary, fmt.Sprintf("%s: %v", title, err))
	}
}

// index is the place of an item in the API's paths, which Terraform's sets do not have.
var index = regexp.MustCompile(`\[\d+\]`)

// attributePath is the attribute that one of the API's paths means, such as retryPolicy.maxAttempts or headers.x-shop; the
// closest one that there is.
func attributePath(of attributes, field string) path.Path {
	at := path.Empty()
	for field != "" && of != nil {
		name, rest, _ := strings.Cut(index.ReplaceAllString(field, ""), ".")
		attribute, ok := of[inSnakeCase(name)]
		if !ok {
			break
		}
		at = at.AtName(inSnakeCase(name))
		if _, isMap := attribute.(schema.MapAttribute); isMap && rest != "" {
			return at.AtMapKey(rest)
		}
		if _, isSet := attribute.(schema.SetNestedAttribute); isSet {
			break
		}
		of, field = nestedIn(attribute), rest
	}
	return at
}
