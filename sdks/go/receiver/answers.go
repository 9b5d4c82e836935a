package receiver

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"tocsin.dev/go/internal/rules"
)

const (
	jsonType = "application/json"
	// maxReasonChars is how much of a response the server shows; longer reasons would only make responses of batches long.
	maxReasonChars = 200
)

// Answer is what a handler decides. Make one with Done, RescheduleAt, Retry or Fail.
type Answer struct {
	status int
	header map[string]string
	body   []byte
	err    error
}

// Done: the work is done, and the timer is completed.
func Done() Answer { return answer(http.StatusOK, `{"ok":true}`) }

// RescheduleAt: the work is done for now, and the timer fires again at the instant with its payload.
func RescheduleAt(instant time.Time) Answer { return rescheduled(instant, nil) }

// RescheduleWith is RescheduleAt with another payload, which is written as JSON.
func RescheduleWith[T any](instant time.Time, payload T) Answer {
	encoded, err := json.Marshal(payload)
	if err != nil {
		return Answer{err: fmt.Errorf("payload: %w", err)}
	}
	return rescheduled(instant, encoded)
}

// Retry: the work could not be done, and the timer's policy retries it.
func Retry() Answer { return Answer{status: http.StatusServiceUnavailable} }

// RetryAfter is Retry, no earlier than after this time.
func RetryAfter(after time.Duration) Answer {
	if after < 0 {
		return Answer{err: fmt.Errorf("after: %v is negative; use Retry, or give the time to wait", after)}
	}
	seconds := strconv.FormatInt(int64(math.Ceil(after.Seconds())), 10)
	return Answer{status: http.StatusServiceUnavailable, header: map[string]string{"retry-after": seconds}}
}

// Fail: the work can never be done, and the timer fails without another attempt. 200 characters of the reason are sent.
func Fail(reason string) Answer {
	if chars := []rune(reason); len(chars) > maxReasonChars {
		reason = string(chars[:maxReasonChars-1]) + "…"
	}
	encoded, err := json.Marshal(reason)
	if err != nil {
		return Answer{err: fmt.Errorf("reason: %w", err)}
	}
	return answer(http.StatusUnprocessableEntity, `{"ok":false,"reason":`+string(encoded)+`}`)
}

func rescheduled(instant time.Time, payload []byte) Answer {
	text, err := rules.FormatInstant(instant)
	if err != nil {
		return Answer{err: fmt.Errorf("instant: %w", err)}
	}
	body := `{"nextExecuteAt":"` + text + `"`
	if payload != nil {
		body += `,"payload":` + string(payload)
	}
	return answer(http.StatusOK, body+"}")
}

func answer(status int, body string) Answer {
	return Answer{status: status, header: map[string]string{"content-type": jsonType}, body: []byte(body)}
}

func refused(status int, reason string) Answer {
	return Answer{status: status, header: map[string]string{"content-type": "text/plain; charset=utf-8"}, body: []byte(reason)}
}

// check returns the error of an answer that can't be sent.
func (a Answer) check() error {
	if a.err != nil {
		return a.err
	}
	if a.status == 0 {
		return fmt.Errorf("the answer is empty; return Done, RescheduleAt, Retry or Fail")
	}
	return nil
}

func (a Answer) write(to http.ResponseWriter) error {
	for name, value := range a.header {
		to.Header().Set(name, value)
	}
	to.WriteHeader(a.status)
	_, err := to.Write(a.body)
	return err
}

// stored is an Answer as Dedup keeps it.
type stored struct {
	Status int               `json:"status"`
	Header map[string]string `json:"headers"`
	Body   string            `json:"body"`
}

func (a Answer) text() (string, error) {
	text, err := json.Marshal(stored{a.status, a.header, string(a.body)})
	return string(text), err
}

func answerOf(text string) (Answer, error) {
	var kept stored
	err := json.Unmarshal([]byte(text), &kept)
	return Answer{status: kept.Status, header: kept.Header, body: []byte(kept.Body)}, err
}
