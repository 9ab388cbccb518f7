package run

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/seam/graph"
)

// Seal keeps the text of a step under way only if the text goes to the root graph's channel
// "messages", directly or through the "messages" of subgraphs. Only the runtime of the agent knows
// the graph, so the agent lists these messages in "unfinished" events (Attempt.Unfinished). For an
// agent that sends no list, Seal keeps the messages of a node from their first chunk to the node's
// next update or the next "values". Seal does so only while the state has messages. After an
// agent's own error (Outcome.ByAgent), Seal keeps no unfinished text.

// Unfinished is a message that a step under way has shown. Its text is kept, marked
// incomplete, when the run is interrupted.
type Unfinished struct {
	// ID is the id of the message, Attempt the attempt that shows it.
	ID      string `json:"id"`
	Attempt int64  `json:"attempt"`
	// Node is the graph's node under whose name the text is kept as an update, "" if the agent
	// did not name the node.
	Node string `json:"node,omitempty"`
	// From is a position before the message's first chunk.
	From int64 `json:"from"`
}

// mostUnfinished bounds the messages that a run remembers as unfinished, and longestID their
// ids in bytes, because the run's item holds them. The oldest messages are forgotten first.
const (
	mostUnfinished = 256
	longestID      = 256
)

// unfinished returns the stored data of a message that an attempt has shown.
func (r *Run) unfinished(id string, attempt int64) (Unfinished, bool) {
	i := slices.IndexFunc(r.Unfinished, func(u Unfinished) bool { return u.ID == id && u.Attempt == attempt })
	if i < 0 {
		return Unfinished{}, false
	}
	return r.Unfinished[i], true
}

// leftoversFrom returns the position before everything that the run has shown and that may have to
// be folded into the state. found is false if there is nothing to fold.
func (r *Run) leftoversFrom() (from int64, found bool) {
	if r.UncheckpointedFrom != 0 {
		from, found = r.UncheckpointedFrom, true
	}
	for _, message := range r.Unfinished {
		if !found || message.From < from {
			from, found = message.From, true
		}
	}
	return from, found
}

// isMessages reports whether events of this name hold chunks of messages: messages of the root
// graph, or of a subgraph.
func isMessages(name string) bool {
	return name == EventMessages || strings.HasPrefix(name, EventMessages+"|")
}

// Unfinished takes the agent's own list of its unfinished messages. The list replaces the
// agent's previous list. From then on the agent alone decides which messages are unfinished.
func (a *Attempt) Unfinished(messages []graph.Unfinished) {
	a.reportsUnfinished = true
	wanted := map[string]bool{}
	for _, message := range messages {
		wanted[message.ID] = true
	}
	a.forget(func(u Unfinished) bool { return u.Attempt == a.Run.Attempt && !wanted[u.ID] })
	for _, message := range messages {
		a.remember(message.ID, message.Node, a.Run.Position)
	}
}

// beginMessage remembers the message of a chunk if the agent does not report its unfinished
// messages. If the state has no messages, the text belongs to no channel of the state.
func (d *draft) beginMessage(chunk json.RawMessage, before int64) {
	if d.reportsUnfinished || !d.Log.Values.Holds(state.Messages) {
		return
	}
	if id := state.ChunkOf(chunk); id != "" {
		if _, known := d.Run.unfinished(id, d.Run.Attempt); !known {
			d.remember(id, state.NodeOf(chunk), before)
		}
	}
}

func (d *draft) remember(id, node string, from int64) {
	if _, known := d.Run.unfinished(id, d.Run.Attempt); known || id == "" || len(id) > longestID || len(node) > longestID {
		return
	}
	if len(d.Run.Unfinished) >= mostUnfinished {
		d.Run.Unfinished = d.Run.Unfinished[1:]
	}
	d.Run.Unfinished = append(d.Run.Unfinished, Unfinished{ID: id, Attempt: d.Run.Attempt, Node: node, From: from})
	d.unfinishedChanged = true
}

// forget removes the messages for which done returns true from the unfinished messages.
func (d *draft) forget(done func(Unfinished) bool) {
	if slices.ContainsFunc(d.Run.Unfinished, done) {
		d.Run.Unfinished = slices.DeleteFunc(slices.Clone(d.Run.Unfinished), done)
		d.unfinishedChanged = true
	}
}

// finishNodes forgets the messages of nodes that have finished if the agent does not report
// its unfinished messages: the updates of the nodes say which messages are kept. A message
// whose node the agent has not named stays until the state holds it.
func (d *draft) finishNodes(updates []nodeUpdate) {
	if d.reportsUnfinished {
		return
	}
	d.forget(func(u Unfinished) bool {
		return u.Node != "" && slices.ContainsFunc(updates, func(update nodeUpdate) bool { return update.Name == u.Node })
	})
}

func everyMessage(Unfinished) bool { return true }

// closeMessages forgets the shown messages that the state holds now. Once this attempt has
// written a message in their place, it also forgets the messages of earlier attempts.
func (d *draft) closeMessages(wrote bool) {
	d.forget(func(u Unfinished) bool {
		return d.Log.Values.Has(u.ID) || (wrote && u.Attempt < d.Run.Attempt)
	})
}
