package integration

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// gate orders the processes that bind an installation and the processes that remove it, in all
// workspaces: each write is made under the condition that it is the next turn
// after the turn that was read.
type gate struct {
	installation int64
	turn         string
	// closed says that the App is being removed from the account: nobody can bind it.
	closed bool
	// bound is the number of workspaces that are bound to the installation. Gates of earlier
	// releases did not count, so the number may be too small.
	bound int64
}

// closedFor is how long a gate stays closed at most. A removal takes seconds: a gate that is closed
// for longer belongs to a process that was killed, and other workspaces wait for it no longer.
const closedFor = 10 * time.Minute

func (s *Service) gate(ctx context.Context, installation int64) (gate, error) {
	item, err := record.Get(ctx, s.table, "gate of installation", keys.InstallationGate(installation), nil)
	if err != nil || item == nil {
		return gate{installation: installation}, err
	}
	r := record.Read(item, kindGate)
	closed := item.Bool(attrIsLeaving) && s.now().Before(r.Updated().Add(closedFor))
	return gate{installation, item.Text(attrTurn), closed, item.Int(attrBound)}, r.Err()
}

// next returns the write of the gate, which takes the turn after the turn that was read.
func (g gate) next(now time.Time) table.Write {
	own := table.Attrs{attrTurn: id.New(now), attrIsLeaving: g.closed, attrBound: g.bound}
	put := record.New(keys.InstallationGate(g.installation), kindGate, now, own, nil)
	if g.turn != "" {
		put.If = table.Equals(attrTurn, g.turn)
	}
	return put
}

func leaving(installation int64) error {
	return fault.New(fault.Conflict, "Installation ID %d is being removed. Open the link again when that is done.", installation)
}

// Uninstall takes an installation from its workspace. When no other workspace uses it, the App
// is removed from the account at GitHub too. An installation with which a deployment is built
// is a fault.Conflict. From the first write on, no deployment and no workspace can begin to
// use the installation. If Uninstall does not reach its end, the same request continues it.
func (s *Service) Uninstall(ctx context.Context, ref Ref) error {
	i, alone, err := s.markLeaving(ctx, ref)
	if err != nil {
		return err
	}
	if app, err := s.app(ctx); alone && !fault.Is(err, fault.Conflict) {
		if err == nil {
			err = app.uninstall(ctx, i)
		}
		if err != nil {
			return errors.Join(err, s.unmarkLeaving(context.WithoutCancel(ctx), i))
		}
	}
	s.Changed(i.InstallationID)
	return s.unbind(ctx, i, table.Equals(attrIsLeaving, true), describe(i.InstallationID, i.Name))
}

// markLeaving notes that an installation leaves its workspace, and reports whether this workspace
// is the only workspace that uses it.
func (s *Service) markLeaving(ctx context.Context, ref Ref) (i Installation, alone bool, err error) {
	i, err = record.DecideValue(ctx, s.table, func(ctx context.Context) (i Installation, o record.Outbox, err error) {
		i, err = s.GetInstallation(ctx, ref)
		if err != nil {
			return i, o, err
		}
		if err := s.mustBeUnused(ctx, ref); err != nil {
			return i, o, err
		}
		at, err := s.gate(ctx, i.InstallationID)
		if err != nil {
			return i, o, err
		}
		bindings, err := s.bindings(ctx, i.InstallationID)
		if err != nil {
			return i, o, err
		}
		// The index of bindings may lag behind; the number in the gate does not.
		alone = at.bound <= 1 && !slices.ContainsFunc(bindings, func(b Ref) bool { return b.Workspace != ref.Workspace })
		at.closed = alone
		return i, record.Write(i.mark(true), at.next(s.now())), nil
	})
	return i, alone, err
}

// mark notes on an installation whether it leaves its workspace. This is no change for users.
func (i Installation) mark(leaving bool) table.Write {
	return table.Update{Key: i.key(), Set: table.Attrs{attrIsLeaving: leaving}, Add: map[string]int64{record.Version: 1}, If: unchanged(i.version)}
}

// unmarkLeaving removes the note of markLeaving: GitHub would not remove the App.
func (s *Service) unmarkLeaving(ctx context.Context, i Installation) error {
	i, err := s.GetInstallation(ctx, i.Ref)
	if err != nil {
		return err
	}
	at, err := s.gate(ctx, i.InstallationID)
	if err != nil {
		return err
	}
	at.closed = false
	// If the note was changed, a repetition of the same request continues with it.
	_, err = record.Try(ctx, s.table, i.mark(false), at.next(s.now()))
	return err
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
