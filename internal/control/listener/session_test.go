package listener_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/control/listener"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/test/check"
)

func TestOneProcessSpeaksForAListener(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	l := f.create(t, request("cluster", "agents"))
	a := f.claim(t, l, "a")
	if again := f.claim(t, l, "a"); again.Session != a.Session || a.Session.Epoch != 1 || !again.Until.After(a.Until) {
		t.Errorf("got %+v, then %+v", a, again)
	}
	_, err := f.Claim(t.Context(), listener.ClaimRequest{Ref: l.Ref, Holder: "b"})
	wantFault(t, err, fault.Conflict, "Another process holds the session", l.Listener)
	f.clock.Pass(31 * time.Second)
	b := f.claim(t, l, "b")
	if b.Session.Epoch != 2 {
		t.Errorf("got %+v", b)
	}
	f.wantFenced(t, l, a.Session)
	f.clock.Pass(31 * time.Second)
	if again := f.claim(t, l, "b"); again.Session != b.Session {
		t.Errorf("a session that ran out, and that nobody took, became %+v", again.Session)
	}
}

// wantFenced tries every call with a session that is over.
func (f *fixture) wantFenced(t *testing.T, l listener.Listener, over listener.Session) {
	t.Helper()
	before := f.get(t, l.Ref)
	_, err := f.Heartbeat(t.Context(), over, "9")
	wantFault(t, err, fault.Conflict, "is over")
	_, err = f.Releases(t.Context(), over, "")
	wantFault(t, err, fault.Conflict, "is over")
	wantFault(t, f.Report(t.Context(), over, on(listener.Work{Ref: f.newRelease(l).Ref, Order: unknown}, 1, compute.Absent)), fault.Conflict, "is over")
	check.Must(t, f.EndSession(t.Context(), over))
	if diff := cmp.Diff(before, f.get(t, l.Ref), cmpopts.IgnoreUnexported(listener.Listener{})); diff != "" {
		t.Errorf("a session that is over changed its listener (-before +after):\n%s", diff)
	}
}

func TestHeartbeatsAreSeen(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	l := f.create(t, request("cluster", "agents"))
	s := f.claim(t, l, "a").Session
	seen := f.get(t, l.Ref)
	if !seen.Online(f.clock.Now()) || !seen.Updated.Equal(l.Updated) || seen.Version != nil {
		t.Errorf("got %+v", seen)
	}
	for range 4 {
		f.clock.Pass(25 * time.Second)
		until, err := f.Heartbeat(t.Context(), s, "1.2")
		if err != nil || until.Sub(f.clock.Now()).Round(time.Second) != 30*time.Second {
			t.Errorf("got %v, %v", until, err)
		}
	}
	later := f.get(t, l.Ref)
	if later.LastSeen.Sub(seen.LastSeen) < 100*time.Second || *later.Version != "1.2" || !later.Updated.Equal(l.Updated) {
		t.Errorf("got %+v", later)
	}
	_, err := f.Heartbeat(t.Context(), s, "")
	check.Must(t, err)
	_, err = f.Claim(t.Context(), listener.ClaimRequest{Ref: l.Ref, Holder: "a", Version: "1.3"})
	check.Must(t, err)
	if got := f.get(t, l.Ref); *got.Version != "1.3" {
		t.Errorf("got version %v", *got.Version)
	}
	f.clock.Pass(time.Minute)
	if f.get(t, l.Ref).Online(f.clock.Now()) {
		t.Error("a listener that is away is online")
	}
	_, err = f.Heartbeat(t.Context(), s, "")
	check.Must(t, err) // no process has taken its place
	check.Must(t, f.EndSession(t.Context(), s))
	if got := f.get(t, l.Ref); got.Online(f.clock.Now()) {
		t.Error("a listener that left is online")
	}
	_, err = f.Heartbeat(t.Context(), s, "")
	wantFault(t, err, fault.Conflict)
	if next := f.claim(t, l, "a").Session; next.Epoch != s.Epoch+1 {
		t.Errorf("after it left, the same process got %+v", next)
	}
}

func TestAStandbyTakesOverWhenTheOtherLeaves(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	l := f.create(t, request("cluster", "agents"))
	a := f.claim(t, l, "a").Session
	f.apply(t, f.newRelease(l))
	claimed := make(chan listener.Claim, 1)
	go func() {
		c, err := f.Claim(patience(t), listener.ClaimRequest{Ref: l.Ref, Holder: "b", Wait: listener.MaxWait})
		if err != nil {
			t.Error(err)
		}
		claimed <- c
	}()
	_, err := f.Heartbeat(t.Context(), a, "") // wakes it in vain
	check.Must(t, err)
	check.Must(t, f.EndSession(t.Context(), a))
	if c := <-claimed; c.Session.Epoch != 2 || len(c.Work) != 1 {
		t.Errorf("got %+v", c)
	}
}

func TestCallersWithoutAName(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	l := f.create(t, request("cluster", "agents"))
	s := f.claim(t, l, "a").Session
	check.Must(t, f.EndSession(t.Context(), s)) // its holder is "" from now on
	for _, holder := range []string{"", strings.Repeat("x", 129), "a\nb"} {
		bad := listener.Session{Ref: l.Ref, Holder: holder, Epoch: s.Epoch}
		_, err := f.Claim(t.Context(), listener.ClaimRequest{Ref: l.Ref, Holder: holder})
		wantFault(t, err, fault.Invalid, "holder must have")
		_, err = f.Heartbeat(t.Context(), bad, "")
		wantFault(t, err, fault.Invalid)
		wantFault(t, f.Report(t.Context(), bad, listener.Report{}), fault.Invalid)
		wantFault(t, f.EndSession(t.Context(), bad), fault.Invalid)
		_, err = f.Releases(t.Context(), bad, "")
		wantFault(t, err, fault.Invalid)
	}
	_, err := f.Claim(t.Context(), listener.ClaimRequest{Ref: l.Ref, Holder: "a", Version: strings.Repeat("1", 256)})
	wantFault(t, err, fault.Invalid, "version must have")
}

// TestTwoProcessesRace: many processes try to begin the first session at once.
func TestTwoProcessesRace(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	l := f.create(t, request("cluster", "agents"))
	for range 5 {
		f.apply(t, f.newRelease(l))
	}
	const racers = 8
	claims, errs := make(chan listener.Claim, racers), make(chan error, racers)
	for i := range racers {
		go func() {
			c, err := f.Claim(t.Context(), listener.ClaimRequest{Ref: l.Ref, Holder: string(rune('a' + i))})
			claims <- c
			errs <- err
		}()
	}
	won, work := 0, 0
	for range racers {
		if err := <-errs; err == nil {
			won++
		} else {
			wantFault(t, err, fault.Conflict)
		}
		work += len((<-claims).Work)
	}
	if won != 1 || work != 5 {
		t.Errorf("%d processes got the listener, and %d pieces of work", won, work)
	}
}

// TestAClaimThatIsOvertaken loses its session between the beginning of the session and the
// delivery of the work.
func TestAClaimThatIsOvertaken(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	l := f.create(t, request("cluster", "agents"))
	f.apply(t, f.newRelease(l))
	slow := &tableThat{Table: f.table}
	transactions := 0
	var taken listener.Claim
	slow.beforeTransact = func() {
		if transactions++; transactions == 2 {
			f.clock.Pass(time.Minute)
			taken = f.claim(t, l, "b")
		}
	}
	config := f.config
	config.Table = slow
	c, err := listener.NewStore(config).Claim(t.Context(), listener.ClaimRequest{Ref: l.Ref, Holder: "a"})
	wantFault(t, err, fault.Conflict, "epoch 1", "is over")
	if len(c.Work) != 0 {
		t.Errorf("it was given %+v", c.Work)
	}
	one(t, taken)
}

// TestAClaimMeetsANewOrder changes the order between the query for tasks and their delivery.
func TestAClaimMeetsANewOrder(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	l := f.create(t, request("cluster", "agents"))
	r := f.newRelease(l)
	f.apply(t, r)
	f.claim(t, l, "a")
	f.clock.Pass(time.Minute)
	slow := &tableThat{Table: f.table}
	transactions := 0
	slow.beforeTransact = func() {
		if transactions++; transactions == 2 {
			f.remove(t, r)
		}
	}
	config := f.config
	config.Table = slow
	c, err := listener.NewStore(config).Claim(t.Context(), listener.ClaimRequest{Ref: l.Ref, Holder: "a"})
	check.Must(t, err)
	if w := one(t, c); w.Verb != listener.Remove || w.Release != nil {
		t.Errorf("got %+v", w)
	}
}

// during returns a store whose next transaction is preceded by what happens meanwhile.
func (f *fixture) during(happens func()) *listener.Store {
	slow := &tableThat{Table: f.table}
	slow.beforeTransact = func() {
		slow.beforeTransact = nil
		happens()
	}
	config := f.config
	config.Table = slow
	return listener.NewStore(config)
}

// TestARemovalMeetsAClaim: the listener is given the release between the read and the write of the
// removal, so it must be told to remove the release.
func TestARemovalMeetsAClaim(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	l := f.create(t, request("cluster", "agents"))
	r := f.newRelease(l)
	f.apply(t, r)
	s := f.during(func() { one(t, f.claim(t, l, "a")) })
	check.Must(t, s.Target(nil).Remove(t.Context(), r.Ref))
	if w := one(t, f.claim(t, l, "a")); w.Verb != listener.Remove {
		t.Errorf("got %+v", w)
	}
}

// TestAReportMeetsARemoval: the removal is ordered between the read and the write of the report.
func TestAReportMeetsARemoval(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	l := f.create(t, request("cluster", "agents"))
	r := f.newRelease(l)
	f.apply(t, r)
	c := f.claim(t, l, "a")
	err := f.during(func() { f.remove(t, r) }).Report(t.Context(), c.Session, on(one(t, c), 1, compute.Healthy))
	wantFault(t, err, fault.Conflict, "not the present order", r.Revision)
	f.want(t, r, compute.Absent, "")
	if w := one(t, f.claim(t, l, "a")); w.Verb != listener.Remove {
		t.Errorf("got %+v", w)
	}
}

// TestAnAbsenceMeetsANewOrder: the release is ordered again between the read and the write of the
// report that it is gone.
func TestAnAbsenceMeetsANewOrder(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	l := f.create(t, request("cluster", "agents"))
	r := f.newRelease(l)
	f.apply(t, r)
	f.claim(t, l, "a")
	f.remove(t, r)
	c := f.claim(t, l, "a")
	err := f.during(func() { f.apply(t, r) }).Report(t.Context(), c.Session, on(one(t, c), 1, compute.Absent))
	wantFault(t, err, fault.Conflict, "not the present order", r.Revision)
	if w := one(t, f.claim(t, l, "a")); w.Verb != listener.Apply || w.Revision != r.Revision {
		t.Errorf("got %+v", w)
	}
}
