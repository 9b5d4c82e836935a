package rules

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// Key is an API key without the white space around it. The error never contains it.
func Key(given string) (string, error) {
	key := strings.TrimSpace(given)
	if key == "" {
		return "", errors.New("key: is empty; give an API key, or leave the option out if the server requires none")
	}
	for i := range len(key) {
		if key[i] <= ' ' || key[i] > '~' {
			return "", errors.New("key: has characters that no API key has, such as a line break; give it as it was printed")
		}
	}
	return key, nil
}

// BaseURL is the URL of a server, without a slash at its end. The error does not show a password.
func BaseURL(given string) (string, error) {
	wrong := func(reason string) (string, error) {
		return "", fmt.Errorf("url: %s; give an http or https URL, such as http://127.0.0.1:8080", reason)
	}
	for _, char := range given {
		if char <= ' ' || char >= 0x7f && char < 0xa0 || char == '\u00a0' {
			return wrong("has a space or a control character")
		}
	}
	parsed, err := url.Parse(given)
	if err != nil {
		return wrong("can't be read")
	}
	port, badPort := 1, error(nil)
	if text := parsed.Port(); text != "" {
		port, badPort = strconv.Atoi(text)
	}
	switch {
	case parsed.Scheme != "http" && parsed.Scheme != "https":
		return wrong("does not begin with http:// or https://")
	case parsed.User != nil:
		return wrong("has a user; use an API key")
	case parsed.Hostname() == "":
		return wrong("has no host")
	case badPort != nil || port < 1 || port > 65_535 || strings.HasSuffix(parsed.Host, ":"):
		return wrong("has a port that is not from 1 to 65535")
	case strings.ContainsAny(given, "?#"):
		return wrong("has a query or a fragment")
	}
	return strings.TrimRight(given, "/"), nil
}
