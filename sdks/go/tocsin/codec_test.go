package tocsin

import (
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"
)

func answered(body string) (*Timer, error) {
	return readJSON[Timer](&reply{http.StatusOK, http.Header{}, []byte(body)})
}

func shownTimer(t *testing.T) (Timer, string) {
	t.Helper()
	instant := time.Date(2027, 1, 31, 12, 0, 0, 0, time.UTC)
	timer := Timer{
		Namespace: "n", ID: `"größe" \ <1>`, TimerUUID: "u", ShardID: 3, Status: "later", ExecuteAt: instant, CallbackURL: "http://x/",
		Method: CallbackMethodPost, Headers: map[string]string{"a": "b"}, CallbackTimeoutSeconds: 0.5, Tags: []string{"x", "y"},
		AttemptLog: []Attempt{}, CreatedAt: instant, UpdatedAt: instant.Add(time.Microsecond), Payload: json.RawMessage(`{"a": [1, "]}"]}`),
	}
	text, err := timer.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return timer, string(text)
}

func TestAnswersAreReadAsTheyWereWritten(t *testing.T) {
	timer, text := shownTimer(t)
	spaced := " \n" + strings.Replace(strings.Replace(text, `{"namespace":`, `{ "new" : [{}, 1e3], "namespace" : `, 1), `,"tags"`, "\t,\r\n\"tags\"", 1) + " "
	for _, each := range []string{text, spaced} {
		if got, err := answered(each); err != nil || !reflect.DeepEqual(*got, timer) {
			t.Error(got, err)
		}
	}
}

// The decoder reads JSON itself: whatever it accepts has to be JSON.
func TestWhatIsNotJSONIsRefused(t *testing.T) {
	_, text := shownTimer(t)
	check := func(altered string) {
		_, err := answered(altered)
		if err == nil && !json.Valid([]byte(altered)) {
			t.Fatal(altered)
		}
		if err != nil && !errors.Is(err, ErrServerError) {
			t.Error(err)
		}
	}
	for i := range text {
		check(text[:i])
		check(text[i:])
		check(text[:i] + text[i+1:])
		for _, char := range `"\{}[],:n1- ` + "\n\x01" {
			check(text[:i] + string(char) + text[i+1:])
			check(text[:i] + string(char) + text[i:])
		}
	}
	for _, foreign := range []string{"", "null", "[]", `"x"`, "{}", `{"status":"ok"}`, "<html>", text + text, text + "}"} {
		if _, err := answered(foreign); !errors.Is(err, ErrServerError) || !strings.Contains(err.Error(), "check that the URL") {
			t.Error(foreign, err)
		}
	}
}
