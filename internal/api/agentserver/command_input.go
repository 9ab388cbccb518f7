package agentserver

import (
	"encoding/json"
	"errors"
	"slices"

	"github.com/slipway-run/slipway/internal/api/agentserver/model"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/record"
)

// answered is an answer to a question of a graph.
type answered struct {
	ID       string          `json:"interrupt_id"`
	Response json.RawMessage `json:"response"`
}

// respondParams are the parameters of input.respond: one answer, or several.
type respondParams struct {
	answered

	Responses []answered      `json:"responses"`
	Strict    bool            `json:"strict_resume"`
	Update    json.RawMessage `json:"update"`
	Goto      json.RawMessage `json:"goto"`
	Config    json.RawMessage `json:"config"`
	Metadata  json.RawMessage `json:"metadata"`
}

func (c command) inputRespond(p respondParams) (any, *int64, error) {
	responses := p.Responses
	if responses == nil {
		responses = []answered{p.answered}
	}
	if len(responses) == 0 || slices.ContainsFunc(responses, func(a answered) bool { return a.ID == "" }) {
		return nil, nil, refused(model.InvalidArgument, "input.respond requires an interrupt_id for each response, and at least one response.")
	}
	assistantID, config, err := c.lastUsed(p.Config)
	if err != nil {
		return nil, nil, err
	}
	resume := map[string]json.RawMessage{}
	for _, a := range responses {
		resume[a.ID] = state.OrNull(a.Response)
	}
	if !p.Strict {
		if err := c.waitsFor(resume); err != nil {
			return nil, nil, err
		}
	}
	members := map[string]any{"resume": resume}
	for name, value := range map[string]json.RawMessage{"update": p.Update, "goto": p.Goto} {
		if state.Present(value) != nil {
			members[name] = value
		}
	}
	// If another client answers at the same time, it finds the thread busy.
	answer := startParams{
		AssistantID: assistantID, command: object(members), Config: config, Metadata: p.Metadata, Strategy: string(run.Reject), strict: true,
	}
	before, err := c.startAnswer(answer, p.Strict)
	return struct{}{}, before, err
}

// startAnswer creates the run of an answer. If the thread does not wait for a strict answer, this
// is a run that fails.
func (c command) startAnswer(answer startParams, strict bool) (*int64, error) {
	_, before, err := c.start(answer)
	if strict && fault.Is(err, fault.Conflict) {
		if before, err = c.refuseAnswer(answer); errors.Is(err, run.ErrAnswerAwaited) {
			_, before, err = c.start(answer)
		}
	}
	if fault.Is(err, fault.Conflict) {
		err = refused(model.NoSuchInterrupt, "The thread has been answered meanwhile.")
	}
	return before, err
}

// refuseAnswer creates a run that fails, from which a client that sent a strict answer learns
// that the thread does not wait for the answer.
func (c command) refuseAnswer(answer startParams) (*int64, error) {
	request, err := c.server.request(c.ctx, answer.body())
	if err != nil {
		return nil, err
	}
	failed, err := c.server.Runs.Refuse(c.ctx, c.ref, request)
	if err != nil {
		return nil, err
	}
	return c.behind(failed.Run)
}

// waitsFor checks answers against the questions that the thread waits on.
func (c command) waitsFor(resume map[string]json.RawMessage) error {
	interrupts, err := c.pending()
	if err != nil {
		return err
	}
	if len(interrupts) == 0 {
		return refused(model.InvalidArgument, "input.respond can only be used while the thread waits for an answer.")
	}
	for id := range resume {
		if !slices.ContainsFunc(interrupts, func(q model.Interrupt) bool { return q.ID == id }) {
			return refused(model.NoSuchInterrupt, "The thread does not wait for an answer to the interrupt %.64q.", id)
		}
	}
	return nil
}

// lastUsed returns the assistant of the thread's newest run, and the configuration of that run
// unless the command has a configuration. A copy of a thread has no run, and a client may delete
// all runs: then the thread's metadata names the assistant.
func (c command) lastUsed(sent json.RawMessage) (assistantID string, config json.RawMessage, err error) {
	newest, err := c.newest()
	if missing, ok := errors.AsType[*commandError](err); ok {
		newest.AssistantID, err = c.assistantOfThread(missing)
	}
	if config = state.Present(sent); config == nil {
		config = model.WithoutCheckpoint(newest.Config)
	}
	return newest.AssistantID, config, err
}

// assistantOfThread returns the assistant that the thread's metadata names, or the error missing.
func (c command) assistantOfThread(missing *commandError) (string, error) {
	t, err := c.server.Threads.Get(c.ctx, c.ref)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return "", err
	}
	var named struct {
		AssistantID string `json:"assistant_id"`
	}
	if json.Unmarshal(state.OrNull(t.Metadata), &named) != nil || named.AssistantID == "" {
		return "", missing
	}
	return named.AssistantID, nil
}

// newest returns the thread's newest run.
func (c command) newest() (run.Run, error) {
	runs, _, err := c.server.Runs.List(c.ctx, c.ref, run.Filter{Window: record.Window{Limit: 1}})
	if err != nil && !fault.Is(err, fault.NotFound) {
		return run.Run{}, err
	}
	if len(runs) == 0 {
		return run.Run{}, refused(model.NoSuchRun, "The thread has no run yet.")
	}
	return runs[0], nil
}
