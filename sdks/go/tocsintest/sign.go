package tocsintest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"testing"
	"time"

	"tocsin.dev/go/internal/rules"
	"tocsin.dev/go/receiver"
)

// Sign makes the request that brings this firing, signed now, for http.Handlers. Members with their zero value get one that a
// server could send. The webhook-id is the same for the same Namespace, TimerID and ExecuteAt, so that such requests repeat a
// firing; a WebhookID of your own is taken as it is.
func Sign(t testing.TB, firing receiver.Firing, secret string) *http.Request {
	t.Helper()
	now := time.Now()
	firing.Namespace, firing.TimerID = cmp.Or(firing.Namespace, "default"), cmp.Or(firing.TimerID, "test")
	if firing.WebhookID == "" {
		name := rules.NewUUID4().String()
		if !firing.ExecuteAt.IsZero() {
			name = strconv.FormatInt(firing.ExecuteAt.UnixMicro(), 10)
		}
		firing.WebhookID = rules.WebhookID(firing.Namespace, firing.TimerID, name)
	}
	body := firing.Body
	if body == nil {
		body = envelope(t, firing, now)
	}
	key, err := rules.SigningKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	request := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body))
	if firing.Body != nil {
		request.Header.Set("tocsin-namespace", firing.Namespace)
		request.Header.Set("tocsin-timer-id", url.PathEscape(firing.TimerID))
	}
	for name, values := range firing.Header {
		request.Header[name] = values
	}
	request.Header.Set("content-type", cmp.Or(request.Header.Get("content-type"), "application/json"))
	request.Header.Set("webhook-id", firing.WebhookID)
	request.Header.Set("webhook-timestamp", strconv.FormatInt(now.Unix(), 10))
	request.Header.Set("webhook-signature", rules.Signature(key, firing.WebhookID, now.Unix(), body))
	return request
}

func envelope(t testing.TB, firing receiver.Firing, now time.Time) []byte {
	t.Helper()
	instant := func(given time.Time) string {
		if given.IsZero() {
			given = now
		}
		text, err := rules.FormatInstant(given)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	payload := firing.Payload
	if payload == nil {
		payload = json.RawMessage("null")
	}
	body, err := json.Marshal(struct {
		Namespace string          `json:"namespace"`
		TimerID   string          `json:"timerId"`
		ExecuteAt string          `json:"executeAt"`
		FiredAt   string          `json:"firedAt"`
		Attempt   int             `json:"attempt"`
		Payload   json.RawMessage `json:"payload"`
	}{
		firing.Namespace, firing.TimerID, instant(firing.ExecuteAt), instant(firing.FiredAt), cmp.Or(firing.Attempt, 1), payload,
	})
	if err != nil {
		t.Fatal(err)
	}
	return body
}
