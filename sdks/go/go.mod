module tocsin.dev/go

go 1.23
