package budget_test

import (
	"errors"
	"testing"

	"github.com/slipway-run/slipway/internal/base/budget"
)

// TestAHoldThatDoesNotWait checks that its read is refused at once if there is no room, and that
// the reads succeed with credit for what was missed. Credit that no read has used is given back
// with the rest.
func TestAHoldThatDoesNotWait(t *testing.T) {
	t.Parallel()
	b, refused := budget.NewLasting(100), errors.New("no room")
	open := func() *budget.Hold {
		h := budget.NewHold(b, 0, -1, refused)
		h.For("a")
		return h
	}
	first := open()
	if !first.Try(30) || first.Try(30) {
		t.Error("want room for 30 bytes and not for 60")
	}
	if err := first.Take(t.Context(), 30); !errors.Is(err, refused) || first.Missed() != 60 {
		t.Errorf("got %v, and %d bytes are missed", err, first.Missed())
	}
	first.Close()
	second := open()
	if err := second.Credit(t.Context(), 60); err != nil || b.Held() != 60 {
		t.Errorf("got %v, and %d bytes are held", err, b.Held())
	}
	if !second.Try(30) || !second.Try(20) || b.Held() != 60 {
		t.Errorf("%d bytes are held by reads with credit", b.Held())
	}
	if second.Try(20) || !second.Try(10) {
		t.Error("want room for the rest of the credit")
	}
	second.Return(second.Detach())
	if b.Held() != 0 {
		t.Errorf("%d bytes are held in the end", b.Held())
	}
}
