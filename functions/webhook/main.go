// Command webhook makes the attempts to send messages to webhooks. The state machine webhook
// invokes it.
package main

import (
	"github.com/slipway-run/slipway/internal/host/lambdahost"
	"github.com/slipway-run/slipway/internal/host/stack"
)

func main() { lambdahost.Start(stack.Function(open)) }

func open(s *stack.Stack) (lambdahost.Function, error) {
	s.Patient = true
	return lambdahost.Task(s.Webhooks().Task, s.Log), nil
}
