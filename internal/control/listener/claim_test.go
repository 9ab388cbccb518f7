package listener_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/control/listener"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

func TestTheLifeOfARelease(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	l := f.create(t, request("cluster", "agents"))
	r := f.newRelease(l)
	f.want(t, r, compute.Absent, "", "no listener runs it")
	f.apply(t, r)
	f.want(t, r, compute.Progressing, "", "it waits for its listener to fetch it; the listener has never called")

	c := f.claim(t, l, "a")
	w := one(t, c)
	if diff := cmp.Diff(r, *w.Release); diff != "" {
		t.Errorf("release (-applied +claimed):\n%s", diff)
	}
	if w.Verb != listener.Apply || w.Ref != r.Ref || w.Namespace != "agents" || w.Labels["slipway.run/revision-id"] != r.Revision || w.Labels["slipway.run/deployment-id"] != r.Deployment {
		t.Errorf("got %+v", w)
	}
	f.want(t, r, compute.Progressing, "", "its listener works on it")
	none(t, f.claim(t, l, "a"))

	progress := on(w, 1, compute.Progressing)
	progress.Message = "1 of 2 replicas run"
	f.report(t, c.Session, progress)
	f.want(t, r, compute.Progressing, "", "1 of 2 replicas run")
	f.report(t, c.Session, on(w, 2, compute.Healthy))
	f.want(t, r, compute.Healthy, "")
	endpoint, done, err := f.target.Acquire(t.Context(), r.Ref)
	check.Must(t, err)
	done()
	if endpoint.Private == nil {
		t.Error("the connections to the agent are not guarded")
	}
	endpoint.Private = nil
	if want := (compute.Endpoint{URL: agentURL, Token: r.Token, Revision: r.Revision}); endpoint != want {
		t.Errorf("got %+v, want %+v", endpoint, want)
	}
	f.clock.Pass(time.Hour) // the release is not ordered again, and the listener is away
	f.want(t, r, compute.Healthy, "")
	none(t, f.claim(t, l, "a"))
	f.apply(t, r)
	none(t, f.claim(t, l, "a"))

	// The release crashes, and recovers.
	f.report(t, c.Session, on(w, 3, compute.Progressing))
	f.clock.Pass(time.Hour)
	f.want(t, r, compute.Progressing, "")
	f.report(t, c.Session, on(w, 4, compute.Healthy))
	f.want(t, r, compute.Healthy, "")
	f.report(t, c.Session, on(w, 5, compute.Failed))
	f.want(t, r, compute.Failed, "IMAGE_UNAVAILABLE", "there is no such image")

	f.remove(t, r)
	f.remove(t, r)
	f.want(t, r, compute.Absent, "", "it is being stopped")
	gone := one(t, f.claim(t, l, "a"))
	if gone.Verb != listener.Remove || gone.Release != nil || gone.Namespace != "agents" || gone.Ref != r.Ref || gone.Order <= w.Order {
		t.Errorf("got %+v", gone)
	}
	wantFault(t, f.Report(t.Context(), c.Session, on(w, 6, compute.Healthy)), fault.Conflict, w.Order)
	f.report(t, c.Session, on(gone, 7, compute.Progressing))
	f.want(t, r, compute.Absent, "", "it is being stopped")
	f.report(t, c.Session, on(gone, 8, compute.Absent))
	f.report(t, c.Session, on(gone, 8, compute.Absent))
	f.want(t, r, compute.Absent, "", "no listener runs it")
	f.wantNothingLeft(t, l, r)
	f.remove(t, r)
	check.Must(t, f.Delete(t.Context(), l.Ref, nil))
}

// TestNothingOfASecretIsStored looks at the disk before and after.
func TestNothingOfASecretIsStored(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	l := f.create(t, request("cluster", "agents"))
	r := f.newRelease(l)
	f.apply(t, r)
	a := f.claim(t, l, "a")
	f.report(t, a.Session, on(one(t, a), 1, compute.Progressing))
	for _, secret := range []string{"open-sesame", r.Token} {
		if strings.Contains(fixtures.Stored(t, f.file), secret) {
			t.Errorf("%s is in clear on the disk", secret)
		}
	}
}

func TestARemovedReleaseKeepsNoSpecification(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	l := f.create(t, request("cluster", "agents"))
	r := f.newRelease(l)
	f.apply(t, r)
	one(t, f.claim(t, l, "a"))
	f.remove(t, r)
	item, err := f.table.Get(t.Context(), keys.ListenerRelease(workspace, r.Deployment, r.Revision))
	check.Must(t, err)
	if string(item.Body) != "{}" {
		t.Errorf("%d bytes are kept", len(item.Body))
	}
}

// TestASpecificationIsBoundToItsRevision copies a specification to another deployment's
// release.
func TestASpecificationIsBoundToItsRevision(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	l := f.create(t, request("cluster", "agents"))
	good, thief := f.newRelease(l), f.newRelease(l)
	f.apply(t, good)
	f.apply(t, thief)
	item, err := f.table.Get(t.Context(), keys.ListenerRelease(workspace, good.Deployment, good.Revision))
	check.Must(t, err)
	check.Must(t, f.table.Transact(t.Context(), table.Update{Key: keys.ListenerRelease(workspace, thief.Deployment, thief.Revision), Body: item.Body}))
	if w := one(t, f.claim(t, l, "a")); w.Revision != good.Revision {
		t.Errorf("got %+v", w)
	}
	f.want(t, thief, compute.Progressing, "", "it waits")
	none(t, f.claim(t, l, "a"))
}

func TestANewOrderTakesThePlaceOfTheOneBefore(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	l := f.create(t, request("cluster", "agents"))
	r := f.newRelease(l)
	f.apply(t, r)
	a := f.claim(t, l, "a")
	first := one(t, a)
	f.remove(t, r)
	f.apply(t, r)
	f.remove(t, r)
	f.apply(t, r)
	f.want(t, r, compute.Progressing, "", "it waits")
	again := one(t, f.claim(t, l, "a"))
	if again.Verb != listener.Apply || again.Order <= first.Order || again.Release.Env["PASSWORD"] != "open-sesame" {
		t.Errorf("got %+v", again)
	}
	wantFault(t, f.Report(t.Context(), a.Session, on(first, 1, compute.Healthy)), fault.Conflict)
	f.remove(t, r)
	wantFault(t, f.Report(t.Context(), a.Session, on(again, 1, compute.Healthy)), fault.Conflict)
	w := one(t, f.claim(t, l, "a"))
	wantFault(t, f.Report(t.Context(), a.Session, on(w, 1, compute.Healthy)), fault.Invalid, "absent")
	f.report(t, a.Session, on(w, 1, compute.Absent))
	f.wantNothingLeft(t, l, r)
}

// TestOrdersSortThoughClocksDiffer: the clocks of the hosts of two orders differ by an hour.
func TestOrdersSortThoughClocksDiffer(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	l := f.create(t, request("cluster", "agents"))
	r := f.newRelease(l)
	f.apply(t, r)
	first := one(t, f.claim(t, l, "a"))
	config := f.config
	config.Now = func() time.Time { return f.clock.Now().Add(-time.Hour) }
	check.Must(t, listener.NewStore(config).Target(nil).Remove(t.Context(), r.Ref))
	if w := one(t, f.claim(t, l, "a")); w.Verb != listener.Remove || w.Order <= first.Order {
		t.Errorf("order %s does not come after %s", w.Order, first.Order)
	}
}

func TestAClaimEndsWithItsContext(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	l := f.create(t, request("cluster", "agents"))
	none(t, f.claim(t, l, "a"))
	for _, holder := range []string{"a", "b"} {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		if _, err := f.Claim(ctx, listener.ClaimRequest{Ref: l.Ref, Holder: holder, Wait: listener.MaxWait}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: got %v", holder, err)
		}
		cancel()
	}
	c, err := f.Claim(t.Context(), listener.ClaimRequest{Ref: l.Ref, Holder: "a", Wait: 20 * time.Millisecond})
	if err != nil || len(c.Work) != 0 {
		t.Errorf("got %+v, %v", c, err)
	}
}

func TestReleasesAreWhatIsToRun(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	l := f.create(t, request("cluster", "agents"))
	var want []string
	for i := range 45 {
		r := f.newRelease(l)
		f.apply(t, r)
		if i%9 == 8 {
			f.remove(t, r)
			continue
		}
		want = append(want, r.Revision)
	}
	a := f.claim(t, l, "a")
	for f.claim(t, l, "a").Work != nil {
	}
	first := a.Work[0]
	f.remove(t, compute.Release{Ref: first.Ref})
	var got []string
	for after := ""; ; {
		page, err := f.Releases(t.Context(), a.Session, after)
		check.Must(t, err)
		if len(page) == 0 {
			break
		}
		for _, w := range page {
			if w.Verb != listener.Apply || w.Release.Env["PASSWORD"] != "open-sesame" {
				t.Errorf("got %+v", w)
			}
			got = append(got, w.Revision)
		}
		after = got[len(got)-1]
	}
	if diff := cmp.Diff(want[1:], got); diff != "" {
		t.Errorf("releases (-want +got):\n%s", diff)
	}
}

func TestApplyWantsAPlace(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	l := f.create(t, request("cluster", "agents"))
	for name, change := range map[string]func(*compute.Release){
		"no listener":                             func(r *compute.Release) { r.Placement.Listener = "" },
		"an unknown listener":                     func(r *compute.Release) { r.Placement.Listener = unknown },
		"a listener that is not of the workspace": func(r *compute.Release) { r.Workspace = other },
		"no deployment":                           func(r *compute.Release) { r.Deployment = "" },
	} {
		r := f.newRelease(l)
		change(&r)
		if err := f.target.Apply(t.Context(), r); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
	none(t, f.claim(t, l, "a"))
}

// TestManyOrdersAtOnce applies and removes from many goroutines while a listener works.
func TestManyOrdersAtOnce(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	l := f.create(t, request("cluster", "agents"))
	const each = 6
	finished := make(chan error, each)
	releases := make([]compute.Release, each)
	for i := range releases {
		releases[i] = f.newRelease(l)
		go func() {
			for range 10 {
				if err := errors.Join(f.target.Apply(patience(t), releases[i]), f.target.Remove(patience(t), releases[i].Ref)); err != nil {
					finished <- err
					return
				}
			}
			finished <- nil
		}()
	}
	last := map[string]string{} // the greatest order of each revision
	number := int64(0)
	work := func() int {
		c := f.claim(t, l, "a")
		for _, w := range c.Work {
			if w.Order < last[w.Revision] {
				t.Errorf("order %s came after %s", w.Order, last[w.Revision])
			}
			last[w.Revision] = w.Order
			state := compute.Healthy
			if w.Verb == listener.Remove {
				state = compute.Absent
			}
			number++
			if err := f.Report(t.Context(), c.Session, on(w, number, state)); err != nil && !fault.Is(err, fault.Conflict) {
				t.Error(err)
			}
		}
		return len(c.Work)
	}
	for done := 0; done < each; {
		select {
		case err := <-finished:
			check.Must(t, err)
			done++
		default:
			work()
		}
	}
	for work() > 0 {
	}
	f.wantNothingLeft(t, l, releases...)
}

// TestWorkHasJSON checks the JSON that an HTTP interface will send. The agent's own
// environment is part of it.
func TestWorkHasJSON(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	l := f.create(t, request("cluster", "agents"))
	f.apply(t, f.newRelease(l))
	w := one(t, f.claim(t, l, "a"))
	encoded, err := json.Marshal(w)
	check.Must(t, err)
	var back listener.Work
	check.Must(t, json.Unmarshal(encoded, &back))
	if diff := cmp.Diff(w, back); diff != "" || !id.Valid(w.Order) {
		t.Errorf("work (-want +got):\n%s", diff)
	}
}
