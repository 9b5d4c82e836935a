package rules

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// MaxSignatures is how many signatures a callback may have: two secrets during a rotation, and room for other schemes.
const MaxSignatures = 10

// SigningKey is the key in a signing secret.
func SigningKey(secret string) ([]byte, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil || len(key) == 0 {
		return nil, errors.New("a signing secret is not valid; it is whsec_ and base64, as `tocsin namespaces` printed it")
	}
	return key, nil
}

// Signature is one of Standard Webhooks.
func Signature(key []byte, webhookID string, timestamp int64, body []byte) string {
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%d.", webhookID, timestamp)
	mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// IsSigned reports whether one of the given signatures is of one of the keys. It reads the body once for each key, and compares
// in constant time. Signatures have to be few: see MaxSignatures.
func IsSigned(keys [][]byte, webhookID string, timestamp int64, body []byte, signatures []string) bool {
	signed := false
	for _, key := range keys {
		wanted := []byte(Signature(key, webhookID, timestamp, body))
		for _, given := range signatures {
			signed = hmac.Equal([]byte(given), wanted) || signed
		}
	}
	return signed
}

// IsFiringOf reports whether a webhook-id, which is msg_, 32 hexadecimal digits, _ and a name, is of the timer or of the schedule
// with this id. Since it is signed, it proves the namespace and the id.
func IsFiringOf(webhookID, namespace, id string) bool {
	digits, found := strings.CutPrefix(webhookID, "msg_")
	digits, name, separated := strings.Cut(digits, "_")
	if !found || !separated || name == "" || strings.ContainsRune(namespace+id, 0) {
		return false // names have no NUL, with which those of another timer or schedule could be written
	}
	timer, schedule := TimerUUID(namespace, id), ScheduleUUID(namespace, id)
	return digits == hex.EncodeToString(timer[:]) || digits == hex.EncodeToString(schedule[:])
}

// WebhookID is the webhook-id of a timer's firing with this name.
func WebhookID(namespace, id, name string) string {
	timer := TimerUUID(namespace, id)
	return "msg_" + hex.EncodeToString(timer[:]) + "_" + name
}
