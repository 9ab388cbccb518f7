package listener_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/control/listener"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/test/check"
)

func TestReportsThatComeTwiceOrLate(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	l := f.create(t, request("cluster", "agents"))
	r := f.newRelease(l)
	f.apply(t, r)
	a := f.claim(t, l, "a")
	w := one(t, a)
	late := on(w, 1, compute.Progressing)
	late.Message = "late"
	f.report(t, a.Session, on(w, 2, compute.Healthy))
	for range 2 {
		f.report(t, a.Session, late)
		f.report(t, a.Session, on(w, 2, compute.Failed))
		f.want(t, r, compute.Healthy, "")
	}
	// A zombie's repetition is refused even when it would change nothing.
	check.Must(t, f.EndSession(t.Context(), a.Session))
	b := f.claim(t, l, "b")
	wantFault(t, f.Report(t.Context(), a.Session, late), fault.Conflict, "is over")
	f.report(t, b.Session, on(w, 1, compute.Progressing))
	f.want(t, r, compute.Progressing, "")
	wantFault(t, f.Report(t.Context(), a.Session, on(w, 9, compute.Healthy)), fault.Conflict, "is over")

	// The release was removed and applied again: no report about its first life counts for the
	// second.
	f.remove(t, r)
	gone := one(t, f.claim(t, l, "b"))
	f.report(t, b.Session, on(gone, 2, compute.Absent))
	f.apply(t, r)
	wantFault(t, f.Report(t.Context(), b.Session, on(w, 99, compute.Healthy)), fault.Conflict)
	wantFault(t, f.Report(t.Context(), b.Session, on(gone, 99, compute.Progressing)), fault.Conflict)
	wantFault(t, f.Report(t.Context(), b.Session, on(gone, 99, compute.Absent)), fault.Conflict)
	f.want(t, r, compute.Progressing, "", "it waits")
}

func TestBellAndReportsWakeThoseWhoWait(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	l := f.create(t, request("cluster", "agents"))
	r := f.newRelease(l)
	none(t, f.claim(t, l, "a"))
	worked := make(chan error, 1)
	go func() {
		for i, state := range []compute.State{compute.Healthy, compute.Absent} {
			c, err := f.Claim(patience(t), listener.ClaimRequest{Ref: l.Ref, Holder: "a", Wait: listener.MaxWait})
			if err == nil && len(c.Work) == 1 {
				err = f.Report(patience(t), c.Session, on(c.Work[0], int64(i+1), state))
			} else if err == nil {
				err = fmt.Errorf("got %d pieces of work", len(c.Work))
			}
			if err != nil {
				worked <- err
				return
			}
		}
		worked <- nil
	}()
	f.apply(t, r)
	if s, err := f.target.Await(patience(t), r.Ref); err != nil || s.State != compute.Healthy {
		t.Errorf("got %+v, %v", s, err)
	}
	f.remove(t, r)
	check.Must(t, <-worked)
	f.wantNothingLeft(t, l, r)
}

func TestAListenerSeesItsOwnWorkOnly(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	mine, theirs := f.create(t, request("mine", "agents")), f.create(t, request("theirs", "agents"))
	r := f.newRelease(theirs)
	f.apply(t, r)
	a := f.claim(t, mine, "a")
	none(t, a)
	w := one(t, f.claim(t, theirs, "b"))
	wantFault(t, f.Report(t.Context(), a.Session, on(w, 1, compute.Healthy)), fault.Conflict)
	page, err := f.Releases(t.Context(), a.Session, "")
	if err != nil || len(page) != 0 {
		t.Errorf("got %+v, %v", page, err)
	}
	r.Placement.Listener = mine.Listener
	f.remove(t, r)
	if err := f.target.Apply(t.Context(), r); err == nil {
		t.Error("a release that another listener removes was applied")
	}
}

func TestReportsThatBreakRules(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	l := f.create(t, request("cluster", "agents"))
	r := f.newRelease(l)
	f.apply(t, r)
	a := f.claim(t, l, "a")
	w := one(t, a)
	public := f.config
	public.Private = nil
	f.Store = listener.NewStore(public)
	for name, c := range map[string]struct {
		state  compute.State
		change func(*listener.Report)
		words  string
	}{
		"a failure without why": {compute.Failed, func(r *listener.Report) { r.Reason = "" }, "a reason and a message"},
		"a failure, no words":   {compute.Failed, func(r *listener.Report) { r.Message = "" }, "a reason and a message"},
		"healthy and absent":    {compute.Absent, nil, "it cannot be absent"},
		"no URL":                {compute.Healthy, func(r *listener.Report) { r.URL = "" }, "url must be"},
		"a URL of no host":      {compute.Healthy, func(r *listener.Report) { r.URL = "http:///x" }, "url must be"},
		"a file":                {compute.Healthy, func(r *listener.Report) { r.URL = "file:///etc/passwd" }, "url must be"},
		"a URL with a password": {compute.Healthy, func(r *listener.Report) { r.URL = "http://a:b@agents.test" }, "url must be"},
		"a URL with a query":    {compute.Healthy, func(r *listener.Report) { r.URL = "http://agents.test/?" }, "url must be"},
		"a URL with a fragment": {compute.Healthy, func(r *listener.Report) { r.URL = "http://agents.test/#" }, "url must be"},
		"plain http":            {compute.Healthy, func(r *listener.Report) { r.URL = "http://agents.test" }, "url must be an https URL"},
		"metadata of a cloud":   {compute.Healthy, func(r *listener.Report) { r.URL = "https://169.254.169.254/latest" }, "url must not name a private address"},
		"the server's machine":  {compute.Healthy, func(r *listener.Report) { r.URL = "http://127.0.0.1:8080/d/x" }, "url must not name a private address"},
		"a private network":     {compute.Healthy, func(r *listener.Report) { r.URL = "https://[fd00::1]" }, "url must not name a private address"},
	} {
		report := on(w, 1, c.state)
		if c.change != nil {
			c.change(&report)
		}
		t.Log(name)
		wantFault(t, f.Report(t.Context(), a.Session, report), fault.Invalid, c.words)
	}
	f.want(t, r, compute.Progressing, "")
	long := on(w, 1, compute.Failed)
	long.Message = strings.Repeat("ü", 20<<10) + "\xff the end"
	f.report(t, a.Session, long)
	if s := f.status(t, r); len(s.Message) > 16<<10 || !strings.HasSuffix(s.Message, "ü\uFFFD the end") || !strings.HasPrefix(s.Message, "ü") {
		t.Errorf("got %d bytes from %q to %q", len(s.Message), s.Message[:4], s.Message[len(s.Message)-20:])
	}
}
