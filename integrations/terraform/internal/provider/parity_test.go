package provider

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
)

// jsonSchema is the part of a JSON Schema that names fields.
type jsonSchema struct {
	Ref        string                 `json:"$ref"`
	Properties map[string]*jsonSchema `json:"properties"`
	AnyOf      []*jsonSchema          `json:"anyOf"`
	Items      *jsonSchema            `json:"items"`
	Defs       map[string]*jsonSchema `json:"$defs"`
}

// fields are those of the object, or of the items, that the schema describes; nil if it describes none.
func (s *jsonSchema) fields(defs map[string]*jsonSchema) map[string]*jsonSchema {
	if s == nil {
		return nil
	}
	if s.Ref != "" {
		return defs[strings.TrimPrefix(s.Ref, "#/$defs/")].fields(defs)
	}
	for _, each := range s.AnyOf {
		if found := each.fields(defs); found != nil {
			return found
		}
	}
	if s.Properties != nil {
		return s.Properties
	}
	return s.Items.fields(defs)
}

// What a file can declare, an argument can: an update replaces the whole object, so a field that has none would be removed.
func TestEveryFieldOfADeclaredFileIsAnArgument(t *testing.T) {
	raw, err := os.ReadFile("../../../../src/tocsin/cli/declared/schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var file jsonSchema
	if err := json.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	declarable := []string{}
	for name, list := range file.Properties {
		fields := list.fields(file.Defs)
		if fields == nil {
			continue // a setting of the file
		}
		declarable = append(declarable, strings.TrimSuffix(name, "s"))
		for _, each := range kinds() {
			if each.name+"s" == name {
				sameNames(t, each.name, each.attributes, fields, file.Defs)
			}
		}
	}
	provided := []string{}
	for _, each := range kinds() {
		provided = append(provided, each.name)
	}
	slices.Sort(declarable)
	slices.Sort(provided)
	if !slices.Equal(declarable, provided) {
		t.Errorf("a file declares %v, and the provider has %v", declarable, provided)
	}
}

// sameNames compares the arguments with the fields, and those within them. Secrets have arguments of their own.
func sameNames(t *testing.T, at string, of attributes, fields map[string]*jsonSchema, defs map[string]*jsonSchema) {
	t.Helper()
	for name, attribute := range of {
		is := attribute.IsOptional() || attribute.IsRequired()
		if is && !attribute.IsWriteOnly() && fields[inCamelCase(name)] == nil {
			t.Errorf("%s.%s is no field of a file", at, name)
		}
	}
	for field, described := range fields {
		if field == "secretFrom" {
			continue // where a file has no secret itself
		}
		name := inSnakeCase(field)
		attribute, ok := of[name]
		if !ok || !attribute.IsOptional() && !attribute.IsRequired() {
			t.Errorf("%s has no argument %s", at, name)
			continue
		}
		if within := described.fields(defs); within != nil {
			sameNames(t, at+"."+name, nestedIn(attribute), within, defs)
		}
	}
}
