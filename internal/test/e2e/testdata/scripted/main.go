// Command scripted is an agent that follows the script of each run.
package main

import (
	"log"
	"net/http"
	"os"
	"time"

	"github.com/slipway-run/slipway/internal/seam/graph/graphtest"
)

func main() {
	server := &http.Server{
		Addr: "127.0.0.1:" + os.Getenv("PORT"), ReadHeaderTimeout: time.Minute, Handler: graphtest.NewAgent(nil, os.Getenv("SLIPWAY_INVOKE_TOKEN")),
	}
	log.Fatal(server.ListenAndServe())
}
