package event

import (
	"maps"
	"slices"
	"sync"

	"github.com/slipway-run/slipway/internal/base/id"
)

// QuestionsChanged is not stored: it says to the followers of the log of a workspace, in this
// process, that threads of a deployment have paused with questions, or that questions were
// answered. A reader that was away reads the threads again.
const QuestionsChanged Type = "deployment.questions_changed"

// audiences are the followers of the logs of workspaces.
type audiences struct {
	mu          sync.Mutex
	byWorkspace map[string]map[*follower]struct{}
}

// follower hears of each deployment once, however often the deployment's questions have
// changed since the follower looked.
type follower struct {
	of        *audiences
	workspace string
	// wake has an entry when there are deployments.
	wake        chan struct{}
	deployments map[string]bool // guarded by of.mu
}

func (a *audiences) add(workspace string) *follower {
	f := &follower{of: a, workspace: workspace, wake: make(chan struct{}, 1), deployments: map[string]bool{}}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.byWorkspace[workspace] == nil {
		a.byWorkspace[workspace] = map[*follower]struct{}{}
	}
	a.byWorkspace[workspace][f] = struct{}{}
	return f
}

func (f *follower) stop() {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	delete(f.of.byWorkspace[f.workspace], f)
	if len(f.of.byWorkspace[f.workspace]) == 0 {
		delete(f.of.byWorkspace, f.workspace)
	}
}

// drain returns the deployments that the follower has not been notified of, in a fixed order.
func (f *follower) drain() []string {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	changed := slices.Sorted(maps.Keys(f.deployments))
	clear(f.deployments)
	return changed
}

// NotifyQuestions notifies the followers of a workspace's log that the questions of a deployment's
// threads have changed.
func (l *Log) NotifyQuestions(workspace, deployment string) {
	l.followers.mu.Lock()
	defer l.followers.mu.Unlock()
	for f := range l.followers.byWorkspace[workspace] {
		f.deployments[deployment] = true
		select {
		case f.wake <- struct{}{}:
		default:
		}
	}
}

// changed returns the events, which have no position, for the deployments whose questions have
// changed.
func (l workspaceLog) changed(deployments []string) []Positioned {
	now := l.now()
	events := make([]Positioned, len(deployments))
	for i, deployment := range deployments {
		events[i].Event = Event{Workspace: l.workspace, ID: id.New(now), At: now, Type: QuestionsChanged, Deployment: deployment}
	}
	return events
}
