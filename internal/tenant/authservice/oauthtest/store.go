package oauthtest

import (
	"context"
	"sync"

	"github.com/go-oauth2/oauth2/v4"
	"github.com/go-oauth2/oauth2/v4/errors"
)

// memory is an oauth2.TokenStore that, unlike the library's own store, leaves no goroutine
// behind.
type memory struct {
	mu sync.Mutex
	// by maps each code and token to its grant.
	by map[string]oauth2.TokenInfo
}

func (m *memory) Create(_ context.Context, info oauth2.TokenInfo) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, key := range []string{info.GetCode(), info.GetAccess(), info.GetRefresh()} {
		if key != "" {
			m.by[key] = info
		}
	}
	return nil
}

func (m *memory) remove(key string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.by, key)
	return nil
}

func (m *memory) get(key string) (oauth2.TokenInfo, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	info, there := m.by[key]
	if !there {
		return nil, errors.ErrInvalidGrant
	}
	return info, nil
}

func (m *memory) RemoveByCode(_ context.Context, code string) error       { return m.remove(code) }
func (m *memory) RemoveByAccess(_ context.Context, access string) error   { return m.remove(access) }
func (m *memory) RemoveByRefresh(_ context.Context, refresh string) error { return m.remove(refresh) }

func (m *memory) GetByCode(_ context.Context, code string) (oauth2.TokenInfo, error) {
	return m.get(code)
}

func (m *memory) GetByAccess(_ context.Context, access string) (oauth2.TokenInfo, error) {
	return m.get(access)
}

func (m *memory) GetByRefresh(_ context.Context, refresh string) (oauth2.TokenInfo, error) {
	return m.get(refresh)
}
