package agentserver_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/api/agentserver/strangers"
	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/seam/secret"
	"github.com/slipway-run/slipway/internal/seam/table/sqlite"
	"github.com/slipway-run/slipway/internal/tenant/quota"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

// slow is a rate that gives a request back so seldom that no test waits for it.
func slow(burst int) web.Rate { return web.Rate{PerSecond: 1e-3, Burst: burst} }

// shared returns counts for all processes, in a window that does not end.
func shared(t *testing.T) *quota.Strangers {
	t.Helper()
	hasher := fixtures.Key(t)
	now := fixtures.NewClock().Now
	return &quota.Strangers{
		Table: fixtures.Table(t, sqlite.WithClock(now)), Hasher: func(context.Context) (secret.Hasher, error) { return hasher, nil },
		Now: now, Log: slog.New(slog.DiscardHandler),
	}
}

// questions returns how often the guardian was asked to authenticate a caller.
func (g *guardian) questions() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.seen)
}

// TestAttackStrangersUseUpNoAgent checks that after some refusals the agent is no longer asked
// about unknown credentials. Users that it has let in before, and keys of the platform, reach
// it as before.
func TestAttackStrangersUseUpNoAgent(t *testing.T) {
	t.Parallel()
	const most, attacks = 5, 30
	for name, limits := range map[string]strangers.Limits{
		"one address":                      {PerAddress: slow(most)},
		"one deployment":                   {PerDeployment: slow(most)},
		"one address of all processes":     {PerAddress: slow(most), Shared: shared(t)},
		"one deployment, by all processes": {PerDeployment: slow(most), Shared: shared(t)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, g, platformKey, _ := setUpGuardedWithin(t, limits, quota.Limits{})
			for range 2 * most { // a request that is let in takes nothing
				wantStatus(t, f.as(t, "ada", "POST", "/threads/search", object{}), http.StatusOK)
			}
			before := g.questions()
			for n := range attacks {
				got := f.as(t, fmt.Sprint("stranger ", n), "POST", "/threads/search", object{})
				if n < most {
					wantStatus(t, got, http.StatusUnauthorized)
					continue
				}
				wait, err := strconv.Atoi(got.Header.Get("Retry-After"))
				if got.StatusCode != http.StatusTooManyRequests || err != nil || wait < 1 || !strings.Contains(string(got.text), "does not know") {
					t.Fatalf("attack %d: %d %s, Retry-After %q", n, got.StatusCode, got.text, got.Header.Get("Retry-After"))
				}
			}
			if asked := g.questions() - before; asked != most {
				t.Errorf("the agent was asked %d times, want %d", asked, most)
			}
			// The server does not know bob.
			wantStatus(t, f.as(t, "bob", "POST", "/threads/search", object{}), http.StatusTooManyRequests)
			wantStatus(t, f.as(t, "ada", "POST", "/threads/search", object{}), http.StatusOK)
			// The repository decides about the platform's key.
			wantStatus(t, f.as(t, platformKey, "POST", "/threads/search", object{}), http.StatusUnauthorized)
		})
	}
}

// TestAttackStrangersThatHang checks that strangers occupy the agent with only some questions
// at a time, and that known users get past them.
func TestAttackStrangersThatHang(t *testing.T) {
	t.Parallel()
	const atOnce, attacks = 3, 12
	for name, limits := range map[string]strangers.Limits{
		"one address": {AtOnceOfAddress: atOnce}, "all": {AtOnce: atOnce, AtOnceOfAddress: attacks},
		"one address of all processes": {AtOnceOfAddress: atOnce, Shared: shared(t)}, "all, by all processes": {AtOnce: atOnce, AtOnceOfAddress: attacks, Shared: shared(t)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, g, _, _ := setUpGuardedWithin(t, limits, quota.Limits{})
			g.awake = make(chan struct{})
			wantStatus(t, f.as(t, "ada", "POST", "/threads/search", object{}), http.StatusOK)
			refused := make(chan int, attacks)
			var all sync.WaitGroup
			for range attacks {
				all.Go(func() { refused <- f.as(t, "hangs", "POST", "/threads/search", object{}).StatusCode })
			}
			for range attacks - atOnce { // all except the questions that hang
				if got := <-refused; got != http.StatusTooManyRequests {
					t.Errorf("got %d", got)
				}
			}
			wantStatus(t, f.as(t, "ada", "POST", "/threads/search", object{}), http.StatusOK)
			close(g.awake)
			all.Wait()
			wantStatus(t, f.as(t, "bob", "POST", "/threads/search", object{}), http.StatusOK)
		})
	}
}

// TestRequestsThatAreLetInTakeNothing sends more requests of strangers at the same time than may
// be refused. The repository lets all of them in, so as many as before may be refused then.
func TestRequestsThatAreLetInTakeNothing(t *testing.T) {
	t.Parallel()
	const most, users = 2, 5
	f, g, _, _ := setUpGuardedWithin(t, strangers.Limits{PerAddress: slow(most), PerDeployment: slow(most)}, quota.Limits{})
	var all, asked sync.WaitGroup
	asked.Add(users)
	g.delay(func() {
		asked.Done()
		asked.Wait()
	})
	for range users {
		all.Go(func() {
			if got := f.as(t, "waits", "POST", "/threads/search", object{}); got.StatusCode != http.StatusOK {
				t.Errorf("%d %s", got.StatusCode, got.text)
				asked.Done() // the agent was not asked
			}
		})
	}
	all.Wait()
	for range most {
		wantStatus(t, f.as(t, "nobody", "POST", "/threads/search", object{}), http.StatusUnauthorized)
	}
	wantStatus(t, f.as(t, "nobody", "POST", "/threads/search", object{}), http.StatusTooManyRequests)
}

// TestCallersAreForgotten checks that a caller whom the repository let in counts as a stranger ten
// minutes later, and that refusals stop counting with time.
func TestCallersAreForgotten(t *testing.T) {
	t.Parallel()
	f, g, _, _ := setUpGuardedWithin(t, strangers.Limits{PerAddress: slow(1)}, quota.Limits{})
	ask := func(user string, want int) {
		t.Helper()
		wantStatus(t, f.as(t, user, "POST", "/threads/search", object{}), want)
	}
	ask("ada", http.StatusOK)
	ask("nobody", http.StatusUnauthorized)
	f.clock.Pass(9 * time.Minute)
	ask("ada", http.StatusOK)
	ask("bob", http.StatusTooManyRequests)
	f.clock.Pass(10 * time.Minute)
	ask("bob", http.StatusOK)
	ask("nobody", http.StatusUnauthorized)
	ask("ada", http.StatusTooManyRequests)
	if let := len(g.asked); let != 3 {
		t.Errorf("the repository was asked about %d accesses: %q", let, g.asked)
	}
}
