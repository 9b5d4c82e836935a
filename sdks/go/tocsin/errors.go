package tocsin

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// class is a kind of errors: compare with errors.Is.
type class struct {
	name  string
	above error
}

func (c *class) Error() string { return "tocsin: " + c.name }

func (c *class) Unwrap() error { return c.above }

// Kinds of errors that the server answers: every code is of one of them. Use errors.As with *APIError for the details.
var (
	// ErrInvalidInput: the request is wrong; repeated as it is, it will be refused again.
	ErrInvalidInput error = &class{name: "InvalidInput"}
	// ErrUnauthenticated: no API key, or one that is unknown, revoked or expired.
	ErrUnauthenticated error = &class{name: "Unauthenticated"}
	// ErrForbidden: the API key does not allow this.
	ErrForbidden error = &class{name: "Forbidden"}
	// ErrNotFound: there is no such object.
	ErrNotFound error = &class{name: "NotFound"}
	// ErrConflict: the object's state does not allow this.
	ErrConflict error = &class{name: "Conflict"}
	// ErrOverloaded: a limit was reached, and nothing was accepted. Try again after RetryAfter.
	ErrOverloaded error = &class{name: "Overloaded"}
	// ErrUnavailable: the server can't answer now. A write may have been executed.
	ErrUnavailable error = &class{name: "Unavailable"}
	// ErrServerError: the server failed, or something else than Tocsin answered.
	ErrServerError error = &class{name: "ServerError"}
)

// Other kinds of errors.
var (
	// ErrDeadlineExceeded: the call's time was over before an answer arrived. It is also a context.DeadlineExceeded.
	ErrDeadlineExceeded error = &class{name: "DeadlineExceeded", above: context.DeadlineExceeded}
	// ErrWaitTimeout: the context of a Wait ended; what it waited for goes on. It is also a context.DeadlineExceeded.
	ErrWaitTimeout error = &class{name: "WaitTimeout", above: context.DeadlineExceeded}
	// ErrBatcherClosed: a timer was added to a batcher that is closed.
	ErrBatcherClosed error = &class{name: "BatcherClosed"}
	// ErrBatcherFull: TryAdd found as many timers waiting as a batcher takes.
	ErrBatcherFull error = &class{name: "BatcherFull"}
)

// kindsByStatus is for codes that this version doesn't know.
var kindsByStatus = map[int]error{
	401: ErrUnauthenticated, 403: ErrForbidden, 404: ErrNotFound, 408: ErrUnavailable, 409: ErrConflict,
	429: ErrOverloaded, 502: ErrUnavailable, 503: ErrUnavailable, 504: ErrUnavailable,
}

// APIError is what the server answered instead of a result. Its code's error, such as ErrTimerNotPending, and that of its kind,
// such as ErrConflict, are found by errors.Is.
type APIError struct {
	// Status is the HTTP status.
	Status int
	// Code is stable, such as TIMER_NOT_FOUND; empty if the answer was not Tocsin's, as from a proxy.
	Code    string
	Message string
	// Fields has each invalid field.
	Fields []BadField
	// CorrelationID identifies the request in the server's log.
	CorrelationID string
	// RetryAfter is from the header of that name; zero if there was none.
	RetryAfter time.Duration

	hasRetryAfter bool
	// ofItem: it is that of one timer of a batch, whose request was answered.
	ofItem bool
}

// Error has the code, the status, the message and the correlation id.
func (e *APIError) Error() string {
	code := e.Code
	if code == "" {
		code = "HTTP"
	}
	text := fmt.Sprintf("tocsin: %s (%d): %s", code, e.Status, e.Message)
	for _, field := range e.Fields {
		if reason := field.Path + ": " + field.Reason; !strings.Contains(e.Message, reason) {
			text += "; " + reason
		}
	}
	if e.CorrelationID != "" {
		text += fmt.Sprintf(" [correlation id %s]", e.CorrelationID)
	}
	return text
}

// Unwrap returns the code's error; that of the status if this version doesn't know the code.
func (e *APIError) Unwrap() error {
	if known, ok := errorsByCode[e.Code]; ok {
		return known
	}
	if known, ok := kindsByStatus[e.Status]; ok {
		return known
	}
	if e.Status >= 400 && e.Status < 500 {
		return ErrInvalidInput
	}
	return ErrServerError
}

// TransportError means that no answer arrived.
type TransportError struct {
	// MaybeDone: the server may have received and executed the request; otherwise it was never sent.
	MaybeDone bool
	// Err is the cause. It is an ErrDeadlineExceeded if the call's time was over.
	Err error
}

// Error has the cause.
func (e *TransportError) Error() string { return "tocsin: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *TransportError) Unwrap() error { return e.Err }

const maxMessageChars = 200

// errorOf is the error that an answer other than 2xx means.
func errorOf(answer *reply) *APIError {
	var problem struct {
		Error         *string    `json:"error"`
		Message       string     `json:"message"`
		Errors        []BadField `json:"errors"`
		CorrelationID string     `json:"correlationId"`
	}
	found := &APIError{Status: answer.status}
	if err := json.Unmarshal(answer.body, &problem); err != nil || problem.Error == nil {
		found.Message = startOf(answer)
	} else {
		found.Code, found.Message, found.Fields = *problem.Error, problem.Message, problem.Errors
	}
	if found.CorrelationID = problem.CorrelationID; found.CorrelationID == "" {
		found.CorrelationID = answer.header.Get("x-correlation-id")
	}
	found.RetryAfter, found.hasRetryAfter = retryAfterOf(answer.header)
	return found
}

func errorOfItem(item *ItemError) *APIError {
	return &APIError{Status: item.Status, Code: item.Error, Message: item.Message, Fields: item.Errors, ofItem: true}
}

// retryAfterOf reads seconds. Tocsin sends no dates; a proxy's date counts as absent.
func retryAfterOf(header http.Header) (time.Duration, bool) {
	seconds, err := strconv.ParseFloat(header.Get("retry-after"), 64)
	if err != nil || !(seconds >= 0 && seconds < 1e9) {
		return 0, false
	}
	return time.Duration(seconds * float64(time.Second)), true
}

func startOf(answer *reply) string {
	text := []rune(string(answer.body[:min(len(answer.body), 4*maxMessageChars)]))
	if len(text) == 0 {
		return "no explanation"
	}
	return string(text[:min(len(text), maxMessageChars)])
}

// isRepeated reports whether the same request could succeed later. A 500 is a defect: what failed once by it fails again, as does a
// certificate that can't be verified.
func isRepeated(err error) bool {
	var answered *APIError
	if errors.As(err, &answered) {
		switch answered.Status {
		case 408, 429, 502, 503, 504:
			return true
		}
		return false
	}
	var lost *TransportError
	var untrusted *tls.CertificateVerificationError
	return errors.As(err, &lost) && !errors.As(err, &untrusted)
}

// refusals are codes of 503 that are answered instead of executing the request.
var refusals = map[string]bool{"NOT_READY": true, "REQUEST_EXPIRED": true, "NO_ROOM_FOR_BODY": true}

// maybeDone reports whether the request may have been executed all the same.
func maybeDone(err error) bool {
	var lost *TransportError
	if errors.As(err, &lost) {
		return lost.MaybeDone
	}
	var answered *APIError
	return errors.As(err, &answered) && answered.Status >= 500 && !(answered.Status == 503 && refusals[answered.Code])
}
