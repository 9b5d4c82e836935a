// Command terraform-provider-tocsin is the Terraform provider of Tocsin. Terraform starts it; people don't.
package main

import (
	"context"
	"log"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"

	"tocsin.dev/terraform-provider-tocsin/internal/provider"
)

func main() {
	options := providerserver.ServeOpts{Address: provider.Address}
	if err := providerserver.Serve(context.Background(), provider.New, options); err != nil {
		log.Fatal(err)
	}
}
