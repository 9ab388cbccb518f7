//go:build lambda

package e2e_test

import (
	"slices"
	"syscall"
	"testing"

	"github.com/slipway-run/slipway/internal/test/check"
)

// apart starts a function in a separate session: when the platform's process is killed, the
// function continues, and the platform does not know it.
const apart = `setsid env -u SLIPWAY_PROCESS APART=1 BOOTSTRAP >>"$TMPDIR/apart.log" 2>&1 & wait`

// workersApart returns the processes that were started in this way, and the processes that the
// platform takes for them.
func (s *server) workersApart(t *testing.T) (workers, known []int) {
	t.Helper()
	workers, err := processes(func(variable []byte) bool { return string(variable) == "APART=1" })
	check.Must(t, err)
	for _, pid := range s.functions(t, "Runner") {
		if !slices.Contains(workers, pid) {
			known = append(known, pid)
		}
	}
	own := s.functions(t, "Runner")
	workers = slices.DeleteFunc(workers, func(pid int) bool { return !slices.Contains(own, pid) })
	return workers, known
}

func signal(t *testing.T, sig syscall.Signal, pids ...int) {
	t.Helper()
	if len(pids) == 0 {
		t.Fatal("there is no process")
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, sig); err != nil {
			t.Fatalf("%s to process %d: %v", sig, pid, err)
		}
	}
}

// TestWorkerIsGivenUpThoughItLives has the platform give up a worker that continues anyway, at
// once or when it wakes up in the middle of its successor's work.
func TestWorkerIsGivenUpThoughItLives(t *testing.T) {
	t.Parallel()
	for name, frozen := range map[string]bool{"while it works": false, "while it is frozen": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStack(t, "--build", replaced(t, map[string]string{"runner": apart}))
			thread := s.deploy(t, agentRepository(t), "main").thread(t)
			seen := thread.stream(t, ask(askSF, lengthy).streaming())
			seen.untilShown(t, 10)
			workers, known := s.workersApart(t)
			if frozen {
				signal(t, syscall.SIGSTOP, workers...)
			}
			signal(t, syscall.SIGKILL, known...)
			seen.untilAttempt(t, 2)
			seen.untilShown(t, 5)
			if frozen {
				signal(t, syscall.SIGCONT, workers...)
			}
			seen.rest(t)
			expectAttempts(t, seen, 1, 2)
			// The worker ends when it notices that its answer is not accepted.
			eventually(t, "the worker has ended", func() (bool, any) {
				left, _ := s.workersApart(t)
				return !slices.ContainsFunc(workers, func(pid int) bool { return slices.Contains(left, pid) }), left
			})
			expectRecovered(t, thread, seen)
		})
	}
}

// TestFrozenWorkerIsInterrupted wakes up a worker when its run, and also the following run,
// were taken from it.
func TestFrozenWorkerIsInterrupted(t *testing.T) {
	t.Parallel()
	s, seen := newTapped(t, nil, "runner")
	thread := s.deploy(t, agentRepository(t), "main").thread(t)
	first := thread.stream(t, ask(askSF, map[string]any{"token_delay_ms": 30, "answer_words": 10_000, "node_delay_ms": 0}).streaming())
	first.untilShown(t, 8)
	frozen := s.functions(t, "Runner")
	signal(t, syscall.SIGSTOP, frozen...)
	second := thread.run(t, ask(askNYC, fast).interrupting())
	first.rest(t)
	thread.join(t, second.ID)
	before := thread.state(t)
	before.expect(t, "human", "call", "tool", "partial", "human", "call", "tool", "ai")
	if text := first.shown(t); before[3].Content != text {
		t.Errorf("the thread keeps %q, the client was shown %q", before[3].Content, text)
	}
	signal(t, syscall.SIGCONT, frozen...)
	seen.await(t, "the worker that was frozen has given up", func(m moment) bool { return m.answer && slices.Contains(frozen, m.pid) })
	thread.expectRuns(t, "interrupted", "success")
	after := thread.state(t)
	after.expect(t, before.kinds()...)
	if after[3].Content != before[3].Content {
		t.Errorf("the thread keeps %q, before %q", after[3].Content, before[3].Content)
	}
	again := thread.follow(t, first.run(), "-1")
	again.rest(t)
	expectSame(t, "the replay", again.seen, first.seen)
}
