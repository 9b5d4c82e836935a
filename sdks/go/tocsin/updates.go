package tocsin

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"

	"tocsin.dev/go/internal/rules"
)

// update updates or puts; where an earlier try's answer was lost, a refusal can mean that it succeeded: the object has finished
// since, or it has no longer the version that is expected. Then what is stored has the fields that were sent, and is of the next
// version.
func update[T any](ctx context.Context, p *part, change, get *call) (*T, error) {
	if p.err != nil {
		return nil, p.err
	}
	answer, mayBeDone, refused := p.session.perform(ctx, change, p.limits)
	if refused == nil {
		return readJSON[T](answer)
	}
	if !mayBeDone || !(errors.Is(refused, ErrNotFound) || errors.Is(refused, ErrConflict)) {
		return nil, refused
	}
	answer, err := p.do(ctx, get)
	if errors.Is(err, ErrNotFound) {
		return nil, refused
	}
	if err != nil {
		return nil, err
	}
	stored, err := readJSON[T](answer)
	if err != nil {
		return nil, err
	}
	sent, err := change.body(0)
	if err != nil || !hasFields(answer.body, sent) || !isWritten(answer.body, sent, refused) {
		return nil, refused
	}
	return stored, nil
}

// isWritten reports whether an object with the fields that were sent can have them by this call, which was refused at last.
func isWritten(stored, sent []byte, refused error) bool {
	var shown struct{ Version int }
	var wanted struct {
		ExpectedVersion *int
		DryRun          bool
	}
	if json.Unmarshal(stored, &shown) != nil || json.Unmarshal(sent, &wanted) != nil || wanted.DryRun {
		return false
	}
	return !errors.Is(refused, ErrVersionConflict) || wanted.ExpectedVersion != nil && shown.Version == *wanted.ExpectedVersion+1
}

// unstoredFields of a change name the object, whose id the answer has under another name, or state how to write it.
var unstoredFields = map[string]bool{
	"namespace": true, "timerId": true, "scheduleId": true, "expectedVersion": true, "dryRun": true,
}

// hasFields reports whether an object that the server shows has the fields of an update. A delay can't be found in it, nor what
// the server redacts.
func hasFields(stored, sent []byte) bool {
	var shown, wanted map[string]any
	if json.Unmarshal(stored, &shown) != nil || json.Unmarshal(sent, &wanted) != nil {
		return false
	}
	for name, value := range wanted {
		parts, _ := value.(map[string]any)
		switch {
		case unstoredFields[name]:
		case name == "paused" && shown[name] == nil: // of a schedule, whose state has it; one that is there stays as it is
			if value == true && shown["status"] != "paused" {
				return false
			}
		case name == "payload": // null is a payload, too, and beside a raw body there is none
			if found, ok := shown[name]; !ok || !reflect.DeepEqual(found, value) {
				return false
			}
		case parts != nil && (name == "retryPolicy" || name == "body"): // the answer also has the defaults of what was left out
			whole, _ := shown[name].(map[string]any)
			for part, given := range parts {
				if !isSameField(whole[part], given) {
					return false
				}
			}
		case !isSameField(shown[name], value):
			return false
		}
	}
	return true
}

// isSameField compares a field as the server shows it with one as it was sent: instants and durations have several texts, and
// what was removed is absent or empty.
func isSameField(shown, sent any) bool {
	switch sent := sent.(type) {
	case nil:
		found := reflect.ValueOf(shown)
		return shown == nil || (found.Kind() == reflect.Map || found.Kind() == reflect.Slice) && found.Len() == 0
	case string:
		text, _ := shown.(string)
		return text == sent || isSame(text, sent, rules.ParseInstant) || isSame(text, sent, rules.ParseDuration)
	}
	return reflect.DeepEqual(shown, sent)
}

func isSame[T comparable](one, other string, parse func(string) (T, error)) bool {
	first, err := parse(one)
	second, err2 := parse(other)
	return err == nil && err2 == nil && first == second
}
