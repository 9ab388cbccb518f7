package cipher

import (
	"encoding/json"
	"strings"

	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// field is a part of a body that is one value for the handlers of JSON.
type field struct {
	name string
	// members are the body's members in the value, which is an object. If there is one member of
	// any name, the value is that member's own. No members stand for the whole body.
	members []string
}

func (f field) isMember() bool { return len(f.members) == 1 }

// layout says what the items of a kind hold.
type layout struct {
	// model is the framework's name of the kind, rest its name of everything that is in no field.
	model, rest string
	fields      []field
	// attrs are the attributes with content.
	attrs []string
	// plain says that the items have no contents.
	plain bool
}

var (
	ofThread     = layout{model: "thread", rest: "values", fields: []field{{"metadata", []string{"metadata"}}}}
	ofRun        = layout{model: "run", rest: "kwargs", attrs: []string{"failure", "refusal", "interrupts"}, fields: []field{{"metadata", []string{"metadata"}}, {"kwargs", []string{"input", "command", "config", "context"}}}}
	ofEvents     = layout{model: "run", rest: "events"}
	ofCheckpoint = layout{model: "checkpoint", rest: "values"}
	ofAssistant  = layout{model: "assistant", rest: "values", fields: []field{{"metadata", []string{"metadata"}}, {"config", []string{"config"}}, {"context", []string{"context"}}}}
	ofCron       = layout{model: "cron", rest: "payload", fields: []field{{"metadata", []string{"metadata"}}, {"payload", []string{"request"}}}}
	ofItem       = layout{model: "store", rest: "value", fields: []field{{"value", nil}}}
	ofVectors    = layout{model: "store", rest: "vectors"}
	ofTTL        = layout{plain: true}
	ofMessage    = layout{model: "run", rest: "webhook"}
	ofAnswer     = layout{model: "run", rest: "answer"}
)

// inThread are the layouts of the kinds in a thread's partition that are not checkpoints.
var inThread = map[string]layout{"THREAD": ofThread, "RUN": ofRun, "REQ": ofRun, "EV": ofEvents, "TTL": ofTTL}

// layoutOf returns the layout of an item. An item of a kind that is not known here is opaque.
func layoutOf(part keys.Part, key table.Key) layout {
	kind, _, _ := strings.Cut(key.SK, "#")
	switch {
	case part == keys.OfAssistants:
		return ofAssistant
	case part == keys.OfCrons:
		return ofCron
	case part == keys.OfStore && kind == "I":
		return ofItem
	case part == keys.OfStore:
		return ofVectors
	}
	if known, ok := inThread[kind]; ok {
		return known
	}
	return ofCheckpoint
}

// take removes a field from the members of a body, and returns its value, nil if there is none.
func (f field) take(members map[string]json.RawMessage) (json.RawMessage, error) {
	if f.isMember() {
		value := members[f.members[0]]
		delete(members, f.members[0])
		return value, nil
	}
	taken := map[string]json.RawMessage{}
	for _, name := range f.members {
		if value, ok := members[name]; ok {
			taken[name] = value
			delete(members, name)
		}
	}
	if len(taken) == 0 {
		return nil, nil
	}
	return json.Marshal(taken)
}

// put adds the value of a field to the members of a body.
func (f field) put(members map[string]json.RawMessage, value json.RawMessage) error {
	if f.isMember() {
		members[f.members[0]] = value
		return nil
	}
	return json.Unmarshal(value, &members)
}
