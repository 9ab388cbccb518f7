package cli

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/slipway-run/slipway/internal/cmd/exit"
	"github.com/slipway-run/slipway/internal/cmd/output"
	"github.com/slipway-run/slipway/internal/host/standalone"
)

const configShowLong = `Show the values that commands use in this directory, and where each value was found: the server,
the credentials, the workspace, and what deploy would take from the directory. No server is asked,
and no secret is shown.`

// setting is a value that commands use, and the place where the value was found.
type setting struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	From  string `json:"from"`
}

func newConfigShow() *cobra.Command {
	var where Where
	cmd := &cobra.Command{
		Use: "show [DIR]", Short: "Show each value that commands use, and where it was found", Long: configShowLong, Args: exit.Arguments(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			shown, err := where.settings(cmd)
			if err != nil {
				return exit.Usage(err)
			}
			project, err := projectSettings(append(args, ".")[0])
			if err != nil {
				return exit.Usage(err)
			}
			return output.PrintList(cmd, append(shown, project...), []string{"SETTING", "VALUE", "FOUND IN"}, func(s setting) []string {
				return []string{s.Name, s.Value, s.From}
			})
		},
	}
	where.Flags(cmd)
	return output.WithJSON(cmd)
}

// hidden stands for a secret.
const hidden = "(hidden)"

// settings returns the server, the credentials and the workspace. All other commands search for
// them in the same way.
func (w *Where) settings(cmd *cobra.Command) ([]setting, error) {
	given := w.server
	server, err := w.find(cmd)
	if err != nil {
		return nil, err
	}
	key, tenant := w.From, w.From
	switch w.From {
	case fromFlag, fromVariable:
		key, tenant = origin(given.Key, "--key", "$SLIPWAY_API_KEY"), origin(given.Tenant, "--tenant", "$SLIPWAY_TENANT_ID")
	case w.data:
		w.From = filepath.Join(w.data, standalone.CredentialsFile)
		key, tenant = w.From, w.From
	}
	shown := []setting{{"server", server.URL, w.From}}
	if w.User != "" {
		shown = append(shown, setting{"user", w.User, key}, setting{"session", hidden, key})
	} else {
		shown = append(shown, setting{"API key", hidden, key})
	}
	if server.Tenant == "" {
		tenant = "the API key"
	}
	keyring := setting{"keyring", "used", "the default"}
	if os.Getenv(noKeyring) != "" {
		keyring = setting{"keyring", "not used", "$" + noKeyring}
	}
	return append(shown, setting{"workspace", server.Tenant, tenant}, keyring), nil
}

// origin names the place of a value that is either given by a flag or by a variable.
func origin(given, flag, variable string) string {
	if given != "" {
		return flag
	}
	return variable
}

// projectSettings returns what deploy would take from a directory; nothing if there is no agent in
// the directory.
func projectSettings(dir string) ([]setting, error) {
	if _, err := os.Stat(dir); err != nil {
		return nil, fmt.Errorf("read the directory of the agent: %w", err)
	}
	config, err := findConfig(dir, "")
	if err != nil {
		return nil, nil //nolint:nilerr // deploy explains what is wrong with a directory
	}
	name, err := deployOptions{dir: dir}.defaultName()
	return []setting{
		{"deployment", name, "the name of the directory"},
		{"configuration", config, "the files of the directory"},
	}, err
}
