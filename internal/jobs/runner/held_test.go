package runner_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/seam/graph/graphtest"
)

// audience is the Func of an agent that answers each run, and notes the values in the
// invocations.
type audience struct {
	mu sync.Mutex
	// heard are the ids of the messages in the newest invocation, mood is another value in it.
	heard []string
	mood  string
	bases int
}

func (l *audience) answer(ctx context.Context, invocation graph.Invocation, emit func(string, any)) error {
	var values struct {
		Messages []struct{ ID string }
		Mood     string
	}
	if err := json.Unmarshal(invocation.State.Values, &values); err != nil {
		return err
	}
	if len(values.Messages) == 0 {
		return errors.New("nobody has said anything")
	}
	ids := make([]string, len(values.Messages))
	for i, message := range values.Messages {
		ids[i] = message.ID
	}
	l.mu.Lock()
	l.heard, l.mood = ids, values.Mood
	if invocation.State.Base != nil {
		l.bases++
	}
	l.mu.Unlock()
	last := ids[len(ids)-1]
	switch {
	case strings.HasPrefix(last, "break") && invocation.Attempt == 1:
		emit(graph.EventUpdates, update("half of "+last, ""))
		return graphtest.ErrBreak
	case strings.HasPrefix(last, "wait"):
		emit(graph.EventUpdates, update("half of "+last, ""))
		<-ctx.Done()
		return ctx.Err()
	}
	emit(graph.EventUpdates, update("answer to "+last, ""))
	return nil
}

// give makes a run with an input.
func (f *fixture) give(ref thread.Ref, raw string) run.Run {
	f.t.Helper()
	created, err := f.runs.Create(f.t.Context(), ref, run.Request{Graph: "agent", Strategy: run.Enqueue, Input: input(raw)})
	f.must(err)
	return created
}

// sayLong makes a thread hold so many values that it is not worth sending them again and
// again.
func (f *fixture) sayLong(ref thread.Ref) run.Run {
	return f.give(ref, fmt.Sprintf(`{"messages":[{"type":"human","id":"long","content":%q}]}`, strings.Repeat("long ", 20_000)))
}

// TestAnAgentThatHoldsValuesIsSentWhatIsNew checks that the agent sees the same values as an
// agent that gets all values each time, whatever happens between its runs.
func TestAnAgentThatHoldsValuesIsSentWhatIsNew(t *testing.T) {
	t.Parallel()
	const long, answer = "long", "answer to long"
	for name, c := range map[string]struct {
		// between happens before the last run, whose invocation must have the values want.
		between        func(f *fixture, h *graphtest.Holder, ref thread.Ref)
		want           []string
		mood           string
		patched, whole int
	}{
		"nothing": {func(*fixture, *graphtest.Holder, thread.Ref) {}, []string{long, answer, "last"}, "", 1, 1},
		"a run": {func(f *fixture, _ *graphtest.Holder, ref thread.Ref) {
			f.join(f.create(ref, "more", run.Enqueue))
		}, []string{long, answer, "more", "answer to more", "last"}, "", 2, 1},
		"the agent is started again": {func(_ *fixture, h *graphtest.Holder, _ thread.Ref) {
			h.Forget()
		}, []string{long, answer, "last"}, "", 0, 2},
		"another release at the address": {func(f *fixture, _ *graphtest.Holder, _ thread.Ref) {
			f.target.promoted.Add(1)
		}, []string{long, answer, "last"}, "", 0, 2},
		"an agent at the address that does not look at patches": {func(_ *fixture, h *graphtest.Holder, _ thread.Ref) {
			h.Mute.Store(true)
		}, []string{long, answer, "last"}, "", 0, 1},
		"workers in other processes": {func(f *fixture, _ *graphtest.Holder, _ thread.Ref) {
			f.apart = true
		}, []string{long, answer, "last"}, "", 0, 2},
		"another value": {func(f *fixture, _ *graphtest.Holder, ref thread.Ref) {
			f.join(f.give(ref, `{"mood":"good","messages":[]}`))
		}, []string{long, answer, "answer to " + answer, "last"}, "good", 2, 1},
		"a thread that becomes short": {func(f *fixture, _ *graphtest.Holder, ref thread.Ref) {
			f.join(f.give(ref, `{"messages":[{"type":"remove","id":"long"}]}`))
		}, []string{answer, "answer to " + answer, "last"}, "", 0, 3},
		"a thread that becomes another": {func(f *fixture, _ *graphtest.Holder, ref thread.Ref) {
			f.join(f.give(ref, fmt.Sprintf(`{"messages":[{"type":"remove","id":"__remove_all__"},{"type":"human","id":"new","content":%q}]}`, strings.Repeat("new ", 20_000))))
		}, []string{"new", "answer to new", "last"}, "", 1, 2},
		"a broken connection": {func(f *fixture, _ *graphtest.Holder, ref thread.Ref) {
			f.join(f.create(ref, "break", run.Enqueue))
		}, []string{long, answer, "break", "half of break", "answer to half of break", "last"}, "", 3, 1},
		"an interrupted run": {func(f *fixture, _ *graphtest.Holder, ref thread.Ref) {
			f.until(f.create(ref, "wait", run.Enqueue), graph.EventUpdates)
			f.join(f.create(ref, "more", run.Interrupt))
		}, []string{long, answer, "wait", "half of wait", "more", "answer to more", "last"}, "", 3, 1},
		"a run that is rolled back": {func(f *fixture, _ *graphtest.Holder, ref thread.Ref) {
			f.until(f.create(ref, "wait", run.Enqueue), graph.EventUpdates)
			f.join(f.create(ref, "more", run.Rollback))
		}, []string{long, answer, "more", "answer to more", "last"}, "", 3, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var l audience
			h := graphtest.StartHolder(t, l.answer)
			f := newFixture(t, h.Endpoint, nil)
			ref := f.newThread()
			f.join(f.sayLong(ref))
			c.between(f, h, ref)
			last := f.join(f.create(ref, "last", run.Enqueue))
			if diff := cmp.Diff(c.want, l.heard); diff != "" || l.mood != c.mood {
				t.Errorf("the mood of the last invocation is %q, its messages (-want +got):\n%s", l.mood, diff)
			}
			if patched, whole := h.Counts(); patched != c.patched || whole != c.whole {
				t.Errorf("%d invocations came with what is new, %d with everything; want %d and %d", patched, whole, c.patched, c.whole)
			}
			if last.Status != run.Success || last.Attempt != 1 {
				t.Errorf("the last run is %s after %d attempts", last.Status, last.Attempt)
			}
		})
	}
}

// TestAnAgentThatHoldsNothingIsSentEverything checks this for each invocation.
func TestAnAgentThatHoldsNothingIsSentEverything(t *testing.T) {
	t.Parallel()
	var l audience
	f := newFixture(t, graphtest.Start(t, l.answer), nil)
	ref := f.newThread()
	f.join(f.sayLong(ref))
	f.join(f.create(ref, "last", run.Enqueue))
	if diff := cmp.Diff([]string{"long", "answer to long", "last"}, l.heard); diff != "" || l.bases != 0 {
		t.Errorf("%d invocations had a base, messages of the last (-want +got):\n%s", l.bases, diff)
	}
}

// TestWhatIsNewAsItIsSent checks the format of a patch, on which agents rely.
func TestWhatIsNewAsItIsSent(t *testing.T) {
	t.Parallel()
	var l audience
	h := graphtest.StartHolder(t, l.answer)
	f := newFixture(t, h.Endpoint, nil)
	ref := f.newThread()
	f.join(f.give(ref, fmt.Sprintf(`{"mood":"bad","news":["a"],"messages":[{"type":"human","id":"long","content":%q}]}`, strings.Repeat("long ", 20_000))))
	before := f.join(f.create(ref, "more", run.Enqueue))
	f.join(f.give(ref, `{"mood":"good","news":["a","b"],"messages":[{"type":"human","id":"last","content":"bye"}]}`))
	want := fmt.Sprintf(`{"values":null,"base":{"run_id":%q,"attempt":1},"patch":{"set":{"mood":"good"},"lists":{
		"messages":{"keep":3,"append":[{"content":"answer to more","id":"answer to more","type":"ai"},{"type":"human","id":"last","content":"bye"}]},
		"news":{"keep":1,"append":["b"]}}},"checkpoint":null,"pending":[]}`, before.Run)
	var got, wanted any
	f.must(json.Unmarshal(h.Raw(), &got))
	f.must(json.Unmarshal([]byte(want), &wanted))
	if diff := cmp.Diff(wanted, got); diff != "" {
		t.Errorf("state (-want +got):\n%s", diff)
	}
}
