package rules

import (
	"crypto/rand"
	"crypto/sha1"
	"encoding/binary"
	"time"
)

// UUID is one of any version.
type UUID [16]byte

const hexDigits = "0123456789abcdef"

// String is its usual form.
func (u UUID) String() string {
	var text [36]byte
	at := 0
	for i, each := range u {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			text[at] = '-'
			at++
		}
		text[at], text[at+1] = hexDigits[each>>4], hexDigits[each&0x0f]
		at += 2
	}
	return string(text[:])
}

// The UUID namespace DNS of RFC 9562, and that of timers below it.
var (
	dns    = UUID{0x6b, 0xa7, 0xb8, 0x10, 0x9d, 0xad, 0x11, 0xd1, 0x80, 0xb4, 0x00, 0xc0, 0x4f, 0xd4, 0x30, 0xc8}
	timers = uuid5(dns, "timers.tocsin.dev")
)

func uuid5(space UUID, name string) UUID {
	sum := sha1.Sum(append(space[:], name...))
	return versioned(UUID(sum[:16]), 5)
}

func versioned(u UUID, version byte) UUID {
	u[6] = u[6]&0x0f | version<<4
	u[8] = u[8]&0x3f | 0x80
	return u
}

// NewUUID4 is random.
func NewUUID4() UUID {
	var u UUID
	fillRandom(u[:])
	return versioned(u, 4)
}

// NewUUID7 begins with the time, in milliseconds.
func NewUUID7(now time.Time) UUID {
	var u UUID
	fillRandom(u[6:])
	var milliseconds [8]byte
	binary.BigEndian.PutUint64(milliseconds[:], uint64(now.UnixMilli()))
	copy(u[:6], milliseconds[2:])
	return versioned(u, 7)
}

func fillRandom(bytes []byte) {
	if _, err := rand.Read(bytes); err != nil {
		panic("the system has no random numbers: " + err.Error()) // no key would be safe
	}
}

// TimerUUID is the UUID of the timer with this id.
func TimerUUID(namespace, id string) UUID { return uuid5(timers, namespace+"\x00"+id) }

// ScheduleUUID is the UUID of the schedule with this id.
func ScheduleUUID(namespace, id string) UUID { return uuid5(timers, namespace+"\x00schedule\x00"+id) }

// ShardOf is the shard that has the timer: the n-th of its namespace's, which follow one another.
func ShardOf(namespace, id string, numShards, totalShards int) int {
	space := sha1.Sum([]byte(namespace))
	timer := TimerUUID(namespace, id)
	first := int(binary.BigEndian.Uint32(space[:4]))
	nth := int(binary.BigEndian.Uint32(timer[:4])) % numShards
	return (first + nth) % totalShards
}
