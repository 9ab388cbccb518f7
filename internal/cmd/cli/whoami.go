package cli

import (
	"cmp"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/slipway-run/slipway/internal/cmd/output"
)

// workspacePath is the path of the workspace of the credentials in the interface.
const workspacePath = "/v2/workspaces/current"

// workspace is the workspace of the credentials, and their permissions in it.
type workspace struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Role string `json:"role"`
}

func newWhoami() *cobra.Command {
	var where Where
	return output.WithJSON(where.asks(&cobra.Command{
		Use: "whoami", Short: "Show the server and the workspace that commands talk to",
		Long: "Show the server that commands talk to, the place where its address was found, the workspace and the role of the credentials, and the signed-in user.",
	}, cobra.NoArgs, func(cmd *cobra.Command, server *api, _ []string) error {
		var current workspace
		if err := server.Call(cmd.Context(), http.MethodGet, workspacePath, nil, &current); err != nil {
			return err
		}
		document := map[string]any{"workspace": current, "url": where.server.URL, "from": where.From, "user": where.User}
		row := []string{current.Name, current.ID, current.Role, cmp.Or(where.User, "API key"), where.server.URL, where.From}
		return output.Print(cmd, document, []string{"WORKSPACE", "ID", "ROLE", "USER", "SERVER", "FOUND IN"}, [][]string{row})
	}))
}
