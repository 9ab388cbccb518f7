package run_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

var bytewise = cmp.Comparer(bytes.Equal)

// saved is the data that an agent should get back for one of its checkpoints.
type saved struct {
	graph.Checkpoint

	// kept are the lasting subgraphs at the time of the checkpoint, since the subgraphs that
	// came after it, with the results of tasks.
	kept, since map[string]graph.Checkpoint
	writes      []graph.Writes
}

// keeper plays an agent that keeps checkpoints, its clients and its workers on one thread, and
// remembers the data that must be stored.
type keeper struct {
	*fixture
	t *rapid.T
	// all are the agent's checkpoints in the order in which they came; at is the agent's
	// present checkpoint, nil before the first checkpoint.
	all []*saved
	at  *saved
	// superseded says that the thread has moved past at.
	superseded bool
	// values are the values of the thread.
	values map[string]json.RawMessage
	// pending are the updates that the agent has to make, as "node text".
	pending []string
	run     run.Run
	attempt *run.Attempt
	count   int
	// partial is the text of the message that is being written. stale says that an earlier
	// attempt began this message.
	partial, id string
	stale       bool
}

// TestCheckpointsOfAgentsAreKeptAsTheyCame runs random histories of checkpoints, subgraphs,
// results, interrupts, new attempts and forks.
func TestCheckpointsOfAgentsAreKeptAsTheyCame(t *testing.T) {
	t.Parallel()
	tb := fixtures.DomainTable(t, clock.System)
	rapid.Check(t, func(rt *rapid.T) {
		k := &keeper{fixture: newFixtureOn(t, tb), t: rt, values: map[string]json.RawMessage{}}
		for range rapid.IntRange(3, check.Size(25, 8)).Draw(rt, "steps") {
			k.step()
		}
		if k.attempt != nil {
			k.end()
		}
		k.check()
	})
}

func (k *keeper) next(kind string) string {
	k.count++
	return fmt.Sprintf("%s-%d", kind, k.count)
}

func (k *keeper) ok(err error) {
	k.t.Helper()
	if err != nil {
		k.t.Fatal(err)
	}
}

func (k *keeper) step() {
	if k.attempt == nil {
		k.begin(run.Enqueue, rapid.IntRange(0, 3).Draw(k.t, "fork") == 0)
		return
	}
	switch rapid.IntRange(0, 9).Draw(k.t, "what") {
	case 0, 1, 2:
		k.save()
	case 3:
		k.saveSubgraph(rapid.SampledFrom([]string{"a:1", "b:2", "lasting"}).Draw(k.t, "namespace"))
	case 4:
		k.write(rapid.SampledFrom([]string{"t1", "t2"}).Draw(k.t, "task"))
	case 5:
		k.speak()
	case 6:
		k.again()
	case 7:
		k.begin(run.Interrupt, rapid.IntRange(0, 3).Draw(k.t, "fork") == 0)
	case 8:
		k.amend()
	case 9:
		k.end()
	}
}

// begin creates a run and takes it up. It interrupts a run in flight, which leaves its shown
// output.
func (k *keeper) begin(strategy run.Strategy, fork bool) {
	if k.attempt != nil {
		k.ok(k.attempt.Flush(k.fixture.t.Context()))
	}
	request := run.Request{Graph: "agent", Strategy: strategy}
	given := ""
	if rapid.Bool().Draw(k.t, "input") {
		given = k.next("input")
		request.Input = input(fmt.Sprintf(`{"messages":[{"type":"human","id":%q,"content":"x"}]}`, given))
	}
	if k.attempt != nil && k.partial != "" {
		k.add("model", k.id)
	}
	var to *saved
	if fork && len(k.all) > 0 {
		to = rapid.SampledFrom(k.all).Draw(k.t, "to")
		request.Fork = &run.Fork{ID: to.ID}
	}
	k.partial = ""
	created, err := k.runs.Create(k.fixture.t.Context(), k.ref, request)
	k.ok(err)
	k.run = created
	if to != nil && (to != k.at || len(k.pending) > 0) {
		k.at, k.pending, k.superseded = to, nil, true
		k.values = map[string]json.RawMessage{}
		k.ok(json.Unmarshal(to.Values, &k.values))
	}
	k.take()
	if given != "" {
		k.add("__input__", given)
	}
}

// add puts a message into the thread's values, and among the updates that the agent lacks.
func (k *keeper) add(node, id string) {
	k.pending = append(k.pending, node+" "+id)
	k.values["ids"] = append(k.values["ids"], (id + " ")...)
}

// again lets another worker take the run up.
func (k *keeper) again() {
	k.ok(k.attempt.HandOver(k.fixture.t.Context()))
	if k.get(k.run).Idle >= run.MaxIdleSlices {
		_, err := k.runs.Claim(k.fixture.t.Context(), k.run.Ref, 0)
		if err == nil {
			k.t.Fatal("the run is taken up although it makes no progress")
		}
		k.ok(k.runs.TimeOut(k.fixture.t.Context(), k.run.Ref, run.Failure{Name: "idle"}))
		k.attempt = nil
		if k.partial != "" {
			k.add("model", k.id)
		}
		k.partial = ""
		return
	}
	k.stale = k.partial != ""
	k.take()
}

// take claims the run and compares the checkpoints and updates that the agent gets.
func (k *keeper) take() {
	a, err := k.runs.Claim(k.fixture.t.Context(), k.run.Ref, 0)
	k.ok(err)
	k.attempt = a
	expected := k.expected(k.at)
	if expected != nil {
		expected.Superseded = k.superseded
	}
	if diff := cmp.Diff(expected, a.Log.Checkpoints(), bytewise); diff != "" {
		k.t.Fatalf("checkpoints for the agent (-want +got):\n%s", diff)
	}
	got := []string{}
	for _, update := range a.Pending {
		var u struct{ Messages []struct{ ID string } }
		k.ok(json.Unmarshal(update.Values, &u))
		got = append(got, update.AsNode+" "+u.Messages[0].ID)
	}
	want := slices.DeleteFunc(slices.Clone(k.pending), func(p string) bool { return k.ownInput(p) })
	if diff := cmp.Diff(append([]string{}, want...), got); diff != "" {
		k.t.Fatalf("pending updates (-want +got):\n%s", diff)
	}
}

// ownInput reports whether a pending update is the input of the run itself.
func (k *keeper) ownInput(pending string) bool {
	id, ok := strings.CutPrefix(pending, "__input__ ")
	return ok && strings.Contains(string(k.run.Input.JSON()), fmt.Sprintf("%q", id))
}

// expected returns the checkpoints that the agent gets when it continues from s.
func (k *keeper) expected(s *saved) *graph.Checkpoints {
	if s == nil {
		return nil
	}
	bare := func(c graph.Checkpoint) graph.Checkpoint {
		c.Values, c.Next, c.Tasks, c.Metadata = nil, nil, nil, nil
		return c
	}
	all := &graph.Checkpoints{ID: s.ID, Checkpoints: []graph.Checkpoint{bare(s.Checkpoint)}, Writes: append([]graph.Writes{}, s.writes...)}
	newest := maps.Clone(s.kept)
	maps.Copy(newest, s.since)
	for _, ns := range slices.Sorted(maps.Keys(newest)) {
		all.Checkpoints = append(all.Checkpoints, bare(newest[ns]))
	}
	return all
}

// data returns the agent's own data, most of which is the same as before.
func (k *keeper) data(before []byte) []byte {
	added := fmt.Sprintf("%s:%s;", k.next("data"), strings.Repeat("x", rapid.IntRange(0, 9000).Draw(k.t, "size")))
	cut := rapid.IntRange(0, len(before)).Draw(k.t, "cut")
	return slices.Concat(before[:cut], []byte(added), before[cut:])
}

// save makes the next checkpoint of the root graph: the agent has made all updates, and adds a
// message.
func (k *keeper) save() {
	c := graph.Checkpoint{ID: k.next("checkpoint"), Next: []string{"model"}, Metadata: json.RawMessage(`{"source":"loop"}`)}
	s := &saved{kept: map[string]graph.Checkpoint{}, since: map[string]graph.Checkpoint{}}
	var data []byte
	if k.at != nil {
		c.ParentID, data = k.at.ID, k.at.Data
		maps.Copy(s.kept, k.at.kept)
		for ns, sub := range k.at.since {
			if sub.Persistent {
				s.kept[ns] = sub
			}
		}
	}
	c.Data = k.data(data)
	values := map[string]any{"messages": []any{}, "step": k.count}
	for ns := range rapid.IntRange(0, 4).Draw(k.t, "messages") {
		values["messages"] = append(values["messages"].([]any), map[string]any{"type": "ai", "id": fmt.Sprint("m", ns), "content": "x"})
	}
	raw, err := json.Marshal(values)
	k.ok(err)
	c.Values = raw
	s.Checkpoint = c
	k.ok(k.attempt.Checkpoint(c))
	k.all, k.at, k.pending, k.superseded = append(k.all, s), s, nil, false
	before, added := k.values["messages"], k.values["ids"]
	k.values = map[string]json.RawMessage{}
	k.ok(json.Unmarshal(raw, &k.values))
	if k.stale && (len(added) > 0 || !sameJSON(before, k.values["messages"])) {
		k.partial = "" // this attempt has written a message in its place
	}
}

func (k *keeper) saveSubgraph(ns string) {
	if k.at == nil {
		return
	}
	before := k.at.Data
	if own, ok := k.at.since[ns]; ok {
		before = own.Data
	}
	c := graph.Checkpoint{
		ID: k.next("sub"), NS: ns, Persistent: ns == "lasting", Values: json.RawMessage(fmt.Sprintf(`{"n":%d}`, k.count)), Data: k.data(before),
	}
	k.ok(k.attempt.Checkpoint(c))
	k.at.since[ns] = c
}

func (k *keeper) write(task string) {
	if k.at == nil {
		return
	}
	w := graph.Writes{CheckpointID: k.at.ID, TaskID: task, Data: []byte(k.next("result"))}
	k.ok(k.attempt.Writes(w))
	k.at.writes = append(slices.DeleteFunc(k.at.writes, func(other graph.Writes) bool { return other.TaskID == task }), w)
}

// speak shows a piece of a message that the node "model" writes.
func (k *keeper) speak() {
	if k.partial == "" {
		k.id = k.next("partial")
	}
	k.stale = false
	k.partial += "x"
	k.attempt.Unfinished([]graph.Unfinished{{ID: k.id, Node: "model"}})
	k.attempt.Show(run.EventMessages, json.RawMessage(fmt.Sprintf(`[{"id":%q,"type":"AIMessageChunk","content":"x"},{"graph_node":"model"}]`, k.id)))
	k.ok(k.attempt.Flush(k.fixture.t.Context()))
}

// amend sends the newest checkpoint once more.
func (k *keeper) amend() {
	if k.at == nil {
		return
	}
	c := k.at.Checkpoint
	c.Tasks = json.RawMessage(`[{"id":"t1","name":"model","interrupts":[]}]`)
	k.ok(k.attempt.Checkpoint(c))
}

// end ends the run with success. A message that was not finished is not kept in this case.
func (k *keeper) end() {
	k.ok(k.attempt.Finish(k.fixture.t.Context(), run.Outcome{Status: run.Success}))
	k.attempt, k.partial = nil, ""
}

// check compares each checkpoint with the stored checkpoint.
func (k *keeper) check() {
	ctx := k.fixture.t.Context()
	for _, s := range k.all {
		number, err := k.threads.Find(ctx, k.ref, s.ID)
		k.ok(err)
		st, err := k.threads.StateAt(ctx, k.ref, number)
		k.ok(err)
		if st.At.ID != s.ID || st.At.ParentID != s.ParentID || !st.At.Own() {
			k.t.Fatalf("checkpoint %s is stored as %+v", s.ID, st.At)
		}
		if !sameJSON(s.Values, st.Values.JSON()) {
			k.t.Fatalf("values of %s: got %s, want %s", s.ID, st.Values.JSON(), s.Values)
		}
		log, err := k.threads.ReadFrame(ctx, thread.NewLog(k.ref, st))
		k.ok(err)
		if diff := cmp.Diff(k.expected(s), log.Checkpoints(), bytewise); diff != "" {
			k.t.Fatalf("frame of %s (-want +got):\n%s", s.ID, diff)
		}
	}
	k.checkHistory()
}

// checkHistory checks that the history has all of the agent's checkpoints, newest first. It
// compares the history by pages with the history in one read.
func (k *keeper) checkHistory() {
	ctx := k.fixture.t.Context()
	whole, err := k.threads.History(ctx, k.ref, thread.Newest, 1000, nil)
	k.ok(err)
	var own []string
	for _, c := range whole {
		if c.Own() {
			own = append([]string{c.ID}, own...)
			if st, err := k.threads.StateAt(ctx, k.ref, c.Number); err != nil || string(st.Values.JSON()) != string(c.Values) {
				k.t.Fatalf("history shows %s of %s (%v)", c.Values, c.ID, err)
			}
		}
	}
	var want []string
	for _, s := range k.all {
		want = append(want, s.ID)
	}
	if diff := cmp.Diff(want, own); diff != "" {
		k.t.Fatalf("the agent's checkpoints in the history (-want +got):\n%s", diff)
	}
	var paged []thread.Snapshot
	for before := int64(thread.Newest); ; {
		page, err := k.threads.History(ctx, k.ref, before, 3, nil)
		k.ok(err)
		if len(page) == 0 {
			break
		}
		paged = append(paged, page...)
		before = page[len(page)-1].Number
	}
	if diff := cmp.Diff(ids(whole), ids(paged)); diff != "" {
		k.t.Fatalf("history by pages (-at once +by pages):\n%s", diff)
	}
}

func ids(all []thread.Snapshot) []string {
	var out []string
	for _, c := range all {
		out = append(out, c.ID)
	}
	return out
}

func sameJSON(a, b json.RawMessage) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && cmp.Equal(x, y)
}
