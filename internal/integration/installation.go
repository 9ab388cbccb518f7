package integration

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/slipway-run/slipway/internal/audit"
	"github.com/slipway-run/slipway/internal/fault"
	"github.com/slipway-run/slipway/internal/id"
	"github.com/slipway-run/slipway/internal/keys"
	"github.com/slipway-run/slipway/internal/record"
	"github.com/slipway-run/slipway/internal/table"
)

// Installation is a workspace's use of an installation of the GitHub App: the interface's GithubIntegration.
type Installation struct {
	Ref
	// InstallationID is GitHub's id of it, Name the account that it is installed at.
	InstallationID   int64
	Name             string
	Created, Updated time.Time
}

const (
	kindInstallation = "github_integration"
	kindBinding      = "installation_binding"

	attrInstallation = "installation"
	attrName         = "name"
	attrIntegration  = "integration"
)

func (i Installation) key() table.Key { return keys.GitHubIntegration(i.Workspace, i.Integration) }

func decodeInstallation(workspace string, item *table.Item) (Installation, error) {
	i := Installation{Ref: Ref{workspace, item.Key.SK}, InstallationID: item.Int(attrInstallation), Name: item.Text(attrName)}
	var err error
	i.Created, i.Updated, err = record.Times(item)
	return i, errors.Join(record.Check(item, kindInstallation), err)
}

// GetInstallation returns an installation; an unknown one is a fault.NotFound.
func (s *Service) GetInstallation(ctx context.Context, ref Ref) (Installation, error) {
	if !id.Valid(ref.Integration) {
		return Installation{}, notFound(ref)
	}
	item, err := s.table.Get(ctx, keys.GitHubIntegration(ref.Workspace, ref.Integration))
	if errors.Is(err, table.ErrNotFound) {
		return Installation{}, notFound(ref)
	}
	if err != nil {
		return Installation{}, fmt.Errorf("get installation: %w", err)
	}
	return decodeInstallation(ref.Workspace, item)
}

// Installations returns all of a workspace's installations, oldest first. There are as many as the organizations that its people own.
func (s *Service) Installations(ctx context.Context, workspace string) ([]Installation, error) {
	items, err := table.AllItems(ctx, s.table, keys.GitHubIntegrations(workspace))
	if err != nil {
		return nil, fmt.Errorf("list installations: %w", err)
	}
	return decodeAll(workspace, items, decodeInstallation)
}

// InstallationPage returns up to size of them, oldest first, and the cursor of the next page, "" after the last.
func (s *Service) InstallationPage(ctx context.Context, workspace string, size int, cursor string) ([]Installation, string, error) {
	query := keys.GitHubIntegrations(workspace)
	query.Limit, query.Cursor = size, cursor
	if _, err := query.Place(); err != nil {
		return nil, "", badCursor()
	}
	page, err := s.table.Query(ctx, query)
	if err != nil {
		return nil, "", fmt.Errorf("list installations: %w", err)
	}
	found, err := decodeAll(workspace, page.Items, decodeInstallation)
	return found, page.Cursor, err
}

func decodeAll[T any](workspace string, items []*table.Item, decode func(string, *table.Item) (T, error)) ([]T, error) {
	found := make([]T, 0, len(items))
	for _, item := range items {
		value, err := decode(workspace, item)
		if err != nil {
			return nil, err
		}
		found = append(found, value)
	}
	return found, nil
}

// bind gives the workspace an installation, which it has once: an integration id stays good when the App is installed again.
func (s *Service) bind(ctx context.Context, workspace string, installation int64, name string) (Installation, error) {
	now := s.now()
	i := Installation{Ref: Ref{workspace, id.New(now)}, InstallationID: installation, Name: name, Created: now, Updated: now}
	binding := keys.InstallationBinding(workspace, installation)
	err := s.table.Transact(ctx,
		table.Put{Item: table.Item{
			Key:   binding,
			Attrs: record.Attrs(kindBinding, now, table.Attrs{attrIntegration: i.Integration}),
			Index: map[table.Index]table.Key{table.ByList: keys.InstallationBindingEntry(workspace, installation)},
		}, If: table.Absent()},
		table.Put{Item: table.Item{
			Key:   i.key(),
			Attrs: record.Attrs(kindInstallation, now, table.Attrs{attrInstallation: installation, attrName: name}),
		}, If: table.Absent()},
		audit.New(ctx, audit.CreateIntegration, i.Integration, describe(installation, name)).Write(workspace, now),
	)
	if failed, ok := errors.AsType[*table.ConditionFailed](err); ok && failed.Item != nil && failed.Item.Key == binding {
		return s.GetInstallation(ctx, Ref{workspace, failed.Item.Text(attrIntegration)})
	}
	if err != nil {
		return Installation{}, fmt.Errorf("bind installation: %w", err)
	}
	return i, nil
}

func describe(installation int64, account string) string {
	return fmt.Sprintf("GitHub installation %d of %s", installation, account)
}

// unbind takes an installation from its workspace, for a reason. One that is gone, or was bound anew meanwhile, stays as it is.
func (s *Service) unbind(ctx context.Context, i Installation, reason string) error {
	err := s.table.Transact(ctx,
		table.Delete{Key: keys.InstallationBinding(i.Workspace, i.InstallationID), If: table.Equals(attrIntegration, i.Integration)},
		table.Delete{Key: i.key()},
		audit.New(ctx, audit.DeleteIntegration, i.Integration, reason).Write(i.Workspace, s.now()),
	)
	if _, gone := errors.AsType[*table.ConditionFailed](err); gone {
		return nil
	}
	if err != nil {
		return fmt.Errorf("unbind installation: %w", err)
	}
	return nil
}

// Workspaces returns the workspaces that an installation is bound to.
func (s *Service) Workspaces(ctx context.Context, installation int64) ([]string, error) {
	bindings, err := s.bindings(ctx, installation)
	if err != nil {
		return nil, err
	}
	workspaces := make([]string, 0, len(bindings))
	for _, b := range bindings {
		workspaces = append(workspaces, b.Workspace)
	}
	return workspaces, nil
}

func (s *Service) bindings(ctx context.Context, installation int64) ([]Ref, error) {
	items, err := table.AllItems(ctx, s.table, keys.InstallationBindings(installation))
	if err != nil {
		return nil, fmt.Errorf("query bindings: %w", err)
	}
	bindings := make([]Ref, 0, len(items))
	for _, item := range items {
		if err := record.Check(item, kindBinding); err != nil {
			return nil, err
		}
		bindings = append(bindings, Ref{keys.InstallationWorkspace(item.Key), item.Text(attrIntegration)})
	}
	return bindings, nil
}

// Uninstall takes an installation from its workspace. When no other workspace uses it, the App is removed from the account at GitHub too. One that a
// deployment is built with is a fault.Conflict.
func (s *Service) Uninstall(ctx context.Context, ref Ref) error {
	i, err := s.GetInstallation(ctx, ref)
	if err != nil {
		return err
	}
	if err := s.mustBeUnused(ctx, ref); err != nil {
		return err
	}
	bindings, err := s.bindings(ctx, i.InstallationID)
	if err != nil {
		return err
	}
	shared := false
	for _, b := range bindings {
		shared = shared || b.Workspace != ref.Workspace
	}
	if app, err := s.app(ctx); !shared && !fault.Is(err, fault.Conflict) {
		if err == nil {
			err = app.uninstall(ctx, i)
		}
		if err != nil {
			return err
		}
	}
	s.Changed(i.InstallationID)
	return s.unbind(ctx, i, describe(i.InstallationID, i.Name))
}

func (g *github) uninstall(ctx context.Context, i Installation) error {
	client, err := g.asApp()
	if err != nil {
		return err
	}
	_, err = client.Apps.DeleteInstallation(ctx, i.InstallationID)
	if refused(err).code == http.StatusNotFound {
		return nil
	}
	return g.trouble(err, i.Name)
}

// Removed notes that an installation was removed at GitHub: no workspace has it any more.
func (s *Service) Removed(ctx context.Context, installation int64) error {
	s.Changed(installation)
	bindings, err := s.bindings(ctx, installation)
	if err != nil {
		return err
	}
	for _, ref := range bindings {
		err = errors.Join(err, s.unbind(ctx, Installation{Ref: ref, InstallationID: installation}, "removed at GitHub"))
	}
	return err
}

// Changed notes that an installation may reach other repositories than before: tokens of it are asked for anew.
func (s *Service) Changed(installation int64) { s.tokens.forget(installation) }
