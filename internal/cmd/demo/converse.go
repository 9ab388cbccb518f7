package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/slipway-run/slipway/internal/base/sse"
	"github.com/slipway-run/slipway/internal/cmd/client"
	"github.com/slipway-run/slipway/internal/cmd/output"
)

// The questions of the two runs.
const (
	firstQuestion  = "what's the weather in sf?"
	secondQuestion = "what's the weather in nyc?"
)

// turn holds what the demo saw of a run.
type turn struct {
	number   int
	question string
	run      string
	stream   *client.Stream
	answer   client.Answer
	status   string
	// ended is the time when its stream ended.
	ended time.Time
	// tokens counts the pieces of answers that were shown.
	tokens int
	// pieces holds the text of the messages that were not complete when the stream ended, by id.
	pieces map[string]string
	// joined holds the messages in the answer of join.
	joined []output.Message
}

// converse asks, interrupts the answer, follows both runs to their ends, and checks and shows the
// thread.
func (d *demo) converse(ctx context.Context, agent string) error {
	d.waiting = "the agent's runs are still going on"
	var created struct {
		ID string `json:"thread_id"`
	}
	if err := d.client.Call(ctx, http.MethodPost, agent+"/threads", map[string]any{}, &created); err != nil {
		return err
	}
	thread := agent + "/threads/" + created.ID
	d.show(output.Event{Kind: output.KindThread, Thread: created.ID, URL: d.client.Address(thread)})
	first := &turn{number: 1, question: firstQuestion, answer: client.NewAnswer(), pieces: map[string]string{}}
	second := &turn{number: 2, question: secondQuestion, answer: client.NewAnswer(), pieces: map[string]string{}}
	if err := d.interrupt(ctx, thread, first, second); err != nil {
		return err
	}
	if err := d.follow(ctx, second, nil); err != nil {
		return err
	}
	if err := d.showEnd(ctx, thread, second, ""); err != nil {
		return err
	}
	messages, err := d.join(ctx, thread, first, second)
	if err != nil {
		return err
	}
	d.show(output.Event{Kind: output.KindState, Thread: created.ID, Messages: messages})
	seen := conversation{first: first, second: second, messages: messages}
	return seen.check(d.example)
}

// interrupt runs the first question, and the second question in the middle of the answer to
// the first.
func (d *demo) interrupt(ctx context.Context, thread string, first, second *turn) error {
	d.show(output.Event{Kind: output.KindRun, Run: first.number, Text: first.question})
	if err := d.start(ctx, thread, first); err != nil {
		return err
	}
	enough := make(chan struct{})
	var requestedAt time.Time
	group, both := errgroup.WithContext(ctx)
	group.Go(func() error {
		return d.follow(both, first, func() {
			d.show(output.Event{Kind: output.KindRun, Run: second.number, Text: fmt.Sprintf("%s (interrupts run 1 after %d tokens)", second.question, first.tokens)})
			requestedAt = time.Now()
			close(enough)
		})
	})
	group.Go(func() error {
		select {
		case <-enough:
			return d.start(ctx, thread, second)
		case <-both.Done():
			return context.Cause(both)
		}
	})
	if err := group.Wait(); err != nil {
		return err
	}
	return d.showEnd(ctx, thread, first, fmt.Sprintf("%d ms after run 2 was asked for", first.ended.Sub(requestedAt).Milliseconds()))
}

// start asks the question of a turn.
func (d *demo) start(ctx context.Context, thread string, t *turn) (err error) {
	t.stream, err = d.client.Stream(ctx, http.MethodPost, thread+"/runs/stream", map[string]any{
		"assistant_id":       graph,
		"input":              map[string]any{"messages": []any{map[string]any{"role": "user", "content": t.question}}},
		"multitask_strategy": "interrupt",
		"stream_mode":        []string{"updates", "messages-tuple"},
	})
	if err == nil {
		t.run = path.Base(t.stream.Header.Get("Content-Location"))
	}
	return err
}

// follow shows the stream of a run until it ends. It calls enough, if enough is not nil, when
// InterruptAfter tokens have come, and fails if the run ends before.
func (d *demo) follow(ctx context.Context, t *turn, enough func()) (err error) {
	defer func() { err = errors.Join(err, t.stream.Close()) }()
	for {
		event, err := t.stream.Next(ctx)
		if err == io.EOF {
			break
		}
		if err != nil {
			return fmt.Errorf("read stream of run %s: %w", t.run, err)
		}
		before := t.tokens
		if err := d.handle(t, event); err != nil {
			return fmt.Errorf("read event %s of run %s: %w", event.Name, t.run, err)
		}
		if enough != nil && before < d.InterruptAfter && t.tokens >= d.InterruptAfter {
			enough()
		}
	}
	t.ended = time.Now()
	if enough != nil && t.tokens < d.InterruptAfter {
		return fmt.Errorf("run %s ended after %d tokens of its answer, before it could be interrupted after %d (--interrupt-after)", t.run, t.tokens, d.InterruptAfter)
	}
	return nil
}

// handle shows the parts of the answer in an event of a run.
func (d *demo) handle(t *turn, event sse.Event) (failed error) {
	err := t.answer.Read(event, func(part client.Part) {
		shown := output.Event{Run: t.number, RunID: t.run}
		switch {
		case part.Failure != "":
			failed = fmt.Errorf("the graph failed: %s", part.Failure)
		case part.Message != nil:
			delete(t.pieces, part.Message.ID)
			if part.Message.Text() != "" {
				shown.Kind, shown.Messages = output.KindMessage, []output.Message{*part.Message}
				d.show(shown)
			}
		default:
			t.tokens++
			t.pieces[part.ID] += part.Token
			shown.Kind, shown.Text = output.KindToken, part.Token
			d.show(shown)
		}
	})
	return errors.Join(failed, err)
}

// showEnd reads the final status of a run and shows it.
func (d *demo) showEnd(ctx context.Context, thread string, t *turn, note string) error {
	var read struct {
		Status string `json:"status"`
	}
	if err := d.client.Call(ctx, http.MethodGet, thread+"/runs/"+t.run, nil, &read); err != nil {
		return err
	}
	t.status = read.Status
	if t.status != "interrupted" {
		note = ""
	}
	d.show(output.Event{Kind: output.KindRunEnd, Run: t.number, RunID: t.run, Status: t.status, Text: note})
	return nil
}

// join joins the runs and returns the messages of the thread.
func (d *demo) join(ctx context.Context, thread string, turns ...*turn) ([]output.Message, error) {
	type values struct {
		Messages []output.Message `json:"messages"`
	}
	for _, t := range turns {
		var joined values
		if err := d.client.Call(ctx, http.MethodGet, thread+"/runs/"+t.run+"/join", nil, &joined); err != nil {
			return nil, err
		}
		t.joined = joined.Messages
	}
	var state struct {
		Values values `json:"values"`
	}
	if err := d.client.Call(ctx, http.MethodGet, thread+"/state", nil, &state); err != nil {
		return nil, err
	}
	return state.Values.Messages, nil
}
