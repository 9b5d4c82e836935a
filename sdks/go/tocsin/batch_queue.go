package tocsin

import "time"

const (
	itemsPerRequest  = 500
	linger           = 5 * time.Millisecond
	requestsPerOwner = 2
	maxWaiting       = 10_000
)

// entry is a timer that waits, and who waits for it.
type entry struct {
	item    *item
	pending *Pending
	added   time.Time
}

// lane has the timers for one node.
type lane struct {
	waiting  []entry
	requests int
}

// batchQueue decides which waiting timers go into the next request. Time is passed in.
type batchQueue struct {
	lanes map[string]*lane
	// inFlight has the timers in requests: two requests with the same one could take effect in either order.
	inFlight map[place]bool
	// queued has where the timers of a name wait, and how many. The owner can change meanwhile: a later one that waited elsewhere
	// could be sent first.
	queued  map[place]queued
	waiting int
	// closing: nothing more comes, so that there is nothing to linger for.
	closing bool
}

// queued are timers of one name.
type queued struct {
	owner string
	count int
}

func newBatchQueue() *batchQueue {
	return &batchQueue{lanes: map[string]*lane{}, inFlight: map[place]bool{}, queued: map[place]queued{}}
}

func (q *batchQueue) full() bool { return q.waiting >= maxWaiting }

// idle reports whether every timer was taken and settled.
func (q *batchQueue) idle() bool { return q.waiting == 0 && len(q.inFlight) == 0 }

func (q *batchQueue) add(added entry, owner string) {
	before, ok := q.queued[added.item.place]
	if ok {
		owner = before.owner
	}
	q.queued[added.item.place] = queued{owner, before.count + 1}
	found := q.lanes[owner]
	if found == nil {
		found = &lane{}
		q.lanes[owner] = found
	}
	found.waiting = append(found.waiting, added)
	q.waiting++
}

// take returns the owner and the timers of a request to send now. `settled` has to follow.
func (q *batchQueue) take(now time.Time) (string, []entry) {
	for owner, each := range q.lanes {
		if ready, ok := q.readyAt(each); !ok || ready.After(now) {
			continue
		}
		if taken := q.takeFrom(each); len(taken) > 0 {
			each.requests++
			return owner, taken
		}
	}
	return "", nil
}

// next is when `take` has something if nothing is added or settled before; false: never.
func (q *batchQueue) next() (time.Time, bool) {
	var first time.Time
	found := false
	for _, each := range q.lanes {
		if ready, ok := q.readyAt(each); ok && (!found || ready.Before(first)) {
			first, found = ready, true
		}
	}
	return first, found
}

// settled: the request of these timers is over.
func (q *batchQueue) settled(owner string, entries []entry) {
	for _, each := range entries {
		delete(q.inFlight, each.item.place)
	}
	found := q.lanes[owner]
	found.requests--
	if len(found.waiting) == 0 && found.requests == 0 {
		delete(q.lanes, owner)
	}
}

func (q *batchQueue) readyAt(l *lane) (time.Time, bool) {
	free := false
	for _, each := range l.waiting {
		if free = !q.inFlight[each.item.place]; free {
			break
		}
	}
	if !free || l.requests >= requestsPerOwner {
		return time.Time{}, false
	}
	if q.closing || len(l.waiting) >= itemsPerRequest {
		return time.Time{}, true
	}
	return l.waiting[0].added.Add(linger), true
}

func (q *batchQueue) takeFrom(l *lane) []entry {
	var taken, left []entry
	size := envelopeBytes
	blocked := map[place]bool{} // names that wait on: later timers of the same name stay behind them
	for i, each := range l.waiting {
		if len(taken) == itemsPerRequest {
			left = append(left, l.waiting[i:]...)
			break
		}
		target, bytes := each.item.place, len(each.item.encoded)+1
		if (size+bytes <= maxBatchBytes || len(taken) == 0) && !q.inFlight[target] && !blocked[target] {
			taken = append(taken, each)
			size += bytes
			q.inFlight[target] = true
			q.dequeued(target)
		} else {
			left = append(left, each)
			blocked[target] = true
		}
	}
	l.waiting = left
	q.waiting -= len(taken)
	return taken
}

// dequeued: one timer of this name waits no more.
func (q *batchQueue) dequeued(name place) {
	left := q.queued[name]
	if left.count--; left.count > 0 {
		q.queued[name] = left
	} else {
		delete(q.queued, name)
	}
}
