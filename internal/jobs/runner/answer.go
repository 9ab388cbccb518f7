package runner

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/seam/graph"
)

// answer passes an agent's events to an attempt.
type answer struct {
	attempt    *run.Attempt
	failure    *run.Failure
	paused     bool
	interrupts thread.Questions
	// bytes is how many bytes the agent has sent. grow waits for room for the state, which has
	// room for what it was after the first grown bytes.
	bytes, grown int64
	grow         func() error
}

// handle handles one event. Events of subgraphs, whose names have a namespace, are only shown,
// to readers that asked for them: the parent's update holds the results of the subgraph. Only
// the server itself says which run an answer belongs to, and that a run is done: readers would
// believe an agent that says so of another run.
func (a *answer) handle(event graph.Event) error {
	kind, _, subgraph := strings.Cut(event.Name, "|")
	if kind == run.EventMetadata || subgraph && !a.attempt.Run.StreamSubgraphs {
		return nil
	}
	var err error
	switch event.Name {
	case graph.EventCheckpoint:
		var c graph.Checkpoint
		if c, err = checkpointOf(event.Data); err == nil {
			err = a.attempt.Checkpoint(c)
		}
	case graph.EventWrites:
		err = decoded(event.Data, a.attempt.Writes)
	case graph.EventUnfinished:
		err = decoded(event.Data, func(messages []graph.Unfinished) error {
			a.attempt.Unfinished(messages)
			return nil
		})
	case graph.EventUpdates:
		err = a.attempt.Update(event.Name, event.Data)
	case graph.EventValues:
		err = a.attempt.Values(event.Data)
	case graph.EventError:
		a.failure = failure(event.Data)
	case graph.EventInterrupt:
		err = a.pause(event.Data)
	default:
		a.attempt.Show(event.Name, event.Data)
	}
	if err != nil {
		return &failedError{run.FailureInvalidUpdate, "The agent's update cannot be applied: " + err.Error(), err}
	}
	return nil
}

// decoded passes the data of an event to take.
func decoded[T any](data json.RawMessage, take func(T) error) error {
	var value T
	if err := json.Unmarshal(data, &value); err != nil {
		return err
	}
	return take(value)
}

// maxMessage is how many bytes the message of a failure may have: it is stored on the run
// itself, which must stay small.
const maxMessage = 16 << 10

func failure(data json.RawMessage) *run.Failure {
	f := new(run.Failure)
	if err := json.Unmarshal(data, f); err != nil || f.Name == "" {
		f = &run.Failure{Name: "Error", Message: string(data)}
	}
	f.Name, f.Message = beginning(f.Name, 256), beginning(f.Message, maxMessage)
	return f
}

// beginning cuts a text to a number of bytes, at the end of a character.
func beginning(text string, size int) string {
	if len(text) <= size {
		return text
	}
	return strings.ToValidUTF8(text[:size], "") + " ..."
}

// pause notes the questions of a graph that waits for a person.
func (a *answer) pause(data json.RawMessage) error {
	var questions []json.RawMessage
	if err := json.Unmarshal(data, &questions); err != nil {
		return fmt.Errorf("interrupt is not a list: %w", err)
	}
	for _, question := range questions {
		id, err := thread.QuestionID(question)
		if err == nil {
			err = a.interrupts.Add(id, question)
		}
		if err != nil {
			return err
		}
	}
	a.paused = true
	a.attempt.ShowQuestions(questions)
	return nil
}

func (a *answer) outcome() run.Outcome {
	if a.failure != nil {
		return run.Outcome{Status: run.Error, Failure: a.failure, ByAgent: true}
	}
	if !a.paused {
		return run.Outcome{Status: run.Success}
	}
	return run.Outcome{Status: run.Success, Interrupts: state.OrEmpty(a.interrupts.JSON())}
}
