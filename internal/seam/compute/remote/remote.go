// Package remote runs releases on an agent host: another process, on this machine or on one that
// this machine can reach, that has the compute target (package agenthost). With it, functions that
// run as containers of a machine use agents that are processes of that machine.
package remote

import (
	"context"
	"fmt"
	"net/http"

	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/secret"
	"github.com/slipway-run/slipway/internal/seam/wire"
)

// Target implements compute.Target.
type Target struct {
	host   *wire.Client
	hasher secret.Hasher
}

var (
	_ compute.Target    = (*Target)(nil)
	_ compute.Restarter = (*Target)(nil)
)

// New returns a target that hands its work to the host at baseURL, where token is the host's
// own bearer token. The invoke tokens of agents are derived with hasher. A nil client stands
// for a suitable default.
func New(baseURL, token string, hasher secret.Hasher, client *http.Client) *Target {
	return &Target{host: wire.NewClient(baseURL, token, client), hasher: hasher}
}

// Apply makes the release run and keeps it running until Remove, also when the host is started
// again.
func (t *Target) Apply(ctx context.Context, release compute.Release) error {
	if err := t.host.Send(ctx, http.MethodPost, wire.Releases, release); err != nil {
		return fmt.Errorf("apply release %s: %w", release.Revision, err)
	}
	return nil
}

// Await returns the release's status, once it is not Progressing.
func (t *Target) Await(ctx context.Context, ref compute.Ref) (compute.Status, error) {
	status, err := wire.Await(ctx, t.host, path(wire.Release, ref), func(s compute.Status) bool { return s.State != compute.Progressing })
	if err != nil {
		return compute.Status{}, fmt.Errorf("await release %s: %w", ref.Revision, err)
	}
	return status, nil
}

// Restart starts the release's agents again, and makes the host remember the release as it is
// described now.
func (t *Target) Restart(ctx context.Context, release compute.Release, restartID string) error {
	if err := t.host.Send(ctx, http.MethodPut, restartPath(release.Ref, restartID), release); err != nil {
		return fmt.Errorf("restart release %s: %w", release.Revision, err)
	}
	return nil
}

// AwaitRestart returns how a restart has ended, once it has.
func (t *Target) AwaitRestart(ctx context.Context, ref compute.Ref, restartID string) (compute.Status, error) {
	status, err := wire.Await(ctx, t.host, restartPath(ref, restartID), func(s compute.Status) bool { return s.State != compute.Progressing })
	if err != nil {
		return compute.Status{}, fmt.Errorf("await restart of release %s: %w", ref.Revision, err)
	}
	return status, nil
}

func restartPath(ref compute.Ref, restartID string) string {
	return wire.Path(wire.Restart, ref.Workspace, ref.Deployment, ref.Revision, restartID)
}

// AwaitRelapse waits until the host cannot rely on the release any more.
func (t *Target) AwaitRelapse(ctx context.Context, ref compute.Ref) (string, error) {
	relapsed, err := wire.Await(ctx, t.host, path(wire.Relapse, ref), func(r wire.Relapsed) bool { return r.Reason != "" })
	if err != nil {
		return "", fmt.Errorf("mind release %s: %w", ref.Revision, err)
	}
	return relapsed.Reason, nil
}

// Acquire returns where the release answers, and nothing else, as the target of a stack does. The
// address is at the host, which counts the callers one by one and answers for an agent that is not
// there. So done does nothing.
func (t *Target) Acquire(_ context.Context, ref compute.Ref) (compute.Endpoint, func(), error) {
	endpoint := compute.Endpoint{URL: t.host.URL(path(wire.Agent, ref)), Token: secret.InvokeToken(t.hasher, ref.Revision), Revision: ref.Revision}
	return endpoint, func() {}, nil
}

// Serves is true of each release: the host answers for agents that are not there.
func (t *Target) Serves(context.Context, compute.Ref) (bool, error) { return true, nil }

// Ends raises the alarm for the agents of the host that have ended since the last call of
// Ends. An end may be reported twice, but no end is lost while the host lives.
func (t *Target) Ends(ctx context.Context, alarm compute.Alarm) error {
	ends, err := wire.Post[[]wire.End](ctx, t.host, wire.Ends, wire.AckEnds{})
	if err != nil {
		return fmt.Errorf("ask for agents that have ended: %w", err)
	}
	if len(ends) == 0 {
		return nil
	}
	for _, end := range ends {
		alarm(ctx, end.Ref, end.Status)
	}
	if _, err := wire.Post[[]wire.End](ctx, t.host, wire.Ends, wire.AckEnds{Number: ends[len(ends)-1].Number}); err != nil {
		return fmt.Errorf("forget agents that have ended: %w", err)
	}
	return nil
}

// Remove takes no new callers, lets the present ones finish within the host's drain limit, then
// stops the release.
func (t *Target) Remove(ctx context.Context, ref compute.Ref) error {
	if err := t.host.Send(ctx, http.MethodDelete, path(wire.Release, ref), nil); err != nil {
		return fmt.Errorf("remove release %s: %w", ref.Revision, err)
	}
	return nil
}

func path(route string, ref compute.Ref) string {
	return wire.Path(route, ref.Workspace, ref.Deployment, ref.Revision)
}
