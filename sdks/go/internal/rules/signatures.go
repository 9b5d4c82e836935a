package rules

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

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

// IsSigned reports whether one of the header's signatures is of one of the keys. It compares in constant time.
func IsSigned(keys [][]byte, webhookID string, timestamp int64, body []byte, header string) bool {
	signed := false
	for _, given := range strings.Split(header, " ") {
		for _, key := range keys {
			wanted := Signature(key, webhookID, timestamp, body)
			signed = hmac.Equal([]byte(given), []byte(wanted)) || signed
		}
	}
	return signed
}
