package run

import (
	"encoding/json"
	"slices"

	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/base/fault"
)

// resumeOf returns the answer in a request's command, nil if the command has no answer.
func resumeOf(request Request) json.RawMessage {
	var command struct{ Resume json.RawMessage }
	if json.Unmarshal(request.Command, &command) != nil {
		return nil
	}
	return state.Present(command.Resume)
}

// checkAnswer refuses a request whose command answers a question that its thread does not wait on,
// if the request is strict. A run that goes on from an earlier checkpoint meets questions that only
// its graph knows.
func checkAnswer(t thread.Thread, request Request) error {
	resume := resumeOf(request)
	if !request.StrictResume || request.Fork != nil || resume == nil {
		return nil
	}
	questions := openQuestions(t)
	if len(questions) == 0 {
		return fault.New(fault.Conflict, "The thread does not wait for an answer.")
	}
	members, err := state.Members(resume)
	if err != nil {
		return nil //nolint:nilerr // the answer is no object, so it names no question
	}
	for _, member := range members {
		if !slices.Contains(questions, member.Name) {
			return fault.New(fault.Conflict, "The thread does not wait for an answer to the interrupt %.64q.", member.Name)
		}
	}
	return nil
}

// openQuestions returns the ids of the questions that a thread waits on. The questions of a busy
// thread are not known yet.
func openQuestions(t thread.Thread) []string {
	if t.Lock.Busy {
		return nil
	}
	return thread.QuestionIDs(t.Interrupts)
}

// answers returns the ids of the questions that a new run of a thread answers. The command
// names these questions in an object, or answers all of them with any other value. A run that
// goes on from an earlier checkpoint passes over the questions.
func answers(t thread.Thread, request Request) []string {
	resume := resumeOf(request)
	if resume == nil || (request.Fork != nil && request.Fork.Number != t.Lock.Checkpoint) {
		return nil
	}
	questions := openQuestions(t)
	members, err := state.Members(resume)
	if err != nil || len(members) == 0 {
		return questions
	}
	named := make([]string, len(members))
	for i, member := range members {
		if named[i] = member.Name; !slices.Contains(questions, member.Name) {
			return questions
		}
	}
	return named
}
