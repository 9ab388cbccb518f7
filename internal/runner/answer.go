package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/slipway-run/slipway/internal/graph"
	"github.com/slipway-run/slipway/internal/record"
	"github.com/slipway-run/slipway/internal/run"
)

// answer takes an agent's events into an attempt.
type answer struct {
	attempt    *run.Attempt
	failure    *run.Failure
	interrupts map[string][]json.RawMessage
	// asked is how many bytes the interrupts hold.
	asked int
}

// updateError says that the agent sent something that cannot be folded into the state.
type updateError struct{ err error }

func (e *updateError) Error() string { return "The agent's update cannot be applied: " + e.err.Error() }

// take handles one event. Events of subgraphs, whose names carry a namespace, are shown only: the parent's update holds their result.
func (a *answer) take(event graph.Event) error {
	var err error
	switch event.Name {
	case graph.EventUpdates:
		err = a.attempt.Update(event.Name, event.Data)
	case graph.EventValues:
		err = a.attempt.Values(event.Data)
	case graph.EventError:
		a.failure = failure(event.Data)
	case graph.EventInterrupt:
		err = a.pause(event.Data)
	default:
		a.attempt.Show(event.Name, event.Data)
	}
	if err != nil {
		return &updateError{err}
	}
	return nil
}

// What an agent says of its end is kept on the run itself, which must stay small.
const (
	maxMessage   = 16 << 10
	maxQuestions = 128 << 10
)

func failure(data json.RawMessage) *run.Failure {
	f := new(run.Failure)
	if err := json.Unmarshal(data, f); err != nil || f.Name == "" {
		f = &run.Failure{Name: "Error", Message: string(data)}
	}
	f.Name, f.Message = beginning(f.Name, 256), beginning(f.Message, maxMessage)
	return f
}

// beginning cuts a text to a number of bytes, between characters.
func beginning(text string, size int) string {
	if len(text) <= size {
		return text
	}
	return strings.ToValidUTF8(text[:size], "") + " ..."
}

// pause notes the questions of a graph that waits for a person.
func (a *answer) pause(data json.RawMessage) error {
	var questions []json.RawMessage
	if err := json.Unmarshal(data, &questions); err != nil {
		return fmt.Errorf("interrupt is not a list: %w", err)
	}
	if a.asked += len(data); a.asked > maxQuestions {
		return fmt.Errorf("the questions of a pause hold %d bytes: the limit is %d", a.asked, maxQuestions)
	}
	if a.interrupts == nil {
		a.interrupts = map[string][]json.RawMessage{}
	}
	for _, question := range questions {
		var head struct {
			ID string `json:"id"`
		}
		if err := json.Unmarshal(question, &head); err != nil {
			return fmt.Errorf("interrupt is not an object: %w", err)
		}
		a.interrupts[head.ID] = append(a.interrupts[head.ID], question)
	}
	a.attempt.Show(graph.EventUpdates, record.Encode(map[string]any{"__interrupt__": questions}))
	return nil
}

func (a *answer) outcome() run.Outcome {
	if a.failure != nil {
		return run.Outcome{Status: run.Error, Failure: a.failure}
	}
	if a.interrupts != nil {
		return run.Outcome{Status: run.Success, Interrupts: record.Encode(a.interrupts)}
	}
	return run.Outcome{Status: run.Success}
}

// received is one event, or what ended the stream.
type received struct {
	event graph.Event
	err   error
}

// pump takes an agent's events until the clean end of its answer. Events that arrive close together are written together; the last ones are left for Finish.
func (r *Runner) pump(ctx context.Context, a *answer, events <-chan received) error {
	watcher := r.Runs.WatchAttempt(a.attempt)
	defer watcher.Stop()
	heartbeat := time.NewTicker(r.Heartbeat)
	defer heartbeat.Stop()
	flush := time.NewTimer(0)
	flush.Stop()
	for {
		select {
		case got, open := <-events:
			if !open { // the reader saw the end of ctx first
				return ctx.Err()
			}
			if errors.Is(got.err, io.EOF) {
				return nil
			}
			if got.err != nil {
				return got.err
			}
			if !a.attempt.Waiting() {
				flush.Reset(r.FlushDelay)
			}
			if err := a.take(got.event); err != nil {
				return err
			}
			if !a.attempt.Full() {
				continue
			}
		case <-flush.C:
		case <-heartbeat.C:
		case <-watcher.C():
			if err := r.Runs.Owned(ctx, a.attempt); err != nil {
				return err
			}
			continue
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := a.attempt.Flush(ctx); err != nil {
			return err
		}
	}
}

// receive reads the stream in the background, until its error or the end of ctx; then it closes the stream, and last the channel.
func receive(ctx context.Context, stream *graph.Stream) <-chan received {
	events := make(chan received, 64)
	go func() {
		defer close(events)
		defer stream.Close()
		for {
			event, err := stream.Next()
			select {
			case events <- received{event, err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	return events
}
