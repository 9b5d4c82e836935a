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
	zoneText     = regexp.MustCompile(`^[+-]([01]\d|2[0-3]):[0-5]\d$`)
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
	whole, fraction, zone, ok := splitInstant(text)
	if !ok {
		return time.Time{}, fmt.Errorf("%q is not an RFC 3339 instant with a time zone, such as 2027-01-31T12:00:00Z", text)
	}
	second, err := time.Parse(time.RFC3339, strings.ToUpper(whole+zone))
	if err != nil {
		return time.Time{}, fmt.Errorf("%q is not an RFC 3339 instant: %w", text, err)
	}
	picoseconds := int64(0)
	for i := range maxFraction {
		picoseconds *= 10
		if i < len(fraction) {
			picoseconds += int64(fraction[i] - '0')
		}
	}
	instant := second.UTC().Add(time.Duration((picoseconds+999_999)/1_000_000) * time.Microsecond)
	if instant.Year() < 1 || instant.Year() > 9999 {
		return time.Time{}, fmt.Errorf("%q is not between the years 1 and 9999", text)
	}
	return instant, nil
}

const (
	instantShape = "0000-00-00T00:00:00"
	// maxFraction is the number of digits after the point.
	maxFraction = 12
)

// splitInstant returns the seconds, the digits after the point, and the zone. Every answer has several instants, and a regular
// expression takes longer than all else of reading one.
func splitInstant(text string) (whole, fraction, zone string, ok bool) {
	if len(text) <= len(instantShape) {
		return "", "", "", false
	}
	for i := range len(instantShape) {
		wanted, got := instantShape[i], text[i]
		if wanted == '0' && !isDigit(got) || wanted != '0' && got != wanted && !(wanted == 'T' && got == 't') {
			return "", "", "", false
		}
	}
	whole, zone = text[:len(instantShape)], text[len(instantShape):]
	if zone[0] == '.' {
		end := 1
		for end < len(zone) && isDigit(zone[end]) {
			end++
		}
		if end == 1 || end > maxFraction+1 {
			return "", "", "", false
		}
		fraction, zone = zone[1:end], zone[end:]
	}
	return whole, fraction, zone, zone == "Z" || zone == "z" || zoneText.MatchString(zone)
}

func isDigit(char byte) bool { return '0' <= char && char <= '9' }

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
