//go:build repositories

package e2e_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/slipway-run/slipway/internal/test/emulator/providers"
)

// visitor drives the graph of a deployed repository. Its steps return what they found, or why
// they could not be done.
type visitor struct {
	*deployment

	public public
}

// ask sends a request and decodes the answer; any status but 200 is an error.
func (v visitor) ask(ctx context.Context, method, path string, body, out any) error {
	got, err := v.server.do(ctx, method, v.url+path, body, v.header()...)
	if err != nil {
		return err
	}
	if got.status != http.StatusOK {
		return fmt.Errorf("%s %s: status %d: %s", method, path, got.status, got.body)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(got.body, out)
}

// header returns the headers of a request to the agent. Clients of agents name no workspace: a
// bearer token beside one is an issuer's, which a repository's own authentication does not see.
func (v visitor) header() (pairs []string) {
	pairs = append(pairs, "X-Tenant-Id", "")
	for name, text := range v.public.Headers {
		pairs = append(pairs, name, text)
	}
	return pairs
}

type described struct {
	ID    string `json:"assistant_id"`
	Graph string `json:"graph_id"`
}

// assistants returns the assistants of all graphs. A repository whose handlers show users only
// their own gets one of the user's.
func (v visitor) assistants(ctx context.Context) (list []described, err error) {
	err = v.ask(ctx, "POST", "/assistants/search", map[string]any{"limit": 100}, &list)
	if err != nil || len(list) > 0 {
		return list, err
	}
	if v.public.Graph == "" {
		return nil, errors.New("there are no assistants")
	}
	var own described
	err = v.ask(ctx, "POST", "/assistants", map[string]any{"graph_id": v.public.Graph}, &own)
	return []described{own}, err
}

// assistant returns the assistant of the graph that is run.
func (v visitor) assistant(ctx context.Context) (string, error) {
	list, err := v.assistants(ctx)
	if err != nil {
		return "", err
	}
	if len(list) == 1 {
		return list[0].ID, nil
	}
	at := slices.IndexFunc(list, func(one described) bool { return one.Graph == v.public.Graph })
	if at < 0 {
		return "", fmt.Errorf("the list names none of the %d graphs", len(list))
	}
	return list[at].ID, nil
}

// schemaTries is how often the schemas of a graph are asked for. An agent that makes them of types
// may be too busy to make them before the first answer.
const schemaTries = 4

// hasSchemas reports whether an assistant's graph has an input schema.
func (v visitor) hasSchemas(ctx context.Context, assistant string) (bool, error) {
	for range schemaTries {
		var schemas struct {
			Input json.RawMessage `json:"input_schema"`
		}
		if err := v.ask(ctx, "GET", "/assistants/"+assistant+"/schemas", nil, &schemas); err != nil {
			return false, err
		}
		if len(schemas.Input) > 0 && string(schemas.Input) != "null" {
			return true, nil
		}
	}
	return false, nil
}

// describe reads the schemas and drawings of all graphs.
func (v visitor) describe(ctx context.Context) (string, error) {
	list, err := v.assistants(ctx)
	if err != nil {
		return "", err
	}
	var without []string
	for _, one := range list {
		has, err := v.hasSchemas(ctx, one.ID)
		if err != nil {
			return "", err
		}
		if !has {
			without = append(without, one.Graph)
		}
		var drawing struct {
			Nodes []any `json:"nodes"`
		}
		if err := v.ask(ctx, "GET", "/assistants/"+one.ID+"/graph", nil, &drawing); err != nil {
			return "", err
		}
		if len(drawing.Nodes) == 0 {
			return "", fmt.Errorf("the drawing of %s has no nodes", one.Graph)
		}
	}
	if len(without) > 0 {
		return "drawn only", nil
	}
	return "yes", nil
}

// request returns a run that asks a question.
func (v visitor) request(ctx context.Context, question string) (request, error) {
	assistant, err := v.assistant(ctx)
	if err != nil {
		return nil, err
	}
	input := v.public.Input
	if input == nil {
		input = json.RawMessage(`{"messages": [{"role": "user", "content": "{question}"}]}`)
	}
	body := request{
		"assistant_id": assistant, "input": json.RawMessage(strings.ReplaceAll(string(input), "{question}", question)),
		"stream_mode": []string{"messages-tuple", "updates", "values"}, "stream_subgraphs": true,
	}
	maps.Copy(body, v.public.Runs)
	return body, nil
}

func (v visitor) newThread(ctx context.Context) (string, error) {
	var created struct {
		ID string `json:"thread_id"`
	}
	err := v.ask(ctx, "POST", "/threads", map[string]any{}, &created)
	return "/threads/" + created.ID, err
}

// stream starts a run and calls each with its events, until each reports that it has seen enough.
func (v visitor) stream(ctx context.Context, thread string, body request, each func(event) (enough bool)) error {
	answer, err := v.server.send(ctx, "POST", v.url+thread+"/runs/stream", body, v.header()...)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("a run was answered with %s", answer.Status)
	}
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 32<<20)
	s := &stream{header: answer.Header, body: answer.Body, lines: lines}
	for {
		e, more := s.next()
		if !more {
			return s.err
		}
		if e.name == "error" {
			return failed(e.data)
		}
		if each(e) {
			return nil
		}
	}
}

// failed returns the error that a run reports.
func failed(data string) error {
	var body struct{ Error, Message string }
	if err := json.Unmarshal([]byte(data), &body); err != nil {
		return err
	}
	return fmt.Errorf("the run: %s: %s", body.Error, body.Message)
}

// first starts the thread of the first question and returns it after the run.
func (v visitor) first(ctx context.Context) (string, error) {
	thread, err := v.newThread(ctx)
	if err != nil {
		return "", err
	}
	body, err := v.request(ctx, "Tell me "+providers.Quickly+" about penguins.")
	if err != nil {
		return "", err
	}
	events := 0
	if err := v.stream(ctx, thread, body, func(event) bool { events++; return false }); err != nil {
		return "", err
	}
	if events < 2 {
		return "", errors.New("the run streamed nothing")
	}
	return thread, v.expectRuns(ctx, thread, "success")
}

// run streams a run to its end.
func (v visitor) run(ctx context.Context) (string, error) {
	_, err := v.first(ctx)
	return "yes", err
}

// expectRuns checks the statuses of a thread's runs, oldest first.
func (v visitor) expectRuns(ctx context.Context, thread string, want ...string) error {
	var runs []runBody
	if err := v.ask(ctx, "GET", thread+"/runs?limit=100", nil, &runs); err != nil {
		return err
	}
	var got []string
	for _, run := range slices.Backward(runs) {
		got = append(got, run.Status)
	}
	if !slices.Equal(got, want) {
		return fmt.Errorf("the runs are %v, want %v", got, want)
	}
	return nil
}

// paused is the part of a state that says for what a thread waits.
type paused struct {
	Next  []string `json:"next"`
	Tasks []struct {
		Interrupts []struct {
			ID string `json:"id"`
		} `json:"interrupts"`
	} `json:"tasks"`
	Checkpoint struct {
		ID string `json:"checkpoint_id"`
	} `json:"checkpoint"`
	Values struct {
		Messages []kept `json:"messages"`
	} `json:"values"`
}

// resume answers a question of the graph, if it asks one.
func (v visitor) resume(ctx context.Context) (string, error) {
	thread, err := v.first(ctx)
	if err != nil {
		return "", err
	}
	var before, after paused
	if err := v.ask(ctx, "GET", thread+"/state", nil, &before); err != nil {
		return "", err
	}
	if len(before.Next) == 0 {
		return "-", nil
	}
	body, err := v.request(ctx, "")
	if err != nil {
		return "", err
	}
	delete(body, "input")
	for _, task := range before.Tasks {
		if len(task.Interrupts) > 0 {
			answer := v.public.Answer
			if answer == nil {
				answer = "yes"
			}
			body["command"] = map[string]any{"resume": answer}
		}
	}
	if err := v.stream(ctx, thread, body, func(event) bool { return false }); err != nil {
		return "", fmt.Errorf("after the answer to its question: %w", err)
	}
	if err := v.ask(ctx, "GET", thread+"/state", nil, &after); err != nil {
		return "", err
	}
	if before.Checkpoint.ID == after.Checkpoint.ID {
		return "", errors.New("the answer to its question changes nothing")
	}
	return "yes", v.expectRuns(ctx, thread, "success", "success")
}

// kept is a message of a thread's state.
type kept struct {
	Type     string          `json:"type"`
	Content  json.RawMessage `json:"content"`
	Metadata struct {
		Incomplete bool `json:"incomplete"`
	} `json:"response_metadata"`
}

const (
	slowQuestion   = "Tell me " + providers.Slowly + " about pelicans."
	secondQuestion = "Tell me " + providers.Quickly + " about puffins."
	// spoken is a word of an answer that is under way.
	spoken = "word3"
)

// interrupt interrupts an answer in the middle with another question.
func (v visitor) interrupt(ctx context.Context) (string, error) {
	thread, err := v.newThread(ctx)
	if err != nil {
		return "", err
	}
	slowly, err := v.request(ctx, slowQuestion)
	if err != nil {
		return "", err
	}
	answers := false
	if err := v.stream(ctx, thread, slowly, func(e event) bool {
		answers = strings.HasPrefix(e.name, "messages") && strings.Contains(e.data, spoken)
		return answers
	}); err != nil {
		return "", err
	}
	if !answers {
		return "no text", nil
	}
	second, err := v.request(ctx, secondQuestion)
	if err != nil {
		return "", err
	}
	if err := v.stream(ctx, thread, second.interrupting(), func(event) bool { return false }); err != nil {
		return "", fmt.Errorf("after the interrupt: %w", err)
	}
	if v.expectRuns(ctx, thread, "success", "success") == nil {
		return "no text", nil // the answer came whole, at the end of its run
	}
	if err := v.expectRuns(ctx, thread, "interrupted", "success"); err != nil {
		return "", err
	}
	var state paused
	if err := v.ask(ctx, "GET", thread+"/state", nil, &state); err != nil {
		return "", err
	}
	return judge(state.Values.Messages)
}

// judge says what an interrupt left in the messages of a thread: in order, the first question, the
// text that was shown and the second question with its answer.
func judge(messages []kept) (string, error) {
	at := func(word string) int {
		return slices.IndexFunc(messages, func(one kept) bool { return one.Type == "human" && strings.Contains(string(one.Content), word) })
	}
	if len(messages) == 0 {
		return "yes, no thread of messages", nil
	}
	first, second := at("pelicans"), at("puffins")
	var kinds []string
	for _, one := range messages {
		kind := one.Type
		if one.Metadata.Incomplete {
			kind = "partial"
		}
		kinds = append(kinds, kind)
	}
	partial := slices.IndexFunc(messages, func(one kept) bool { return one.Metadata.Incomplete })
	switch {
	case first < 0 || second < first:
		return "", fmt.Errorf("after the interrupt the first question is message %d, the second message %d of %v", first, second, kinds)
	case second == len(messages)-1:
		return "", fmt.Errorf("after the interrupt the second question has no answer: %v", kinds)
	case partial < 0:
		return "yes, no text kept", nil
	case partial < first || partial > second || !strings.Contains(string(messages[partial].Content), spoken[:len(spoken)-1]):
		return "", fmt.Errorf("after the interrupt the shown text is message %d: %s", partial, messages[partial].Content)
	default:
		return "yes, text kept", nil
	}
}
