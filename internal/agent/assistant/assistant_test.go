package assistant_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/agent/assistant"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/base/match"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

var began = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

type fixture struct {
	*assistant.Store
	t     *testing.T
	table table.Table
	owner assistant.Owner
	clock *fixtures.Clock
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	tbl := fixtures.DomainTable(t, clock.System)
	f := &fixture{t: t, table: tbl, clock: fixtures.NewClockAt(began, time.Second)}
	f.Store = assistant.NewStore(tbl, f.clock.Now)
	f.owner = assistant.Owner{Workspace: id.New(began), Deployment: id.New(began), Graphs: []string{"agent", "writer"}, Created: began}
	return f
}

func (f *fixture) create(content assistant.Content) assistant.Assistant {
	f.t.Helper()
	a, err := f.Create(f.t.Context(), f.owner, "", content)
	f.must(err)
	return a
}

// TestADeploymentHasSoManyAssistants checks the limit, which is small enough for a search to
// read all assistants.
func TestADeploymentHasSoManyAssistants(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	content := assistant.Content{Graph: "agent", Name: "n"}
	first := f.create(content)
	second := f.create(content)
	count := keys.AssistantCount(f.owner.Workspace, f.owner.Deployment)
	f.must(f.Delete(t.Context(), f.owner, first.Assistant))
	f.must(f.table.Transact(t.Context(), table.Update{Key: count, Add: map[string]int64{"count": assistant.Most - 2}}))
	f.create(content)
	refused := func() {
		t.Helper()
		if _, err := f.Create(t.Context(), f.owner, "", content); !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), "at most 1000 assistants") {
			t.Errorf("got %v, want a conflict", err)
		}
	}
	refused()
	name := "changed"
	// A default assistant is not counted, neither when it is stored nor when it is deleted.
	for range 2 {
		if _, err := f.Update(t.Context(), f.owner, assistant.DefaultID("writer"), assistant.Patch{Name: &name}); err != nil {
			t.Error(err)
		}
		f.must(f.Delete(t.Context(), f.owner, assistant.DefaultID("writer")))
		refused()
	}
	f.must(f.Delete(t.Context(), f.owner, second.Assistant))
	f.create(content)
	refused()
}

func (f *fixture) must(err error) {
	f.t.Helper()
	check.Must(f.t, err)
}

func (f *fixture) wantFault(err error, kind fault.Kind) {
	f.t.Helper()
	if got, ok := errors.AsType[*fault.Error](err); !ok || got.Kind != kind {
		f.t.Errorf("error is %v, want a fault of kind %s", err, kind)
	}
}

func raw(s string) json.RawMessage { return json.RawMessage(s) }

func TestDefaultID(t *testing.T) {
	t.Parallel()
	if got, want := assistant.DefaultID("agent"), "fe096781-5601-53d2-b2f6-0d3403f7e9ca"; got != want {
		t.Errorf("id is %s, want %s", got, want)
	}
}

func TestDefaultAssistantIsStoredWhenItIsChanged(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	standing, err := f.Named(t.Context(), f.owner, "agent")
	f.must(err)
	byID, err := f.Named(t.Context(), f.owner, assistant.DefaultID("agent"))
	f.must(err)
	if standing.Name != "agent" || standing.Version != 1 || !standing.Created.Equal(began) || byID.Assistant != standing.Assistant {
		t.Errorf("default assistant is %+v", standing)
	}
	f.wantFault(f.Delete(t.Context(), f.owner, standing.Assistant), fault.Conflict)
	changed, err := f.Update(t.Context(), f.owner, standing.Assistant, assistant.Patch{Config: raw(`{"tags":["x"]}`), Metadata: raw(`{"a":1}`)})
	f.must(err)
	if changed.Version != 2 || string(changed.Metadata) != `{"a":1,"created_by":"system"}` {
		t.Errorf("changed assistant is %+v with metadata %s", changed, changed.Metadata)
	}
	again, err := f.SetLatest(t.Context(), f.owner, standing.Assistant, 1)
	f.must(err)
	if diff := cmp.Diff(standing.Content, again.Content); diff != "" || again.Version != 1 {
		t.Errorf("version %d after going back (-want +got):\n%s", again.Version, diff)
	}
	f.must(f.Delete(t.Context(), f.owner, standing.Assistant))
	after, err := f.Get(t.Context(), f.owner, standing.Assistant)
	f.must(err)
	if diff := cmp.Diff(standing.Content, after.Content); diff != "" {
		t.Errorf("after its deletion (-want +got):\n%s", diff)
	}
}

// TestTheFirstVersionOfADefaultAssistantStays makes the first version the current one, which is the
// first change of the assistant. An earlier release did not store the version then.
func TestTheFirstVersionOfADefaultAssistantStays(t *testing.T) {
	t.Parallel()
	for name, earlier := range map[string]bool{"now": false, "earlier": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			agent := assistant.DefaultID("agent")
			versions := func(want ...int64) {
				t.Helper()
				found, err := f.Versions(t.Context(), f.owner, agent, assistant.Search{Limit: 10})
				f.must(err)
				var got []int64
				for _, a := range found {
					got = append(got, a.Version)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("versions (-want +got):\n%s", diff)
				}
			}
			_, err := f.SetLatest(t.Context(), f.owner, agent, 1)
			f.must(err)
			if earlier {
				f.must(f.table.Delete(t.Context(), keys.AssistantVersion(f.owner.Workspace, f.owner.Deployment, agent, 1)))
			}
			versions(1)
			_, err = f.Update(t.Context(), f.owner, agent, assistant.Patch{Name: new("Ada")})
			f.must(err)
			versions(2, 1)
			first, err := f.SetLatest(t.Context(), f.owner, agent, 1)
			f.must(err)
			if first.Name != "agent" {
				t.Errorf("the first version has the name %q", first.Name)
			}
		})
	}
}

func TestCreate(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a := f.create(assistant.Content{Graph: "writer", Name: "Ada", Config: raw("null"), Context: raw(`{"tone":"dry"}`)})
	got, err := f.Get(t.Context(), f.owner, a.Assistant)
	f.must(err)
	want := assistant.Content{Graph: "writer", Name: "Ada", Config: raw("{}"), Context: raw(`{"tone":"dry"}`), Metadata: raw("{}")}
	if diff := cmp.Diff(want, got.Content); diff != "" {
		t.Errorf("assistant (-want +got):\n%s", diff)
	}
	_, err = f.Create(t.Context(), f.owner, a.Assistant, assistant.Content{Graph: "agent"})
	f.wantFault(err, fault.Conflict)
	_, err = f.Create(t.Context(), f.owner, assistant.DefaultID("agent"), assistant.Content{Graph: "agent"})
	f.wantFault(err, fault.Conflict)
	_, err = f.Create(t.Context(), f.owner, "", assistant.Content{Graph: "nobody"})
	f.wantFault(err, fault.NotFound)
	large := raw(`{"x":"` + string(make([]byte, 300<<10)) + `"}`)
	_, err = f.Create(t.Context(), f.owner, "", assistant.Content{Graph: "agent", Context: large})
	f.wantFault(err, fault.Invalid)
	other := f.owner
	other.Workspace = id.New(began)
	_, err = f.Get(t.Context(), other, a.Assistant)
	f.wantFault(err, fault.NotFound)
	_, err = f.Named(t.Context(), f.owner, "nobody")
	f.wantFault(err, fault.NotFound)
}

// TestAnAssistantHasSoManyVersions checks the limit, and that the assistant keeps its
// versions.
func TestAnAssistantHasSoManyVersions(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a := f.create(assistant.Content{Graph: "agent", Name: "one"})
	f.must(f.table.Transact(t.Context(), table.Update{
		Key: keys.Assistant(f.owner.Workspace, f.owner.Deployment, a.Assistant), Set: table.Attrs{"newest": int64(assistant.MostVersions - 1)},
	}))
	last, err := f.Update(t.Context(), f.owner, a.Assistant, assistant.Patch{Name: new("last")})
	f.must(err)
	if _, err = f.Update(t.Context(), f.owner, a.Assistant, assistant.Patch{Name: new("more")}); !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), "at most 1000 versions") {
		t.Errorf("got %v, want a conflict", err)
	}
	if back, err := f.SetLatest(t.Context(), f.owner, a.Assistant, 1); err != nil || back.Name != "one" || last.Version != assistant.MostVersions {
		t.Errorf("version 1 came back as %+v, %v", back, err)
	}
}

func TestVersions(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a := f.create(assistant.Content{Graph: "agent", Name: "one", Context: raw(`{"v":1}`), Metadata: raw(`{"m":{"x":1}}`)})
	for i := 2; i <= 4; i++ {
		_, err := f.Update(t.Context(), f.owner, a.Assistant, assistant.Patch{
			Name: new(fmt.Sprint("name ", i)), Context: raw(fmt.Sprintf(`{"v":%d}`, i)), Metadata: raw(fmt.Sprintf(`{"k%d":true}`, i)),
		})
		f.must(err)
	}
	versions, err := f.Versions(t.Context(), f.owner, a.Assistant, assistant.Search{Limit: 2, Offset: 1})
	f.must(err)
	if len(versions) != 2 || versions[0].Version != 3 || versions[1].Version != 2 || versions[1].Name != "name 2" {
		t.Errorf("versions are %+v, want 3 and 2", versions)
	}
	k3, err := match.Parse(raw(`{"k3":true}`))
	f.must(err)
	if versions, err = f.Versions(t.Context(), f.owner, a.Assistant, assistant.Search{Limit: 10, Metadata: k3}); len(versions) != 2 || err != nil {
		t.Errorf("%d versions have k3, want 4 and 3; %v", len(versions), err)
	}
	back, err := f.SetLatest(t.Context(), f.owner, a.Assistant, 2)
	f.must(err)
	if string(back.Context) != `{"v":2}` || string(back.Metadata) != `{"k2":true,"m":{"x":1}}` {
		t.Errorf("version 2 came back as %s, %s", back.Context, back.Metadata)
	}
	next, err := f.Update(t.Context(), f.owner, a.Assistant, assistant.Patch{Name: new("five")})
	f.must(err)
	if next.Version != 5 || string(next.Context) != `{"v":2}` {
		t.Errorf("the version after going back is %d with context %s", next.Version, next.Context)
	}
	_, err = f.SetLatest(t.Context(), f.owner, a.Assistant, 6)
	f.wantFault(err, fault.NotFound)
	f.must(f.Delete(t.Context(), f.owner, a.Assistant))
	f.wantFault(f.Delete(t.Context(), f.owner, a.Assistant), fault.NotFound)
	again, err := f.Create(t.Context(), f.owner, a.Assistant, assistant.Content{Graph: "agent"})
	f.must(err)
	if versions, err = f.Versions(t.Context(), f.owner, again.Assistant, assistant.Search{Limit: 10}); len(versions) != 1 || err != nil {
		t.Errorf("an assistant made anew has %d versions, want 1; %v", len(versions), err)
	}
}

func TestSearch(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for i := range 5 {
		f.create(assistant.Content{Graph: []string{"agent", "writer"}[i%2], Name: fmt.Sprintf("Number %d", i), Metadata: raw(fmt.Sprintf(`{"i":%d,"all":["x","y"]}`, i))})
	}
	all, err := match.Parse(raw(`{"all":["y"]}`))
	f.must(err)
	for name, c := range map[string]struct {
		search assistant.Search
		want   []string
		total  int
	}{
		"newest first":         {assistant.Search{Limit: 3}, []string{"Number 4", "Number 3", "Number 2"}, 7},
		"by name, second page": {assistant.Search{SortBy: "name", Ascending: true, Limit: 2, Offset: 1, Metadata: all}, []string{"Number 1", "Number 2"}, 5},
		"of a graph":           {assistant.Search{Graph: "writer", SortBy: "name", Ascending: true, Limit: 9}, []string{"Number 1", "Number 3", "writer"}, 3},
		"in any case":          {assistant.Search{SortBy: "name", Ascending: true, Limit: 2}, []string{"agent", "Number 0"}, 7},
		"by a part":            {assistant.Search{Name: "NUMBER 3", Limit: 9}, []string{"Number 3"}, 1},
		"behind the end":       {assistant.Search{Limit: 9, Offset: 70}, nil, 7},
	} {
		found, total, err := f.Search(t.Context(), f.owner, c.search)
		f.must(err)
		var got []string
		for _, a := range found {
			got = append(got, a.Name)
		}
		if diff := cmp.Diff(c.want, got); diff != "" || total != c.total {
			t.Errorf("%s: %d in all, want %d (-want +got):\n%s", name, total, c.total, diff)
		}
	}
}

func TestConcurrentUpdatesLoseNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var wait sync.WaitGroup
	for i := range 20 {
		wait.Go(func() {
			_, err := f.Update(t.Context(), f.owner, assistant.DefaultID("agent"), assistant.Patch{Metadata: raw(fmt.Sprintf(`{"u%d":1}`, i))})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	a, err := f.Get(t.Context(), f.owner, assistant.DefaultID("agent"))
	f.must(err)
	var members map[string]any
	f.must(json.Unmarshal(a.Metadata, &members))
	if a.Version != 21 || len(members) != 21 {
		t.Errorf("version %d with %d members of metadata, want 21 and 21", a.Version, len(members))
	}
}

// TestADefaultAssistantHasTheDescriptionOfItsGraph checks this for an assistant that no client
// has created.
func TestADefaultAssistantHasTheDescriptionOfItsGraph(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.owner.Descriptions = map[string]string{"writer": "Writes."}
	for graph, want := range map[string]string{"writer": "Writes.", "agent": ""} {
		found, err := f.Named(t.Context(), f.owner, assistant.DefaultID(graph))
		got := ""
		if found.Description != nil {
			got = *found.Description
		}
		if err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", graph, got, err, want)
		}
	}
}
