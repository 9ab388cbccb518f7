package push

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// Watch is a deployment's settings for pushes.
type Watch struct {
	Workspace, Deployment string
	// RepoURL and RepoRef are the URL and the ref of the deployment: any URL that git can
	// clone from, and the bare name of a branch.
	RepoURL, RepoRef string
	BuildOnPush      bool
}

const (
	kindWatch      = "push_watch"
	attrRepository = "repository"
	attrBranch     = "branch"
)

// Write returns the write that makes the stored watch equal to w. It belongs into each
// transaction that creates or deletes the deployment or changes one of the members; when a
// deployment is deleted, BuildOnPush is false. Writing the same watch again does no harm.
func (w Watch) Write(now time.Time) table.Write {
	key := keys.PushWatch(w.Workspace, w.Deployment)
	repository, ok := Repository(w.RepoURL)
	if !w.BuildOnPush || !ok || w.RepoRef == "" || strings.HasPrefix(w.RepoRef, "refs/") {
		return table.Delete{Key: key}
	}
	item := record.Item(key, kindWatch, now, table.Attrs{attrRepository: repository, attrBranch: w.RepoRef}, nil)
	item.Index = map[table.Index]table.Key{table.ByList: keys.PushWatchEntry(w.Workspace, repository, w.RepoRef, w.Deployment)}
	return table.Put{Item: item}
}

// target is a deployment that a push may be for.
type target struct{ workspace, deployment string }

// watches reports whether the deployment watches the changed branch.
func (r *Receiver) watches(ctx context.Context, t target, c change) (bool, error) {
	item, err := record.Get(ctx, r.cfg.Table, "push watch", keys.PushWatch(t.workspace, t.deployment), nil)
	if err != nil || item == nil {
		return false, err
	}
	if err := record.Check(item, kindWatch); err != nil || item.Text(attrBranch) != c.branch {
		return false, err
	}
	watched := item.Text(attrRepository)
	watches := slices.ContainsFunc(c.names, func(name string) bool { return name == watched || c.own && folderOf(name) == folderOf(watched) })
	if !watches {
		r.cfg.Log.InfoContext(ctx, "push did nothing: it is of another repository", "deployment", t.deployment, "repository", watched, "pushed", c.names)
	}
	return watches, nil
}

// folderOf is the name of a repository without its host.
func folderOf(name string) string {
	_, folder, _ := strings.Cut(name, "/")
	return folder
}

// listed returns the deployments that a workspace's index lists under a repository's names.
func (r *Receiver) listed(ctx context.Context, workspace string, names []string, branch string) ([]target, error) {
	var targets []target
	for _, name := range names {
		items, err := table.AllItems(ctx, r.cfg.Table, keys.PushWatches(workspace, name, branch))
		if err != nil {
			return nil, fmt.Errorf("query push watches: %w", err)
		}
		for _, item := range items {
			targets = append(targets, target{workspace, keys.DeploymentID(item.Key)})
		}
	}
	return targets, nil
}
