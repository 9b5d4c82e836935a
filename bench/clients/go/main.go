// Single creates by the Go SDK beside net/http, which it uses: see bench/clients/__init__.py.
package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"tocsin.dev/go/tocsin"
)

const callbackURL = "http://127.0.0.1:9/"

type payload struct {
	Order  int64 `json:"order"`
	Amount int   `json:"amount"`
}

type timer struct {
	Namespace      string  `json:"namespace"`
	ID             string  `json:"id"`
	CallbackURL    string  `json:"callbackUrl"`
	Delay          string  `json:"delay"`
	Payload        payload `json:"payload"`
	IdempotencyKey string  `json:"idempotencyKey"`
}

type create func(number int64) error

func bySDK(url string) create {
	client := tocsin.NewClient(url)
	return func(number int64) error {
		_, err := client.Timers.Create(context.Background(), tocsin.CreateTimer{
			Namespace: "default", ID: fmt.Sprintf("sdk-%d", number), CallbackURL: callbackURL,
			Delay: time.Hour, Payload: tocsin.JSON(payload{number, 4200}),
		})
		return err
	}
}

func bare(url string) create {
	// The default transport keeps two connections to a host.
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 64
	client := &http.Client{Transport: transport, Timeout: 15 * time.Second}
	return func(number int64) error {
		body, err := json.Marshal(timer{
			"default", fmt.Sprintf("bare-%d", number), callbackURL, "1h", payload{number, 4200}, newUUID(),
		})
		if err != nil {
			return err
		}
		request, err := http.NewRequest("POST", url+"/api/v1/timers/create", bytes.NewReader(body))
		if err != nil {
			return err
		}
		request.Header.Set("accept", "application/json")
		request.Header.Set("user-agent", "tocsin-client-go/"+tocsin.Version)
		request.Header.Set("tocsin-first-try", "1")
		request.Header.Set("content-type", "application/json")
		answer, err := client.Do(request)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		read, err := io.ReadAll(answer.Body)
		if err == nil && answer.StatusCode != http.StatusOK {
			err = fmt.Errorf("%s", read)
		}
		return err
	}
}

func newUUID() string {
	var b [16]byte
	rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

var numbers atomic.Int64

func creates(do create, count, inFlight int) {
	var group sync.WaitGroup
	for range inFlight {
		group.Add(1)
		go func() {
			defer group.Done()
			for range count / inFlight {
				if err := do(numbers.Add(1)); err != nil {
					log.Fatal(err)
				}
			}
		}()
	}
	group.Wait()
}

// cpu is the user and system time of the process so far.
func cpu() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		log.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func main() {
	url := os.Args[1]
	var given [4]int
	for i, text := range os.Args[2:] {
		given[i], _ = strconv.Atoi(text)
	}
	warmUp, rounds, each, inFlight := given[0], given[1], given[2], given[3]
	ways := map[string]create{"sdk": bySDK(url), "bare": bare(url)}
	for _, do := range ways {
		creates(do, warmUp, inFlight)
	}
	var results []map[string]float64
	for round := range rounds {
		order := []string{"sdk", "bare"}
		if round%2 == 1 {
			order = []string{"bare", "sdk"}
		}
		result := map[string]float64{}
		for _, name := range order {
			began := cpu()
			creates(ways[name], each, inFlight)
			result[name] = float64((cpu() - began).Microseconds()) / float64(each)
		}
		results = append(results, result)
	}
	json.NewEncoder(os.Stdout).Encode(results)
}
