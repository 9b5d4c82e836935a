package receiver

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
)

// batchPrefix begins the webhook-id of a batch, which is signed.
const batchPrefix = "batch_"

// item is what one callback of a batch has besides its envelope.
type item struct {
	WebhookID   string  `json:"webhookId"`
	Traceparent *string `json:"traceparent"`
}

// readBatch reads the callbacks of a verified batch, of which each has to be of the timer that its own webhookId names.
func readBatch(body []byte, header http.Header) ([]*Firing, error) {
	var batch struct {
		Items []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(body, &batch); err != nil || batch.Items == nil {
		return nil, errForeign
	}
	firings := make([]*Firing, len(batch.Items))
	for i, part := range batch.Items {
		var named item
		if err := json.Unmarshal(part, &named); err != nil {
			return nil, errForeign
		}
		own := header.Clone()
		own.Set("webhook-id", named.WebhookID)
		if named.Traceparent != nil {
			own.Set("traceparent", *named.Traceparent)
		}
		firings[i] = &Firing{WebhookID: named.WebhookID, Body: part, Header: own}
		if !firings[i].readEnvelope() {
			return nil, errForeign
		}
	}
	return firings, nil
}

// answerAll handles the callbacks of a batch one after another, and answers them together.
func (r *Receiver) answerAll(ctx context.Context, handler Handler, firings []*Firing) Answer {
	results := make([]string, len(firings))
	for i, firing := range firings {
		results[i] = r.answer(ctx, handler, firing).result(firing.WebhookID)
	}
	return answer(http.StatusOK, `{"items":[`+strings.Join(results, ",")+`]}`)
}

// result is the answer as that of one timer of a batch.
func (a Answer) result(webhookID string) string {
	// A text can always be encoded.
	name, _ := json.Marshal(webhookID)
	result := `{"webhookId":` + string(name) + `,"status":` + strconv.Itoa(a.status)
	if after, found := a.header["retry-after"]; found {
		result += `,"retryAfter":` + after
	}
	if a.header["content-type"] == jsonType && len(a.body) > 2 {
		result += "," + string(a.body[1:len(a.body)-1])
	}
	return result + "}"
}
