package e2e_test

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

var (
	chaosSeed = flag.Uint64("chaos-seed", 0, "what everybody does in TestNothingIsLostAndNothingTwice; 0 picks one, which is printed")
	chaosTime = flag.Duration("chaos-time", 12*time.Second, "how long clients are at it in TestNothingIsLostAndNothingTwice")
)

const (
	chaosThreads = 4
	chaosClients = 8
)

// chaos is a server that is killed again and again, and what its clients know of it.
type chaos struct {
	t *testing.T
	// client speaks to the server at the address and with the key that it keeps over its restarts.
	client  *server
	agent   *deployment
	threads []*thread
	over    chan struct{}

	mu sync.Mutex
	// asked are the inputs that were accepted, by the run that they became; refused those that certainly were not.
	asked   map[string]accepted
	refused map[string]bool
	undone  []undoing
	// deleted are the runs that somebody wanted deleted, true where the server said that they are.
	deleted map[string]bool
	// halfway are those whose deletion lost its connection: some of their events may be gone.
	halfway map[string]bool
	// ended are the final statuses that somebody has seen.
	ended map[string]string
	reads []*reading
	// counts tells what was done how often.
	counts map[string]int
}

// accepted is a run that a client was told of.
type accepted struct {
	thread *thread
	text   string
}

// undoing is a request that may have removed a run, or with "" all that had not ended on the thread.
type undoing struct {
	thread *thread
	run    string
}

// TestNothingIsLostAndNothingTwice has many clients create, delay, interrupt, queue, reject, roll back, cancel, delete, join and stream runs on a few threads while the
// server and its agents are killed and started again. What each of them does is decided by a seed:
//
//	go test ./internal/e2e -run TestNothingIsLostAndNothingTwice -chaos-seed 7 -chaos-time 5m
func TestNothingIsLostAndNothingTwice(t *testing.T) {
	t.Parallel()
	seed := *chaosSeed
	for seed == 0 {
		seed = rand.Uint64() >> 1
	}
	t.Logf("replay this with -chaos-seed %d", seed)
	s := newServer(t)
	agent := s.deploy(t, agentRepository(t), "main")
	revision := value(agent.get(t).ActiveRevision)
	c := &chaos{
		t: t, client: &server{credentials: s.credentials}, over: make(chan struct{}),
		asked: map[string]accepted{}, refused: map[string]bool{}, deleted: map[string]bool{}, halfway: map[string]bool{}, ended: map[string]string{}, counts: map[string]int{},
	}
	c.agent = &deployment{server: c.client, path: agent.path, ID: agent.ID, url: agent.url}
	for range chaosThreads {
		c.threads = append(c.threads, c.agent.thread(t))
	}

	var clients, readers sync.WaitGroup
	for i := range chaosClients {
		one := &chaosClient{chaos: c, readers: &readers, rng: rand.New(rand.NewPCG(seed, uint64(i))), name: fmt.Sprint("client ", i)}
		clients.Go(one.run)
	}
	for _, thread := range c.threads {
		readers.Go(func() { c.watch(thread) })
		readers.Go(func() { c.listen(thread) })
	}
	c.kill(s, revision, rand.New(rand.NewPCG(seed, 1000)))
	close(c.over)
	clients.Wait()
	for _, thread := range c.threads {
		eventually(t, "the thread has nothing left to do", func() (bool, any) {
			status := thread.status(t)
			return status != "busy", status
		})
	}
	readers.Wait()
	defer func() { t.Logf("done: %v", c.counts) }()
	if t.Failed() {
		return
	}
	for _, thread := range c.threads {
		c.check(thread)
	}
	if c.counts["run success"] == 0 || c.counts["run interrupted"] == 0 || c.counts["server killed"] == 0 {
		t.Errorf("nothing was tested: %v", c.counts)
	}
}

// kill ends the server or its agents at random moments until the time is up.
func (c *chaos) kill(s *server, revision string, rng *rand.Rand) {
	over := time.NewTimer(*chaosTime)
	defer over.Stop()
	for {
		next := time.NewTimer(time.Duration(300+rng.IntN(2500)) * time.Millisecond)
		select {
		case <-over.C:
			next.Stop()
			return
		case <-next.C:
		}
		if rng.IntN(3) == 0 {
			// They may be about to start again after the last time.
			if pids, err := s.agents(revision); err != nil || end(pids) != nil {
				c.t.Error("kill agents:", errors.Join(err, end(pids)))
			}
			c.count("agent killed")
			continue
		}
		s.kill9(c.t)
		s.restart(c.t)
		c.count("server killed")
	}
}

func (c *chaos) count(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts[what]++
}

// finished reports whether the time is up.
func (c *chaos) finished() bool {
	select {
	case <-c.over:
		return true
	default:
		return false
	}
}

// final notes a status that somebody was shown: one that is final stays. Known are those that had ended before the question.
func (c *chaos) final(run, status string, known map[string]string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if status == "pending" || status == "running" {
		if known[run] != "" {
			c.t.Errorf("run %s was %s and is %s", run, known[run], status)
		}
		return
	}
	if before := c.ended[run]; before != "" && status != before {
		c.t.Errorf("run %s was %s and is %s", run, before, status)
	}
	c.ended[run] = status
}

// known are the runs that have ended.
func (c *chaos) known() map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.ended)
}

// mayBeGone reports whether somebody asked for the removal of a run while it may have been there.
func (c *chaos) mayBeGone(run string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, asked := c.deleted[run]; asked {
		return true
	}
	a := c.asked[run]
	for _, u := range c.undone {
		if u.run == run || (u.run == "" && u.thread == a.thread && c.ended[run] == "") {
			return true
		}
	}
	return false
}
