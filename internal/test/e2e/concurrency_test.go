//go:build lambda

package e2e_test

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
)

// shortly are the settings of a run of a second or two.
var shortly = map[string]any{"token_delay_ms": 10, "node_delay_ms": 400}

// TestRunsWaitForCapacity starts many more runs than the stack may process concurrently.
// Lambda refuses the excess calls, and no run ends in error because of that.
func TestRunsWaitForCapacity(t *testing.T) {
	t.Parallel()
	const count, slots = 100, 5
	s := newStack(t, "--parameter", "RunnerConcurrency=5")
	agent := s.deploy(t, agentRepository(t), "main")
	threads := make([]*thread, count)
	for i := range threads {
		threads[i] = agent.thread(t)
	}
	var clients sync.WaitGroup
	for some := range slices.Chunk(threads, count/5) {
		clients.Go(func() {
			for _, th := range some {
				got, err := s.do(t.Context(), "POST", th.url+"/runs", ask(askSF, shortly))
				// The machine is busy with other tests.
				for err == nil && got.status == http.StatusServiceUnavailable {
					got, err = s.do(t.Context(), "POST", th.url+"/runs", ask(askSF, shortly))
				}
				if err != nil || got.status != http.StatusOK {
					t.Errorf("a run is not accepted: %d %s, %v", got.status, got.body, err)
				}
			}
		})
	}
	clients.Wait()
	most, waiting := 0, 0
	var waits struct{ Cause string }
	for _, th := range threads {
		eventually(t, "all runs end well", func() (bool, any) {
			most = max(most, len(s.functions(t, "Runner")))
			runs := th.list(t)
			good := 0
			for _, run := range runs {
				switch run.Status {
				case "success":
					good++
				case "pending":
					waiting++
					if waits.Cause == "" {
						s.call(t, http.StatusOK, "GET", th.url+"/runs/"+run.ID+"/explanation", nil, &waits)
					}
				case "running":
				default:
					t.Fatalf("a run ended as %s", run.Status)
				}
			}
			return good > 0 && good == len(runs), runs
		})
	}
	if most != slots || waiting == 0 || !strings.HasPrefix(waits.Cause, "NO_CAPACITY: ") {
		t.Errorf("up to %d processes worked on runs, want %d; runs were seen to wait %d times, because %q", most, slots, waiting, waits.Cause)
	}
}

// silent are the settings of a run whose agent says nothing for ten minutes.
var silent = map[string]any{"node_delay_ms": 600_000}

// TestRunsShareAProcess has many runs at work in the only process of a runner on a managed
// instance, waits for one through the other such function, and cancels all.
func TestRunsShareAProcess(t *testing.T) {
	t.Parallel()
	const count = 32
	s := newStack(t, "--parameter", "RunnerCompute=managed", "--parameter", "ManagedProcesses=1")
	agent := s.deploy(t, agentRepository(t), "main")
	var threads []*thread
	for range count {
		th := agent.thread(t)
		threads = append(threads, th)
		th.run(t, ask(askSF, silent))
	}
	status := func(wanted string) func() (bool, any) {
		return func() (bool, any) {
			reached := 0
			for _, th := range threads {
				if runs := th.list(t); len(runs) == 1 && runs[0].Status == wanted {
					reached++
				}
			}
			return reached == count, reached
		}
	}
	eventually(t, "all runs are at work at once", status("running"))
	if processes := s.functions(t, "ManagedRunner"); len(processes) != 1 {
		t.Errorf("%d runs are in the processes %v, want one process", count, processes)
	}
	agent.thread(t).wait(t, ask(askSF, shortly))
	if processes := s.functions(t, "ManagedRunstream"); len(processes) != 1 {
		t.Errorf("the answer came from the processes %v, want one process", processes)
	}
	for _, th := range threads {
		th.cancel(t, http.StatusNoContent, th.list(t)[0].ID, "?wait=1")
	}
	eventually(t, "all runs are cancelled", status("interrupted"))
}
