package client_test

import (
	"slices"
	"testing"

	"github.com/slipway-run/slipway/internal/base/sse"
	"github.com/slipway-run/slipway/internal/cmd/client"
)

// TestAnswerReadsAllShapesOfMessages reads updates as nodes may return them.
func TestAnswerReadsAllShapesOfMessages(t *testing.T) {
	t.Parallel()
	for update, want := range map[string][]string{
		`{"say": {"messages": [{"type": "ai", "id": "a", "content": "x"}]}}`:                           {"ai x"},
		`{"say": {"messages": [{"role": "assistant", "content": "x"}]}}`:                               {"ai x"},
		`{"say": {"messages": [["ai", "x"], ["human", [{"type": "text", "text": "y"}]]]}}`:             {"ai x", "human y"},
		`{"say": {"messages": {"role": "assistant", "content": "x"}}}`:                                 {"ai x"},
		`{"say": {"count": 1}, "think": null, "list": [1], "odd": {"messages": 7}, "text": "a text"}`:  nil,
		`{"a": {"messages": [{"role": "no role", "content": "x"}]}, "b": {"messages": [["ai", "x"]]}}`: {"ai x"},
	} {
		var got []string
		err := client.NewAnswer().Read(sse.Event{Name: "updates", Data: []byte(update)}, func(part client.Part) {
			got = append(got, part.Message.Type+" "+string(part.Message.Content))
		})
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q (%v)", update, got, want, err)
		}
	}
}
