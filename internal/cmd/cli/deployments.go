package cli

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/cmd/client"
	"github.com/slipway-run/slipway/internal/cmd/exit"
	"github.com/slipway-run/slipway/internal/cmd/output"
)

// call is a command that sends requests to a server, with the command's arguments.
type call func(cmd *cobra.Command, server *api, args []string) error

// asks turns a command into a command that talks to a server.
func (w *Where) asks(cmd *cobra.Command, args cobra.PositionalArgs, run call) *cobra.Command {
	cmd.Args = exit.Arguments(args)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		server, err := w.Client(cmd)
		if err != nil {
			return err
		}
		err = run(cmd, &api{Client: server}, args)
		if err != nil && cmd.Context().Err() != nil {
			return exit.ErrInterrupted
		}
		return err
	}
	w.Flags(cmd)
	w.completes(cmd)
	return cmd
}

// statusDeleted is the status of a deleted deployment of which something is left.
const statusDeleted = "AWAITING_DELETE"

// maxRecovery is the longest recovery window that the server grants.
const maxRecovery = 30 * 24 * time.Hour

func newDeploymentsList() *cobra.Command {
	var where Where
	var deleted bool
	cmd := where.asks(&cobra.Command{Use: "list", Short: "List the deployments, the newest first"}, cobra.NoArgs,
		func(cmd *cobra.Command, server *api, _ []string) error {
			var all []deployment
			for cursor := ""; ; {
				var page page[deployment]
				query := url.Values{"limit": {"100"}}
				if deleted {
					query.Set("status", statusDeleted)
				}
				if cursor != "" {
					query.Set("cursor", cursor)
				}
				if err := server.do(cmd.Context(), http.MethodGet, "/v2/deployments?"+query.Encode(), nil, &page); err != nil {
					return err
				}
				for _, d := range page.Resources {
					d.Secrets = nil
					all = append(all, d)
				}
				if cursor = page.Cursor; cursor == "" {
					break
				}
			}
			return output.PrintList(cmd, all, []string{"NAME", "STATUS", "SOURCE", "CHANGED", "ADDRESS"}, func(d deployment) []string {
				return []string{d.Name, d.state(), d.Source, output.Time(d.Updated), d.SourceConfig.URL}
			})
		})
	cmd.Flags().BoolVar(&deleted, "deleted", false, "list the deleted deployments of which something is left")
	return output.WithJSON(cmd)
}

// deploymentShown is a deployment with its revisions, without the values of its secrets.
type deploymentShown struct {
	deployment
	Secrets   []string   `json:"secrets"`
	Revisions []revision `json:"revisions"`
}

func newDeploymentsShow() *cobra.Command {
	var where Where
	return output.WithJSON(where.asks(&cobra.Command{Use: "show DEPLOYMENT", Short: "Show a deployment and its newest revisions"}, cobra.ExactArgs(1),
		func(cmd *cobra.Command, server *api, args []string) error {
			d, err := server.deployment(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			revisions, err := server.revisions(cmd.Context(), d)
			if err != nil {
				return err
			}
			shown := deploymentShown{deployment: d, Secrets: d.secretNames(), Revisions: revisions}
			rows := [][]string{{"name", d.Name}, {"id", d.ID}, {"status", d.state()}, {"address", d.SourceConfig.URL}, {"source", d.from()}, {"secrets", strings.Join(shown.Secrets, " ")}}
			for _, r := range revisions {
				text := r.Status + with(": ", r.Reason) + ", " + output.Time(r.Created) + with(", ", r.of())
				if r.ID == d.Active {
					text += ", serves"
				}
				rows = append(rows, []string{"revision " + r.ID, text})
			}
			return output.Print(cmd, shown, []string{"WHAT", "VALUE"}, rows)
		}))
}

// state is the status for a person, to whom READY alone would say that the agent answers.
func (d deployment) state() string {
	if d.Purge != nil {
		return d.Status + ", can be undeleted until " + output.Time(*d.Purge)
	}
	if d.Status == "READY" && d.Active == "" {
		return d.Status + ", but no revision serves"
	}
	return d.Status
}

func (d deployment) secretNames() []string {
	names := []string{}
	for _, s := range d.Secrets {
		names = append(names, s.Name)
	}
	return names
}

// from describes the source of a deployment.
func (d deployment) from() string {
	return d.Source + with(" ", d.SourceConfig.RepoURL) + with(" at ", d.RevisionConfig.Ref) + with(" ", d.RevisionConfig.Image)
}

// of describes the source of a revision.
func (r revision) of() string {
	if r.Build.SourceDigest != "" {
		return "upload " + shortened(r.Build.SourceDigest)
	}
	return cmp.Or(with("commit ", shortened(r.Config.Commit)), with("image ", r.Config.Image))
}

// shortened returns the short form of a digest for people.
func shortened(digest string) string { return digest[:min(len(digest), 12)] }

func newDeploymentsDelete() *cobra.Command {
	var where Where
	var yes, noWait bool
	var window time.Duration
	cmd := where.asks(&cobra.Command{Use: "delete DEPLOYMENT", Short: "Delete a deployment with its threads"}, cobra.ExactArgs(1),
		func(cmd *cobra.Command, server *api, args []string) error {
			if window < 0 || window > maxRecovery || window%time.Second != 0 {
				return exit.Usagef("--recovery-window must be a number of seconds from 0 to %s, not %s", maxRecovery, window)
			}
			if err := confirm(cmd, yes, "Delete the deployment "+args[0]+" with its revisions and threads?"); err != nil {
				return err
			}
			d, err := server.deployment(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			query := url.Values{"recovery_window_seconds": {strconv.Itoa(int(window / time.Second))}}
			if err := server.do(cmd.Context(), http.MethodDelete, d.path()+"?"+query.Encode(), nil, nil); err != nil && !client.IsNotFound(err) {
				return err
			}
			var now deployment
			for !noWait {
				err := server.do(cmd.Context(), http.MethodGet, d.path(), nil, &now)
				if client.IsNotFound(err) || err == nil && now.Purge != nil {
					break
				}
				if err != nil {
					return err
				}
				if !clock.Sleep(cmd.Context(), pollInterval) {
					return exit.ErrInterrupted
				}
			}
			sentence, document := "the deployment "+d.Name+" is deleted", map[string]any{"deployment_id": d.ID, "name": d.Name}
			if now.Purge != nil {
				sentence += "; until " + output.Time(*now.Purge) + " it can be undeleted: slipway deployments undelete " + d.ID
				document["purge_at"] = now.Purge
			}
			return output.Done(cmd, sentence, document)
		})
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	cmd.Flags().DurationVar(&window, "recovery-window", 0, "for how long the deployment can be undeleted, as 72h; at most "+maxRecovery.String())
	cmd.Flags().BoolVar(&noWait, "no-wait", false, "do not wait until the deployment is gone")
	return output.WithJSON(cmd)
}

// confirm asks a person at a terminal; without a terminal, --yes is needed.
func confirm(cmd *cobra.Command, yes bool, question string) error {
	if yes {
		return nil
	}
	if !output.IsTerminal(cmd.InOrStdin()) {
		return exit.Usagef("nobody can be asked, as stdin is no terminal: say --yes")
	}
	fmt.Fprint(cmd.ErrOrStderr(), question+" [y/N] ")
	answer, err := bufio.NewReader(cmd.InOrStdin()).ReadString('\n')
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer == "y" || answer == "yes" {
		return nil
	}
	return errors.Join(exit.ErrInterrupted, err)
}
