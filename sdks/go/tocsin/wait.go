package tocsin

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tocsin.dev/go/internal/rules"
)

const (
	firstPoll = 100 * time.Millisecond
	maxPoll   = 2 * time.Second
	// Before the instant: what is awaited can be canceled or changed meanwhile, and the server's clock can differ.
	maxWaitSleep = 30 * time.Second
	// The same where the clock can be moved to the instant while nobody waits for that.
	maxMovableSleep = time.Second
)

// wait asks until it has finished: at the instant at which it is due, then ever more rarely.
func wait[T any](ctx context.Context, p *part, get *call, read func(*T) (finished bool, due time.Time)) (*T, error) {
	poll := firstPoll
	for {
		answer, err := p.do(ctx, get)
		if err != nil {
			return nil, waitError(ctx, err)
		}
		found, err := readJSON[T](answer)
		if err != nil {
			return nil, err
		}
		finished, due := read(found)
		if finished {
			return found, nil
		}
		pause := poll
		now, longest := serverNow(answer)
		if ahead := due.Sub(now); ahead > 0 {
			pause, poll = ahead, firstPoll
		} else {
			poll = min(poll*2, maxPoll)
		}
		pause = min(pause, longest)
		if !sleep(ctx, pause) {
			return nil, waitError(ctx, context.Cause(ctx))
		}
	}
}

func waitError(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil {
		return fmt.Errorf("%w: it has not finished before the context's deadline", ErrWaitTimeout)
	}
	return err
}

// serverNow is the time by which the server fires, and how long to sleep at most. Only `tocsin dev` shows its time, because its
// clock can be moved.
func serverNow(answer *reply) (time.Time, time.Duration) {
	if shown, err := rules.ParseInstant(answer.header.Get("tocsin-now")); err == nil {
		return shown, maxMovableSleep
	}
	return time.Now(), maxWaitSleep
}

// later is the first instant, or the second one if that is absent.
func later(instant, otherwise time.Time) time.Time {
	if instant.IsZero() {
		return otherwise
	}
	return instant
}
