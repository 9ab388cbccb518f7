package local

import (
	"github.com/spf13/cobra"

	"github.com/slipway-run/slipway/internal/base/outbound"
	"github.com/slipway-run/slipway/internal/cmd/exit"
	"github.com/slipway-run/slipway/internal/host/standalone"
)

// NewConnect makes the command from which ssh gets its connections while a server clones a
// repository.
func NewConnect() *cobra.Command {
	return &cobra.Command{
		Use: standalone.ConnectCommand + " HOST PORT", Hidden: true, Args: exit.Arguments(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return outbound.Connect(cmd.Context(), args[0], args[1], cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
}
