package protocol_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/agent/protocol"
	"github.com/slipway-run/slipway/internal/agent/run"
)

// inner is a step in a subgraph.
func inner(kind, namespace, data string) step { return step{kind + "|" + namespace, data} }

// chunk is a piece of a message whose content is a list with one part.
func chunk(part string) step {
	return step{run.EventMessages, `[{"type":"AIMessageChunk","id":"m1","content":[` + part + `]},{"graph_node":"model"}]`}
}

// TestTranslation shows the events of a run that follows another run.
func TestTranslation(t *testing.T) {
	t.Parallel()
	const called = `"type":"ai","id":"m1","content":"","tool_calls":[{"id":"c1","name":"look","args":{}}]`
	for name, c := range map[string]struct {
		// before are the events that an earlier run has shown.
		before  []step
		steps   []step
		outcome run.Outcome
		methods []string
		want    []string
	}{
		"messages and tools of an earlier run are not shown again": {
			before:  []step{update("model", `"messages":[{`+called+`}]`), update("tools", `"messages":[{"type":"tool","id":"t1","tool_call_id":"c1","content":"blue"}]`)},
			steps:   []step{update("model", `"messages":[{`+called+`},{"type":"tool","id":"t1","tool_call_id":"c1","content":"blue"},{"type":"ai","id":"m2","content":""}]`)},
			methods: []string{"messages", "tools"},
			want: []string{
				`messages @model {"event":"message-start","id":"m2","role":"ai","run_id":"m2"}`,
				`messages @model {"event":"message-finish","id":"m2","reason":"stop","run_id":"m2"}`,
			},
		},
		"messages with which a subgraph goes on are not shown again": {
			steps: []step{
				inner("values", "inner:1", `{"messages":[{"type":"human","id":"h1","content":"hi"},{`+called+`}]}`),
				inner("updates", "inner:1", `{"tools":{"messages":[{"type":"tool","id":"t1","tool_call_id":"c1","content":"blue"}]}}`),
				inner("values", "inner:1", `{"messages":[{`+called+`},{"type":"ai","id":"m2","content":""}]}`),
				update("inner", `"messages":[{`+called+`},{"type":"tool","id":"t1","tool_call_id":"c1","content":"blue"},{"type":"ai","id":"m2","content":""}]`),
			},
			methods: []string{"messages"},
			want: []string{
				`messages @inner {"event":"message-start","id":"m2","role":"ai","run_id":"m2"}`,
				`messages @inner {"event":"message-finish","id":"m2","reason":"stop","run_id":"m2"}`,
			},
		},
		"a message may have the name of a subgraph as its id": {
			steps: []step{
				inner("values", "inner:1", `{"messages":[]}`),
				update("inner", `"messages":[{"type":"ai","id":"inner:1","content":""}]`),
			},
			methods: []string{"messages"},
			want: []string{
				`messages @inner {"event":"message-start","id":"inner:1","role":"ai","run_id":"inner:1"}`,
				`messages @inner {"event":"message-finish","id":"inner:1","reason":"stop","run_id":"inner:1"}`,
			},
		},
		"what removes messages is no message": {
			steps: []step{
				{run.EventMessages, `[{"type":"remove","id":"__remove_all__","content":""},{"graph_node":"model"}]`},
				update("model", `"messages":[{"type":"remove","id":"__remove_all__","content":""}]`),
			},
			methods: []string{"messages"},
		},
		"the result of a call of an earlier run is shown with what was called": {
			before:  []step{update("model", `"messages":[{`+called+`}]`)},
			steps:   []step{update("model", `"messages":[{`+called+`},{"type":"tool","id":"t1","tool_call_id":"c1","content":"blue"}]`)},
			methods: []string{"messages", "tools"},
			want: []string{
				`tools {"event":"tool-started","input":{},"tool_call_id":"c1","tool_name":"look"}`,
				`tools {"event":"tool-finished","output":{"type":"tool","id":"t1","tool_call_id":"c1","content":"blue"},"tool_call_id":"c1"}`,
			},
		},
		"the state of a subgraph is shown without its questions": {
			steps: []step{
				inner("values", "inner:1", `{"n":1,"__interrupt__":[{"id":"q1","value":1}]}`),
				inner("values", "inner:1", `{"__interrupt__":[{"id":"q1","value":1}]}`),
				inner("values", "inner:1", `{"text":"x"}`),
			},
			methods: []string{"values"},
			want:    []string{`values {"n":1}`, `values inner:1 {"n":1}`, `values inner:1 {"text":"x"}`},
		},
		"the usage of chunks is added up": {
			steps: []step{
				{run.EventMessages, `[{"type":"AIMessageChunk","id":"m1","content":"","usage_metadata":{"input_tokens":5,"output_tokens":1,"details":{"cached":2}}},{"graph_node":"model"}]`},
				{run.EventMessages, `[{"type":"AIMessageChunk","id":"m1","content":"","usage_metadata":{"input_tokens":0,"output_tokens":6,"details":{"cached":1}},"chunk_position":"last"},{"graph_node":"model"}]`},
			},
			methods: []string{"messages"},
			want: []string{
				`messages @model {"event":"message-start","id":"m1","metadata":{"graph_node":"model"},"role":"ai","run_id":"m1"}`,
				`messages @model {"event":"message-finish","id":"m1","reason":"stop","run_id":"m1","usage":{"details":{"cached":3},"input_tokens":5,"output_tokens":7}}`,
			},
		},
		"a message has what its provider says about the response": {
			steps: []step{
				{run.EventMessages, `[{"type":"AIMessageChunk","id":"m1","content":"","response_metadata":{"model_provider":"p"}},{"graph_node":"model"}]`},
				{run.EventMessages, `[{"type":"AIMessageChunk","id":"m1","content":"","response_metadata":{"model_provider":"p"}},{"graph_node":"model"}]`},
				{run.EventMessages, `[{"type":"AIMessageChunk","id":"m1","content":"","response_metadata":{"model_name":"n"},"chunk_position":"last"},{"graph_node":"model"}]`},
				token("m2", ""),
				update("model", `"messages":[{"type":"ai","id":"m2","content":"","response_metadata":{"model_name":"whole"}},{"type":"ai","id":"m3","content":"","response_metadata":{"model_name":"o"}}]`),
			},
			methods: []string{"messages"},
			want: []string{
				`messages @model {"event":"message-start","id":"m1","metadata":{"graph_node":"model"},"role":"ai","run_id":"m1"}`,
				`messages @model {"event":"message-finish","id":"m1","metadata":{"model_name":"n","model_provider":"p"},"reason":"stop","run_id":"m1"}`,
				`messages @model {"event":"message-start","id":"m2","metadata":{"graph_node":"model"},"role":"ai","run_id":"m2"}`,
				`messages @model {"event":"message-finish","id":"m2","metadata":{"model_name":"whole"},"reason":"stop","run_id":"m2"}`,
				`messages @model {"event":"message-start","id":"m3","role":"ai","run_id":"m3"}`,
				`messages @model {"event":"message-finish","id":"m3","metadata":{"model_name":"o"},"reason":"stop","run_id":"m3"}`,
			},
		},
		"a message has what its provider adds to it": {
			steps: []step{
				{run.EventMessages, `[{"type":"AIMessageChunk","id":"m1","content":"a","additional_kwargs":{"signature":"x","n":{"a":1}}},{"graph_node":"model"}]`},
				{run.EventMessages, `[{"type":"AIMessageChunk","id":"m1","content":"b","additional_kwargs":{"signature":"x","n":{"a":1}}},{"graph_node":"model"}]`},
				{run.EventMessages, `[{"type":"AIMessageChunk","id":"m1","content":"","additional_kwargs":{},"chunk_position":"last"},{"graph_node":"model"}]`},
				token("m2", ""),
				update("model", `"messages":[{"type":"ai","id":"m2","content":"","additional_kwargs":{"of":"m2"}},{"type":"ai","id":"m3","content":"","additional_kwargs":{"of":"m3"}}]`),
			},
			methods: []string{"messages"},
			want: []string{
				`messages @model {"event":"message-start","id":"m1","metadata":{"graph_node":"model"},"role":"ai","run_id":"m1"}`,
				`messages @model {"content":{"text":"","type":"text"},"event":"content-block-start","id":"m1","index":0,"run_id":"m1"}`,
				`messages @model {"event":"content-block-delta","index":0,"delta":{"type":"text-delta","text":"a"},"id":"m1","run_id":"m1"}`,
				`messages @model {"event":"content-block-delta","index":0,"delta":{"type":"text-delta","text":"b"},"id":"m1","run_id":"m1"}`,
				`messages @model {"content":{"text":"ab","type":"text"},"event":"content-block-finish","id":"m1","index":0,"run_id":"m1"}`,
				`messages @model {"additional_kwargs":{"n":{"a":2},"signature":"xx"},"event":"message-finish","id":"m1","reason":"stop","run_id":"m1"}`,
				`messages @model {"event":"message-start","id":"m2","metadata":{"graph_node":"model"},"role":"ai","run_id":"m2"}`,
				`messages @model {"additional_kwargs":{"of":"m2"},"event":"message-finish","id":"m2","reason":"stop","run_id":"m2"}`,
				`messages @model {"event":"message-start","id":"m3","role":"ai","run_id":"m3"}`,
				`messages @model {"additional_kwargs":{"of":"m3"},"event":"message-finish","id":"m3","reason":"stop","run_id":"m3"}`,
			},
		},
		"a message that was too long says so": {
			steps: []step{
				{run.EventMessages, `[{"type":"AIMessageChunk","id":"m1","content":"","response_metadata":{"finish_reason":"length"}},{"graph_node":"model"}]`},
				{run.EventMessages, `[{"type":"AIMessageChunk","id":"m1","content":"","response_metadata":{},"usage_metadata":null,"chunk_position":"last"},{"graph_node":"model"}]`},
				update("model", `"messages":[{"type":"ai","id":"m2","content":"","response_metadata":{"stop_reason":"tool_use"}}]`),
			},
			methods: []string{"messages"},
			want: []string{
				`messages @model {"event":"message-start","id":"m1","metadata":{"graph_node":"model"},"role":"ai","run_id":"m1"}`,
				`messages @model {"event":"message-finish","id":"m1","metadata":{"finish_reason":"length"},"reason":"length","run_id":"m1"}`,
				`messages @model {"event":"message-start","id":"m2","role":"ai","run_id":"m2"}`,
				`messages @model {"event":"message-finish","id":"m2","metadata":{"stop_reason":"tool_use"},"reason":"tool_use","run_id":"m2"}`,
			},
		},
		"a streamed message takes its reason from what the node returns": {
			steps: []step{
				token("m1", ""),
				update("model", `"messages":[{"type":"ai","id":"m1","content":"","response_metadata":{"finish_reason":"content_filter"}}]`),
			},
			methods: []string{"messages"},
			want: []string{
				`messages @model {"event":"message-start","id":"m1","metadata":{"graph_node":"model"},"role":"ai","run_id":"m1"}`,
				`messages @model {"event":"message-finish","id":"m1","metadata":{"finish_reason":"content_filter"},"reason":"content_filter","run_id":"m1"}`,
			},
		},
		"reasoning that comes as a summary": {
			steps: []step{
				{run.EventMessages, `[{"type":"AIMessageChunk","id":"m1","content":[{"type":"reasoning","index":0,"summary":[{"type":"summary_text","text":"Hm"}]}]},{"graph_node":"model"}]`},
				{run.EventMessages, `[{"type":"AIMessageChunk","id":"m1","content":[{"type":"reasoning","index":0,"summary":[{"text":", "},{"text":"yes"}]}],"chunk_position":"last"},{"graph_node":"model"}]`},
			},
			methods: []string{"messages"},
			want: []string{
				`messages @model {"event":"message-start","id":"m1","metadata":{"graph_node":"model"},"role":"ai","run_id":"m1"}`,
				`messages @model {"content":{"reasoning":"","type":"reasoning"},"event":"content-block-start","id":"m1","index":0,"run_id":"m1"}`,
				`messages @model {"event":"content-block-delta","index":0,"delta":{"type":"reasoning-delta","reasoning":"Hm"},"id":"m1","run_id":"m1"}`,
				`messages @model {"event":"content-block-delta","index":0,"delta":{"type":"reasoning-delta","reasoning":", yes"},"id":"m1","run_id":"m1"}`,
				`messages @model {"content":{"reasoning":"Hm, yes","type":"reasoning"},"event":"content-block-finish","id":"m1","index":0,"run_id":"m1"}`,
				`messages @model {"event":"message-finish","id":"m1","reason":"stop","run_id":"m1"}`,
			},
		},
		"the other members of texts are in the finished blocks": {
			steps: []step{
				chunk(`{"type":"text","index":0,"text":"","citations":[],"annotations":null}`),
				chunk(`{"type":"text","index":0,"text":"Blue","citations":[{"url":"a"}]}`),
				chunk(`{"type":"text","index":0,"text":"","citations":[{"url":"b"}],"id":"t"}`),
				chunk(`{"type":"thinking","index":1,"thinking":"","signature":"s"}`),
			},
			methods: []string{"messages"},
			want: []string{
				`messages @model {"event":"message-start","id":"m1","metadata":{"graph_node":"model"},"role":"ai","run_id":"m1"}`,
				`messages @model {"content":{"text":"","type":"text"},"event":"content-block-start","id":"m1","index":0,"run_id":"m1"}`,
				`messages @model {"event":"content-block-delta","index":0,"delta":{"type":"text-delta","text":"Blue"},"id":"m1","run_id":"m1"}`,
				`messages @model {"content":{"reasoning":"","type":"reasoning"},"event":"content-block-start","id":"m1","index":1,"run_id":"m1"}`,
				`messages @model {"content":{"citations":[{"url":"a"},{"url":"b"}],"text":"Blue","type":"text"},"event":"content-block-finish","id":"m1","index":0,"run_id":"m1"}`,
				`messages @model {"content":{"reasoning":"","signature":"s","type":"reasoning"},"event":"content-block-finish","id":"m1","index":1,"run_id":"m1"}`,
				`messages @model {"event":"message-finish","id":"m1","reason":"stop","run_id":"m1"}`,
			},
		},
		"pieces of data, and of the arguments of a call that the provider carries out": {
			steps: []step{
				chunk(`{"type":"audio","index":0,"data":"AAAA","mime_type":"audio/wav"}`),
				chunk(`{"type":"audio","index":0,"data":"BBBB"}`),
				chunk(`{"type":"server_tool_use","index":1,"id":"c1","name":"search","input":{}}`),
				chunk(`{"type":"input_json_delta","index":1,"partial_json":"{\"q\""}`),
				chunk(`{"type":"input_json_delta","index":1,"partial_json":":1}"}`),
				chunk(`{"type":"input_json_delta","index":2,"partial_json":"{}"}`),
			},
			methods: []string{"messages"},
			want: []string{
				`messages @model {"event":"message-start","id":"m1","metadata":{"graph_node":"model"},"role":"ai","run_id":"m1"}`,
				`messages @model {"content":{"data":"AAAA","mime_type":"audio/wav","type":"audio"},"event":"content-block-start","id":"m1","index":0,"run_id":"m1"}`,
				`messages @model {"delta":{"data":"BBBB","type":"data-delta"},"event":"content-block-delta","id":"m1","index":0,"run_id":"m1"}`,
				`messages @model {"content":{"id":"c1","input":{},"name":"search","type":"server_tool_use"},"event":"content-block-start","id":"m1","index":1,"run_id":"m1"}`,
				`messages @model {"delta":{"fields":{"id":"c1","input":{},"name":"search","partial_json":"{\"q\"","type":"server_tool_use"},"type":"block-delta"},"event":"content-block-delta","id":"m1","index":1,"run_id":"m1"}`,
				`messages @model {"delta":{"fields":{"id":"c1","input":{},"name":"search","partial_json":"{\"q\":1}","type":"server_tool_use"},"type":"block-delta"},"event":"content-block-delta","id":"m1","index":1,"run_id":"m1"}`,
				`messages @model {"content":{"data":"AAAABBBB","mime_type":"audio/wav","type":"audio"},"event":"content-block-finish","id":"m1","index":0,"run_id":"m1"}`,
				`messages @model {"content":{"id":"c1","input":{},"name":"search","partial_json":"{\"q\":1}","type":"server_tool_use"},"event":"content-block-finish","id":"m1","index":1,"run_id":"m1"}`,
				`messages @model {"event":"message-finish","id":"m1","reason":"stop","run_id":"m1"}`,
			},
		},
		"tools in the spelling of the protocol": {
			steps: []step{
				{"tools", `{"event":"tool-started","tool_call_id":"c1","tool_name":"look","input":{"at":"sky"}}`},
				{"tools", `{"event":"tool-output-delta","tool_call_id":"c1","delta":"bl"}`},
				{"tools", `{"event":"tool-finished","tool_call_id":"c1","output":"blue"}`},
				{"tools", `{"event":"tool-finished","tool_call_id":"c1","output":"again"}`},
				{"tools", `{"event":"tool-started","tool_call_id":"c2","tool_name":"look","input":{}}`},
				{"tools", `{"event":"tool-error","tool_call_id":"c2","message":"dark"}`},
			},
			methods: []string{"tools"},
			want: []string{
				`tools {"event":"tool-started","input":{"at":"sky"},"tool_call_id":"c1","tool_name":"look"}`,
				`tools {"delta":"bl","event":"tool-output-delta","tool_call_id":"c1"}`,
				`tools {"event":"tool-finished","output":"blue","tool_call_id":"c1"}`,
				`tools {"event":"tool-started","input":{},"tool_call_id":"c2","tool_name":"look"}`,
				`tools {"event":"tool-error","message":"dark","tool_call_id":"c2"}`,
			},
		},
		"tools in the spelling of callbacks": {
			steps: []step{
				{"tools", `{"event":"on_tool_start","toolCallId":"c1","name":"look","input":"{}"}`},
				{"tools", `{"event":"on_tool_event","toolCallId":"c1","name":"look","data":{"part":1}}`},
				{"tools", `{"event":"on_tool_end","toolCallId":"c1","name":"look","output":"blue"}`},
				{"tools", `{"event":"on_tool_start","toolCallId":"c2","name":"look","input":"{}"}`},
				{"tools", `{"event":"on_tool_error","toolCallId":"c2","name":"look","error":"dark"}`},
			},
			methods: []string{"tools"},
			want: []string{
				`tools {"event":"tool-started","input":"{}","tool_call_id":"c1","tool_name":"look"}`,
				`tools {"delta":"{\"part\":1}","event":"tool-output-delta","tool_call_id":"c1"}`,
				`tools {"event":"tool-finished","output":"blue","tool_call_id":"c1"}`,
				`tools {"event":"tool-started","input":"{}","tool_call_id":"c2","tool_name":"look"}`,
				`tools {"event":"tool-error","message":"dark","tool_call_id":"c2"}`,
			},
		},
		"calls of the same id in several subgraphs": {
			steps: []step{
				{"tasks", `{"id":"1","name":"a","input":{}}`},
				inner("tools", "a:1", `{"event":"tool-started","tool_call_id":"c1","tool_name":"look","input":{"at":"sky"}}`),
				inner("tools", "b:2", `{"event":"tool-started","tool_call_id":"c1","tool_name":"look","input":{"at":"sea"}}`),
				inner("tools", "b:2", `{"event":"tool-finished","tool_call_id":"c1","output":"green"}`),
				inner("updates", "b:2", `{"tools":{"messages":[{"type":"tool","id":"m2","tool_call_id":"c1","content":"green"}]}}`),
				inner("tools", "a:1", `{"event":"tool-finished","tool_call_id":"c1","output":"blue"}`),
				inner("updates", "c:3", `{"tools":{"messages":[{"type":"tool","id":"m3","tool_call_id":"c1","content":"red"}]}}`),
				{run.EventUpdates, `{"c":{"messages":[{"type":"tool","id":"m3","tool_call_id":"c1","content":"red"}]}}`},
			},
			methods: []string{"tools"},
			want: []string{
				`tools a:1 {"event":"tool-started","input":{"at":"sky"},"tool_call_id":"c1","tool_name":"look"}`,
				`tools b:2 {"event":"tool-started","input":{"at":"sea"},"tool_call_id":"c1","tool_name":"look"}`,
				`tools b:2 {"event":"tool-finished","output":"green","tool_call_id":"c1"}`,
				`tools a:1 {"event":"tool-finished","output":"blue","tool_call_id":"c1"}`,
				`tools c:3 {"event":"tool-started","input":null,"tool_call_id":"c1","tool_name":""}`,
				`tools c:3 {"event":"tool-finished","output":{"type":"tool","id":"m3","tool_call_id":"c1","content":"red"},"tool_call_id":"c1"}`,
			},
		},
		"what the framework says about updates is no update": {
			steps:   []step{{run.EventUpdates, `{"n":{"a":1},"__metadata__":{"cached":true}}`}},
			methods: []string{"updates"},
			want:    []string{`updates @n {"a":1}`},
		},
		"a subgraph that is an agent has the agent's name": {
			steps: []step{
				{"tasks", `{"id":"1","name":"tools","input":{"tool_call":{"id":"c1"}},"metadata":{"lc_agent_name":"lead"}}`},
				inner("values", "tools:1", `{"n":1}`),
				inner("tasks", "tools:1", `{"id":"2","name":"model","input":{},"metadata":{"lc_agent_name":"researcher"}}`),
				inner("tasks", "tools:1", `{"id":"2","name":"model","result":{}}`),
				inner("tasks", "tools:1|deep:3", `{"id":"4","name":"n","input":{}}`),
				{"tasks", `{"id":"1","name":"tools","result":{}}`},
			},
			methods: []string{"lifecycle", "values"},
			want: []string{
				`lifecycle {"event":"running","graph_name":"agent"}`,
				`values {"n":1}`,
				`values tools:1 {"n":1}`,
				`lifecycle tools:1 {"event":"started","graph_name":"researcher","cause":{"tool_call_id":"c1","type":"toolCall"}}`,
				`lifecycle tools:1|deep:3 {"event":"started","graph_name":"deep"}`,
				`lifecycle tools:1|deep:3 {"event":"completed","graph_name":"deep"}`,
				`lifecycle tools:1 {"event":"completed","graph_name":"researcher"}`,
				`lifecycle {"event":"completed","graph_name":"agent"}`,
			},
		},
		"subgraphs end as the tasks do that they are in": {
			steps: []step{
				{"tasks", `{"id":"1","name":"a","input":{"tool_call":{"id":"c1"}}}`},
				inner("updates", "a:1", `{"n":{}}`),
				inner("updates", "a:1|deep:2", `{"n":{}}`),
				{"tasks", `{"id":"1","name":"a","result":{},"error":"kaboom"}`},
				inner("updates", "b:3", `{"n":{}}`),
				{"tasks", `{"id":"3","name":"b","result":{},"interrupts":[{"id":"q","value":1}]}`},
				{"tasks", `{"id":"4","name":"c","input":[{"name":"look","args":{},"id":"c2","type":"tool_call"}]}`},
				inner("updates", "c:4", `{"n":{}}`),
				{"tasks", `{"id":"4","name":"c","result":{},"error":null,"interrupts":[]}`},
				inner("updates", "d:5", `{"n":{}}`),
			},
			outcome: run.Outcome{Status: run.Error, Failure: &run.Failure{Name: "E", Message: "kaboom"}},
			methods: []string{"lifecycle"},
			want: []string{
				`lifecycle {"event":"running","graph_name":"agent"}`,
				`lifecycle a:1 {"event":"started","graph_name":"a","cause":{"tool_call_id":"c1","type":"toolCall"}}`,
				`lifecycle a:1|deep:2 {"event":"started","graph_name":"deep"}`,
				`lifecycle a:1|deep:2 {"event":"failed","graph_name":"deep","error":"kaboom"}`,
				`lifecycle a:1 {"event":"failed","graph_name":"a","error":"kaboom"}`,
				`lifecycle b:3 {"event":"started","graph_name":"b"}`,
				`lifecycle b:3 {"event":"interrupted","graph_name":"b"}`,
				`lifecycle c:4 {"event":"started","graph_name":"c","cause":{"tool_call_id":"c2","type":"toolCall"}}`,
				`lifecycle c:4 {"event":"completed","graph_name":"c"}`,
				`lifecycle d:5 {"event":"started","graph_name":"d"}`,
				`lifecycle d:5 {"event":"failed","graph_name":"d"}`,
				`lifecycle {"event":"failed","graph_name":"agent","error":"kaboom"}`,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.does(run.Request{Payload: run.Payload{Input: input(`{"n":0}`)}}, c.before...)
			a := f.claim(f.create(run.Request{Payload: run.Payload{Input: input(`{"n":1}`)}, StreamSubgraphs: true}))
			f.shows(a, c.steps...)
			f.finish(a, c.outcome)
			all := f.read(everything(), f.before(a.Run), 1)
			f.wantOrder(all)
			f.wantLines(all, c.methods, c.want...)
		})
	}
}

// TestAnotherAttempt shows a message again, under the same id, that the previous attempt had
// begun.
func TestAnotherAttempt(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r := f.create(run.Request{})
	a := f.claim(r)
	f.shows(a, token("m0", "One"), update("model", `"messages":[{"type":"ai","id":"m0","content":"One"}]`), token("m1", "Hel"))
	a = f.claim(r)
	f.shows(a, token("m0", "One"), token("m1", "Hello"), update("model", `"messages":[{"type":"ai","id":"m1","content":"Hello"}]`))
	f.finish(a, run.Outcome{})
	start, block := `messages @model {"event":"message-start","id":%q,"metadata":{"graph_node":"model"},"role":"ai","run_id":%[1]q}`, `messages @model {"content":{"text":"","type":"text"},"event":"content-block-start","id":%q,"index":0,"run_id":%[1]q}`
	delta, end := `messages @model {"event":"content-block-delta","index":0,"delta":{"type":"text-delta","text":%[2]q},"id":%[1]q,"run_id":%[1]q}`, `messages @model {"content":{"text":%[2]q,"type":"text"},"event":"content-block-finish","id":%[1]q,"index":0,"run_id":%[1]q}`
	message := func(id, text, finish string) []string {
		return []string{fmt.Sprintf(start, id), fmt.Sprintf(block, id), fmt.Sprintf(delta, id, text), fmt.Sprintf(end, id, text), "messages @model " + finish}
	}
	want := message("m0", "One", `{"event":"message-finish","id":"m0","reason":"stop","run_id":"m0"}`)
	want = append(want, message("m1", "Hel", `{"event":"message-finish","id":"m1","run_id":"m1"}`)...)
	want = append(want, message("m1", "Hello", `{"event":"message-finish","id":"m1","reason":"stop","run_id":"m1"}`)...)
	all := f.read(everything(), nil, 1)
	f.wantOrder(all)
	f.wantLines(all, []string{"messages"}, want...)
}

// TestFilter lets a reader choose channels and subgraphs.
func TestFilter(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.does(run.Request{StreamSubgraphs: true},
		step{"custom", `{"name":"progress","n":1}`}, step{"custom", `"plain"`},
		inner("custom", "child:1", `2`), inner("custom", "child:1|deep:2", `3`), inner("custom", "children:3", `4`),
		step{"ask", `[{"id":"q","value":1}]`})
	all := f.read(everything(), nil, 1)
	named, plain := `custom {"name":"progress","n":1}`, `custom {"payload":"plain"}`
	child, deep, children := `custom child:1 {"payload":2}`, `custom child:1|deep:2 {"payload":3}`, `custom children:3 {"payload":4}`
	for name, c := range map[string]struct {
		filter protocol.Filter
		want   []string
	}{
		"a channel":               {protocol.Filter{Channels: []string{"custom"}}, []string{named, plain, child, deep, children}},
		"a name":                  {protocol.Filter{Channels: []string{"custom:progress"}}, []string{named}},
		"another name":            {protocol.Filter{Channels: []string{"custom:other"}}, nil},
		"questions":               {protocol.Filter{Channels: []string{"input"}}, []string{`input.requested {"interrupt_id":"q","payload":1,"value":1}`}},
		"a name and its channel":  {protocol.Filter{Channels: []string{"custom", "custom:progress"}}, []string{named, plain, child, deep, children}},
		"a node":                  {protocol.Filter{Channels: []string{"custom"}, Namespaces: [][]string{{"child"}}}, []string{child, deep}},
		"a node and its children": {protocol.Filter{Channels: []string{"custom"}, Namespaces: [][]string{{"child"}}, Depth: new(0)}, []string{child}},
		"a task":                  {protocol.Filter{Channels: []string{"custom"}, Namespaces: [][]string{{"child:1", "deep"}}}, []string{deep}},
		"another task":            {protocol.Filter{Channels: []string{"custom"}, Namespaces: [][]string{{"child:2"}}}, nil},
		"the graph itself":        {protocol.Filter{Channels: []string{"custom"}, Namespaces: [][]string{{}}, Depth: new(0)}, []string{named, plain}},
		"one level":               {protocol.Filter{Channels: []string{"custom"}, Namespaces: [][]string{{}}, Depth: new(1)}, []string{named, plain, child, children}},
		"two prefixes":            {protocol.Filter{Channels: []string{"custom"}, Namespaces: [][]string{{"children"}, {"child"}}, Depth: new(0)}, []string{child, children}},
		"no namespaces":           {protocol.Filter{Channels: []string{"custom"}, Namespaces: [][]string{}, Depth: new(0)}, []string{named, plain, child, deep, children}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, e := range all {
				if c.filter.Wants(e) {
					got = append(got, line(e))
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

// TestQuestionsWithoutAnID checks that questions without an id are shown each time, and other
// questions once.
func TestQuestionsWithoutAnID(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a := f.claim(f.create(run.Request{}))
	f.shows(a, step{"ask", `[{"value":1},{"value":2},{"id":"q","value":3},{"id":"q","value":3}]`})
	f.finish(a, run.Outcome{Interrupts: []byte(`{}`)})
	asked, ids := []int{}, map[string]bool{}
	for _, e := range f.read(everything(), nil, 1) {
		var question struct {
			ID    string `json:"interrupt_id"`
			Value int
		}
		if e.Method == protocol.MethodRequested {
			f.must(json.Unmarshal(e.Data, &question))
			asked, ids[question.ID] = append(asked, question.Value), true
		}
	}
	if diff := cmp.Diff([]int{1, 2, 3}, asked); diff != "" || len(ids) != 3 || ids[""] {
		t.Errorf("the ids are %v, the questions (-want +got):\n%s", ids, diff)
	}
}
