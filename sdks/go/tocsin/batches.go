package tocsin

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"tocsin.dev/go/internal/rules"
)

const (
	maxBatchItems = 1_000
	maxBatchBytes = 8 << 20
	// Of a request around its timers.
	envelopeBytes = len(`{"timers":[]}`)
)

// ItemResult is what became of one timer of a batch: exactly one of Timer and Err is there.
type ItemResult struct {
	Timer *Timer
	// Err is an *APIError, a *TransportError, an ErrInvalidArgument, or the context's error.
	Err error
	// Existing: with OnConflictKeep, the timer existed, and nothing was written.
	Existing bool
	// Replayed: an earlier request with the same idempotency key has created it.
	Replayed bool
}

// item is a timer as it is sent, with its key.
type item struct {
	place place
	timer CreateTimer
	// encoded is the timer as it is sent first.
	encoded []byte
	// automatic: the key was made here, so that no earlier request can have used it.
	automatic bool
	// raw is there instead of the timer where a row of an outbox has its JSON.
	raw *rules.RawTimer
}

func newItem(timer CreateTimer) (*item, error) {
	automatic := timer.IdempotencyKey == ""
	if automatic {
		timer.IdempotencyKey = rules.NewUUID4().String()
	}
	encoded, err := timer.MarshalJSON()
	if err != nil {
		return nil, invalidArgument(fmt.Errorf("timer %q: %w", timer.ID, err))
	}
	return &item{place: place{timer.Namespace, timer.ID}, timer: timer, encoded: encoded, automatic: automatic}, nil
}

// batch is the body of a request.
type batch struct {
	items   []*item
	elapsed time.Duration
}

func (b batch) MarshalJSON() ([]byte, error) {
	body := []byte(`{"timers":[`)
	for i, each := range b.items {
		if i > 0 {
			body = append(body, ',')
		}
		if b.elapsed > 0 && each.raw != nil {
			encoded, err := each.raw.JSON(b.elapsed)
			if err != nil {
				return nil, err
			}
			body = append(body, encoded...)
			continue
		}
		if b.elapsed <= 0 || each.timer.Delay <= 0 {
			body = append(body, each.encoded...)
			continue
		}
		timer := each.timer
		timer.Delay = left(timer.Delay, b.elapsed)
		var err error
		if body, err = appendMembers(body, &timer); err != nil {
			return nil, err
		}
	}
	return append(body, `]}`...), nil
}

// CreateMany creates any number of timers, in requests of at most 1,000 timers or 8 MiB; the results are in their order. One that
// can't be created does not affect the others, and its result has the error. Each has an idempotency key, as in Create. The error
// is that of the context, if it ends before all timers were sent, or of the client's options. The results of timers that were not
// sent then have it, too; timers that were not read yet have none.
func (t *Timers) CreateMany(ctx context.Context, timers iter.Seq[CreateTimer]) ([]ItemResult, error) {
	if t.err != nil {
		return nil, t.err
	}
	results := []ItemResult{}
	var chunk []*item
	var indexes []int
	size := envelopeBytes
	send := func() {
		if len(chunk) > 0 {
			first := indexes
			t.createChunk(ctx, chunk, func(i int, result ItemResult) { results[first[i]] = result })
		}
		chunk, indexes, size = nil, nil, envelopeBytes
	}
	for timer := range timers {
		if ctx.Err() != nil {
			canceled := fmt.Errorf("tocsin: %w", context.Cause(ctx))
			for _, index := range indexes {
				results[index].Err = canceled
			}
			return results, canceled
		}
		added, err := newItem(timer)
		results = append(results, ItemResult{Err: err})
		if err != nil {
			continue
		}
		if len(chunk) == maxBatchItems || len(chunk) > 0 && size+len(added.encoded)+1 > maxBatchBytes {
			send()
		}
		chunk, indexes = append(chunk, added), append(indexes, len(results)-1)
		size += len(added.encoded) + 1
	}
	send()
	if ctx.Err() != nil {
		return results, fmt.Errorf("tocsin: %w", context.Cause(ctx))
	}
	return results, nil
}

// createChunk sends one request for each owner, if owners are asked directly, else one. Each timer is settled once.
func (t *Timers) createChunk(ctx context.Context, items []*item, settle func(int, ItemResult)) {
	groups := map[string][]int{}
	for i, each := range items {
		base := ""
		if t.session.router != nil {
			base = t.session.router.baseFor(ctx, each.place, t.session)
		}
		groups[base] = append(groups[base], i)
	}
	for _, group := range groups {
		t.createGroup(ctx, items, group, settle)
	}
}

// createGroup sends timers that are refused for the moment again, without those that have a result.
func (t *Timers) createGroup(ctx context.Context, items []*item, waiting []int, settle func(int, ItemResult)) {
	started, paid := time.Now(), 0
	for retry := 0; ; retry++ {
		elapsed := time.Since(started)
		remaining := limits{max(t.limits.timeout-elapsed, time.Millisecond), t.limits.retries}
		chosen := make([]*item, len(waiting))
		for i, index := range waiting {
			chosen[i] = items[index]
		}
		results, err := t.request(ctx, chosen, retry, elapsed, remaining)
		if err != nil { // after all its retries
			for _, index := range waiting {
				settle(index, ItemResult{Err: err})
			}
			return
		}
		var refused []int
		mayBeDone := false
		for i, index := range waiting {
			if results[i].Err != nil && isRepeated(results[i].Err) {
				refused = append(refused, index)
				mayBeDone = mayBeDone || maybeDone(results[i].Err)
			}
		}
		pause, again := time.Duration(0), false
		if len(refused) > 0 && (t.limits.retries == unlimitedRetries || retry < t.limits.retries) {
			pause, again = rules.RetryPause(retry, nil, t.limits.timeout-time.Since(started), t.session.random())
		}
		if again && mayBeDone {
			again = t.session.budget.Spend()
			paid++
		}
		for i, index := range waiting {
			if !again || results[i].Err == nil || !isRepeated(results[i].Err) {
				settle(index, results[i])
			}
		}
		if !again {
			if len(refused) == 0 && paid > 0 {
				t.session.budget.Succeeded(paid)
			}
			return
		}
		if !sleep(ctx, pause) {
			for _, index := range refused {
				settle(index, ItemResult{Err: fmt.Errorf("tocsin: %w", context.Cause(ctx))})
			}
			return
		}
		waiting = refused
	}
}

func (t *Timers) request(ctx context.Context, items []*item, retry int, elapsed time.Duration, l limits) ([]ItemResult, error) {
	c := &call{operation: "batchCreateTimers", first: retry == 0}
	for _, each := range items {
		c.first = c.first && each.automatic
	}
	if retry == 0 { // retries go to the client's own URL
		c.place = &items[0].place
	}
	c.body = func(more time.Duration) ([]byte, error) { return batch{items, elapsed + more}.MarshalJSON() }
	if retry == 0 {
		c.body = func(more time.Duration) ([]byte, error) { return batch{items, more}.MarshalJSON() }
	}
	answer, _, err := t.session.perform(ctx, c, l)
	if err != nil {
		return nil, err
	}
	results, err := itemResults(answer, len(items))
	if err == nil && t.session.router != nil {
		for i, each := range results {
			if each.Timer != nil {
				t.session.router.check(items[i].place, each.Timer.ShardID)
			}
		}
	}
	return results, err
}

// itemResults reads what became of so many timers, in the order of the request.
func itemResults(answer *reply, count int) ([]ItemResult, error) {
	answered, err := readJSON[BatchResults](answer)
	if err != nil {
		return nil, err
	}
	if len(answered.Results) != count {
		return nil, foreign(answer, errors.New("it has another number of results than the request has timers"))
	}
	results := make([]ItemResult, count)
	for i, each := range answered.Results {
		if each.Error != nil {
			results[i].Err = errorOfItem(each.Error)
			continue
		}
		if each.Timer == nil {
			return nil, foreign(answer, fmt.Errorf("result %d has neither a timer nor an error", i))
		}
		results[i] = ItemResult{Timer: each.Timer, Existing: each.Existing.Or(false), Replayed: each.Replayed.Or(false)}
	}
	return results, nil
}
