package kms

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kms"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/seam/secret"
	"github.com/slipway-run/slipway/internal/seam/secret/envelope"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// Client is the part of a *kms.Client that this package uses.
type Client interface {
	GenerateDataKey(ctx context.Context, in *kms.GenerateDataKeyInput, opts ...func(*kms.Options)) (*kms.GenerateDataKeyOutput, error)
	Decrypt(ctx context.Context, in *kms.DecryptInput, opts ...func(*kms.Options)) (*kms.DecryptOutput, error)
}

// Config says which KMS key wraps the data keys, and where the wrapped keys are stored.
type Config struct {
	Client Client
	// KeyID is the id, ARN or alias of the KMS key. No other key unwraps, even if the
	// table names one.
	KeyID string
	Table table.Table
	// Context is the encryption context, which must name the installation: the table, or the stack.
	// It shows in KMS's audit log.
	Context map[string]string
	// Now is the clock; the default is the machine's.
	Now clock.Clock
}

// refreshInterval is how often Refresh looks for other keys, at most.
const refreshInterval = 10 * time.Second

// Key seals, opens and fingerprints.
type Key struct {
	*envelope.Keyring

	cfg Config
	// reload makes goroutines wait that want to read the keys while another one reads them.
	reload sync.Mutex
	// asked is when Refresh last looked for other keys.
	asked time.Time
}

var (
	_ secret.Sealer = (*Key)(nil)
	_ secret.Hasher = (*Key)(nil)
)

// Open reads the data keys and lets KMS unwrap them. If there are no data keys yet, it makes
// the first.
func Open(ctx context.Context, cfg Config) (*Key, error) {
	k := &Key{Keyring: &envelope.Keyring{}, cfg: cfg}
	if k.cfg.Now == nil {
		k.cfg.Now = clock.System
	}
	if err := k.load(ctx); err != nil {
		return nil, fmt.Errorf("open data keys: %w", err)
	}
	return k, nil
}

// Open decrypts a text that Seal returned for the same bound.
func (k *Key) Open(ctx context.Context, bound secret.Bound, sealed []byte) ([]byte, error) {
	known := k.Len()
	plain, err := k.Keyring.Open(ctx, bound, sealed)
	if !errors.Is(err, envelope.ErrUnknownKey) {
		return plain, err
	}
	if reloadErr := k.loadAfter(ctx, known); reloadErr != nil {
		return nil, errors.Join(err, fmt.Errorf("read the data keys again: %w", reloadErr))
	}
	return k.Keyring.Open(ctx, bound, sealed)
}

// Refresh looks for data keys that were added after this process started, and reports whether
// there are any. A caller that cannot find a record by its fingerprint calls it: the record
// may have been stored under such a key. Because strangers can cause that, Refresh looks at
// most every ten seconds, and asks KMS only when there is another key.
func (k *Key) Refresh(ctx context.Context) (bool, error) {
	known := k.Len()
	k.reload.Lock()
	defer k.reload.Unlock()
	if k.Len() != known {
		return true, nil
	}
	now := k.cfg.Now()
	if !k.asked.IsZero() && now.Sub(k.asked) < refreshInterval {
		return false, nil
	}
	items, err := table.AllItems(ctx, k.cfg.Table, keys.DataKeys())
	if err != nil {
		return false, err
	}
	k.asked = now
	if len(items) <= known {
		return false, nil
	}
	return true, k.load(ctx)
}

// loadAfter reads the keys again, unless another goroutine did that since the caller looked.
func (k *Key) loadAfter(ctx context.Context, known int) error {
	k.reload.Lock()
	defer k.reload.Unlock()
	if k.Len() != known {
		return nil
	}
	return k.load(ctx)
}

func (k *Key) load(ctx context.Context) error {
	roots, err := k.cfg.roots(ctx)
	if err != nil {
		return err
	}
	return k.Replace(roots...)
}
