package main

import (
	"cmp"
	"errors"
	"os"

	"github.com/spf13/cobra"

	"github.com/slipway-run/slipway/internal/cmd/client"
)

// serverFlags are those that say which server a command talks to.
func serverFlags(cmd *cobra.Command, server *client.Server) {
	flags := cmd.Flags()
	flags.StringVar(&server.URL, "url", "", "address of a server ($SLIPWAY_URL)")
	flags.StringVar(&server.Key, "key", "", "API key for --url ($SLIPWAY_API_KEY)")
	flags.StringVar(&server.Tenant, "tenant", "", "workspace id for --url ($SLIPWAY_TENANT_ID)")
}

// completeServer takes from the environment what the flags leave open, and says what is missing. No server at all is for the command to judge.
func completeServer(server *client.Server) error {
	server.URL = cmp.Or(server.URL, os.Getenv("SLIPWAY_URL"))
	if server.URL == "" {
		if server.Key != "" || server.Tenant != "" {
			return errors.New("--key and --tenant are for a server at --url ($SLIPWAY_URL), which is missing")
		}
		return nil
	}
	server.Key, server.Tenant = cmp.Or(server.Key, os.Getenv("SLIPWAY_API_KEY")), cmp.Or(server.Tenant, os.Getenv("SLIPWAY_TENANT_ID"))
	if server.Key == "" {
		return errors.New("the server at --url needs an API key: --key or $SLIPWAY_API_KEY")
	}
	if server.Tenant == "" {
		return errors.New("the server at --url needs a workspace id: --tenant or $SLIPWAY_TENANT_ID")
	}
	return nil
}
