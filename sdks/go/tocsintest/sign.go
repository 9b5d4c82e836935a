package tocsintest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"tocsin.dev/go/internal/rules"
	"tocsin.dev/go/receiver"
)

// Sign makes the request that brings this firing, signed now, for http.Handlers. Members with their zero value get one that a
// server could send; give a WebhookID if you send the same firing again.
func Sign(t testing.TB, firing receiver.Firing, secret string) *http.Request {
	t.Helper()
	now := time.Now()
	firing.WebhookID = cmp.Or(firing.WebhookID, "msg_"+rules.NewUUID4().String())
	body := firing.Body
	if body == nil {
		body = envelope(t, firing, now)
	}
	key, err := rules.SigningKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	request := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body))
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
		cmp.Or(firing.Namespace, "default"), cmp.Or(firing.TimerID, "test"), instant(firing.ExecuteAt),
		instant(firing.FiredAt), cmp.Or(firing.Attempt, 1), payload,
	})
	if err != nil {
		t.Fatal(err)
	}
	return body
}
