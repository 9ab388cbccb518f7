package agentserver_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/seam/graph/graphtest"
)

// adds is a command that adds a message and its text to the state.
func adds(text string) object {
	message := object{"type": "human", "id": text, "content": text}
	return object{"update": object{"messages": []any{message}, "trail": []any{text}}}
}

// TestACommandChangesTheNewestCheckpoint checks a command that only updates the state, after which
// an agent makes no checkpoint: its newest checkpoint has the change.
func TestACommandChangesTheNewestCheckpoint(t *testing.T) {
	t.Parallel()
	f := setUpKeeper(t)
	thread := f.newThread(t)
	f.finish(t, thread, plan("one", says("model", "A"), says("tools", "B")))
	before := f.history(t, thread)
	for _, text := range []string{"u", "v"} {
		asked := object{"assistant_id": "agent", "command": adds(text), "stream_mode": []any{"values"}}
		answer := f.call(t, "POST", thread+"/runs/stream", asked)
		wantStatus(t, answer, http.StatusOK)
		if got := string(answer.text); strings.Count(got, "event: values") != 1 || !strings.Contains(got, `"trail":["model","tools",`) {
			t.Errorf("the stream of the command is\n%s", got)
		}
	}
	f.wantState(t, thread, "one A B u v [model tools u v]")
	after := f.history(t, thread)
	if len(after) != len(before) || told(after[0]) != "one A B u v [model tools u v]" || told(after[1]) != told(before[1]) {
		t.Errorf("the history was\n%v\nand is\n%v", lines(before), lines(after))
	}
	f.finish(t, thread, plan("two", says("model", "C")))
	f.wantState(t, thread, "one A B u v two C [model tools u v model]")
}

// TestACommandTakesThePlaceOfTheInput checks a run with both.
func TestACommandTakesThePlaceOfTheInput(t *testing.T) {
	t.Parallel()
	f := setUpKeeper(t)
	thread := f.newThread(t)
	f.finish(t, thread, plan("one", says("model", "A")))
	f.finish(t, thread, with(plan("two", says("tools", "B")), "command", adds("u")))
	f.wantState(t, thread, "one A u [model u]")
	f.finish(t, thread, with(plan("three", says("tools", "B")), "command", object{"resume": nil}))
	f.wantState(t, thread, "one A u three B [model u tools]")
}

// TestACommandsOwnCheckpointIsShown checks an agent that makes a checkpoint of a command's update,
// with the source of an input.
func TestACommandsOwnCheckpointIsShown(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	thread := f.newThread(t)
	made := func(id, source string, n int) graphtest.Step {
		return emit("checkpoint", object{"id": id, "values": object{"n": n}, "metadata": object{"source": source}, "data": ""})
	}
	f.finish(t, thread, script(made("c1", "loop", 1)))
	asked := with(script(made("c2", "input", 2)), "command", object{"update": object{"n": 2}})
	answer := f.call(t, "POST", thread+"/runs/stream", with(asked, "stream_mode", []any{"values"}))
	if got := string(answer.text); strings.Count(got, "event: values") != 1 || !strings.Contains(got, `{"n":2}`) {
		t.Errorf("the stream of the command is\n%s", got)
	}
}

// TestARollbackOfACommandRestoresTheCheckpoint checks that the newest checkpoint is as it was
// before the command.
func TestARollbackOfACommandRestoresTheCheckpoint(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	thread := f.newThread(t)
	made := func(n int) graphtest.Step {
		return emit("checkpoint", object{"id": "c", "values": object{"n": n}, "metadata": object{"source": "loop"}, "data": ""})
	}
	f.finish(t, thread, script(made(1)))
	before := f.call(t, "GET", thread+"/state", nil)
	asked := with(script(made(2), emit("custom", "changed"), graphtest.Step{Hold: true}), "command", object{"update": object{"n": 2}})
	running := f.start(t, thread, with(asked, "stream_mode", []any{"custom"}))
	f.await(t, running, "custom")
	if got := f.call(t, "GET", thread+"/state", nil).member("values", "n"); got != 2.0 {
		t.Errorf("after the command n is %v", got)
	}
	wantStatus(t, f.call(t, "POST", running+"/cancel?action=rollback&wait=1", nil), http.StatusNoContent)
	after := f.call(t, "GET", thread+"/state", nil)
	if diff := cmp.Diff(before.body, after.body); diff != "" {
		t.Errorf("the state (-before the command +after the rollback):\n%s", diff)
	}
}
