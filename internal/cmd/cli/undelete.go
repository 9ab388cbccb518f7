package cli

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/spf13/cobra"

	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/cmd/output"
)

const undeleteLong = `Undo the deletion of a deployment that was deleted with --recovery-window, while that window lasts.
The deployment has its threads, settings and secrets again, and deploys the revision that was active;
slipway deployments show says when that revision serves.`

func newDeploymentsUndelete() *cobra.Command {
	var where Where
	return output.WithJSON(where.asks(&cobra.Command{Use: "undelete DEPLOYMENT", Short: "Undo the deletion of a deployment", Long: undeleteLong}, cobra.ExactArgs(1),
		func(cmd *cobra.Command, server *api, args []string) error {
			d, err := server.deleted(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if err := server.do(cmd.Context(), http.MethodPost, d.path()+"/undelete", nil, &d); err != nil {
				return err
			}
			return output.Done(cmd, "the deployment "+d.Name+" is undeleted"+with(", and deploys revision ", d.Latest),
				map[string]any{"deployment_id": d.ID, "name": d.Name, "revision_id": d.Latest})
		}))
}

// deleted finds a deleted deployment by its id or its name. Of several deployments that had the
// name, it is the only one that can be undeleted.
func (a *api) deleted(ctx context.Context, idOrName string) (deployment, error) {
	if id.Valid(idOrName) {
		return a.deployment(ctx, idOrName)
	}
	var page page[deployment]
	query := url.Values{"name": {idOrName}, "status": {statusDeleted}, "limit": {"100"}}
	if err := a.do(ctx, http.MethodGet, "/v2/deployments?"+query.Encode(), nil, &page); err != nil {
		return deployment{}, err
	}
	found := slices.DeleteFunc(page.Resources, func(d deployment) bool { return d.Purge == nil })
	switch len(found) {
	case 0:
		return deployment{}, fmt.Errorf("there is no deleted deployment named %q that can be undeleted", idOrName)
	case 1:
		return found[0], nil
	}
	return deployment{}, fmt.Errorf("%d deleted deployments were named %q: name one by its id; slipway deployments list --deleted --json lists them", len(found), idOrName)
}
