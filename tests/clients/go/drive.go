// Uses the generated client: drive <server> <key> <callback URL>. Ends with 1 where it isn't as described.
package main

import (
	"context"
	"encoding/json"
	"log"
	"net/http"
	"os"

	"tocsin.test/generated/tocsin"
)

func pointer[T any](value T) *T { return &value }

func main() {
	ctx, server, key, callbackUrl := context.Background(), os.Args[1], os.Args[2], os.Args[3]
	authorize := func(_ context.Context, request *http.Request) error {
		request.Header.Set("authorization", "Bearer "+key)
		return nil
	}
	client, err := tocsin.NewClientWithResponses(server, tocsin.WithRequestEditorFn(authorize))
	if err != nil {
		log.Fatal(err)
	}

	created, err := client.CreateTimerWithResponse(ctx, &tocsin.CreateTimerParams{}, tocsin.CreateTimer{
		Namespace:              "default",
		Id:                     "go-kept",
		CallbackUrl:            callbackUrl,
		Delay:                  pointer("24h"),
		Payload:                map[string]any{"order": 17},
		Method:                 pointer(tocsin.CallbackMethodPUT),
		Headers:                &map[string]string{"x-shop": "eu"},
		RetryPolicy:            &tocsin.RetryPolicy{MaxAttempts: pointer(7), InitialInterval: pointer("7s")},
		CallbackTimeoutSeconds: pointer(33.5),
		Tags:                   &[]string{"before"},
	})
	if err != nil || created.JSON200 == nil {
		log.Fatalf("create: %v %s", err, created.Body)
	}

	change := tocsin.UpdateTimer{Namespace: "default", TimerId: "go-kept", Tags: &[]string{"after"}}
	sent, err := json.Marshal(change)
	if err != nil || string(sent) != `{"namespace":"default","tags":["after"],"timerId":"go-kept"}` {
		log.Fatalf("update would send %s", sent)
	}
	changed, err := client.UpdateTimerWithResponse(ctx, change)
	if err != nil || changed.JSON200 == nil || changed.JSON200.Status != tocsin.TimerStatusPending {
		log.Fatalf("update: %v %s", err, changed.Body)
	}

	listed, err := client.ListTimersWithResponse(ctx, tocsin.ListTimers{
		Namespace: "default",
		Status:    &[]tocsin.TimerStatus{tocsin.TimerStatusPending},
		Tags:      &[]string{"after"},
		IdPrefix:  pointer("go-"),
	})
	if err != nil || listed.JSON200 == nil || len(listed.JSON200.Timers) != 1 || listed.JSON200.Timers[0].Id != "go-kept" {
		log.Fatalf("list: %v %s", err, listed.Body)
	}

	namespaces, err := client.ListNamespacesWithResponse(ctx, tocsin.ListNamespaces{})
	if err != nil || namespaces.JSON200 == nil || len(namespaces.JSON200.Namespaces) == 0 {
		log.Fatalf("namespaces: %v %s", err, namespaces.Body)
	}

	missed, err := client.GetTimerWithResponse(ctx, tocsin.TimerName{Namespace: "default", TimerId: "go-nobody"})
	if err != nil || missed.StatusCode() != http.StatusNotFound || missed.ApplicationproblemJSON404 == nil ||
		missed.ApplicationproblemJSON404.Error != tocsin.TIMERNOTFOUND {
		log.Fatalf("get of a timer that isn't there: %v %s", err, missed.Body)
	}

	fired, err := client.CreateTimerWithResponse(ctx, &tocsin.CreateTimerParams{}, tocsin.CreateTimer{
		Namespace: "default", Id: "go-fired", CallbackUrl: callbackUrl, Delay: pointer("50ms"),
		Payload: map[string]any{"by": "go"},
	})
	if err != nil || fired.JSON200 == nil {
		log.Fatalf("create: %v %s", err, fired.Body)
	}
}
