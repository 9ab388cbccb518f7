// Command docs serves the documentation page of the control plane and of each agent server. API
// Gateway invokes it for all callers. It is separate from the other functions because the page
// is large.
package main

import (
	"log/slog"

	"github.com/slipway-run/slipway/internal/api/docs"
	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/host/lambdahost"
)

func main() { lambdahost.Start(open) }

func open(log *slog.Logger) (lambdahost.Function, error) {
	mux := web.NewMux(log)
	docs.Register(mux)
	return lambdahost.Buffered(mux, log), nil
}
