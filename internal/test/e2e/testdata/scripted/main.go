// Command scripted is an agent that follows the script of each run. A file input.json beside it is
// the schema of its input.
package main

import (
	"log"
	"net/http"
	"os"
	"time"

	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/seam/graph/graphtest"
)

func main() {
	agent := graphtest.NewAgent(nil, os.Getenv("SLIPWAY_INVOKE_TOKEN"))
	if schema, err := os.ReadFile("input.json"); err == nil {
		agent.Describe = func(graph.Invocation) (graph.GraphDescription, bool) {
			return graph.GraphDescription{InputSchema: schema}, true
		}
	}
	server := &http.Server{
		Addr: "127.0.0.1:" + os.Getenv("PORT"), ReadHeaderTimeout: time.Minute, Handler: agent,
	}
	log.Fatal(server.ListenAndServe())
}
