package protocol

import (
	"encoding/json"
	"strconv"

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

// Indexes of events at one position.
const (
	seqBits = 16
	closing = 0xF000
	ended   = 0xFF00
	last    = 0xFFFF
)

// Seq is the number of an event at a position of the thread.
func Seq(position int64, index int) int64 { return position<<seqBits | int64(min(index, last)) }

// Began is the number before the first event behind a position.
func Began(position int64) int64 { return Seq(position, closing-1) }

// Done is a number behind all events of the runs that ended at a position.
func Done(position int64) int64 { return Seq(position, last) }

// Position is the position of the log to which a number belongs, and whether the run that ended
// there has ended for a reader who has this number.
func Position(seq int64) (position int64, isDone bool) {
	return seq >> seqBits, seq&last >= ended
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
	out = append(out, orNull(e.Data)...)
	return append(out, `}}`...)
}

func eventID(run string, seq int64) string { return run + ":" + strconv.FormatInt(seq, 10) }

func lifecycleID(run, event string) string { return "synth:" + run + ":" + event }
