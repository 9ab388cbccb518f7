//go:build lambda

package e2e_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/host/stack"
	"github.com/slipway-run/slipway/internal/tenant/apikey"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
	"github.com/slipway-run/slipway/internal/test/check"
)

// keyMemory is how long the answer about a key is kept.
const keyMemory = time.Minute

// opened returns the server's stack as an operator would open it: the environment of its functions
// contains the place of the table and of the keys.
func (s *server) opened(t *testing.T) *stack.Stack {
	t.Helper()
	pids := s.functions(t, "Authorizer")
	if len(pids) == 0 {
		t.Fatal("nobody has been authenticated yet")
	}
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pids[0]), "environ"))
	check.Must(t, err)
	environment := map[string]string{}
	for variable := range bytes.SplitSeq(text, []byte{0}) {
		name, value, _ := bytes.Cut(variable, []byte("="))
		environment[string(name)] = string(value)
	}
	opened, err := stack.Open(func(name string) string { return environment[name] }, slog.New(slog.DiscardHandler), stack.NeedTable, stack.NeedKey)
	check.Must(t, err)
	t.Cleanup(func() {
		if err := opened.Table().Close(); err != nil {
			t.Error(err)
		}
	})
	return opened
}

// keys returns the store of the server's keys.
func (s *server) keys(t *testing.T) *apikey.Store {
	t.Helper()
	opened := s.opened(t)
	key, err := opened.Key(t.Context())
	check.Must(t, err)
	return apikey.NewStore(opened.Table(), key, clock.System)
}

func TestRevokedKeyIsRefusedWithinAMinute(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	thread := s.deploy(t, agentRepository(t), "main").thread(t)
	store := s.keys(t)
	known, text, err := store.Issue(t.Context(), apikey.NewKey{Workspace: s.TenantID, Role: workspace.Admin, Name: "test"})
	check.Must(t, err)
	addresses := []string{thread.url, "/v2/deployments"}
	status := func(address string) (int, error) {
		got, err := s.do(context.WithoutCancel(t.Context()), "GET", address, nil, "X-Api-Key", text)
		return got.status, err
	}
	for _, address := range addresses {
		if got, err := status(address); err != nil || got != http.StatusOK {
			t.Fatalf("%s: a new key gets status %d (%v)", address, got, err)
		}
	}
	check.Must(t, store.Revoke(t.Context(), s.TenantID, known.ID))
	revoked := time.Now()
	for _, address := range addresses {
		eventually(t, address+" refuses the key", func() (bool, any) {
			got, err := status(address)
			return err == nil && got == http.StatusUnauthorized, fmt.Sprint(got, err)
		})
		if took := time.Since(revoked); took > keyMemory+slack {
			t.Errorf("%s: the key was good for another %s", address, took)
		}
	}
	thread.expectRuns(t) // the other key is still valid
}
