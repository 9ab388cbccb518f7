package push

import (
	"context"
	"fmt"
	"slices"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
)

const (
	kindNames = "repository_names"
	// maxNames is the largest number of names of a repository that are kept.
	maxNames = 8
)

// Names remembers the names that repositories at GitHub have had, by GitHub's ids. A deployment
// watches its repository under the name in its repo_url, and the push after a rename reports only
// the new name.
type Names struct {
	table table.Table
	now   clock.Clock
}

// NewNames returns the names that are kept in a table.
func NewNames(t table.Table, now clock.Clock) Names { return Names{t, now} }

// Cloned remembers the name that a repository had when a workspace cloned it.
func (n Names) Cloned(ctx context.Context, workspace string, repository int64, repoURL string) error {
	name, ok := Repository(repoURL)
	if !ok || repository == 0 {
		return nil
	}
	earlier, err := n.earlier(ctx, workspace, repository)
	if err != nil {
		return err
	}
	return n.note(ctx, workspace, repository, earlier, []string{name})
}

// earlier returns the names under which a repository was cloned or built.
func (n Names) earlier(ctx context.Context, workspace string, repository int64) ([]string, error) {
	key := keys.RepositoryNames(workspace, repository)
	return record.One(ctx, n.table, "repository names", key, nil, func(item *table.Item) (names []string, err error) {
		read := record.Read(item, kindNames)
		read.Decode(&names)
		return names, read.Err()
	})
}

// note adds a repository's present names to the earlier names. If two callers write at the same
// time, the names of one caller are lost; the next clone or push under these names adds them again.
func (n Names) note(ctx context.Context, workspace string, repository int64, earlier, present []string) error {
	names := union(earlier, present)
	if repository == 0 || len(names) == len(earlier) {
		return nil
	}
	kept := record.Encode(names[max(0, len(names)-maxNames):])
	item := record.Item(keys.RepositoryNames(workspace, repository), kindNames, n.now(), nil, kept)
	if err := n.table.Transact(ctx, table.Put{Item: item}); err != nil {
		return fmt.Errorf("note repository names: %w", err)
	}
	return nil
}

// union returns the names of a, and behind them those that only b has.
func union(a, b []string) []string {
	return slices.Concat(a, slices.DeleteFunc(slices.Clone(b), func(name string) bool { return slices.Contains(a, name) }))
}
