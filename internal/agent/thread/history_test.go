package thread_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestAHistoryOfLargeStates checks that the history comes in parts that fit into memory, and
// that it is complete.
func TestAHistoryOfLargeStates(t *testing.T) {
	t.Parallel()
	check.Large(t)
	s, m := newStore(t)
	ref, log := newLog()
	const size, all, room = 9 << 20, 12, 64 << 20
	log = advance(t, m, log, fmt.Sprintf(`{"text":%q}`, strings.Repeat("x", size)))
	for i := range all - 1 {
		log = advance(t, m, log, fmt.Sprintf(`{"n":%d}`, i))
	}
	next, before := int64(all-1), int64(thread.Newest)
	for parts := 0; next >= -1; parts++ {
		found, err := s.History(t.Context(), ref, before, 100, nil)
		if err != nil || len(found) == 0 || len(found) > room/size {
			t.Fatalf("part %d has %d states, error %v", parts, len(found), err)
		}
		for _, one := range found {
			if one.Number != next || (len(one.Values) < size && next >= 0) || one.Newest != (next == all-1) {
				t.Fatalf("part %d has state %d with %d bytes, want state %d", parts, one.Number, len(one.Values), next)
			}
			next, before = next-1, one.Number
		}
	}
}
