package authservice_test

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/authservice"
	"github.com/slipway-run/slipway/internal/tenant/quota"
	"github.com/slipway-run/slipway/internal/test/check"
)

// bound gives the workspace a quota of tokens.
func (f *fixture) bound(most int64) {
	f.config.Quotas = quota.Limits{}.With(quota.AuthTokens, most)
	f.Service = authservice.New(f.config)
}

// wantUsed checks how many tokens the quota counts.
func (f *fixture) wantUsed(t *testing.T, want int64) {
	t.Helper()
	uses, err := (&quota.Usage{Table: f.table, Limits: f.config.Quotas}).Of(t.Context(), workspace)
	check.Must(t, err)
	i := slices.IndexFunc(uses, func(u quota.Use) bool { return u.Name == quota.AuthTokens })
	if used := uses[i].Used; used == nil || *used != want {
		t.Errorf("got %+v, want %d used", uses[i], want)
	}
}

func imports(user string) authservice.ImportedToken {
	return authservice.ImportedToken{Owner: authservice.Owner{Workspace: workspace, User: user}, ProviderID: providerID, AccessToken: "imported-access"}
}

// TestAttackTokensWithoutEnd imports many tokens at once, for several users. Exactly as many
// are kept as the quota allows.
func TestAttackTokensWithoutEnd(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	const most = 3
	f.bound(most)
	f.createProvider(t)
	errs := make([]error, 9)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() { _, errs[i] = f.ImportToken(t.Context(), imports([]string{user, "bob", "eve"}[i%3])) })
	}
	all.Wait()
	kept := 0
	for _, err := range errs {
		switch {
		case err == nil:
			kept++
		case !fault.Is(err, fault.Forbidden) || !strings.Contains(err.Error(), "The quota auth_tokens of this workspace is used up: its limit is 3. Delete tokens"):
			t.Error(err)
		}
	}
	if kept != most {
		t.Errorf("%d tokens are kept", kept)
	}
	f.wantUsed(t, most)
	request := asking("read")
	request.User = "zoe"
	if _, err := f.Authenticate(t.Context(), request); !fault.Is(err, fault.Forbidden) {
		t.Errorf("a user is asked for a token without room: %v", err)
	}
	check.Must(t, f.DeleteProvider(t.Context(), workspace, providerID, nil))
	f.wantUsed(t, 0)
}

// TestWhichTokensTheQuotaCounts has a grant replace a token, and an older version make a token.
func TestWhichTokensTheQuotaCounts(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.bound(1)
	f.createProvider(t)
	f.connect(t, asking("read"))
	f.connect(t, asking("read", "write"))
	f.wantUsed(t, 1)
	held := f.tokens(t)
	check.Must(t, f.DeleteToken(t.Context(), held[0].TokenRef))
	f.wantUsed(t, 0)
	older := f.imported(t) // its deletion gives no place back, because it has not taken one
	check.Must(t, f.table.Transact(t.Context(), table.Update{Key: older.Key(), Unset: []string{"counted"}}))
	check.Must(t, f.DeleteToken(t.Context(), older.TokenRef))
	f.wantUsed(t, 1)
}
