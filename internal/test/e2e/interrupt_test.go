package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
)

const (
	askSF  = "what's the weather in sf?"
	askNYC = "what's the weather in nyc?"
)

// The messages of the thread after the first run was interrupted between its tool call and its
// answer.
var interrupted = slices.Concat([]string{"human", "call", "tool"}, answered)

func TestInterrupt(t *testing.T) {
	t.Parallel()
	agent := shared(t)

	t.Run("a run in the background is interrupted by a second one", func(t *testing.T) {
		t.Parallel()
		thread := agent.thread(t)
		first := thread.run(t, ask(askSF, slow))
		thread.awaitKinds(t, "human", "call", "tool")
		second := thread.run(t, ask(askNYC, fast).interrupting())
		final := thread.join(t, second.ID).Messages
		final.expect(t, interrupted...)
		if text := final.last().Content; !strings.Contains(text, "New York") || strings.Contains(text, "San Francisco") {
			t.Errorf("the answer is not about New York alone: %s", text)
		}
		thread.state(t).expect(t, interrupted...)
		thread.expectRuns(t, "interrupted", "success")
		thread.join(t, first.ID).Messages.expect(t, "human", "call", "tool")
		thread.join(t, second.ID).Messages.expect(t, interrupted...)
		if status := thread.status(t); status != "idle" {
			t.Errorf("the thread is %s", status)
		}
	})

	for _, mode := range []string{"messages-tuple", "messages"} {
		t.Run("tokens that a client was shown in the mode "+mode+" stay in their place", func(t *testing.T) {
			t.Parallel()
			thread := agent.thread(t)
			first := thread.stream(t, ask(askSF, map[string]any{"token_delay_ms": 30, "answer_words": 10_000, "node_delay_ms": 0}).
				with("stream_mode", []string{mode}))
			first.untilShown(t, 8)
			second := thread.run(t, ask(askNYC, fast).interrupting())
			// Text that arrives before the stream closes was shown, too.
			first.rest(t)
			shown := first.shown(t)
			thread.join(t, second.ID)
			final := thread.state(t)
			final.expect(t, "human", "call", "tool", "partial", "human", "call", "tool", "ai")
			if partial := final[3]; partial.Content != shown {
				t.Errorf("the thread keeps %q, the client was shown %q", partial.Content, shown)
			}
			thread.expectRuns(t, "interrupted", "success")
			thread.join(t, first.run()).Messages.expect(t, "human", "call", "tool", "partial")
		})
	}

	t.Run("a run that has ended stays a success", func(t *testing.T) {
		t.Parallel()
		thread := agent.thread(t)
		thread.wait(t, ask(askSF, fast))
		thread.wait(t, ask(askNYC, fast).interrupting())
		thread.expectRuns(t, "success", "success")
		thread.state(t).expect(t, slices.Concat(answered, answered)...)
	})

	t.Run("a run that has written nothing yet leaves its question", func(t *testing.T) {
		t.Parallel()
		thread := agent.thread(t)
		thread.run(t, ask(askSF, thinking))
		thread.wait(t, ask(askNYC, fast).interrupting())
		thread.expectRuns(t, "interrupted", "success")
		thread.state(t).expect(t, slices.Concat([]string{"human"}, answered)...)
	})

	t.Run("queued runs are interrupted too, and their questions stay in order", func(t *testing.T) {
		t.Parallel()
		thread := agent.thread(t)
		thread.run(t, ask("the first", slow))
		thread.awaitKinds(t, "human", "call", "tool")
		thread.run(t, ask("the second", fast))
		thread.run(t, ask("the third", fast))
		thread.wait(t, ask("the fourth", fast).interrupting())
		thread.expectRuns(t, "interrupted", "interrupted", "interrupted", "success")
		final := thread.state(t)
		final.expect(t, slices.Concat([]string{"human", "call", "tool", "human", "human"}, answered)...)
		if got, want := questions(final), []string{"the first", "the second", "the third", "the fourth"}; !slices.Equal(got, want) {
			t.Errorf("the questions are %q, want %q", got, want)
		}
	})

	t.Run("with enqueue, the second run waits for the first", func(t *testing.T) {
		t.Parallel()
		thread := agent.thread(t)
		first := thread.run(t, ask(askSF, map[string]any{"token_delay_ms": 5, "node_delay_ms": 100}))
		second := thread.run(t, ask(askNYC, fast).with("multitask_strategy", "enqueue"))
		thread.expectQueued(t, first.ID, second.ID)
		thread.join(t, second.ID).Messages.expect(t, slices.Concat(answered, answered)...)
		thread.join(t, first.ID).Messages.expect(t, answered...)
		thread.state(t).expect(t, slices.Concat(answered, answered)...)
		thread.expectRuns(t, "success", "success")
	})

	t.Run("with reject, the second run is refused and the first goes on", func(t *testing.T) {
		t.Parallel()
		thread := agent.thread(t)
		first := thread.run(t, ask(askSF, map[string]any{"token_delay_ms": 0, "node_delay_ms": 2500}))
		var refusal struct{ Detail string }
		for _, path := range []string{"/runs", "/runs/stream", "/runs/wait"} {
			thread.server.call(t, http.StatusConflict, "POST", thread.url+path, ask(askNYC, fast).with("multitask_strategy", "reject"), &refusal)
			if refusal.Detail == "" {
				t.Error("the refusal has no words")
			}
		}
		thread.join(t, first.ID)
		thread.state(t).expect(t, answered...)
		thread.expectRuns(t, "success")
	})
}

// questions returns the texts of the human messages.
func questions(m messages) []string {
	asked := []string{}
	for _, one := range m {
		if one.Type == "human" {
			asked = append(asked, one.Content)
		}
	}
	return asked
}

func TestTwentyInterruptsAtOnce(t *testing.T) {
	t.Parallel()
	interruptAtOnce(t, shared(t).thread(t))
}

// interruptAtOnce posts twenty runs concurrently, each of which interrupts the others, and
// checks their results.
func interruptAtOnce(t *testing.T, thread *thread) {
	t.Helper()
	const count = 20
	// Each run thinks for longer than all of them take to be posted, so that no run can end
	// before the next run is posted.
	patient := map[string]any{"token_delay_ms": 0, "node_delay_ms": 4000}
	begin := make(chan struct{})
	var posting sync.WaitGroup
	problems := make(chan error, count)
	for i := range count {
		posting.Go(func() {
			<-begin
			problems <- post(t.Context(), thread, ask(fmt.Sprintf("what's the weather in sf, client %d?", i), patient).interrupting())
		})
	}
	close(begin)
	posting.Wait()
	close(problems)
	for err := range problems {
		if err != nil {
			t.Error(err)
		}
	}
	eventually(t, "the thread is idle", func() (bool, any) {
		status := thread.status(t)
		return status == "idle", status
	})

	runs := thread.list(t)
	if len(runs) != count {
		t.Fatalf("there are %d runs", len(runs))
	}
	asked := []string{}
	for i, run := range runs {
		want := "interrupted"
		if i == count-1 {
			want = "success"
		}
		if run.Status != want {
			t.Errorf("run %d of %d is %s", i+1, count, run.Status)
		}
		if i > 0 && (run.Created < runs[i-1].Created || run.ID <= runs[i-1].ID) {
			t.Errorf("run %s of %s is listed after run %s of %s", run.ID, run.Created, runs[i-1].ID, runs[i-1].Created)
		}
		asked = append(asked, run.Kwargs.Input.Messages[0].Content)
		thread.join(t, run.ID)
	}
	if got := questions(thread.state(t)); !slices.Equal(got, asked) {
		t.Errorf("the thread has the questions\n%q, the runs asked\n%q", got, asked)
	}
}

// post starts a run; it is for calls from another goroutine than the test's.
func post(ctx context.Context, th *thread, body request) error {
	got, err := th.server.do(ctx, "POST", th.url+"/runs", body)
	if err == nil && got.status != http.StatusOK {
		err = fmt.Errorf("status %d: %s", got.status, got.body)
	}
	return err
}
