package cli

import (
	"errors"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-run/slipway/internal/base/optional"
	"github.com/slipway-run/slipway/internal/cmd/exit"
	"github.com/slipway-run/slipway/internal/cmd/output"
)

// remoteHelp explains how the commands on keys reach a server.
const remoteHelp = `

With --url or --context, the command asks a server instead, for the workspace of the credentials.`

// remote lets a command on records ask a server instead, if --url or --context names a server.
func remote(cmd *cobra.Command, run call) {
	var where Where
	ServerFlags(cmd, &where.server)
	cmd.Flags().StringVar(&where.context, "context", "", "name of a server that slipway context add or slipway login has kept")
	cmd.Long += remoteHelp
	onRecords := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !cmd.Flags().Changed("url") && !cmd.Flags().Changed("context") {
			return onRecords(cmd, args)
		}
		var wrong error
		for _, flag := range []string{"data", "table", "kms-key", "region", "workspace"} {
			wrong = errors.Join(wrong, Exclusive(cmd, "url", flag), Exclusive(cmd, "context", flag))
		}
		if wrong != nil {
			return exit.Usage(wrong)
		}
		server, err := where.Client(cmd)
		if err != nil {
			return err
		}
		return run(cmd, &api{Client: server}, args)
	}
}

// keyShown is a key as the interface lists it.
type keyShown struct {
	ID       string     `json:"id"`
	Name     string     `json:"name"`
	Role     string     `json:"role"`
	Prefix   string     `json:"prefix"`
	Created  time.Time  `json:"created_at"`
	Expires  *time.Time `json:"expires_at"`
	LastUsed *time.Time `json:"last_used_at"`
}

// KeyMade is a new key, the only time that it is shown.
type KeyMade struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Role string `json:"role"`
	Key  string `json:"key"`
}

// keysPath is the path of a workspace's keys in the interface.
const keysPath = "/v2/api-keys"

// RemoteKeysCreate lets a command make a key through the interface, too. It reads the
// command's flags role, name and expires; lifetime parses expires.
func RemoteKeysCreate(cmd *cobra.Command, lifetime func(expires string) (time.Duration, error)) {
	remote(cmd, func(cmd *cobra.Command, server *api, _ []string) error {
		body := map[string]any{"role": cmd.Flag("role").Value.String(), "name": cmd.Flag("name").Value.String()}
		length, err := lifetime(cmd.Flag("expires").Value.String())
		if err != nil {
			return exit.Usage(err)
		}
		if length > 0 {
			body["expires_in_seconds"] = int(length.Round(time.Second).Seconds())
		}
		var created KeyMade
		if err := server.do(cmd.Context(), http.MethodPost, keysPath, body, &created); err != nil {
			return err
		}
		return output.Data(cmd, created.Key, created)
	})
}

// RemoteKeysList lets a command list the keys through the interface, too.
func RemoteKeysList(cmd *cobra.Command) {
	remote(cmd, func(cmd *cobra.Command, server *api, _ []string) error {
		var page page[keyShown]
		if err := server.do(cmd.Context(), http.MethodGet, keysPath, nil, &page); err != nil {
			return err
		}
		header := []string{"ID", "NAME", "ROLE", "KEY", "CREATED", "EXPIRES", "LAST USED"}
		return output.PrintList(cmd, page.Resources, header, func(k keyShown) []string {
			return []string{k.ID, k.Name, k.Role, k.Prefix + "...", output.Time(k.Created), optionalTime(k.Expires), optionalTime(k.LastUsed)}
		})
	})
}

// RemoteKeysRevoke lets a command revoke a key through the interface, too.
func RemoteKeysRevoke(cmd *cobra.Command) {
	remote(cmd, func(cmd *cobra.Command, server *api, args []string) error {
		if err := server.do(cmd.Context(), http.MethodDelete, keysPath+"/"+args[0], nil, nil); err != nil {
			return err
		}
		return output.Done(cmd, "revoked key "+args[0], map[string]string{"id": args[0]})
	})
}

// optionalTime formats a time for people; the time may be missing.
func optionalTime(t *time.Time) string {
	return output.Time(optional.Or(t, time.Time{}))
}
