package provider

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"tocsin.dev/go/tocsin"
)

// kind is a kind of objects: its attributes, and how an object of it is read and written. What all kinds have in common is in
// resource.go and data_source.go; another kind is one more of these.
type kind struct {
	// name follows the provider's in the type of a resource, and stands in messages.
	name        string
	description string
	// key has the attributes that name an object, in the order in which an import gives them.
	key        []string
	attributes attributes
	// facts are attributes that only the data source has.
	facts attributes

	// validate returns what is wrong with a configuration beyond single arguments, by the argument.
	validate func(configured tree) map[string]string
	// predict fills in what the server will, where that depends on other arguments.
	predict func(configured, planned tree)
	// create creates the object; one that exists is an error. `sent` has managedBy.
	create func(context.Context, *tocsin.Client, object) (object, error)
	// update changes the object; `sent` has managedBy and expectedVersion, and `changed` the arguments that differ.
	update func(ctx context.Context, client *tocsin.Client, sent object, changed map[string]bool) (object, error)
	// read returns the object; nil if it is no more.
	read func(ctx context.Context, client *tocsin.Client, key []string) (object, error)
	// remove deletes the object, if it has this version.
	remove func(ctx context.Context, client *tocsin.Client, key []string, version int) error
	// pause pauses or resumes; nil if that is part of `update`.
	pause func(ctx context.Context, client *tocsin.Client, key []string, paused bool) (object, error)
	// tried returns the version that the object would have after `update` with this; nil if the kind has no secrets, or the
	// server can't try it.
	tried func(ctx context.Context, client *tocsin.Client, sent object) (int, error)
}

// kinds are all that the provider has, by name.
func kinds() []*kind {
	return []*kind{calendars(), credentials(), flows(), monitors(), namespaces(), schedules()}
}

// title names an object in messages, such as `schedule shop/nightly-report`.
func (k *kind) title(key []string) string { return k.name + " " + strings.Join(key, "/") }

// placeholder is the form of an import's id, such as NAMESPACE/ID.
func (k *kind) placeholder() string { return strings.ToUpper(strings.Join(k.key, "/")) }

func (k *kind) keyOf(values tree) []string {
	found := make([]string, len(k.key))
	for i, name := range k.key {
		found[i], _ = values[name].(string)
	}
	return found
}

// sentAs makes a request of the SDK's from one of the API's. What the request has no field for is left out.
func sentAs[T any](sent object) (T, error) {
	var made T
	encoded, err := json.Marshal(sent)
	if err == nil {
		err = json.Unmarshal(encoded, &made)
	}
	return made, err
}

// answered is an answer of the SDK's as an object of the API's.
func answered[T any](answer *T, err error) (object, error) {
	if err != nil {
		return nil, err
	}
	encoded, err := json.Marshal(answer)
	if err != nil {
		return nil, err
	}
	var members object
	err = json.Unmarshal(encoded, &members)
	return members, err
}

// present is what was read; nil instead of an error that it is not there.
func present(members object, err error) (object, error) {
	if errors.Is(err, tocsin.ErrNotFound) {
		return nil, nil
	}
	return members, err
}

// gone is the result of a delete: what is not there needs none.
func gone(err error) error {
	if errors.Is(err, tocsin.ErrNotFound) {
		return nil
	}
	return err
}

// exactlyOne reports if not exactly one of the arguments is given; what is not yet known may be null.
func exactlyOne(configured tree, wrong map[string]string, at string, names ...string) {
	given := 0
	for _, name := range names {
		if configured[name] == unknown {
			return
		}
		if configured[name] != nil {
			given++
		}
	}
	if given != 1 {
		wrong[at] = "give exactly one of " + strings.Join(names, " and ")
	}
}
