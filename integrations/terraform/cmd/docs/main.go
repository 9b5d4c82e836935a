// Command docs writes the reference of the provider, as its schemas have it, to standard output.
package main

import (
	"context"
	"fmt"
	"log"

	"tocsin.dev/terraform-provider-tocsin/internal/provider"
)

func main() {
	text, err := page(context.Background(), provider.New())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(text)
}
