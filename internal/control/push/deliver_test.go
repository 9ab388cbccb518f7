package push_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/control/integration/githubtest"
	"github.com/slipway-run/slipway/internal/control/push"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/test/check"
)

func TestADeliveryThatComesAgain(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.watch(t, workspace, d1, agent, "main", true)
	d := f.delivery("push", body(nil), appSecret)
	var senders sync.WaitGroup
	for range 8 {
		senders.Go(func() {
			if err := f.App(t.Context(), d); err != nil {
				t.Error(err)
			}
		})
	}
	senders.Wait()
	f.clock.Pass(73 * time.Hour)
	check.Must(t, f.App(t.Context(), d))
	wantBuilds(t, f.take(), "1 d1 2222")
	f.watch(t, workspace, d2, agent, "main", true)
	check.Must(t, f.App(t.Context(), d))
	wantBuilds(t, f.take(), "1 d2 2222")
	wantBuilds(t, f.push(t, nil), "1 d1 2222", "1 d2 2222")
	f.clock.Pass(97 * time.Hour)
	check.Must(t, f.App(t.Context(), d))
	wantBuilds(t, f.take(), "1 d1 2222", "1 d2 2222")
}

func TestADeliveryThatFailedCanComeAgain(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.watch(t, workspace, d1, agent, "main", true)
	f.watch(t, workspace, d2, agent, "main", true)
	f.watch(t, workspace, d3, agent, "main", true)
	broken := errors.New("the table is away")
	f.fail = func(deployment string) error {
		if deployment == d2 {
			return broken
		}
		if deployment == d3 {
			return fault.New(fault.Unavailable, "Try again.")
		}
		return nil
	}
	d := f.delivery("push", body(nil), appSecret)
	if err := f.App(t.Context(), d); !errors.Is(err, broken) || !fault.Is(err, fault.Unavailable) {
		t.Errorf("got %v, want both failures", err)
	}
	wantBuilds(t, f.take(), "1 d1 2222")
	f.fail = nil
	check.Must(t, f.App(t.Context(), d))
	wantBuilds(t, f.take(), "1 d2 2222", "1 d3 2222")
}

func TestADeploymentThatCannotBeBuiltIsNoFailure(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.watch(t, workspace, d1, agent, "main", true)
	for _, kind := range []fault.Kind{fault.NotFound, fault.Conflict, fault.Invalid} {
		f.fail = func(string) error { return fault.New(kind, "It is gone.") }
		d := f.delivery("push", body(nil), appSecret)
		check.Must(t, f.App(t.Context(), d))
		f.fail = nil
		check.Must(t, f.App(t.Context(), d))
		wantBuilds(t, f.take())
	}
}

// TestAClaimOfADeadProcess ends the receiver between the claim and the note of success.
func TestAClaimOfADeadProcess(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.watch(t, workspace, d1, agent, "main", true)
	dead := errors.New("dead")
	claimed := false
	f.table.fail = func([]table.Write) error {
		if claimed {
			return dead
		}
		claimed = true
		return nil
	}
	f.fail = func(string) error { return dead }
	d := f.delivery("push", body(nil), appSecret)
	if err := f.App(t.Context(), d); !errors.Is(err, dead) {
		t.Errorf("got %v", err)
	}
	f.table.fail, f.fail = nil, nil
	check.Must(t, f.App(t.Context(), d))
	wantBuilds(t, f.take())
	f.clock.Pass(2*time.Minute + time.Second)
	check.Must(t, f.App(t.Context(), d))
	wantBuilds(t, f.take(), "1 d1 2222")
}

// TestASenderThatHangsUp: GitHub hangs up after ten seconds.
func TestASenderThatHangsUp(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.watch(t, workspace, d1, agent, "main", true)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	check.Must(t, f.App(ctx, f.delivery("push", body(nil), appSecret)))
	check.Must(t, f.Deployment(ctx, workspace, d1, f.delivery("push", body(nil), f.HookSecret(workspace, d1))))
	wantBuilds(t, f.take(), "1 d1 2222", "1 d1 2222")
}

func TestARenamedRepository(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.watch(t, workspace, d1, agent, "main", true)
	// The repository is not yet known by another name.
	wantBuilds(t, f.push(t, named("acme/bot", nil)))
	wantBuilds(t, f.push(t, nil), "1 d1 2222")
	wantBuilds(t, f.push(t, named("acme/bot", nil)), "1 d1 2222")
	f.watch(t, workspace, d2, "https://github.com/acme/bot", "main", true)
	wantBuilds(t, f.push(t, named("initech/bot", nil)), "1 d1 2222", "1 d2 2222")
	// Another repository took the name.
	wantBuilds(t, f.push(t, named("acme/bot", map[string]any{"repository.id": 12})), "1 d2 2222")
	f.bind(t, other)
	f.watch(t, other, d3, agent, "main", true)
	// A workspace knows only its own names.
	wantBuilds(t, f.push(t, named("initech/bot", nil)), "1 d1 2222", "1 d2 2222")
	for n := range 20 {
		f.push(t, named("acme/r"+strings.Repeat("x", n), nil))
	}
	wantBuilds(t, f.push(t, named("acme/last", map[string]any{"ref": "refs/heads/nobody"})))
}

// TestARepositoryIsRenamedBeforeItsFirstPush: GitHub tells its id with the token for the clone. A
// repository that is cloned by a name of the past has this name, too.
func TestARepositoryIsRenamedBeforeItsFirstPush(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.github.Install(githubtest.Installation{ID: 77, Account: "acme", AccountID: 500, Repositories: []githubtest.Repository{
		{ID: 11, Owner: "acme", Name: "agent", DefaultBranch: "main"}, {ID: 12, Owner: "acme", Name: "new", DefaultBranch: "main"},
	}})
	f.github.Renamed("acme/old", 12)
	i := f.bind(t, other)
	host := strings.TrimPrefix(f.github.URL, "https://")
	at := func(name string, id int) map[string]any {
		return map[string]any{
			"repository.id": id, "repository.full_name": name, "repository.clone_url": f.github.URL + "/" + name + ".git",
			"repository.ssh_url": "git@" + host + ":" + name + ".git", "repository.html_url": f.github.URL + "/" + name,
		}
	}
	for deployment, name := range map[string]string{d1: "acme/agent", d2: "acme/old"} {
		url := f.github.URL + "/" + name
		f.watch(t, other, deployment, url, "main", true)
		f.watch(t, workspace, d3, url, "main", true) // not cloned there
		for range 2 {
			_, err := f.integrations.CloneCredentials(t.Context(), other, i.Integration, url)
			check.Must(t, err)
		}
	}
	wantBuilds(t, f.push(t, at("acme/bot", 11)), "2 d1 2222")
	wantBuilds(t, f.push(t, at("acme/new", 12)), "2 d2 2222")
	wantBuilds(t, f.push(t, at("acme/stranger", 13)))
}

func TestAPushToManyDeployments(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	for n := range 100 {
		f.watch(t, workspace, d1[:34]+string("0123456789"[n/10])+string("0123456789"[n%10]), agent, "main", true)
	}
	if got := f.push(t, nil); len(got) != 100 || len(slices.Compact(got)) != 100 {
		t.Errorf("built %d", len(got))
	}
}

// timed is a Builder that notes how long its builds may take at the most.
type timed struct {
	*builds
	limits []time.Duration
}

func (b *timed) Build(ctx context.Context, _, _, _ string) error {
	deadline, ok := ctx.Deadline()
	if !ok {
		return errors.New("it may take forever")
	}
	b.limits = append(b.limits, time.Until(deadline))
	return nil
}

// TestADeliveryHasATimeOfItsOwn, which is over when a repeated delivery is processed again.
func TestADeliveryHasATimeOfItsOwn(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.watch(t, workspace, d1, agent, "main", true)
	builder := &timed{builds: f.builds}
	f.config.Builder = builder
	f.Receiver = push.NewReceiver(f.config)
	check.Must(t, f.App(t.Context(), f.delivery("push", body(nil), appSecret)))
	check.Must(t, f.Deployment(t.Context(), workspace, d1, f.delivery("push", body(nil), f.HookSecret(workspace, d1))))
	if len(builder.limits) != 2 || slices.Max(builder.limits) > 2*time.Minute {
		t.Errorf("builds may take %v", builder.limits)
	}
}
