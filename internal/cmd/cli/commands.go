package cli

import (
	"github.com/spf13/cobra"
)

// Commands returns the commands.
func Commands() []*cobra.Command {
	return []*cobra.Command{
		newNew(), newDev(), newDeploy(), newChat(), newRollback(), newLogs(), newExplain(),
		newDeployments(), newThreads(), newRuns(), newOpen(), newWhoami(), newLogin(), newLogout(), newContext(), newConfig(), newExitCodes(),
	}
}

// newExitCodes makes the help page about exit codes.
func newExitCodes() *cobra.Command {
	return &cobra.Command{
		Use: "exit-codes", Short: "Explain the exit codes",
		Long: `The exit codes of all commands:

    0  what was asked for is done
    1  it failed: a revision failed, a run ended with an error, the server refused it
    2  wrong usage; nothing was sent
    4  no credentials, or credentials that do not suffice
    8  it was still going on when --wait-timeout was over
  130  the user ended the command; a rollout goes on`,
	}
}
