package agentserver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/slipway-run/slipway/internal/agent/protocol"
	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/base/fault"
)

// command is a command of the thread-centric streaming protocol to a thread.
type command struct {
	server
	ctx    context.Context
	ref    thread.Ref
	params json.RawMessage
}

// commandMethods has all commands by name. A command returns its result, and the number of the
// last event before the run that it has begun; nil if it has begun no run.
var commandMethods = map[string]func(command) (result any, before *int64, err error){
	"run.start":              command.runStart,
	"input.respond":          command.inputRespond,
	"agent.getTree":          command.agentTree,
	"state.get":              command.stateGet,
	"state.listCheckpoints":  command.stateCheckpoints,
	"state.fork":             command.stateFork,
	"input.inject":           command.refuse,
	"subscription.subscribe": command.refuse, "subscription.unsubscribe": command.refuse, "subscription.reconnect": command.refuse,
}

// commandError is an error of the protocol: its code, and a sentence.
type commandError struct {
	code    CommandAnswerError
	message string
}

func (e *commandError) Error() string { return e.message }

func refused(code CommandAnswerError, format string, args ...any) error {
	return &commandError{code, fmt.Sprintf(format, args...)}
}

// SendCommand carries out a command of the thread-centric streaming protocol.
func (s server) SendCommand(ctx context.Context, request SendCommandRequestObject) (SendCommandResponseObject, error) {
	answer, err := s.command(ctx, threadRef(ctx, request.ThreadID), *request.Body)
	return SendCommand200JSONResponse(answer), err
}

// command answers a command. An error that it returns is an error of the server or of the
// credentials; clients get such an error as they do from every other endpoint.
func (s server) command(ctx context.Context, ref thread.Ref, asked Command) (CommandAnswer, error) {
	answer := CommandAnswer{Type: CommandAnswerTypeSuccess, ID: asked.ID}
	method := commandMethods[asked.Method]
	if method == nil {
		method = func(command) (any, *int64, error) {
			return nil, nil, refused(UnknownCommand, "There is no command %.64q.", asked.Method)
		}
	}
	params := asked.Params
	if len(params) == 0 {
		params = emptyObject
	}
	c := command{server: s, ctx: ctx, ref: ref, params: params}
	result, before, err := method(c)
	if err != nil {
		return answer, c.fail(&answer, err)
	}
	if before == nil {
		if before, err = c.behind(""); err != nil {
			return answer, err
		}
	}
	answer.Result = object(map[string]any{})
	if result != nil {
		if answer.Result, err = json.Marshal(result); err != nil {
			return answer, fmt.Errorf("encode the result of %s: %w", asked.Method, err)
		}
	}
	answer.Meta = &CommandMeta{ThreadID: &ref.Thread, AppliedThroughSeq: before}
	return answer, nil
}

// faultCodes are the codes of faults that a client can do something about.
var faultCodes = map[fault.Kind]CommandAnswerError{
	fault.Invalid: InvalidArgument, fault.NotFound: InvalidArgument, fault.Conflict: InvalidArgument, fault.Unprocessable: InvalidArgument,
}

// fail makes the answer an error of the protocol. If err has no error of the protocol, fail
// returns it.
func (c command) fail(answer *CommandAnswer, err error) error {
	var own *commandError
	var known *fault.Error
	answer.Type = CommandAnswerTypeError
	switch {
	case errors.As(err, &own):
		answer.Error, answer.Message = own.code, own.message
	case errors.As(err, &known) && faultCodes[known.Kind] != "":
		answer.Error, answer.Message = faultCodes[known.Kind], known.Message
		for _, detail := range known.Details {
			answer.Message += fmt.Sprintf(" (%v: %s)", detail.Loc, detail.Msg)
		}
	default:
		return err
	}
	return nil
}

// behind returns the number of the last event before the events of a run; for "", the number
// of the last event that exists.
func (c command) behind(run string) (*int64, error) {
	place, err := c.Runs.Behind(c.ctx, c.ref, run)
	if fault.Is(err, fault.NotFound) {
		err = nil // the thread does not exist yet
	}
	return new(protocol.SeqOf(place)), err
}

// read decodes the parameters.
func (c command) read(into any) error {
	if err := json.Unmarshal(c.params, into); err != nil {
		return refused(InvalidArgument, "The command's params do not have the required shape: %v.", err)
	}
	return nil
}

func (c command) refuse() (any, *int64, error) {
	return nil, nil, refused(NotSupported, "This server does not offer this command here. A stream of events is a request of its own.")
}

// shownModes are the stream modes that runs of this protocol ask of the agent.
var shownModes = []StreamMode{
	StreamModeValues, StreamModeUpdates, StreamModeMessagesTuple, StreamModeCustom, StreamModeTasks, StreamMode(protocol.MethodTools),
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

	command json.RawMessage
	// strict refuses a command that answers a question that the thread does not wait on.
	strict bool
	// creates says that the thread is created if it does not exist.
	creates bool
}

func (c command) runStart() (any, *int64, error) {
	p := startParams{creates: true}
	if err := c.read(&p); err != nil {
		return nil, nil, err
	}
	if p.AssistantID == "" {
		return nil, nil, refused(InvalidArgument, "run.start requires an assistant_id.")
	}
	if isCommand(p.Input) {
		p.command, p.Input = p.Input, nil
	}
	if present(p.Input) != nil && !namesCheckpoint(p.Config) {
		asks, err := c.pending()
		if err != nil {
			return nil, nil, err
		}
		if len(asks) > 0 { // the input is the answer
			p.command, p.Input = object(map[string]any{"resume": p.Input}), nil
		}
	}
	made, before, err := c.start(p)
	if err != nil {
		return nil, nil, err
	}
	return map[string]string{"run_id": made.Run}, before, nil
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
func (p startParams) body() *RunCreate {
	body := &RunCreate{
		AssistantID: p.AssistantID, Input: p.Input, Command: p.command, Config: p.Config, Metadata: p.Metadata,
		StreamMode: shownModes, StreamSubgraphs: new(true), StrictResume: &p.strict,
	}
	// The protocol lets clients send any other value, too.
	if strategy := MultitaskStrategy(cmp.Or(p.Strategy, p.OtherStrategy)); strategy.Valid() {
		body.MultitaskStrategy = &strategy
	}
	if p.creates {
		body.IfNotExists = new(IfNotExistsCreate)
	}
	return body
}

// start creates a run, as the endpoints of runs do.
func (c command) start(p startParams) (run.Run, *int64, error) {
	if err := p.check(); err != nil {
		return run.Run{}, nil, err
	}
	made, err := c.create(c.ctx, c.ref.Thread, p.body(), unread)
	if err != nil {
		asked := present(p.Config)
		if fault.Is(err, fault.NotFound) && asked != nil && namesCheckpoint(asked) {
			err = refused(NoSuchCheckpoint, "%v", err)
		}
		return made, nil, err
	}
	before, err := c.behind(made.Run)
	return made, before, err
}

// pending returns the questions that the thread waits on. There are no such questions if the
// thread is busy or does not exist yet.
func (c command) pending() ([]Interrupt, error) {
	t, err := c.Threads.Get(c.ctx, c.ref)
	if fault.Is(err, fault.NotFound) {
		return nil, nil
	}
	if err != nil || t.Lock.Busy {
		return nil, err
	}
	return questions(t.Interrupts), nil
}
