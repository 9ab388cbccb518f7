package agentserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/seam/graph/graphtest"
)

// allModes are the stream modes of the interface.
var allModes = []string{"values", "messages", "messages-tuple", "tasks", "checkpoints", "updates", "events", "debug", "custom", "tools", "lifecycle"}

// everything is an answer with an event of each kind, also from within a subgraph.
func everything() []graphtest.Step {
	return []graphtest.Step{
		say("m", "Hel"),
		emit("tasks", object{"id": "t"}), emit("checkpoints", object{"next": []any{}}), emit("events", object{"event": "on"}),
		emit("debug", object{"step": 1}), emit("custom", "50%"), emit("custom|sub:1", "60%"),
		emit("tools", object{"event": "on_tool_start"}), emit("tools|sub:1", object{"event": "on_tool_end"}),
		emit("messages|sub:1", chunk("AIMessageChunk", "s", "Sub")),
		emit("values|sub:1", object{"x": 1}),
		emit("updates|sub:1", object{"inner": object{"messages": []any{message("ai", "s", "Sub")}}}),
		say("m", "lo"),
		add("model", "m", "Hello"),
	}
}

const (
	human   = `{"content":"Hi","id":"hi","type":"human"}`
	hello   = `{"content":"Hello","id":"m","type":"ai"}`
	sub     = `{"content":"Sub","id":"s","type":"ai"}`
	nothing = `{"node":"model"}`
)

// shownIn has the events that each mode shows of everything, after the metadata.
var shownIn = map[string][]string{
	"values":      {`values {"messages":[` + human + `]}`, `values|sub:1 {"x":1}`, `values {"messages":[` + human + `,` + hello + `]}`},
	"updates":     {`updates|sub:1 {"inner":{"messages":[` + sub + `]}}`, `updates {"model":{"messages":[` + hello + `]}}`},
	"tasks":       {`tasks {"id":"t"}`},
	"checkpoints": {`checkpoints {"next":[]}`},
	"events":      {`events {"event":"on"}`},
	"debug":       {`debug {"step":1}`},
	"custom":      {`custom "50%"`, `custom|sub:1 "60%"`},
	"tools":       {`tools {"event":"on_tool_start"}`, `tools|sub:1 {"event":"on_tool_end"}`},
	"messages-tuple": {
		`messages [{"content":"Hel","id":"m","type":"AIMessageChunk"},` + nothing + `]`,
		`messages|sub:1 [{"content":"Sub","id":"s","type":"AIMessageChunk"},` + nothing + `]`,
		`messages [{"content":"lo","id":"m","type":"AIMessageChunk"},` + nothing + `]`,
	},
	"messages": {
		`messages/metadata {"m":{"metadata":` + nothing + `}}`,
		`messages/partial [{"content":"Hel","id":"m","type":"ai"}]`,
		`messages/metadata {"s":{"metadata":` + nothing + `}}`,
		`messages/partial [` + sub + `]`,
		`messages/complete [` + sub + `]`,
		`messages/partial [` + hello + `]`,
		`messages/complete [` + hello + `]`,
	},
}

// metadata is the event with which each attempt begins.
func metadata(path string, attempt int) string {
	return fmt.Sprintf(`metadata {"attempt":%d,"run_id":%q}`, attempt, path[strings.LastIndexByte(path, '/')+1:])
}

// said omits the states that the server shows itself before the agent has sent an event of the
// mode.
func said(events []event) []string {
	return shown(slices.DeleteFunc(slices.Clone(events), func(e event) bool { return strings.Contains(e.Data, `"parent_config"`) }))
}

func TestEachModeShowsItsEventsAndNoOthers(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	for _, mode := range allModes {
		for _, asked := range []any{mode, []any{mode}} {
			path, events := f.stream(t, f.newThread(t), with(with(script(everything()...), "stream_subgraphs", true), "stream_mode", asked))
			want := append([]string{metadata(path, 1)}, shownIn[mode]...)
			if diff := cmp.Diff(want, said(events)); diff != "" {
				t.Errorf("mode %v (-want +got):\n%s", asked, diff)
			}
		}
	}
}

// TestAModeCanBeChosenLater asks for one, for several and for no mode of the modes with which
// the run was created.
func TestAModeCanBeChosenLater(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	path, events := f.stream(t, f.newThread(t), with(with(script(everything()...), "stream_subgraphs", true), "stream_mode", allModes))
	for _, mode := range allModes {
		got := f.follow(t, path+"/stream?stream_mode="+mode, "")
		if diff := cmp.Diff(append([]string{metadata(path, 1)}, shownIn[mode]...), said(got)); diff != "" {
			t.Errorf("mode %s (-want +got):\n%s", mode, diff)
		}
	}
	got := f.follow(t, path+"/stream?stream_mode=updates&stream_mode=custom", "")
	want := slices.DeleteFunc(slices.Clone(events), func(e event) bool {
		kind, _, _ := strings.Cut(e.Name, "|")
		return kind != "updates" && kind != "custom" && kind != "metadata"
	})
	for i, e := range want { // in all modes, it was not the last of its position
		if e.Name != "metadata" && e.ID == "" {
			want[i].ID = got[i].ID
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("two modes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(events, f.follow(t, path+"/stream", "")); diff != "" {
		t.Errorf("without a mode (-all of the run's +got):\n%s", diff)
	}
	wantStatus(t, f.call(t, "GET", path+"/stream?stream_mode=all", nil), http.StatusUnprocessableEntity)
}

// TestSeveralModesComeInOneStream checks that the events come in the order in which they
// happened.
func TestSeveralModesComeInOneStream(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	path, events := f.stream(t, f.newThread(t), with(with(script(everything()...), "stream_subgraphs", true), "stream_mode", []any{"messages", "messages-tuple", "updates", "values"}))
	m, tuple, values, updates := shownIn["messages"], shownIn["messages-tuple"], shownIn["values"], shownIn["updates"]
	want := []string{
		metadata(path, 1), values[0], tuple[0], m[0], m[1], tuple[1], m[2], m[3], values[1], updates[0], m[4], tuple[2], m[5], updates[1], m[6], values[2],
	}
	if diff := cmp.Diff(want, shown(events)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// TestAFailureIsShownInEveryMode checks that the failure is the last event.
func TestAFailureIsShownInEveryMode(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	for _, mode := range allModes {
		path, events := f.stream(t, f.newThread(t), with(script(failing("no <key>")), "stream_mode", mode))
		want := []string{metadata(path, 1), `error {"error":"GraphError","message":"no <key>"}`}
		if mode == "values" {
			want = slices.Insert(want, 1, shownIn["values"][0])
		}
		if diff := cmp.Diff(want, said(events)); diff != "" {
			t.Errorf("mode %s (-want +got):\n%s", mode, diff)
		}
	}
}

// TestAPauseIsAnUpdate checks that a pause is an update of no node, completes no message, and
// is shown next to the values if it has a question. A pause at a breakpoint has no question.
func TestAPauseIsAnUpdate(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	const question = `{"__interrupt__":[{"id":"q","value":"May I q?"}]`
	path, events := f.stream(t, f.newThread(t), with(script(pausing("q")), "stream_mode", []any{"updates", "messages", "values"}))
	before := shownIn["values"][0]
	want := []string{metadata(path, 1), before, "updates " + question + "}", strings.Replace(before, "{", question+",", 1)}
	if diff := cmp.Diff(want, shown(events)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	path, events = f.stream(t, f.newThread(t), with(script(pausing()), "stream_mode", []any{"updates", "messages", "values"}))
	want = []string{metadata(path, 1), before, `updates {"__interrupt__":[]}`}
	if diff := cmp.Diff(want, shown(events)); diff != "" {
		t.Errorf("events of a breakpoint (-want +got):\n%s", diff)
	}
}

// TestAnotherAttemptBeginsItsMessagesAnew breaks the connection to the agent in the middle of
// a message.
func TestAnotherAttemptBeginsItsMessagesAnew(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	body := script(say("m", "Hel"), graphtest.Step{Attempt: 1, Break: true}, say("m", "lo"), add("model", "m", "Hello"))
	path, events := f.stream(t, f.newThread(t), with(body, "stream_mode", "messages"))
	m := shownIn["messages"]
	want := []string{metadata(path, 1), m[0], m[1], metadata(path, 2), m[0], m[1], m[5], m[6]}
	if diff := cmp.Diff(want, shown(events)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// TestAMessageThatIsCompleteBeginsAnew has an agent that sends more chunks with the id of a
// complete message.
func TestAMessageThatIsCompleteBeginsAnew(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	body := script(say("m", "He"), add("model", "m", "Hello"), say("m", "Hel"), say("m", "lo"), add("model", "m", "Hello"))
	path, events := f.stream(t, f.newThread(t), with(body, "stream_mode", "messages"))
	m := shownIn["messages"]
	want := []string{metadata(path, 1), m[0], `messages/partial [{"content":"He","id":"m","type":"ai"}]`, m[6], m[0], m[1], m[5], m[6]}
	if diff := cmp.Diff(want, shown(events)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// TestMessagesAreCompletedInTheOrderOfTheState checks the order with other members in an
// update, and each time the run is read.
func TestMessagesAreCompletedInTheOrderOfTheState(t *testing.T) {
	t.Parallel()
	const update = `{"z":{"messages":[{"id":"1","type":"ai"},{"id":"2","type":"ai"}]},"nothing":null,"other":{"x":1},"a":{"messages":{"id":"3","type":"ai"}},` +
		`"none":{"messages":null},"b":{"messages":[{"id":"4","type":"ai"}]}}`
	f := setUp(t, func(_ context.Context, _ graph.Invocation, emit func(string, any)) error {
		emit("updates", json.RawMessage(update))
		return nil
	})
	path, events := f.stream(t, f.newThread(t), with(hi(), "stream_mode", "messages"))
	want := []string{metadata(path, 1)}
	for id := range 4 {
		want = append(want, fmt.Sprintf(`messages/complete [{"id":"%d","type":"ai"}]`, id+1))
	}
	if diff := cmp.Diff(want, shown(events)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	for range 10 {
		if diff := cmp.Diff(events, f.follow(t, path+"/stream", "")); diff != "" {
			t.Fatalf("read again (-first +again):\n%s", diff)
		}
	}
}

// TestAMessageThatANodeWasGivenIsNotCompletedAgain has a node that returns the messages of the
// thread and of its subgraph with a message of its own, as a subgraph does that goes on after a
// question.
func TestAMessageThatANodeWasGivenIsNotCompletedAgain(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	thread := f.newThread(t)
	f.stream(t, thread, script(add("model", "m", "Hello")))
	given := []any{message("human", "hi", "Hi"), message("ai", "m", "Hello"), message("ai", "s", "Sub"), message("ai", "new", "New")}
	body := script(
		emit("updates|sub:1", object{"inner": object{"messages": []any{message("ai", "s", "Sub")}}}),
		emit("updates", object{"sub": object{"messages": given}}),
		emit("updates", object{"again": object{"messages": given}}),
	)
	path, events := f.stream(t, thread, with(with(body, "stream_subgraphs", true), "stream_mode", "messages"))
	want := []string{metadata(path, 1), `messages/complete [` + sub + `]`, `messages/complete [{"content":"New","id":"new","type":"ai"}]`}
	if diff := cmp.Diff(want, shown(events)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	for i, e := range events {
		if diff := cmp.Diff(events[i+1:], f.follow(t, path+"/stream", e.ID)); diff != "" {
			t.Errorf("after the event %s (-want +got):\n%s", e.ID, diff)
		}
	}
}

// TestAPartialMessageHasTheTypeOfItsClass checks also that a partial message grows only by its
// texts.
func TestAPartialMessageHasTheTypeOfItsClass(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	var steps []graphtest.Step
	want := []string{}
	for class, kind := range map[string]string{
		"AIMessageChunk": "ai", "ai": "ai", "": "ai", "HumanMessageChunk": "human", "ToolMessageChunk": "tool", "tool": "tool", "SystemMessageChunk": "system",
	} {
		id := "id of " + class
		steps = append(steps, emit("messages", chunk(class, id, "x")), emit("messages", chunk(class, id, "y")))
		want = append(want, fmt.Sprintf(`messages/partial [{"content":"xy","id":%q,"type":%q}]`, id, kind))
	}
	// An event that is not a chunk of a message is skipped.
	steps = append(steps, emit("messages", "?"), emit("messages", []any{1, 2}), emit("messages", []any{nil, nil}), emit("messages", []any{object{}}))
	_, events := f.stream(t, f.newThread(t), with(script(steps...), "stream_mode", "messages"))
	got := slices.DeleteFunc(shown(events), func(e string) bool { return !strings.Contains(e, `"xy"`) })
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	if got, want := len(events), 1+3*len(want); got != want {
		t.Errorf("there are %d events, want %d: %v", got, want, names(events))
	}
}

// TestContentsOfBlocksAddUp checks that blocks, and the pieces of tool calls, are added by
// their indexes. A text and blocks may follow each other.
func TestContentsOfBlocksAddUp(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	text := func(index int, text string) object { return object{"type": "text", "index": index, "text": text} }
	call := func(members object) graphtest.Step {
		piece := chunk("AIMessageChunk", "c", "")
		piece[0].(object)["tool_call_chunks"] = []any{members}
		return emit("messages", piece)
	}
	body := script(
		emit("messages", chunk("AIMessageChunk", "b", []any{text(0, "Hel")})),
		emit("messages", chunk("AIMessageChunk", "b", []any{text(0, "lo"), object{"type": "image", "index": 1, "url": "u"}})),
		emit("messages", chunk("AIMessageChunk", "b", "!")),
		emit("messages", chunk("AIMessageChunk", "b", []any{"?", nil})),
		emit("messages", chunk("AIMessageChunk", "t", "A")), emit("messages", chunk("AIMessageChunk", "t", []any{text(0, "B")})),
		call(object{"index": 0, "id": "1", "name": "weather", "args": ""}), call(object{"index": 0, "id": nil, "name": nil, "args": "{}"}),
		call(object{"index": nil, "id": "2", "name": "time", "args": "{"}), call(object{"index": nil, "id": "3", "name": "place", "args": "["}),
	)
	_, events := f.stream(t, f.newThread(t), with(body, "stream_mode", "messages"))
	last := map[string]string{}
	for _, e := range events {
		for _, id := range []string{"b", "t", "c"} {
			if e.Name == "messages/partial" && strings.Contains(e.Data, `"id":"`+id+`"`) {
				last[id] = e.Data
			}
		}
	}
	want := map[string]string{
		"b": `[{"content":[{"index":0,"text":"Hello","type":"text"},{"index":1,"type":"image","url":"u"},{"text":"!?","type":"text"}],"id":"b","type":"ai"}]`,
		"t": `[{"content":[{"text":"A","type":"text"},{"index":0,"text":"B","type":"text"}],"id":"t","type":"ai"}]`,
		"c": `[{"content":"","id":"c","invalid_tool_calls":[{"args":"[","error":null,"id":"3","name":"place","type":"invalid_tool_call"}],` +
			`"tool_call_chunks":[{"args":"{}","id":"1","index":0,"name":"weather"},` +
			`{"args":"{","id":"2","index":null,"name":"time"},{"args":"[","id":"3","index":null,"name":"place"}],` +
			`"tool_calls":[{"args":{},"id":"1","name":"weather","type":"tool_call"},{"args":{},"id":"2","name":"time","type":"tool_call"}],"type":"ai"}]`,
	}
	if diff := cmp.Diff(want, last); diff != "" {
		t.Errorf("the messages at last (-want +got):\n%s", diff)
	}
}

// TestMembersOfChunksAddUp checks the members besides the content: tool calls are made of their
// pieces, usage is added up, and metadata is merged.
func TestMembersOfChunksAddUp(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	var steps []graphtest.Step
	for _, members := range []object{
		{"usage_metadata": nil, "response_metadata": object{"model": "m"}, "additional_kwargs": object{}, "tool_calls": []any{}},
		{"tool_call_chunks": []any{object{"index": 0, "id": "c", "name": "weather", "args": ""}}, "usage_metadata": object{"input_tokens": 5, "details": object{"read": 2}}},
		{"tool_call_chunks": []any{object{"index": 0, "id": nil, "name": nil, "args": `{"city":"S`}}, "additional_kwargs": object{"reasoning": "I "}},
		{
			"tool_call_chunks": []any{object{"index": 0, "id": "", "args": `F","unit`}}, "additional_kwargs": object{"reasoning": "look"},
			"usage_metadata": object{"input_tokens": 0, "output_tokens": 7, "details": object{"read": 1}}, "response_metadata": object{"finish_reason": "stop"},
		},
	} {
		piece := chunk("AIMessageChunk", "m", "")
		maps.Copy(piece[0].(object), members)
		steps = append(steps, emit("messages", piece))
	}
	_, events := f.stream(t, f.newThread(t), with(script(steps...), "stream_mode", "messages"))
	var calls []any
	var last object
	for _, e := range events {
		var partial []object
		if e.Name == "messages/partial" && json.Unmarshal([]byte(e.Data), &partial) == nil {
			last = partial[0]
			calls = append(calls, last["tool_calls"])
		}
	}
	call := func(args object) []any {
		return []any{object{"type": "tool_call", "id": "c", "name": "weather", "args": args}}
	}
	want := object{
		"usage_metadata":    object{"input_tokens": 5.0, "output_tokens": 7.0, "details": object{"read": 3.0}},
		"response_metadata": object{"model": "m", "finish_reason": "stop"}, "additional_kwargs": object{"reasoning": "I look"},
		"id": "m", "type": "ai", "content": "", "invalid_tool_calls": []any{}, "tool_calls": call(object{"city": "SF"}),
		"tool_call_chunks": []any{object{"index": 0.0, "id": "c", "name": "weather", "args": `{"city":"SF","unit`}},
	}
	if diff := cmp.Diff(want, last); diff != "" {
		t.Errorf("the message at last (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]any{[]any{}, call(object{}), call(object{"city": "S"}), call(object{"city": "SF"})}, calls); diff != "" {
		t.Errorf("the tool calls (-want +got):\n%s", diff)
	}
}
