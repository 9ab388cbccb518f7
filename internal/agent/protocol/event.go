package protocol

import (
	"encoding/json"
	"strconv"
	"strings"

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

// Indexes of events at one position. Numbers stay below 2^53, up to which clients count
// exactly, for positions below 2^33.
const (
	seqBits = 20
	closing = 0xE0000
	ended   = 0xF0000
	last    = 0xFFFFF
)

// Seq returns the number of an event at a position of the thread.
func Seq(position int64, index int) int64 { return position<<seqBits | int64(min(index, last)) }

// SeqOf returns the number of the last event at a reader's position, or a number between this
// event and the next event.
func SeqOf(position run.ReaderPosition) int64 {
	switch {
	case position.Ended, position.Early > 0:
		return Seq(position.Position, ended+2*position.Early)
	case position.Position > 0:
		return Seq(position.Position, closing-1)
	}
	return 0
}

// ReaderPositionOf returns the reader's position to which a number belongs. Runs that never began
// are read again.
func ReaderPositionOf(seq int64) run.ReaderPosition {
	return run.ReaderPosition{Position: seq >> seqBits, Ended: seq&last >= ended}
}

// Event is an event of the protocol.
type Event struct {
	Seq int64
	// ID is unique: it is never used again.
	ID     string
	Method string
	// Namespace is the path of the subgraph, empty for the root graph.
	Namespace []string
	// Node is the node that made the event, "" if no node made it.
	Node string
	// At is the time at which the event was made, in milliseconds.
	At   int64
	Data json.RawMessage
	// Name is the name that the writer of a custom event gave to it.
	Name string
}

// EndsRun reports whether the event is the last event of a run.
func (e Event) EndsRun() bool { return e.Seq&last >= ended }

// envelope is approximately how many bytes an event takes in addition to its data.
const envelope = 256

// Size is approximately how many bytes Append appends.
func (e Event) Size() int { return len(e.Data) + envelope }

// Append appends the event in JSON, as clients get it. It is written by hand, because there is
// an event for each token. Ids and methods contain no characters that JSON would have to escape.
func (e Event) Append(out []byte) []byte {
	out = append(out, `{"type":"event","event_id":"`...)
	out = append(out, e.ID...)
	out = append(out, `","seq":`...)
	out = strconv.AppendInt(out, e.Seq, 10)
	out = append(out, `,"method":"`...)
	out = append(out, e.Method...)
	out = append(out, `","params":{"namespace":[`...)
	for i, segment := range e.Namespace {
		if i > 0 {
			out = append(out, ',')
		}
		out = appendName(out, segment)
	}
	out = append(out, `],"timestamp":`...)
	out = strconv.AppendInt(out, e.At, 10)
	if e.Node != "" {
		out = append(out, `,"node":`...)
		out = appendName(out, e.Node)
	}
	out = append(out, `,"data":`...)
	out = append(out, state.OrNull(e.Data)...)
	return append(out, `}}`...)
}

// appendName appends the name of a node in JSON. Almost all names contain nothing to escape.
func appendName(out []byte, name string) []byte {
	if strings.ContainsFunc(name, isEscaped) {
		return append(out, record.Encode(name)...)
	}
	return append(append(append(out, '"'), name...), '"')
}

// isEscaped reports whether a character may be written in another way in JSON.
func isEscaped(char rune) bool {
	return char < ' ' || char > '~' || strings.ContainsRune(`"\<>&`, char)
}

func eventID(run string, seq int64) string {
	var room [64]byte
	return string(strconv.AppendInt(append(append(room[:0], run...), ':'), seq, 10))
}
