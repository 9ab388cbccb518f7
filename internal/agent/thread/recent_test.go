package thread_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// steps is a number of checkpoints greater than firstLook.
const steps = 20

// say makes a checkpoint that adds a message.
func say(t *testing.T, m table.Table, st *thread.State, ref thread.Ref, text string) {
	t.Helper()
	advance(t, m, st, ref, fmt.Sprintf(`{"messages":[{"type":"ai","id":%q,"content":%q}]}`, text, text))
}

// newest reads a thread's state, and reports how many queries the read took.
func newest(t *testing.T, s *thread.Store, m *meter, ref thread.Ref) (values string, queries int64) {
	t.Helper()
	m.reset()
	st, err := s.State(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	return string(st.Values.JSON()), m.queries.Load()
}

func TestAStateThatWasReadIsReadOnFromThere(t *testing.T) {
	t.Parallel()
	s, m := newStore(t)
	ref, st := newRef(), thread.Empty()
	for i := range steps {
		say(t, m, st, ref, fmt.Sprint("m", i))
	}
	if _, queries := newest(t, s, m, ref); queries != 2 {
		t.Errorf("the first reading took %d queries, want 2", queries)
	}
	for i := range 3 {
		say(t, m, st, ref, fmt.Sprint("n", i))
		got, queries := newest(t, s, m, ref)
		if want := string(st.Values.JSON()); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if queries != 1 {
			t.Errorf("a reading after one more step took %d queries, want 1", queries)
		}
	}
	say(t, m, st, ref, "written")
	s.Remember(ref, st)
	say(t, m, st, ref, "later")
	if got, queries := newest(t, s, m, ref); got != string(st.Values.JSON()) || queries != 1 {
		t.Errorf("after a state that was written: %d queries, and %s", queries, got)
	}
}

// TestWhoReadsAStateMayChangeIt checks that such a change does not appear in the states that
// other readers get.
func TestWhoReadsAStateMayChangeIt(t *testing.T) {
	t.Parallel()
	s, m := newStore(t)
	ref, st := newRef(), thread.Empty()
	say(t, m, st, ref, "one")
	say(t, m, st, ref, "two")
	want, _ := newest(t, s, m, ref)
	for _, update := range []string{
		`{"messages":[{"type":"ai","id":"three","content":"x"}]}`, `{"messages":[{"type":"ai","id":"one","content":"x"}]}`,
		`{"messages":[{"type":"remove","id":"two"}]}`, `{"other":1}`,
	} {
		mine := stateAt(t, s, ref, 1)
		if _, err := mine.Values.Reduce(json.RawMessage(update), func() string { return "" }); err != nil {
			t.Fatal(err)
		}
		if got, _ := newest(t, s, m, ref); got != want {
			t.Errorf("after another reader's %s: got %s, want %s", update, got, want)
		}
	}
}

// TestACheckpointThatTookTheNumberOfAnother checks that such a checkpoint is not taken for the
// earlier checkpoint, for example after a rollback by another process.
func TestACheckpointThatTookTheNumberOfAnother(t *testing.T) {
	t.Parallel()
	s, m := newStore(t)
	ref, st := newRef(), thread.Empty()
	for i := range steps {
		say(t, m, st, ref, fmt.Sprint("m", i))
	}
	before := stateAt(t, thread.NewStore(m, ticking()), ref, steps-3)
	newest(t, s, m, ref)
	var erase []table.Write
	for number := steps - 2; number < steps; number++ {
		erase = append(erase, table.Delete{Key: keys.Checkpoint(ref.Workspace, ref.Deployment, ref.Thread, int64(number))})
	}
	if err := m.Transact(t.Context(), erase...); err != nil {
		t.Fatal(err)
	}
	if got, _ := newest(t, s, m, ref); got != string(before.Values.JSON()) {
		t.Errorf("after the checkpoints were erased: got %s, want %s", got, before.Values.JSON())
	}
	newest(t, s, m, ref)
	for _, text := range []string{"another", "and one more", "and the last"} {
		say(t, m, before, ref, text)
		if got, _ := newest(t, thread.NewStore(m, ticking()), m, ref); got != string(before.Values.JSON()) {
			t.Fatalf("stored: got %s, want %s", got, before.Values.JSON())
		}
	}
	if got, _ := newest(t, s, m, ref); got != string(before.Values.JSON()) {
		t.Errorf("after others took their numbers: got %s, want %s", got, before.Values.JSON())
	}
	// The same number as the remembered checkpoint, with another state.
	last := stateAt(t, thread.NewStore(m, ticking()), ref, steps-1)
	if err := m.Transact(t.Context(), table.Delete{Key: keys.Checkpoint(ref.Workspace, ref.Deployment, ref.Thread, steps)}); err != nil {
		t.Fatal(err)
	}
	say(t, m, last, ref, "in its place")
	if got, _ := newest(t, s, m, ref); got != string(last.Values.JSON()) {
		t.Errorf("after another took the newest number: got %s, want %s", got, last.Values.JSON())
	}
}

// TestFewLargeStatesAreRemembered checks that the memory of a process does not grow with the
// threads that it serves.
func TestFewLargeStatesAreRemembered(t *testing.T) {
	t.Parallel()
	s, m := newStore(t)
	large := state.Patch{Set: map[string]json.RawMessage{"large": json.RawMessage(`"` + strings.Repeat("x", 5<<19) + `"`)}}
	refs := make([]thread.Ref, 4)
	for i := range refs {
		refs[i] = newRef()
		st := thread.Empty()
		if err := st.Values.Apply(large); err != nil {
			t.Fatal(err)
		}
		store(t, m, st, refs[i], large)
		for step := range steps {
			say(t, m, st, refs[i], fmt.Sprint("m", step))
		}
		newest(t, s, m, refs[i])
	}
	for i, want := range []int64{1, 1, 2, 2} { // from the last thread to the first
		if _, queries := newest(t, s, m, refs[len(refs)-1-i]); queries != want {
			t.Errorf("thread %d from the end: %d queries, want %d", i, queries, want)
		}
	}
}
