package run

import (
	"encoding/json"
	"slices"

	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/agent/thread"
)

// answers returns the ids of the questions that a new run of a thread answers. The command names
// them in an object, or answers all of them with any other value. A run that goes on from an
// earlier checkpoint passes over the questions, and of a busy thread they are not known yet.
func answers(t thread.Thread, request Request) []string {
	var command struct{ Resume json.RawMessage }
	if len(request.Command) == 0 || json.Unmarshal(request.Command, &command) != nil || len(command.Resume) == 0 || string(command.Resume) == "null" {
		return nil
	}
	if t.Lock.Busy || (request.Fork != nil && request.Fork.Number != t.Lock.Checkpoint) {
		return nil
	}
	asked := thread.QuestionIDs(t.Interrupts)
	if !state.IsObject(command.Resume) {
		return asked
	}
	members, err := state.Members(command.Resume)
	if err != nil || len(members) == 0 {
		return asked
	}
	named := make([]string, len(members))
	for i, member := range members {
		if named[i] = member.Name; !slices.Contains(asked, member.Name) {
			return asked
		}
	}
	return named
}
