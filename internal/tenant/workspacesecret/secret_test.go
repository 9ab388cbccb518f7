package workspacesecret_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/workspacesecret"
)

func TestTheLifeOfASecret(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	created := f.create("search", map[string]string{"b": "planted-1", "a.b-c_D": "planted-2", "empty": ""})
	if diff := cmp.Diff([]string{"a.b-c_D", "b", "empty"}, created.Keys); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
	read := f.get("search")
	if !slices.Equal(read.Keys, created.Keys) || !read.Created.Equal(created.Created) || read.Version() != created.Version() || !read.Has("b") || read.Has("c") {
		t.Errorf("got %+v, want %+v", read, created)
	}
	_, err := f.Create(t.Context(), ref("search"), nil)
	f.wantFault(err, fault.Conflict, `"search" already exists`)
	after, changed := f.patch("search", map[string]string{"b": "planted-3", "c": "planted-4", "empty": "", "unknown": ""})
	if diff := cmp.Diff([]string{"b", "c", "empty"}, changed); diff != "" || after.Version() != created.Version()+1 || !after.Updated.After(created.Updated) {
		t.Errorf("of version %d, changed (-want +got):\n%s", after.Version(), diff)
	}
	if diff := cmp.Diff(map[string]string{"a.b-c_D": "planted-2", "b": "planted-3", "c": "planted-4"}, f.content("search").Data); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
	if same, changed := f.patch("search", map[string]string{"b": "planted-3"}); same.Version() != after.Version() || len(changed) > 0 {
		t.Errorf("the same again: version %d, changed %v", same.Version(), changed)
	}
	item, err := f.table.Get(t.Context(), ref("search").Key())
	f.must(err)
	if stored := append(record.Encode(item.Attrs), item.Body...); bytes.Contains(stored, []byte("planted")) {
		t.Errorf("stored in clear: %s", stored)
	}
	old := []int64{created.Version()}
	_, _, err = f.Patch(t.Context(), ref("search"), workspacesecret.Patch{Expect: old})
	f.wantFault(err, fault.Stale)
	f.wantFault(f.Delete(t.Context(), ref("search"), old), fault.Stale)
	f.must(f.Delete(t.Context(), ref("search"), []int64{after.Version()}))
	for name, call := range map[string]func() error{
		"get":    func() error { _, err := f.Get(t.Context(), ref("search")); return err },
		"patch":  func() error { _, _, err := f.Patch(t.Context(), ref("search"), workspacesecret.Patch{}); return err },
		"delete": func() error { return f.Delete(t.Context(), ref("search"), nil) },
		"other": func() error {
			_, err := f.Get(t.Context(), workspacesecret.Ref{Workspace: "w", Name: "x#"})
			return err
		},
	} {
		if err := call(); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	f.wantEmpty("search")
}

// wantEmpty checks that nothing is left of a secret.
func (f *fixture) wantEmpty(name string) {
	f.Helper()
	for _, query := range []table.Query{keys.WorkspaceSecrets(workspace), keys.SecretUses(workspace, name)} {
		items, err := table.AllItems(f.Context(), f.table, query)
		f.must(err)
		if len(items) > 0 {
			f.Errorf("left: %v", items[0].Key)
		}
	}
}

func TestRules(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	long := strings.Repeat("a", 254)
	for name, want := range map[string]string{
		"": "name must be", "Search": "name must be", "a_b": "name must be", "-a": "name must be", "a.": "name must be", ".a": "name must be", "a..b": "name must be", long: "name must be", "ä": "name must be",
	} {
		_, err := f.Create(t.Context(), ref(name), nil)
		f.wantFault(err, fault.Invalid, want)
	}
	f.create("a-1.b", nil)
	for _, data := range []map[string]string{{"": "x"}, {"a b": "x"}, {"a/b": "x"}, {long: "x"}, {"ä": "x"}, {"a": "planted\x00"}, {"a": strings.Repeat("planted", 10_000)}} {
		_, err := f.Create(t.Context(), ref("new"), data)
		f.wantFault(err, fault.Invalid, "data")
		_, _, patchErr := f.Patch(t.Context(), ref("a-1.b"), patched(data))
		f.wantFault(patchErr, fault.Invalid, "data")
		if strings.Contains(fmt.Sprint(err, patchErr), "planted") {
			t.Errorf("the error says too much: %v", err)
		}
	}
	f.create("largest", map[string]string{"a": strings.Repeat("x", workspacesecret.MaxSize-len(`{"a":""}`))})
	_, _, err := f.Patch(t.Context(), ref("largest"), patched(map[string]string{"b": "x"}))
	f.wantFault(err, fault.Invalid, "data may take 61440 bytes, keys and values as JSON; these take 61448.")
}

func TestListIsPaged(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	var want []string
	for i := range 7 {
		name := fmt.Sprintf("secret-%d", i)
		f.create(name, map[string]string{"k": "v"})
		want = append(want, name)
	}
	f.refers("secret-6", "d", "k")
	f.must(f.table.Transact(t.Context(), table.Put{Item: table.Item{Key: keys.Deployment(workspace, "d")}}))
	f.must(f.Delete(t.Context(), ref("secret-6"), nil)) // a part of it stays
	var got []string
	for cursor := ""; ; {
		page, err := f.List(t.Context(), workspace, record.Window{Limit: 2, Offset: 5, Cursor: cursor})
		f.must(err)
		if cursor == "" && len(page.Items) != 1 {
			t.Errorf("behind the offset: %v", page.Items)
		}
		if cursor = page.Cursor; cursor == "" {
			break
		}
	}
	for cursor := ""; ; {
		page, err := f.List(t.Context(), workspace, record.Window{Limit: 2, Cursor: cursor})
		f.must(err)
		for _, one := range page.Items {
			got = append(got, one.Name)
		}
		if cursor = page.Cursor; cursor == "" {
			break
		}
	}
	if diff := cmp.Diff(want[:6], got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := f.List(t.Context(), workspace, record.Window{Limit: 2, Cursor: "bad"}); !fault.Is(err, fault.Unprocessable) {
		t.Errorf("another cursor: %v", err)
	}
	if page, err := f.List(t.Context(), "another", record.Window{Limit: 2}); err != nil || len(page.Items) > 0 {
		t.Errorf("another workspace: %v (%v)", page.Items, err)
	}
}

// refers makes a deployment refer to keys of a secret from now on.
func (f *fixture) refers(name, deployment string, keysOf ...string) {
	f.Helper()
	f.must(f.refer(f.get(name), deployment, keysOf...))
}

func TestWhatIsReferredToStays(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	before := f.create("search", map[string]string{"a": "1", "b": "2", "c": "3"})
	f.refers("search", "d1", "a")
	f.refers("search", "d2", "a", "b")
	if got := f.get("search").Version(); got != before.Version()+2 {
		t.Errorf("two references later the version is %d", got)
	}
	if f.refer(before, "d3", "c") == nil {
		t.Error("a reference to what was read before was made")
	}
	users, err := f.Users(t.Context(), ref("search"))
	f.must(err)
	if diff := cmp.Diff([]workspacesecret.User{{Deployment: "d1", Keys: []string{"a"}}, {Deployment: "d2", Keys: []string{"a", "b"}}}, users); diff != "" {
		t.Errorf("users (-want +got):\n%s", diff)
	}
	_, _, err = f.Patch(t.Context(), ref("search"), patched(map[string]string{"a": "", "b": "", "c": ""}))
	f.wantFault(err, fault.Conflict, "data.a cannot be taken away: it is used by deployment ID d1, d2.", "data.b cannot be taken away: it is used by deployment ID d2.")
	f.wantFault(f.Delete(t.Context(), ref("search"), nil), fault.Conflict, `Secret "search" is used by deployment ID d1, d2.`)
	f.patch("search", map[string]string{"c": "", "a": "other"})
	for _, gone := range []string{"d1", "d2"} {
		f.must(f.Release(t.Context(), workspace, gone))
		f.must(f.table.Transact(t.Context(), table.Delete{Key: keys.Deployment(workspace, gone)}))
	}
	f.refers("search", "d4", "a")
	// An index has not shown the note of this deployment.
	f.must(f.table.Transact(t.Context(), table.Delete{Key: keys.Deployment(workspace, "d4")}))
	f.must(f.Delete(t.Context(), ref("search"), nil))
	f.wantEmpty("search")
}

// TestFormerValuesStayToBeHidden, also of a secret that was deleted, as long as there are
// deployments that had them.
func TestFormerValuesStayToBeHidden(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.create("search", map[string]string{"a": "one", "b": "stays", "c": ""})
	f.refers("search", "d1", "a")
	f.refers("search", "d2", "a")
	f.patch("search", map[string]string{"a": "two", "c": "new"})
	f.patch("search", map[string]string{"a": "one"})
	f.patch("search", map[string]string{"a": "three", "b": ""})
	if diff := cmp.Diff([]string{"two", "one", "stays"}, f.content("search").Former); diff != "" {
		t.Errorf("former values (-want +got):\n%s", diff)
	}
	version := f.get("search").Version()
	for _, d := range []string{"d1", "d2"} { // no longer refer to it
		f.must(f.table.Transact(t.Context(), table.Put{Item: table.Item{Key: keys.Deployment(workspace, d)}}))
	}
	f.must(f.Delete(t.Context(), ref("search"), nil))
	if named, err := f.Named(t.Context(), workspace, "search"); err != nil || len(named) > 0 {
		t.Errorf("a deleted secret is there: %v (%v)", named, err)
	}
	want := workspacesecret.Content{Data: map[string]string{}, Former: []string{"two", "one", "stays", "three", "new"}}
	if diff := cmp.Diff(want, f.content("search")); diff != "" {
		t.Errorf("what is left (-want +got):\n%s", diff)
	}
	again := f.create("search", map[string]string{"a": "four"})
	if diff := cmp.Diff(want.Former, f.content("search").Former); diff != "" || again.Version() <= version {
		t.Errorf("made anew with version %d, former values (-want +got):\n%s", again.Version(), diff)
	}
	f.must(f.Release(t.Context(), workspace, "d1"))
	f.must(f.Delete(t.Context(), ref("search"), nil))
	f.must(f.Release(t.Context(), workspace, "d2"))
	f.must(f.Release(t.Context(), workspace, "d2"))
	f.wantEmpty("search")
}

// lagging is a table whose lists are in an earlier state.
type lagging struct {
	table.Table
	list table.Page
}

func (l lagging) Query(ctx context.Context, query table.Query) (table.Page, error) {
	if query.Index == table.ByList {
		return l.list, nil
	}
	return l.Table.Query(ctx, query)
}

// TestADeploymentIsReleasedTwice by a caller that no longer sees it among the users of a
// deleted secret, and by a caller that still sees it.
func TestADeploymentIsReleasedTwice(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.create("search", map[string]string{"a": "one"})
	for _, d := range []string{"d1", "d2"} {
		f.refers("search", d, "a")
		f.must(f.table.Transact(t.Context(), table.Put{Item: table.Item{Key: keys.Deployment(workspace, d)}}))
	}
	f.must(f.Delete(t.Context(), ref("search"), nil))
	before, err := f.table.Query(t.Context(), keys.SecretUsesOf(workspace, "d1"))
	f.must(err)
	f.must(f.Release(t.Context(), workspace, "d1"))
	f.must(f.over(lagging{f.table, before}).Release(t.Context(), workspace, "d1"))
	want := workspacesecret.Content{Data: map[string]string{}, Former: []string{"one"}}
	if diff := cmp.Diff(want, f.content("search")); diff != "" {
		t.Errorf("what d2 had (-want +got):\n%s", diff)
	}
}

func TestFormerValuesAreBounded(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.create("search", map[string]string{"a": "first-0"})
	for i := range 30 {
		f.patch("search", map[string]string{"a": fmt.Sprintf("next-%d", i)})
	}
	if former := f.content("search").Former; len(former) != 20 || former[0] != "next-9" || former[19] != "next-28" {
		t.Errorf("got %v", former)
	}
	for _, letter := range []string{"x", "y", "z"} {
		f.patch("search", map[string]string{"a": strings.Repeat(letter, 40<<10)})
	}
	if former := f.content("search").Former; len(former) != 1 || former[0][0] != 'y' {
		t.Errorf("got %d values", len(former))
	}
}

func TestManyCreatesOfOneName(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	var created, taken atomic.Int32
	all(slices.Repeat([]func(){func() {
		_, err := f.Create(t.Context(), ref("search"), map[string]string{"a": "1"})
		switch {
		case err == nil:
			created.Add(1)
		case fault.Is(err, fault.Conflict):
			taken.Add(1)
		default:
			t.Error(err)
		}
	}}, 20)...)
	if created.Load() != 1 || taken.Load() != 19 {
		t.Errorf("%d were created, %d refused", created.Load(), taken.Load())
	}
}

func TestManyPatchesLoseNoKey(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.create("search", nil)
	want := map[string]string{}
	var patches []func()
	for i := range 20 {
		key := fmt.Sprintf("key-%d", i)
		want[key] = "value of " + key
		patches = append(patches, func() {
			if _, _, err := f.Patch(t.Context(), ref("search"), patched(map[string]string{key: "value of " + key})); err != nil {
				t.Error(err)
			}
		})
	}
	all(patches...)
	if diff := cmp.Diff(want, f.content("search").Data); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestAReferenceAndALossAreNeverBothMade runs each of the two ways to remove a value
// concurrently with a new reference to it.
func TestAReferenceAndALossAreNeverBothMade(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	for name, take := range map[string]func(workspacesecret.Ref) error{
		"delete": func(ref workspacesecret.Ref) error { return f.Delete(t.Context(), ref, nil) },
		"patch": func(ref workspacesecret.Ref) error {
			_, _, err := f.Patch(t.Context(), ref, patched(map[string]string{"a": ""}))
			return err
		},
	} {
		for i := range 20 {
			of := f.create(fmt.Sprintf("%s-%d", name, i), map[string]string{"a": "1"})
			deployment := fmt.Sprintf("d-%s-%d", name, i)
			var referred, taken error
			all(func() { referred = f.refer(of, deployment, "a") }, func() { taken = take(of.Ref) })
			if (referred == nil) == (taken == nil) {
				t.Errorf("%s: reference: %v, loss: %v", of.Name, referred, taken)
			}
			if taken != nil {
				f.wantFault(taken, fault.Conflict, deployment)
			}
		}
	}
}

// TestAReferenceIsToTheSecretThatWasRead and to no other secret of its name, which may have
// other keys.
func TestAReferenceIsToTheSecretThatWasRead(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	read := f.create("search", map[string]string{"key": "planted-1"})
	f.must(f.Delete(t.Context(), ref("search"), nil))
	if next := f.create("search", map[string]string{"other": "planted-2"}); next.Version() != read.Version() {
		t.Fatalf("versions are %d and %d: a condition on the version tells them apart", read.Version(), next.Version())
	}
	if err := f.refer(read, "deployment", "key"); !errors.As(err, new(*table.ConditionFailed)) {
		t.Errorf("got %v, want a condition that fails", err)
	}
}
