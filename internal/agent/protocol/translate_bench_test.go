package protocol_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/slipway-run/slipway/internal/agent/protocol"
	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/test/check"
)

// BenchmarkTokens translates the tokens of an answer, in parts of 100 tokens as a fast agent's
// events are written, and encodes the events of each part for one reader.
func BenchmarkTokens(b *testing.B) {
	const tokens, together = 4000, 100
	now := clock.System()
	r := run.Run{Status: run.Running}
	r.Run = id.New(now)
	message := id.New(now)
	parts := []run.Part{{Run: r, Events: []run.Event{{Name: run.EventMetadata, Position: 1, At: now}}}}
	for i := range tokens {
		if i%together == 0 {
			parts = append(parts, run.Part{Run: r})
		}
		part := &parts[len(parts)-1]
		part.Events = append(part.Events, run.Event{
			Name: run.EventMessages, Position: int64(i) + 2, At: now,
			Data: json.RawMessage(fmt.Sprintf(`[{"id":%q,"type":"AIMessageChunk","content":"word%d "},{"graph_node":"model","graph_step":1,"run_id":%q}]`, message, i, r.Run)),
		})
	}
	filter := protocol.Filter{Channels: []string{protocol.MethodMessages, protocol.MethodLifecycle}}
	var text []byte
	b.ReportAllocs()
	for b.Loop() {
		translator := protocol.NewTranslator(nil, r, filter)
		for _, part := range parts {
			err := translator.Translate(b.Context(), part, func(events []protocol.Event) error {
				for _, e := range events {
					text = e.Append(text)
				}
				text = text[:0]
				return nil
			})
			check.Must(b, err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*tokens), "ns/token")
}
