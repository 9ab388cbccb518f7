package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/slipway-run/slipway/internal/cmd/client"
	"github.com/slipway-run/slipway/internal/cmd/exit"
	"github.com/slipway-run/slipway/internal/cmd/local"
)

// whereHelp explains from where a command takes its server.
const whereHelp = `

The server is the first of these: the server of --data, --url or --context; $SLIPWAY_URL;
$SLIPWAY_CONTEXT; the current context (slipway context use); the server of this machine that uses
the directory .slipway.`

// fromFlag and fromVariable are the sources of an address that a command got directly.
const (
	fromFlag     = "--url"
	fromVariable = "$SLIPWAY_URL"
)

// defaultData is the directory that a server of this machine uses by default.
const defaultData = ".slipway"

// Where determines the server of a command.
type Where struct {
	server        client.Server
	data, context string
	// From names the source of the server's address.
	From string
	// User is the person who is signed in; "" with an API key.
	User string
	// signIn returns the token of the session of the person.
	signIn func(context.Context, io.Writer) (string, error)
}

// Flags adds the flags that name a server.
func (w *Where) Flags(cmd *cobra.Command) {
	if cmd.Long == "" {
		cmd.Long = cmd.Short + "."
	}
	cmd.Long += whereHelp
	flags := cmd.Flags()
	ServerFlags(cmd, &w.server)
	flags.StringVar(&w.context, "context", "", "name of a server that slipway context add or slipway login has kept ($SLIPWAY_CONTEXT)")
	flags.StringVar(&w.data, "data", defaultData, "data directory of a server on this machine")
}

// ServerFlags adds the flags of a server's address and credentials.
func ServerFlags(cmd *cobra.Command, server *client.Server) {
	flags := cmd.Flags()
	flags.StringVar(&server.URL, "url", "", "address of a server ($SLIPWAY_URL)")
	flags.StringVar(&server.Key, "key", "", "API key for --url ($SLIPWAY_API_KEY)")
	flags.StringVar(&server.Tenant, "tenant", "", "workspace id for --url ($SLIPWAY_TENANT_ID; default: the workspace of the key)")
}

// Exclusive returns an error for two flags that contradict each other.
func Exclusive(cmd *cobra.Command, one, other string) error {
	if cmd.Flags().Changed(one) && cmd.Flags().Changed(other) {
		return fmt.Errorf("--%s and --%s exclude each other", one, other)
	}
	return nil
}

// CompleteServer takes the values that the flags leave open from the environment, and reports
// wrong usage and a missing key. If there is no server at all, the command decides what to do.
func CompleteServer(server *client.Server) error {
	from := origin(server.URL, fromFlag, fromVariable)
	server.URL = cmp.Or(server.URL, os.Getenv("SLIPWAY_URL"))
	if server.URL == "" {
		if server.Key != "" || server.Tenant != "" {
			return exit.Usagef("--key and --tenant are for a server at --url ($SLIPWAY_URL), which is missing")
		}
		return nil
	}
	if err := client.CheckURL(from, server.URL); err != nil {
		return exit.Usage(err)
	}
	server.Key, server.Tenant = cmp.Or(server.Key, os.Getenv("SLIPWAY_API_KEY")), cmp.Or(server.Tenant, os.Getenv("SLIPWAY_TENANT_ID"))
	if server.Key == "" {
		return exit.Refused(fmt.Errorf("the server at %s needs an API key: --key or $SLIPWAY_API_KEY", server.URL))
	}
	return nil
}

// Client returns a client of the server. Its errors are errors of usage, because nothing is sent,
// or say that a key is missing, or why the sign-in of the server's context does not work.
func (w *Where) Client(cmd *cobra.Command) (*client.Client, error) {
	server, err := w.find(cmd)
	if _, refused := errors.AsType[exit.CredentialsError](err); refused {
		return nil, err
	}
	if err != nil {
		return nil, exit.Usage(err)
	}
	if w.signIn != nil {
		if server.Bearer, err = w.signIn(cmd.Context(), cmd.ErrOrStderr()); err != nil {
			return nil, err
		}
	}
	w.server = server
	return client.New(server), nil
}

func (w *Where) find(cmd *cobra.Command) (client.Server, error) {
	if err := errors.Join(Exclusive(cmd, "url", "data"), Exclusive(cmd, "url", "context"), Exclusive(cmd, "data", "context")); err != nil {
		return client.Server{}, err
	}
	switch {
	case cmd.Flags().Changed("data"):
		return w.local()
	case w.context != "":
		return w.kept(w.context, "--context")
	}
	server := w.server
	if err := CompleteServer(&server); err != nil {
		return client.Server{}, err
	}
	if server.URL != "" {
		w.From = origin(w.server.URL, fromFlag, fromVariable)
		return server, nil
	}
	if name := os.Getenv("SLIPWAY_CONTEXT"); name != "" {
		return w.kept(name, "$SLIPWAY_CONTEXT")
	}
	contexts, err := readContexts()
	if err != nil {
		return client.Server{}, err
	}
	if contexts.Current != "" {
		return w.kept(contexts.Current, "current context")
	}
	return w.local()
}

// local returns the server of this machine that uses the data directory.
func (w *Where) local() (client.Server, error) {
	w.From = w.data
	running, err := local.Find(w.data)
	if errors.Is(err, fs.ErrNotExist) {
		return client.Server{}, fmt.Errorf("no server uses %s; name a server by --url ($SLIPWAY_URL) or --data, or start a server with: slipway serve", w.data)
	}
	return running, err
}

// kept returns the server of a context.
func (w *Where) kept(name, by string) (client.Server, error) {
	w.From = fmt.Sprintf("context %s (%s)", name, by)
	contexts, err := readContexts()
	if err != nil {
		return client.Server{}, err
	}
	saved, ok := contexts.Contexts[name]
	if !ok {
		return client.Server{}, fmt.Errorf("there is no context %q (%s); make it with: slipway context add %s --url URL", name, by, name)
	}
	server := client.Server{URL: saved.URL, Key: saved.Key, Tenant: saved.Tenant}
	if saved.Login != nil {
		w.User = saved.Login.User
		w.signIn = func(ctx context.Context, notes io.Writer) (string, error) { return signedIn(ctx, name, saved, notes) }
		return server, nil
	}
	if server.Key == "" {
		return server, nobody(name)
	}
	return server, nil
}
