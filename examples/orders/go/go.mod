module example.com/orders

go 1.25.0

require (
	github.com/ncruces/go-sqlite3 v0.35.0
	tocsin.dev/go v0.0.0
)

require (
	github.com/ncruces/go-sqlite3-wasm/v3 v3.1.35302 // indirect
	github.com/ncruces/julianday v1.0.0 // indirect
	golang.org/x/sys v0.46.0 // indirect
)

replace tocsin.dev/go => ../../../sdks/go
