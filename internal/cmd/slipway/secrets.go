package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/slipway-run/slipway/internal/cmd/exit"
	"github.com/slipway-run/slipway/internal/cmd/output"
	"github.com/slipway-run/slipway/internal/host/standalone"
	"github.com/slipway-run/slipway/internal/jobs/reseal"
	"github.com/slipway-run/slipway/internal/seam/secret/keyfile"
)

func newSecrets() *cobra.Command {
	return group("secrets", "Look after the key that protects secrets", newSecretsRotate(), newSecretsReseal(), newSecretsRetire())
}

const secretsRotateLong = `From then on secrets are sealed with the new key, and new API keys are stored by fingerprints of it, also by a server that
runs; functions of an AWS stack learn of it when they start anew or meet what it has sealed. The keys before stay: they open what they have sealed, and the
API keys that are stored by fingerprints of theirs go on, each moving to the new key when it is next used at a server that knows the new key. Keep a copy
of the new key file with your backups. To do without the keys before, go on with "reseal" and "retire".
`

func newSecretsRotate() *cobra.Command {
	var done output.Outcome
	var at place
	cmd := &cobra.Command{
		Use: "rotate", Short: "Make a new key, which protects secrets from now on", Long: secretsRotateLong, Args: exit.Arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return at.with(cmd, func(ctx context.Context, r *records) error {
				if err := r.rotate(ctx); err != nil {
					return err
				}
				return done.Print(cmd, "secrets are sealed with a new key", map[string]bool{"rotated": true})
			})
		},
	}
	at.flags(cmd)
	done.Flags(cmd)
	return cmd
}

const secretsResealLong = `Everything that a key before has sealed is sealed with the newest one, also while the server runs. Prints how many records
of each kind were rewritten; done again it finds none. A record's ETag changes by it.
The data keys of an AWS stack are kept wrapped by KMS, which keeps its own older material too: there is no reseal there.
`

func newSecretsReseal() *cobra.Command {
	var at place
	var out output.List
	cmd := &cobra.Command{
		Use: "reseal", Short: "Seal anew, with the newest key, what older keys have sealed", Long: secretsResealLong, Args: exit.Arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return at.with(cmd, func(ctx context.Context, r *records) error {
				if r.data == nil {
					return errKeptByKMS
				}
				keys, err := keyfile.Load(filepath.Join(at.data, standalone.KeyFile))
				if err != nil {
					return err
				}
				rewritten, err := reseal.Run(ctx, r.data, keys)
				if err != nil {
					return err
				}
				kinds := slices.Sorted(maps.Keys(rewritten))
				rows := make([][]string, len(kinds))
				for i, kind := range kinds {
					rows[i] = []string{kind, strconv.Itoa(rewritten[kind])}
				}
				return out.Print(cmd, rewritten, []string{"KIND", "SEALED ANEW"}, rows)
			})
		},
	}
	at.flags(cmd)
	out.Flags(cmd)
	return cmd
}

const secretsRetireLong = `Seals anew what is left, and then takes every key but the newest out of the key file, from where there is no way back but a
copy: an older backup of the records needs the key file of its time. Refused while a server uses the directory, as its agents were started with tokens of the
oldest key and get new ones when it starts again, and while an API key that has not expired is stored by the fingerprint of an older key: start the server and use it once, or revoke it.
What is derived from the oldest key is another from then on: the secrets of deployments' push webhooks, which are to be entered anew at the repository's host, links to
uploads and logins for images, and the tokens of agents at listeners, whose deployments are to be deployed again.
Whoever had an older key and the records of its time knows what was in them: change those secrets too.
`

func newSecretsRetire() *cobra.Command {
	var done output.Outcome
	var at place
	cmd := &cobra.Command{
		Use: "retire", Short: "Take away all keys but the newest", Long: secretsRetireLong, Args: exit.Arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return at.with(cmd, func(ctx context.Context, r *records) error {
				if r.data == nil {
					return errKeptByKMS
				}
				gone, held, err := standalone.RetireKeys(ctx, at.data, r.data)
				if err != nil {
					return err
				}
				if gone == 0 || held == nil {
					held = []string{}
				}
				sentence := fmt.Sprintf("retired %d keys", gone)
				if len(held) > 0 {
					sentence += "\ndeploy again, as their agents at listeners have tokens of a retired key: " + strings.Join(held, ", ")
				}
				return done.Print(cmd, sentence, map[string]any{"retired": gone, "deploy_again": held})
			})
		},
	}
	at.flags(cmd)
	done.Flags(cmd)
	return cmd
}

var errKeptByKMS = errors.New("this is for a data directory: the data keys of a stack are kept wrapped by KMS, which keeps its older material too")
