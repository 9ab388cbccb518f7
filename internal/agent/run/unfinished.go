package run

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/seam/graph"
)

// Unfinished is a message that was shown by a step under way: its text is kept, marked incomplete,
// when the run is interrupted.
type Unfinished struct {
	// ID is the message's, Attempt the one that shows it.
	ID      string `json:"id"`
	Attempt int64  `json:"attempt"`
	// Node is the graph's node that the text is to be kept as the update of, "" when the agent did
	// not say.
	Node string `json:"node,omitempty"`
	// From is a position before its first chunk.
	From int64 `json:"from"`
}

// mostUnfinished bounds the messages that a run remembers as unfinished, and longestID their ids in
// bytes, since the run's item holds them. Older ones are forgotten first.
const (
	mostUnfinished = 256
	longestID      = 256
)

// unfinished returns what the run remembers of a message that an attempt has shown.
func (r *Run) unfinished(id string, attempt int64) (Unfinished, bool) {
	i := slices.IndexFunc(r.Unfinished, func(u Unfinished) bool { return u.ID == id && u.Attempt == attempt })
	if i < 0 {
		return Unfinished{}, false
	}
	return r.Unfinished[i], true
}

// leftFrom returns the position before everything that the run has shown and that may have to be
// folded into the state, and whether there is anything.
func (r *Run) leftFrom() (from int64, found bool) {
	if r.Unfolded != 0 {
		from, found = r.Unfolded, true
	}
	for _, message := range r.Unfinished {
		if !found || message.From < from {
			from, found = message.From, true
		}
	}
	return from, found
}

// isMessages reports whether events of this name hold chunks of messages: the graph's own, or those
// of a subgraph.
func isMessages(name string) bool {
	return name == EventMessages || strings.HasPrefix(name, EventMessages+"|")
}

// Unfinished takes the agent's own word on which of its messages are unfinished, in the place of
// what it said before. From then on the agent alone decides.
func (a *Attempt) Unfinished(messages []graph.Unfinished) error {
	a.tellsUnfinished = true
	wanted := map[string]bool{}
	for _, message := range messages {
		wanted[message.ID] = true
	}
	a.forget(func(u Unfinished) bool { return u.Attempt == a.Run.Attempt && !wanted[u.ID] })
	for _, message := range messages {
		a.remember(message.ID, message.Node, a.Run.Position)
	}
	return nil
}

// beginMessage remembers the message of a chunk, of an agent that does not tell which are
// unfinished. Where the state has no messages, the text belongs to no channel of it.
func (a *Attempt) beginMessage(chunk json.RawMessage, before int64) {
	if a.tellsUnfinished || !a.State.Values.Holds(state.Messages) {
		return
	}
	if id := state.ChunkOf(chunk); id != "" {
		if _, known := a.Run.unfinished(id, a.Run.Attempt); !known {
			a.remember(id, state.NodeOf(chunk), before)
		}
	}
}

func (a *Attempt) remember(id, node string, from int64) {
	if _, known := a.Run.unfinished(id, a.Run.Attempt); known || id == "" || len(id) > longestID || len(node) > longestID {
		return
	}
	if len(a.Run.Unfinished) >= mostUnfinished {
		a.Run.Unfinished = slices.Delete(a.Run.Unfinished, 0, 1)
	}
	a.Run.Unfinished = append(a.Run.Unfinished, Unfinished{ID: id, Attempt: a.Run.Attempt, Node: node, From: from})
	a.unfinishedChanged = true
}

// forget takes the messages of which done is true from those that are unfinished.
func (a *Attempt) forget(done func(Unfinished) bool) {
	before := len(a.Run.Unfinished)
	a.Run.Unfinished = slices.DeleteFunc(a.Run.Unfinished, done)
	a.unfinishedChanged = a.unfinishedChanged || len(a.Run.Unfinished) < before
}

// finishNodes forgets the messages of nodes that have finished, of an agent that does not tell
// which are unfinished: their updates say what is kept. A message of which the agent has not named
// the node stays until the state holds it.
func (a *Attempt) finishNodes(updates []state.Member) {
	if a.tellsUnfinished {
		return
	}
	a.forget(func(u Unfinished) bool {
		return u.Node != "" && slices.ContainsFunc(updates, func(update state.Member) bool { return update.Name == u.Node })
	})
}

// finishAll forgets all messages, of an agent that does not tell which are unfinished, and has said
// what the whole state is.
func (a *Attempt) finishAll() {
	if !a.tellsUnfinished {
		a.forget(func(Unfinished) bool { return true })
	}
}

// closeMessages forgets the shown messages that the state holds now, and, once this attempt has
// written a message in their place, those of earlier attempts.
func (a *Attempt) closeMessages(wrote bool) {
	a.forget(func(u Unfinished) bool {
		return a.State.Values.Has(u.ID) || (wrote && u.Attempt < a.Run.Attempt)
	})
}
