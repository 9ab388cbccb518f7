// Command webhook makes the attempts to send messages to webhooks. The state machine webhook
// invokes it.
package main

import (
	"log/slog"
	"os"

	"github.com/slipway-run/slipway/internal/host/lambdahost"
	"github.com/slipway-run/slipway/internal/host/stack"
)

func main() { lambdahost.Start(open) }

func open(log *slog.Logger) (lambdahost.Function, error) {
	s, err := stack.Open(os.Getenv, log, stack.NeedTable, stack.NeedKey)
	if err != nil {
		return nil, err
	}
	s.Patient = true
	return lambdahost.Task(s.Webhooks().Task, log), nil
}
