package tocsin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"sync"
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

// usualBytes is room for most requests.
const usualBytes = 512

// object is implemented by the generated models, which append their members.
type object interface {
	members(to []member) []member
}

// memberLists are lists that are not in use. The largest objects have some thirty members, and each call needs two lists.
var memberLists = sync.Pool{New: func() any { return &memberList{make([]member, 0, 32)} }}

type memberList struct{ members []member }

func membersOf(value object) *memberList {
	list := memberLists.Get().(*memberList)
	list.members = value.members(list.members[:0])
	return list
}

// release gives the list back. It keeps no object alive.
func (l *memberList) release() {
	clear(l.members)
	memberLists.Put(l)
}

func encodeMembers(value object) ([]byte, error) {
	return appendMembers(make([]byte, 0, usualBytes), value)
}

func appendMembers(to []byte, value object) ([]byte, error) {
	list := membersOf(value)
	defer list.release()
	to = append(to, '{')
	empty := true
	for _, each := range list.members {
		if !each.required && isZero(each.value) {
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

// isZero reports whether a pointer leads to a zero value. The types that every create has spare the reflection.
func isZero(pointer any) bool {
	switch value := pointer.(type) {
	case *string:
		return *value == ""
	case *time.Time:
		return value.IsZero()
	case *time.Duration:
		return *value == 0
	case *json.RawMessage:
		return *value == nil
	case interface{ IsZero() bool }: // an Opt
		return value.IsZero()
	}
	return reflect.ValueOf(pointer).Elem().IsZero()
}

// encodeValue appends what a pointer leads to.
func encodeValue(to []byte, pointer any) ([]byte, error) {
	switch value := pointer.(type) {
	case *string:
		return appendText(to, *value, nil)
	case *time.Time:
		text, err := rules.FormatInstant(*value)
		return appendText(to, text, err)
	case *time.Duration:
		text, err := rules.FormatDuration(*value)
		return appendText(to, text, err)
	case *json.RawMessage:
		return appendRaw(to, *value)
	case object:
		return appendMembers(to, value)
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
	if isPlain(text) {
		return append(append(append(to, '"'), text...), '"'), nil
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

// isPlain reports whether a text is the same in JSON, between quotation marks.
func isPlain[T string | []byte](text T) bool {
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' || text[i] == '"' || text[i] == '\\' {
			return false
		}
	}
	return true
}

// decodeMembers reads an object. Unknown members are ignored.
func decodeMembers(data []byte, value object) error {
	list := membersOf(value)
	defer list.release()
	_, err := decodeObject(data, list.members)
	return err
}

// decodeAnswer is decodeMembers for what the server sends: required members have to be there.
func decodeAnswer(data []byte, value object) error {
	list := membersOf(value)
	defer list.release()
	found, err := decodeObject(data, list.members)
	if err != nil {
		return err
	}
	for i, each := range list.members {
		if each.required && found&(1<<i) == 0 {
			return fmt.Errorf("%s is missing", each.name)
		}
	}
	return nil
}

// decodeObject returns the set of the members that it found.
func decodeObject(data []byte, members []member) (found uint64, err error) {
	walk := cursor{data: data}
	if !walk.open('{') {
		return 0, fmt.Errorf("%.20q is not an object", data)
	}
	next := 0 // the server sends members in this order
	for walk.more('}') {
		name := walk.name()
		raw := walk.value()
		at := indexOf(members, name, next)
		if at < 0 {
			if !json.Valid(name) || !json.Valid(raw) {
				return 0, errNotJSON
			}
			continue
		}
		next = at + 1
		each := &members[at]
		if err := decodeValue(raw, each.value); err != nil {
			return 0, fmt.Errorf("%s: %w", each.name, err)
		}
		if !each.required || !isNull(raw) || isNullable(each.value) {
			found |= 1 << at
		}
	}
	return found, walk.end()
}

// indexOf searches from the given member on, then from the first; -1: there is none of this name. The name is in quotation marks,
// and no member's needs an escape.
func indexOf(members []member, name []byte, next int) int {
	if len(name) < 2 {
		return -1
	}
	name = name[1 : len(name)-1]
	for i := range members {
		at := next + i
		if at >= len(members) {
			at -= len(members)
		}
		if members[at].name == string(name) {
			return at
		}
	}
	return -1
}

var errNotJSON = errors.New("it is not JSON")

func isNull(raw []byte) bool { return string(raw) == "null" }

// isNullable reports whether a required member may be null.
func isNullable(pointer any) bool {
	switch pointer.(type) {
	case *json.RawMessage, interface{ IsNull() bool }:
		return true
	}
	return false
}

// decodeValue reads into what a pointer leads to. Null leaves it as it is.
func decodeValue(data []byte, pointer any) error {
	switch value := pointer.(type) {
	case *json.RawMessage:
		if !json.Valid(data) {
			return errNotJSON
		}
		*value = append([]byte{}, data...)
		return nil
	case json.Unmarshaler: // an Opt or an object
		return value.UnmarshalJSON(data)
	}
	if isNull(data) {
		return nil
	}
	switch value := pointer.(type) {
	case *string:
		return readText(data, value)
	case *time.Time:
		return readParsed(data, value, rules.ParseInstant)
	case *time.Duration:
		return readParsed(data, value, rules.ParseDuration)
	case *map[string]string:
		if string(data) == "{}" {
			*value = map[string]string{}
			return nil
		}
	case *[]string:
		if string(data) == "[]" {
			*value = []string{}
			return nil
		}
	}
	return decodeKind(data, pointer, reflect.ValueOf(pointer).Elem())
}

func decodeKind(data []byte, pointer any, target reflect.Value) error {
	switch target.Kind() {
	case reflect.String: // an enum
		var text string
		err := readText(data, &text)
		target.SetString(text)
		return err
	case reflect.Int:
		if number, err := strconv.Atoi(string(data)); err == nil && (len(data) == 1 || data[0] > '0') {
			target.SetInt(int64(number))
			return nil
		}
	case reflect.Float64:
		if number, err := strconv.Atoi(string(data)); err == nil && (len(data) == 1 || data[0] > '0') {
			target.SetFloat(float64(number))
			return nil
		}
	case reflect.Pointer:
		target.Set(reflect.New(target.Type().Elem()))
		return decodeValue(data, target.Interface())
	case reflect.Slice:
		walk := cursor{data: data}
		if !walk.open('[') {
			return fmt.Errorf("%.20q is not a list", data)
		}
		target.Set(reflect.MakeSlice(target.Type(), 0, 0))
		for walk.more(']') {
			target.Set(reflect.Append(target, reflect.Zero(target.Type().Elem())))
			if err := decodeValue(walk.value(), target.Index(target.Len()-1).Addr().Interface()); err != nil {
				return err
			}
		}
		return walk.end()
	}
	return json.Unmarshal(data, pointer)
}

func readText(data []byte, to *string) error {
	if last := len(data) - 1; last > 0 && data[0] == '"' && isPlain(data[1:last]) {
		*to = string(data[1:last])
		return nil
	}
	return json.Unmarshal(data, to)
}

func readParsed[T any](data []byte, to *T, parse func(string) (T, error)) error {
	var text string
	if err := readText(data, &text); err != nil {
		return err
	}
	var err error
	*to, err = parse(text)
	return err
}

// cursor walks over an object or a list. What is not JSON ends it, and `end` has the error; each value is still to be checked by
// who reads it.
type cursor struct {
	data   []byte
	at     int
	inside bool
	broken bool
}

// next is the next byte that is no white space; 0 at the end.
func (c *cursor) next() byte {
	for c.at < len(c.data) {
		switch char := c.data[c.at]; char {
		case ' ', '\n', '\t', '\r':
			c.at++
		default:
			return char
		}
	}
	return 0
}

func (c *cursor) skip(char byte) bool {
	if c.next() != char {
		c.broken = true
		return false
	}
	c.at++
	return true
}

// open goes into the object or the list; false: it isn't one.
func (c *cursor) open(bracket byte) bool { return c.skip(bracket) }

// more goes to the next member or item; false: there is none.
func (c *cursor) more(bracket byte) bool {
	if c.broken {
		return false
	}
	if c.next() == bracket {
		c.at++
		return false
	}
	first := !c.inside
	c.inside = true
	return first || c.skip(',')
}

// end is the error of what was walked over, and of what follows it.
func (c *cursor) end() error {
	if c.broken || c.next() != 0 || c.at < len(c.data) {
		return errNotJSON
	}
	return nil
}

// name is the member's, as it is written.
func (c *cursor) name() []byte {
	if c.next() != '"' {
		c.broken = true
		return nil
	}
	name := c.value()
	c.skip(':')
	return name
}

// value is the next value, as it is written; empty if there is none.
func (c *cursor) value() []byte {
	c.next()
	first, depth := c.at, 0
	for ; c.at < len(c.data); c.at++ {
		switch c.data[c.at] {
		case '"':
			for c.at++; c.at < len(c.data) && c.data[c.at] != '"'; c.at++ {
				if c.data[c.at] == '\\' {
					c.at++
				}
			}
			if depth == 0 {
				c.at = min(c.at+1, len(c.data))
				return c.data[first:c.at]
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return c.data[first:c.at]
			}
			if depth--; depth == 0 {
				c.at++
				return c.data[first:c.at]
			}
		case ',', ' ', '\n', '\t', '\r':
			if depth == 0 {
				return c.data[first:c.at]
			}
		}
	}
	c.at = min(c.at, len(c.data))
	return c.data[first:c.at]
}

// invalidArgument is the error of a request that can't be written.
func invalidArgument(err error) error {
	return fmt.Errorf("tocsin: %w: %w", ErrInvalidArgument, err)
}

// ErrInvalidArgument: a request or an option can't be used as it is; nothing was sent. The message names the field.
var ErrInvalidArgument = errors.New("invalid argument")
