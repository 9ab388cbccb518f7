package authservice_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/tenant/authservice"
)

// nearEnd is the age at which a token of the provider is still valid, but is due for a
// refresh.
const nearEnd = lifetime - 2*time.Minute

func TestATokenIsRefreshedNearItsEndOnly(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.createProvider(t)
	first := f.connect(t, asking("read"))
	f.clock.Pass(lifetime - 6*time.Minute)
	if got := f.ask(t, asking("read"), authservice.Completed); got.Token != first.Token || f.oauth.granted("refresh_token") != 0 {
		t.Errorf("it was refreshed %d times", f.oauth.granted("refresh_token"))
	}
	f.clock.Pass(4 * time.Minute)
	second := f.ask(t, asking("read"), authservice.Completed)
	if second.Token == first.Token || second.TokenID != first.TokenID || !f.oauth.accepts(second.Token) || f.oauth.granted("refresh_token") != 1 {
		t.Errorf("it was refreshed %d times", f.oauth.granted("refresh_token"))
	}
	f.clock.Pass(nearEnd) // the rotated refresh token is used now
	if third := f.ask(t, asking("read"), authservice.Completed); third.Token == second.Token || !f.oauth.accepts(third.Token) {
		t.Error("it was not refreshed again")
	}
	if got := f.events(t); !slices.Equal(got, []authservice.EventType{authservice.TokenRefreshed, authservice.TokenRefreshed, authservice.TokenCreated}) {
		t.Errorf("got events %v", got)
	}
	f.assertNoSecrets(t)
}

// TestManyCallersAreOneRefresh has callers in many services, which share nothing except the
// table, as processes do.
func TestManyCallersAreOneRefresh(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.createProvider(t)
	f.connect(t, asking("read"))
	for round := 1; round <= 3; round++ {
		f.clock.Pass(nearEnd)
		var group sync.WaitGroup
		got := make([]string, 20)
		for i := range got {
			group.Go(func() {
				answer, err := authservice.New(f.config).Authenticate(t.Context(), asking("read"))
				if err != nil || answer.Status != authservice.Completed {
					t.Errorf("got %s (%v)", answer.Status, err)
				}
				got[i] = answer.Token
			})
		}
		group.Wait()
		slices.Sort(got)
		if distinct := slices.Compact(got); len(distinct) != 1 || !f.oauth.accepts(distinct[0]) || f.oauth.requests() != 1+round {
			t.Errorf("round %d: %d tokens, the provider was asked %d times", round, len(distinct), f.oauth.requests())
		}
	}
}

func TestAWithdrawnConsentNeedsAConnectionAgain(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.createProvider(t)
	first := f.connect(t, asking("read"))
	f.oauth.withdraw()
	f.clock.Pass(nearEnd)
	f.ask(t, asking("read"), authservice.Pending)
	named := asking("read")
	named.TokenID = first.TokenID
	expired := f.ask(t, named, authservice.TokenExpired)
	if got := f.tokens(t)[0]; got.Status != authservice.Expired {
		t.Errorf("got status %s", got.Status)
	}
	if got := f.oauth.requests(); got != 2 { // the code, and one refresh
		t.Errorf("the provider was asked %d times", got)
	}
	if exists, err := f.TokenExists(t.Context(), owner, authservice.TokenFilter{}); err != nil || exists {
		t.Errorf("an expired token exists: %v (%v)", exists, err)
	}
	f.consent(t, expired)
	if got := f.ask(t, named, authservice.Completed); got.TokenID != first.TokenID || !f.oauth.accepts(got.Token) {
		t.Error("it was not mended")
	}
	want := []authservice.EventType{authservice.TokenCreated, authservice.TokenRefused, authservice.TokenCreated}
	if got := f.events(t); !slices.Equal(got, want) {
		t.Errorf("got events %v", got)
	}
}

// TestARefusalInAProvidersOwnWords refuses a refresh token as GitHub and Slack do, with status 200
// and a code of their own, and as Microsoft does when the user has to sign in again.
func TestARefusalInAProvidersOwnWords(t *testing.T) {
	t.Parallel()
	for answer, kind := range map[string]authservice.ProviderType{
		`{"error":"bad_refresh_token","error_description":"The refresh token passed is incorrect or expired."}`: "",
		`{"ok":false,"error":"invalid_refresh_token"}`:                                                          authservice.Slack,
		`{"error":"interaction_required","suberror":"basic_action"}`:                                            authservice.Microsoft,
	} {
		f := setUp(t)
		f.createProvider(t, func(p *authservice.NewProvider) { p.Type = kind })
		first := f.connect(t, asking("read"))
		f.oauth.atToken(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, answer)
		})
		f.clock.Pass(lifetime + time.Minute)
		pending := f.ask(t, asking("read"), authservice.Pending)
		if got := f.tokens(t)[0]; got.Status != authservice.Expired {
			t.Errorf("%s: got status %s", answer, got.Status)
		}
		f.oauth.recover()
		f.consent(t, pending)
		if got := f.ask(t, asking("read"), authservice.Completed); got.Token == first.Token || !f.oauth.accepts(got.Token) {
			t.Errorf("%s: the token was not mended", answer)
		}
	}
}

// TestAProviderInTroubleCostsNoToken has the refresh fail in each way that does not show that
// the refresh token is invalid.
func TestAProviderInTroubleCostsNoToken(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]http.HandlerFunc{
		"down":    func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) },
		"garbage": func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("{")) },
		"huge":    func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(strings.Repeat("y", 1<<20))) },
		"slow":    func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"gone":    func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"refuses us": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusUnauthorized)
			w.Write([]byte(`{"error":"invalid_client"}`))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setUp(t)
			f.config.Timeout = 300 * time.Millisecond
			f.Service = authservice.New(f.config)
			f.createProvider(t)
			first := f.connect(t, asking("read"))
			var calls atomic.Int64
			f.oauth.atToken(func(w http.ResponseWriter, r *http.Request) {
				calls.Add(1)
				r.ParseForm()
				answer(w, r)
			})
			f.clock.Pass(nearEnd)
			for range 3 { // the token has not expired, and the provider is not asked
				if got := f.ask(t, asking("read"), authservice.Completed); got.Token != first.Token {
					t.Error("another token")
				}
			}
			f.clock.Pass(3 * time.Minute)
			for range 3 {
				if got, err := f.Authenticate(t.Context(), asking("read")); !fault.Is(err, fault.Unavailable) {
					t.Errorf("got %s (%v)", got.Status, err)
				}
			}
			if calls.Load() != 2 {
				t.Errorf("the provider was asked %d times", calls.Load())
			}
			f.oauth.recover()
			f.clock.Pass(15 * time.Second)
			if got := f.ask(t, asking("read"), authservice.Completed); !f.oauth.accepts(got.Token) {
				t.Error("the token is lost")
			}
			f.assertNoSecrets(t)
		})
	}
}

func TestATokenWithoutRefreshTokenExpires(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.createProvider(t)
	if _, err := f.ImportToken(t.Context(), authservice.ImportedToken{
		Owner: owner, ProviderID: providerID, AccessToken: "imported-access", Scopes: []string{"read"}, Lifetime: lifetime, Default: true,
	}); err != nil {
		t.Fatal(err)
	}
	f.clock.Pass(nearEnd)
	if got := f.ask(t, asking("read"), authservice.Completed); got.Token != "imported-access" {
		t.Error("it was not handed out to its end")
	}
	f.clock.Pass(3 * time.Minute)
	f.ask(t, asking("read"), authservice.Pending)
	if got := f.tokens(t)[0].Status; got != authservice.Expired {
		t.Errorf("got status %s", got)
	}
}

// TestARefreshTokenThatIsNotRotatedIsKept has a provider that gives no refresh token with a
// refresh.
func TestARefreshTokenThatIsNotRotatedIsKept(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.createProvider(t)
	f.imported(t, func(in *authservice.ImportedToken) { in.Lifetime = time.Minute })
	var sent []string
	f.oauth.atToken(func(w http.ResponseWriter, r *http.Request) {
		sent = append(sent, r.FormValue("refresh_token"))
		w.Header().Set("Content-Type", "application/json")
		w.Write([]byte(`{"access_token":"next-access","expires_in":60}`))
	})
	for range 2 {
		f.clock.Pass(time.Minute)
		f.ask(t, asking("read"), authservice.Completed)
	}
	if !slices.Equal(sent, []string{"imported-refresh", "imported-refresh"}) {
		t.Errorf("sent %q", sent)
	}
}
