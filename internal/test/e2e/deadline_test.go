//go:build lambda

package e2e_test

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/slipway-run/slipway/internal/test/check"
)

// hurried is the project with another timeout of a function. A runner needs the last three
// seconds of its time to hand its work over.
func hurried(t *testing.T, function, seconds string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(built.root, "template.yaml"))
	check.Must(t, err)
	resource := regexp.MustCompile(`(?s)\n  ` + function + `:\n.*?\n      Timeout: (\d+)\n`)
	found := resource.FindSubmatchIndex(text)
	if found == nil {
		t.Fatalf("the template says no timeout of %s", function)
	}
	root := t.TempDir()
	changed := string(text[:found[2]]) + seconds + string(text[found[3]:])
	check.Must(t, os.WriteFile(filepath.Join(root, "template.yaml"), []byte(changed), 0o600))
	check.Must(t, os.Symlink(filepath.Join(built.root, "infra"), filepath.Join(root, "infra")))
	return root
}

func TestRunIsLongerThanItsFunctionMayTake(t *testing.T) {
	t.Parallel()
	s := newStack(t, "--root", hurried(t, "Runner", "8"))
	agent := s.deploy(t, agentRepository(t), "main")

	t.Run("it goes on in the next slice", func(t *testing.T) {
		t.Parallel()
		thread := agent.thread(t)
		// A slice has time for one step and the beginning of another step.
		seen := thread.stream(t, ask(askSF, map[string]any{"token_delay_ms": 0, "node_delay_ms": 3500}).streaming())
		behind := thread.run(t, ask(askNYC, fast))
		seen.rest(t)
		expectAttempts(t, seen, 1, 2, 3)
		final := thread.join(t, seen.run()).Messages
		final.expect(t, answered...)
		if text := seen.shown(t); text != final.last().Content {
			t.Errorf("the client was shown %q, the answer is %q", text, final.last().Content)
		}
		all := thread.follow(t, seen.run(), "-1")
		all.rest(t)
		expectIncreasing(t, all.seen)
		expectSame(t, "the replay", all.seen, seen.seen)
		thread.join(t, behind.ID)
		thread.expectRuns(t, "success", "success")
		thread.state(t).expect(t, slices.Concat(answered, answered)...)
	})

	t.Run("it ends in words if no slice has time for a step", func(t *testing.T) {
		t.Parallel()
		thread := agent.thread(t)
		run := thread.run(t, ask(askSF, thinking))
		behind := thread.run(t, ask(askNYC, fast))
		if failure := thread.join(t, run.ID).Error; failure == nil || failure.Message == "" {
			t.Errorf("the run's values do not say why: %+v", failure)
		}
		thread.join(t, behind.ID)
		thread.expectRuns(t, "timeout", "success")
		thread.state(t).expect(t, slices.Concat([]string{"human"}, answered)...)
	})
}

// TestWorkerHangs has a worker that neither works nor ends: the platform ends the worker when
// its time is over.
func TestWorkerHangs(t *testing.T) {
	t.Parallel()
	s := newStack(t, "--root", hurried(t, "Runner", "12"))
	thread := s.deploy(t, agentRepository(t), "main").thread(t)
	// The rest of its answer at the time when it hangs must fit into one slice.
	seen := thread.stream(t, ask(askSF, map[string]any{"token_delay_ms": 40, "answer_words": 75, "node_delay_ms": 100}).streaming())
	seen.untilShown(t, 5)
	signal(t, syscall.SIGSTOP, s.functions(t, "Runner")...)
	seen.rest(t)
	expectAttempts(t, seen, 1, 2)
	expectRecovered(t, thread, seen)
}

func TestStreamIsLongerThanItsFunctionMayTake(t *testing.T) {
	t.Parallel()
	s := newStack(t, "--root", hurried(t, "Runstream", "3"))
	agent := s.deploy(t, agentRepository(t), "main")
	long := map[string]any{"token_delay_ms": 40, "answer_words": 200, "node_delay_ms": 0}

	t.Run("a stream is taken up where it was cut", func(t *testing.T) {
		t.Parallel()
		thread := agent.thread(t)
		part := thread.stream(t, ask(askSF, long).streaming())
		run, seen, cuts := part.run(), []event{}, 0
		for part.drain(); part.err != nil; part.drain() {
			cuts++
			seen = append(seen, part.seen...)
			part = thread.follow(t, run, (&stream{seen: seen}).lastID())
		}
		seen = append(seen, part.seen...)
		if cuts < 2 {
			t.Errorf("the stream was cut %d times", cuts)
		}
		all := thread.follow(t, run, "-1")
		all.rest(t)
		expectSame(t, "the parts together", seen, all.seen)
		expectAttempts(t, all, 1)
		thread.expectRuns(t, "success")
	})

	t.Run("who waits is told to wait again", func(t *testing.T) {
		t.Parallel()
		thread := agent.thread(t)
		cuts := 0
		method, address, body := "POST", thread.url+"/runs/wait", any(ask(askSF, long))
		for {
			got, err := s.do(t.Context(), method, address, body)
			if err == nil && got.status == http.StatusOK {
				var left values
				decode(t, string(got.body), &left)
				left.Messages.expect(t, answered...)
				break
			}
			if err == nil && (got.status != http.StatusServiceUnavailable || got.header.Get("Retry-After") == "") {
				t.Fatalf("the request was answered with %d %v %s", got.status, got.header, got.body)
			}
			cuts++
			method, address, body = "GET", thread.url+"/runs/"+thread.list(t)[0].ID+"/join", nil
		}
		if cuts < 2 {
			t.Errorf("the requests were cut %d times", cuts)
		}
		thread.expectRuns(t, "success")
		if text := thread.state(t).last().Content; len(strings.Fields(text)) != 200 {
			t.Errorf("the answer is %q", text)
		}
	})
}
