package controlplane_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/base/sse"
)

const cancelBlocksNobody = "A revision that is cancelled keeps nobody waiting: `wait` answers at once, event streams tell `revision.interrupted`, and the next revision goes."

// TestNobodyWaitsForACancelledRevision cancels a revision that is under way, and a queued
// revision, while clients wait for both, and reads both again afterwards.
func TestNobodyWaitsForACancelledRevision(t *testing.T) {
	t.Parallel()
	rule(t, cancelBlocksNobody)
	f := setUp(t)
	path, created := f.create(t, fromGit("weather"))
	first := created.id("latest_revision_id")
	queued := f.call(t, "PATCH", path, object{"source_revision_config": object{"repo_ref": "next"}}).id("latest_revision_id")
	const longest = 25 * time.Second // the length of a wait that no event ends
	wait := func(id string) {
		began := time.Now()
		answer := f.call(t, "GET", path+"/revisions/"+id+"?wait=25", nil)
		if took := time.Since(began); answer.id("status") != "INTERRUPTED" || took > longest*4/5 {
			t.Errorf("waiting for %s: got %d %s after %s", id, answer.StatusCode, answer.id("status"), took)
		}
	}
	told := make(chan []string, 1)
	go func() {
		var got []string
		err := f.stream(t.Context(), path+"/events", "", func(event sse.Event) bool {
			if event.Name == "revision.interrupted" {
				got = append(got, string(event.Data))
			}
			return len(got) == 2
		})
		if err != nil {
			t.Errorf("the stream: %v", err)
		}
		told <- got
	}()
	var all sync.WaitGroup
	for _, id := range []string{first, queued} {
		all.Go(func() { wait(id) })
	}
	for _, id := range []string{queued, first} {
		wantStatus(t, f.call(t, "POST", path+"/revisions/"+id+"/cancel", nil), http.StatusOK)
	}
	all.Wait()
	if got := <-told; len(got) != 2 || !strings.Contains(got[0], queued) || !strings.Contains(got[1], first) {
		t.Errorf("the stream has told %s", got)
	}
	for _, id := range []string{queued, first} {
		wait(id) // again, after the revision has ended
	}
	f.settleCancelled(t, created.id("id"))
	if next := f.call(t, "POST", path+"/revisions", nil); next.id("status") != "CREATING" {
		t.Errorf("the next revision is %s, want it to go at once", next.id("status"))
	}
}
