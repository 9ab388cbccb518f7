package event_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/tenant/event"
)

// follower follows the log of a workspace until the test ends, and returns what it is told.
func (f *fixture) follower(workspace string) <-chan event.Positioned {
	f.Helper()
	told, over := make(chan event.Positioned), make(chan error, 1)
	ctx, cancel := context.WithCancel(f.Context())
	log := f.Workspace(workspace)
	after := log.Now()
	go func() {
		over <- event.Follow(ctx, log, after, func(found []event.Positioned) error {
			for _, e := range found {
				select {
				case told <- e:
				case <-ctx.Done():
				}
			}
			return nil
		})
	}()
	f.Cleanup(func() {
		cancel()
		if err := <-over; !errors.Is(err, context.Canceled) {
			f.Errorf("the follower ended with %v", err)
		}
	})
	return told
}

// TestFollowersAreToldOfQuestions: an event that is not stored reaches the followers of its
// workspace alone, without a position, and the stored events around it arrive once.
func TestFollowersAreToldOfQuestions(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	a, b := deploymentID(1), deploymentID(2)
	told, other := f.follower(workspace), f.follower("0197a000-0000-7000-8000-000000000002")
	first := f.chain(a, start.Add(time.Millisecond), "CREATING")
	f.write(first...)
	if e := <-told; e.ID != first[0].ID || e.Position == "" {
		t.Fatalf("got %+v", e)
	}
	for range 3 {
		f.NotifyQuestions(workspace, b)
	}
	if e := <-told; e.Type != event.QuestionsChanged || e.Deployment != b || e.Position != "" || e.ID == "" {
		t.Fatalf("got %+v", e)
	}
	second := f.chain(a, start.Add(2*time.Millisecond), "BUILDING")
	f.write(second...)
	for e := range told {
		if e.Type != event.QuestionsChanged { // the follower may have looked between the three
			if e.ID != second[0].ID {
				t.Errorf("got %+v", e)
			}
			break
		}
	}
	if got, _ := f.read(f.Workspace(workspace), "", 10); !slices.Equal(got, ids(slices.Concat(first, second))) {
		t.Errorf("the log holds %v", got)
	}
	select {
	case e := <-other:
		t.Errorf("another workspace was told %+v", e)
	default:
	}
}
