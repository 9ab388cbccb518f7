package cli

import (
	"github.com/spf13/cobra"

	"github.com/slipway-run/slipway/internal/cmd/exit"
)

// Commands returns the commands.
func Commands() []*cobra.Command {
	return []*cobra.Command{
		newNew(), newDev(), newDeploy(), newChat(), newRollback(), newLogs(), newExplain(),
		exit.Group("deployments", "List, show, delete and undelete deployments",
			newDeploymentsList(), newDeploymentsShow(), newDeploymentsDelete(), newDeploymentsUndelete()),
		exit.Group("threads", "List and show the threads of an agent", newThreadsList(), newThreadsShow()),
		exit.Group("runs", "List, show, explain, stream, wait for and end the runs of a thread",
			newRunsList(), newRunsStream(), newRunsExplain(), newRun("show", "Print a run as JSON", showRun),
			newRun("wait", "Wait until a run has ended, and print the thread's values as JSON", waitForRun), newRunsCancel()),
		newOpen(), newWhoami(), newLogin(), newLogout(), newContext(),
		exit.Group("config", "Show the values that commands use", newConfigShow()), newExitCodes(),
	}
}

// newExitCodes makes the help page about exit codes.
func newExitCodes() *cobra.Command {
	return &cobra.Command{
		Use: "exit-codes", Short: "Explain the exit codes",
		Long: `The exit codes of all commands:

    0  the command did its work
    1  a failure: a revision failed, a run ended with an error, the server refused a request
    2  wrong usage; nothing was sent
    4  the credentials are missing, or do not suffice
    8  the work was still going on when --wait-timeout was over
  130  the user ended the command; a rollout goes on`,
	}
}
