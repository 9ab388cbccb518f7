package run_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/base/fault"
)

// check compares the stored data with the promises of the protocol when all runs have ended.
func (m *model) check() {
	m.checkInputs()
	next := int64(1)
	for _, r := range m.runs {
		events := m.replay(r, 0)
		for _, event := range events {
			if event.Position < next || (event.Position > next && len(m.removed) == 0) {
				m.t.Fatalf("run %s has position %d where %d is next", r.Run, event.Position, next)
			}
			next = event.Position + 1
		}
		m.checkShown(r, events)
	}
	m.checkReaders()
	m.checkCheckpoints()
	m.wantNoPermits()
}

// checkInputs checks that the state has the input of every accepted run once, in the order of
// the runs, except the inputs of runs that their client took back before they started.
func (m *model) checkInputs() {
	want, got := []string{}, []string{}
	for _, r := range m.runs {
		back := isTakenBack(m.get(r))
		if m.withdrawn[r.Run] && !back {
			m.t.Errorf("run %s was withdrawn before it started, and says %q", r.Run, m.get(r).CancelReason)
		}
		if !back {
			want = append(want, inputOf(r))
		}
	}
	for _, message := range m.fixture.messages() {
		if text, ok := strings.CutPrefix(message, "human "); ok {
			got = append(got, text)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		m.t.Fatalf("inputs in the state (-want +got):\n%s", diff)
	}
}

// isTakenBack reports whether a run never started and says that it leaves nothing.
func isTakenBack(r run.Run) bool {
	return r.Attempt == 0 && (r.CancelReason == "The run was cancelled." || strings.HasPrefix(string(r.CancelReason), "taken:"))
}

// rests returns the statuses that the thread may have after its runs, the newest first. If the
// client of a run that never started is lost, the status depends on whether the run was active.
func (m *model) rests(runs []run.Run) (possible []thread.Status) {
	for _, r := range runs {
		switch lost := strings.Contains(string(r.CancelReason), "connection"); {
		case isTakenBack(r):
		case r.Attempt == 0 && lost:
			possible = append(possible, thread.StatusIdle)
		case r.Status == run.Error, r.Status == run.Timeout:
			return append(possible, thread.StatusError)
		case r.Attempt > 0 && r.Status == run.Interrupted:
			return append(possible, thread.StatusInterrupted)
		default:
			return append(possible, thread.StatusIdle)
		}
	}
	return append(possible, thread.StatusIdle)
}

func inputOf(r run.Run) string {
	var input struct{ Messages []struct{ ID string } }
	if err := json.Unmarshal(r.Input.JSON(), &input); err != nil {
		panic(err)
	}
	return input.Messages[0].ID
}

// checkShown checks that the texts that a run's readers have seen are in the state that the
// run left behind: finished as the agent finished them, or as they were shown last. Texts may
// be missing only for a run that succeeded, and for an attempt in whose place another attempt
// wrote a message.
func (m *model) checkShown(r run.Run, events []run.Event) {
	kept := map[string]string{}
	for _, message := range m.result(r) {
		kept[messageOf(message)] = message
	}
	shown, finished := map[string]string{}, map[string]bool{}
	for _, event := range events {
		switch event.Name {
		case run.EventMetadata:
			m.t.Logf("run %s: %s", r.Run, event.Data)
		case run.EventMessages:
			var pair []struct{ ID, Content string }
			if err := json.Unmarshal(event.Data, &pair); err != nil {
				m.t.Fatal(err)
			}
			shown[pair[0].ID] += pair[0].Content
		case run.EventUpdates:
			id := updatedMessage(event.Data)
			finished[id] = true
			maps.DeleteFunc(shown, func(other, _ string) bool { return other != id && !m.sameAttempt(events, other, id) })
		}
	}
	for id, text := range shown {
		want := "ai " + text + "..."
		if finished[id] {
			want = "ai " + text
		}
		if m.ended[r.Run] == run.Success && !finished[id] {
			continue
		}
		if kept[id] != want {
			m.t.Errorf("run %s, which is %s, keeps %q of %s, want %q", r.Run, m.ended[r.Run], kept[id], id, want)
		}
	}
}

// messageOf returns the id of a message, which its text repeats.
func messageOf(text string) string {
	id, _, _ := strings.Cut(strings.TrimPrefix(text, "ai "), " piece")
	return id
}

func updatedMessage(data json.RawMessage) string {
	var update struct {
		Agent struct{ Messages []struct{ ID string } }
	}
	if err := json.Unmarshal(data, &update); err != nil {
		panic(err)
	}
	return update.Agent.Messages[0].ID
}

// sameAttempt reports whether one attempt showed two messages: no worker took the run up
// between their first events.
func (m *model) sameAttempt(events []run.Event, a, b string) bool {
	attempts, attempt := map[string]int{}, 0
	for _, event := range events {
		if event.Name == run.EventMetadata {
			attempt++
		}
		for _, id := range []string{a, b} {
			if _, known := attempts[id]; !known && strings.Contains(string(event.Data), fmt.Sprintf(`"id":%q`, id)) {
				attempts[id] = attempt
			}
		}
	}
	return attempts[a] == attempts[b]
}

// checkReaders checks that each reader got exactly the log behind its position, however the
// run went on.
func (m *model) checkReaders() {
	for _, rd := range m.readers {
		if m.removed[rd.run.Run] {
			// The stream has ended, if it had begun.
			if err := <-rd.done; err != nil && !fault.Is(err, fault.NotFound) {
				m.t.Error(err)
			}
			continue
		}
		got, want := rd.wait(m.t), m.replay(rd.run, rd.after)
		if len(got) == 0 && len(want) == 0 {
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			m.t.Errorf("a reader of %s after %d (-log +read):\n%s", rd.run.Run, rd.after, diff)
		}
	}
}

// checkErased checks that every stored item belongs to a run or a checkpoint.
func (m *model) checkErased(newest int64) {
	if lock := m.thread().Lock; lock.RemoveFrom != "" || lock.Unsealed || lock.Checkpoint != newest {
		m.t.Errorf("the thread is not cleared up: %+v", lock)
	}
	owned := map[int64]bool{}
	for _, r := range m.runs {
		for _, event := range m.replay(r, 0) {
			owned[event.Position] = true
		}
	}
	for _, item := range m.items() {
		for removed := range m.removed {
			if strings.Contains(item.Key.SK, removed) {
				m.t.Errorf("item %v of a run that was rolled back is left", item.Key)
			}
		}
		if position, ok := strings.CutPrefix(item.Key.SK, "EV#"); ok {
			if n, err := strconv.ParseInt(position, 10, 64); err != nil || !owned[n] {
				m.t.Errorf("events up to %s are nobody's", position)
			}
		}
	}
}

// checkCheckpoints checks that each state has each message once, and that no message of a
// state is missing in the next state.
func (m *model) checkCheckpoints() {
	_, newest, err := m.fixture.runs.State(m.t.Context(), m.ref)
	m.must(err)
	before := []string{}
	m.checkErased(newest.At.Number)
	for number := range newest.At.Number + 1 {
		st, err := m.threads.StateAt(m.t.Context(), m.ref, number)
		m.must(err)
		texts := m.fixture.read(st)
		if st.At.Number != number || len(texts) < len(before) || !slices.Equal(before, texts[:len(before)]) {
			m.t.Fatalf("checkpoint %d holds\n%q\nafter\n%q", number, texts, before)
		}
		ids := map[string]bool{}
		for _, text := range texts {
			if ids[messageOf(text)] {
				m.t.Fatalf("checkpoint %d holds %q twice", number, messageOf(text))
			}
			ids[messageOf(text)] = true
		}
		before = texts
	}
}
