package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/slipway-run/slipway/internal/standalone"
)

func newServe() *cobra.Command {
	config := standalone.Config{Version: version}
	var verbose bool
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the one-machine server",
		Long: "Run the control plane and the agent servers on this machine, with everything kept in one directory.\n" +
			"The server is ready when GET /ok answers; it has then written credentials.json into that directory.",
		Args: usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			level := slog.LevelInfo
			if verbose {
				level = slog.LevelDebug
			}
			if os.Getenv("GOGC") == "" {
				// The heap is small, so that collecting it less often costs a few MiB and saves a tenth of the processor's time.
				debug.SetGCPercent(300)
			}
			config.Log = slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: level}))
			server, err := standalone.Open(config)
			if errors.Is(err, syscall.EADDRINUSE) {
				return fmt.Errorf("%w; choose another address with --listen", err)
			}
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.ErrOrStderr(), "slipway serves at "+server.BaseURL())
			return server.Serve(cmd.Context())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&config.Listen, "listen", "127.0.0.1:8080", "address to listen on; port 0 picks one")
	flags.StringVar(&config.Data, "data", ".slipway", "directory that everything is kept in")
	flags.StringVar(&config.BaseURL, "base-url", "", "address that clients reach this server at (default: the listening address)")
	flags.DurationVar(&config.ReadyLimit, "ready-limit", 0, "how long an agent may take to answer its health check (default 5m)")
	flags.BoolVar(&verbose, "verbose", false, "log details")
	return cmd
}
