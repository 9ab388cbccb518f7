// Command slipway-local runs the AWS stack on one machine: `slipway-local lambda` serves
// template.yaml with the built functions as processes, `slipway-local sam` with the built functions
// in containers of the SAM CLI.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/slipway-run/slipway/internal/cmd/exit"
)

func main() { os.Exit(run()) }

// run runs the command line and returns the exit code.
func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	err := newRoot().ExecuteContext(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "slipway-local: "+err.Error())
	}
	return exit.Code(err)
}
