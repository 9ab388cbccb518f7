// Command bench measures a one-machine server with a real agent, from outside: it starts
// bin/slipway on an empty data directory, deploys the weather example from a git repository
// with all its delays set to zero, and prints the measurements. The load generator shares the
// machine with the server and the agent, so the figures describe all three together. Run it
// with `make bench`. `make bench-overhead` compares it with the framework's own servers.
//
// With -lambda it measures the AWS stack on this machine instead: the built functions by
// themselves, and then bin/slipway-local, which serves them. Run that with `make bench-lambda`.
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
	stack := flag.Bool("lambda", false, "measure the AWS stack: the functions as processes")
	local := flag.String("slipway-local", "bin/slipway-local", "the program that serves the AWS stack")
	functions := flag.String("functions", "build", "directory of the built functions")
	only := flag.String("only", "", "make only these measurements, as names with commas: threads, runs, interrupts, state, long, history, streams, protocols, endurance, deployments, hostile, overhead (only if it is named); with -lambda functions, way, cold, waiting")
	profile := flag.String("profile", "", "file that a profile of the one-machine server's processor time since its last start is written to")
	seconds := flag.Int("seconds", 5, "how long each load goes on")
	hostile := flag.Bool("hostile-agent", false, "be the agent of the measurement hostile, which the server starts")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	duration := time.Duration(*seconds) * time.Second
	var err error
	switch {
	case *hostile:
		err = serveHostileAgent()
	case *stack:
		err = stackBench{binary: *binary, local: *local, functions: *functions, agent: *agent, only: *only, duration: duration}.run(ctx)
	default:
		err = oneMachine{binary: *binary, agent: *agent, only: *only, profile: *profile, duration: duration}.run(ctx)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench: "+err.Error())
		os.Exit(1)
	}
}
