package listener

import (
	"context"

	"github.com/slipway-run/slipway/internal/seam/compute"
)

var _ compute.Minder = (*Target)(nil)

// AwaitRelapse waits until the listener reports that a release, which was healthy, has failed.
// A release that is progressing again may become healthy again; its listener reports if it
// does not.
func (t *Target) AwaitRelapse(ctx context.Context, ref compute.Ref) (string, error) {
	changes := t.table.Watch(releaseKey(ref))
	defer changes.Stop()
	for {
		r, status, until, err := t.look(ctx, ref)
		switch {
		case err != nil:
			return "", err
		case r == nil && status.State == compute.Absent:
			return t.awaitRelapseElsewhere(ctx, ref)
		case status.State == compute.Failed:
			return status.Message, nil
		case !t.pause(ctx, changes, until):
			return "", nil
		}
	}
}

// awaitRelapseElsewhere is AwaitRelapse for a release that is not at a listener.
func (t *Target) awaitRelapseElsewhere(ctx context.Context, ref compute.Ref) (string, error) {
	if minder, ok := t.fallback.(compute.Minder); ok {
		return minder.AwaitRelapse(ctx, ref)
	}
	<-ctx.Done()
	return "", nil
}
