package cli

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// completionLimit is how long a shell waits for names.
const completionLimit = time.Second

// completes lets a shell complete the first argument of a command to the name of a deployment, if
// the command takes one.
func (w *Where) completes(cmd *cobra.Command) {
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 || !strings.Contains(cmd.Use, " DEPLOYMENT") {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		server, err := w.Client(cmd)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completionLimit)
		defer cancel()
		var page page[deployment]
		if err := server.Call(ctx, http.MethodGet, "/v2/deployments?limit=100", nil, &page); err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var names []string
		for _, d := range page.Resources {
			names = append(names, d.Name)
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// OfferValues lets a shell complete a flag of the command to one of the values. It panics if the
// command has no such flag.
func OfferValues(cmd *cobra.Command, flag string, values ...string) {
	if err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err)
	}
}
