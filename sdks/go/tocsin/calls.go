package tocsin

import (
	"context"
	"fmt"
	"iter"
	"net/url"
	"strconv"
	"time"

	"tocsin.dev/go/internal/rules"
)

// Calls are the service calls of a tenant: requests that the server sends, and whose answers it keeps.
type Calls struct {
	part
	tenantID string
}

// NewTenantID makes the id of a new tenant, a UUID of version 7. Store it: the tenant's calls are found by it alone.
func NewTenantID() string { return rules.NewUUID7(time.Now()).String() }

// ListCalls are filters of a list of service calls; a call must match all of them.
type ListCalls struct {
	// Status: calls with any of these match.
	Status []ServiceCallStatus
	// Tags: a call must have all of these.
	Tags          []string
	Name          string
	CorrelationID string
	// From and To bound the instant of the submission.
	From, To time.Time
	// Limit is the size of a page.
	Limit int
	// Cursor is NextCursor of the page after which the list begins.
	Cursor string
}

// Submit submits a call. Its id, a UUID of version 7, is made here unless you give one, so that a lost answer never submits it
// twice.
func (c *Calls) Submit(ctx context.Context, submission SubmitServiceCall) (*SubmittedServiceCall, error) {
	if submission.ServiceCallID == "" {
		submission.ServiceCallID = rules.NewUUID7(time.Now()).String()
	}
	body := func(elapsed time.Duration) ([]byte, error) {
		sent := submission
		sent.Delay = left(submission.Delay, elapsed)
		return encodeMembers(&sent)
	}
	return ask[SubmittedServiceCall](ctx, &c.part, &call{operation: "submitServiceCall", body: body, path: c.path("", "")})
}

// Get returns the call with its executions. ErrServiceCallNotFound: there is none.
func (c *Calls) Get(ctx context.Context, serviceCallID string) (*ServiceCall, error) {
	return ask[ServiceCall](ctx, &c.part, &call{operation: "getServiceCall", path: c.path(serviceCallID, "")})
}

// Delete deletes a call that has not started. ErrServiceCallNotScheduled: it has.
func (c *Calls) Delete(ctx context.Context, serviceCallID string) error {
	path := c.path(serviceCallID, "")
	return c.delete(
		ctx, &call{operation: "deleteServiceCall", path: path}, &call{operation: "getServiceCall", path: path},
		func(*reply) (bool, error) { return false, nil },
	)
}

// Tag adds a tag.
func (c *Calls) Tag(ctx context.Context, serviceCallID, tag string) error {
	return c.execute(ctx, &call{operation: "tagServiceCall", path: c.path(serviceCallID, tag)})
}

// Untag removes a tag.
func (c *Calls) Untag(ctx context.Context, serviceCallID, tag string) error {
	return c.execute(ctx, &call{operation: "untagServiceCall", path: c.path(serviceCallID, tag)})
}

// Retry makes another attempt of a call that has failed, under the same webhook-id. ErrServiceCallNotFailed: it has not. It is not
// repeated after a lost answer: the *TransportError has MaybeDone.
func (c *Calls) Retry(ctx context.Context, serviceCallID string) error {
	return c.execute(ctx, &call{operation: "retryServiceCall", path: c.path(serviceCallID, ""), once: true})
}

// Trace returns what happened to the call, message by message.
func (c *Calls) Trace(ctx context.Context, serviceCallID string) (*ServiceCallTrace, error) {
	return ask[ServiceCallTrace](ctx, &c.part, &call{operation: "traceServiceCall", path: c.path(serviceCallID, "")})
}

// RotateSecret signs the tenant's calls with a new secret, and during Grace with the former one, too. Only this answer shows the
// secret. It is not repeated after a lost answer. TenantID is set here.
func (c *Calls) RotateSecret(ctx context.Context, rotation RotateTenantSecret) (*RotatedTenantSecret, error) {
	rotation.TenantID = c.tenantID
	rotate := &call{operation: "rotateTenantSecret", body: constant(rotation), once: true}
	return ask[RotatedTenantSecret](ctx, &c.part, rotate)
}

// Wait returns the call once it has succeeded or failed. ErrWaitTimeout: the context's deadline came first.
func (c *Calls) Wait(ctx context.Context, serviceCallID string) (*ServiceCall, error) {
	get := &call{operation: "getServiceCall", path: c.path(serviceCallID, "")}
	return wait(ctx, &c.part, get, func(found *ServiceCall) (bool, time.Time) {
		finished := found.Status == ServiceCallStatusSucceeded || found.Status == ServiceCallStatusFailed
		return finished, later(found.NextAttemptAt, found.DueAt)
	})
}

// List reads all calls that match, newest first.
func (c *Calls) List(ctx context.Context, query ListCalls) iter.Seq2[*ServiceCallSummary, error] {
	return elements(c.ListPages(ctx, query))
}

// ListPages is List by the page.
func (c *Calls) ListPages(ctx context.Context, query ListCalls) iter.Seq2[[]ServiceCallSummary, error] {
	return pages(ctx, func(ctx context.Context, cursor string) ([]ServiceCallSummary, string, error) {
		if cursor != "" {
			query.Cursor = cursor
		}
		values, err := query.values()
		if err != nil {
			return nil, "", invalidArgument(err)
		}
		list := &call{operation: "listServiceCalls", path: c.path("", ""), query: values}
		page, err := ask[ServiceCallPage](ctx, &c.part, list)
		if err != nil {
			return nil, "", err
		}
		return page.ServiceCalls, page.NextCursor, nil
	})
}

func (q *ListCalls) values() (url.Values, error) {
	values := url.Values{}
	for _, status := range q.Status {
		values.Add("status", string(status))
	}
	for _, tag := range q.Tags {
		values.Add("tag", tag)
	}
	for name, value := range map[string]string{"name": q.Name, "correlationId": q.CorrelationID, "cursor": q.Cursor} {
		if value != "" {
			values.Set(name, value)
		}
	}
	for name, instant := range map[string]time.Time{"from": q.From, "to": q.To} {
		if instant.IsZero() {
			continue
		}
		text, err := rules.FormatInstant(instant)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		values.Set(name, text)
	}
	if q.Limit != 0 {
		values.Set("limit", strconv.Itoa(q.Limit))
	}
	return values, nil
}

func (c *Calls) path(serviceCallID, tag string) map[string]string {
	return map[string]string{"tenantId": c.tenantID, "serviceCallId": serviceCallID, "tag": tag}
}
