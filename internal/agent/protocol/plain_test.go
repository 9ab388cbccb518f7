package protocol_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/slipway-run/slipway/internal/agent/protocol"
	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/test/check"
)

// chunks generates the events of messages in the shapes in which agents send them. Most chunks
// repeat the chunk before in everything but the content.
func chunks() *rapid.Generator[[]run.Event] {
	content := rapid.SampledFrom([]string{
		`"a"`, `"b"`, `""`, `"\",\"content\":\"x"`, `"<\u003c\n"`, `null`, `7`, `[{"type":"text","text":"p"}]`, `"a","content":"b"`,
	})
	around := rapid.SampledFrom([][2]string{
		{`[{"id":"m1","type":"AIMessageChunk","content":`, `},{"graph_node":"model"}]`},
		{`[{"id":"m2","content":`, `,"extra":{"content":"inner"}},{"graph_node":"model","content":"about"}]`},
		{`[{"content":`, `},{"graph_node":"nameless"}]`},
		{`[{"content":"earlier","id":"m1","content":`, `},{"graph_node":"model"}]`},
		{`[{"id":"m1","content":`, `,"usage_metadata":{"output_tokens":1}},{"graph_node":"model"}]`},
		{`[{"id":"m1","content":`, `,"tool_call_chunks":[{"index":0,"id":"c","name":"look","args":"{"}]},{"graph_node":"model"}]`},
		{`[{"id":"m1","content":`, `,"response_metadata":{"finish_reason":"length"}},{"graph_node":"model"}]`},
		{`[{"id":"m2","content":`, `,"chunk_position":"last"},{"graph_node":"model"}]`},
		{`[{"id":"t","type":"tool","content":`, `},{"graph_node":"tools"}]`},
	})
	return rapid.Custom(func(t *rapid.T) []run.Event {
		events := []run.Event{{Name: run.EventMetadata, Position: 1}}
		for range rapid.IntRange(1, 8).Draw(t, "shapes") {
			name := rapid.SampledFrom([]string{run.EventMessages, run.EventMessages + "|inner:1"}).Draw(t, "name")
			text := around.Draw(t, "around")
			for _, c := range rapid.SliceOfN(content, 1, 6).Draw(t, "contents") {
				events = append(events, run.Event{Name: name, Position: int64(len(events) + 1), Data: json.RawMessage(text[0] + c + text[1])})
			}
		}
		return events
	})
}

// TestRepeatedChunks compares the translation of chunks with the translation of the same chunks
// when no two of them have the same text around the content.
func TestRepeatedChunks(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		events := chunks().Draw(t, "events")
		varied := make([]run.Event, len(events))
		for i, e := range events {
			varied[i] = e
			if len(e.Data) > 0 {
				varied[i].Data = json.RawMessage(strings.Repeat(" ", i+1) + string(e.Data))
			}
		}
		if diff := cmp.Diff(translated(t, varied), translated(t, events)); diff != "" {
			t.Errorf("chunks that repeat others give other events (-decoded +repeated):\n%s", diff)
		}
	})
}

// TestUsageThatIsRepeated adds the usage of each chunk up, even if a chunk is the same as the chunk
// before.
func TestUsageThatIsRepeated(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	again := step{run.EventMessages, `[{"id":"m1","content":"a","usage_metadata":{"output_tokens":1}},{"graph_node":"model"}]`}
	f.does(run.Request{}, again, again)
	all := f.read(everything(), nil, 1)
	if last := all[len(all)-2]; !strings.Contains(string(last.Data), `"usage":{"output_tokens":2}`) {
		t.Errorf("the message ends with %s", line(last))
	}
}

// translated returns the lines of the events that a reader of a run gets.
func translated(t *rapid.T, events []run.Event) []string {
	r := run.Run{Status: run.Success}
	r.Run = "r"
	translator := protocol.NewTranslator(nil, r, protocol.Filter{Channels: []string{protocol.MethodMessages}})
	var lines []string
	for _, part := range []run.Part{{Run: r, Events: events}, {Run: r, Ended: true, Position: int64(len(events))}} {
		err := translator.Translate(context.Background(), part, func(events []protocol.Event) error {
			for _, e := range events {
				lines = append(lines, e.ID+" "+line(e))
			}
			return nil
		})
		check.Must(t, err)
	}
	return lines
}
