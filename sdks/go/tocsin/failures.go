package tocsin

import (
	"context"
	"iter"
)

// Failures are timers, occurrences of schedules and, of a tenant instead of a namespace, service calls that failed, until they
// are dismissed.
type Failures struct{ part }

// List returns groups of failures with the same cause, those with most failures first.
func (f *Failures) List(ctx context.Context, wanted ListFailures) (*FailureList, error) {
	return ask[FailureList](ctx, &f.part, &call{operation: "listFailures", body: constant(wanted)})
}

// Members reads the failures of a group, or all, newest first; query.Limit is the size of a page.
func (f *Failures) Members(ctx context.Context, query ListFailureMembers) iter.Seq2[*Failure, error] {
	return elements(f.MemberPages(ctx, query))
}

// MemberPages is Members by the page.
func (f *Failures) MemberPages(ctx context.Context, query ListFailureMembers) iter.Seq2[[]Failure, error] {
	return pages(ctx, func(ctx context.Context, cursor string) ([]Failure, string, error) {
		if cursor != "" {
			query.Cursor = cursor
		}
		page, err := ask[FailurePage](ctx, &f.part, &call{operation: "listFailureMembers", body: constant(query)})
		if err != nil {
			return nil, "", err
		}
		return page.Failures, page.NextCursor, nil
	})
}

// Dismiss removes failures from the list: by their ids, those of a group, or all. Repeat it while the answer has More.
func (f *Failures) Dismiss(ctx context.Context, wanted DismissFailures) (*DismissedFailures, error) {
	return ask[DismissedFailures](ctx, &f.part, &call{operation: "dismissFailures", body: constant(wanted)})
}
