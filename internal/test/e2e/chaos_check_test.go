package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// watch reads a thread's runs all the time: a run that has ended does not change, and at most
// one run is running.
func (c *chaos) watch(th *thread) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for !c.finished() {
		known := c.known()
		got, err := c.client.do(c.t.Context(), "GET", th.url+"/runs?limit=1000", nil)
		if err != nil {
			c.lost(err)
			continue
		}
		var runs []runBody
		if got.status != http.StatusOK || json.Unmarshal(got.body, &runs) != nil {
			c.errorf("list: status %d: %s", got.status, got.body)
			return
		}
		running := []string{}
		for _, run := range runs {
			c.final(run.ID, run.Status, known)
			if run.Status == "running" {
				running = append(running, run.ID)
			}
		}
		if len(running) > 1 {
			c.errorf("the runs %v are running at once", running)
		}
		select {
		case <-ticker.C:
		case <-c.over:
		}
	}
}

// listen follows a thread over all its runs, and checks that each id comes once.
func (c *chaos) listen(th *thread) {
	ctx, cancel := context.WithCancel(c.t.Context())
	defer cancel()
	go func() {
		select {
		case <-c.over:
			cancel()
		case <-ctx.Done():
		}
	}()
	all, from := &stream{}, "-"
	for !c.finished() {
		s, status, err := c.client.dial(ctx, "GET", th.url+"/stream", nil, "Last-Event-ID", from)
		switch {
		case err != nil:
			c.lost(err)
			continue
		case status != http.StatusOK:
			c.errorf("stream of thread %s: status %d", th.ID, status)
			return
		}
		s.drain()
		all.seen = append(all.seen, s.seen...)
		s.body.Close()
		if len(all.seen) > 0 {
			from = all.lastID()
		}
	}
	c.increasing("the stream of thread "+th.ID, all.seen, -1)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts["thread events"] += len(all.seen)
}

// increasing checks that the ids of events increase from a position on, and returns the last
// id. A thread's stream has the id "7.end" after event 7 of a run that has ended there.
func (c *chaos) increasing(what string, events []event, last float64) float64 {
	for i, e := range events {
		if e.id == "" {
			continue
		}
		number, ends := strings.CutSuffix(e.id, ".end")
		id, err := strconv.ParseFloat(number, 64)
		if ends {
			id += 0.5
		}
		if err != nil || id <= last {
			c.errorf("%s: event %d, %.200v, follows id %v; before it came\n%s", what, i, e, last, brief(events[max(0, i-5):i]))
			return last
		}
		last = id
	}
	return last
}

// check compares the final state of a thread with the knowledge of its clients.
func (c *chaos) check(th *thread) {
	runs, final := th.list(c.t), th.state(c.t)
	listed, texts := map[string]bool{}, map[string]string{}
	position := -1.0
	var began []runBody
	for _, run := range runs {
		listed[run.ID] = true
		c.final(run.ID, run.Status, c.known())
		c.count("run " + run.Status)
		if c.ended[run.ID] == "" {
			c.errorf("run %s is %s for ever", run.ID, run.Status)
		}
		text := run.Kwargs.Input.Messages[0].Content
		texts[run.ID] = text
		if c.refused[text] {
			c.errorf("%q was refused, and is run %s", text, run.ID)
		}
		withdrawn := run.CancelReason == "The run was cancelled." && !slices.Contains(questions(final), text)
		if c.halfway[run.ID] {
			// A client that did not learn that a run is deleted sends the request again.
			got, err := c.client.do(c.t.Context(), "DELETE", th.url+"/runs/"+run.ID, nil)
			if err != nil || got.status != http.StatusNoContent {
				c.errorf("the second deletion of run %s: status %d, error %v", run.ID, got.status, err)
			}
			c.count("run deleted at last")
			if withdrawn { // its events, which would show whether it had started, may be gone
				delete(texts, run.ID)
			}
			continue
		}
		whole := th.follow(c.t, run.ID, "-1")
		whole.rest(c.t)
		if len(whole.seen) > 0 && whole.seen[0].name == "metadata" {
			began = append(began, run)
		}
		position = c.increasing("the events of run "+run.ID, whole.seen, position)
		c.checkReadings(run, whole.seen)
		c.checkShown(run, whole.seen, final)
		if withdrawn && len(whole.seen) == 0 {
			c.count("run cancelled before it started")
			delete(texts, run.ID)
		}
	}
	for run, a := range c.asked {
		if a.thread != th || listed[run] {
			continue
		}
		done, asked := c.deleted[run]
		switch {
		case asked && slices.Contains(questions(final), a.text):
			c.count("run deleted")
			texts[run] = a.text // which stays
		case done && !slices.ContainsFunc(c.reads, func(r *reading) bool { return r.run == run && len(r.seen) > 0 }):
			c.count("run deleted before its turn")
		case !c.mayBeGone(run) || (c.ended[run] != "" && !asked):
			c.errorf("run %s (%q), which was %q, is gone", run, a.text, c.ended[run])
		default:
			c.count("run rolled back")
		}
	}
	want := []string{}
	for _, run := range slices.Sorted(maps.Keys(texts)) { // in the order of their turns
		want = append(want, texts[run])
	}
	if got := questions(final); !slices.Equal(got, want) {
		c.errorf("thread %s has the questions\n%s\nits runs asked\n%s\n%s", th.ID, strings.Join(got, "\n"), strings.Join(want, "\n"), statuses(runs))
	}
	last := ask("what's the weather in nyc, at last?", fast).with("multitask_strategy", "reject")
	th.wait(c.t, last).Messages[len(final):].expect(c.t, answered...)
	newest := slices.MaxFunc(th.list(c.t), func(a, b runBody) int { return strings.Compare(a.ID, b.ID) })
	c.checkSpectator(th, newest.ID, began)
}

// checkReadings checks that all readers of a run saw the same events, however often they
// connected again.
func (c *chaos) checkReadings(run runBody, whole []event) {
	for _, r := range c.reads {
		if r.run != run.ID {
			continue
		}
		c.counts["readings"]++
		if len(r.seen) != len(whole) || !slices.Equal(r.seen, whole) {
			at := 0
			for at < min(len(r.seen), len(whole)) && r.seen[at] == whole[at] {
				at++
			}
			c.errorf("a reader of run %s, which is %s, saw %d events of %d; they differ from event %d on:\n%.600v\nwant\n%.600v",
				run.ID, run.Status, len(r.seen), len(whole), at, r.seen[at:], whole[at:])
		}
	}
}

// checkShown checks that the state contains the text that the last attempt at a run has shown:
// as its message, or as the beginning of the message of an earlier attempt, which covers it.
func (c *chaos) checkShown(run runBody, whole []event, final messages) {
	kept, ids, shown := map[string]message{}, []string{}, map[string]string{}
	for _, m := range final {
		kept[m.ID] = m
	}
	for _, e := range whole {
		var pair []message
		switch e.name {
		case "metadata":
			shown = map[string]string{}
		case "messages":
			decode(c.t, e.data, &pair)
			ids, shown[pair[0].ID] = append(ids, pair[0].ID), shown[pair[0].ID]+pair[0].Content
		case "messages/partial":
			decode(c.t, e.data, &pair)
			ids, shown[pair[0].ID] = append(ids, pair[0].ID), pair[0].Content
		}
	}
	for id, text := range shown {
		m, there := kept[id]
		covered := !there && slices.ContainsFunc(ids, func(other string) bool { return other != id && strings.HasPrefix(kept[other].Content, text) })
		if text != "" && m.Content != text && !covered {
			c.errorf("run %s, which is %s, has shown %q as %s, the state keeps %+v; its events are\n%s", run.ID, run.Status, text, id, m, brief(whole))
		}
		if run.Status == "success" && m.Metadata.Incomplete {
			c.errorf("run %s is a success and leaves %+v", run.ID, m)
		}
	}
}

// statuses returns one line for each run.
func statuses(runs []runBody) string {
	var text strings.Builder
	for _, run := range runs {
		fmt.Fprintf(&text, "%s %s %q\n", run.ID, run.Status, run.CancelReason)
	}
	return text.String()
}

// brief returns one line for each event.
func brief(events []event) string {
	var text strings.Builder
	for _, e := range events {
		fmt.Fprintf(&text, "%s %s %.300s\n", e.id, e.name, e.data)
	}
	return text.String()
}
