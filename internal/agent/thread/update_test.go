package thread_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/quota"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

// edit makes changes of a thread's state, each as a checkpoint, and returns the error of the
// edit.
func edit(t *testing.T, s *thread.Store, ref thread.Ref, values ...string) error {
	t.Helper()
	found, err := s.Get(t.Context(), ref)
	check.Must(t, err)
	e, err := s.Edit(t.Context(), found, thread.Newest)
	check.Must(t, err)
	for _, one := range values {
		check.Must(t, e.Fold("agent", []graph.StateUpdate{{Values: json.RawMessage(one), AsNode: "n"}}))
	}
	return e.Commit(t.Context())
}

// TestAnEditIsStoredWhollyOrNotAtAll checks also that an edit that cannot be stored is refused
// with a message.
func TestAnEditIsStoredWhollyOrNotAtAll(t *testing.T) {
	t.Parallel()
	check.Large(t)
	many := make([]string, table.MaxWrites)
	for i := range many {
		many[i] = fmt.Sprintf(`{"n":%d}`, i)
	}
	half := func(name string) string { return fmt.Sprintf(`{%q:%q}`, name, strings.Repeat("x", table.MaxBody*2/3)) }
	for name, c := range map[string]struct {
		values []string
		kind   fault.Kind
		words  string
	}{
		"as many checkpoints as fit":        {many[1:], "", ""},
		"one more":                          {many, fault.Invalid, "The change makes 99 checkpoints, or items that are kept with them: the limit is 98. Make it in several requests."},
		"a state beyond what a table holds": {[]string{`{}`, half("a"), half("b")}, fault.TooLarge, "The thread's state would hold 4"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, m := newStore(t)
			ref := newRef()
			if _, err := s.Create(t.Context(), ref, nil, nil, false); err != nil {
				t.Fatal(err)
			}
			transactions := 0
			m.committed = func([]table.Write) { transactions++ }
			err := edit(t, s, ref, c.values...)
			stored := stateAt(t, s, ref, 1000).At.Number + 1
			if c.kind == "" {
				if err != nil || transactions != 1 || stored != int64(len(c.values)) {
					t.Errorf("got %d checkpoints by %d transactions, error %v", stored, transactions, err)
				}
				return
			}
			if !fault.Is(err, c.kind) || !strings.HasPrefix(err.Error(), c.words) || stored != 0 {
				t.Errorf("got %d checkpoints and error %v", stored, err)
			}
		})
	}
}

// copied returns a thread with some large checkpoints.
func copied(t *testing.T) (*thread.Store, *meter, thread.Ref) {
	t.Helper()
	check.Large(t)
	s, m := newStore(t)
	ref := newRef()
	if _, err := s.Create(t.Context(), ref, nil, nil, false); err != nil {
		t.Fatal(err)
	}
	for i := range 8 {
		check.Must(t, edit(t, s, ref, fmt.Sprintf(`{"a%d":%q}`, i, strings.Repeat("x", 300<<10))))
	}
	return s, m, ref
}

func mustCopy(t *testing.T, s *thread.Store, ref thread.Ref) (thread.Thread, error) {
	t.Helper()
	found, err := s.Get(t.Context(), ref)
	check.Must(t, err)
	return s.Copy(t.Context(), found, nil)
}

// TestACopyIsMadeInParts checks that the parts fit into memory, however large the thread is.
func TestACopyIsMadeInParts(t *testing.T) {
	t.Parallel()
	s, m, ref := copied(t)
	m.committed = func([]table.Write) {}
	made, err := mustCopy(t, s, ref)
	check.Must(t, err)
	largest := m.largestPage
	if want, got := stateAt(t, s, ref, 1000).Values, stateAt(t, s, made.Ref, 1000).Values; !want.Equal(got) {
		t.Error("the copy has another state")
	}
	if limit := 4 << 20; largest > limit {
		t.Errorf("%d bytes were in memory at once", largest)
	}
}

// TestACopyOfAThreadThatChanges checks that the copy is refused and leaves no items behind.
func TestACopyOfAThreadThatChanges(t *testing.T) {
	t.Parallel()
	s, m, ref := copied(t)
	var of string
	m.committed = func(writes []table.Write) {
		if key := writes[0].Target(); of == "" && len(writes) > 1 && key.PK != ref.Key().PK {
			of = key.PK
			if err := edit(t, s, ref, `{"more":1}`); err != nil {
				t.Error(err)
			}
		}
	}
	if _, err := mustCopy(t, s, ref); !fault.Is(err, fault.Conflict) {
		t.Errorf("got %v, want a conflict", err)
	}
	page, err := m.Query(t.Context(), table.Query{PK: of})
	if of == "" || err != nil || len(page.Items) > 0 {
		t.Errorf("%d items of the copy are left, error %v", len(page.Items), err)
	}
}

// TestACopyOfAThreadWhoseRunGoesOn checks that the copy ends with the newest checkpoint that there
// was when the copy began.
func TestACopyOfAThreadWhoseRunGoesOn(t *testing.T) {
	t.Parallel()
	s, m, ref := copied(t)
	busy, err := s.Get(t.Context(), ref)
	check.Must(t, err)
	busy.Lock.Busy = true
	before := stateAt(t, s, ref, thread.Newest)
	log, went := thread.NewLog(ref, before), false
	m.committed = func(writes []table.Write) {
		if len(writes) > 1 && writes[0].Target().PK != ref.Key().PK && !went {
			went = true
			advance(t, m, log, `{"more":1}`)
		}
	}
	made, err := s.Copy(t.Context(), busy, nil)
	check.Must(t, err)
	if got := stateAt(t, s, ref, thread.Newest); !went || got.At.Number != before.At.Number+1 {
		t.Fatalf("the run has not gone on: checkpoint %d", got.At.Number)
	}
	if got := stateAt(t, s, made.Ref, thread.Newest); got.At.Number != before.At.Number || !got.Values.Equal(before.Values) {
		t.Errorf("the copy is at checkpoint %d, want %d", got.At.Number, before.At.Number)
	}
	if made.Status != thread.StatusIdle || made.Lock.Busy {
		t.Errorf("the copy is %s", made.Status)
	}
}

// TestACopyWhoseProcessDies checks that a timer erases what was copied, and only that.
func TestACopyWhoseProcessDies(t *testing.T) {
	t.Parallel()
	s, m, ref := copied(t)
	whole, err := mustCopy(t, s, ref)
	check.Must(t, err)
	dying := &fixtures.Mortal{Table: m}
	var of string
	m.committed = func(writes []table.Write) {
		of = writes[0].Target().PK
		dying.Dead.Store(len(writes) > 1)
	}
	if _, err := mustCopy(t, thread.NewStore(dying, ticking(), quota.Limits{}, slog.Default()), ref); err == nil {
		t.Fatal("the process has not died")
	}
	m.committed = nil
	count := func() int {
		page, err := m.Query(t.Context(), table.Query{PK: of})
		check.Must(t, err)
		return len(page.Items)
	}
	check.Must(t, s.Sweep(t.Context(), start.Add(time.Minute), nil))
	if left := count(); left < 2 {
		t.Errorf("%d items of a copy are left that may be under way", left)
	}
	check.Must(t, s.Sweep(t.Context(), start.Add(2*time.Hour), nil))
	if left := count(); left > 0 {
		t.Errorf("%d items of the copy are left", left)
	}
	if want, got := stateAt(t, s, ref, 1000).Values, stateAt(t, s, whole.Ref, 1000).Values; !want.Equal(got) {
		t.Error("the other copy has lost its state")
	}
	if ttl, err := s.TTL(t.Context(), whole.Ref); err != nil || ttl != nil {
		t.Errorf("the other copy has the time to live %v, error %v", ttl, err)
	}
}
