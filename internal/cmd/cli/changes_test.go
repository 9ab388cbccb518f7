package cli

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"
)

// TestFilesThatChangeAllTheTime are seen all the same, while files that are written once are seen
// when they stay unchanged.
func TestFilesThatChangeAllTheTime(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		writes int
		want   time.Duration
	}{
		"for a moment":   {4, 3*settle/2 + settle},
		"without an end": {200, restless},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				watcher := &fsnotify.Watcher{Events: make(chan fsnotify.Event), Errors: make(chan error)}
				changes := &changes{watcher: watcher, seen: make(chan struct{}, 1), done: make(chan struct{})}
				go changes.collect()
				began, seen := time.Now(), time.Duration(0)
				for n := 0; seen == 0 && n < 2*c.writes; n++ {
					if n < c.writes {
						watcher.Events <- fsnotify.Event{Name: "agent.log", Op: fsnotify.Write}
					}
					select {
					case <-changes.seen:
						seen = time.Since(began)
					case <-time.After(settle / 2):
					}
				}
				close(watcher.Events)
				<-changes.done
				if seen != c.want {
					t.Errorf("seen after %s, want %s", seen, c.want)
				}
			})
		})
	}
}
