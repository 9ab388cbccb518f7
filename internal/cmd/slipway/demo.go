package main

import (
	"errors"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-run/slipway/internal/cmd/cli"
	"github.com/slipway-run/slipway/internal/cmd/demo"
	"github.com/slipway-run/slipway/internal/cmd/exit"
	"github.com/slipway-run/slipway/internal/cmd/output"
)

// exampleAgent is the path of the example in a checkout.
var exampleAgent = filepath.Join("infra", "examples", "weather")

const demoLong = `Deploy an agent from a git repository through the HTTP interface, wait until it is served, ask it a
question, interrupt the answer with a second question, and print the resulting thread. Progress is
printed on stderr, and the thread on stdout. The demo fails if the thread is not as expected.

The demo uses the server at --url, or the server that uses the directory --data. If there is no server,
the demo starts a server for its own time.`

func newDemo() *cobra.Command {
	var config demo.Config
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show the main job: deploy an agent, talk to it, interrupt it",
		Long:  demoLong,
		Args:  exit.Arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := errors.Join(cli.Exclusive(cmd, "url", "data"), cli.Exclusive(cmd, "agent", "repo")); err != nil {
				return exit.Usage(err)
			}
			if err := completeDemo(&config); err != nil {
				return err
			}
			config.Progress = output.Choose(cmd.OutOrStdout(), cmd.ErrOrStderr(), asJSON)
			return demo.Run(cmd.Context(), config)
		},
	}
	flags := cmd.Flags()
	cli.ServerFlags(cmd, &config.Server)
	flags.StringVar(&config.Data, "data", "", "data directory of a server on this machine; one is started there if none runs (default: a temporary one)")
	flags.StringVar(&config.Agent, "agent", exampleAgent, "directory of the example, or of an agent that answers as it does; a repository is made of it")
	flags.StringVar(&config.Repo, "repo", "", "URL of another agent's repository, instead of --agent; its graph must be called agent")
	flags.StringVar(&config.Ref, "ref", "main", "branch of --repo, or a tag as refs/tags/...")
	flags.IntVar(&config.InterruptAfter, "interrupt-after", 12, "tokens of the first answer after which the second question is asked")
	flags.DurationVar(&config.WaitTimeout, "wait-timeout", 15*time.Minute, "how long to wait for the server in all; exit code 8 when it is over")
	flags.BoolVar(&config.Keep, "keep", false, "keep the deployment, and the data of a server that was started")
	flags.BoolVar(&asJSON, "json", false, "print everything that happens on stdout, one JSON object per line")
	return cmd
}

// completeDemo takes the values that the flags leave open from the environment, and reports
// missing values.
func completeDemo(config *demo.Config) error {
	if config.InterruptAfter < 1 {
		return exit.Usagef("--interrupt-after must be at least 1, not %d", config.InterruptAfter)
	}
	if config.WaitTimeout <= 0 {
		return exit.Usagef("--wait-timeout must be more than 0, not %s", config.WaitTimeout)
	}
	if config.Data != "" {
		return nil
	}
	return cli.CompleteServer(&config.Server)
}
