package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/cmd/cli"
	"github.com/slipway-run/slipway/internal/cmd/exit"
	"github.com/slipway-run/slipway/internal/cmd/output"
	"github.com/slipway-run/slipway/internal/tenant/apikey"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
)

const keysCreateLong = `The command prints the key on stdout, once: the key is not stored and cannot be read again.
A key of the role admin may do everything in its workspace. A key of the role editor may not delete
anything or change access. A key of the role viewer may only read, and sees no values of secrets.

  slipway keys create --role editor --name ci --expires 90d
`

func newKeysCreate() *cobra.Command {
	var expires string
	var wanted apikey.NewKey
	cmd := &cobra.Command{Use: "create", Short: "Make an API key", Long: keysCreateLong, Args: exit.Arguments(cobra.NoArgs)}
	cmd.PreRunE = func(*cobra.Command, []string) (err error) {
		if wanted.Lifetime, err = lifetime(expires); err != nil {
			return exit.Usage(err)
		}
		return nil
	}
	flags := cmd.Flags()
	role := roleFlag(cmd, workspace.Admin, "what the key may do")
	flags.StringVar(&wanted.Name, "name", "", "description of the key's purpose")
	flags.StringVar(&expires, "expires", "", "time after which the key expires, as 12h or 90d (default: never)")
	inWorkspace(cmd, func(ctx context.Context, r *records, w workspace.Workspace, _ []string) error {
		hasher, err := r.hasher(ctx)
		if err != nil {
			return err
		}
		wanted.Workspace, wanted.Role = w.ID, *role
		created, key, err := r.keys(hasher).Issue(ctx, wanted)
		if err != nil {
			return err
		}
		return output.Data(cmd, key, cli.KeyMade{ID: created.ID, Name: created.Name, Role: string(created.Role), Key: key})
	})
	cli.RemoteKeysCreate(cmd, lifetime)
	return cmd
}

// lifetime returns the time after which a key expires, 0 for never. The time may be in days, which
// Go does not support.
func lifetime(expires string) (time.Duration, error) {
	if expires == "" {
		return 0, nil
	}
	length, err := time.ParseDuration(expires)
	if days, isDays := strings.CutSuffix(expires, "d"); isDays {
		var n int
		n, err = strconv.Atoi(days)
		length = time.Duration(n) * 24 * time.Hour
	}
	if err != nil || length <= 0 {
		return 0, fmt.Errorf("--expires must be a time such as 12h or 90d, not %q", expires)
	}
	return length, nil
}

// shownKey is a key in JSON.
type shownKey struct {
	ID        string  `json:"id"`
	Workspace string  `json:"workspace_id"`
	Name      string  `json:"name"`
	Role      string  `json:"role"`
	Prefix    string  `json:"prefix"`
	Created   *string `json:"created_at"`
	Expires   *string `json:"expires_at"`
	LastUsed  *string `json:"last_used_at"`
}

func showKey(k apikey.Key) shownKey {
	return shownKey{k.ID, k.Workspace, k.Name, string(k.Role), k.Prefix, clock.Nullable(k.Created), clock.Nullable(k.Expires), clock.Nullable(k.LastUsed)}
}

func newKeysList() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List a workspace's API keys, without the keys themselves", Args: exit.Arguments(cobra.NoArgs)}
	inWorkspace(cmd, func(ctx context.Context, r *records, w workspace.Workspace, _ []string) error {
		keys, err := r.keys(nil).List(ctx, w.ID)
		if err != nil {
			return err
		}
		header := []string{"ID", "NAME", "ROLE", "KEY", "CREATED", "EXPIRES", "LAST USED"}
		return output.PrintAll(cmd, keys, showKey, header, func(k apikey.Key) []string {
			return []string{k.ID, k.Name, string(k.Role), k.Prefix + "...", output.Time(k.Created), output.Time(k.Expires), output.Time(k.LastUsed)}
		})
	})
	cli.RemoteKeysList(cmd)
	return cmd
}

const keysRevokeLong = `The key stops working at once, and within a minute behind the authorizer of an AWS stack.
`

func newKeysRevoke() *cobra.Command {
	var in string
	cmd := &cobra.Command{Use: "revoke KEY_ID", Short: "Revoke an API key", Long: keysRevokeLong, Args: exit.Arguments(cobra.ExactArgs(1))}
	cmd.Flags().StringVar(&in, "workspace", "", "id or name of the key's workspace (default: it is looked for in all)")
	onRecords(cmd, func(ctx context.Context, r *records, args []string) error {
		w, err := r.revoke(ctx, in, args[0])
		if err != nil {
			return err
		}
		return output.Done(cmd, fmt.Sprintf("revoked key %s of workspace %s", args[0], w.Name), map[string]string{"id": args[0]})
	})
	cli.RemoteKeysRevoke(cmd)
	return cmd
}

// revoke revokes a key in the named workspace, or in the workspace that has the key.
func (r *records) revoke(ctx context.Context, in, keyID string) (workspace.Workspace, error) {
	var candidates []workspace.Workspace
	var err error
	if in == "" {
		candidates, err = r.workspaces.List(ctx)
	} else {
		candidates = make([]workspace.Workspace, 1)
		candidates[0], err = r.workspaces.Find(ctx, in)
	}
	if err != nil {
		return workspace.Workspace{}, err
	}
	for _, w := range candidates {
		if err := r.keys(nil).Revoke(ctx, w.ID, keyID); !fault.Is(err, fault.NotFound) {
			return w, err
		}
	}
	if strings.HasPrefix(keyID, apikey.Prefix) {
		return workspace.Workspace{}, exit.Usage(errors.New("a key is revoked by its id, which slipway keys list shows, not by the key"))
	}
	return workspace.Workspace{}, fault.New(fault.NotFound, "Key ID %s not found.", keyID)
}
