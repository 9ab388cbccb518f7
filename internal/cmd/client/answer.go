package client

import (
	"crypto/rand"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/base/sse"
	"github.com/slipway-run/slipway/internal/cmd/output"
)

// Part is the next part of an answer that is being written.
type Part struct {
	// Token is a piece of the message with the id, Message is a message that a step has added.
	// The content of a Message is "" if pieces of it were read before.
	Token, ID string
	Message   *output.Message
	// Failure is the reason why the run failed.
	Failure string
}

// Answer reads the answer of a run from the run's events, whose stream modes are updates and
// messages-tuple.
type Answer struct {
	// begun holds the ids of messages of which pieces were read.
	begun map[string]bool
}

// NewAnswer returns the answer of a run of which no event was read.
func NewAnswer() Answer { return Answer{begun: map[string]bool{}} }

// Read calls hear with the parts in an event. The names of a subgraph's events carry its
// namespace.
func (a Answer) Read(event sse.Event, hear func(Part)) error {
	name, _, _ := strings.Cut(event.Name, "|")
	switch name {
	case "messages":
		return a.token(event.Data, hear)
	case "updates":
		return a.update(event.Data, hear)
	case "error":
		var failed struct{ Error, Message string }
		if err := json.Unmarshal(event.Data, &failed); err != nil {
			return err
		}
		hear(Part{Failure: failed.Error + ": " + failed.Message})
	}
	return nil
}

func (a Answer) token(data []byte, hear func(Part)) error {
	var pair [2]json.RawMessage
	if err := json.Unmarshal(data, &pair); err != nil {
		return err
	}
	var piece output.Message
	if err := json.Unmarshal(pair[0], &piece); err != nil {
		return err
	}
	if piece.Content != "" {
		a.begun[piece.ID] = true
		hear(Part{Token: string(piece.Content), ID: piece.ID})
	}
	return nil
}

func (a Answer) update(data []byte, hear func(Part)) error {
	var nodes map[string]json.RawMessage
	if err := json.Unmarshal(data, &nodes); err != nil {
		return err
	}
	for _, node := range slices.Sorted(maps.Keys(nodes)) {
		// Events show updates as the node returned them: a message may have a role instead of a
		// type, or be a pair, and a single message needs no list.
		coerced, err := state.Coerce(nodes[node], rand.Text)
		if err != nil {
			continue // a node may update other values than messages
		}
		var delta struct {
			Messages []output.Message `json:"messages"`
		}
		if json.Unmarshal(coerced.JSON(), &delta) != nil {
			continue
		}
		for _, message := range delta.Messages {
			if a.begun[message.ID] {
				message.Content = ""
			}
			hear(Part{Message: &message})
		}
	}
	return nil
}
