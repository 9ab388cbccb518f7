package listener_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/control/listener"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/test/check"
)

// findings returns the codes of a diagnosis that are not OK, with their messages.
func (f *fixture) findings(t *testing.T, ref listener.Ref, want ...listener.Code) (listener.Diagnosis, map[listener.Code]string) {
	t.Helper()
	d, err := f.Diagnose(t.Context(), ref)
	check.Must(t, err)
	var codes []listener.Code
	words := map[listener.Code]string{}
	for _, c := range d.Checks {
		if c.Message == "" {
			t.Errorf("%s says nothing", c.Code)
		}
		if !c.OK {
			codes, words[c.Code] = append(codes, c.Code), c.Message
		}
	}
	if diff := cmp.Diff(want, codes); diff != "" {
		t.Errorf("what is wrong (-want +got):\n%s", diff)
	}
	return d, words
}

// wantWords checks the message of a finding.
func wantWords(t *testing.T, got, want string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("words (-want +got):\n%s", diff)
	}
}

// TestAListenerIsDiagnosed: a listener gets everything wrong, one step after the other, and
// corrects it.
func TestAListenerIsDiagnosed(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	l := f.create(t, request("cluster"))
	d, words := f.findings(t, l.Ref, listener.CheckCalled, listener.CheckOnline, listener.CheckNamespaces)
	if d.Session != nil || len(d.Orders)+len(d.Failures)+len(d.Misplaced) != 0 {
		t.Errorf("got %+v", d)
	}
	wantWords(t, words[listener.CheckOnline], "No process holds the listener's session; the listener has never called.")
	_, err := f.Patch(t.Context(), l.Ref, listener.Patch{K8sNamespaces: &[]string{"agents"}})
	check.Must(t, err)

	// An order is not late at once.
	r, second := f.newRelease(l), f.newRelease(l)
	f.apply(t, r)
	f.apply(t, second)
	f.findings(t, l.Ref, listener.CheckCalled, listener.CheckOnline)
	f.clock.Pass(31 * time.Second)
	d, words = f.findings(t, l.Ref, listener.CheckCalled, listener.CheckOnline, listener.CheckFetched)
	if len(d.Orders) != 2 || d.Orders[0].Ref != r.Ref || d.Orders[0].Fetched || d.Orders[0].Verb != listener.Apply {
		t.Errorf("got orders %+v", d.Orders)
	}
	since := clock.Format(d.Orders[0].Since)
	if !strings.HasPrefix(since, "2026-03-01T12:00:00.0") {
		t.Errorf("the oldest order is of %s", since)
	}
	wantWords(t, words[listener.CheckFetched], "Orders that wait for the listener to fetch them: 2, the oldest since "+since+". It has to call claim, again and again.")

	c := f.claim(t, l, "a")
	d, _ = f.findings(t, l.Ref)
	if d.Session == nil || *d.Session != c.Session || !d.Until.Equal(c.Until) || !d.Orders[0].Fetched {
		t.Errorf("got session %+v of %+v", d.Session, d)
	}
	f.clock.Pass(16 * time.Minute)
	until := d.Until
	_, words = f.findings(t, l.Ref, listener.CheckOnline, listener.CheckSettled)
	wantWords(t, words[listener.CheckOnline], `The session of the process "a" ended at `+clock.Format(until)+
		", as it was not renewed; the listener called last at "+clock.Format(d.LastSeen)+". See whether it runs and reaches this server.")
	wantWords(t, words[listener.CheckSettled], "Orders that were fetched, and of which nothing has come for more than 15m0s: 2. The oldest, to apply revision ID "+r.Revision+
		", is of "+since+". See what the listener says about it.")

	c = f.claim(t, l, "b")
	for _, w := range c.Work {
		state := compute.Healthy
		if w.Ref == r.Ref {
			state = compute.Failed
		}
		f.report(t, c.Session, on(w, 1, state))
	}
	d, words = f.findings(t, l.Ref, listener.CheckHealthy)
	if len(d.Orders) != 0 || len(d.Failures) != 1 || d.Failures[0].Ref != r.Ref || d.Failures[0].Reason != "IMAGE_UNAVAILABLE" || d.Failures[0].Namespace != "agents" ||
		d.Failures[0].Message != "there is no such image" || d.Failures[0].At.IsZero() {
		t.Errorf("got %+v", d)
	}
	wantWords(t, words[listener.CheckHealthy], "Releases that have failed: 1, such as revision ID "+r.Revision+" of deployment ID "+r.Deployment+" at "+
		clock.Format(d.Failures[0].At)+": IMAGE_UNAVAILABLE. Correct what the reason says, then deploy again.")

	// Nothing removes a namespace that is in use, so such a deployment is from an earlier
	// time.
	f.remove(t, r)
	for _, w := range f.claim(t, l, "b").Work {
		f.report(t, c.Session, on(w, 2, compute.Absent))
	}
	f.findings(t, l.Ref)
	for namespace, deployment := range map[string]string{"agents": r.Deployment, "gone": second.Deployment} {
		check.Must(t, f.table.Transact(t.Context(), table.Put{Item: table.Item{Key: keys.ListenerUse(workspace, l.Listener, namespace, deployment)}}))
	}
	d, words = f.findings(t, l.Ref, listener.CheckPlaces)
	if diff := cmp.Diff([]listener.Misplaced{{Deployment: second.Deployment, Namespace: "gone"}}, d.Misplaced); diff != "" {
		t.Errorf("misplaced (-want +got):\n%s", diff)
	}
	wantWords(t, words[listener.CheckPlaces], "Deployments in namespaces that the listener does not have: 1, such as deployment ID "+second.Deployment+
		" in gone. Add the namespace to compute_config.k8s_namespaces, or create the deployment again.")

	check.Must(t, f.EndSession(t.Context(), c.Session))
	if d, _ := f.findings(t, l.Ref, listener.CheckOnline, listener.CheckPlaces); d.Session != nil {
		t.Errorf("the session that was ended is %+v", d.Session)
	}
	for _, ref := range []listener.Ref{{Workspace: other, Listener: l.Listener}, {Workspace: workspace, Listener: unknown}} {
		_, err := f.Diagnose(t.Context(), ref)
		wantFault(t, err, fault.NotFound)
	}
}
