package web

import "testing"

// TestALateRequestCountsForItsOwnWindow adds a request to a window after the next one began.
func TestALateRequestCountsForItsOwnWindow(t *testing.T) {
	t.Parallel()
	r := new(requestCount)
	want := func(window, want int64) {
		t.Helper()
		if got := r.last(window); got != want {
			t.Errorf("before window %d there were %d requests, want %d", window, got, want)
		}
	}
	for _, window := range []int64{10, 10, 11, 10} {
		r.add(window)
	}
	want(11, 3)
	want(10, 3) // a reader can be late, too
	r.add(11)
	want(12, 2)
	want(14, 0)
	r.add(5) // the clock was set back
	r.add(6)
	want(6, 1)
}
