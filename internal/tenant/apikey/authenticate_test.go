package apikey_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/tenant/apikey"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

// TestAnotherProcessRevokesAKey opens the file twice, as a server and a command do. The server
// refuses the key as soon as the command has revoked it.
func TestAnotherProcessRevokesAKey(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	k, key := f.issue(t, apikey.NewKey{Workspace: "one", Role: workspace.Viewer})
	other := fixtures.TableAt(t, f.file)
	command := apikey.NewStore(other, f.hasher, clock.System)
	f.wantGood(t, key, workspace.Principal{Workspace: "one", Key: k.ID, Role: workspace.Viewer})
	check.Must(t, command.Revoke(t.Context(), "one", k.ID))
	f.wantBad(t, key, "The API key is not valid.")
	f.Wait(t.Context())
}

// TestARevokedKeyIsGoodForNobody sends a key from many sides while it is revoked.
func TestARevokedKeyIsGoodForNobody(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	for range 20 {
		k, key := f.issue(t, apikey.NewKey{Workspace: "one", Role: workspace.Viewer})
		f.wantGood(t, key, workspace.Principal{Workspace: "one", Key: k.ID, Role: workspace.Viewer})
		var revoked atomic.Bool
		var senders sync.WaitGroup
		for range 8 {
			senders.Go(func() {
				for {
					before := revoked.Load()
					_, err := f.Authenticate(t.Context(), key)
					if err != nil {
						return
					}
					if before {
						t.Error("it was good after it was revoked")
						return
					}
				}
			})
		}
		check.Must(t, f.Revoke(t.Context(), "one", k.ID))
		revoked.Store(true)
		senders.Wait()
		f.Wait(t.Context())
	}
}
