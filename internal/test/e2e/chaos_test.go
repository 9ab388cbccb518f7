package e2e_test

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
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

// chaos is a server that is killed repeatedly, and the knowledge of its clients.
type chaos struct {
	t *testing.T
	// client uses the address and the key of the server, which stay the same over its
	// restarts.
	client  *server
	agent   *deployment
	threads []*thread
	// spectators holds the spectators of the threads.
	spectators map[*thread]*spectator
	over       chan struct{}

	mu sync.Mutex
	// asked holds the accepted inputs, by their runs; refused holds the inputs that were
	// certainly not accepted.
	asked   map[string]accepted
	refused map[string]bool
	undone  []undoing
	// deleted holds the runs that a client wanted to delete; the value is true if the server
	// confirmed the deletion.
	deleted map[string]bool
	// halfway holds the runs whose deletion lost its connection: some of their events may be
	// gone.
	halfway map[string]bool
	// ended holds the final statuses that a client has seen.
	ended map[string]string
	reads []*reading
	// counts holds how often each action was done.
	counts map[string]int

	wrongMu sync.Mutex
	// wrong holds the errors that were found.
	wrong []string
}

// accepted is a run whose creation the server confirmed to a client.
type accepted struct {
	thread *thread
	text   string
}

// undoing is a request that may have removed a run or, with "", all runs on the thread that
// had not ended.
type undoing struct {
	thread *thread
	run    string
}

// TestNothingIsLostAndNothingTwice has many clients create, delay, interrupt, queue, reject,
// roll back, cancel, delete, join and stream runs on a few threads while the server and its
// agents are killed and started again. A seed decides the actions of each client:
//
//	go test ./internal/test/e2e -run TestNothingIsLostAndNothingTwice -chaos-seed 7 -chaos-time 5m
func TestNothingIsLostAndNothingTwice(t *testing.T) {
	t.Parallel()
	seed := *chaosSeed
	for seed == 0 {
		seed = rand.Uint64() >> 1
	}
	t.Logf("replay this with -chaos-seed %d", seed)
	c := &chaos{
		t: t, over: make(chan struct{}), spectators: map[*thread]*spectator{},
		asked: map[string]accepted{}, refused: map[string]bool{}, deleted: map[string]bool{}, halfway: map[string]bool{}, ended: map[string]string{}, counts: map[string]int{},
	}
	t.Cleanup(c.conclude)
	s := newServer(t, trusting()...)
	agent := s.deploy(t, agentRepository(t), "main")
	revision := value(agent.get(t).ActiveRevision)
	c.client = &server{credentials: s.credentials}
	c.agent = &deployment{server: c.client, path: agent.path, ID: agent.ID, url: agent.url}
	for i := range chaosThreads {
		c.threads = append(c.threads, c.agent.thread(t))
		c.spectators[c.threads[i]] = newSpectator()
		if i%2 == 0 { // so long that the agent gets only the new messages
			said := map[string]any{"type": "ai", "id": "long", "content": strings.Repeat("word ", 10_000)}
			s.call(t, http.StatusOK, "POST", c.threads[i].url+"/state", map[string]any{"values": map[string]any{"messages": []any{said}}}, nil)
		}
	}

	hostile := c.newHostileTenant(s, rand.New(rand.NewPCG(seed, 2000)))

	var clients, readers sync.WaitGroup
	for i := range chaosClients {
		one := &chaosClient{chaos: c, readers: &readers, rng: rand.New(rand.NewPCG(seed, uint64(i))), name: fmt.Sprint("client ", i)}
		clients.Go(one.run)
	}
	for _, thread := range c.threads {
		readers.Go(func() { c.spectate(thread) })
		readers.Go(func() { c.watch(thread) })
		readers.Go(func() { c.listen(thread) })
	}
	if hostile != nil {
		clients.Go(hostile.run)
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
	if t.Failed() {
		return
	}
	if hostile != nil {
		hostile.conclude()
	}
	for _, thread := range c.threads {
		c.check(thread)
	}
	if c.counts["run success"] == 0 || c.counts["run interrupted"] == 0 || c.counts["server killed"] == 0 {
		c.errorf("nothing was tested: %v", c.counts)
	}
}

// longer is how often the time is started again if too little has happened in it, for example
// on a busy machine.
const longer = 10

// kill ends the server or its agents at random moments until the time is up and enough has
// happened: the server first, so that it is ended at least once.
func (c *chaos) kill(s *server, revision string, rng *rand.Rand) {
	over := time.NewTimer(*chaosTime)
	defer over.Stop()
	for again := 0; ; {
		next := time.NewTimer(time.Duration(300+rng.IntN(2500)) * time.Millisecond)
		select {
		case <-over.C:
			next.Stop()
			if again++; again > longer || c.enough() {
				return
			}
			over.Reset(*chaosTime)
			continue
		case <-next.C:
		}
		if rng.IntN(3) == 0 && c.counted("server killed") > 0 {
			// The agents may be about to start again after the last time.
			if pids, err := s.agents(revision); err != nil || end(pids) != nil {
				c.errorf("kill agents: %v", errors.Join(err, end(pids)))
			}
			c.count("agent killed")
			continue
		}
		s.kill9(c.t)
		s.restart(c.t)
		c.count("server killed")
	}
}

// enough reports whether clients have seen every event that the test is about.
func (c *chaos) enough() bool {
	seen := slices.Collect(maps.Values(c.known()))
	return c.counted("server killed") > 0 && slices.Contains(seen, "success") && slices.Contains(seen, "interrupted")
}

func (c *chaos) errorf(format string, args ...any) {
	c.t.Helper()
	what := fmt.Sprintf(format, args...)
	c.wrongMu.Lock()
	c.wrong = append(c.wrong, what)
	c.wrongMu.Unlock()
	c.t.Error(what)
}

// conclude reports the errors again, after the server's log, so that they are visible when
// only the end of the output is shown.
func (c *chaos) conclude() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t.Logf("done: %v", c.counts)
	c.wrongMu.Lock()
	defer c.wrongMu.Unlock()
	for _, what := range c.wrong[:min(len(c.wrong), 3)] {
		c.t.Logf("wrong: %.1000s", what)
	}
}

func (c *chaos) count(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts[what]++
}

func (c *chaos) counted(what string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counts[what]
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

// final notes a status that a client was shown: a final status does not change. known holds
// the runs that had ended before the request.
func (c *chaos) final(run, status string, known map[string]string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if status == "pending" || status == "running" {
		if known[run] != "" {
			c.errorf("run %s was %s and is %s", run, known[run], status)
		}
		return
	}
	if before := c.ended[run]; before != "" && status != before {
		c.errorf("run %s was %s and is %s", run, before, status)
	}
	c.ended[run] = status
}

// known returns the runs that have ended.
func (c *chaos) known() map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.ended)
}

// mayBeGone reports whether a client requested the removal of a run at a time when the run may
// have existed.
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
