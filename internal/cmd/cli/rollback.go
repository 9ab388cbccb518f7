package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/cmd/exit"
	"github.com/slipway-run/slipway/internal/cmd/output"
)

const rollbackLong = `Deploy an earlier revision again, as a new revision with its sources, settings and secrets: the
revision that you name, or else the newest revision that served before the active revision. Threads
stay. Before the command asks, it names the settings and secrets that change.`

// statusDeployed is the status of a revision that serves or has served.
const statusDeployed = "DEPLOYED"

func newRollback() *cobra.Command {
	var where Where
	var yes, pause, asJSON bool
	var limit time.Duration
	cmd := where.asks(&cobra.Command{Use: "rollback DEPLOYMENT [REVISION]", Short: "Deploy an earlier revision again", Long: rollbackLong}, cobra.RangeArgs(1, 2),
		func(cmd *cobra.Command, server *api, args []string) error {
			if limit <= 0 {
				return exit.Usagef("--wait-timeout must be more than 0, not %s", limit)
			}
			if len(args) > 1 && !id.Valid(args[1]) {
				return exit.Usagef("REVISION must be the id of a revision, not %q", args[1])
			}
			d, err := server.deployment(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			revisions, err := server.revisions(cmd.Context(), d)
			if err != nil {
				return err
			}
			to, err := target(d, revisions, args[1:])
			if err != nil {
				return err
			}
			printer := output.Choose(cmd.OutOrStdout(), cmd.ErrOrStderr(), asJSON)
			r := &deploying{api: server, show: output.Timed(printer), deployment: d, plan: plan{deployOptions: deployOptions{name: d.Name}}}
			r.show(output.Event{Kind: output.KindServer, URL: where.server.URL, Text: where.From})
			err = r.explainRollback(cmd.Context(), revisions, to, pause)
			if err == nil {
				err = confirm(cmd, yes, "Roll "+d.Name+" back?")
			}
			if err == nil {
				err = r.within(cmd.Context(), limit, func(ctx context.Context) (output.Event, error) { return r.rollBack(ctx, to, pause) })
			}
			return errors.Join(err, printer.Close())
		})
	flags := cmd.Flags()
	flags.BoolVar(&yes, "yes", false, "do not ask")
	flags.BoolVar(&pause, "pause-builds", false, "deploy no more pushes, which would bring the later commit back")
	flags.BoolVar(&asJSON, "json", false, "print everything that happens on stdout, one JSON object per line")
	flags.DurationVar(&limit, "wait-timeout", 15*time.Minute, "how long to wait; exit code 8 when it is over")
	return cmd
}

// revisions returns the newest revisions of a deployment, the newest first.
func (a *api) revisions(ctx context.Context, d deployment) ([]revision, error) {
	page := page[revision]{Resources: []revision{}}
	err := a.do(ctx, http.MethodGet, d.path()+"/revisions?limit=100", nil, &page)
	return page.Resources, err
}

// target chooses the revision to go back to.
func target(d deployment, revisions []revision, named []string) (revision, error) {
	past := false
	for _, r := range revisions {
		switch {
		case len(named) > 0 && r.ID == named[0]:
			return r, nil
		case len(named) == 0 && past && r.Status == statusDeployed:
			return r, nil
		}
		past = past || r.ID == d.Active || d.Active == ""
	}
	if len(named) > 0 {
		return revision{}, fmt.Errorf("the deployment %s has no revision %s; slipway deployments show %s lists them", d.Name, named[0], d.Name)
	}
	return revision{}, fmt.Errorf("no revision of %s served before the active revision", d.Name)
}

// explainRollback shows what would change: of settings and secrets the names.
func (d *deploying) explainRollback(ctx context.Context, revisions []revision, to revision, pause bool) error {
	note := func(text string) { d.show(output.Event{Kind: output.KindNote, Text: text}) }
	for _, r := range revisions {
		if r.ID == d.deployment.Active {
			note("from revision " + r.ID + with(", ", r.of()) + ", of " + output.Time(r.Created))
		}
	}
	note("to revision " + to.ID + with(", ", to.of()) + ", of " + output.Time(to.Created) + ", with the settings and secrets that it had")
	if d.deployment.Active != "" {
		names, err := d.api.changed(ctx, d.deployment, d.deployment.Active, to.ID)
		if err != nil {
			return err
		}
		note("changes: " + cmp.Or(strings.Join(names, ", "), "nothing"))
	}
	if d.deployment.SourceConfig.BuildOnPush && !pause {
		note("the next push would bring the later commit back, as build_on_push is set; --pause-builds unsets it")
	}
	return nil
}

// changed returns the names of the settings and secrets that differ between two revisions.
func (a *api) changed(ctx context.Context, d deployment, from, to string) (names []string, err error) {
	type named struct {
		Name string `json:"name"`
	}
	var difference struct{ Settings, Secrets []named }
	err = a.do(ctx, http.MethodGet, d.revision(to)+"/difference?from="+from, nil, &difference)
	for _, setting := range difference.Settings {
		names = append(names, setting.Name)
	}
	for _, secret := range difference.Secrets {
		names = append(names, "secret "+secret.Name)
	}
	return names, err
}

func (d *deploying) rollBack(ctx context.Context, to revision, pause bool) (result output.Event, err error) {
	from := d.deployment.Active
	if pause {
		body := map[string]any{"source_config": map[string]any{"build_on_push": false}}
		if err := d.api.do(ctx, http.MethodPatch, d.deployment.path(), body, &d.deployment); err != nil {
			return result, err
		}
		d.show(output.Event{Kind: output.KindNote, Text: "pushes are not built any more: build_on_push is unset"})
	}
	if err := d.api.do(ctx, http.MethodPost, d.deployment.revision(to.ID)+"/rollback", nil, &d.deployment); err != nil {
		return result, err
	}
	result, err = d.await(ctx, d.deployment.Latest)
	if err == nil && from != "" {
		d.show(output.Event{Kind: output.KindNote, Text: "undo with: slipway rollback " + d.name + " " + from})
	}
	return result, err
}
