package tocsin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"
	"unicode/utf8"

	"tocsin.dev/go/internal/rules"
)

// member is a member of an object: its name in JSON, and a pointer to the Go field. One that is not required stays out of
// what is sent while it has its zero value.
type member struct {
	name     string
	value    any
	required bool
}

// object is implemented by the generated models.
type object interface{ members() []member }

func encodeMembers(members []member) ([]byte, error) { return appendMembers(nil, members) }

func appendMembers(to []byte, members []member) ([]byte, error) {
	to = append(to, '{')
	empty := true
	for _, each := range members {
		if !each.required && reflect.ValueOf(each.value).Elem().IsZero() {
			continue
		}
		if !empty {
			to = append(to, ',')
		}
		empty = false
		to = append(append(append(to, '"'), each.name...), '"', ':')
		var err error
		if to, err = encodeValue(to, each.value); err != nil {
			return nil, fmt.Errorf("%s: %w", each.name, err)
		}
	}
	return append(to, '}'), nil
}

// encodeValue appends what a pointer leads to.
func encodeValue(to []byte, pointer any) ([]byte, error) {
	switch value := pointer.(type) {
	case *time.Time:
		text, err := rules.FormatInstant(*value)
		return appendText(to, text, err)
	case *time.Duration:
		text, err := rules.FormatDuration(*value)
		return appendText(to, text, err)
	case *json.RawMessage:
		return appendRaw(to, *value)
	case object:
		return appendMembers(to, value.members())
	case json.Marshaler: // an Opt
		encoded, err := value.MarshalJSON()
		return append(to, encoded...), err
	}
	return encodeKind(to, reflect.ValueOf(pointer).Elem())
}

func encodeKind(to []byte, value reflect.Value) ([]byte, error) {
	var err error
	switch value.Kind() {
	case reflect.String:
		return appendText(to, value.String(), nil)
	case reflect.Pointer:
		return encodeValue(to, value.Interface())
	case reflect.Slice:
		to = append(to, '[')
		for i := range value.Len() {
			if i > 0 {
				to = append(to, ',')
			}
			if to, err = encodeValue(to, value.Index(i).Addr().Interface()); err != nil {
				return nil, err
			}
		}
		return append(to, ']'), nil
	case reflect.Map:
		keys := value.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return bytes.Compare([]byte(a.String()), []byte(b.String())) })
		to = append(to, '{')
		for i, key := range keys {
			if i > 0 {
				to = append(to, ',')
			}
			if to, err = appendText(to, key.String(), nil); err != nil {
				return nil, err
			}
			item := reflect.New(value.Type().Elem())
			item.Elem().Set(value.MapIndex(key))
			if to, err = encodeValue(append(to, ':'), item.Interface()); err != nil {
				return nil, fmt.Errorf("%s: %w", key, err)
			}
		}
		return append(to, '}'), nil
	}
	encoded, err := json.Marshal(value.Interface())
	return append(to, encoded...), err
}

// appendText writes a string; json.Marshal would escape <, > and & in it.
func appendText(to []byte, text string, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	if !utf8.ValidString(text) {
		return nil, fmt.Errorf("%q is not UTF-8", text)
	}
	var written bytes.Buffer
	encoder := json.NewEncoder(&written)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(text); err != nil {
		return nil, err
	}
	return append(to, bytes.TrimSuffix(written.Bytes(), []byte("\n"))...), nil
}

// appendRaw writes JSON as it is, byte for byte.
func appendRaw(to []byte, raw json.RawMessage) ([]byte, error) {
	if raw == nil {
		return append(to, "null"...), nil
	}
	if !json.Valid(raw) {
		return nil, fmt.Errorf("%.200q is not valid JSON", raw)
	}
	return append(to, raw...), nil
}

func decodeMembers(data []byte, members []member) error {
	var found map[string]json.RawMessage
	if err := json.Unmarshal(data, &found); err != nil {
		return err
	}
	for _, each := range members {
		raw, ok := found[each.name]
		if !ok {
			continue
		}
		if err := decodeValue(raw, each.value); err != nil {
			return fmt.Errorf("%s: %w", each.name, err)
		}
	}
	return nil
}

// decodeValue reads into what a pointer leads to. Null leaves instants and durations as they are.
func decodeValue(data []byte, pointer any) error {
	var text string
	switch value := pointer.(type) {
	case *time.Time:
		if err := json.Unmarshal(data, &text); err != nil || string(data) == "null" {
			return err
		}
		instant, err := rules.ParseInstant(text)
		*value = instant
		return err
	case *time.Duration:
		if err := json.Unmarshal(data, &text); err != nil || string(data) == "null" {
			return err
		}
		duration, err := rules.ParseDuration(text)
		*value = duration
		return err
	}
	return json.Unmarshal(data, pointer)
}

// invalidArgument is the error of a request that can't be written.
func invalidArgument(err error) error {
	return fmt.Errorf("tocsin: %w: %w", ErrInvalidArgument, err)
}

// ErrInvalidArgument: a request or an option can't be used as it is; nothing was sent. The message names the field.
var ErrInvalidArgument = errors.New("invalid argument")
