package quota

import (
	"context"
	"log/slog"

	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// Use is how much of a quota a workspace uses.
type Use struct {
	Name  Name
	Limit int64
	// Used is nil if there is no single figure for the whole workspace.
	Used *int64
}

// Live knows what goes on now.
type Live interface {
	// Used returns how many streams a workspace has, and how many requests a second it has sent
	// in the last whole window of 10 s.
	Used(ctx context.Context, workspace string) (streams, requests int64, err error)
}

// Usage reports how much of its quotas a workspace uses.
type Usage struct {
	Table  table.Table
	Limits Limits
	// Files measures the files; if it is nil, their quota has no figure.
	Files *Files
	// Live knows the streams and the requests; if it is nil, their quotas have no figure.
	Live Live
}

// Of returns the quotas of a workspace, in the order of All.
func (u *Usage) Of(ctx context.Context, workspace string) ([]Use, error) {
	used, err := NewPool(u.Table, nil, u.Limits, slog.New(slog.DiscardHandler)).Used(ctx, workspace)
	if err != nil {
		return nil, err
	}
	deployments, replicas, err := scaleOf(ctx, u.Table, workspace)
	if err != nil {
		return nil, err
	}
	used[Deployments], used[Replicas] = deployments, replicas
	if u.Live != nil {
		if used[Streams], used[Requests], err = u.Live.Used(ctx, workspace); err != nil {
			return nil, err
		}
	}
	if u.Files != nil {
		used[FileBytes] = u.Files.Measure(workspace)
	}
	uses := make([]Use, len(All))
	for i, q := range All {
		if key, ok := counts[q.Name]; ok && q.Name != Deployments {
			if used[q.Name], err = (record.Count{Key: key(workspace)}).Read(ctx, u.Table); err != nil {
				return nil, err
			}
		}
		uses[i] = Use{Name: q.Name, Limit: u.Limits.Of(q.Name)}
		if n, ok := used[q.Name]; ok {
			uses[i].Used = &n
		}
	}
	return uses, nil
}

// Files bounds the files of a workspace on the server's machine: uploaded sources, builds, and
// pushed images. The files themselves are measured, so erasing a file gives its bytes back. A
// nil *Files bounds nothing.
type Files struct {
	Limits Limits
	// Measure returns how many bytes the files of a workspace take.
	Measure func(workspace string) int64
}

// Room refuses to keep another file for a workspace whose files have reached the limit.
func (f *Files) Room(workspace string) error {
	if f != nil && f.Measure(workspace) >= f.Limits.Of(FileBytes) {
		return f.Limits.Refuse(FileBytes)
	}
	return nil
}
