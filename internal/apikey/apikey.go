// Package apikey holds the keys that requests are authenticated by. A key is shown once, when it is made; what is stored is its MAC, which is also
// where it is looked up, so that no stored key is ever compared with one that was sent.
package apikey

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/slipway-run/slipway/internal/clock"
	"github.com/slipway-run/slipway/internal/fault"
	"github.com/slipway-run/slipway/internal/keys"
	"github.com/slipway-run/slipway/internal/record"
	"github.com/slipway-run/slipway/internal/secret"
	"github.com/slipway-run/slipway/internal/table"
)

// prefix marks a Slipway key, so that secret scanners find one that leaked.
const prefix = "slw_"

// purpose separates the MACs of keys from those of anything else.
const purpose = "api key"

// Principal is who sent a request.
type Principal struct {
	Workspace string
}

const (
	kind          = "api_key"
	attrWorkspace = "workspace"
)

// Store makes keys and looks them up.
type Store struct {
	table  table.Table
	hasher secret.Hasher
	now    clock.Clock
}

// NewStore returns a store over a table.
func NewStore(t table.Table, hasher secret.Hasher, now clock.Clock) *Store {
	return &Store{table: t, hasher: hasher, now: now}
}

// Create makes a key for a workspace and returns it; it cannot be read again.
func (s *Store) Create(ctx context.Context, workspace string) (string, error) {
	var random [25]byte // 200 bits
	if _, err := rand.Read(random[:]); err != nil {
		return "", fmt.Errorf("make key: %w", err)
	}
	key := prefix + strings.ToLower(base32.StdEncoding.EncodeToString(random[:]))
	item := table.Item{Key: s.key(key), Attrs: record.Attrs(kind, s.now(), table.Attrs{attrWorkspace: workspace})}
	if err := s.table.Transact(ctx, table.Put{Item: item, If: table.Absent()}); err != nil {
		return "", fmt.Errorf("create key: %w", err)
	}
	return key, nil
}

// Authenticate returns whose key it is; an unknown key is a fault.Unauthorized.
func (s *Store) Authenticate(ctx context.Context, key string) (Principal, error) {
	if !strings.HasPrefix(key, prefix) {
		return Principal{}, unauthorized()
	}
	item, err := s.table.Get(ctx, s.key(key))
	if errors.Is(err, table.ErrNotFound) {
		return Principal{}, unauthorized()
	}
	if err != nil {
		return Principal{}, fmt.Errorf("get key: %w", err)
	}
	return Principal{Workspace: item.Text(attrWorkspace)}, record.Check(item, kind)
}

func (s *Store) key(key string) table.Key {
	return keys.APIKey(hex.EncodeToString(s.hasher.MAC(purpose, []byte(key))))
}

func unauthorized() error { return fault.New(fault.Unauthorized, "The API key is not valid.") }
