package run_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/seam/graph"
)

const (
	siblingUpdate = `"sib":{"messages":[{"type":"ai","content":"sib"}]}`
	otherUpdate   = `"other":{"messages":[{"type":"ai","content":"other"}]}`
)

// pausedBesideSibling pauses a graph of which one node asks, while its sibling has finished, and
// another node has not begun. It returns a run that resumes the graph, with its worker.
func (f *fixture) pausedBesideSibling() (run.Run, *run.Attempt) {
	f.t.Helper()
	_, a := f.started("in")
	at := graph.Checkpoint{ID: "c1", Values: json.RawMessage(`{"messages":[{"type":"human","id":"1","content":"in"}]}`), Next: []string{"ask", "other"}, Data: []byte("data")}
	at.Tasks = json.RawMessage(`[{"id":"t1","name":"ask"},{"id":"t2","name":"sib"},{"id":"t3","name":"other"}]`)
	f.must(a.Checkpoint(at))
	f.must(a.Update(run.EventUpdates, json.RawMessage(`{`+siblingUpdate+`}`)))
	f.must(a.Writes(graph.Writes{CheckpointID: "c1", TaskID: "t2", Data: []byte("finished")}))
	f.must(a.Writes(graph.Writes{CheckpointID: "c1", TaskID: "t1", Data: []byte("asked")}))
	at.Values = json.RawMessage(`{"messages":[{"type":"human","id":"1","content":"in"},{"type":"ai","id":"2","content":"sib"}]}`)
	at.Tasks = json.RawMessage(`[{"id":"t1","name":"ask","interrupts":[{"id":"i","value":"?"}]},{"id":"t2","name":"sib"},{"id":"t3","name":"other"}]`)
	f.must(a.Checkpoint(at))
	f.ask(a)
	r := f.resume(run.Enqueue, false)
	return r, f.claim(r)
}

// TestAnUpdateShownAgainIsNotFoldedAgain stops runs that have resumed a graph. The framework then
// shows again what the finished siblings of the node that asks have returned.
func TestAnUpdateShownAgainIsNotFoldedAgain(t *testing.T) {
	t.Parallel()
	const cached = `,"__metadata__":{"cached":true}`
	tests := map[string]struct {
		updates       []string
		want, pending []string
	}{
		"a sibling, marked after its update":  {[]string{`{` + siblingUpdate + cached + `}`}, nil, nil},
		"a sibling, marked before its update": {[]string{`{` + cached[1:] + `,` + siblingUpdate + `}`}, nil, nil},
		"a sibling, and a new update": {
			[]string{`{` + siblingUpdate + cached + `}`, `{` + otherUpdate + `}`}, []string{"ai other"}, []string{"other"},
		},
		"an update of the agent's own cache": {[]string{`{` + otherUpdate + cached + `}`}, []string{"ai other"}, []string{"other"}},
		"what is marked otherwise":           {[]string{`{` + otherUpdate + `,"__metadata__":{"other":{}}}`}, []string{"ai other"}, []string{"other"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, supersede := range []bool{false, true} {
				f := newFixture(t)
				r, a := f.pausedBesideSibling()
				for _, update := range test.updates {
					f.must(a.Update(run.EventUpdates, json.RawMessage(update)))
				}
				f.flush(a)
				want, pending := append([]string{"human in", "ai sib"}, test.want...), test.pending
				if supersede {
					r = f.create("new", run.Interrupt)
				} else {
					f.must(f.runs.Cancel(t.Context(), r.Ref, run.ActionInterrupt))
					if _, st, err := f.runs.State(t.Context(), f.ref); err != nil || test.want == nil && string(thread.InterruptsOf(st.At)) != asked {
						t.Errorf("the state is %+v (%v), want its question", st.At, err)
					}
					r = f.resume(run.Enqueue, false)
				}
				if diff := cmp.Diff(want, f.messages()); diff != "" {
					t.Errorf("supersede %v: messages (-want +got):\n%s", supersede, diff)
				}
				var got []string
				for _, update := range f.claim(r).Pending {
					got = append(got, update.AsNode)
				}
				if diff := cmp.Diff(pending, got); diff != "" {
					t.Errorf("supersede %v: pending updates (-want +got):\n%s", supersede, diff)
				}
			}
		})
	}
}

// TestAnUpdateShownAgainAfterACancelIsNotFoldedAgain stops two runs one after the other. The first
// has left the sibling's update in the state of the server, so the second begins there.
func TestAnUpdateShownAgainAfterACancelIsNotFoldedAgain(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r, a := f.pausedBesideSibling()
	f.must(a.Update(run.EventUpdates, json.RawMessage(`{`+otherUpdate+`}`)))
	f.must(a.Writes(graph.Writes{CheckpointID: "c1", TaskID: "t3", Data: []byte("finished")}))
	f.flush(a)
	f.must(f.runs.Cancel(t.Context(), r.Ref, run.ActionInterrupt))
	r = f.resume(run.Enqueue, false)
	a = f.claim(r)
	for _, update := range []string{siblingUpdate, otherUpdate} {
		f.must(a.Update(run.EventUpdates, json.RawMessage(`{`+update+`,"__metadata__":{"cached":true}}`)))
	}
	f.flush(a)
	f.must(f.runs.Cancel(t.Context(), r.Ref, run.ActionInterrupt))
	if diff := cmp.Diff([]string{"human in", "ai sib", "ai other"}, f.messages()); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}
