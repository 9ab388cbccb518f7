package apikey

import (
	"strconv"
	"testing"
	"time"
)

// TestAProcessKnowsTheKeysThatWereUsedLast: the use of the first key alone is noted again after
// the use of more keys than a process knows.
func TestAProcessKnowsTheKeysThatWereUsedLast(t *testing.T) {
	t.Parallel()
	s := NewStore(nil, nil, func() time.Time { return time.Unix(1e9, 0) })
	for i := range knownUses + 1 {
		if !s.tryNote(strconv.Itoa(i)) {
			t.Fatalf("the first use of key %d is not noted", i)
		}
		s.slots.Release(1)
	}
	if s.tryNote("1") {
		t.Error("the use of key 1 is noted again")
	}
	if !s.tryNote("0") {
		t.Error("the use of key 0 is not noted again")
	}
}
