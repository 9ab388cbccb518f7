package e2e_test

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// tryOut deploys the first version, with canaries of half of the threads.
func (s *server) tryOut(t *testing.T, repo *repository) *deployment {
	t.Helper()
	body := creation(repo.url(), "main")
	body["canary_percent"], body["canary_seconds"] = 50, 3600
	d, created := s.create(t, body)
	d.awaitDeployed(t, value(created.LatestRevision))
	return d
}

// awaitCanary waits until a revision is a canary.
func (d *deployment) awaitCanary(t *testing.T, revision string) {
	t.Helper()
	eventually(t, "the revision is a canary", func() (bool, any) {
		got := d.revision(t, revision)
		if got.failed() || got.Status == "DEPLOYED" {
			t.Fatalf("the revision is %s: %s", got.Status, value(got.Text))
		}
		return got.Status == "DEPLOYING" && value(got.Reason) == "CANARY", got
	})
}

// version returns the version of the agent that gave an answer.
func version(t *testing.T, answer message) string {
	t.Helper()
	for version, words := range map[string]string{"first": firstWords, "second": secondWords} {
		if strings.HasPrefix(answer.Content, words) {
			return version
		}
	}
	t.Fatalf("this is no answer of either version: %+v", answer)
	return ""
}

// stateless asks a question in a run that gets its own thread.
func (d *deployment) stateless(t *testing.T) message {
	t.Helper()
	var left values
	d.server.call(t, http.StatusOK, "POST", d.url+"/runs/wait", ask(askSF, fast), &left)
	return left.Messages.last()
}

// TestACanaryServesItsShareOfTheThreads: each thread uses only one version, until the canary
// is promoted: by request, or because its time is over.
func TestACanaryServesItsShareOfTheThreads(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	d := s.tryOut(t, agentRepository(t))
	first := value(d.get(t).ActiveRevision)
	s.call(t, http.StatusConflict, "POST", d.path+"/revisions/"+first+"/promote", nil, nil)
	second := d.patch(t, "refs/tags/v2")
	d.awaitCanary(t, second)

	threads, before := map[string][]*thread{}, map[string]int{}
	for range 24 {
		th := d.thread(t)
		by := version(t, th.wait(t, ask(askSF, fast)).Messages.last())
		threads[by] = append(threads[by], th)
		before[version(t, d.stateless(t))]++
	}
	if len(threads) != 2 || len(before) != 2 {
		t.Fatalf("%d threads were answered by the first version and %d by the second, of runs without one %v", len(threads["first"]), len(threads["second"]), before)
	}
	for by, all := range threads {
		for _, th := range all {
			if got := version(t, th.wait(t, ask(askNYC, fast)).Messages.last()); got != by {
				t.Errorf("a thread of the %s version is answered by the %s", by, got)
			}
		}
	}
	if got := value(d.get(t).ActiveRevision); got != first {
		t.Errorf("%s is active during the canary", got)
	}

	var promoted revisionBody
	s.call(t, http.StatusOK, "POST", d.path+"/revisions/"+second+"/promote", nil, &promoted)
	if promoted.Status != "DEPLOYED" || value(promoted.Reason) != "" || value(d.get(t).ActiveRevision) != second {
		t.Errorf("after its promotion it is %+v", promoted)
	}
	for _, th := range threads["first"] {
		if got := version(t, th.wait(t, ask(askNYC, fast)).Messages.last()); got != "second" {
			t.Errorf("after the promotion the %s version answers", got)
		}
	}
	eventually(t, "the first revision's agent has ended", func() (bool, any) {
		pids, err := s.agents(first)
		return err == nil && len(pids) == 0, pids
	})

	s.call(t, http.StatusOK, "PATCH", d.path, map[string]any{"canary_seconds": 1}, nil)
	d.awaitDeployed(t, d.patch(t, "refs/tags/v1"))
	for range 8 {
		if got := version(t, d.stateless(t)); got != "first" {
			t.Errorf("after the last promotion the %s version answers", got)
		}
	}
}

// TestACanaryThatDies several times makes no run fail: its runs and its threads continue with
// the active revision, which stays active.
func TestACanaryThatDies(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	d := s.tryOut(t, agentRepository(t))
	first := value(d.get(t).ActiveRevision)
	mortal := d.patch(t, "refs/tags/v2")
	d.awaitCanary(t, mortal)
	threads := d.threadsOfBoth(t)

	ended := make(chan struct{})
	var clients sync.WaitGroup
	var answers atomic.Int64
	for _, th := range threads {
		clients.Go(func() {
			for {
				select {
				case <-ended:
					return
				default:
				}
				left := th.wait(t, ask(askSF, map[string]any{"token_delay_ms": 20, "node_delay_ms": 20}))
				last := left.Messages.last()
				if left.Error != nil || last.kind() != "ai" {
					t.Errorf("a run ended with %+v: %+v", left.Error, last)
					return
				}
				if version(t, last) == "second" {
					answers.Add(1)
				}
			}
		})
	}
	eventually(t, "the canary answers", func() (bool, any) { return answers.Load() > 0, answers.Load() })
	eventually(t, "the canary has died often enough", func() (bool, any) {
		if d.revision(t, mortal).failed() {
			return true, nil
		}
		return false, s.killAgents(mortal) // it has no process between two starts
	})
	d.awaitFailed(t, mortal, "DEPLOY_FAILED", "CANARY_FAILED", "as a canary", "3 times")
	close(ended)
	clients.Wait()
	if got := value(d.get(t).ActiveRevision); got != first {
		t.Errorf("the active revision is %s, want the first, %s", got, first)
	}
	for _, th := range threads {
		if got := version(t, th.wait(t, ask(askNYC, fast)).Messages.last()); got != "first" {
			t.Errorf("after the canary the %s version answers", got)
		}
	}
	eventually(t, "the canary's agent has ended", func() (bool, any) {
		pids, err := s.agents(mortal)
		return err == nil && len(pids) == 0, pids
	})
}

// threadsOfBoth makes threads until each version has answered three of them: which version
// answers a new thread is chance.
func (d *deployment) threadsOfBoth(t *testing.T) []*thread {
	t.Helper()
	var threads []*thread
	served := map[string]int{}
	for served["first"] < 3 || served["second"] < 3 {
		if len(threads) == 100 {
			t.Fatalf("the versions answered %v threads", served)
		}
		th := d.thread(t)
		threads = append(threads, th)
		served[version(t, th.wait(t, ask(askSF, fast)).Messages.last())]++
	}
	return threads
}
