package thread_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/quota"
	"github.com/slipway-run/slipway/internal/test/check"
)

// steps is a number of checkpoints greater than firstLook.
const steps = 20

// say makes a checkpoint that adds a message.
func say(t *testing.T, m table.Table, log thread.Log, text string) thread.Log {
	t.Helper()
	return advance(t, m, log, fmt.Sprintf(`{"messages":[{"type":"ai","id":%q,"content":%q}]}`, text, text))
}

// newest reads a thread's state, and reports how many queries the read took.
func newest(t *testing.T, s *thread.Store, m *meter, ref thread.Ref) (values string, queries int64) {
	t.Helper()
	m.reset()
	st, err := s.State(t.Context(), ref)
	check.Must(t, err)
	return string(st.Values.JSON()), m.queries.Load()
}

func TestAStateThatWasReadIsReadOnFromThere(t *testing.T) {
	t.Parallel()
	s, m := newStore(t)
	ref, log := newLog()
	for i := range steps {
		log = say(t, m, log, fmt.Sprint("m", i))
	}
	if _, queries := newest(t, s, m, ref); queries != 2 {
		t.Errorf("the first reading took %d queries, want 2", queries)
	}
	for i := range 3 {
		log = say(t, m, log, fmt.Sprint("n", i))
		got, queries := newest(t, s, m, ref)
		if want := string(log.Values.JSON()); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if queries != 1 {
			t.Errorf("a reading after one more step took %d queries, want 1", queries)
		}
		m.reset()
		if got := string(stateAt(t, s, ref, log.At.Number).Values.JSON()); got != string(log.Values.JSON()) || m.items.Load() != 1 {
			t.Errorf("a reading of the same checkpoint took %d items, want 1, and is %s", m.items.Load(), got)
		}
	}
	log = say(t, m, log, "written")
	s.Remember(log)
	log = say(t, m, log, "later")
	if got, queries := newest(t, s, m, ref); got != string(log.Values.JSON()) || queries != 1 {
		t.Errorf("after a state that was written: %d queries, and %s", queries, got)
	}
}

// TestAChangeThatIsNotStoredChangesNothing makes changes whose writes fail. The log and the
// remembered state stay as they were, and the log still takes the next change.
func TestAChangeThatIsNotStoredChangesNothing(t *testing.T) {
	t.Parallel()
	s, m := newStore(t)
	ref, log := newLog()
	say(t, m, say(t, m, log, "one"), "two")
	want, _ := newest(t, s, m, ref)
	log = thread.NewLog(ref, stateAt(t, s, ref, 1))
	for _, update := range []string{
		`{"messages":[{"type":"ai","id":"three","content":"x"}]}`, `{"messages":[{"type":"ai","id":"one","content":"x"}]}`,
		`{"messages":[{"type":"remove","id":"two"}]}`, `{"other":1}`,
	} {
		if lost, _ := reduce(t, log, update); string(lost.Values.JSON()) == want || lost.At.Number != 2 {
			t.Fatalf("%s made no change", update)
		}
		if got, _ := newest(t, s, m, ref); got != want || string(log.Values.JSON()) != want {
			t.Errorf("after %s: the state is %s, the log's values are %s, want %s", update, got, log.Values.JSON(), want)
		}
	}
	log = say(t, m, log, "three")
	if got := string(stateAt(t, s, ref, 2).Values.JSON()); got != string(log.Values.JSON()) {
		t.Errorf("after the next change: got %s, want %s", got, log.Values.JSON())
	}
}

// TestACheckpointThatTookTheNumberOfAnother checks that such a checkpoint is not taken for the
// earlier checkpoint, for example after a rollback by another process.
func TestACheckpointThatTookTheNumberOfAnother(t *testing.T) {
	t.Parallel()
	s, m := newStore(t)
	ref, log := newLog()
	for i := range steps {
		log = say(t, m, log, fmt.Sprint("m", i))
	}
	before := thread.NewLog(ref, stateAt(t, thread.NewStore(m, ticking(), quota.Limits{}, slog.Default()), ref, steps-3))
	newest(t, s, m, ref)
	var erase []table.Write
	for number := steps - 2; number < steps; number++ {
		erase = append(erase, table.Delete{Key: keys.Checkpoint(ref.Workspace, ref.Deployment, ref.Thread, int64(number))})
	}
	check.Must(t, m.Transact(t.Context(), erase...))
	if got, _ := newest(t, s, m, ref); got != string(before.Values.JSON()) {
		t.Errorf("after the checkpoints were erased: got %s, want %s", got, before.Values.JSON())
	}
	if _, queries := newest(t, s, m, ref); queries != 1 {
		t.Errorf("the second reading after the checkpoints were erased took %d queries, want 1", queries)
	}
	for _, text := range []string{"another", "and one more", "and the last"} {
		before = say(t, m, before, text)
		if got, _ := newest(t, thread.NewStore(m, ticking(), quota.Limits{}, slog.Default()), m, ref); got != string(before.Values.JSON()) {
			t.Fatalf("stored: got %s, want %s", got, before.Values.JSON())
		}
	}
	if got, _ := newest(t, s, m, ref); got != string(before.Values.JSON()) {
		t.Errorf("after others took their numbers: got %s, want %s", got, before.Values.JSON())
	}
	// The same number as the remembered checkpoint, with another state.
	last := thread.NewLog(ref, stateAt(t, thread.NewStore(m, ticking(), quota.Limits{}, slog.Default()), ref, steps-1))
	check.Must(t, m.Transact(t.Context(), table.Delete{Key: keys.Checkpoint(ref.Workspace, ref.Deployment, ref.Thread, steps)}))
	last = say(t, m, last, "in its place")
	if got, _ := newest(t, s, m, ref); got != string(last.Values.JSON()) {
		t.Errorf("after another took the newest number: got %s, want %s", got, last.Values.JSON())
	}
}

// TestFewLargeStatesAreRemembered checks that the memory of a process does not grow with the
// threads that it serves.
func TestFewLargeStatesAreRemembered(t *testing.T) {
	t.Parallel()
	check.Large(t)
	s, m := newStore(t)
	large := `{"large":"` + strings.Repeat("x", 5<<19) + `"}`
	refs := make([]thread.Ref, 4)
	for i := range refs {
		ref, log := newLog()
		refs[i], log = ref, advance(t, m, log, large)
		for step := range steps {
			log = say(t, m, log, fmt.Sprint("m", step))
		}
		newest(t, s, m, refs[i])
	}
	for i, want := range []int64{1, 1, 2, 2} { // from the last thread to the first
		if _, queries := newest(t, s, m, refs[len(refs)-1-i]); queries != want {
			t.Errorf("thread %d from the end: %d queries, want %d", i, queries, want)
		}
	}
}
