//go:build lambda

package e2e_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/slipway-run/slipway/internal/test/check"
)

// TestInterruptsAreServedByManyProcesses has twenty clients race on one thread through
// processes that share only the table.
func TestInterruptsAreServedByManyProcesses(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	thread := s.deploy(t, agentRepository(t), "main").thread(t)
	if pids := s.functions(t, "Runs"); len(pids) > 0 {
		t.Fatalf("there are processes %v before the first run", pids)
	}
	interruptAtOnce(t, thread)
	var served []int
	for _, pid := range s.functions(t, "Runs") {
		if written(t, pid) > hasBegun {
			served = append(served, pid)
		}
	}
	t.Logf("the runs were served by %d processes", len(served))
	if len(served) < 4 {
		t.Errorf("the runs were served by the processes %v, want at least 4", served)
	}
}

// hasBegun is more bytes than a process has written when it has asked for its first call, and
// fewer bytes than it must write to read from the table.
const hasBegun = 2 << 10

// written returns how many bytes a process has written, also to connections; 0 if it has
// ended.
func written(t *testing.T, pid int) int64 {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "io"))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return 0
	}
	check.Must(t, err)
	for line := range strings.Lines(string(text)) {
		if count, ok := strings.CutPrefix(line, "wchar: "); ok {
			n, err := strconv.ParseInt(strings.TrimSpace(count), 10, 64)
			check.Must(t, err)
			return n
		}
	}
	t.Fatalf("the system does not say what process %d has written: %s", pid, text)
	return 0
}

// attempts returns the attempts that a stream has reported.
func (s *stream) attempts(t *testing.T) []int {
	t.Helper()
	var attempts []int
	for _, e := range s.seen {
		if e.name == "metadata" {
			var metadata struct{ Attempt int }
			decode(t, e.data, &metadata)
			attempts = append(attempts, metadata.Attempt)
		}
	}
	return attempts
}

func expectAttempts(t *testing.T, s *stream, want ...int) {
	t.Helper()
	if got := s.attempts(t); !slices.Equal(got, want) {
		t.Errorf("the attempts are %v, want %v", got, want)
	}
}

// untilAttempt reads until the attempt begins.
func (s *stream) untilAttempt(t *testing.T, attempt int) {
	t.Helper()
	s.until(t, "attempt "+strconv.Itoa(attempt), func(event) bool { return len(s.attempts(t)) == attempt })
}

func TestRunnerIsKilledDuringARun(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	agent := s.deploy(t, agentRepository(t), "main")

	t.Run("twice in the middle of the answer, with a run queued behind", func(t *testing.T) {
		thread := agent.thread(t)
		seen := thread.stream(t, ask(askSF, lengthy).streaming())
		behind := thread.run(t, ask(askNYC, fast))
		for attempt := range 2 {
			seen.untilAttempt(t, attempt+1)
			seen.untilShown(t, 10)
			s.killFunction(t, "Runner")
		}
		seen.rest(t)
		expectAttempts(t, seen, 1, 2, 3)
		thread.join(t, behind.ID)
		thread.expectRuns(t, "success", "success")
		final := thread.state(t)
		final.expect(t, slices.Concat(answered, answered)...)
		all := thread.follow(t, seen.run(), "-1")
		all.rest(t)
		expectSame(t, "the replay", all.seen, seen.seen)
		if text := final[3].Content; !strings.HasSuffix(seen.shown(t), text) {
			t.Errorf("the answer %q is not what was streamed: %q", text, seen.shown(t))
		}
	})

	t.Run("each time, and the run ends in words", func(t *testing.T) {
		thread := agent.thread(t)
		seen := thread.stream(t, ask(askSF, lengthy).streaming())
		behind := thread.run(t, ask(askNYC, fast))
		for attempt := range 3 {
			seen.untilAttempt(t, attempt+1)
			seen.untilShown(t, 5)
			s.killFunction(t, "Runner")
		}
		seen.rest(t)
		if failure := thread.join(t, seen.run()).Error; failure == nil || failure.Message == "" {
			t.Errorf("the run's values do not say why: %+v", failure)
		}
		thread.join(t, behind.ID)
		thread.expectRuns(t, "error", "success")
		thread.state(t).expect(t, slices.Concat([]string{"human", "call", "tool", "partial"}, answered)...)
	})
}

// once reports true for the first request of each word, and counts how often it was true.
type once map[string]bool

func (o once) first(word string) bool {
	said := o[word]
	o[word] = true
	return !said
}

// TestTheStackHasNoWebSockets checks that the stack announces this, and that it refuses a
// WebSocket with the reason and with what clients can do.
func TestTheStackHasNoWebSockets(t *testing.T) {
	t.Parallel()
	agent := shared(t)
	var info struct{ Flags map[string]bool }
	agent.server.call(t, http.StatusOK, "GET", agent.url+"/info", nil, &info)
	if streams, sockets := info.Flags["thread_streaming"], info.Flags["thread_streaming_websocket"]; !streams || sockets {
		t.Errorf("/info says %v", info.Flags)
	}
	refused := agent.server.call(t, http.StatusBadRequest, "GET", agent.thread(t).url+"/stream/events", nil, nil, "Connection", "Upgrade", "Upgrade", "websocket")
	if !strings.Contains(string(refused.body), "does not offer: WebSocket. POST streams") {
		t.Errorf("the refusal says %s", refused.body)
	}
}

func TestRunnerIsKilledAtEitherEndOfItsWork(t *testing.T) {
	t.Parallel()
	for name, atAnswer := range map[string]bool{"before it has begun": false, "when all is written and nobody knows": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kills := once{}
			s, _ := newTapped(t, func(m moment) bool { return m.answer == atAnswer && kills.first(m.function) }, "runner")
			thread := s.deploy(t, agentRepository(t), "main").thread(t)
			seen := thread.stream(t, ask(askSF, fast).streaming())
			behind := thread.run(t, ask(askNYC, fast))
			seen.rest(t)
			expectAttempts(t, seen, 1)
			thread.join(t, behind.ID)
			thread.expectRuns(t, "success", "success")
			thread.state(t).expect(t, slices.Concat(answered, answered)...)
			if len(kills) != 1 {
				t.Error("no process was killed")
			}
		})
	}
}

func TestRunstreamIsKilledDuringARun(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	agent := s.deploy(t, agentRepository(t), "main")

	t.Run("a client that waits is told, and can wait again", func(t *testing.T) {
		thread := agent.thread(t)
		run := thread.run(t, ask(askSF, lengthy))
		joined := make(chan error, 1)
		go func() {
			got, err := s.do(t.Context(), "GET", thread.url+"/runs/"+run.ID+"/join", nil)
			if err == nil && got.status == http.StatusInternalServerError {
				err = errors.New(string(got.body)) // no byte had been sent
			}
			joined <- err
		}()
		eventually(t, "a process waits for the run", func() (bool, any) {
			pids := s.functions(t, "Runstream")
			return slices.ContainsFunc(pids, func(pid int) bool { return written(t, pid) > hasBegun }), pids
		})
		s.killFunction(t, "Runstream")
		if err := <-joined; err == nil {
			t.Error("the request that broke off looks like one that was answered")
		}
		thread.join(t, run.ID).Messages.expect(t, answered...)
		thread.expectRuns(t, "success")
	})

	t.Run("a client that comes back misses nothing", func(t *testing.T) {
		thread := agent.thread(t)
		part := thread.stream(t, ask(askSF, lengthy).streaming())
		run, seen := part.run(), []event{}
		for range 3 {
			part.untilShown(t, 6)
			s.killFunction(t, "Runstream")
			part.drain()
			if part.err == nil {
				t.Fatal("the stream had a proper end")
			}
			seen = append(seen, part.seen...)
			part = thread.follow(t, run, part.lastID())
		}
		part.rest(t)
		seen = append(seen, part.seen...)
		all := thread.follow(t, run, "-1")
		all.rest(t)
		expectSame(t, "the parts together", seen, all.seen)
		expectAttempts(t, all, 1)
		thread.expectRuns(t, "success")
		thread.state(t).expect(t, answered...)
	})
}

// refused checks API Gateway's answer for a function that has died.
func (s *server) refused(t *testing.T, method, address string, body any) {
	t.Helper()
	var refusal struct{ Detail string }
	s.call(t, http.StatusInternalServerError, method, address, body, &refusal)
	if refusal.Detail == "" {
		t.Error("the refusal has no words")
	}
}

// TestFunctionsAreKilledDuringRequests kills each function when it has its request, and when
// it has its answer, and checks the stored state.
func TestFunctionsAreKilledDuringRequests(t *testing.T) {
	t.Parallel()
	kills := make(chan moment, 1)
	s, _ := newTapped(t, func(m moment) bool {
		select {
		case next := <-kills:
			if next.function == m.function && next.answer == m.answer {
				return true
			}
			kills <- next
		default:
		}
		return false
	}, "threads", "runs", "deployments")
	agent := s.deploy(t, agentRepository(t), "main")

	for _, atAnswer := range []bool{false, true} {
		when := "before it has done anything"
		if atAnswer {
			when = "when all is done"
		}
		t.Run("threads "+when, func(t *testing.T) {
			id := agent.thread(t).ID
			id = id[:len(id)-4] + map[bool]string{false: "0000", true: "ffff"}[atAnswer]
			body := map[string]any{"thread_id": id, "if_exists": "do_nothing"}
			kills <- moment{function: "threads", answer: atAnswer}
			s.refused(t, "POST", agent.url+"/threads", body)
			s.call(t, map[bool]int{false: http.StatusNotFound, true: http.StatusOK}[atAnswer], "GET", agent.url+"/threads/"+id, nil, nil)
			s.call(t, http.StatusOK, "POST", agent.url+"/threads", body, nil)
			s.call(t, http.StatusOK, "GET", agent.url+"/threads/"+id, nil, nil)
		})
		t.Run("runs "+when, func(t *testing.T) {
			thread := agent.thread(t)
			kills <- moment{function: "runs", answer: atAnswer}
			s.refused(t, "POST", thread.url+"/runs", ask(askSF, fast))
			second := thread.run(t, ask(askNYC, fast))
			final := thread.join(t, second.ID).Messages
			if atAnswer {
				thread.expectRuns(t, "success", "success")
				final.expect(t, slices.Concat(answered, answered)...)
			} else {
				thread.expectRuns(t, "success")
				final.expect(t, answered...)
			}
		})
		t.Run("deployments "+when, func(t *testing.T) {
			body := creation(agentRepository(t).url(), "main")
			kills <- moment{function: "deployments", answer: atAnswer}
			s.refused(t, "POST", "/v2/deployments", body)
			if !atAnswer {
				if found := s.named(t, body["name"]); len(found) > 0 {
					t.Fatalf("there is %+v", found)
				}
				created, first := s.create(t, body)
				created.awaitDeployed(t, value(first.LatestRevision))
				return
			}
			var all []deploymentBody
			listed(t, "the deployment is listed", func() (bool, any) {
				all = s.named(t, body["name"])
				return len(all) == 1, all
			})
			s.call(t, http.StatusConflict, "POST", "/v2/deployments", body, nil)
			found := all[0]
			d := &deployment{server: s, path: "/v2/deployments/" + found.ID, ID: found.ID, url: value(found.SourceConfig.CustomURL)}
			d.awaitDeployed(t, value(found.LatestRevision))
			d.thread(t).wait(t, ask(askSF, fast)).Messages.expect(t, answered...)
		})
	}
}

// named lists the deployments with a name.
func (s *server) named(t *testing.T, name any) []deploymentBody {
	t.Helper()
	var list struct{ Resources []deploymentBody }
	s.call(t, http.StatusOK, "GET", "/v2/deployments", nil, &list)
	return slices.DeleteFunc(list.Resources, func(d deploymentBody) bool { return d.Name != name })
}

// TestRolloutIsKilledInEachStep kills the process that works on a step the first time that the
// step is handed out, or answered: from the first step of a rollout, through the canary of the
// next rollout, to the last step of the teardown.
func TestRolloutIsKilledInEachStep(t *testing.T) {
	t.Parallel()
	for name, atAnswer := range map[string]bool{"before it has done anything": false, "when all is done": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// Kills are counted by process: a rollout's last steps may run concurrently with the
			// teardown's first steps.
			kills, steps := once{}, map[int]string{}
			s, seen := newTapped(t, func(m moment) bool {
				var event struct{ Step string }
				if !m.answer && json.Unmarshal([]byte(m.text), &event) == nil {
					steps[m.pid] = event.Step
				}
				return m.answer == atAnswer && kills.first(steps[m.pid])
			}, "rollout")
			agent := s.deploy(t, agentRepository(t), "main")
			agent.thread(t).wait(t, ask(askSF, fast)).Messages.expect(t, answered...)
			s.call(t, http.StatusOK, "PATCH", agent.path, map[string]any{"canary_percent": 50, "canary_seconds": 1}, nil)
			agent.awaitDeployed(t, agent.patch(t, "refs/tags/v2"))
			agent.thread(t).wait(t, ask(askSF, fast)).Messages.expect(t, answered...)
			s.call(t, http.StatusNoContent, "DELETE", agent.path+"?recovery_window_seconds=1", nil, nil)
			eventually(t, "the deployment is not found", func() (bool, any) {
				got, err := s.do(t.Context(), "GET", agent.path, nil)
				return err == nil && got.status == http.StatusNotFound, string(got.body)
			})
			seen.mu.Lock()
			defer seen.mu.Unlock()
			for _, step := range []string{
				"Prepare", "Provision", "Build", "AwaitBuild", "Deploy", "AwaitHealthy", "Canary", "Promote", "StopReleases", "BeginPurge", "EraseThreads",
				"EraseDeployment",
			} {
				if !kills[step] {
					t.Errorf("nobody was killed in %s", step)
				}
			}
		})
	}
}
