package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
)

func newSecrets() *cobra.Command {
	return group("secrets", "Look after the key that protects secrets", newSecretsRotate())
}

const secretsRotateLong = `From then on secrets are sealed with the new key, and new API keys are stored by fingerprints of it, also by a server that
runs; functions of an AWS stack learn of it when they start anew or meet what it has sealed. The keys before stay: they open what they have sealed, and the
API keys that are stored by fingerprints of theirs go on, each moving to the new key when it is next used. Keep a copy of the new key file with your backups.
`

func newSecretsRotate() *cobra.Command {
	var at place
	cmd := &cobra.Command{
		Use: "rotate", Short: "Make a new key, which protects secrets from now on", Long: secretsRotateLong, Args: usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return at.with(cmd, func(ctx context.Context, r *records) error {
				if err := r.rotate(ctx); err != nil {
					return err
				}
				fmt.Fprintln(cmd.ErrOrStderr(), "secrets are sealed with a new key")
				return nil
			})
		},
	}
	at.flags(cmd)
	return cmd
}
