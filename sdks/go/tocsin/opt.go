package tocsin

import "encoding/json"

type presence uint8

const (
	absent presence = iota
	null
	present
)

// Opt is a value, null, or absent. The zero Opt is absent. In updates, an absent member stays as it is, and null removes.
type Opt[T any] struct {
	state presence
	value T
}

// Some is an Opt with a value.
func Some[T any](value T) Opt[T] { return Opt[T]{present, value} }

// Null is an Opt that is null.
func Null[T any]() Opt[T] { return Opt[T]{state: null} }

// Get returns the value, and whether there is one.
func (o Opt[T]) Get() (T, bool) { return o.value, o.state == present }

// Or returns the value, or the fallback if there is none.
func (o Opt[T]) Or(fallback T) T {
	if o.state != present {
		return fallback
	}
	return o.value
}

// IsNull reports whether it is null.
func (o Opt[T]) IsNull() bool { return o.state == null }

// IsZero reports whether it is absent.
func (o Opt[T]) IsZero() bool { return o.state == absent }

// MarshalJSON writes the value; null if there is none.
func (o Opt[T]) MarshalJSON() ([]byte, error) {
	if o.state != present {
		return []byte("null"), nil
	}
	return encodeValue(nil, &o.value)
}

// UnmarshalJSON reads a value or null.
func (o *Opt[T]) UnmarshalJSON(data []byte) error {
	if isNull(data) {
		*o = Null[T]()
		return nil
	}
	o.state = present
	return decodeValue(data, &o.value)
}

// JSON writes a value as JSON, for payloads and bodies. A value that JSON can't express, such as a channel or NaN, becomes
// a text that is not JSON and has the reason, so that the call to which it is given fails with that.
func JSON[T any](value T) json.RawMessage {
	encoded, err := json.Marshal(value)
	if err != nil {
		return json.RawMessage("not JSON: " + err.Error())
	}
	return encoded
}
