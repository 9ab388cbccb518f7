package e2e_test

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
)

// spectator is a client that follows a thread in the thread-centric protocol, over all its
// runs and the deaths of the server.
type spectator struct {
	// since is the number of the last event, events holds all events by their ids.
	since  int64
	events map[string]string
	// lifecycles holds the lifecycle events of the runs, by the runs' ids.
	lifecycles map[string][]string
}

// spectate follows a thread until the time is up.
func (c *chaos) spectate(th *thread) {
	ctx, cancel := context.WithCancel(c.t.Context())
	defer cancel()
	go func() {
		select {
		case <-c.over:
			cancel()
		case <-ctx.Done():
		}
	}()
	of := c.spectators[th]
	for !c.finished() {
		s, status, err := c.attend(ctx, th, of)
		switch {
		case err != nil:
			c.lost(err)
			continue
		case status != http.StatusOK:
			c.errorf("stream of events of thread %s: status %d", th.ID, status)
			return
		}
		for e, ok := s.next(); ok; e, ok = s.next() {
			c.takes(th, of, e)
		}
		s.body.Close()
	}
}

func (c *chaos) attend(ctx context.Context, th *thread, of *spectator) (*stream, int, error) {
	return c.client.dial(ctx, "POST", th.url+"/stream/events", map[string]any{"channels": []string{"lifecycle", "values", "messages", "updates"}, "since": of.since})
}

// takes notes an event. Its number is greater than the number of the previous event, and its
// id is new.
func (c *chaos) takes(th *thread, of *spectator, e event) {
	var read struct {
		ID     string `json:"event_id"`
		Seq    int64
		Method string
	}
	if err := json.Unmarshal([]byte(e.data), &read); err != nil {
		c.errorf("an event of thread %s: %v: %s", th.ID, err, e.data)
		return
	}
	if _, known := of.events[read.ID]; read.Seq <= of.since || known {
		c.errorf("thread %s: the event %.300s comes behind the number %d, and its id was there: %t", th.ID, e.data, of.since, known)
	}
	of.since, of.events[read.ID] = read.Seq, e.data
	if run, name, isRoot := strings.Cut(strings.TrimPrefix(read.ID, "synth:"), ":"); isRoot && strings.HasPrefix(read.ID, "synth:") {
		of.lifecycles[run] = append(of.lifecycles[run], name)
	}
}

// newSpectator returns a spectator that has seen nothing yet.
func newSpectator() *spectator {
	return &spectator{events: map[string]string{}, lifecycles: map[string][]string{}}
}

// runOf returns the run to which the id of an event belongs.
func runOf(id string) string {
	run, _, _ := strings.Cut(strings.TrimPrefix(id, "synth:"), ":")
	return run
}

// checkSpectator continues to read until the end of the thread's last run, and checks that
// each run has a beginning and one end, and that the spectator has seen each event that a later
// reader gets. Runs that never began are numbered by their count: the removal of some of
// them may hide the ends of other runs from a spectator that was disconnected meanwhile.
func (c *chaos) checkSpectator(th *thread, last string, began []runBody) {
	of, late := c.spectators[th], newSpectator()
	c.readOn(th, of, last)
	c.readOn(th, late, last)
	runs := map[string]bool{}
	for _, run := range began {
		runs[run.ID] = true
		got := of.lifecycles[run.ID]
		if len(got) != 2 || got[0] != "running" || !slices.Contains([]string{"completed", "failed", "interrupted"}, got[1]) {
			c.errorf("the lifecycle of run %s, which is %s, is %v; a later reader gets %v", run.ID, run.Status, got, late.lifecycles[run.ID])
		}
	}
	for id, data := range late.events {
		if runs[runOf(id)] && of.events[id] != data {
			c.errorf("thread %s: a later reader gets %.300s; the spectator has seen %.300s", th.ID, data, of.events[id])
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts["protocol events"] += len(of.events)
}

// readOn reads behind the spectator's last event until the end of a run.
func (c *chaos) readOn(th *thread, of *spectator, last string) {
	s, status, err := c.attend(c.t.Context(), th, of)
	if err != nil || status != http.StatusOK {
		c.errorf("stream of events of thread %s: status %d, error %v", th.ID, status, err)
		return
	}
	defer s.body.Close()
	s.until(c.t, "the end of run "+last, func(e event) bool {
		c.takes(th, of, e)
		return len(of.lifecycles[last]) > 1
	})
}
