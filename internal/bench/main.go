// Command bench measures a one-machine server with a real agent, from outside: it starts bin/slipway on an empty data directory, deploys the weather example
// from a git repository with all its delays set to zero, and prints what it measured. The load generator shares the machine with the server and the agent, so figures are
// those of the whole. Run it with `make bench`.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"
)

func main() {
	binary := flag.String("slipway", "bin/slipway", "the server's binary")
	agent := flag.String("agent", "infra/examples/weather", "directory of the agent")
	seconds := flag.Int("seconds", 5, "how long each load goes on")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *binary, *agent, time.Duration(*seconds)*time.Second)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench: "+err.Error())
		os.Exit(1)
	}
}
