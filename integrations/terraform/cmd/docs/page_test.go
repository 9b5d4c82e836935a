package main

import (
	"os"
	"testing"

	"tocsin.dev/terraform-provider-tocsin/internal/provider"
)

func TestTheReferenceIsUpToDate(t *testing.T) {
	wanted, err := page(t.Context(), provider.New())
	if err != nil {
		t.Fatal(err)
	}
	found, err := os.ReadFile("../../../../docs/reference/terraform.md")
	if err != nil || string(found) != wanted {
		t.Error("docs/reference/terraform.md is out of date; run `make terraform-docs`", err)
	}
}
