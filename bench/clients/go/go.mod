module tocsin.dev/go/bench

go 1.23

require tocsin.dev/go v0.0.0

replace tocsin.dev/go => ../../../sdks/go
