package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/cmd/exit"
	"github.com/slipway-run/slipway/internal/cmd/output"
)

// thread is a thread in the form of the interface's list.
type thread struct {
	ID      string    `json:"thread_id"`
	Status  string    `json:"status"`
	Created time.Time `json:"created_at"`
	Updated time.Time `json:"updated_at"`
}

// asksAgent turns a command into a command that talks to the agent of a deployment. Its arguments
// are the deployment, the id of a thread and, if there are three, the id of a run. run gets the
// path of the thread or of the run.
func (w *Where) asksAgent(cmd *cobra.Command, count int, run func(cmd *cobra.Command, agent *agent, path string, args []string) error) *cobra.Command {
	return w.asks(cmd, cobra.ExactArgs(count), func(cmd *cobra.Command, server *api, args []string) error {
		path := []string{""}
		for i, kind := range []string{"thread", "run"}[:count-1] {
			if !id.Valid(args[i+1]) {
				return exit.Usagef("%s must be the id of a %s, not %q", strings.ToUpper(kind), kind, args[i+1])
			}
			path = append(path, kind+"s", args[i+1])
		}
		agent, err := server.agent(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		return run(cmd, agent, agent.path+strings.Join(path, "/"), args)
	})
}

func newThreadsList() *cobra.Command {
	var where Where
	var limit int
	cmd := where.asks(&cobra.Command{Use: "list DEPLOYMENT", Short: "List the threads of an agent, the newest first"}, cobra.ExactArgs(1),
		func(cmd *cobra.Command, server *api, args []string) error {
			if limit < 1 {
				return exit.Usagef("--limit must be at least 1, not %d", limit)
			}
			agent, err := server.agent(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			var threads []thread
			body := map[string]any{"limit": limit, "select": []string{"thread_id", "status", "created_at", "updated_at"}}
			if err := agent.do(cmd.Context(), http.MethodPost, agent.path+"/threads/search", body, &threads); err != nil {
				return err
			}
			return output.PrintList(cmd, threads, []string{"THREAD", "STATUS", "CREATED", "CHANGED"}, func(t thread) []string {
				return []string{t.ID, t.Status, output.Time(t.Created), output.Time(t.Updated)}
			})
		})
	cmd.Flags().IntVar(&limit, "limit", 100, "how many threads to list at most")
	return output.WithJSON(cmd)
}

func newThreadsShow() *cobra.Command {
	var where Where
	return output.WithJSON(where.asksAgent(&cobra.Command{Use: "show DEPLOYMENT THREAD", Short: "Print the messages of a thread, or with --json its state"}, 2,
		func(cmd *cobra.Command, agent *agent, path string, args []string) error {
			if output.AsJSON(cmd) {
				var state json.RawMessage
				if err := agent.do(cmd.Context(), http.MethodGet, path+"/state", nil, &state); err != nil {
					return err
				}
				_, err := fmt.Fprintln(cmd.OutOrStdout(), string(state))
				return err
			}
			messages, err := agent.messages(cmd.Context(), args[1])
			if err != nil {
				return err
			}
			_, err = fmt.Fprint(cmd.OutOrStdout(), output.Thread(messages))
			return err
		}))
}
