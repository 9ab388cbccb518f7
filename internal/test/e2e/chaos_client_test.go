package e2e_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// chaosClient does one random action after the other, on any thread.
type chaosClient struct {
	*chaos
	readers *sync.WaitGroup
	rng     *rand.Rand
	name    string
	said    int
}

func (c *chaosClient) run() {
	for !c.finished() {
		th := c.threads[c.rng.IntN(len(c.threads))]
		switch c.rng.IntN(12) {
		case 0:
			c.create(th, "/runs")
		case 1, 2:
			c.create(th, "/runs/wait")
		case 3, 4:
			c.stream(th)
		case 5, 6, 7:
			c.join(th)
		case 8:
			c.cancel(th)
		case 9:
			c.replay(th)
		case 10:
			if c.rng.IntN(3) == 0 { // so that many runs reach their end
				c.cancelMany(th)
			}
		case 11:
			c.remove(th)
		}
	}
}

// question returns a request that no other client makes, and its text.
func (c *chaosClient) question() (request, string) {
	c.said++
	text := fmt.Sprintf("what's the weather in sf, %s, %d?", c.name, c.said)
	settings := map[string]any{"token_delay_ms": c.rng.IntN(8), "node_delay_ms": c.rng.IntN(80)}
	switch c.rng.IntN(25) {
	case 0:
		settings["fail"] = "tools"
	case 1:
		settings["crash_attempts"] = 1
	case 2, 3:
		settings["answer_words"] = 300
	}
	modes := [][]string{{"messages-tuple", "values"}, {"messages-tuple", "updates"}, {"messages"}, {"messages-tuple"}}
	strategies := []string{"enqueue", "enqueue", "enqueue", "enqueue", "enqueue", "enqueue", "interrupt", "interrupt", "reject", "rollback"}
	strategy := strategies[c.rng.IntN(len(strategies))]
	body := ask(text, settings).with("stream_mode", modes[c.rng.IntN(len(modes))]).with("multitask_strategy", strategy)
	if c.rng.IntN(6) == 0 {
		body = body.with("after_seconds", 0.1*float64(1+c.rng.IntN(12)))
		c.count("delayed")
	}
	return body, text
}

// asking notes the possible effects of a request to run, before the request is made.
func (c *chaosClient) asking(th *thread, body request) {
	if body["multitask_strategy"] == "rollback" {
		c.undoing(th, "")
	}
}

func (c *chaosClient) undoing(th *thread, run string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.undone = append(c.undone, undoing{thread: th, run: run})
}

// accepted notes the run that a request has created.
func (c *chaosClient) accepted(th *thread, location, text string) string {
	run := location[strings.LastIndexByte(location, '/')+1:]
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked[run] = accepted{th, text}
	return run
}

// create creates a run. The run is accepted or refused, or the client does not learn the
// result.
func (c *chaosClient) create(th *thread, path string) {
	body, text := c.question()
	c.asking(th, body)
	got, err := c.client.do(c.t.Context(), "POST", th.url+path, body)
	switch {
	case err != nil:
		c.lost(err)
	case got.status == http.StatusOK:
		run := c.accepted(th, got.header.Get("Content-Location"), text)
		c.count("created at " + path)
		if path == "/runs/wait" {
			c.values(th, run, got.body)
		}
	case got.status == http.StatusConflict && body["multitask_strategy"] == "reject":
		c.reject(text)
	default:
		c.errorf("POST %s: status %d: %s", path, got.status, got.body)
	}
}

func (c *chaosClient) reject(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refused[text] = true
	c.counts["rejected"]++
}

// lost waits until the server is available again, after a connection broke.
func (c *chaos) lost(err error) {
	c.count("connection lost")
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for !c.finished() {
		if got, err := c.client.do(c.t.Context(), "GET", "/ok", nil); err == nil && got.status == http.StatusOK {
			return
		}
		select {
		case <-ticker.C:
		case <-c.t.Context().Done():
			c.errorf("the server does not come back: %v", err)
			return
		}
	}
}

// values checks the status of a run whose values were returned: it has ended.
func (c *chaosClient) values(th *thread, run string, body []byte) {
	var left values
	if err := json.Unmarshal(body, &left); err != nil {
		c.errorf("the values of run %s: %v: %s", run, err, body)
	}
	if left.Error != nil && left.Error.Name == "RolledBack" {
		if !c.mayBeGone(run) {
			c.errorf("run %s was rolled back, and nobody asked for that", run)
		}
		return
	}
	got, err := c.client.do(c.t.Context(), "GET", th.url+"/runs/"+run, nil)
	if err != nil {
		c.lost(err)
		return
	}
	var ended runBody
	switch {
	case got.status == http.StatusNotFound && c.mayBeGone(run):
	case got.status != http.StatusOK:
		c.errorf("run %s has values and is answered with %d: %s", run, got.status, got.body)
	case json.Unmarshal(got.body, &ended) != nil || ended.Status == "pending" || ended.Status == "running":
		c.errorf("run %s has values and is %s", run, got.body)
	default:
		c.final(run, ended.Status, nil)
	}
}

// recent returns one of the runs of a thread that were accepted last.
func (c *chaosClient) recent(th *thread) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	runs := []string{}
	for run, a := range c.asked {
		if a.thread == th {
			runs = append(runs, run)
		}
	}
	if len(runs) == 0 {
		return ""
	}
	slices.Sort(runs)
	return runs[len(runs)-1-c.rng.IntN(min(len(runs), 5))]
}

func (c *chaosClient) join(th *thread) {
	run := c.recent(th)
	if run == "" {
		return
	}
	got, err := c.client.do(c.t.Context(), "GET", th.url+"/runs/"+run+"/join", nil)
	switch {
	case err != nil:
		c.lost(err)
	case got.status == http.StatusOK:
		c.count("joined")
		c.values(th, run, got.body)
	case got.status != http.StatusNotFound || !c.mayBeGone(run):
		c.errorf("join of %s: status %d: %s", run, got.status, got.body)
	}
}

func (c *chaosClient) cancel(th *thread) {
	run := c.recent(th)
	if run == "" {
		return
	}
	action := []string{"interrupt", "interrupt", "rollback"}[c.rng.IntN(3)]
	if action == "rollback" {
		c.undoing(th, run)
	}
	got, err := c.client.do(c.t.Context(), "POST", fmt.Sprintf("%s/runs/%s/cancel?action=%s&wait=%d", th.url, run, action, c.rng.IntN(2)), nil)
	switch {
	case err != nil:
		c.lost(err)
	case got.status == http.StatusAccepted || got.status == http.StatusNoContent:
		c.count("cancelled: " + action)
	case got.status != http.StatusNotFound:
		c.errorf("cancel of %s: status %d: %s", run, got.status, got.body)
	}
}

// cancelMany cancels some runs of a thread, or all of a status on all threads.
func (c *chaosClient) cancelMany(th *thread) {
	body, what := map[string]any{}, "some"
	action := []string{"interrupt", "interrupt", "rollback"}[c.rng.IntN(3)]
	if c.rng.IntN(3) == 0 {
		what = []string{"pending", "running", "all"}[c.rng.IntN(3)]
		body["status"] = what
		for _, each := range c.threads {
			if action == "rollback" {
				c.undoing(each, "")
			}
		}
	} else {
		runs := []string{}
		for range 1 + c.rng.IntN(3) {
			if run := c.recent(th); run != "" {
				runs = append(runs, run)
			}
			if action == "rollback" && len(runs) > 0 {
				c.undoing(th, runs[len(runs)-1])
			}
		}
		if len(runs) == 0 {
			return
		}
		body["thread_id"], body["run_ids"] = th.ID, runs
	}
	got, err := c.client.do(c.t.Context(), "POST", c.agent.url+"/runs/cancel?action="+action, body)
	switch {
	case err != nil:
		c.lost(err)
	case got.status == http.StatusNoContent:
		c.count("cancelled many: " + what)
	case got.status != http.StatusNotFound:
		c.errorf("cancel of %v: status %d: %s", body, got.status, got.body)
	}
}

// remove deletes a run, if it has ended. Its text stays.
func (c *chaosClient) remove(th *thread) {
	run := c.recent(th)
	if run == "" {
		return
	}
	c.removing(run, false)
	got, err := c.client.do(c.t.Context(), "DELETE", th.url+"/runs/"+run, nil)
	switch {
	case err != nil:
		c.mu.Lock()
		c.halfway[run] = true
		c.mu.Unlock()
		c.lost(err)
	case got.status == http.StatusNoContent:
		c.removing(run, true)
		c.count("deleted")
	case got.status != http.StatusConflict && (got.status != http.StatusNotFound || !c.mayBeGone(run)):
		c.errorf("delete of %s: status %d: %s", run, got.status, got.body)
	}
}

func (c *chaosClient) removing(run string, done bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deleted[run] = c.deleted[run] || done
}

// reading holds the events of a run that one reader has seen, over all its connections.
type reading struct {
	thread *thread
	run    string
	seen   []event
	// whole says that the reader saw the regular end.
	whole bool
}

// stream creates a run and leaves its events to a reader.
func (c *chaosClient) stream(th *thread) {
	body, text := c.question()
	c.asking(th, body)
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	s, status, err := c.client.dial(ctx, "POST", th.url+"/runs/stream", body)
	switch {
	case err != nil:
		c.lost(err)
	case status == http.StatusOK:
		c.count("streamed")
		c.read(cancel, th, c.accepted(th, s.header.Get("Content-Location"), text), s)
		return
	case status == http.StatusConflict && body["multitask_strategy"] == "reject":
		c.reject(text)
	default:
		c.errorf("POST /runs/stream: status %d", status)
	}
	cancel()
}

// replay reads a run from the beginning, whatever its status is.
func (c *chaosClient) replay(th *thread) {
	if run := c.recent(th); run != "" {
		c.count("followed")
		c.read(func() {}, th, run, nil)
	}
}

// read follows a run to its end in the background, over as many connections as necessary: some
// break, and the reader closes some.
func (c *chaosClient) read(cancel func(), th *thread, run string, s *stream) {
	leave := c.rng.IntN(20)
	r := &reading{thread: th, run: run}
	c.readers.Go(func() {
		for !c.follow(cancel, s, r, leave) {
			leave = -1
			var ctx context.Context
			ctx, cancel = context.WithTimeout(c.t.Context(), patience)
			var status int
			var err error
			s, status, err = c.client.dial(ctx, "GET", th.url+"/runs/"+run+"/stream", nil, "Last-Event-ID", (&stream{seen: r.seen}).lastID())
			switch {
			case err != nil:
				s = nil
				c.lost(err)
			case status == http.StatusNotFound && c.mayBeGone(run):
				cancel()
				return
			case status != http.StatusOK:
				c.errorf("stream of %s: status %d", run, status)
				cancel()
				return
			}
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.reads = append(c.reads, r)
	})
}

// follow reads one connection, and reports whether it reached its regular end.
func (c *chaosClient) follow(cancel func(), s *stream, r *reading, leave int) bool {
	defer cancel()
	if s == nil {
		return false
	}
	defer s.body.Close()
	for {
		e, more := s.next()
		if !more {
			break
		}
		r.seen = append(r.seen, e)
		if leave--; leave == 0 && e.id != "" {
			c.count("reader left")
			return false
		}
	}
	r.whole = s.err == nil
	return r.whole
}

// dial begins a stream; a refused stream has only a status.
func (s *server) dial(ctx context.Context, method, address string, body any, header ...string) (*stream, int, error) {
	got, err := s.send(ctx, method, address, body, header...)
	if err != nil {
		return nil, 0, err
	}
	if got.StatusCode != http.StatusOK {
		_, err := io.Copy(io.Discard, got.Body)
		return nil, got.StatusCode, errors.Join(err, got.Body.Close())
	}
	lines := bufio.NewScanner(got.Body)
	lines.Buffer(nil, 32<<20)
	return &stream{header: got.Header, body: got.Body, lines: lines}, got.StatusCode, nil
}
