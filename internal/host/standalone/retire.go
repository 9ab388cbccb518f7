package standalone

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/jobs/reseal"
	"github.com/slipway-run/slipway/internal/seam/secret/keyfile"
	"github.com/slipway-run/slipway/internal/tenant/apikey"
)

// RetireKeys seals again, with the newest key, all values that older keys have sealed in a data
// directory's table, and removes all other keys from the key file. It returns the number of
// removed keys, and the deployments at listeners that must be deployed again for this. It
// refuses while a server uses the directory, and while API keys depend on an older key. It also
// refuses, with [keyfile.ErrRotated], when a new key is made meanwhile, because this key may
// have sealed a value already: then all keys stay.
func RetireKeys(ctx context.Context, data string, tb reseal.Table) (gone int, held []string, err error) {
	lock, err := LockDirectory(data)
	if err != nil {
		return 0, nil, fmt.Errorf("keys can only be retired while no server runs: %w", err)
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	file := filepath.Join(data, KeyFile)
	keys, err := LoadKeys(data)
	if err != nil || len(keys.Older()) == 0 {
		return 0, nil, err
	}
	newest := keys.KeyID() // keys learns other keys while it seals
	if _, err := reseal.Run(ctx, tb, keys); err != nil {
		return 0, nil, err
	}
	left, err := reseal.Look(ctx, tb, newest, clock.System())
	if err != nil {
		return 0, nil, err
	}
	if len(left.Keys) > 0 {
		return 0, nil, fmt.Errorf("API keys are still stored by the fingerprint of an older key; start the server and use each once, or revoke it: %s", named(left.Keys))
	}
	gone, err = keyfile.Retire(file, newest)
	return gone, left.AtListeners, err
}

func named(keys []apikey.KeyItem) string {
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = fmt.Sprintf("%s of workspace %s", k.Key, k.Workspace)
	}
	return strings.Join(names, ", ")
}
