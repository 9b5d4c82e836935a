package tocsin

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Batcher collects single creates into requests: 500 timers in one, or those that were added within 5 ms, at most two requests
// at the same time for each node. Any number of goroutines may add.
type Batcher struct {
	timers *Timers

	mutex sync.Mutex
	queue *batchQueue
	// changed is closed, and replaced, when timers were taken or settled.
	changed chan struct{}
	timer   *time.Timer
}

// Pending is a timer that was added to a batcher.
type Pending struct {
	done   chan struct{}
	result ItemResult
}

// Done is closed when the timer is created, or can't be.
func (p *Pending) Done() <-chan struct{} { return p.done }

// Wait returns the timer as created, or the error. A context that ends does not keep the timer from being created.
func (p *Pending) Wait(ctx context.Context) (*Timer, error) {
	select {
	case <-p.done:
		return p.result.Timer, p.result.Err
	case <-ctx.Done():
		return nil, fmt.Errorf("tocsin: %w", context.Cause(ctx))
	}
}

func (p *Pending) settle(result ItemResult) {
	p.result = result
	close(p.done)
}

// NewBatcher makes a batcher. Close it at the end.
func (t *Timers) NewBatcher() *Batcher {
	return &Batcher{timers: t, queue: newBatchQueue(), changed: make(chan struct{})}
}

// Add adds a timer. While 10,000 wait, it blocks until there is room or the context ends. ErrBatcherClosed: Close was called.
func (b *Batcher) Add(ctx context.Context, timer CreateTimer) (*Pending, error) {
	for {
		pending, full, err := b.add(timer)
		if full == nil {
			return pending, err
		}
		select {
		case <-full:
		case <-ctx.Done():
			return nil, fmt.Errorf("tocsin: %w", context.Cause(ctx))
		}
	}
}

// TryAdd adds a timer without blocking. ErrBatcherFull: 10,000 wait.
func (b *Batcher) TryAdd(timer CreateTimer) (*Pending, error) {
	pending, full, err := b.add(timer)
	if full != nil {
		return nil, fmt.Errorf("%w: %d timers wait; add more later", ErrBatcherFull, maxWaiting)
	}
	return pending, err
}

// add returns a channel if there is no room: it is closed when there may be.
func (b *Batcher) add(timer CreateTimer) (*Pending, <-chan struct{}, error) {
	if b.timers.err != nil {
		return nil, nil, b.timers.err
	}
	added, err := newItem(timer)
	if err != nil {
		return nil, nil, err
	}
	owner := ""
	if router := b.timers.session.router; router != nil {
		owner = router.urlOf(added.place)
	}
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.queue.closing {
		return nil, nil, fmt.Errorf("%w: make another", ErrBatcherClosed)
	}
	if b.queue.full() {
		return nil, b.changed, nil
	}
	pending := &Pending{done: make(chan struct{})}
	b.queue.add(entry{added, pending, time.Now()}, owner)
	b.dispatch()
	return pending, nil, nil
}

// Close sends what waits, and returns when every timer has its result.
func (b *Batcher) Close() {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.queue.closing = true
	b.dispatch()
	for !b.queue.idle() {
		changed := b.changed
		b.mutex.Unlock()
		<-changed
		b.mutex.Lock()
	}
	if b.timer != nil {
		b.timer.Stop()
	}
}

// dispatch sends what is ready, and comes again when the next is. The mutex is locked.
func (b *Batcher) dispatch() {
	for {
		owner, taken := b.queue.take(time.Now())
		if taken == nil {
			break
		}
		b.notify()
		go b.send(owner, taken)
	}
	if ready, ok := b.queue.next(); ok {
		if b.timer == nil {
			b.timer = time.AfterFunc(time.Until(ready), b.tick)
		} else {
			b.timer.Reset(time.Until(ready))
		}
	}
}

func (b *Batcher) tick() {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.dispatch()
}

func (b *Batcher) notify() {
	close(b.changed)
	b.changed = make(chan struct{})
}

func (b *Batcher) send(owner string, entries []entry) {
	items := make([]*item, len(entries))
	for i, each := range entries {
		items[i] = each.item
	}
	// Whoever added a timer may be gone: no context but the client's timeout ends the request.
	b.timers.createChunk(context.Background(), items, func(i int, result ItemResult) { entries[i].pending.settle(result) })
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.queue.settled(owner, entries)
	b.notify()
	b.dispatch()
}
