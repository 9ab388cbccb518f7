package state_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/test/check"
)

// shown is one chunk that an attempt has shown.
type shown struct {
	attempt int64
	data    string
}

// incomplete returns a message that was kept unfinished.
func incomplete(kind, id, content string) string {
	return `{"type":"` + kind + `","id":"` + id + `","content":"` + content + `","additional_kwargs":{},"response_metadata":{"incomplete":true}}`
}

func TestPartialsKeepWhatWasShown(t *testing.T) {
	t.Parallel()
	text := func(id, content string) string {
		return `[{"id":"` + id + `","type":"AIMessageChunk","content":"` + content + `"},{}]`
	}
	tests := map[string]struct {
		shown []shown
		want  []string
	}{
		"one text": {
			[]shown{{1, text("a", "Hel")}, {1, text("a", "lo")}},
			[]string{incomplete("ai", "a", "Hello")},
		},
		"blocks": {
			[]shown{{1, `[{"id":"a","content":[{"type":"text","text":"Hel"},{"type":"tool_use","input":"{"}]},{}]`}, {1, `[{"id":"a","content":[{"text":"lo"}]},{}]`}},
			[]string{incomplete("ai", "a", "Hello")},
		},
		"a tool call only": {
			[]shown{{1, `[{"id":"a","type":"AIMessageChunk","content":"","tool_call_chunks":[{"name":"f"}]},{}]`}},
			nil,
		},
		"text before a tool call": {
			[]shown{{1, text("a", "Let me see")}, {1, `[{"id":"a","content":"","tool_call_chunks":[{"name":"f"}]},{}]`}},
			[]string{incomplete("ai", "a", "Let me see")},
		},
		"several at once, in the order in which they began": {
			[]shown{{1, text("b", "B")}, {1, text("a", "A")}, {1, text("b", "b")}},
			[]string{incomplete("ai", "b", "Bb"), incomplete("ai", "a", "A")},
		},
		"a chunk of a person":   {[]shown{{1, `[{"id":"a","type":"HumanMessageChunk","content":"x"}]`}}, []string{incomplete("human", "a", "x")}},
		"a chunk of the system": {[]shown{{1, `[{"id":"a","type":"system","content":"x"}]`}}, []string{incomplete("system", "a", "x")}},
		"a tool's result":       {[]shown{{1, `[{"id":"a","type":"tool","content":"22 degrees"}]`}}, nil},
		"without an id":         {[]shown{{1, `[{"content":"x"},{}]`}}, nil},
		"not a pair":            {[]shown{{1, `{"id":"a","content":"x"}`}, {1, `[]`}, {1, `[7]`}}, nil},
		"the same text at a later attempt": {
			[]shown{{1, text("a", "Hello")}, {2, text("b", "Hello")}},
			[]string{incomplete("ai", "b", "Hello")},
		},
		"more at a later attempt": {
			[]shown{{1, text("a", "Hel")}, {2, text("b", "Hello")}},
			[]string{incomplete("ai", "b", "Hello")},
		},
		"less at a later attempt": {
			[]shown{{1, text("a", "Hello")}, {2, text("b", "Hel")}},
			[]string{incomplete("ai", "a", "Hello")},
		},
		"something else at a later attempt": {
			[]shown{{1, text("a", "Hello")}, {2, text("b", "Good")}},
			[]string{incomplete("ai", "a", "Hello"), incomplete("ai", "b", "Good")},
		},
		"two messages of one attempt that begin alike": {
			[]shown{{1, text("a", "Hel")}, {1, text("b", "Hello")}},
			[]string{incomplete("ai", "a", "Hel"), incomplete("ai", "b", "Hello")},
		},
		"more at a later attempt under the same id": {
			[]shown{{1, text("a", "Hel")}, {2, text("a", "Hello")}},
			[]string{incomplete("ai", "a", "Hello")},
		},
		"less at a later attempt under the same id": {
			[]shown{{1, text("a", "Hello")}, {2, text("a", "Hel")}},
			[]string{incomplete("ai", "a", "Hello")},
		},
		"something else at a later attempt under the same id": {
			[]shown{{1, text("a", "Hello")}, {2, text("a", "Good")}},
			[]string{incomplete("ai", "a-1", "Hello"), incomplete("ai", "a", "Good")},
		},
		"three attempts": {
			[]shown{{1, text("a", "Hel")}, {2, text("b", "Hello")}, {3, text("c", "He")}},
			[]string{incomplete("ai", "b", "Hello")},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkKept(t, partials(test.shown...), test.want)
		})
	}
}

func partials(chunks ...shown) *state.Partials {
	p := new(state.Partials)
	for _, chunk := range chunks {
		p.Add(json.RawMessage(chunk.data), chunk.attempt, "")
	}
	return p
}

// checkKept folds the updates into an empty state, because they must be in a form that can be
// folded.
func checkKept(t *testing.T, p *state.Partials, want []string) {
	t.Helper()
	updates := p.Updates()
	if len(want) == 0 {
		if updates != nil {
			t.Errorf("got %s, want nothing to keep", updates)
		}
		return
	}
	var v state.Values
	for _, update := range updates {
		v = reduce(t, v, string(update.Value))
	}
	var kept struct{ Messages []json.RawMessage }
	check.Must(t, json.Unmarshal(v.JSON(), &kept))
	var got []string
	for _, message := range kept.Messages {
		got = append(got, string(message))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("kept messages (-want +got):\n%s", diff)
	}
}

func TestCloseForgetsFinishedMessagesOfEveryAttempt(t *testing.T) {
	t.Parallel()
	p := partials(
		shown{1, `[{"id":"a","content":"An"}]`}, shown{1, `[{"id":"b","content":"open"}]`}, shown{2, `[{"id":"a","content":"Other"}]`},
	)
	p.Close(parse(t, `{"messages":[{"type":"ai","id":"a","content":"Other text"}]}`))
	checkKept(t, p, []string{incomplete("ai", "b", "open")})
	p.Add(json.RawMessage(`[{"id":"a","content":"again"}]`), 2, "")
	checkKept(t, p, []string{incomplete("ai", "b", "open"), incomplete("ai", "a", "again")})
}

func TestChunkOfNamesTheMessage(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		`[{"id":"a","content":"x"},{"id":7}]`: "a",
		`[{"id":"a"}]`:                        "a",
		`[{"content":"x"},{"id":"b"}]`:        "",
		`[{"id":7},{}]`:                       "",
		`[]`:                                  "",
		`{"id":"a"}`:                          "",
	}
	for data, want := range tests {
		if got := state.ChunkOf(json.RawMessage(data)); got != want {
			t.Errorf("ChunkOf(%s): got %q, want %q", data, got, want)
		}
	}
}
