package protocol

import (
	"encoding/json"
	"strconv"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/record/record"
)

// Methods of events.
const (
	MethodLifecycle   = "lifecycle"
	MethodValues      = "values"
	MethodUpdates     = "updates"
	MethodCheckpoints = "checkpoints"
	MethodMessages    = "messages"
	MethodTools       = "tools"
	MethodTasks       = "tasks"
	MethodCustom      = "custom"
	MethodRequested   = "input.requested"
	MethodAnswered    = "input.answered"
)

// Indexes of events at one position. Numbers stay below 2^53, which clients count to exactly, for
// positions below 2^33.
const (
	seqBits = 20
	closing = 0xE0000
	ended   = 0xF0000
	last    = 0xFFFFF
)

// Seq is the number of an event at a position of the thread.
func Seq(position int64, index int) int64 { return position<<seqBits | int64(min(index, last)) }

// SeqOf is the number of the last event at a place, or a number between it and the next event.
func SeqOf(place run.ReaderPosition) int64 {
	switch {
	case place.Ended, place.Early > 0:
		return Seq(place.Position, ended+2*place.Early)
	case place.Position > 0:
		return Seq(place.Position, closing-1)
	}
	return 0
}

// PlaceOf is the place in the log to which a number belongs. Runs that never began are read again.
func PlaceOf(seq int64) run.ReaderPosition {
	return run.ReaderPosition{Position: seq >> seqBits, Ended: seq&last >= ended}
}

// Event is an event of the protocol.
type Event struct {
	Seq int64
	// ID is never used again.
	ID     string
	Method string
	// Namespace is the path of the subgraph, empty for the graph itself.
	Namespace []string
	// Node is the node that made the event, "" where none did.
	Node string
	// At is when it was made, in milliseconds.
	At   int64
	Data json.RawMessage
	// Name is, for a custom event, the name that its writer gave it.
	Name string
}

// envelope is about what an event takes beside its data, in bytes.
const envelope = 256

// JSON is the event as clients get it. It is written by hand, as there is an event for each token;
// ids and methods hold nothing that JSON would have to escape.
func (e Event) JSON() []byte {
	out := make([]byte, 0, len(e.Data)+envelope)
	out = append(out, `{"type":"event","event_id":"`...)
	out = append(out, e.ID...)
	out = append(out, `","seq":`...)
	out = strconv.AppendInt(out, e.Seq, 10)
	out = append(out, `,"method":"`...)
	out = append(out, e.Method...)
	out = append(out, `","params":{"namespace":`...)
	if len(e.Namespace) == 0 {
		out = append(out, `[]`...)
	} else {
		out = append(out, record.Encode(e.Namespace)...)
	}
	out = append(out, `,"timestamp":`...)
	out = strconv.AppendInt(out, e.At, 10)
	if e.Node != "" {
		out = append(out, `,"node":`...)
		out = append(out, record.Encode(e.Node)...)
	}
	out = append(out, `,"data":`...)
	out = append(out, state.OrNull(e.Data)...)
	return append(out, `}}`...)
}

func eventID(run string, seq int64) string { return run + ":" + strconv.FormatInt(seq, 10) }

func lifecycleID(run, event string) string { return "synth:" + run + ":" + event }
