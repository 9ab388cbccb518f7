package run_test

import (
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/agent/run"
)

// TestTheNextAttemptGoesOnFromTheCheckpoint checks that the next attempt goes on from the
// checkpoint of a worker that died, and that the state contains nothing twice.
func TestTheNextAttemptGoesOnFromTheCheckpoint(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r, a := f.started("1")
	f.answer(a, "m1", "step one")
	f.flush(a)
	f.answer(a, "m2", "never written")
	b := f.claim(r)
	if diff := cmp.Diff([]string{"human 1", "ai step one"}, f.read(b.Log.State)); diff != "" {
		t.Errorf("state of the next attempt (-want +got):\n%s", diff)
	}
	f.answer(b, "m3", "step two")
	f.finish(b)
	want := []string{"human 1", "ai step one", "ai step two"}
	if diff := cmp.Diff(want, f.messages()); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, f.result(r)); diff != "" {
		t.Errorf("what the run left behind (-want +got):\n%s", diff)
	}
}

// TestTextOfADeadWorker lets attempt 1 show a text and die; then the run is interrupted, fails
// or succeeds.
func TestTextOfADeadWorker(t *testing.T) {
	t.Parallel()
	interrupt := func(f *fixture, _ run.Run, a *run.Attempt) {
		f.flush(a)
		f.create("next", run.Interrupt)
	}
	fail := func(f *fixture, _ run.Run, a *run.Attempt) {
		f.must(a.Finish(f.t.Context(), run.Outcome{Status: run.Error, Failure: &run.Failure{Name: "E"}}))
	}
	giveUp := func(f *fixture, r run.Run, a *run.Attempt) {
		f.flush(a)
		f.must(f.runs.Fail(f.t.Context(), r.Ref, run.Failure{Name: "F"}))
	}
	ends := map[string]func(*fixture, run.Run, *run.Attempt){"interrupted": interrupt, "failed": fail, "given up": giveUp}
	tests := map[string]struct {
		second func(f *fixture, a *run.Attempt)
		want   []string
	}{
		"is kept while attempt 2 has shown nothing":  {func(*fixture, *run.Attempt) {}, []string{"ai The weather..."}},
		"is kept beside another text":                {func(_ *fixture, a *run.Attempt) { show(a, "b", "It is") }, []string{"ai The weather...", "ai It is..."}},
		"is covered by the same text":                {func(_ *fixture, a *run.Attempt) { show(a, "b", "The weather is") }, []string{"ai The weather is..."}},
		"covers the beginning of the same text":      {func(_ *fixture, a *run.Attempt) { show(a, "b", "The") }, []string{"ai The weather..."}},
		"is covered under the same id":               {func(_ *fixture, a *run.Attempt) { show(a, "a", "The weather is") }, []string{"ai The weather is..."}},
		"is kept beside another text of the same id": {func(_ *fixture, a *run.Attempt) { show(a, "a", "It is") }, []string{"ai The weather...", "ai It is..."}},
		"is superseded by a message":                 {func(f *fixture, a *run.Attempt) { f.answer(a, "b", "Sunny") }, []string{"ai Sunny"}},
		"is superseded by its message": {func(f *fixture, a *run.Attempt) {
			show(a, "a", "Sun")
			f.answer(a, "a", "Sunny")
		}, []string{"ai Sunny"}},
		"is superseded by the values of the agent": {func(f *fixture, a *run.Attempt) {
			f.must(a.Values([]byte(`{"messages":[{"type":"human","id":"1","content":"1"},{"type":"ai","id":"b","content":"Sunny"}]}`)))
		}, []string{"ai Sunny"}},
		"is kept over a step without messages": {func(f *fixture, a *run.Attempt) {
			f.must(a.Update(run.EventUpdates, []byte(`{"router":{"route":"weather"}}`)))
		}, []string{"ai The weather..."}},
		"gives way to the text after a message": {func(f *fixture, a *run.Attempt) {
			f.answer(a, "b", "Sunny")
			show(a, "c", "And")
		}, []string{"ai Sunny", "ai And..."}},
	}
	for name, test := range tests {
		for ending, end := range ends {
			t.Run(name+" when the run is "+ending, func(t *testing.T) {
				t.Parallel()
				f := newFixture(t)
				r, a := f.started("1")
				show(a, "a", "The ")
				f.flush(a)
				show(a, "a", "weather")
				f.flush(a)
				b := f.claim(r)
				test.second(f, b)
				end(f, r, b)
				want := append([]string{"human 1"}, test.want...)
				if diff := cmp.Diff(want, f.messages()); diff != "" {
					t.Errorf("messages (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(want, f.result(r)); diff != "" {
					t.Errorf("what the run left behind (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// TestTextOfADeadWorkerIsForgottenBySuccess checks that the text is not kept, because the
// agent has completed its answer.
func TestTextOfADeadWorkerIsForgottenBySuccess(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r, a := f.started("1")
	show(a, "a", "The weather")
	f.flush(a)
	f.finish(f.claim(r))
	f.finish(f.claim(f.create("2", run.Enqueue)))
	if diff := cmp.Diff([]string{"human 1", "human 2"}, f.messages()); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

func TestAFailedRunKeepsWhatItShowed(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r, a := f.started("1")
	show(a, "m", "flushed")
	f.flush(a)
	show(a, "m", ", then not")
	show(a, "n", "new")
	a.Show(run.EventMessages, []byte(`[{"id":"call","content":"","tool_call_chunks":[{"name":"f"}]},{}]`))
	f.must(a.Finish(t.Context(), run.Outcome{Status: run.Error, Failure: &run.Failure{Name: "E", Message: "m"}}))
	want := []string{"human 1", "ai flushed, then not...", "ai new..."}
	if diff := cmp.Diff(want, f.messages()); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, f.result(r)); diff != "" {
		t.Errorf("what the run left behind (-want +got):\n%s", diff)
	}
	events := f.replay(r, 0)
	if got, want := names(events), "metadata values messages messages messages messages values error"; got != want {
		t.Errorf("got events %s\nwant %s", got, want)
	}
	if got, want := string(events[len(events)-1].Data), `{"error":"E","message":"m"}`; got != want {
		t.Errorf("got error %s, want %s", got, want)
	}
}

// TestARunThatNeverStartedFailsVisibly checks that the run's input is kept and that its
// readers see why it failed.
func TestARunThatNeverStartedFailsVisibly(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	first, a := f.started("1")
	f.answer(a, "m", "one")
	f.finish(a)
	second := f.create("2", run.Enqueue)
	f.must(f.runs.Fail(t.Context(), second.Ref, run.Failure{Name: "AgentUnavailable", Message: "m"}))
	want := []string{"human 1", "ai one", "human 2"}
	if diff := cmp.Diff(want, f.messages()); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, f.result(second)); diff != "" {
		t.Errorf("what the run left behind (-want +got):\n%s", diff)
	}
	if got, want := names(f.replay(second, 0)), "values error"; got != want {
		t.Errorf("got events %s, want %s", got, want)
	}
	if got, want := names(f.replay(first, 0)), "metadata values updates values"; got != want {
		t.Errorf("got events %s of the first run, want %s", got, want)
	}
}

// TestARunThatChangesNothingLeavesTheState checks that the state is the same after such a run.
func TestARunThatChangesNothingLeavesTheState(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	_, a := f.started("1")
	f.answer(a, "m", "one")
	f.finish(a)
	r, err := f.runs.Create(t.Context(), f.ref, run.Request{Graph: "agent"})
	f.must(err)
	f.finish(f.claim(r))
	if diff := cmp.Diff([]string{"human 1", "ai one"}, f.result(r)); diff != "" {
		t.Errorf("what the run left behind (-want +got):\n%s", diff)
	}
}

// TestNodesOfOneUpdateAreTakenInTheirOrder repeats the test many times, because maps would
// have a random order.
func TestNodesOfOneUpdateAreTakenInTheirOrder(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	_, a := f.started("1")
	want := []string{"human 1"}
	for i := range 10 {
		first, second := "z"+strconv.Itoa(i), "a"+strconv.Itoa(i)
		update := `{"z":{"messages":"` + first + `"},"none":null,"a":{"messages":"` + second + `"},"__interrupt__":[{"id":"q"}]}`
		f.must(a.Update(run.EventUpdates, []byte(update)))
		want = append(want, "human "+first, "human "+second)
	}
	f.finish(a)
	if diff := cmp.Diff(want, f.messages()); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	for _, update := range []string{`[]`, `null`, `"x"`, `{"n":{"messages":7}}`} {
		if err := a.Update(run.EventUpdates, []byte(update)); err == nil {
			t.Errorf("update %s was accepted", update)
		}
	}
}
