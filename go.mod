module github.com/slipway-run/slipway

go 1.26.0

require github.com/google/uuid v1.6.0 // indirect
