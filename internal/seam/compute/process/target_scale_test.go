package process_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/compute/computetest"
	"github.com/slipway-run/slipway/internal/seam/compute/process"
	"github.com/slipway-run/slipway/internal/test/check"
)

// crowd is several callers that are served at the same time.
type crowd struct {
	endpoints map[string]int // the number of callers at each endpoint
	leave     []func()
}

func (m machine) crowd(t *testing.T, r compute.Release, n int) *crowd {
	t.Helper()
	c := &crowd{endpoints: map[string]int{}}
	for range n {
		endpoint, done := m.acquire(t, r)
		c.endpoints[endpoint.URL]++
		c.leave = append(c.leave, done)
	}
	return c
}

func (c *crowd) disperse() {
	for _, done := range c.leave {
		done()
	}
}

// replicas is the number of replicas that callers are sent to.
func (m machine) replicas(t *testing.T, r compute.Release) int {
	t.Helper()
	c := m.crowd(t, r, 40)
	defer c.disperse()
	return len(c.endpoints)
}

func TestMinScaleReplicasShareTheCallers(t *testing.T) {
	t.Parallel()
	m, r := newMachine(t), computetest.NewRelease(computetest.Serve)
	r.Resources = compute.Resources{MinScale: 3, MaxScale: 3}
	m.apply(t, r)
	m.want(t, r, compute.Healthy, "")
	eventually(t, "there are not three replicas", func() bool { return m.replicas(t, r) == 3 })
	c := m.crowd(t, r, 12)
	defer c.disperse()
	for url, callers := range c.endpoints {
		if callers != 4 {
			t.Errorf("%s has %d callers of 12, want 4", url, callers)
		}
	}
}

// TestAReplicaThatEndsLeavesTheOthers crashes one of two replicas: the other replica serves
// callers meanwhile.
func TestAReplicaThatEndsLeavesTheOthers(t *testing.T) {
	t.Parallel()
	m, r := newMachine(t, func(c *process.Config) { c.RestartMin, c.RestartMax = time.Hour, time.Hour }), computetest.NewRelease(computetest.Serve)
	r.Resources = compute.Resources{MinScale: 2}
	m.apply(t, r)
	m.want(t, r, compute.Healthy, "")
	eventually(t, "there are not two replicas", func() bool { return m.replicas(t, r) == 2 })
	endpoint, done := m.acquire(t, r)
	if _, err := computetest.Ask(patience(t), endpoint, "crash"); err == nil {
		t.Fatal("the agent answered instead of ending")
	}
	done()
	eventually(t, "callers are still sent to a replica that has ended", func() bool { return m.replicas(t, r) == 1 })
	m.want(t, r, compute.Healthy, "")
	if after, done := m.acquire(t, r); after.URL == endpoint.URL {
		t.Error("callers are sent to the one that has ended")
	} else {
		defer done()
		ask(t, after, "pid")
	}
}

// TestScaleFollowsTheCallers makes callers come and go. A replica that is taken away first
// finishes its requests.
func TestScaleFollowsTheCallers(t *testing.T) {
	t.Parallel()
	m, r := newMachine(t, func(c *process.Config) { c.IdleLimit = 50 * time.Millisecond }), computetest.NewRelease(computetest.Serve)
	r.Resources = compute.Resources{MinScale: 1, MaxScale: 3}
	r.Env["N_JOBS_PER_WORKER"] = "2"
	m.apply(t, r)
	m.want(t, r, compute.Healthy, "")
	few := m.crowd(t, r, 2)
	if len(few.endpoints) != 1 || m.processes(t) != 1 {
		t.Errorf("two callers, which one replica is meant for, are at %v of %d", few.endpoints, m.processes(t))
	}
	more := m.crowd(t, r, 3)
	eventually(t, "five callers do not get three replicas", func() bool { return m.processes(t) == 3 && m.replicas(t, r) == 3 })
	more.disperse()
	// There is work for one replica, so two replicas end: the two that have no callers.
	eventually(t, "two replicas do not end", func() bool { return m.processes(t) == 1 })
	few.leave[0]()
	if endpoint, done := m.acquire(t, r); few.endpoints[endpoint.URL] != 2 {
		t.Errorf("the replica at %s is left, and two callers are at %v", endpoint.URL, few.endpoints)
	} else {
		ask(t, endpoint, "pid")
		done()
	}
	few.disperse()
}

// TestCallersQueueForAReplicaWithRoom has more callers at once than one replica is meant for.
// Each caller gets a replica of its own, as if the callers had come one by one.
func TestCallersQueueForAReplicaWithRoom(t *testing.T) {
	t.Parallel()
	m, r := newMachine(t, func(c *process.Config) { c.RoomLimit = time.Hour }), computetest.NewRelease(computetest.Serve)
	r.Resources = compute.Resources{MinScale: 1, MaxScale: 3}
	r.Env["N_JOBS_PER_WORKER"] = "1"
	m.apply(t, r)
	m.want(t, r, compute.Healthy, "")
	type visit struct {
		url  string
		done func()
	}
	entered := make(chan visit)
	for range 5 {
		go func() {
			endpoint, done, err := m.Acquire(patience(t), r.Ref)
			if err != nil {
				t.Error(err)
			}
			entered <- visit{endpoint.URL, done}
		}()
	}
	callers := map[string]int{}
	for range 5 {
		v := <-entered
		defer v.done()
		callers[v.url]++
	}
	// Three replicas are the maximum, so two of the five callers share a replica with another
	// caller.
	if len(callers) != 3 || m.processes(t) != 3 {
		t.Errorf("five callers of three replicas are at %v of %d", callers, m.processes(t))
	}
	for url, n := range callers {
		if n > 2 {
			t.Errorf("%d are at %s", n, url)
		}
	}
}

// TestAFullReplicaIsBetterThanNone has a second replica that never becomes healthy. A caller
// that queued for it goes to the first replica.
func TestAFullReplicaIsBetterThanNone(t *testing.T) {
	t.Parallel()
	m, r := newMachine(t, func(c *process.Config) { c.RoomLimit = 50 * time.Millisecond }), computetest.NewRelease("first-only")
	r.Resources = compute.Resources{MinScale: 1, MaxScale: 2}
	r.Env["N_JOBS_PER_WORKER"] = "1"
	m.apply(t, r)
	m.want(t, r, compute.Healthy, "")
	two := m.crowd(t, r, 2)
	defer two.disperse()
	if len(two.endpoints) != 1 {
		t.Errorf("two callers of one healthy replica are at %v", two.endpoints)
	}
}

// TestAReplicaIsTakenAwayWhenItsCallersHaveLeft has callers at two replicas when one replica
// is enough.
func TestAReplicaIsTakenAwayWhenItsCallersHaveLeft(t *testing.T) {
	t.Parallel()
	m, r := newMachine(t, func(c *process.Config) { c.IdleLimit, c.DrainLimit = 20*time.Millisecond, 20*time.Millisecond }), computetest.NewRelease(computetest.Serve)
	r.Resources = compute.Resources{MaxScale: 2}
	r.Env["N_JOBS_PER_WORKER"] = "4"
	m.apply(t, r)
	m.want(t, r, compute.Healthy, "")
	five := m.crowd(t, r, 5)
	eventually(t, "there are not two replicas", func() bool { return m.replicas(t, r) == 2 })
	one, leaveOne := m.acquire(t, r) // at the second replica, because five callers are at the first
	five.disperse()
	other, leaveOther := m.acquire(t, r)
	if one.URL == other.URL {
		t.Fatalf("two callers of two replicas are both at %s", one.URL)
	}
	eventually(t, "new callers are sent to both", func() bool {
		two := m.crowd(t, r, 2)
		defer two.disperse()
		return len(two.endpoints) == 1
	})
	// Another release is taken away from its callers when the limit is over. The callers of
	// this release may stay.
	another := computetest.NewRelease(computetest.Serve)
	m.apply(t, another)
	_, leaveAnother := m.acquire(t, another)
	defer leaveAnother()
	check.Must(t, m.Remove(t.Context(), another.Ref))
	eventually(t, "the release that is removed does not end", func() bool { return m.processes(t) == 2 })
	ask(t, one, "pid")
	ask(t, other, "pid")
	leaveOne()
	leaveOther()
	eventually(t, "the replica that is not needed does not end", func() bool { return m.processes(t) == 1 })
}

// processes is the number of the target's processes.
func (m machine) processes(t *testing.T) int {
	t.Helper()
	records, err := filepath.Glob(filepath.Join(m.dir, "running", "*.json"))
	check.Must(t, err)
	return len(records)
}
