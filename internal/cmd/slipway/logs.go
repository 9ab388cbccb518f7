package main

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/cmd/client"
	"github.com/slipway-run/slipway/internal/cmd/demo"
	"github.com/slipway-run/slipway/internal/host/standalone"
)

const logsLong = `Print what the agent of a deployment prints, or with --kind build what its build has printed: on stdout, each
line as it was. DEPLOYMENT is a name or an id. The revision is the one that serves, or the newest while none
does; of builds it is the newest.

With --follow, go on with what comes, also when the connection is lost meanwhile, until no more can come.

The server is the one at --url, or the one of this machine that uses the directory --data.`

// kinds are the words for the two logs of a revision, and the interface's.
var kinds = map[string]string{"build": "build", "runtime": "deploy"}

func newLogs() *cobra.Command {
	var server client.Server
	var data, revision, kind string
	var follow, asJSON bool
	cmd := &cobra.Command{
		Use:   "logs DEPLOYMENT",
		Short: "Print what an agent or a build prints",
		Long:  logsLong,
		Args:  usage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			err := exclusive(cmd, "url", "data")
			if kinds[kind] == "" {
				err = errors.Join(err, fmt.Errorf("--kind must be build or runtime, not %q", kind))
			}
			if revision != "" && !id.Valid(revision) {
				err = errors.Join(err, fmt.Errorf("--revision must be the id of a revision, not %q", revision))
			}
			if err = errors.Join(err, findServer(cmd, &server, data)); err != nil {
				return usageError{err}
			}
			log := &logReader{client: client.New(server), kind: kinds[kind], stdout: cmd.OutOrStdout(), stderr: cmd.ErrOrStderr(), json: asJSON}
			err = log.find(cmd.Context(), args[0], revision)
			if err == nil {
				err = log.print(cmd.Context(), follow)
			}
			if err != nil && cmd.Context().Err() != nil {
				return fmt.Errorf("%w; the same command begins again", demo.ErrInterrupted)
			}
			return err
		},
	}
	flags := cmd.Flags()
	serverFlags(cmd, &server)
	flags.StringVar(&data, "data", ".slipway", "data directory of a server on this machine, instead of --url")
	flags.StringVar(&revision, "revision", "", "id of a revision")
	flags.StringVar(&kind, "kind", "runtime", "build or runtime")
	flags.BoolVarP(&follow, "follow", "f", false, "go on with what comes")
	flags.BoolVar(&asJSON, "json", false, "print one JSON object per line, the last of them the result")
	return cmd
}

// findServer completes the address and the credentials of a server: those given, or those that a server of this machine has written.
func findServer(cmd *cobra.Command, server *client.Server, data string) error {
	if !cmd.Flags().Changed("data") {
		if err := completeServer(server); err != nil || server.URL != "" {
			return err
		}
	}
	credentials, err := standalone.ReadCredentials(data)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no server: %s has none; name one by --url ($SLIPWAY_URL) or --data, or start one with: slipway serve", data)
	}
	*server = client.Server{URL: credentials.BaseURL, Key: credentials.APIKey, Tenant: credentials.TenantID}
	return err
}
