// Package rules has what the SDKs of all languages compute alike: instants, durations, placement, pauses, signatures.
package rules

import (
	"fmt"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"time"
)

var (
	instantText  = regexp.MustCompile(`^(\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d)(?:\.(\d{1,12}))?([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)$`)
	durationText = regexp.MustCompile(`^(\d+(\.\d+)?(us|ms|s|m|h|d))+$`)
	durationPart = regexp.MustCompile(`(\d+(?:\.\d+)?)(us|ms|s|m|h|d)`)
)

// The units of durations, the longest first.
var units = []struct {
	name string
	size time.Duration
}{
	{"d", 24 * time.Hour}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second},
	{"ms", time.Millisecond}, {"us", time.Microsecond},
}

// ParseInstant reads RFC 3339 with a time zone, in UTC. What is finer than a microsecond rounds up.
func ParseInstant(text string) (time.Time, error) {
	found := instantText.FindStringSubmatch(text)
	if found == nil {
		return time.Time{}, fmt.Errorf("%q is not an RFC 3339 instant with a time zone, such as 2027-01-31T12:00:00Z", text)
	}
	second, err := time.Parse(time.RFC3339, strings.ToUpper(found[1]+found[3]))
	if err != nil {
		return time.Time{}, fmt.Errorf("%q is not an RFC 3339 instant: %w", text, err)
	}
	picoseconds, err := strconv.ParseInt((found[2] + "000000000000")[:12], 10, 64)
	if err != nil {
		return time.Time{}, err
	}
	instant := second.UTC().Add(time.Duration((picoseconds+999_999)/1_000_000) * time.Microsecond)
	if instant.Year() < 1 || instant.Year() > 9999 {
		return time.Time{}, fmt.Errorf("%q is not between the years 1 and 9999", text)
	}
	return instant, nil
}

// FormatInstant writes RFC 3339 in UTC. What is finer than a microsecond rounds up.
func FormatInstant(instant time.Time) (string, error) {
	instant = instant.UTC()
	if rest := instant.Nanosecond() % 1_000; rest > 0 {
		instant = instant.Add(time.Duration(1_000 - rest))
	}
	if instant.Year() < 1 || instant.Year() > 9999 {
		return "", fmt.Errorf("%v is not between the years 1 and 9999", instant)
	}
	if instant.Nanosecond() == 0 {
		return instant.Format("2006-01-02T15:04:05Z"), nil
	}
	return instant.Format("2006-01-02T15:04:05.000000Z"), nil
}

// ParseDuration reads a duration such as 500ms, 1h30m or 7d. What is finer than a microsecond rounds up.
func ParseDuration(text string) (time.Duration, error) {
	if !durationText.MatchString(text) {
		return 0, fmt.Errorf("%q is not a duration; write it as 500ms, 30s, 1h30m or 7d", text)
	}
	total := new(big.Rat)
	for _, part := range durationPart.FindAllStringSubmatch(text, -1) {
		number, ok := new(big.Rat).SetString(part[1])
		if !ok {
			return 0, fmt.Errorf("%q is not a duration; write it as 500ms, 30s, 1h30m or 7d", text)
		}
		for _, unit := range units {
			if unit.name == part[2] {
				total.Add(total, number.Mul(number, big.NewRat(unit.size.Microseconds(), 1)))
			}
		}
	}
	whole, rest := new(big.Int).QuoRem(total.Num(), total.Denom(), new(big.Int))
	if rest.Sign() > 0 {
		whole.Add(whole, big.NewInt(1))
	}
	nanoseconds := whole.Mul(whole, big.NewInt(1_000))
	if !nanoseconds.IsInt64() {
		return 0, fmt.Errorf("%q is longer than a time.Duration can be, which is 292 years", text)
	}
	return time.Duration(nanoseconds.Int64()), nil
}

// FormatDuration writes a duration as the server reads it. What is finer than a microsecond rounds up.
func FormatDuration(duration time.Duration) (string, error) {
	if duration < 0 {
		return "", fmt.Errorf("%v is negative; a duration is zero or longer", duration)
	}
	left := duration.Truncate(time.Microsecond)
	if left < duration {
		left += time.Microsecond
	}
	written := ""
	for _, unit := range units {
		if number := left / unit.size; number > 0 {
			written += strconv.FormatInt(int64(number), 10) + unit.name
			left %= unit.size
		}
	}
	if written == "" {
		return "0s", nil
	}
	return written, nil
}
