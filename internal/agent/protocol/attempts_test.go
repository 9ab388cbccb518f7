package protocol_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/agent/protocol"
	"github.com/slipway-run/slipway/internal/agent/run"
)

// TestAnotherAttemptTakesMessagesBack checks that the messages of the steps that an attempt did
// not finish are removed from the state that clients see, and that the messages of finished
// steps stay.
func TestAnotherAttemptTakesMessagesBack(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r := f.create(run.Request{Payload: run.Payload{Input: input(`{"messages":[{"type":"human","id":"h","content":"Hi"}]}`)}})
	a := f.claim(r)
	f.shows(a, token("m0", "One"), update("model", `"messages":[{"type":"ai","id":"m0","content":"One"}]`))
	f.shows(a, token("m1", "Hel"), step{run.EventMessages, `[{"type":"AIMessageChunk","id":"m2","content":"By","chunk_position":"last"},{"graph_node":"other"}]`})
	a = f.claim(r)
	f.shows(a, token("m3", "Hello"), update("model", `"messages":[{"type":"ai","id":"m3","content":"Hello"}]`))
	f.finish(a, run.Outcome{})
	human, one, hello := `{"type":"human","id":"h","content":"Hi"}`, `{"type":"ai","id":"m0","content":"One"}`, `{"type":"ai","id":"m3","content":"Hello"}`
	all := f.read(everything(), nil, 1)
	f.wantOrder(all)
	f.wantLines(all, []string{"values"}, fmt.Sprintf(`values {"messages":[%s]}`, human), fmt.Sprintf(`values {"messages":[%s,%s]}`, human, one),
		fmt.Sprintf(`values {"messages":[%s,%s,{"id":"m1","type":"remove"},{"id":"m2","type":"remove"}]}`, human, one),
		fmt.Sprintf(`values {"messages":[%s,%s]}`, human, one), fmt.Sprintf(`values {"messages":[%s,%s,%s]}`, human, one, hello))
	for i, e := range all {
		if e.Method == protocol.MethodCheckpoints && all[i+1].Method != protocol.MethodValues {
			t.Errorf("%s is behind a checkpoint", line(all[i+1]))
		}
		if i == 0 {
			continue
		}
		if diff := cmp.Diff(all[i:], f.read(everything(), &all[i-1].Seq, 1)); diff != "" {
			t.Errorf("behind %s (-first +again):\n%s", line(all[i-1]), diff)
		}
	}
	some := slices.DeleteFunc(slices.Clone(all), func(e protocol.Event) bool {
		return e.Method != protocol.MethodMessages && e.Method != protocol.MethodLifecycle
	})
	if diff := cmp.Diff(some, f.read(protocol.Filter{Channels: []string{"messages"}}, nil, 1)); diff != "" {
		t.Errorf("the events of a reader without states (-want +got):\n%s", diff)
	}
}

// TestAnotherAttemptRepeatsASubgraph checks that the messages of a subgraph are removed if the step
// of the root graph had not finished, although nodes of the subgraph had. The messages of a task of
// the root graph that had finished stay.
func TestAnotherAttemptRepeatsASubgraph(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	says := func(id, ns, task string) step {
		return inner("messages", ns, fmt.Sprintf(
			`[{"type":"AIMessageChunk","id":%q,"content":"Hi","chunk_position":"last"},{"graph_node":"model","x_checkpoint_ns":"%s|model:%s"}]`, id, ns, task,
		))
	}
	r := f.create(run.Request{Payload: run.Payload{Input: input(`{"messages":[]}`)}})
	a := f.claim(r)
	f.shows(a, update("first", `"messages":[]`),
		says("m1", "sub:1", "3"), inner("tasks", "sub:1", `{"id":"3","name":"model","result":{}}`),
		says("m2", "other:2", "4"), inner("tasks", "other:2", `{"id":"4","name":"model","result":{}}`),
		step{"tasks", `{"id":"2","name":"other","result":{}}`})
	f.finish(f.claim(r), run.Outcome{})
	f.wantLines(f.read(everything(), nil, 1), []string{"values"}, `values {"messages":[]}`, `values {"messages":[]}`,
		`values {"messages":[{"id":"m1","type":"remove"}]}`, `values {"messages":[]}`)
}

// TestAnotherAttemptRepeatsTools checks that the call of a tool goes on if the next attempt
// repeats the call, and ends with the run if it does not.
func TestAnotherAttemptRepeatsTools(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	tool := func(event, id, more string) step {
		return step{protocol.MethodTools, fmt.Sprintf(`{"event":%q,"tool_call_id":%q%s}`, event, id, more)}
	}
	r := f.create(run.Request{})
	a := f.claim(r)
	f.shows(a, tool("tool-started", "c1", `,"tool_name":"look"`), tool("tool-started", "c2", `,"tool_name":"look"`), tool("tool-started", "c3", `,"tool_name":"look"`))
	a = f.claim(r)
	f.shows(a, tool("tool-started", "c1", `,"tool_name":"look"`), tool("tool-finished", "c1", `,"output":1`), tool("tool-started", "c2", `,"tool_name":"look"`))
	f.finish(a, run.Outcome{})
	f.wantLines(f.read(everything(), nil, 1), []string{"tools"},
		`tools {"event":"tool-started","input":null,"tool_call_id":"c1","tool_name":"look"}`,
		`tools {"event":"tool-started","input":null,"tool_call_id":"c2","tool_name":"look"}`,
		`tools {"event":"tool-started","input":null,"tool_call_id":"c3","tool_name":"look"}`,
		`tools {"event":"tool-finished","output":1,"tool_call_id":"c1"}`,
		`tools {"event":"tool-error","message":"The tool was cut off, and the run called it no more.","tool_call_id":"c3"}`)
}
