module example.com/orders

go 1.23.0

require (
	github.com/ncruces/go-sqlite3 v0.28.0
	tocsin.dev/go v0.0.0
)

require (
	github.com/ncruces/julianday v1.0.0 // indirect
	github.com/tetratelabs/wazero v1.9.0 // indirect
	golang.org/x/sys v0.35.0 // indirect
)

replace tocsin.dev/go => ../../../sdks/go
