package event_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/event"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const workspace = "0197a000-0000-7000-8000-000000000001"

var start = clock.System()

type fixture struct {
	*testing.T
	*event.Log

	table table.Table
	clock *fixtures.Clock
	// newest is the last event of each deployment.
	newest map[string]string
}

func setUp(t *testing.T) *fixture {
	t.Helper()
	tb := fixtures.DomainTable(t, clock.System)
	f := &fixture{T: t, table: tb, clock: fixtures.NewClockAt(start, 0), newest: map[string]string{}}
	f.Log = event.NewLog(tb, f.clock.Now, nil)
	return f
}

func (f *fixture) must(err error) {
	f.Helper()
	check.Must(f.T, err)
}

// chain makes events of a deployment at the given time, without writing them.
func (f *fixture) chain(deployment string, at time.Time, names ...string) []event.Event {
	events := make([]event.Event, len(names))
	for i, name := range names {
		events[i] = event.Event{Workspace: workspace, Deployment: deployment, Name: "weather", Type: event.OfStatus(name)}
	}
	events = event.Chain(f.newest[deployment], at, events)
	f.newest[deployment] = events[len(events)-1].ID
	return events
}

// write writes events as package deployment does: with their deployments.
func (f *fixture) write(events ...event.Event) {
	f.Helper()
	var writes []table.Write
	of := map[string]bool{}
	for _, e := range events {
		if !of[e.Deployment] {
			writes = append(writes, table.Put{Item: table.Item{Key: keys.Deployment(workspace, e.Deployment)}})
		}
		of[e.Deployment] = true
	}
	o, err := f.Publish(f.Context(), workspace, events)
	f.must(err)
	o.Add(writes...)
	f.must(record.Commit(f.Context(), f.table, o))
}

// read reads all pages from a position.
func (f *fixture) read(log event.Reader, after string, limit int) (ids []string, position string) {
	f.Helper()
	for {
		found, err := log.Read(f.Context(), after, limit)
		f.must(err)
		for _, e := range found {
			ids, after = append(ids, e.ID), e.Position
		}
		if len(found) < limit {
			return ids, after
		}
	}
}

func deploymentID(n int) string { return fmt.Sprintf("0197a000-0000-7000-8000-0000000d%04x", n) }

func ids(events []event.Event) []string {
	all := make([]string, len(events))
	for i, e := range events {
		all[i] = e.ID
	}
	return all
}

// TestIdsIncreaseWhateverTheClockSays writes with a clock that moves back.
func TestIdsIncreaseWhateverTheClockSays(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	d := deploymentID(1)
	all := slices.Concat(f.chain(d, start, "CREATING", "QUEUED"), f.chain(d, start.Add(-time.Hour), "BUILDING"), f.chain(d, start, "DEPLOYED"))
	f.write(all...)
	if !slices.IsSorted(ids(all)) {
		t.Errorf("ids are %v", ids(all))
	}
	for i, e := range all {
		if i > 0 && (e.Previous != all[i-1].ID || !e.At.After(all[i-1].At)) {
			t.Errorf("event %d is at %v after %s", i, e.At, e.Previous)
		}
	}
	for _, log := range []event.Reader{f.Deployment(workspace, d), f.Workspace(workspace)} {
		for limit := 1; limit < 6; limit++ {
			if got, _ := f.read(log, "", limit); !slices.Equal(got, ids(all)) {
				t.Errorf("%T in pages of %d: got %v, want %v", log, limit, got, ids(all))
			}
		}
	}
}

// TestAReaderOfAWorkspaceMissesNothing has events of many deployments become visible in any
// order, while a reader continues from position to position, by pages of any size, sometimes
// from an older position than its newest.
func TestAReaderOfAWorkspaceMissesNothing(t *testing.T) {
	t.Parallel()
	for seed := range uint64(5) {
		f := setUp(t)
		random := rand.New(rand.NewPCG(seed, 1))
		// Chains of each deployment that wait to be written. They are written within 30 s, in
		// the order of the deployment.
		waiting := map[string][]event.Event{}
		var written []string
		var read []string
		seen := map[string]bool{}
		position := ""
		at := start
		for range 400 {
			at = at.Add(time.Duration(random.IntN(300)) * time.Millisecond)
			f.clock.Set(at)
			d := deploymentID(random.IntN(20))
			waiting[d] = append(waiting[d], f.chain(d, at, []string{"BUILDING", "DEPLOYED"}[:1+random.IntN(2)]...)...)
			for other, chains := range waiting {
				for len(chains) > 0 && (random.IntN(4) == 0 || at.Sub(chains[0].At) > 30*time.Second) {
					f.write(chains[0])
					written = append(written, chains[0].ID)
					chains = chains[1:]
				}
				waiting[other] = chains
			}
			if random.IntN(3) > 0 {
				continue
			}
			found, err := f.Workspace(workspace).Read(t.Context(), position, 1+random.IntN(5))
			f.must(err)
			if len(found) == 0 {
				continue
			}
			kept := found[:1+random.IntN(len(found))] // the connection breaks after some of them
			for _, e := range kept {
				if seen[e.ID] {
					t.Fatalf("seed %d: %s came twice", seed, e.ID)
				}
				seen[e.ID], read, position = true, append(read, e.ID), e.Position
			}
		}
		rest, _ := f.read(f.Workspace(workspace), position, 100)
		read = append(read, rest...)
		slices.Sort(read)
		slices.Sort(written)
		if !slices.Equal(read, written) {
			t.Fatalf("seed %d: %d were read of %d", seed, len(read), len(written))
		}
	}
}

// TestAnIndexThatLagsIsWaitedFor shows an event before its previous event.
func TestAnIndexThatLagsIsWaitedFor(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	d, other := deploymentID(1), deploymentID(2)
	chain := f.chain(d, start, "CREATING", "BUILDING", "DEPLOYED")
	f.write(chain[0])
	_, position := f.read(f.Workspace(workspace), "", 10)
	late := f.chain(other, start.Add(time.Second), "CREATING")
	f.write(chain[2], late[0])
	got, position := f.read(f.Workspace(workspace), position, 10)
	if !slices.Equal(got, ids(late)) {
		t.Errorf("got %v, want the other deployment's only", got)
	}
	f.write(chain[1])
	if got, _ := f.read(f.Workspace(workspace), position, 10); !slices.Equal(got, ids(chain[1:])) {
		t.Errorf("got %v, want %v", got, ids(chain[1:]))
	}
}

// TestAnEventWhoseForerunnerExpiredIsRead does not wait for an event that will not come.
func TestAnEventWhoseForerunnerExpiredIsRead(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	chain := f.chain(deploymentID(1), start, "CREATING", "BUILDING")
	f.write(chain[1])
	f.clock.Set(start.Add(2 * time.Minute))
	if got, _ := f.read(f.Workspace(workspace), "", 10); !slices.Equal(got, ids(chain[1:])) {
		t.Errorf("got %v, want %v", got, ids(chain[1:]))
	}
}

// TestPositions checks that positions are always small, and that invalid positions are
// refused.
func TestPositions(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	var want []string
	for n := range 200 {
		events := f.chain(deploymentID(n), start.Add(time.Duration(n)*time.Millisecond), "CREATING")
		f.write(events...)
		want = append(want, ids(events)...)
	}
	got, position := f.read(f.Workspace(workspace), "", 7)
	if !slices.Equal(got, want) || len(position) > 1000 {
		t.Errorf("got %d events and a position of %d bytes", len(got), len(position))
	}
	f.clock.Set(start.Add(100 * time.Millisecond))
	if got, _ := f.read(f.Workspace(workspace), f.Workspace(workspace).Now(), 7); !slices.Equal(got, want[101:]) {
		t.Errorf("after the event of now: got %d, want %d", len(got), len(want[101:]))
	}
	for _, bad := range []string{"x", "!", strings.Repeat("A", 100), position[:len(position)-3], id.New(start)} {
		if _, err := f.Workspace(workspace).Read(t.Context(), bad, 1); !fault.Is(err, fault.Invalid) {
			t.Errorf("%q: got %v", bad, err)
		}
	}
	if _, err := f.Deployment(workspace, deploymentID(1)).Read(t.Context(), position, 1); !fault.Is(err, fault.Invalid) {
		t.Errorf("a workspace's position of a deployment: got %v", err)
	}
	if got, _ := f.read(f.Workspace("0197a000-0000-7000-8000-000000000002"), "", 7); len(got) != 0 {
		t.Errorf("another workspace reads %v", got)
	}
}

// TestFollowersAreWoken reads each event when this process or another process writes it, until
// the end of the deployment.
func TestFollowersAreWoken(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	d := deploymentID(1)
	other := event.NewLog(f.table, clock.System, nil)
	f.write(f.chain(d, start, "CREATING")...)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	came, ended := map[string]chan string{}, map[string]chan error{}
	for name, log := range map[string]event.Reader{
		"deployment": f.Deployment(workspace, d), "workspace": f.Workspace(workspace), "workspace, of another process": other.Workspace(workspace),
	} {
		events, results := make(chan string, 10), make(chan error, 1)
		came[name], ended[name] = events, results
		go func() {
			results <- event.Follow(ctx, log, "", func(found []event.Positioned) error {
				for _, e := range found {
					events <- e.ID
				}
				return nil
			})
		}()
	}
	for _, name := range []string{"BUILDING", "DEPLOYED"} {
		for reader := range came {
			if got := <-came[reader]; len(came[reader]) > 0 || got != f.newest[d] {
				t.Errorf("%s: got %s, want %s", reader, got, f.newest[d])
			}
		}
		f.write(f.chain(d, start, name)...)
	}
	last := f.chain(d, start, "")
	last[0].Type = event.DeploymentDeleted
	f.write(last...)
	if err := <-ended["deployment"]; err != nil {
		t.Errorf("the log of a deployment ended with %v", err)
	}
	cancel()
	for reader := range came {
		if reader == "deployment" {
			continue
		}
		if err := <-ended[reader]; !errors.Is(err, context.Canceled) {
			t.Errorf("%s ended with %v", reader, err)
		}
	}
}

// TestAFollowerReadsOnAfterADeletionThatWasUndone has a follower that starts later and whose
// first read ends with the deletion.
func TestAFollowerReadsOnAfterADeletionThatWasUndone(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	d := deploymentID(1)
	for range 99 {
		f.write(f.chain(d, start, "BUILDING")...)
	}
	told := func(what event.Type) {
		next := f.chain(d, start, "")
		next[0].Type = what
		f.write(next...)
	}
	told(event.DeploymentDeleted)
	told(event.DeploymentUndeleted)
	told(event.DeploymentDeleted)
	follow := func(after string) (last []event.Positioned) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := event.Follow(ctx, f.Deployment(workspace, d), after, func(found []event.Positioned) error {
			last = append(last, found...)
			return nil
		}); err != nil {
			t.Fatalf("behind %q: %v", after, err)
		}
		return last
	}
	last := follow("")
	if len(last) != 102 || last[100].Type != event.DeploymentUndeleted || last[101].Type != event.DeploymentDeleted {
		t.Errorf("got %d events, at last %v", len(last), last[max(0, len(last)-3):])
	}
	if again := follow(last[99].Position); len(again) != 2 {
		t.Errorf("behind a deletion that was undone: got %v", again)
	}
	if all := follow(id.New(start.Add(-time.Hour))); len(all) != 102 {
		t.Errorf("behind a moment without an event: got %d events", len(all))
	}
	if again := follow(last[101].Position); len(again) != 0 {
		t.Errorf("behind the end: got %v", again)
	}
}
