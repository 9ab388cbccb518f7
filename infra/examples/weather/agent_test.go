package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// update is what a node adds, as a test reads it.
type update struct {
	node     string
	messages []map[string]any
}

func updates(t *testing.T, events []event) []update {
	t.Helper()
	var all []update
	for _, e := range events {
		if e.name != "updates" {
			continue
		}
		var data map[string]struct{ Messages []map[string]any }
		if err := json.Unmarshal(e.data, &data); err != nil || len(data) != 1 {
			t.Fatalf("update %s: %v", e.data, err)
		}
		for node, delta := range data {
			all = append(all, update{node, delta.Messages})
		}
	}
	return all
}

// outline tells what happened in one line: each node with the text of its messages, or the city it
// asks for.
func outline(t *testing.T, events []event) string {
	t.Helper()
	var parts []string
	for _, u := range updates(t, events) {
		for _, m := range u.messages {
			text := m["content"].(string)
			if calls, _ := m["tool_calls"].([]any); len(calls) > 0 {
				text = "?" + calls[0].(map[string]any)["args"].(map[string]any)["city"].(string)
			}
			text, _, _ = strings.Cut(strings.TrimPrefix(text, "I have looked it up for you. "), ":")
			text, _, _ = strings.Cut(text, ".")
			parts = append(parts, u.node+" "+text)
		}
	}
	return strings.Join(parts, " | ")
}

func said(kind, text string) map[string]any {
	return map[string]any{"type": kind, "id": kind + text, "content": text}
}

func asks(city, id string) map[string]any {
	m := said("ai", "")
	m["tool_calls"] = []any{map[string]any{"name": "weather", "args": map[string]any{"city": city}, "id": id, "type": "tool_call"}}
	return m
}

func says(text, id string) map[string]any {
	m := said("tool", text)
	m["tool_call_id"] = id
	return m
}

func incomplete(text string) map[string]any {
	m := said("ai", text)
	m["response_metadata"] = map[string]any{"incomplete": true}
	return m
}

func TestTheGraphGoesOnFromTheState(t *testing.T) {
	t.Parallel()
	url := start(t, "")
	blocks := said("human", "")
	blocks["content"] = []any{"hello", map[string]any{"type": "image_url"}, map[string]any{"type": "text", "text": "weather in Oslo"}, map[string]any{"type": "thinking", "text": "Rome"}}
	for name, c := range map[string]struct {
		messages []any
		want     string
	}{
		"a question":              {[]any{said("human", "what's the weather in sf?")}, "model ?San Francisco | tools San Francisco | model San Francisco"},
		"an unanswered tool call": {[]any{said("human", "sf"), asks("nyc", "c1")}, "tools New York | model New York"},
		"a tool message":          {[]any{said("human", "sf"), asks("nyc", "c1"), says("Nowhere: 1", "c1")}, "model Nowhere"},
		"a finished answer":       {[]any{said("human", "sf"), said("ai", "Fine.")}, ""},
		"an answer cut off at a crash": {
			[]any{said("human", "sf"), asks("sf", "c1"), says("Nowhere: 1", "c1"), incomplete("I have")}, "model Nowhere",
		},
		"a question after an interrupted answer": {
			[]any{said("human", "sf"), asks("sf", "c1"), says("x", "c1"), incomplete("I have"), said("human", "and in nyc?")},
			"model ?New York | tools New York | model New York",
		},
		"a question after an interrupted tool call": {
			[]any{said("human", "sf"), asks("sf", "c1"), said("human", "no, nyc")}, "model ?New York | tools New York | model New York",
		},
		"several questions":     {[]any{said("human", "sf"), said("human", "rome"), said("human", "oslo")}, "model ?Oslo | tools Oslo | model Oslo"},
		"what it does not read": {[]any{map[string]any{"type": "human", "content": 7}, said("human", "oslo")}, "model ?Oslo | tools Oslo | model Oslo"},
		"text blocks":           {[]any{blocks}, "model ?Oslo | tools Oslo | model Oslo"},
		"an unknown city": {
			[]any{said("human", "what is the weather in Gotham City today?")},
			`model ?Gotham City | tools I know no city called "Gotham City" | model I know no city called "Gotham City"`,
		},
		"no messages": {[]any{}, `model ? | tools I know no city called "" | model I know no city called ""`},
	} {
		response := post(t, url, "", invocationOn(c.messages, fast))
		text := readEvents(t, response.Body)
		if got := outline(t, text); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, c.want)
		}
	}
}

func TestASecondToolCallOfAMessageIsAnsweredToo(t *testing.T) {
	t.Parallel()
	both := asks("sf", "c1")
	both["tool_calls"] = append(both["tool_calls"].([]any), asks("Atlantis", "c2")["tool_calls"].([]any)...)
	events := readEvents(t, post(t, start(t, ""), "", invocationOn([]any{said("human", "x"), both, says("done", "c1")}, fast)).Body)
	got := updates(t, events)
	if len(got) != 2 || len(got[0].messages) != 1 {
		t.Fatalf("got %v, want one tool message and the answer", got)
	}
	if m := got[0].messages[0]; m["tool_call_id"] != "c2" || m["status"] != "error" || m["name"] != "weather" || m["type"] != "tool" {
		t.Errorf("got %v, want an error for the call c2", m)
	}
	if answer := got[1].messages[0]["content"].(string); !strings.Contains(answer, `done. I know no city called "Atlantis"`) {
		t.Errorf("got %q, want what both tools said", answer)
	}
}

// written is what a message's chunks, or the message itself, hold.
type written struct {
	text  string
	calls string
}

func (w *written) add(message map[string]any) {
	w.text += message["content"].(string)
	if calls, ok := message["tool_calls"].([]any); ok && len(calls) > 0 {
		w.calls += fmt.Sprint(calls)
	}
}

func TestChunksAddUpToTheMessagesOfTheUpdates(t *testing.T) {
	t.Parallel()
	got, want := map[any]*written{}, map[any]*written{}
	for _, e := range readEvents(t, post(t, start(t, ""), "", body("weather in sf?", fast, "messages")).Body) {
		if e.name == "messages" {
			addChunk(t, got, e)
			continue
		}
		for _, u := range updates(t, []event{e}) {
			if m := u.messages[0]; u.node == "model" {
				want[m["id"]] = &written{}
				want[m["id"]].add(m)
			}
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("before %s:\n got %v\nwant %v", e.data, got, want)
		}
	}
	if len(got) != 2 {
		t.Errorf("got chunks of %d messages, want 2", len(got))
	}
}

func addChunk(t *testing.T, messages map[any]*written, e event) {
	t.Helper()
	var pair [2]map[string]any
	if err := json.Unmarshal(e.data, &pair); err != nil {
		t.Fatal(err)
	}
	if want := map[string]any{"node": "model", "run_id": "r1", "thread_id": "t1"}; !reflect.DeepEqual(pair[1], want) {
		t.Errorf("metadata: got %v, want %v", pair[1], want)
	}
	id := pair[0]["id"]
	if messages[id] == nil {
		messages[id] = &written{}
	}
	messages[id].add(pair[0])
}

func TestIDsAreNewInEachInvocation(t *testing.T) {
	t.Parallel()
	url, seen := start(t, ""), map[any]bool{}
	for range 2 {
		for _, u := range updates(t, readEvents(t, post(t, url, "", body("sf", fast)).Body)) {
			for _, m := range u.messages {
				if seen[m["id"]] {
					t.Errorf("id %v is used again", m["id"])
				}
				seen[m["id"]] = true
			}
		}
	}
	if len(seen) != 6 {
		t.Errorf("got %d ids, want 6", len(seen))
	}
}

func TestErrorsAreEvents(t *testing.T) {
	t.Parallel()
	url := start(t, "")
	state := invocationOn(nil, fast)
	state["state"] = map[string]any{"values": map[string]any{"messages": []any{map[string]any{"type": "human", "content": 7}}}}
	for name, c := range map[string]struct {
		body map[string]any
		want []string // the events, the error's class last
	}{
		"model":  {body("sf", `{"node_delay_ms":0,"fail":"model"}`), []string{"NodeError"}},
		"tools":  {body("sf", `{"node_delay_ms":0,"fail":"tools"}`), []string{"updates", "NodeError"}},
		"config": {body("sf", `{"token_delay_ms":"soon"}`), []string{"InvalidConfig"}},
		"words":  {body("sf", `{"answer_words":-1}`), []string{"InvalidConfig"}},
		"state":  {state, []string{"InvalidState"}},
	} {
		var got []string
		for _, e := range readEvents(t, post(t, url, "", c.body).Body) {
			if e.name != "error" {
				got = append(got, e.name)
				continue
			}
			var data struct{ Error, Message string }
			if err := json.Unmarshal(e.data, &data); err != nil || data.Message == "" {
				t.Errorf("%s: got the error %s (%v), want a message", name, e.data, err)
			}
			got = append(got, data.Error)
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

func TestConfigMayBeNull(t *testing.T) {
	t.Parallel()
	for _, config := range []string{"", "null", "{}", `{"configurable":null}`} {
		got, err := readSettings(json.RawMessage(config))
		if want := (settings{TokenDelayMS: 60, NodeDelayMS: 400}); err != nil || got != want {
			t.Errorf("config %q: got %+v (%v), want %+v", config, got, err, want)
		}
	}
}

func TestAnswerWords(t *testing.T) {
	t.Parallel()
	url := start(t, "")
	for _, want := range []int{1, 7, 500} {
		configurable := fmt.Sprintf(`{"node_delay_ms":0,"token_delay_ms":0,"answer_words":%d}`, want)
		events := readEvents(t, post(t, url, "", body("sf", configurable, "messages")).Body)
		all := updates(t, events)
		if got := len(strings.Fields(all[2].messages[0]["content"].(string))); got != want {
			t.Errorf("got %d words, want %d", got, want)
		}
		if got := len(events) - len(all) - 1; got != want {
			t.Errorf("got %d tokens, want %d", got, want)
		}
	}
}
