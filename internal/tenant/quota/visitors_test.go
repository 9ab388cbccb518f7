package quota_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/tenant/quota"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

// TestAttackVisitorsAtManyProcesses has the visitors of one address, and then those of many, open
// connections at two processes at once: both processes together admit no more than one would. The
// workspace and its other deployments keep their own places.
func TestAttackVisitorsAtManyProcesses(t *testing.T) {
	t.Parallel()
	const most = 16 // 4 connections of visitors, 2 of them of one address
	at := processes(t, fixtures.NewClock().Now, quota.Limits{}.With(quota.Streams, most))
	visit := func(times int, of func(i int) string) (leaves []func()) {
		t.Helper()
		admitted, errs := make([]func(), times), make([]error, times)
		var all sync.WaitGroup
		for i := range times {
			all.Go(func() { admitted[i], errs[i] = at[i%2].Visit(t.Context(), workspace, deployment, of(i)) })
		}
		all.Wait()
		for i, err := range errs {
			if err == nil {
				leaves = append(leaves, admitted[i])
			} else if !fault.Is(err, fault.TooMany) {
				t.Errorf("got %v", err)
			}
		}
		return leaves
	}
	first := visit(20, func(int) string { return "192.0.2.1" })
	if len(first) != 2 {
		t.Errorf("one address has %d connections, want 2", len(first))
	}
	others := visit(20, func(i int) string { return "198.51.100." + string(rune('0'+i%10)) })
	if len(others) != 2 {
		t.Errorf("the other addresses have %d connections, want 2", len(others))
	}
	if leave, err := at[0].Visit(t.Context(), workspace, sibling, "192.0.2.1"); err != nil {
		t.Errorf("another deployment: %v", err)
	} else {
		leave()
	}
	if leave, err := at[1].Hold(t.Context(), workspace, "", ""); err != nil {
		t.Errorf("the workspace: %v", err)
	} else {
		leave()
	}
	for _, leave := range append(first, others...) {
		leave()
	}
	again := visit(20, func(int) string { return "192.0.2.1" })
	if len(again) != 2 {
		t.Errorf("one address has %d connections after the others have gone, want 2", len(again))
	}
	for _, leave := range again {
		leave()
	}
}

// TestAttackRequestsOfVisitorsAtManyProcesses sends requests of one address to two processes until
// both refuse them. Another address and the workspace itself are still served.
func TestAttackRequestsOfVisitorsAtManyProcesses(t *testing.T) {
	t.Parallel()
	c := fixtures.NewClock()
	// This allows 100 requests of one address in a window.
	at := processes(t, c.Now, quota.Limits{}.With(quota.Requests, 80))
	send := func(address string, times int) (served int) {
		t.Helper()
		for i := range times {
			leave, err := at[i%2].Visit(t.Context(), workspace, deployment, address)
			if err == nil {
				leave()
				served++
				continue
			}
			if refusal, ok := errors.AsType[*fault.Error](err); !ok || refusal.Kind != fault.TooMany || refusal.RetryAfter <= 0 || refusal.RetryAfter > 10*time.Second {
				t.Fatalf("got %v", err)
			}
		}
		return served
	}
	if served := send("192.0.2.1", 300); served < 100 || served > 130 {
		t.Errorf("%d requests of one address are served, want 100 and up to three grains of 10", served)
	}
	if served := send("192.0.2.2", 50); served != 50 {
		t.Errorf("%d requests of another address are served, want 50", served)
	}
	if err := at[0].Count(t.Context(), workspace); err != nil {
		t.Errorf("the workspace: %v", err)
	}
	c.Pass(10 * time.Second)
	if served := send("192.0.2.1", 50); served != 50 {
		t.Errorf("%d requests are served in the next window, want 50", served)
	}
}
