package tocsin

import (
	"context"
	"errors"
	"iter"
	"time"

	"tocsin.dev/go/internal/rules"
)

// Timers each call a URL at an instant.
type Timers struct{ part }

// Create creates a timer; it is durable when this returns. Give one of ExecuteAt and Delay, and at most one of Payload and Body.
// A pending timer with the same id is replaced, unless OnConflict asks otherwise. To fire at once, give the present instant.
//
// If an answer is lost, the request is repeated with the same idempotency key: one call creates one timer, which fires once. Give
// a key of your own if your program itself may repeat the call, as after a crash.
func (t *Timers) Create(ctx context.Context, timer CreateTimer) (*Timer, error) {
	automatic := timer.IdempotencyKey == ""
	if automatic {
		timer.IdempotencyKey = rules.NewUUID4().String()
	}
	target := place{timer.Namespace, timer.ID}
	delay := timer.Delay
	body := func(elapsed time.Duration) ([]byte, error) {
		timer.Delay = left(delay, elapsed)
		return encodeMembers(&timer)
	}
	created, err := ask[Timer](ctx, &t.part, &call{operation: "createTimer", body: body, first: automatic, place: &target})
	if err == nil && t.session.router != nil {
		t.session.router.check(target, created.ShardID)
	}
	return created, err
}

// Debounce creates a timer that fires once for all creates of its id that follow one another: delay after the latest, and at the
// latest maxDelay after the first. Its payload is the latest one; with timer.Collect it is an array of all of them, and
// ErrCollectionFull means that it has no room for another until it has fired.
func (t *Timers) Debounce(ctx context.Context, timer CreateTimer, delay, maxDelay time.Duration) (*Timer, error) {
	timer.OnConflict, timer.Delay, timer.MaxDelay = OnConflictDebounce, delay, Some(maxDelay)
	return t.Create(ctx, timer)
}

// Get returns the timer, pending or finished. ErrTimerNotFound: there is none, or it is no longer retained.
func (t *Timers) Get(ctx context.Context, namespace, timerID string) (*Timer, error) {
	return ask[Timer](ctx, &t.part, named("getTimer", namespace, timerID))
}

// Update changes the given fields of a pending timer; those that are absent stay, and null removes. ErrTimerNotPending: it has
// finished, and not with these fields after a lost answer.
func (t *Timers) Update(ctx context.Context, change UpdateTimer) (*Timer, error) {
	body := func(elapsed time.Duration) ([]byte, error) {
		sent := change
		if delay, ok := change.Delay.Get(); ok {
			sent.Delay = Some(left(delay, elapsed))
		}
		return encodeMembers(&sent)
	}
	call := &call{operation: "updateTimer", body: body, place: &place{change.Namespace, change.TimerID}}
	return update[Timer](ctx, &t.part, call, named("getTimer", change.Namespace, change.TimerID))
}

// Delete cancels a pending timer; an attempt in flight may still arrive. ErrTimerNotPending: it has finished.
func (t *Timers) Delete(ctx context.Context, namespace, timerID string) error {
	remove := named("deleteTimer", namespace, timerID)
	remove.place = &place{namespace, timerID}
	return t.delete(ctx, remove, named("getTimer", namespace, timerID), func(answer *reply) (bool, error) {
		timer, err := readJSON[Timer](answer)
		return err == nil && timer.Status == TimerStatusCanceled, err
	})
}

// List reads all timers that match, ordered by ExecuteAt, page by page; query.Limit is the size of a page.
func (t *Timers) List(ctx context.Context, query ListTimers) iter.Seq2[*Timer, error] {
	return elements(t.ListPages(ctx, query))
}

// ListPages is List by the page. One may be empty without being the last.
func (t *Timers) ListPages(ctx context.Context, query ListTimers) iter.Seq2[[]Timer, error] {
	return pages(ctx, func(ctx context.Context, cursor string) ([]Timer, string, error) {
		if cursor != "" {
			query.Cursor = cursor
		}
		page, err := ask[TimerPage](ctx, &t.part, &call{operation: "listTimers", body: constant(query)})
		if err != nil {
			return nil, "", err
		}
		return page.Timers, page.NextCursor, nil
	})
}

// Explain returns where the timer is now, and what it waits for.
func (t *Timers) Explain(ctx context.Context, namespace, timerID string) (*Explanation, error) {
	return ask[Explanation](ctx, &t.part, named("explainTimer", namespace, timerID))
}

// History reads the timer's runs, newest first.
func (t *Timers) History(ctx context.Context, query TimerHistory) iter.Seq2[*RunAnswer, error] {
	return elements(t.HistoryPages(ctx, query))
}

// HistoryPages is History by the page.
func (t *Timers) HistoryPages(ctx context.Context, query TimerHistory) iter.Seq2[[]RunAnswer, error] {
	return pages(ctx, func(ctx context.Context, cursor string) ([]RunAnswer, string, error) {
		if cursor != "" {
			query.Cursor = cursor
		}
		page, err := ask[RunPageAnswer](ctx, &t.part, &call{operation: "timerHistory", body: constant(query)})
		if err != nil {
			return nil, "", err
		}
		return page.Runs, page.NextCursor, nil
	})
}

// Replay fires finished timers again, at most 1,000, each under the webhook-id of its latest run: at once, or at the given instant.
// The results are in the order of the ids; one that can't be replayed does not affect the others. It is not repeated after a lost
// answer: the *TransportError has MaybeDone.
func (t *Timers) Replay(ctx context.Context, wanted ReplayTimers) ([]ItemResult, error) {
	if t.err != nil {
		return nil, t.err
	}
	answer, err := t.do(ctx, &call{operation: "replayTimers", body: constant(wanted), once: true})
	if err != nil {
		return nil, err
	}
	return itemResults(answer, len(wanted.Ids))
}

// Wait returns the timer once it has finished. ErrWaitTimeout: the context's deadline came first.
func (t *Timers) Wait(ctx context.Context, namespace, timerID string) (*Timer, error) {
	return wait(ctx, &t.part, named("getTimer", namespace, timerID), func(timer *Timer) (bool, time.Time) {
		return timer.Status != TimerStatusPending, later(timer.NextAttemptAt, timer.ExecuteAt)
	})
}

func named(operation, namespace, timerID string) *call {
	return &call{operation: operation, body: constant(TimerName{Namespace: namespace, TimerID: timerID})}
}

// delete deletes; where an earlier try's answer was lost, a refusal can mean that this try succeeded.
func (p *part) delete(ctx context.Context, remove, get *call, isGone func(*reply) (bool, error)) error {
	if p.err != nil {
		return p.err
	}
	answer, mayBeDone, refused := p.session.perform(ctx, remove, p.limits)
	if refused == nil {
		return checkEmpty(answer)
	}
	if !mayBeDone || !(errors.Is(refused, ErrNotFound) || errors.Is(refused, ErrConflict)) {
		return refused
	}
	answer, err := p.do(ctx, get)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	gone, err := isGone(answer)
	if err == nil && !gone {
		return refused
	}
	return err
}
