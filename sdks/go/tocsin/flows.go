package tocsin

import (
	"context"
	"encoding/json"
	"iter"
)

// Flows are rules that limit how many attempts begin, and are in flight at once, of timers and schedules with the same FlowKey. A
// rule's Match is a flow key, or a prefix of flow keys, which ends with a colon.
type Flows struct{ part }

// Put creates the rule, or replaces all its limits; one that is paused stays so. ErrTooManyFlows: the namespace has as many as it
// can have.
func (f *Flows) Put(ctx context.Context, rule PutFlow) (*Flow, error) {
	put := &call{operation: "putFlow", body: constant(rule)}
	return update[Flow](ctx, &f.part, put, flowNamed(rule.Namespace, rule.Match))
}

// Get returns the rule, and what is in flight and waits. ErrFlowNotFound: there is none with exactly this match.
func (f *Flows) Get(ctx context.Context, namespace, match string) (*Flow, error) {
	return ask[Flow](ctx, &f.part, flowNamed(namespace, match))
}

// List reads the rules of a namespace, by what they match; query.Limit is the size of a page.
func (f *Flows) List(ctx context.Context, query ListFlows) iter.Seq2[*Flow, error] {
	return elements(f.ListPages(ctx, query))
}

// ListPages is List by the page.
func (f *Flows) ListPages(ctx context.Context, query ListFlows) iter.Seq2[[]Flow, error] {
	return pages(ctx, func(ctx context.Context, cursor string) ([]Flow, string, error) {
		if cursor != "" {
			query.Cursor = cursor
		}
		page, err := ask[FlowPage](ctx, &f.part, &call{operation: "listFlows", body: constant(query)})
		if err != nil {
			return nil, "", err
		}
		return page.Flows, page.NextCursor, nil
	})
}

// Pause lets nothing of the rule's keys begin until an instant, or until Resume. ErrFlowNotFound: there is no such rule.
func (f *Flows) Pause(ctx context.Context, pause PauseFlow) (*Flow, error) {
	return f.ask(ctx, "pauseFlow", pause)
}

// Resume ends a pause. ErrFlowNotFound: there is no such rule.
func (f *Flows) Resume(ctx context.Context, namespace, match string) (*Flow, error) {
	return f.ask(ctx, "resumeFlow", FlowName{Namespace: namespace, Match: match})
}

// Delete deletes the rule: its keys are subject to the rule with the next longest prefix, or not limited. ErrFlowNotFound: there
// is no such rule.
func (f *Flows) Delete(ctx context.Context, namespace, match string) error {
	return f.deleteFlow(ctx, DeleteFlow{Namespace: namespace, Match: match})
}

// DeleteVersion is Delete of this version only. ErrVersionConflict: the rule has another one.
func (f *Flows) DeleteVersion(ctx context.Context, namespace, match string, version int) error {
	return f.deleteFlow(ctx, DeleteFlow{Namespace: namespace, Match: match, ExpectedVersion: Some(version)})
}

func (f *Flows) deleteFlow(ctx context.Context, flow DeleteFlow) error {
	remove := &call{operation: "deleteFlow", body: constant(flow)}
	return f.delete(ctx, remove, flowNamed(flow.Namespace, flow.Match), func(*reply) (bool, error) { return false, nil })
}

func (f *Flows) ask(ctx context.Context, operation string, body json.Marshaler) (*Flow, error) {
	return ask[Flow](ctx, &f.part, &call{operation: operation, body: constant(body)})
}

func flowNamed(namespace, match string) *call {
	return &call{operation: "getFlow", body: constant(FlowName{Namespace: namespace, Match: match})}
}
