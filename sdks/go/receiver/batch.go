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

// readBatch reads the callbacks of a verified batch, of which each has to be of the timer that its own webhookId names. It returns the
// webhookId of each that can't be read, too; one without a webhookId is left out: there is nothing to answer.
func readBatch(body []byte, header http.Header) (firings []*Firing, unreadable []string, err error) {
	var batch struct {
		Items []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(body, &batch); err != nil || batch.Items == nil {
		return nil, nil, errForeign
	}
	for _, part := range batch.Items {
		var named item
		err := json.Unmarshal(part, &named) // reads on after a member of another type
		own := header.Clone()
		own.Set("webhook-id", named.WebhookID)
		if named.Traceparent != nil {
			own.Set("traceparent", *named.Traceparent)
		}
		firing := &Firing{WebhookID: named.WebhookID, Body: part, Header: own}
		if err == nil && firing.readEnvelope() {
			firings = append(firings, firing)
		} else if named.WebhookID != "" {
			unreadable = append(unreadable, named.WebhookID)
		}
	}
	return firings, unreadable, nil
}

// answerAll handles the callbacks of a batch one after another, and answers them together with those that can't be read.
func (r *Receiver) answerAll(ctx context.Context, handler Handler, firings []*Firing, unreadable []string) Answer {
	var results []string
	for _, firing := range firings {
		results = append(results, r.answer(ctx, handler, firing).result(firing.WebhookID))
	}
	for _, webhookID := range unreadable {
		results = append(results, r.foreign(errForeign, webhookID).result(webhookID))
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
