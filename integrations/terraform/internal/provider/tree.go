package provider

import (
	"fmt"
	"math/big"

	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// tree is an object of Terraform's as plain values: texts, truth values, *big.Float, lists as []any, maps and objects as
// tree; nil for null, and unknown for what is known only after the apply. With it one piece of code serves all kinds of
// objects.
type tree = map[string]any

type notYetKnown struct{}

var unknown = notYetKnown{}

// plain is a value of Terraform's.
func plain(value tftypes.Value) (any, error) {
	if !value.IsKnown() {
		return unknown, nil
	}
	if value.IsNull() {
		return nil, nil
	}
	switch kind := value.Type(); {
	case kind.Is(tftypes.String):
		var text string
		err := value.As(&text)
		return text, err
	case kind.Is(tftypes.Bool):
		var found bool
		err := value.As(&found)
		return found, err
	case kind.Is(tftypes.Number):
		number := new(big.Float)
		err := value.As(number)
		return number, err
	case kind.Is(tftypes.Object{}), kind.Is(tftypes.Map{}):
		var members map[string]tftypes.Value
		if err := value.As(&members); err != nil {
			return nil, err
		}
		found := tree{}
		for name, member := range members {
			each, err := plain(member)
			if err != nil {
				return nil, err
			}
			found[name] = each
		}
		return found, nil
	}
	var items []tftypes.Value
	if err := value.As(&items); err != nil {
		return nil, err
	}
	found := make([]any, len(items))
	for i, item := range items {
		var err error
		if found[i], err = plain(item); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// treeOf is the object that a configuration, plan or state has; nil if it has none.
func treeOf(raw tftypes.Value) (tree, error) {
	found, err := plain(raw)
	if err != nil {
		return nil, err
	}
	object, _ := found.(tree)
	return object, nil
}

// typed is the value of this type that has the plain value. Members of an object that are absent are null.
func typed(of tftypes.Type, value any) (tftypes.Value, error) {
	switch value := value.(type) {
	case nil:
		return tftypes.NewValue(of, nil), nil
	case notYetKnown:
		return tftypes.NewValue(of, tftypes.UnknownValue), nil
	case tree:
		members := map[string]tftypes.Value{}
		types := map[string]tftypes.Type{}
		if object, ok := of.(tftypes.Object); ok {
			types = object.AttributeTypes
		} else {
			for name := range value {
				types[name] = of.(tftypes.Map).ElementType
			}
		}
		for name, kind := range types {
			member, err := typed(kind, value[name])
			if err != nil {
				return tftypes.Value{}, fmt.Errorf("%s: %w", name, err)
			}
			members[name] = member
		}
		return checked(of, members)
	case []any:
		element := elementOf(of)
		items := make([]tftypes.Value, len(value))
		for i, item := range value {
			var err error
			if items[i], err = typed(element, item); err != nil {
				return tftypes.Value{}, err
			}
		}
		return checked(of, items)
	}
	return checked(of, value)
}

func checked(of tftypes.Type, value any) (tftypes.Value, error) {
	if err := tftypes.ValidateValue(of, value); err != nil {
		return tftypes.Value{}, err
	}
	return tftypes.NewValue(of, value), nil
}

func elementOf(of tftypes.Type) tftypes.Type {
	if set, ok := of.(tftypes.Set); ok {
		return set.ElementType
	}
	return of.(tftypes.List).ElementType
}

// isKnown reports whether nothing in a plain value is unknown.
func isKnown(value any) bool {
	switch value := value.(type) {
	case notYetKnown:
		return false
	case tree:
		for _, member := range value {
			if !isKnown(member) {
				return false
			}
		}
	case []any:
		for _, item := range value {
			if !isKnown(item) {
				return false
			}
		}
	}
	return true
}
