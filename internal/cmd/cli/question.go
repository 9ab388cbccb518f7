package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// question is a question of a graph that has paused.
type question struct {
	ID    string          `json:"id"`
	Value json.RawMessage `json:"value"`
}

// questions returns the questions of a thread that wait for an answer.
func (g *agent) questions(ctx context.Context, thread string) (waiting []question, err error) {
	var state struct {
		Interrupts map[string][]question `json:"interrupts"`
	}
	err = g.do(ctx, http.MethodGet, g.path+"/threads/"+thread, nil, &state)
	for _, task := range slices.Sorted(maps.Keys(state.Interrupts)) {
		waiting = append(waiting, state.Interrupts[task]...)
	}
	return waiting, err
}

// request is a question in one of two shapes: that of an inbox, or that of the framework's own
// middleware.
type request struct {
	Description string `json:"description"`
	Action      *struct {
		Name string          `json:"action"`
		Args json.RawMessage `json:"args"`
	} `json:"action_request"`
	Actions []struct {
		Name string          `json:"name"`
		Args json.RawMessage `json:"args"`
	} `json:"action_requests"`
}

// request returns the question in its shape; the zero request if it has another one.
func (q question) request() (r request) {
	var several []request
	if json.Unmarshal(q.Value, &several) == nil && len(several) > 0 {
		return several[0]
	}
	if json.Unmarshal(q.Value, &r) != nil {
		return request{}
	}
	return r
}

// text is the question as a person reads it, and says what may be answered.
func (q question) text() (text, hint string) {
	r := q.request()
	var plain string
	switch {
	case r.Action != nil:
		call := r.Action.Name + " " + string(r.Action.Args)
		return strings.TrimSpace(r.Description + "\n" + call), "Answer with accept, ignore, a text or JSON."
	case len(r.Actions) > 0:
		var calls []string
		for _, action := range r.Actions {
			calls = append(calls, action.Name+" "+string(action.Args))
		}
		return strings.TrimSpace(r.Description + "\n" + strings.Join(calls, "\n")), "Answer with approve, reject, reject: REASON, or JSON."
	case json.Unmarshal(q.Value, &plain) == nil:
		return plain, "Answer with a text or JSON."
	}
	return string(q.Value), "Answer with a text or JSON."
}

// replyError says why a line does not answer a question.
type replyError string

func (e replyError) Error() string { return string(e) }

// reply returns the value that answers the question by a line. JSON that is no text answers for
// itself.
func (q question) reply(line string) (any, error) {
	var value any
	if json.Unmarshal([]byte(line), &value) == nil {
		return value, nil
	}
	r := q.request()
	switch {
	case r.Action != nil && (line == "accept" || line == "ignore"):
		return []any{map[string]any{"type": line, "args": nil}}, nil
	case r.Action != nil:
		return []any{map[string]any{"type": "response", "args": line}}, nil
	case len(r.Actions) > 0:
		decision, err := decide(line)
		return map[string]any{"decisions": slices.Repeat([]any{decision}, len(r.Actions))}, err
	}
	return line, nil
}

// decide returns the decision about all actions.
func decide(line string) (any, error) {
	word, reason, _ := strings.Cut(line, ":")
	switch word = strings.TrimSpace(word); {
	case word == "approve" && reason == "":
		return map[string]any{"type": word}, nil
	case word == "reject":
		return map[string]any{"type": word, "message": cmp.Or(strings.TrimSpace(reason), "Rejected.")}, nil
	}
	return nil, replyError(fmt.Sprintf("%q is no decision: answer with approve, reject, reject: REASON, or JSON.", line))
}

// say starts a run with a line: with the answer to the first question of the graph, if it waits for
// answers, or with a message.
func (c *conversation) say(ctx context.Context, line string) (*answer, error) {
	if len(c.questions) == 0 {
		said := map[string]any{"messages": []any{map[string]any{"role": "user", "content": line}}}
		return c.agent.start(ctx, c.thread, map[string]any{"assistant_id": c.assistant, "input": said})
	}
	first := c.questions[0]
	value, err := first.reply(line)
	if err != nil {
		return nil, err
	}
	if len(c.questions) > 1 { // the graph asks the others again
		value = map[string]any{first.ID: value}
	}
	c.questions = nil
	return c.agent.start(ctx, c.thread, map[string]any{"assistant_id": c.assistant, "command": map[string]any{"resume": value}})
}
