package rules

import (
	"math"
	"time"
)

const (
	firstPause = 100 * time.Millisecond
	maxPause   = 5 * time.Second
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
