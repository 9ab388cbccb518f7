package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/slipway-run/slipway/internal/cmd/exit"
	"github.com/slipway-run/slipway/internal/cmd/output"
	"github.com/slipway-run/slipway/internal/host/standalone"
	"github.com/slipway-run/slipway/internal/jobs/reseal"
)

const secretsRotateLong = `New secrets are sealed with the new key, and new API keys are stored by its fingerprints. A running
server uses the new key at once. A function of an AWS stack uses it when it starts again or meets a
text that the new key has sealed. The older keys stay: they open what they have sealed. An API key
that is stored by the fingerprint of an older key keeps working, and moves to the new key at its next
use. Keep a copy of the new key file with your backups. To do without the older keys, go on with
"reseal" and "retire".
`

func newSecretsRotate() *cobra.Command {
	cmd := &cobra.Command{Use: "rotate", Short: "Make a new key, which protects secrets from now on", Long: secretsRotateLong, Args: exit.Arguments(cobra.NoArgs)}
	return onRecords(cmd, func(ctx context.Context, r *records, _ []string) error {
		if err := r.rotate(ctx); err != nil {
			return err
		}
		return output.Done(cmd, "secrets are sealed with a new key", map[string]bool{"rotated": true})
	})
}

const secretsResealLong = `All texts that older keys have sealed are sealed again with the newest key. A server may run meanwhile.
Prints how many records of each kind were rewritten; a second run finds no such records. The ETag of a
rewritten record changes. An AWS stack needs no reseal: KMS wraps its data keys, and KMS keeps its own
older keys.
`

func newSecretsReseal() *cobra.Command {
	cmd := &cobra.Command{Use: "reseal", Short: "Seal all secrets again with the newest key", Long: secretsResealLong, Args: exit.Arguments(cobra.NoArgs)}
	return onRecords(cmd, func(ctx context.Context, r *records, _ []string) error {
		if r.data == nil {
			return errKeptByKMS
		}
		keys, err := standalone.LoadKeys(r.dir)
		if err != nil {
			return err
		}
		rewritten, err := reseal.Run(ctx, r.data, keys)
		if err != nil {
			return err
		}
		var rows [][]string
		for _, kind := range slices.Sorted(maps.Keys(rewritten)) {
			rows = append(rows, []string{kind, strconv.Itoa(rewritten[kind])})
		}
		return output.Print(cmd, rewritten, []string{"KIND", "SEALED ANEW"}, rows)
	})
}

const secretsRetireLong = `Seals the remaining texts again, and then removes all keys except the newest from the key file. Only a
copy of the file brings them back: an older backup of the records needs the key file of its time.

The command is refused while a server uses the directory, because the agents' tokens come from the
oldest key; the agents get new tokens when the server starts again. The command is also refused while
an unexpired API key is stored by the fingerprint of an older key: start the server and use the API
key once, or revoke it.

Everything that is derived from the oldest key changes. Enter the secrets of the deployments' push
webhooks again at the repository's host. Links to uploads and logins for images stop working. Deploy
again the deployments whose agents run at listeners, because their tokens change. If somebody may have
had an older key and the records of its time, change the secrets too.
`

func newSecretsRetire() *cobra.Command {
	cmd := &cobra.Command{Use: "retire", Short: "Remove all keys except the newest", Long: secretsRetireLong, Args: exit.Arguments(cobra.NoArgs)}
	return onRecords(cmd, func(ctx context.Context, r *records, _ []string) error {
		if r.data == nil {
			return errKeptByKMS
		}
		gone, held, err := standalone.RetireKeys(ctx, r.dir, r.data)
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
		return output.Done(cmd, sentence, map[string]any{"retired": gone, "deploy_again": held})
	})
}

var errKeptByKMS = errors.New("this is for a data directory: the data keys of a stack are kept wrapped by KMS, which keeps its older material too")
