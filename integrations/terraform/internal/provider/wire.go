package provider

import (
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"unicode"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
)

// attributes are those of a resource, or of an object within it.
type attributes = map[string]schema.Attribute

// object is an object of the API's: its members as JSON.
type object = map[string]json.RawMessage

// secretly begins the names of write-only arguments. What they have is sent as the argument of the name that follows.
const secretly = "secret_"

// inCamelCase is the API's name of an attribute.
func inCamelCase(name string) string {
	words := strings.Split(name, "_")
	for i, word := range words[1:] {
		words[i+1] = strings.ToUpper(word[:1]) + word[1:]
	}
	return strings.Join(words, "")
}

// inSnakeCase is the attribute of one of the API's names.
func inSnakeCase(name string) string {
	var found strings.Builder
	for _, char := range name {
		if unicode.IsUpper(char) {
			found.WriteByte('_')
		}
		found.WriteRune(unicode.ToLower(char))
	}
	return found.String()
}

// nestedIn are the attributes of an object, or of the objects of a list; nil if it has none.
func nestedIn(attribute schema.Attribute) attributes {
	switch attribute := attribute.(type) {
	case schema.SingleNestedAttribute:
		return attribute.Attributes
	case schema.SetNestedAttribute:
		return attribute.NestedObject.Attributes
	}
	return nil
}

func formOf(attribute schema.Attribute) *form {
	if text, ok := attribute.(schema.StringAttribute); ok {
		if kind, ok := text.CustomType.(formType); ok {
			return kind.form
		}
	}
	return nil
}

// request is what a configuration asks for, as the API's requests have it, secrets included. What is null is absent.
func request(of attributes, configured tree) (object, error) {
	sent := object{}
	for name, attribute := range of {
		value := configured[name]
		if hasTwin(of, name) {
			value = withSecrets(value, configured[secretly+name])
		}
		if value == nil || strings.HasPrefix(name, secretly) {
			continue
		}
		encoded, err := encoded(attribute, value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		sent[inCamelCase(name)] = encoded
	}
	return sent, nil
}

// hasTwin reports whether an argument has a write-only one beside it.
func hasTwin(of attributes, name string) bool {
	_, ok := of[secretly+name]
	return ok
}

func withSecrets(shown, hidden any) any {
	secrets, ok := hidden.(tree)
	if !ok {
		if hidden != nil {
			return hidden
		}
		return shown
	}
	merged := tree{}
	if headers, ok := shown.(tree); ok {
		for name, value := range headers {
			merged[name] = value
		}
	}
	for name, value := range secrets {
		merged[name] = value
	}
	return merged
}

func encoded(attribute schema.Attribute, value any) (json.RawMessage, error) {
	nested := nestedIn(attribute)
	switch value := value.(type) {
	case string:
		if formOf(attribute) == jsonTexts {
			return json.RawMessage(value), nil
		}
	case *big.Float:
		if value.IsInt() {
			return json.RawMessage(value.Text('f', 0)), nil // an exponent is no integer to encoding/json
		}
		return json.RawMessage(value.Text('g', -1)), nil
	case tree:
		if nested != nil {
			sent, err := request(nested, value)
			if err != nil {
				return nil, err
			}
			return json.Marshal(sent)
		}
	case []any:
		if nested != nil {
			items := make([]object, len(value))
			for i, item := range value {
				var err error
				if items[i], err = request(nested, item.(tree)); err != nil {
					return nil, err
				}
			}
			return json.Marshal(items)
		}
	}
	return json.Marshal(value)
}

// shown is an object of the API's as the state has it: without secrets, and null where there is nothing. The truth value: it
// has secrets.
func shown(of attributes, answered object) (tree, bool, error) {
	found, secrets := tree{}, false
	for name, attribute := range of {
		if attribute.IsWriteOnly() {
			continue
		}
		value, hidden, err := decoded(attribute, answered[inCamelCase(name)])
		if err != nil {
			return nil, false, fmt.Errorf("%s: %w", name, err)
		}
		if hasTwin(of, name) {
			value, hidden = withoutSecrets(value)
		}
		found[name] = value
		secrets = secrets || hidden
	}
	return found, secrets, nil
}

// withoutSecrets are the headers that are none, or a URL as it is, and whether the server hides something of it.
func withoutSecrets(value any) (any, bool) {
	headers, ok := value.(tree)
	if !ok {
		text, _ := value.(string)
		return value, strings.Contains(text, redacted)
	}
	left := tree{}
	for name, header := range headers {
		if header != redacted {
			left[name] = header
		}
	}
	return left, len(left) < len(headers)
}

func decoded(attribute schema.Attribute, raw json.RawMessage) (any, bool, error) {
	if raw == nil || string(raw) == "null" && formOf(attribute) != jsonTexts {
		return absent(attribute), false, nil
	}
	if nested := nestedIn(attribute); nested != nil {
		return decodedObjects(nested, raw)
	}
	var err error
	switch attribute.(type) {
	case schema.BoolAttribute:
		var found bool
		err = json.Unmarshal(raw, &found)
		return found, false, err
	case schema.Int64Attribute, schema.Float64Attribute:
		number, ok := new(big.Float).SetString(string(raw))
		if !ok {
			err = fmt.Errorf("%s is no number", raw)
		}
		return number, false, err
	case schema.MapAttribute:
		found := tree{}
		err = json.Unmarshal(raw, &found)
		return found, false, err
	case schema.SetAttribute, schema.ListAttribute:
		found := []any{}
		err = json.Unmarshal(raw, &found)
		return found, false, err
	}
	if formOf(attribute) == jsonTexts {
		return string(raw), false, nil
	}
	var text string
	err = json.Unmarshal(raw, &text)
	return text, false, err
}

func decodedObjects(of attributes, raw json.RawMessage) (any, bool, error) {
	if strings.HasPrefix(string(raw), "{") {
		var members object
		if err := json.Unmarshal(raw, &members); err != nil {
			return nil, false, err
		}
		return shown(of, members)
	}
	var items []object
	if err := json.Unmarshal(raw, &items); err != nil {
		return nil, false, err
	}
	found := make([]any, len(items))
	for i, item := range items {
		one, _, err := shown(of, item)
		if err != nil {
			return nil, false, err
		}
		found[i] = one
	}
	return found, false, nil
}

// absent is the value of an attribute that the server leaves out: nothing, or what the schema has for nothing.
func absent(attribute schema.Attribute) any {
	if !attribute.IsComputed() {
		return nil
	}
	switch attribute.(type) {
	case schema.BoolAttribute:
		return false
	case schema.MapAttribute:
		return tree{}
	case schema.SetAttribute, schema.SetNestedAttribute:
		return []any{}
	}
	return nil
}

// hasHidden reports whether a configuration has a value in a write-only argument, or may have one.
func hasHidden(of attributes, configured tree) bool {
	for name, attribute := range of {
		if attribute.IsWriteOnly() && configured[name] != nil {
			return true
		}
		if within, ok := configured[name].(tree); ok && hasHidden(nestedIn(attribute), within) {
			return true
		}
	}
	return false
}

// names are sorted, for messages and pages.
func names[T any](of map[string]T) []string {
	found := make([]string, 0, len(of))
	for name := range of {
		found = append(found, name)
	}
	slices.Sort(found)
	return found
}
