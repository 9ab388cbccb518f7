package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/slipway-run/slipway/internal/cmd/client"
	"github.com/slipway-run/slipway/internal/cmd/exit"
	"github.com/slipway-run/slipway/internal/cmd/output"
)

const contextLong = `Keep the addresses and API keys of servers under names. One of these contexts is the current context:
commands that name no server talk to its server. The contexts are kept in a file of the user's
configuration that no other user can read.`

const contextAddLong = `Keep a server under a name, and make it the current context. The API key comes from $SLIPWAY_API_KEY,
from a prompt at a terminal, or from the first line of stdin, so that no list of processes shows it.
The command checks once that the server accepts the key.

  slipway context add production --url https://slipway.example.com`

func newContext() *cobra.Command {
	cmd := exit.Group("context", "Keep several servers under names", newContextAdd(), newContextList(), newContextUse(), newContextRemove())
	cmd.Long = contextLong
	return cmd
}

func newContextAdd() *cobra.Command {
	var server client.Server
	cmd := &cobra.Command{
		Use: "add NAME --url URL", Short: "Keep a server under a name", Long: contextAddLong, Args: exit.Arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := client.CheckURL("--url", server.URL); err != nil {
				return exit.Usage(err)
			}
			key, err := readKey(cmd)
			if err != nil {
				return err
			}
			server.Key = key
			var current workspace
			if err := client.New(server).Call(cmd.Context(), http.MethodGet, workspacePath, nil, &current); err != nil {
				return err
			}
			var earlier *ended
			err = changeContexts(cmd.Context(), func(all *contexts) error {
				earlier = all.release(args[0])
				all.Contexts[args[0]] = savedServer{URL: server.URL, Key: key, Tenant: current.ID}
				all.Current = args[0]
				return nil
			})
			if err != nil {
				return err
			}
			earlier.endEarlier(cmd, nil)
			return output.Done(cmd, fmt.Sprintf("%s is the current context: workspace %s at %s", args[0], current.Name, server.URL),
				map[string]any{"context": args[0], "url": server.URL, "workspace_id": current.ID})
		},
	}
	cmd.Flags().StringVar(&server.URL, "url", "", "address of the server")
	cmd.Flags().StringVar(&server.Tenant, "tenant", "", "workspace id (default: the workspace of the key)")
	return output.WithJSON(cmd)
}

// readKey takes the key from the environment, a person at a terminal, or stdin. A missing key is an
// error of the credentials.
func readKey(cmd *cobra.Command) (string, error) {
	if key := os.Getenv("SLIPWAY_API_KEY"); key != "" {
		return key, nil
	}
	var key string
	in, ok := cmd.InOrStdin().(*os.File)
	if ok && term.IsTerminal(int(in.Fd())) {
		fmt.Fprint(cmd.ErrOrStderr(), "API key: ")
		typed, err := term.ReadPassword(int(in.Fd()))
		fmt.Fprintln(cmd.ErrOrStderr())
		if err != nil {
			return "", fmt.Errorf("read the API key: %w", err)
		}
		key = string(typed)
	} else {
		line, err := bufio.NewReader(cmd.InOrStdin()).ReadString('\n')
		if err != nil && err != io.EOF {
			return "", fmt.Errorf("read the API key: %w", err)
		}
		key = line
	}
	if key = strings.TrimSpace(key); key == "" {
		return "", exit.Refused(errors.New("an API key is missing: set $SLIPWAY_API_KEY, or write the key to stdin"))
	}
	return key, nil
}

// contextShown is a context without its key.
type contextShown struct {
	Name    string `json:"name"`
	URL     string `json:"url"`
	Tenant  string `json:"tenant"`
	Current bool   `json:"current"`
}

func newContextList() *cobra.Command {
	return output.WithJSON(&cobra.Command{
		Use: "list", Short: "List the servers that are kept, without their keys", Args: exit.Arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := readContexts()
			if err != nil {
				return err
			}
			var shown []contextShown
			for _, name := range slices.Sorted(maps.Keys(all.Contexts)) {
				shown = append(shown, contextShown{name, all.Contexts[name].URL, all.Contexts[name].Tenant, name == all.Current})
			}
			return output.PrintList(cmd, shown, []string{"NAME", "URL", "WORKSPACE", "USED"}, func(c contextShown) []string {
				return []string{c.Name, c.URL, c.Tenant, map[bool]string{true: "current"}[c.Current]}
			})
		},
	})
}

func newContextUse() *cobra.Command {
	return output.WithJSON(&cobra.Command{
		Use: "use NAME", Short: "Make a context the current context", Args: exit.Arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			err := changeContext(cmd.Context(), args[0], func(all *contexts) error {
				all.Current = args[0]
				return nil
			})
			if err != nil {
				return err
			}
			return output.Done(cmd, args[0]+" is the current context", map[string]any{"context": args[0]})
		},
	})
}

func newContextRemove() *cobra.Command {
	return output.WithJSON(&cobra.Command{
		Use: "remove NAME", Short: "Forget a context and its credentials, and end its sign-in", Args: exit.Arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			var earlier *ended
			err := changeContext(cmd.Context(), args[0], func(all *contexts) error {
				earlier = all.release(args[0])
				if delete(all.Contexts, args[0]); all.Current == args[0] {
					all.Current = ""
				}
				return nil
			})
			if err != nil {
				return err
			}
			earlier.endEarlier(cmd, nil)
			return output.Done(cmd, args[0]+" is forgotten", map[string]any{"context": args[0]})
		},
	})
}

// changeContext changes the context with the given name, which must exist.
func changeContext(ctx context.Context, name string, change func(*contexts) error) error {
	return changeContexts(ctx, func(all *contexts) error {
		if _, ok := all.Contexts[name]; !ok {
			return noContext(name)
		}
		return change(all)
	})
}

func noContext(name string) error {
	return fmt.Errorf("there is no context %q; slipway context list shows those that there are", name)
}
