// Callbacks of 1 MiB by the Go receiver: see bench/clients/callbacks.py.
package main

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"tocsin.dev/go/receiver"
)

var (
	body = bytes.Repeat([]byte("x"), 1<<20)
	peak = regexp.MustCompile(`VmHWM:\s+(\d+)`)
)

type result struct {
	Status int       `json:"status"`
	Bytes  int       `json:"bytes"`
	MS     []float64 `json:"ms"`
}

func main() {
	rounds, _ := strconv.Atoi(os.Args[1])
	webhookID, timestamp, signature, secrets := os.Args[2], os.Args[3], os.Args[4], os.Args[5:]
	silent := slog.New(slog.NewTextHandler(io.Discard, nil))
	done := func(context.Context, *receiver.Firing) (receiver.Answer, error) { return receiver.Done(), nil }
	handler := receiver.New(receiver.Static(secrets...), receiver.WithLogger(silent)).Handle(done)

	callback := func(number int, body []byte) int {
		signatures := signature
		if number > 1 {
			signatures = strings.TrimSuffix(strings.Repeat("v1,"+strings.Repeat("A", 43)+"= ", number), " ")
		}
		request := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body))
		for name, value := range map[string]string{
			"webhook-id": webhookID, "webhook-timestamp": timestamp, "webhook-signature": signatures,
			"tocsin-namespace": "default", "tocsin-timer-id": "large",
		} {
			request.Header.Set(name, value)
		}
		response := httptest.NewRecorder()
		handler.ServeHTTP(response, request)
		return response.Code
	}

	numbers := []int{1, 10, 4000}
	for _, number := range numbers {
		for range 100 {
			callback(number, body[:1])
		}
	}
	results := map[string]*result{}
	for _, number := range numbers {
		if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil { // the peak starts over
			log.Fatal(err)
		}
		before := peakKB()
		status := callback(number, body)
		results[strconv.Itoa(number)] = &result{Status: status, Bytes: (peakKB() - before) * 1024}
	}
	for _, number := range numbers {
		results[strconv.Itoa(number)].MS = milliseconds(rounds, func() { callback(number, body) })
	}
	results["hash"] = &result{MS: milliseconds(rounds, func() {
		mac := hmac.New(sha256.New, []byte("key"))
		mac.Write(body)
		mac.Sum(nil)
	})}
	if err := json.NewEncoder(os.Stdout).Encode(results); err != nil {
		log.Fatal(err)
	}
}

func milliseconds(rounds int, work func()) []float64 {
	times := make([]float64, rounds)
	for round := range times {
		began := processorTime()
		work()
		times[round] = float64((processorTime() - began).Microseconds()) / 1000
	}
	return times
}

func processorTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		log.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func peakKB() int {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		log.Fatal(err)
	}
	kb, _ := strconv.Atoi(string(peak.FindSubmatch(status)[1]))
	return kb
}
