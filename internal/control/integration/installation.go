package integration

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/audit"
)

// Installation is a workspace's use of an installation of the GitHub App: the interface's
// GithubIntegration.
type Installation struct {
	Ref
	// InstallationID is GitHub's id of the installation, Name the account that has it.
	InstallationID   int64
	Name             string
	Created, Updated time.Time

	// leaving says that it is being taken from the workspace.
	leaving bool
	version int64
}

const (
	kindInstallation = "github_integration"
	kindBinding      = "installation_binding"
	kindGate         = "installation_gate"

	attrInstallation = "installation"
	attrName         = "name"
	attrIntegration  = "integration"
	attrIsLeaving    = "leaving"
	attrTurn         = "turn"
	attrBound        = "bound"
)

func (i Installation) key() table.Key { return keys.GitHubIntegration(i.Workspace, i.Integration) }

func decodeInstallation(workspace string, item *table.Item) (Installation, error) {
	r := record.Read(item, kindInstallation)
	i := Installation{
		Ref: Ref{workspace, item.Key.SK}, InstallationID: item.Int(attrInstallation), Name: item.Text(attrName), Created: r.Created(), Updated: r.Updated(),
		leaving: item.Bool(attrIsLeaving), version: item.Int(record.Version),
	}
	return i, r.Err()
}

// GetInstallation returns an installation; an unknown installation is a fault.NotFound.
func (s *Service) GetInstallation(ctx context.Context, ref Ref) (Installation, error) {
	return record.One(ctx, s.table, "installation", Installation{Ref: ref}.key(), notFound(ref), record.In(ref.Workspace, decodeInstallation))
}

// Installations returns all of a workspace's installations, oldest first. There are as many as
// the organizations that the workspace's people own.
func (s *Service) Installations(ctx context.Context, workspace string) ([]Installation, error) {
	return record.All(ctx, s.table, "installations", keys.GitHubIntegrations(workspace), record.In(workspace, decodeInstallation))
}

// InstallationPage returns a page of a workspace's installations, oldest first.
func (s *Service) InstallationPage(ctx context.Context, workspace string, window record.Window) (record.Page[Installation], error) {
	return record.List(ctx, s.table, "installations", keys.GitHubIntegrations(workspace), window, func(item *table.Item) (Installation, bool, error) {
		i, err := decodeInstallation(workspace, item)
		return i, true, err
	})
}

// bind gives an installation to the workspace, as a new integration or as the former integration. A
// workspace has an installation only once: an integration id stays valid when the App is installed
// again. An installation that is being removed is a fault.Conflict.
func (s *Service) bind(ctx context.Context, workspace string, installation int64, name, former string) (Installation, error) {
	var existing *Ref
	errBound := errors.New("the installation is bound already")
	i, err := record.DecideValue(ctx, s.table, func(ctx context.Context) (i Installation, o record.Outbox, err error) {
		at, err := s.gate(ctx, installation)
		if err != nil {
			return i, o, err
		}
		if at.closed {
			return i, o, leaving(installation)
		}
		now := s.now()
		i = Installation{Ref: Ref{workspace, id.New(now)}, InstallationID: installation, Name: name, Created: now, Updated: now}
		writes := []table.Write{
			record.New(i.key(), kindInstallation, now, table.Attrs{attrInstallation: installation, attrName: name}, nil),
			audit.New(ctx, audit.CreateIntegration, i.Integration, describe(installation, name)).Write(workspace, now),
		}
		if former != "" {
			if i, writes, err = s.takeOver(ctx, i, former); err != nil {
				return i, o, err
			}
		}
		put := record.New(keys.InstallationBinding(workspace, installation), kindBinding, now, table.Attrs{attrIntegration: i.Integration}, nil)
		put.Item.Index = map[table.Index]table.Key{table.ByList: keys.InstallationBindingEntry(workspace, installation)}
		o.AddOr(put, func(binding *table.Item) error {
			existing = &Ref{workspace, binding.Text(attrIntegration)}
			return errBound
		})
		at.bound++
		o.Add(append(writes, at.next(now))...)
		return i, o, nil
	})
	if errors.Is(err, errBound) {
		return s.bound(ctx, *existing, installation)
	}
	return i, err
}

// takeOver returns the former integration as it is with a new installation, and the writes for
// that. Its deployments go on, as they can name no other integration.
func (s *Service) takeOver(ctx context.Context, next Installation, former string) (Installation, []table.Write, error) {
	now := next.Created
	i, err := s.GetInstallation(ctx, Ref{next.Workspace, former})
	if err != nil {
		return next, nil, err
	}
	if i.leaving {
		return next, nil, leaving(i.InstallationID)
	}
	unbound := table.Delete{Key: keys.InstallationBinding(i.Workspace, i.InstallationID)}
	i.InstallationID, i.Name, i.Updated = next.InstallationID, next.Name, now
	return i, []table.Write{
		unbound,
		record.Change(i.key(), now, table.Attrs{attrInstallation: i.InstallationID, attrName: i.Name}, unchanged(i.version)),
		audit.New(ctx, audit.UpdateIntegration, i.Integration, describe(i.InstallationID, i.Name)).Write(i.Workspace, now),
	}, nil
}

// bound returns an installation that the workspace already has.
func (s *Service) bound(ctx context.Context, ref Ref, installation int64) (Installation, error) {
	i, err := s.GetInstallation(ctx, ref)
	if err == nil && i.leaving {
		err = leaving(installation)
	}
	return i, err
}

func describe(installation int64, account string) string {
	return fmt.Sprintf("GitHub installation %d of %s", installation, account)
}

// unbind takes an installation from its workspace, for a reason, if the installation is as
// expected. An installation that is gone, or was bound again meanwhile, stays as it is.
func (s *Service) unbind(ctx context.Context, i Installation, expected table.Cond, reason string) error {
	errGone := errors.New("the installation is not bound any more")
	err := record.Decide(ctx, s.table, func(ctx context.Context) (o record.Outbox, err error) {
		at, err := s.gate(ctx, i.InstallationID)
		if err != nil {
			return o, err
		}
		now := s.now()
		o.AddOr(table.Delete{Key: keys.InstallationBinding(i.Workspace, i.InstallationID), If: table.Equals(attrIntegration, i.Integration)}, record.Always(errGone))
		o.AddOr(table.Delete{Key: i.key(), If: expected}, func(item *table.Item) error {
			if item == nil {
				return errGone
			}
			return fault.New(fault.Unavailable, "Integration ID %s was changed meanwhile. Try again.", i.Integration)
		})
		at.bound--
		at.closed = false
		o.Add(audit.New(ctx, audit.DeleteIntegration, i.Integration, reason).Write(i.Workspace, now), at.next(now))
		return o, nil
	})
	if errors.Is(err, errGone) {
		return nil
	}
	return err
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
	return record.All(ctx, s.table, "bindings", keys.InstallationBindings(installation), func(item *table.Item) (Ref, error) {
		workspace, err := keys.WorkspaceOf(item.Key)
		return Ref{workspace, item.Text(attrIntegration)}, cmp.Or(err, record.Check(item, kindBinding))
	})
}

// Removed notes that an installation was removed at GitHub: no workspace has it any more. An
// integration with which a deployment is built stays until the App is installed again.
func (s *Service) Removed(ctx context.Context, installation int64) error {
	s.Changed(installation)
	bindings, err := s.bindings(ctx, installation)
	if err != nil {
		return err
	}
	for _, ref := range bindings {
		failure := s.mustBeUnused(ctx, ref)
		if fault.Is(failure, fault.Conflict) {
			continue
		}
		if failure == nil {
			failure = s.unbind(ctx, Installation{Ref: ref, InstallationID: installation}, table.Cond{}, "removed at GitHub")
		}
		err = errors.Join(err, failure)
	}
	return err
}

// Changed notes that an installation may reach other repositories than before: new tokens of
// the installation are requested.
func (s *Service) Changed(installation int64) { s.tokens.forget(installation) }
