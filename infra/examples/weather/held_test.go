package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// invocationSince is an invocation that carries what is new since another of the thread.
func invocationSince(base map[string]any, patch string) map[string]any {
	in := invocationOn(nil, fast)
	in["run_id"] = "r2"
	in["state"] = map[string]any{"values": nil, "base": base, "patch": json.RawMessage(patch)}
	return in
}

// TestWhatIsNewIsEnough for an agent that holds the rest: it sees the messages as if all had been
// sent.
func TestWhatIsNewIsEnough(t *testing.T) {
	t.Parallel()
	before := []any{
		map[string]any{"type": "human", "id": "h1", "content": "weather in paris?"},
		map[string]any{"type": "ai", "id": "a1", "content": "It is raining."},
	}
	const london = `{"type": "human", "id": "h2", "content": "weather in london?"}`
	for name, c := range map[string]struct {
		base   map[string]any
		patch  string
		status int
		// city is what the agent looks up; "" where it has answered already.
		city string
	}{
		"a question":               {map[string]any{"run_id": "r1", "attempt": 1}, `{"lists": {"messages": {"keep": 2, "append": [` + london + `]}}}`, 200, "london"},
		"a question in place":      {map[string]any{"run_id": "r1", "attempt": 1}, `{"lists": {"messages": {"keep": 0, "append": [` + london + `]}}}`, 200, "london"},
		"an answer is taken back":  {map[string]any{"run_id": "r1", "attempt": 1}, `{"lists": {"messages": {"keep": 1, "append": []}}}`, 200, "paris"},
		"other messages":           {map[string]any{"run_id": "r1", "attempt": 1}, `{"set": {"messages": [` + london + `]}}`, 200, "london"},
		"another value":            {map[string]any{"run_id": "r1", "attempt": 1}, `{"set": {"mood": "good"}, "unset": ["news"]}`, 200, ""},
		"nothing":                  {map[string]any{"run_id": "r1", "attempt": 1}, `{}`, 200, ""},
		"another run":              {map[string]any{"run_id": "r0", "attempt": 1}, `{}`, 412, ""},
		"another attempt":          {map[string]any{"run_id": "r1", "attempt": 2}, `{}`, 412, ""},
		"more than there are":      {map[string]any{"run_id": "r1", "attempt": 1}, `{"lists": {"messages": {"keep": 3, "append": []}}}`, 412, ""},
		"messages that are a text": {map[string]any{"run_id": "r1", "attempt": 1}, `{"set": {"messages": "x"}}`, 412, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := start(t, "")
			if first := post(t, url, "", invocationOn(before, fast)); first.Header.Get("X-Slipway-Holds") != "values" || len(readEvents(t, first.Body)) != 0 {
				t.Error("the first invocation is not one of an answered question, whose values are held")
			}
			got := post(t, url, "", invocationSince(c.base, c.patch))
			if got.StatusCode != c.status {
				t.Fatalf("status %d, want %d", got.StatusCode, c.status)
			}
			if got.StatusCode != http.StatusOK {
				return
			}
			events := readEvents(t, got.Body)
			if c.city == "" {
				if len(events) != 0 {
					t.Errorf("the agent does something: %v", events)
				}
			} else if len(events) == 0 || !strings.Contains(strings.ToLower(string(events[0].data)), c.city) {
				t.Errorf("got %s, want it to look up %s", events, c.city)
			}
		})
	}
}

// TestHeldMessagesAreBounded: when they are too many, some threads make room.
func TestHeldMessagesAreBounded(t *testing.T) {
	t.Parallel()
	var h held
	message := []json.RawMessage{json.RawMessage(strings.Repeat(" ", 1<<20))}
	for i := range 4 * mostHeld >> 20 { // some of them time and again
		h.keep(fmt.Sprint(i%100), base{}, message)
	}
	size := 0
	for _, c := range h.of {
		size += c.size
	}
	if size != h.size || size > mostHeld || size < mostHeld/2 {
		t.Errorf("%d threads are held, with %d bytes; it reckons with %d", len(h.of), size, h.size)
	}
}
