package authservice_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/authservice"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestACallerThatGoesLosesNoToken cancels the caller when the provider has answered but
// nothing is stored yet.
func TestACallerThatGoesLosesNoToken(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.createProvider(t)
	f.connect(t, asking("read"))
	f.clock.Pass(nearEnd)
	ctx, cancel := context.WithCancel(t.Context())
	f.oauth.during("/token", func() {
		cancel()
	})
	f.Authenticate(ctx, asking("read")) // it may get an answer or not
	if got := f.ask(t, asking("read"), authservice.Completed); !f.oauth.accepts(got.Token) || f.oauth.granted("refresh_token") != 1 {
		t.Errorf("%d refreshes", f.oauth.granted("refresh_token"))
	}
}

// refresh begins a refresh, which goes on when proceed is called. done delivers its answer.
func (f *fixture) refresh(t *testing.T) (done <-chan authservice.Answer, proceed func()) {
	t.Helper()
	f.createProvider(t)
	f.connect(t, asking("read"))
	f.clock.Pass(nearEnd)
	arrived, goOn, answers := make(chan struct{}), make(chan struct{}), make(chan authservice.Answer, 1)
	f.oauth.during("/token", func() {
		close(arrived)
		<-goOn
	})
	go func() {
		answer, err := f.Authenticate(context.WithoutCancel(t.Context()), asking("read"))
		if err != nil {
			t.Error(err)
		}
		answers <- answer
	}()
	<-arrived
	return answers, sync.OnceFunc(func() { close(goOn) })
}

// TestAWaiterThatGoesIsLetGo delays the refresh.
func TestAWaiterThatGoesIsLetGo(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	done, proceed := f.refresh(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	config, counting := f.config, &countingTable{Table: f.table}
	config.Table = counting
	if got, err := authservice.New(config).Authenticate(ctx, asking("read")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %s (%v)", got.Status, err)
	}
	if n := counting.gets.Load(); n > 5 {
		t.Errorf("it read %d times in place of waiting", n)
	}
	proceed()
	<-done
}

// TestAWaiterThatIsWokenEarlyWaitsOn wakes a waiter while the refresh goes on, as the write of the
// lease can.
func TestAWaiterThatIsWokenEarlyWaitsOn(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	done, proceed := f.refresh(t)
	config := f.config
	config.Table = wakingTable{f.table, proceed}
	waiter, err := authservice.New(config).Authenticate(t.Context(), asking("read"))
	proceed()
	if first := <-done; err != nil || waiter.Token != first.Token {
		t.Errorf("the waiter got the token from before the refresh (%v)", err)
	}
}

// wakingTable wakes each watcher once without a change, and calls waits before it waits again.
type wakingTable struct {
	table.Table
	waits func()
}

func (w wakingTable) Watch(key table.Key) table.Watcher {
	return &wokenWatcher{Watcher: w.Table.Watch(key), waits: w.waits}
}

type wokenWatcher struct {
	table.Watcher
	woken bool
	waits func()
}

func (w *wokenWatcher) C() <-chan struct{} {
	if w.woken {
		w.waits()
		return w.Watcher.C()
	}
	w.woken = true
	now := make(chan struct{}, 1)
	now <- struct{}{}
	return now
}

// TestALateAnswerIsKept has a holder that is slower than its lease: another caller tries in
// its place and is refused, because the refresh token is used up. When the first answer comes,
// it contains the only valid token.
func TestALateAnswerIsKept(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.createProvider(t)
	f.connect(t, asking("read"))
	f.clock.Pass(nearEnd)
	slow := &slowTable{Table: f.table, hold: make(chan struct{}), held: make(chan struct{})}
	config := f.config
	config.Table = slow
	done := make(chan authservice.Answer, 1)
	go func() {
		answer, err := authservice.New(config).Authenticate(context.WithoutCancel(t.Context()), asking("read"))
		if err != nil {
			t.Error(err)
		}
		done <- answer
	}()
	<-slow.held             // it has the provider's answer, and is about to write
	f.clock.Pass(time.Hour) // its lease is over
	f.ask(t, asking("read"), authservice.Pending)
	if got := f.tokens(t)[0].Status; got != authservice.Expired {
		t.Errorf("the second holder left it %s", got)
	}
	close(slow.hold)
	if answer := <-done; answer.Status != authservice.Completed || !f.oauth.accepts(answer.Token) {
		t.Errorf("the late answer was lost: %s", answer.Status)
	}
	f.ask(t, asking("read"), authservice.Completed)
}

// countingTable counts the reads.
type countingTable struct {
	table.Table
	gets atomic.Int64
}

func (c *countingTable) Get(ctx context.Context, key table.Key) (*table.Item, error) {
	c.gets.Add(1)
	return c.Table.Get(ctx, key)
}

// TestALateRefusalCostsNoToken has the other order: the first answer is stored while the
// second holder still waits for its refusal.
func TestALateRefusalCostsNoToken(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.createProvider(t)
	f.connect(t, asking("read"))
	f.clock.Pass(nearEnd)
	slow := &slowTable{Table: f.table, hold: make(chan struct{}), held: make(chan struct{})}
	config := f.config
	config.Table = slow
	answers := make(chan authservice.Answer, 2)
	ask := func(config authservice.Config) {
		answer, err := authservice.New(config).Authenticate(context.WithoutCancel(t.Context()), asking("read"))
		if err != nil {
			t.Error(err)
		}
		answers <- answer
	}
	go ask(config)
	<-slow.held
	arrived, proceed := make(chan struct{}), make(chan struct{})
	f.oauth.during("/token", func() {
		close(arrived)
		<-proceed
	})
	f.clock.Pass(5 * time.Minute) // the lease is over
	go ask(f.config)
	<-arrived
	close(slow.hold)
	first := <-answers
	close(proceed)
	second := <-answers
	if first.Status != authservice.Completed || second.Token != first.Token || !f.oauth.accepts(first.Token) {
		t.Errorf("got %s and %s", first.Status, second.Status)
	}
	if got := f.tokens(t)[0].Status; got != authservice.Valid {
		t.Errorf("it is %s", got)
	}
}

// slowTable delays the write that stores a refreshed token.
type slowTable struct {
	table.Table
	hold, held chan struct{}
}

func (s *slowTable) Transact(ctx context.Context, writes ...table.Write) error {
	if isRefreshed(writes) {
		close(s.held)
		<-s.hold
	}
	return s.Table.Transact(ctx, writes...)
}

// isRefreshed reports whether the writes store a refreshed token.
func isRefreshed(writes []table.Write) bool {
	update, ok := writes[0].(table.Update)
	return ok && update.Set["granted_by"] != nil && update.Set["granted_by"] != ""
}

// TestALeaseThatIsOverIsTaken has a holder that died before it asked the provider.
func TestALeaseThatIsOverIsTaken(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.createProvider(t)
	f.connect(t, asking("read"))
	f.clock.Pass(nearEnd)
	config := f.config
	config.Table = &dyingTable{Table: f.table}
	if _, err := authservice.New(config).Authenticate(t.Context(), asking("read")); err == nil {
		t.Fatal("it did not die")
	}
	if got := f.tokens(t)[0].Status; got != authservice.Refreshing {
		t.Fatalf("got status %s", got)
	}
	f.clock.Pass(time.Minute)
	if got := f.ask(t, asking("read"), authservice.Completed); !f.oauth.accepts(got.Token) || f.oauth.granted("refresh_token") != 1 {
		t.Errorf("%d refreshes", f.oauth.granted("refresh_token"))
	}
}

var errDead = errors.New("dead")

// dyingTable stops answering when a lease was taken.
type dyingTable struct {
	table.Table
	dead atomic.Bool
}

func (d *dyingTable) Get(ctx context.Context, key table.Key) (*table.Item, error) {
	if d.dead.Load() {
		return nil, errDead
	}
	return d.Table.Get(ctx, key)
}

func (d *dyingTable) Transact(ctx context.Context, writes ...table.Write) error {
	if d.dead.Load() {
		return errDead
	}
	if update, ok := writes[0].(table.Update); ok && update.Set["status"] == "refreshing" {
		defer d.dead.Store(true)
	}
	return d.Table.Transact(ctx, writes...)
}

// TestALostAnswerOfTheTableLosesNoToken has the table fail at the write of the provider's
// grant: before the write, or after it.
func TestALostAnswerOfTheTableLosesNoToken(t *testing.T) {
	t.Parallel()
	for _, written := range []bool{false, true} {
		f := setUp(t)
		f.config.Table = &flakyTable{Table: f.table, written: written}
		f.Service = authservice.New(f.config)
		f.createProvider(t)
		first := f.connect(t, asking("read"))
		f.clock.Pass(nearEnd)
		second := f.ask(t, asking("read"), authservice.Completed)
		if second.Token == first.Token || !f.oauth.accepts(second.Token) || f.oauth.granted("refresh_token") != 1 {
			t.Errorf("written %v: %d refreshes", written, f.oauth.granted("refresh_token"))
		}
		if tokens, events := f.tokens(t), f.events(t); len(tokens) != 1 || len(events) != 2 {
			t.Errorf("written %v: %d tokens, events %v", written, len(tokens), events)
		}
	}
}

// flakyTable loses the first answer to the write that stores a new token, and to the write
// that stores a refreshed token.
type flakyTable struct {
	table.Table
	written        bool
	made, replaced atomic.Bool
}

func (f *flakyTable) Transact(ctx context.Context, writes ...table.Write) error {
	made := false
	if len(writes) > 1 {
		put, ok := writes[1].(table.Put)
		made = ok && put.Item.Attrs["kind"] == "auth_token"
	}
	if made && f.made.CompareAndSwap(false, true) || isRefreshed(writes) && f.replaced.CompareAndSwap(false, true) {
		if f.written {
			if err := f.Table.Transact(ctx, writes...); err != nil {
				return err
			}
		}
		return errDead
	}
	return f.Table.Transact(ctx, writes...)
}

func TestATokenThatIsDeletedWhileItIsRefreshedIsRevoked(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.createProvider(t)
	f.connect(t, asking("read"))
	f.clock.Pass(nearEnd)
	slow := &slowTable{Table: f.table, hold: make(chan struct{}), held: make(chan struct{})}
	config := f.config
	config.Table = slow
	done := make(chan error, 1)
	go func() {
		_, err := authservice.New(config).Authenticate(context.WithoutCancel(t.Context()), asking("read"))
		done <- err
	}()
	<-slow.held
	check.Must(t, f.DeleteToken(t.Context(), f.tokens(t)[0].TokenRef))
	close(slow.hold)
	if err := <-done; err != nil {
		t.Error(err)
	}
	f.oauth.mu.Lock()
	last := f.oauth.issued[len(f.oauth.issued)-2]
	f.oauth.mu.Unlock()
	if len(f.tokens(t)) != 0 || f.oauth.accepts(last) {
		t.Error("a token that nobody has is good at the provider")
	}
}

// TestAPatchIsAppliedAsAWhole or not at all, when the table fails.
func TestAPatchIsAppliedAsAWhole(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.createProvider(t)
	token, patch := f.imported(t), authservice.TokenPatch{Label: new("home"), Default: new(false)}
	config := f.config
	config.Table = frozenTable{f.table}
	if _, err := authservice.New(config).PatchToken(t.Context(), token.TokenRef, patch); !errors.Is(err, errDead) {
		t.Fatalf("got %v", err)
	}
	if got, err := f.Token(t.Context(), token.TokenRef); err != nil || !got.IsDefault || got.Label != token.Label {
		t.Errorf("got %+v (%v)", got, err)
	}
	if got, err := f.PatchToken(t.Context(), token.TokenRef, patch); err != nil || got.IsDefault || got.Label != "home" {
		t.Errorf("got %+v (%v)", got, err)
	}
}

// frozenTable refuses each transaction that changes an item.
type frozenTable struct{ table.Table }

func (f frozenTable) Transact(ctx context.Context, writes ...table.Write) error {
	if slices.ContainsFunc(writes, func(w table.Write) bool { _, changes := w.(table.Update); return changes }) {
		return errDead
	}
	return f.Table.Transact(ctx, writes...)
}

// TestATokenThatIsRefreshedWhileItIsDeletedIsRevoked refreshes it after it was read to be revoked.
func TestATokenThatIsRefreshedWhileItIsDeletedIsRevoked(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.createProvider(t)
	f.connect(t, asking("read"))
	f.clock.Pass(nearEnd)
	var once sync.Once
	f.oauth.during("/revoke", func() {
		once.Do(func() { f.ask(t, asking("read"), authservice.Completed) })
	})
	check.Must(t, f.DeleteToken(t.Context(), f.tokens(t)[0].TokenRef))
	f.oauth.mu.Lock()
	issued := slices.Clone(f.oauth.issued)
	f.oauth.mu.Unlock()
	for _, token := range issued {
		if f.oauth.accepts(token) {
			t.Errorf("a token that nobody has is good at the provider: %v", issued)
		}
	}
	if len(f.tokens(t)) != 0 || f.oauth.granted("refresh_token") != 1 {
		t.Errorf("%d tokens, %d refreshes", len(f.tokens(t)), f.oauth.granted("refresh_token"))
	}
}

// TestAValidTokenIsHandedOutWhileItsRefreshHangs has another caller that refreshes it.
func TestAValidTokenIsHandedOutWhileItsRefreshHangs(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.config.Timeout = time.Hour
	f.Service = authservice.New(f.config)
	f.createProvider(t)
	held := f.connect(t, asking("read"))
	f.clock.Pass(nearEnd)
	arrived, proceed, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	f.oauth.during("/token", func() {
		close(arrived)
		<-proceed
	})
	go func() {
		_, err := f.Authenticate(context.WithoutCancel(t.Context()), asking("read"))
		done <- err
	}()
	<-arrived
	config := f.config
	config.Timeout = 80 * time.Millisecond
	if got, err := authservice.New(config).Authenticate(t.Context(), asking("read")); err != nil || got.Token != held.Token {
		t.Errorf("got %s (%v)", got.Status, err)
	}
	close(proceed)
	if err := <-done; err != nil {
		t.Error(err)
	}
}
