package protocol_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/slipway-run/slipway/internal/agent/protocol"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestEventsAreJSON reads events back whose nodes and namespaces have any names.
func TestEventsAreJSON(t *testing.T) {
	t.Parallel()
	name := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"model", `"`, `\`, "<a&b>", "\u2028", "é"}))
	rapid.Check(t, func(t *rapid.T) {
		made := protocol.Event{
			Seq: rapid.Int64Min(0).Draw(t, "seq"), ID: "run:1", Method: protocol.MethodMessages, Namespace: rapid.SliceOf(name).Draw(t, "namespace"),
			Node: name.Draw(t, "node"), At: rapid.Int64Min(0).Draw(t, "at"), Data: json.RawMessage(`{"event":"message-finish"}`),
		}
		var read struct {
			Type, Method string
			EventID      string `json:"event_id"`
			Seq          int64
			Params       struct {
				Namespace []string
				Timestamp int64
				Node      string
				Data      json.RawMessage
			}
		}
		check.Must(t, json.Unmarshal(made.Append([]byte(nil)), &read))
		got := protocol.Event{
			Seq: read.Seq, ID: read.EventID, Method: read.Method, Namespace: read.Params.Namespace,
			Node: read.Params.Node, At: read.Params.Timestamp, Data: read.Params.Data,
		}
		if diff := cmp.Diff(made, got); read.Type != "event" || diff != "" {
			t.Errorf("the event comes back as %q (-made +read):\n%s", read.Type, diff)
		}
	})
}
