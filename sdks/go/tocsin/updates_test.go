package tocsin

import "testing"

func TestWhatIsStoredHasTheFieldsOfAnUpdate(t *testing.T) {
	if hasFields([]byte(`{"body":{"text":""}}`), []byte(`{"payload":null}`)) {
		t.Error("beside a raw body there is no payload")
	}
	stored := `{"namespace":"n","id":"t","executeAt":"2027-01-31T12:00:00.5Z","expireAfter":"1h30m","tags":[],"payload":{"a":[1]},` +
		`"callbackTimeoutSeconds":10,"headers":{"a":"b","authorization":"[redacted]"},"retryPolicy":{"maxAttempts":5,"initialInterval":"1s"}}`
	for fields, want := range map[string]bool{
		`"executeAt":"2027-01-31T13:00:00.500000+01:00"`:             true,
		`"executeAt":"2027-01-31T12:00:00Z"`:                         false,
		`"expireAfter":"90m","callbackTimeoutSeconds":10.0`:          true,
		`"expireAfter":null`:                                         false,
		`"tags":null,"description":null`:                             true,
		`"tags":["a"]`:                                               false,
		`"payload":{"a":[1]}`:                                        true,
		`"payload":{"a":[]}`:                                         false,
		`"headers":{"a":"b","authorization":"Bearer x"}`:             false,
		`"headers":{"a":"b"}`:                                        false,
		`"retryPolicy":{"maxAttempts":5,"initialInterval":"1000ms"}`: true,
		`"retryPolicy":{"maxAttempts":4}`:                            false,
		`"delay":"1h"`:                                               false,
	} {
		if hasFields([]byte(stored), []byte(`{"namespace":"n","timerId":"t",`+fields+`}`)) != want {
			t.Error(fields)
		}
	}
}
