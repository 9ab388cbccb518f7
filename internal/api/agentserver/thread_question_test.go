package agentserver_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/seam/graph/graphtest"
)

// TestAQuestionTellsWhatItsAnswerMustBe checks every place that shows a question. A question
// without a schema for its answer, or with null, does not have this member.
func TestAQuestionTellsWhatItsAnswerMustBe(t *testing.T) {
	t.Parallel()
	schema := object{"type": "object", "required": []any{"ok"}}
	typed := object{"id": "b", "value": "Sure?", "response_schema": schema}
	want := []any{object{"id": "a", "value": "May I?"}, typed}
	asked := []any{object{"id": "a", "value": "May I?", "response_schema": nil}, typed}
	keeper := func(ctx context.Context, invocation graph.Invocation, emit func(string, any)) error {
		return graphtest.Keeper(ctx, invocation, func(event string, data any) {
			c, ok := data.(graph.Checkpoint)
			if event == graph.EventInterrupt {
				data = asked
			} else if ok && len(c.Next) > 0 && c.Next[0] == "ask" {
				c.Tasks = marshal([]any{object{"id": "t", "name": "ask", "interrupts": asked}})
				data = c
			}
			emit(event, data)
		})
	}
	for name, test := range map[string]struct {
		agent graphtest.Func
		body  object
	}{
		"of an agent that keeps checkpoints": {keeper, plan("one", graphtest.Node{Name: "ask", Ask: "May I?"})},
		"of another":                         {nil, script(emit("interrupt", asked))},
	} {
		f := setUp(t, test.agent)
		thread := f.newThread(t)
		values := f.call(t, "POST", thread+"/runs/wait", test.body)
		state, shown := f.call(t, "GET", thread+"/state", nil), f.call(t, "GET", thread, nil)
		var byTask, ofTasks []any
		for _, questions := range shown.member("interrupts").(object) {
			byTask = append(byTask, questions.([]any)...)
		}
		for _, task := range state.member("tasks").([]any) {
			ofTasks = append(ofTasks, task.(object)["interrupts"].([]any)...)
		}
		for place, got := range map[string]any{
			"the values": values.member("__interrupt__"), "the state": state.member("interrupts"), "its tasks": ofTasks, "the thread": byTask,
		} {
			if place == "the thread" && len(byTask) == 2 && byTask[0].(object)["id"] == "b" {
				byTask[0], byTask[1] = byTask[1], byTask[0]
			}
			if diff := cmp.Diff(any(want), got); diff != "" {
				t.Errorf("%s, in %s (-want +got):\n%s", name, place, diff)
			}
		}
	}
}

// TestQuestionsComeInTheOrderOfTheirTasks has tasks and questions whose ids sort otherwise.
func TestQuestionsComeInTheOrderOfTheirTasks(t *testing.T) {
	t.Parallel()
	want := []any{object{"id": "z", "value": "First?"}, object{"id": "y", "value": "Second?"}, object{"id": "a", "value": "Third?"}}
	f := setUp(t, func(ctx context.Context, invocation graph.Invocation, emit func(string, any)) error {
		return graphtest.Keeper(ctx, invocation, func(event string, data any) {
			c, ok := data.(graph.Checkpoint)
			if event == graph.EventInterrupt {
				data = want
			} else if ok && len(c.Next) > 0 && c.Next[0] == "ask" {
				c.Tasks = marshal([]any{
					object{"id": "t2", "name": "ask", "interrupts": want[:2]}, object{"id": "t1", "name": "ask", "interrupts": want[2:]},
				})
				data = c
			}
			emit(event, data)
		})
	})
	thread := f.newThread(t)
	values := f.call(t, "POST", thread+"/runs/wait", plan("one", graphtest.Node{Name: "ask", Ask: "First?"}))
	for place, got := range map[string]any{
		"the values": values.member("__interrupt__"), "the state": f.call(t, "GET", thread+"/state", nil).member("interrupts"),
	} {
		if diff := cmp.Diff(any(want), got); diff != "" {
			t.Errorf("in %s (-want +got):\n%s", place, diff)
		}
	}
}
