package rules

import (
	"math"
	"sync"
	"time"
)

const (
	firstPause = 100 * time.Millisecond
	maxPause   = 2 * time.Second
)

// RetryPause is the time before a retry, counted from 0. `retryAfter` is nil if the server named none, `random` from 0 to 1.
// False: in the time left there is no retry.
func RetryPause(retry int, retryAfter *time.Duration, left time.Duration, random float64) (time.Duration, bool) {
	pause := math.Min(float64(maxPause), float64(firstPause)*math.Pow(2, float64(retry))) * random
	if retryAfter != nil {
		pause = float64(*retryAfter) * (1 + random/2)
	}
	return time.Duration(pause), pause < float64(left)
}

// RetryBudget bounds the retries of a client: if most tries fail, repeating each of them makes an overload worse. It counts
// tenths of a retry. The zero value is full.
type RetryBudget struct {
	mutex sync.Mutex
	spent int
}

const (
	budgetTenths = 1_000
	retryTenths  = 10
)

// Spend pays for a retry; false: too little is left.
func (b *RetryBudget) Spend() bool {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.spent+retryTenths > budgetTenths {
		return false
	}
	b.spent += retryTenths
	return true
}

// Succeeded gives back the retries that a call has paid for which has succeeded; for one that needed none it gives a tenth.
func (b *RetryBudget) Succeeded(paid int) {
	earned := max(paid*retryTenths, 1)
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.spent = max(b.spent-earned, 0)
}

// Left is how many retries are left.
func (b *RetryBudget) Left() float64 {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return float64(budgetTenths-b.spent) / retryTenths
}
