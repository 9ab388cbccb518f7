package audit

import (
	"context"
	"fmt"
	"sync"
	"time"
)

const (
	// refusedSpan is how long a refusal is not noted again.
	refusedSpan = time.Minute
	// refusedMost is how many different refusals are noted for a workspace in a span, in each
	// process.
	refusedMost = 30
	// refusedWorkspaces is the number of workspaces whose refusals are remembered.
	refusedWorkspaces = 1000
)

// refused holds the refusals that were noted for a workspace in the present span. It is a limiter
// with bounded memory, not a cache: a workspace that is dropped may note refusals again.
type refused struct {
	mu    sync.Mutex
	since time.Time
	noted map[refusal]bool
	// left counts the refusals that were left out since the last note.
	left int
}

// refusal distinguishes refusals: of one caller's refusals that differ only in the request's
// id, one is noted.
type refusal struct{ key, subject, resource, detail string }

// AddRefusal adds the entry of a refused request, unless the same caller was refused the same
// thing a moment before, or the workspace has had many refusals. The next entry counts the
// refusals that were left out, so refusals cannot bury other entries.
func (s *Store) AddRefusal(ctx context.Context, workspace string, e Entry) error {
	r := s.refused.Make(workspace, 1, func() *refused { return &refused{} })
	r.mu.Lock()
	now, same := s.now(), refusal{e.Key, e.Subject, e.Resource, e.Detail}
	if now.Sub(r.since) >= refusedSpan {
		r.since, r.noted = now, map[refusal]bool{}
	}
	if r.noted[same] || len(r.noted) >= refusedMost {
		r.left++
		r.mu.Unlock()
		return nil
	}
	r.noted[same] = true
	left := r.left
	r.left = 0
	r.mu.Unlock()
	if left > 0 {
		e.Detail = fmt.Sprintf("%s (before it, %d refusals were not noted)", e.Detail, left)
	}
	return s.Add(ctx, workspace, e)
}
