package thread_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/test/check"
)

// step is an agent's checkpoint with a number. Its only task returns text, which is in the next
// checkpoint.
func step(number int, texts []string) graph.Checkpoint {
	values, _ := json.Marshal(map[string]any{"messages": texts})
	c := graph.Checkpoint{
		ID: fmt.Sprint("c", number), Values: values, Next: []string{"node"}, Data: []byte("{}"),
		Tasks: json.RawMessage(fmt.Sprintf(`[{"id":"task-%d","name":"node"}]`, number)),
	}
	if number > 0 {
		c.ParentID = fmt.Sprint("c", number-1)
		c.Results, _ = json.Marshal(map[string]any{
			fmt.Sprint("task-", number-1): map[string]any{"messages": texts[number-1:]}, "unknown": "nobody asks for this",
		})
	}
	return c
}

func words(size int) string {
	text := make([]byte, size)
	for i := range text {
		text[i] = byte('a' + rand.IntN(26))
	}
	return string(text)
}

// TestResultsOfTasksAreStoredAsDifferences checks that each earlier checkpoint shows what its tasks
// have returned, among snapshots and changes, after a checkpoint was sent again and after the
// history was removed, and that a result that is in the change is not stored a second time.
func TestResultsOfTasksAreStoredAsDifferences(t *testing.T) {
	t.Parallel()
	check.Large(t)
	const steps, size = 60, 4000
	written := map[bool]int64{}
	for _, tells := range []bool{false, true} {
		s, m := newStore(t)
		ref, log := agentLog(t, s)
		var texts []string
		for i := range steps {
			if i > 0 {
				texts = append(texts, words(size))
			}
			c := step(i, texts)
			if !tells {
				c.Results = nil
			}
			next, writes := apply(t, log, change(t, log, c))
			check.Must(t, m.Transact(t.Context(), writes...))
			log = next
		}
		written[tells] = m.writtenBytes.Load()
		if !tells {
			continue
		}
		again := step(steps-1, append(texts[:steps-2:steps-2], "changed"))
		again.Results = nil
		_, put, same, err := log.Rewrite(again)
		if !same || err != nil {
			t.Fatalf("the newest checkpoint was not sent again: %v", err)
		}
		check.Must(t, m.Transact(t.Context(), put))
		history, err := s.History(t.Context(), ref, thread.Newest, steps, nil)
		if err != nil || len(history) != steps {
			t.Fatalf("got a history of %d, %v", len(history), err)
		}
		for i, at := range history {
			want := thread.Results{}
			if i > 0 {
				want[fmt.Sprint("task-", at.Number)] = json.RawMessage(fmt.Sprintf(`{"messages":[%q]}`, texts[at.Number]))
			}
			if diff := cmp.Diff(fmt.Sprintf("%s", want), fmt.Sprintf("%s", at.Results)); i > 0 && diff != "" {
				t.Fatalf("results at checkpoint %d (-want +got):\n%s", at.Number, diff)
			}
			if i == 0 && at.Results != nil {
				t.Errorf("the newest checkpoint has the results %s", at.Results)
			}
			alone, err := s.ResultsAt(t.Context(), ref, at.Checkpoint)
			check.Must(t, err)
			if diff := cmp.Diff(fmt.Sprintf("%s", at.Results), fmt.Sprintf("%s", alone)); diff != "" {
				t.Fatalf("results at checkpoint %d, by itself (-want +got):\n%s", at.Number, diff)
			}
			before, err := s.History(t.Context(), ref, at.Number, 1, nil)
			check.Must(t, err)
			if len(before) == 1 && before[0].Number >= 0 && len(before[0].Results) != 1 {
				t.Fatalf("the history before checkpoint %d has the results %s", at.Number, before[0].Results)
			}
		}
	}
	more := (written[true] - written[false]) / steps
	t.Logf("the result of a task costs %d bytes for each step beside the %d bytes that it adds to the state", more, size)
	if more > 200 {
		t.Errorf("the result of a task costs %d bytes for each step", more)
	}
}

// change is the change of the log that an agent's checkpoint makes.
func change(t *testing.T, log thread.Log, c graph.Checkpoint) thread.Change {
	t.Helper()
	values, patch, err := log.Values.Replace(c.Values)
	check.Must(t, err)
	return thread.Change{Values: values, Patch: patch, Agent: &c}
}

// TestResultsThatAreTooLargeAreLeftOut checks that results that are not in the change are stored
// only up to a bound.
func TestResultsThatAreTooLargeAreLeftOut(t *testing.T) {
	t.Parallel()
	for size, kept := range map[int]bool{30 << 10: true, 70 << 10: false} {
		s, m := newStore(t)
		ref, log := agentLog(t, s)
		for i := range 2 {
			c := step(i, []string{"a"})
			if i > 0 {
				c.Results, _ = json.Marshal(map[string]any{"task-0": words(size)})
			}
			next, writes := apply(t, log, change(t, log, c))
			check.Must(t, m.Transact(t.Context(), writes...))
			log = next
		}
		history, err := s.History(t.Context(), ref, thread.Newest, 2, nil)
		check.Must(t, err)
		if got := strings.Contains(fmt.Sprintf("%s", history[1].Results), "task-0"); got != kept {
			t.Errorf("a result of %d bytes: kept is %v, want %v", size, got, kept)
		}
	}
}
