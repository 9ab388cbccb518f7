package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-run/slipway/internal/cmd/client"
	"github.com/slipway-run/slipway/internal/cmd/exit"
	"github.com/slipway-run/slipway/internal/cmd/output"
)

// stopGrace is how long running invocations may continue when the server stops.
const stopGrace = 10 * time.Second

const lambdaLong = `Serve template.yaml on this machine: the built functions (make functions) run as processes behind an API Gateway that reads the
routes, authorizers and responses of the template. The table is in DynamoDB Local; workflows, keys and agents are this program's.
Everything is kept in one directory.

The server is ready when it has written credentials.json into that directory, which tells clients how to reach it.`

func newLambda() *cobra.Command {
	return newServe(&cobra.Command{Use: "lambda", Short: "Serve the stack with its functions as processes", Long: lambdaLong}, config{})
}

// newServe makes a command that serves the stack in the foreground.
func newServe(cmd *cobra.Command, config config) *cobra.Command {
	var verbose bool
	cmd.Args = exit.Arguments(cobra.NoArgs)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := config.complete(); err != nil {
			return exit.Usage(err)
		}
		level := slog.LevelInfo
		if verbose {
			level = slog.LevelDebug
		}
		config.Terminal, config.Output = terminal(cmd.OutOrStdout()), cmd.ErrOrStderr()
		config.Log = slog.New(slog.NewTextHandler(config.Output, &slog.HandlerOptions{Level: level}))
		server, err := open(cmd.Context(), config)
		if errors.Is(err, syscall.EADDRINUSE) {
			return fmt.Errorf("%w; choose another address with --listen", err)
		}
		if err != nil {
			return err
		}
		fmt.Fprintln(cmd.ErrOrStderr(), "slipway-local serves at "+server.baseURL)
		return server.serve(cmd.Context())
	}
	flags := cmd.Flags()
	flags.StringVar(&config.Listen, "listen", "127.0.0.1:8080", "address to listen on; port 0 picks one")
	flags.StringVar(&config.Data, "data", ".slipway-"+cmd.Name(), "directory that everything is kept in")
	flags.StringVar(&config.BaseURL, "base-url", "", "address that clients reach this server at (default: the listening address)")
	flags.StringVar(&config.Root, "root", ".", "directory of the project, with template.yaml")
	flags.StringVar(&config.Build, "build", "", "directory with a folder for each function, which holds its bootstrap (default: build in the project)")
	flags.StringVar(&config.DynamoDB, "dynamodb", "", "URL of a DynamoDB that runs already (default: DynamoDB Local is started)")
	flags.StringVar(&config.Table, "table", "slipway", "name of the table")
	flags.DurationVar(&config.ReadyLimit, "ready-limit", 0, "how long an agent may take to answer its health check (default 5m)")
	flags.DurationVar(&config.DrainLimit, "drain-limit", 0, "how long runs may go on with a revision that was replaced, before the next one goes on with them (default 10m)")
	flags.DurationVar(&config.Reconcile, "reconcile-interval", 0, "how often lost work is looked for (default: as the template says)")
	flags.StringToStringVar(&config.Parameters, "parameter", nil, "value of a parameter of the template, such as RunnerConcurrency=5; may be repeated (default: as the template says)")
	flags.IntVar(&config.Concurrency, "concurrency", 0,
		"how many functions the account runs at once, as its quota of concurrent executions in AWS; further calls are throttled (default: no limit)")
	flags.DurationVar(&config.IndexLag, "index-lag", 0, "how far the indexes of the table are behind its writes, as those of AWS are")
	flags.DurationVar(&config.TableLatency, "table-latency", 0, "how much longer DynamoDB takes for each request of a function")
	flags.DurationVar(&config.KeyLatency, "key-latency", 0, "how much longer KMS takes for each request of a function")
	flags.StringVar(&config.RecordCalls, "record-calls", "", "file that gets the calls which functions make to the services of AWS, one as JSON in each line (default: none)")
	flags.StringVar(&config.GitHubApp, "github-app", "",
		"file with this stack's GitHub App as JSON: app_id, slug, client_id, client_secret, private_key and webhook_secrets (default: none)")
	flags.Var(&config.Quotas, "quota", "how much a workspace may have, as the parameter Quotas of the stack, such as threads=20000000; may be repeated")
	flags.Var(&config.PrivateAddresses, "private-addresses",
		"let repositories, OAuth providers, webhooks and the agents of listeners have addresses that are not public: all, or those of a list like 10.1.0.0/16,192.168.7.3")
	flags.Lookup("private-addresses").NoOptDefVal = "true"
	flags.BoolVar(&verbose, "verbose", false, "log details")
	return cmd
}

// terminal returns the writer if it is a terminal: a key must not be written to a log file.
func terminal(w io.Writer) io.Writer {
	if output.IsTerminal(w) {
		return w
	}
	return io.Discard
}

// complete checks the flags, and makes the paths absolute, because other programs get them.
func (c *config) complete() error {
	if err := client.CheckBaseURL(c.BaseURL); err != nil {
		return err
	}
	if c.ReadyLimit < 0 || c.DrainLimit < 0 || c.Reconcile < 0 || c.IndexLag < 0 || c.TableLatency < 0 || c.KeyLatency < 0 {
		return errors.New("a duration must not be negative")
	}
	if c.Concurrency < 0 {
		return errors.New("the concurrency must not be negative")
	}
	if c.Build == "" {
		c.Build = filepath.Join(c.Root, "build")
	}
	for _, path := range []*string{&c.Root, &c.Data, &c.Build} {
		absolute, err := filepath.Abs(*path)
		if err != nil {
			return err
		}
		*path = absolute
	}
	return nil
}
