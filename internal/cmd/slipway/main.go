// Command slipway is Slipway's command line: `slipway serve` runs the one-machine server,
// `slipway deploy` and the other commands of package cli are clients of a server, `slipway
// demo` shows the main job on a server, and `slipway workspaces`, `members`, `trust`, `keys`,
// `secrets` and `audit` manage the access to a server or a stack, and its keys.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/slipway-run/slipway/internal/cmd/exit"
	"github.com/slipway-run/slipway/internal/cmd/output"
)

func main() { os.Exit(run()) }

// run runs the command line and returns the exit code.
func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	err := newRoot().ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	// An error may quote an agent's text, which must not move the cursor.
	fmt.Fprintln(os.Stderr, "slipway: "+output.Plain(err.Error()))
	return exit.Code(err)
}
