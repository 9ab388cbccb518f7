package listener_test

import (
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/base/outbound"
	"github.com/slipway-run/slipway/internal/control/listener"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestAttackAnAgentWhoseNameLeadsInside: a listener reports its agent at a name that is not a
// private address as a text, but resolves to a private address. The server must not call that
// address.
func TestAttackAnAgentWhoseNameLeadsInside(t *testing.T) {
	t.Parallel()
	inside, err := net.Listen("tcp", "127.0.0.1:0")
	check.Must(t, err)
	t.Cleanup(func() { inside.Close() })
	called := make(chan struct{})
	go func() {
		if c, err := inside.Accept(); err == nil {
			c.Close()
			close(called)
		}
	}()
	f := setUp(t)
	public := f.config
	public.Private = nil
	f.Store = listener.NewStore(public)
	f.target = f.Target(nil)
	l := f.create(t, request("cluster", "agents"))
	r := f.newRelease(l)
	f.apply(t, r)
	a := f.claim(t, l, "a")
	report := on(one(t, a), 1, compute.Healthy)
	report.URL = "https://LOCALHOST" + strings.TrimPrefix(inside.Addr().String(), "127.0.0.1")
	f.report(t, a.Session, report)
	endpoint, done, err := f.target.Acquire(t.Context(), r.Ref)
	check.Must(t, err)
	defer done()
	if _, err := graph.NewClient(nil).Describe(t.Context(), endpoint, graph.Invocation{Operation: graph.OperationDescribe}, nil); !errors.Is(err, outbound.ErrAddress) {
		t.Errorf("the question ended with %v, want %v", err, outbound.ErrAddress)
	}
	select {
	case <-called:
		t.Error("the address was called")
	default:
	}
}
