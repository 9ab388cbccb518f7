package rollout

import (
	"context"
	"sync"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/seam/compute"
)

// missing holds the releases that Restore could not restore. If the table takes no write, because
// the disk is full, then no record tells that such a release is missing.
type missing struct {
	mu   sync.Mutex
	refs map[revision.Ref]bool
}

func (m *missing) add(ref revision.Ref) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.refs == nil {
		m.refs = map[revision.Ref]bool{}
	}
	m.refs[ref] = true
}

func (m *missing) remove(ref revision.Ref) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.refs, ref)
}

func (m *missing) list() (refs []revision.Ref) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for ref := range m.refs {
		refs = append(refs, ref)
	}
	return refs
}

// startMissing starts the serving releases that Restore could not start. It ends at the first
// failure: the table may still take no write, so the other releases would fail, too.
func (r *Rollout) startMissing(ctx context.Context) error {
	refs := r.missing.list()
	for len(refs) > 0 && ctx.Err() == nil {
		if err := r.startIfMissing(ctx, refs[0]); err != nil {
			return err
		}
		r.missing.remove(refs[0])
		refs = refs[1:]
	}
	return nil
}

// startIfMissing starts a release if it serves and its target does not have it. A crash that the
// deployment's record tells is the business of seeRecovered.
func (r *Rollout) startIfMissing(ctx context.Context, ref revision.Ref) error {
	d, err := r.Deployments.Get(ctx, deployment.Ref{Workspace: ref.Workspace, Deployment: ref.Deployment})
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	target, ok := r.target(d)
	if err != nil || !ok || d.Active != ref.Revision || !d.Crashed.IsZero() || d.Status == deployment.AwaitingDelete {
		return err
	}
	status, err := look(ctx, target, d, d.Active)
	if err != nil || status.State != compute.Absent {
		return err
	}
	return r.startActive(ctx, target, d)
}
