package agentserver

import (
	"encoding/json"
	"errors"
	"slices"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/base/fault"
)

// runInput checks the input in a request.
func runInput(raw json.RawMessage) (run.Input, error) {
	input, err := run.NewInput(raw)
	if err != nil {
		return input, fault.Shape(fault.Detail{Loc: []any{"body", "input"}, Msg: err.Error(), Type: "value_error"})
	}
	return input, nil
}

// graphCommands are the members of a command to a graph that clients send. A graph carries out the
// first three; the other members say what kind of command the client has.
var graphCommands = []string{"update", "resume", "goto", "graph", "lg_name"}

// runCommand refuses a command to a graph that has members, but no known member: the run would do
// something else than the client wants. Clients send commands without members, too.
func runCommand(raw json.RawMessage) (json.RawMessage, error) {
	command := state.Present(raw)
	if command == nil {
		return nil, nil
	}
	members, err := state.Members(command)
	known := func(m state.Member) bool { return slices.Contains(graphCommands, m.Name) }
	if err != nil || (len(members) > 0 && !slices.ContainsFunc(members, known)) {
		return nil, fault.Shape(fault.Detail{
			Loc: []any{"body", "command"}, Type: "value_error", Msg: "Value error, a command has update, resume or goto",
		})
	}
	return command, nil
}

// inBatch puts the index of a body of a batch into the places of its problems.
func inBatch(i int, err error) error {
	wrong, ok := errors.AsType[*fault.Error](err)
	if !ok || len(wrong.Details) == 0 {
		return err
	}
	var details []fault.Detail
	for _, detail := range wrong.Details {
		if len(detail.Loc) > 0 && detail.Loc[0] == "body" {
			detail.Loc = slices.Insert(slices.Clone(detail.Loc), 1, any(i))
		}
		details = append(details, detail)
	}
	return fault.Shape(details...)
}

// check checks the parameters of a command for what the contract requires of a request to run: its
// endpoint takes any parameters.
func (p startParams) check() error {
	contract, err := loadContract()
	if err != nil {
		return err
	}
	return contract.CheckPart("RunCreate", object(map[string]any{
		"assistant_id": p.AssistantID, "command": state.OrNull(p.command), "config": state.OrNull(p.Config), "metadata": state.OrNull(p.Metadata),
		"framework_tracer": state.OrNull(p.tracer),
	}), "params")
}
