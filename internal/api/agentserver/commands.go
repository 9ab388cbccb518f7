package agentserver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/slipway-run/slipway/internal/api/agentserver/model"

	"github.com/slipway-run/slipway/internal/agent/protocol"
	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/publicname"
	"github.com/slipway-run/slipway/internal/record/record"
)

// command is a command of the thread-centric streaming protocol to a thread.
type command struct {
	server server
	ctx    context.Context
	ref    thread.Ref
}

// commandMethods has all commands by name. A command returns its result, and the number of the
// last event before the run that it has begun; nil if it has begun no run.
var commandMethods = map[string]func(c command, params json.RawMessage) (result any, before *int64, err error){
	"run.start":              reading(command.runStart),
	"input.respond":          reading(command.inputRespond),
	"agent.getTree":          reading(command.agentTree),
	"state.get":              reading(command.stateGet),
	"state.listCheckpoints":  reading(command.stateCheckpoints),
	"state.fork":             reading(command.stateFork),
	"input.inject":           command.refuse,
	"subscription.subscribe": command.refuse, "subscription.unsubscribe": command.refuse, "subscription.reconnect": command.refuse,
}

// reading returns a command that decodes its parameters.
func reading[P any](do func(command, P) (any, *int64, error)) func(command, json.RawMessage) (any, *int64, error) {
	return func(c command, params json.RawMessage) (any, *int64, error) {
		var p P
		if err := json.Unmarshal(params, &p); err != nil {
			return nil, nil, refused(model.InvalidArgument, "The command's params do not have the required shape: %v.", err)
		}
		return do(c, p)
	}
}

// commandError is an error of the protocol: its code, and a sentence.
type commandError struct {
	code    model.CommandAnswerError
	message string
}

func (e *commandError) Error() string { return e.message }

func refused(code model.CommandAnswerError, format string, args ...any) error {
	return &commandError{code, fmt.Sprintf(format, args...)}
}

// SendCommand carries out a command of the thread-centric streaming protocol.
func (s server) SendCommand(ctx context.Context, request SendCommandRequestObject) (SendCommandResponseObject, error) {
	answer, err := s.command(ctx, threadRef(ctx, request.ThreadID), *request.Body)
	return SendCommand200JSONResponse(answer), err
}

// command answers a command. An error that it returns is an error of the server or of the
// credentials; clients get such an error as they do from every other endpoint.
func (s server) command(ctx context.Context, ref thread.Ref, sent model.Command) (model.CommandAnswer, error) {
	answer := model.CommandAnswer{Type: model.CommandAnswerTypeSuccess, ID: sent.ID}
	method, known := commandMethods[sent.Method]
	if !known {
		return answer, refuseBy(&answer, refused(model.UnknownCommand, "There is no command %.64q.", sent.Method))
	}
	c := command{server: s, ctx: ctx, ref: ref}
	result, before, err := method(c, state.OrEmpty(sent.Params))
	if err != nil {
		return answer, refuseBy(&answer, err)
	}
	if before == nil {
		if before, err = c.behind(""); err != nil {
			return answer, err
		}
	}
	answer.Result = record.Encode(result)
	answer.Meta = &model.CommandMeta{ThreadID: &ref.Thread, AppliedThroughSeq: before}
	return answer, nil
}

// ofClients are the faults that a client can do something about.
var ofClients = []fault.Kind{fault.Invalid, fault.NotFound, fault.Conflict, fault.Unprocessable}

// refuseBy makes the answer an error of the protocol. If err has no error of the protocol, refuseBy
// returns it.
func refuseBy(answer *model.CommandAnswer, err error) error {
	answer.Type = model.CommandAnswerTypeError
	if own, ok := errors.AsType[*commandError](err); ok {
		answer.Error, answer.Message = own.code, own.message
		return nil
	}
	known, ok := errors.AsType[*fault.Error](err)
	if !ok || !slices.Contains(ofClients, known.Kind) {
		return err
	}
	answer.Error, answer.Message = model.InvalidArgument, known.Message
	for _, detail := range known.Details {
		answer.Message += fmt.Sprintf(" (%v: %s)", detail.Loc, detail.Msg)
	}
	return nil
}

// behind returns the number of the last event before the events of a run; for "", the number
// of the last event that exists.
func (c command) behind(run string) (*int64, error) {
	place, err := c.server.Runs.Behind(c.ctx, c.ref, run)
	if fault.Is(err, fault.NotFound) {
		err = nil // the thread does not exist yet
	}
	return new(protocol.SeqOf(place)), err
}

func (command) refuse(json.RawMessage) (any, *int64, error) {
	return nil, nil, refused(model.NotSupported, "This server does not offer this command here. A stream of events is a request of its own.")
}

// shownModes are the stream modes that runs of this protocol ask of the agent.
var shownModes = []model.StreamMode{
	model.StreamModeValues, model.StreamModeUpdates, model.StreamModeMessagesTuple, model.StreamModeCustom, model.StreamModeTasks, model.StreamMode(protocol.MethodTools),
}

// startParams are the parameters of run.start, and the other values that a run needs.
type startParams struct {
	AssistantID string          `json:"assistant_id"`
	Input       json.RawMessage `json:"input"`
	Config      json.RawMessage `json:"config"`
	Metadata    json.RawMessage `json:"metadata"`
	Strategy    string          `json:"multitask_strategy"`
	// OtherStrategy is Strategy in the spelling of older clients.
	OtherStrategy string `json:"multitaskStrategy"`

	// tracer has a name that only clients write.
	tracer  json.RawMessage
	command json.RawMessage
	// strict refuses a command that answers a question that the thread does not wait on.
	strict bool
	// creates says that the thread is created if it does not exist.
	creates bool
}

// UnmarshalJSON implements json.Unmarshaler.
func (p *startParams) UnmarshalJSON(text []byte) error {
	type named startParams
	if err := json.Unmarshal(text, (*named)(p)); err != nil {
		return err
	}
	var members map[string]json.RawMessage
	err := json.Unmarshal(text, &members)
	p.tracer = members[publicname.MemberTracer()]
	return err
}

func (c command) runStart(p startParams) (any, *int64, error) {
	p.creates = true
	if p.AssistantID == "" {
		return nil, nil, refused(model.InvalidArgument, "run.start requires an assistant_id.")
	}
	if isCommand(p.Input) {
		p.command, p.Input = p.Input, nil
	}
	if state.Present(p.Input) != nil && !model.NamesCheckpoint(p.Config) {
		asks, err := c.pending()
		if err != nil {
			return nil, nil, err
		}
		if len(asks) > 0 { // the input is the answer
			p.command, p.Input = object(map[string]any{"resume": p.Input}), nil
		}
	}
	created, before, err := c.start(p)
	return map[string]string{"run_id": created.Run}, before, err
}

// isCommand reports whether an input is a command of a graph: a JavaScript client that calls
// the agent as if it were a graph has no other parameter for a command.
func isCommand(input json.RawMessage) bool {
	var named struct {
		Name string `json:"lg_name"`
	}
	return json.Unmarshal(input, &named) == nil && named.Name == "Command"
}

// body returns the request for the same run at the endpoints of runs.
func (p startParams) body() *model.RunCreate {
	body := &model.RunCreate{
		AssistantID: p.AssistantID, Input: p.Input, Command: p.command, Config: p.Config, Metadata: p.Metadata, FrameworkTracer: p.tracer,
		StreamMode: shownModes, StreamSubgraphs: new(true), StrictResume: &p.strict,
	}
	// The protocol lets clients send any other value, too.
	switch strategy := model.MultitaskStrategy(cmp.Or(p.Strategy, p.OtherStrategy)); strategy {
	case model.MultitaskStrategyEnqueue, model.MultitaskStrategyInterrupt, model.MultitaskStrategyReject, model.MultitaskStrategyRollback:
		body.MultitaskStrategy = &strategy
	}
	if p.creates {
		body.IfNotExists = new(model.IfNotExistsCreate)
	}
	return body
}

// start creates a run, as the endpoints of runs do.
func (c command) start(p startParams) (run.Run, *int64, error) {
	if err := p.check(); err != nil {
		return run.Run{}, nil, err
	}
	created, err := c.server.create(c.ctx, c.ref.Thread, p.body(), run.Request{})
	if err != nil {
		config := state.Present(p.Config)
		if fault.Is(err, fault.NotFound) && config != nil && model.NamesCheckpoint(config) {
			err = refused(model.NoSuchCheckpoint, "%v", err)
		}
		return created, nil, err
	}
	before, err := c.behind(created.Run)
	return created, before, err
}

// pending returns the questions that the thread waits on. There are no such questions if the
// thread is busy or does not exist yet.
func (c command) pending() ([]model.Interrupt, error) {
	t, err := c.server.Threads.Get(c.ctx, c.ref)
	if fault.Is(err, fault.NotFound) {
		return nil, nil
	}
	if err != nil || t.Lock.Busy {
		return nil, err
	}
	return model.Questions(t.Interrupts), nil
}
