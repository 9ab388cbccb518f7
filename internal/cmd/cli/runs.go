package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-run/slipway/internal/cmd/output"
)

// runShown is a run in the form of the interface's list.
type runShown struct {
	ID       string    `json:"run_id"`
	Thread   string    `json:"thread_id"`
	Status   string    `json:"status"`
	Strategy string    `json:"multitask_strategy"`
	Created  time.Time `json:"created_at"`
	Updated  time.Time `json:"updated_at"`
}

func newRunsList() *cobra.Command {
	var where Where
	return output.WithJSON(where.asksAgent(&cobra.Command{Use: "list DEPLOYMENT THREAD", Short: "List the runs of a thread, the newest first"}, 2,
		func(cmd *cobra.Command, agent *agent, thread string, _ []string) error {
			var runs []runShown
			if err := agent.do(cmd.Context(), http.MethodGet, thread+"/runs?limit=100", nil, &runs); err != nil {
				return err
			}
			return output.PrintList(cmd, runs, []string{"RUN", "STATUS", "STRATEGY", "CREATED", "CHANGED"}, func(r runShown) []string {
				return []string{r.ID, r.Status, r.Strategy, output.Time(r.Created), output.Time(r.Updated)}
			})
		}))
}

// newRun makes a command that prints a document of a run, also if there is an error as well.
func newRun(use, short string, document func(ctx context.Context, agent *agent, run string) (json.RawMessage, error)) *cobra.Command {
	var where Where
	cmd := where.asksAgent(&cobra.Command{Use: use + " DEPLOYMENT THREAD RUN", Short: short}, 3,
		func(cmd *cobra.Command, agent *agent, run string, _ []string) error {
			text, err := document(cmd.Context(), agent, run)
			if text != nil {
				_, printed := fmt.Fprintln(cmd.OutOrStdout(), string(text))
				err = errors.Join(err, printed)
			}
			return err
		})
	cmd.Flags().Bool("json", true, "print one JSON document, as always")
	return cmd
}

func showRun(ctx context.Context, agent *agent, run string) (document json.RawMessage, err error) {
	err = agent.do(ctx, http.MethodGet, run, nil, &document)
	return document, err
}

// waitForRun returns the values of the thread when the run has ended, also if it ended with an
// error. That error is then the error of the command.
func waitForRun(ctx context.Context, agent *agent, run string) (values json.RawMessage, err error) {
	if err := agent.do(ctx, http.MethodGet, run+"/join", nil, &values); err != nil {
		return nil, err
	}
	var ended runShown
	if err := agent.do(ctx, http.MethodGet, run, nil, &ended); err != nil {
		return values, err
	}
	if ended.Status == "error" || ended.Status == "timeout" {
		err = fmt.Errorf("run %s ended with the status %s", ended.ID, ended.Status)
	}
	return values, err
}

const runsStreamLong = `Print the answer of a run from its beginning: the part that is written already, and the rest while the
agent writes it. Only the agent's answer goes to stdout.`

func newRunsStream() *cobra.Command {
	var where Where
	var asJSON bool
	cmd := where.asksAgent(&cobra.Command{Use: "stream DEPLOYMENT THREAD RUN", Short: "Print the answer of a run while it is written", Long: runsStreamLong}, 3,
		func(cmd *cobra.Command, agent *agent, _ string, args []string) error {
			c := &conversation{agent: agent, thread: args[1], runs: 1}
			printer := c.prints(cmd.OutOrStdout(), cmd.ErrOrStderr(), asJSON)
			result := output.Event{Kind: output.KindResult, Status: "succeeded", Thread: c.thread}
			err := c.hear(cmd.Context(), agent.run(c.thread, args[2]))
			if err != nil {
				result.Status, result.Text = "failed", err.Error()
			}
			if asJSON || err != nil {
				c.show(result)
			}
			return errors.Join(err, printer.Close())
		})
	cmd.Flags().BoolVar(&asJSON, "json", false, "print everything that happens on stdout, one JSON object per line")
	return cmd
}

func newRunsCancel() *cobra.Command {
	var where Where
	return output.WithJSON(where.asksAgent(&cobra.Command{Use: "cancel DEPLOYMENT THREAD RUN", Short: "End a run; the shown part of its answer stays"}, 3,
		func(cmd *cobra.Command, agent *agent, run string, args []string) error {
			if err := agent.do(cmd.Context(), http.MethodPost, run+"/cancel?wait=true", nil, nil); err != nil {
				return err
			}
			return output.Done(cmd, "the run "+args[2]+" is ended", map[string]any{"thread_id": args[1], "run_id": args[2]})
		}))
}
