package listener_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/control/listener"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/test/check"
)

func TestAListenerIsReadBack(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	r := request("cluster/eu 1", "agents", "more")
	r.Version = new("0.1")
	made := f.create(t, r)
	got := f.get(t, made.Ref)
	if diff := cmp.Diff(made, got, cmpopts.IgnoreUnexported(listener.Listener{})); diff != "" {
		t.Errorf("created and read (-want +got):\n%s", diff)
	}
	if *got.Version != "0.1" || !got.Has("more") || got.Has("mor") || !got.LastSeen.IsZero() || got.Online(f.clock.Now()) {
		t.Errorf("got %+v", got)
	}
	if bare := f.get(t, f.create(t, request("bare")).Ref); bare.Version != nil || bare.ComputeConfig.K8sNamespaces != nil {
		t.Errorf("got %+v", bare)
	}
}

func TestAComputeIDHasOneListener(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	first := f.create(t, request("cluster"))
	_, err := f.Create(t.Context(), request("cluster"))
	wantFault(t, err, fault.Conflict, `"cluster"`)
	elsewhere := request("cluster")
	elsewhere.Workspace = other
	f.create(t, elsewhere)
	check.Must(t, f.Delete(t.Context(), first.Ref, nil))
	f.create(t, request("cluster"))
}

func TestAListenerBelongsToItsWorkspace(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	l := f.create(t, request("cluster", "agents"))
	foreign := listener.Ref{Workspace: other, Listener: l.Listener}
	_, err := f.Get(t.Context(), foreign)
	wantFault(t, err, fault.NotFound, "Listener ID "+l.Listener+" not found.")
	_, err = f.Patch(t.Context(), foreign, listener.Patch{Version: new("2")})
	wantFault(t, err, fault.NotFound)
	wantFault(t, f.Delete(t.Context(), foreign, nil), fault.NotFound)
	_, err = f.Claim(t.Context(), listener.ClaimRequest{Ref: foreign, Holder: "a"})
	wantFault(t, err, fault.NotFound)
	_, err = f.Heartbeat(t.Context(), listener.Session{Ref: foreign, Holder: "a", Epoch: 1}, "")
	wantFault(t, err, fault.NotFound)
	absent := listener.Ref{Workspace: workspace, Listener: unknown}
	_, err = f.Get(t.Context(), absent)
	wantFault(t, err, fault.NotFound)
	_, err = f.Claim(t.Context(), listener.ClaimRequest{Ref: absent, Holder: "a"})
	wantFault(t, err, fault.NotFound)
}

func TestRequestsThatBreakRules(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	many := make([]string, 101)
	for i := range many {
		many[i] = fmt.Sprint("n", i)
	}
	for name, c := range map[string]struct {
		change func(*listener.NewListener)
		words  string
	}{
		"no compute id":             {func(r *listener.NewListener) { r.ComputeID = "" }, "compute_id must have 1 to 255 bytes"},
		"a long compute id":         {func(r *listener.NewListener) { r.ComputeID = strings.Repeat("x", 256) }, "compute_id must have"},
		"a compute id of two lines": {func(r *listener.NewListener) { r.ComputeID = "a\nb" }, "compute_id must have"},
		"a version of no text":      {func(r *listener.NewListener) { r.Version = new("") }, "version must have"},
		"an uppercase namespace":    {func(r *listener.NewListener) { r.ComputeConfig.K8sNamespaces = []string{"a", "B"} }, `compute_config.k8s_namespaces[1] "B" is not`},
		"a dotted namespace":        {func(r *listener.NewListener) { r.ComputeConfig.K8sNamespaces = []string{"a.b"} }, `"a.b" is not`},
		"an empty namespace":        {func(r *listener.NewListener) { r.ComputeConfig.K8sNamespaces = []string{""} }, `"" is not`},
		"a namespace with - first":  {func(r *listener.NewListener) { r.ComputeConfig.K8sNamespaces = []string{"-a"} }, `"-a" is not`},
		"a namespace with - last":   {func(r *listener.NewListener) { r.ComputeConfig.K8sNamespaces = []string{"a-"} }, `"a-" is not`},
		"a long namespace":          {func(r *listener.NewListener) { r.ComputeConfig.K8sNamespaces = []string{strings.Repeat("a", 64)} }, "is not the name"},
		"a namespace twice":         {func(r *listener.NewListener) { r.ComputeConfig.K8sNamespaces = []string{"a", "b", "a"} }, "[2] a is given twice"},
		"too many namespaces":       {func(r *listener.NewListener) { r.ComputeConfig.K8sNamespaces = many }, "100 entries at most, not 101"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := request(name)
			c.change(&r)
			_, err := f.Create(t.Context(), r)
			wantFault(t, err, fault.Invalid, c.words)
		})
	}
	edge := request(strings.Repeat("#", 255), strings.Repeat("a", 63), "0", "a-1")
	f.create(t, edge)
}

func TestListsArePagedNewestFirst(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	var made []string
	for i := range 5 {
		made = append(made, f.create(t, request(fmt.Sprint(i))).ComputeID)
	}
	gone := f.create(t, request("gone"))
	check.Must(t, f.Delete(t.Context(), gone.Ref, nil))
	middle := f.list(t, record.Window{Limit: 2, Offset: 1}).Cursor
	for _, c := range []struct {
		window record.Window
		want   []string
		more   bool
	}{
		{record.Window{Limit: 2}, []string{made[4], made[3]}, true},
		{record.Window{Offset: 2, Limit: 2}, []string{made[2], made[1]}, true},
		{record.Window{Offset: 3, Limit: 2}, []string{made[1], made[0]}, false},
		{record.Window{Offset: 4, Limit: 2}, []string{made[0]}, false},
		{record.Window{Offset: 5, Limit: 2}, nil, false},
		{record.Window{Cursor: middle, Offset: 4, Limit: 2}, []string{made[1], made[0]}, false},
		{record.Window{Cursor: middle, Limit: 1}, []string{made[1]}, true},
	} {
		found := f.list(t, c.window)
		var got []string
		for _, l := range found.Items {
			got = append(got, l.ComputeID)
		}
		if diff := cmp.Diff(c.want, got); diff != "" || found.Items == nil || (found.Cursor != "") != c.more {
			t.Errorf("%+v, cursor %q (-want +got):\n%s", c.window, found.Cursor, diff)
		}
	}
	if found, err := f.List(t.Context(), other, record.Window{Limit: 9}); err != nil || len(found.Items) != 0 {
		t.Errorf("another workspace has %v (%v)", found, err)
	}
	_, err := f.List(t.Context(), other, record.Window{Limit: 2, Cursor: middle})
	wantFault(t, err, fault.Unprocessable, "")
}

func (f *fixture) list(t *testing.T, window record.Window) record.Page[listener.Listener] {
	t.Helper()
	found, err := f.List(t.Context(), workspace, window)
	check.Must(t, err)
	return found
}

func TestAPatchChangesWhatItNames(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	l := f.create(t, request("cluster", "a", "b"))
	for _, c := range []struct {
		name       string
		patch      listener.Patch
		version    string
		namespaces []string
		changes    bool
	}{
		{"nothing", listener.Patch{}, "", []string{"a", "b"}, false},
		{"what cannot be changed, as it is", listener.Patch{ComputeType: new("k8s"), ComputeID: new("cluster")}, "", []string{"a", "b"}, false},
		{"the version", listener.Patch{Version: new("2")}, "2", []string{"a", "b"}, true},
		{"the same again", listener.Patch{Version: new("2"), K8sNamespaces: &[]string{"a", "b"}}, "2", []string{"a", "b"}, false},
		{"the namespaces", listener.Patch{K8sNamespaces: &[]string{"c"}}, "2", []string{"c"}, true},
		{"no namespaces", listener.Patch{K8sNamespaces: &[]string{}}, "2", nil, true},
	} {
		before := f.get(t, l.Ref)
		got, err := f.Patch(t.Context(), l.Ref, c.patch)
		check.Must(t, err)
		for _, l := range []listener.Listener{got, f.get(t, l.Ref)} {
			version := ""
			if l.Version != nil {
				version = *l.Version
			}
			if diff := cmp.Diff(c.namespaces, l.ComputeConfig.K8sNamespaces, cmpopts.EquateEmpty()); version != c.version || diff != "" {
				t.Errorf("%s: got version %q and namespaces %v", c.name, version, l.ComputeConfig.K8sNamespaces)
			}
			if l.Updated.After(before.Updated) != c.changes {
				t.Errorf("%s: updated at %v, before at %v", c.name, l.Updated, before.Updated)
			}
		}
	}
	for words, patch := range map[string]listener.Patch{
		"compute_type cannot be changed. compute_id cannot be changed.": {ComputeType: new("x"), ComputeID: new("y"), Version: new("3")},
		`"A" is not the name`: {K8sNamespaces: &[]string{"A"}, Version: new("3")},
	} {
		_, err := f.Patch(t.Context(), l.Ref, patch)
		wantFault(t, err, fault.Invalid, words)
	}
	if got := f.get(t, l.Ref); *got.Version != "2" {
		t.Errorf("a patch that broke a rule changed the version to %s", *got.Version)
	}
	_, err := f.Patch(t.Context(), listener.Ref{Workspace: workspace, Listener: unknown}, listener.Patch{})
	wantFault(t, err, fault.NotFound)
}

func TestAListenerThatIsUsedStays(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	l := f.create(t, request("cluster", "a", "a-b"))
	const deployment = "0197a000-0000-7000-8000-0000000000d1"
	namespace, err := f.FindNamespace(t.Context(), workspace, l.Listener, "a")
	check.Must(t, err)
	before := f.get(t, l.Ref)
	check.Must(t, f.table.Transact(t.Context(), namespace.AddUse(deployment, f.clock.Now())...))
	if got := f.get(t, l.Ref); !got.Updated.Equal(before.Updated) {
		t.Error("a deployment that came changed when the listener was updated")
	}
	wantFault(t, f.Delete(t.Context(), l.Ref, nil), fault.Conflict, "is used by deployment ID "+deployment)
	_, err = f.Patch(t.Context(), l.Ref, listener.Patch{K8sNamespaces: &[]string{"a-b"}})
	wantFault(t, err, fault.Conflict, "deployment ID "+deployment, "namespace a.")
	_, err = f.Patch(t.Context(), l.Ref, listener.Patch{K8sNamespaces: &[]string{"new", "a"}})
	check.Must(t, err)
	check.Must(t, f.table.Transact(t.Context(), listener.RemoveUse(l.Ref, "a", deployment)))
	_, err = f.Patch(t.Context(), l.Ref, listener.Patch{K8sNamespaces: &[]string{"new"}})
	check.Must(t, err)
	check.Must(t, f.Delete(t.Context(), l.Ref, nil))
	_, err = f.Get(t.Context(), l.Ref)
	wantFault(t, err, fault.NotFound)
	wantFault(t, f.Delete(t.Context(), l.Ref, nil), fault.NotFound)
}

// TestAUseAndAChangeMeet: a deployment and a change of its listener both read the other's side
// before either of them writes.
func TestAUseAndAChangeMeet(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*fixture, listener.Ref) error{
		"patch": func(f *fixture, ref listener.Ref) error {
			_, err := f.Patch(t.Context(), ref, listener.Patch{K8sNamespaces: &[]string{"b"}})
			return err
		},
		"delete": func(f *fixture, ref listener.Ref) error { return f.Delete(t.Context(), ref, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setUp(t)
			l := f.create(t, request("cluster", "a", "b"))
			late, err := f.FindNamespace(t.Context(), workspace, l.Listener, "a")
			check.Must(t, err)
			check.Must(t, change(f, l.Ref))
			if err := f.table.Transact(t.Context(), late.AddUse(unknown, f.clock.Now())...); !isConditionFailed(err) {
				t.Errorf("a deployment came to a listener that had changed: %v", err)
			}

			// The other order: the change has read the listener, and then the deployment is
			// added.
			l = f.create(t, request("another", "a", "b"))
			early, err := f.FindNamespace(t.Context(), workspace, l.Listener, "a")
			check.Must(t, err)
			slow := &tableThat{Table: f.table}
			slow.beforeTransact = func() {
				slow.beforeTransact = nil
				check.Must(t, f.table.Transact(t.Context(), early.AddUse(unknown, f.clock.Now())...))
			}
			config := f.config
			config.Table = slow
			g := *f
			g.Store = listener.NewStore(config)
			wantFault(t, change(&g, l.Ref), fault.Conflict, unknown)
		})
	}
}

func TestCheckNamesTheField(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	l, single, bare := f.create(t, request("cluster", "a", "b")), f.create(t, request("single", "only")), f.create(t, request("bare"))
	for _, c := range []struct{ listener, namespace, words, got string }{
		{unknown, "a", "source_config.listener_id: listener ID " + unknown + " not found.", ""},
		{l.Listener, "c", `source_config.listener_config.k8s_namespace: "c" is not a namespace of listener ID ` + l.Listener + ", which has a, b.", ""},
		{l.Listener, "", "source_config.listener_config.k8s_namespace must name one of the namespaces of listener ID " + l.Listener + ": a, b.", ""},
		{bare.Listener, "", "source_config.listener_id: listener ID " + bare.Listener + " has no namespaces to run in.", ""},
		{bare.Listener, "a", "has no namespaces to run in.", ""},
		{l.Listener, "b", "", "b"},
		{single.Listener, "", "", "only"},
	} {
		namespace, err := f.FindNamespace(t.Context(), workspace, c.listener, c.namespace)
		if c.words != "" {
			wantFault(t, err, fault.Invalid, c.words)
		} else if err != nil || namespace.Name != c.got || namespace.Listener != c.listener || namespace.Workspace != workspace {
			t.Errorf("got %+v (%v)", namespace, err)
		}
	}
	_, err := f.FindNamespace(t.Context(), other, l.Listener, "a")
	wantFault(t, err, fault.Invalid, "not found")
}

func TestDeletingWhatHasSomethingToRemove(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	l := f.create(t, request("cluster", "agents"))
	releases := make([]compute.Release, 95) // more than fits in one transaction
	for i := range releases {
		releases[i] = f.newRelease(l)
		f.apply(t, releases[i])
	}
	for n := 0; n < len(releases); {
		n += len(f.claim(t, l, "a").Work)
	}
	for _, r := range releases {
		f.remove(t, r)
	}
	wantFault(t, f.Delete(t.Context(), l.Ref, nil), fault.Conflict, "still removes releases")
	f.clock.Pass(time.Minute) // the listener is away
	cut := &tableThat{Table: f.table}
	calls := 0
	cut.beforeTransact = func() {
		if calls++; calls == 2 {
			panic("killed")
		}
	}
	config := f.config
	config.Table = cut
	func() {
		defer func() { _ = recover() }()
		_ = listener.NewStore(config).Delete(t.Context(), l.Ref, nil)
	}()
	_, err := f.Get(t.Context(), l.Ref)
	wantFault(t, err, fault.NotFound)
	_, err = f.Patch(t.Context(), l.Ref, listener.Patch{Version: new("9")})
	wantFault(t, err, fault.NotFound)
	f.create(t, request("cluster")) // the name is free
	_, err = f.Claim(t.Context(), listener.ClaimRequest{Ref: l.Ref, Holder: "a"})
	wantFault(t, err, fault.NotFound)
	if err := f.target.Apply(t.Context(), f.newRelease(l)); err == nil {
		t.Error("a release was applied at a listener that is being deleted")
	}
	check.Must(t, f.Delete(t.Context(), l.Ref, nil))
	wantFault(t, f.Delete(t.Context(), l.Ref, nil), fault.NotFound)
	f.wantNothingLeft(t, l, releases...)
}

// TestChangesForAnotherVersion requests changes of a listener that has been changed since.
func TestChangesForAnotherVersion(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	l := f.create(t, request("cluster", "a"))
	seen := []int64{l.ChangeCount()}
	f.claim(t, l, "a") // this is not a change
	changed, err := f.Patch(t.Context(), l.Ref, listener.Patch{K8sNamespaces: &[]string{"b"}, Expect: seen})
	check.Must(t, err)
	if got := f.get(t, l.Ref).ChangeCount(); got != changed.ChangeCount() || got == seen[0] {
		t.Errorf("it has version %d, Patch said %d", got, changed.ChangeCount())
	}
	_, err = f.Patch(t.Context(), l.Ref, listener.Patch{Version: new("2"), Expect: seen})
	wantFault(t, err, fault.Stale, l.Listener)
	wantFault(t, f.Delete(t.Context(), l.Ref, seen), fault.Stale, l.Listener)
	check.Must(t, f.EndSession(t.Context(), f.claim(t, l, "a").Session))
	check.Must(t, f.Delete(t.Context(), l.Ref, []int64{seen[0], changed.ChangeCount()}))
}
