package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/base/child"
	"github.com/slipway-run/slipway/internal/test/check"
)

// cluster is the place in which a listener runs agents: processes, which outlive the
// listener's process. It stores with each release the order for which the release was made.
type cluster struct {
	registry *child.Registry

	mu       sync.Mutex
	releases map[string]placed
}

// placed is a running release; a release without a process has been removed.
type placed struct {
	order, url string
	process    *child.Process
	env        map[string]string
	output     *output
}

// output is the output of an agent. It is kept in the cluster until a listener has sent it to
// the server.
type output struct {
	mu      sync.Mutex
	text    []byte
	handed  int // the total number of lines
	waiting []string
}

// Write receives the output of the agent.
func (o *output) Write(text []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text = append(o.text, text...)
	for {
		line, rest, whole := bytes.Cut(o.text, []byte{'\n'})
		if !whole {
			return len(text), nil
		}
		o.waiting, o.text = append(o.waiting, string(line)), rest
	}
}

// next returns the waiting lines, and a key for sending them that belongs only to these lines.
func (o *output) next() (lines []string, key string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.waiting[:min(len(o.waiting), 1000)], fmt.Sprintf("line %d", o.handed)
}

// drop forgets lines that were sent.
func (o *output) drop(lines int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waiting, o.handed = o.waiting[lines:], o.handed+lines
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	registry, err := child.Open(filepath.Join(t.TempDir(), "agents"))
	check.Must(t, err)
	c := &cluster{registry: registry, releases: map[string]placed{}}
	t.Cleanup(func() {
		for _, r := range c.releases {
			if r.process != nil {
				if err := r.process.Kill(); err != nil {
					t.Error(err)
				}
			}
		}
		if err := registry.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// release returns the release that runs for a revision.
func (c *cluster) release(revision string) placed {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.releases[revision]
}

// obey executes an order, unless a greater order was executed, and returns the release that
// runs then. A release of a smaller order is replaced.
func (c *cluster) obey(ctx context.Context, w work) (placed, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.releases[w.Revision]
	if w.Order <= before.order {
		return before, nil
	}
	if before.process != nil {
		if err := before.process.Stop(ctx, patience); err != nil { // the agent finishes its work
			return placed{}, err
		}
	}
	now := placed{order: w.Order}
	if w.Verb == "apply" {
		var err error
		if now, err = c.start(ctx, w); err != nil {
			return placed{}, err
		}
	}
	c.releases[w.Revision] = now
	return now, nil
}

// start runs the image weather:VERSION, which is the only image.
func (c *cluster) start(ctx context.Context, w work) (placed, error) {
	var version string
	if _, err := fmt.Sscanf(w.Release.Image, "weather:%s", &version); err != nil {
		return placed{}, fmt.Errorf("there is no image %s", w.Release.Image)
	}
	free, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return placed{}, err
	}
	port := strconv.Itoa(free.Addr().(*net.TCPAddr).Port)
	if err := free.Close(); err != nil {
		return placed{}, err
	}
	env := []string{"HOST=127.0.0.1", "PORT=" + port}
	for name, value := range w.Release.Env {
		env = append(env, name+"="+value)
	}
	printed := new(output)
	process, err := c.registry.Start(child.Command{Args: []string{filepath.Join(built.agent, version)}, Env: env, Stdout: printed})
	return placed{order: w.Order, url: "http://127.0.0.1:" + port, process: process, env: w.Release.Env, output: printed}, err
}

// work is one order in the form of the interface.
type work struct {
	Deployment string            `json:"deployment_id"`
	Revision   string            `json:"revision_id"`
	Order      string            `json:"order"`
	Verb       string            `json:"verb"`
	Namespace  string            `json:"namespace"`
	Labels     map[string]string `json:"labels"`
	Release    *struct {
		Image        string            `json:"image"`
		Env          map[string]string `json:"env"`
		ResourceSpec json.RawMessage   `json:"resource_spec"`
	} `json:"release"`
}

// listener is a process of a listener: the reference client of that part of the interface. It
// claims work, executes it in its cluster and reports.
type listener struct {
	server       *server
	path, holder string
	cluster      *cluster

	mu      sync.Mutex
	session json.RawMessage
	number  int64
	busy    map[string]string // the order of each revision that is being executed
}

// run works until ctx ends. If the server does not answer, the request is repeated.
func (l *listener) run(ctx context.Context) {
	var working sync.WaitGroup
	defer working.Wait()
	l.busy = map[string]string{}
	for ctx.Err() == nil {
		var claim struct {
			Session json.RawMessage `json:"session"`
			Work    []work          `json:"work"`
		}
		got, err := l.server.do(ctx, "POST", l.path+"/claim", map[string]any{"holder": l.holder, "version": "reference"})
		if err != nil || got.status != http.StatusOK || json.Unmarshal(got.body, &claim) != nil {
			pause(ctx) // the server is down, or another process acts for the listener
			continue
		}
		l.mu.Lock()
		l.session = claim.Session
		for _, w := range claim.Work {
			if l.busy[w.Revision] != w.Order {
				l.busy[w.Revision] = w.Order
				working.Go(func() { l.carryOut(ctx, w) })
			}
		}
		l.mu.Unlock()
	}
}

func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(interval):
	}
}

// carryOut ends silently when the order or the session is no longer the present one, or when
// ctx has ended.
func (l *listener) carryOut(ctx context.Context, w work) {
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.busy[w.Revision] == w.Order {
			delete(l.busy, w.Revision)
		}
	}()
	if l.report(ctx, w, "progressing", "message", "the cluster is told") != http.StatusNoContent {
		return
	}
	release, err := l.cluster.obey(ctx, w)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		l.report(ctx, w, "failed", "reason", "IMAGE_UNAVAILABLE", "message", err.Error())
	case w.Verb == "remove":
		l.report(ctx, w, "absent")
	case answers(ctx, release.url):
		l.report(ctx, w, "healthy", "url", release.url)
		l.handIn(ctx, w, release.output)
	}
}

// handIn sends the output of an agent to the server, as it comes, until the server wants no
// more of it. Lines that the server may have received are sent again with the same key.
func (l *listener) handIn(ctx context.Context, w work, printed *output) {
	var lines []string
	var key string
	for ctx.Err() == nil {
		if len(lines) == 0 {
			if lines, key = printed.next(); len(lines) == 0 {
				pause(ctx)
				continue
			}
		}
		l.mu.Lock()
		body := map[string]any{"session": l.session, "deployment_id": w.Deployment, "revision_id": w.Revision, "lines": lines}
		l.mu.Unlock()
		got, err := l.server.do(ctx, "POST", l.path+"/logs", body, "Idempotency-Key", w.Revision+w.Order+key)
		switch {
		case err != nil || got.status == http.StatusTooManyRequests || got.status >= http.StatusInternalServerError:
			pause(ctx)
		case got.status == http.StatusNoContent:
			printed.drop(len(lines))
			lines = nil
		default:
			return
		}
	}
}

// answers waits until an agent is ready.
func answers(ctx context.Context, url string) bool {
	for ctx.Err() == nil {
		if got, err := http.Get(url + "/ping"); err == nil {
			got.Body.Close()
			if got.StatusCode == http.StatusOK {
				return true
			}
		}
		pause(ctx)
	}
	return false
}

// report sends a report until the server has accepted or refused it, and returns the status.
func (l *listener) report(ctx context.Context, w work, state string, more ...string) int {
	l.mu.Lock()
	l.number++
	body := map[string]any{
		"session": l.session, "deployment_id": w.Deployment, "revision_id": w.Revision, "order": w.Order, "number": l.number, "state": state,
	}
	l.mu.Unlock()
	for i := 0; i < len(more); i += 2 {
		body[more[i]] = more[i+1]
	}
	for ctx.Err() == nil {
		if got, err := l.server.do(ctx, "POST", l.path+"/report", body); err == nil && got.status < http.StatusInternalServerError {
			return got.status
		}
		pause(ctx)
	}
	return 0
}

// start runs a process of the listener until it is killed, which leaves its session as it is, or
// the test ends.
func (l *listener) start(t *testing.T) (kill func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		l.run(ctx)
	}()
	kill = func() {
		cancel()
		<-ended
	}
	t.Cleanup(kill)
	return kill
}
